//! What stands at a path and below it, as it is moved, copied or deleted: read whole before anything is done.

use std::path::Path;

use loom::Digest;
use model::Cancel;
use text::bytes::size;
use workspace::{FileKind, FileProblem, LinkPolicy, ReadRules, RelativePath, Root, RootedPath};

use crate::files::MAX_BYTES;

/// Paths of a subtree at most.
pub(crate) const MAX_PATHS: usize = 20_000;
/// Bytes of all its files at most.
const MAX_SUM: u64 = 1 << 30;

/// What stands at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: RelativePath,
    pub(crate) kind: EntryKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        digest: Digest,
        bytes: u64,
        /// Names the file has in all.
        names: u64,
    },
    /// A symbolic link, never followed: the path it leads to.
    Link {
        target: Vec<u8>,
    },
}

/// A path with everything below it, a folder before what it holds.
#[derive(Debug)]
pub(crate) struct Subtree<'s> {
    pub(crate) root: &'s Root,
    pub(crate) entries: Vec<Entry>,
}

/// Paths of a subtree with their kinds, a folder before what it holds. No file is opened.
///
/// # Errors
/// There is nothing, a folder cannot be listed, or there is more than is taken at once.
pub(crate) fn paths_below(place: &RootedPath<'_>) -> Result<Vec<(RelativePath, FileKind)>, String> {
    let RootedPath { root, path } = place;
    let top = root.stat(path, LinkPolicy::Refuse).map_err(|error| match error.problem {
        FileProblem::NotFound => format!("{path} is not there"),
        _ => error.to_string(),
    })?;
    let mut paths = Vec::new();
    let mut ahead = vec![(path.clone(), top.kind)];
    while let Some((path, kind)) = ahead.pop() {
        if kind == FileKind::Folder {
            let listing = root.list(&path, MAX_PATHS).map_err(|error| error.to_string())?;
            if listing.incomplete || paths.len() + ahead.len() + listing.entries.len() >= MAX_PATHS {
                return Err(format!("{} holds more than {MAX_PATHS} paths: take its parts", place.path));
            }
            for entry in listing.entries.iter().rev() {
                let below = path.join(&entry.name).map_err(|error| error.to_string())?;
                ahead.push((below, entry.kind));
            }
        }
        paths.push((path, kind));
    }
    Ok(paths)
}

impl<'s> Subtree<'s> {
    /// Reads everything at a path, files by their digests.
    ///
    /// # Errors
    /// There is nothing, more than is taken at once, or something that is no file, folder or link.
    pub(crate) fn read(place: &RootedPath<'s>, cancel: &Cancel) -> Result<Self, String> {
        let root = place.root;
        let (mut entries, mut sum) = (Vec::new(), 0);
        for (path, kind) in paths_below(place)? {
            if cancel.is_cancelled() {
                return Err("it was stopped: nothing was changed".to_owned());
            }
            if path.as_path().to_str().is_none() {
                return Err(format!("{path}: its name is no text, so it could not be given back"));
            }
            let kind = match kind {
                FileKind::Folder => {
                    let found = root.stat(&path, LinkPolicy::Refuse).map_err(|error| error.to_string())?;
                    EntryKind::Folder { mode: found.mode }
                }
                FileKind::Symlink => {
                    EntryKind::Link { target: root.link_target(&path).map_err(|error| error.to_string())? }
                }
                _ => {
                    let content = root.read(&path, &ReadRules::at_most(MAX_BYTES)).map_err(|error| {
                        match error.problem {
                            FileProblem::TooLarge { limit } => {
                                format!("{path} has more than {}, which is not kept", size(limit))
                            }
                            _ => error.to_string(),
                        }
                    })?;
                    let (digest, bytes) = (content.digest(), content.metadata.bytes);
                    sum += bytes;
                    EntryKind::File {
                        mode: content.metadata.mode,
                        digest,
                        bytes,
                        names: content.metadata.links,
                    }
                }
            };
            if sum > MAX_SUM {
                return Err(format!("{} holds more than {}: take its parts", place.path, size(MAX_SUM)));
            }
            entries.push(Entry { path, kind });
        }
        Ok(Self { root, entries })
    }

    /// What stands at its own path.
    pub(crate) fn top(&self) -> &EntryKind {
        &self.entries[0].kind
    }

    pub(crate) fn files(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::File { .. })).count()
    }

    /// The paths of its entries were it another path's.
    ///
    /// # Errors
    /// One of them would be too long.
    pub(crate) fn paths_at(&self, to: &RelativePath) -> Result<Vec<RelativePath>, String> {
        let from = self.entries[0].path.as_path();
        self.entries.iter().map(|entry| path_at(&entry.path, from, to)).collect()
    }
}

/// A path below `from` as it is below `to`.
pub(crate) fn path_at(path: &RelativePath, from: &Path, to: &RelativePath) -> Result<RelativePath, String> {
    let below = path.as_path().strip_prefix(from).unwrap_or(path.as_path());
    let join = |to: RelativePath, name| to.join(name).map_err(|error| format!("{path}: {error}"));
    below.iter().try_fold(to.clone(), join)
}
