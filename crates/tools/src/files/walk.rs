//! The files below a folder, in order, without links; what git ignores is passed over unless asked for.

use std::ffi::OsStr;
use std::path::Path;

use model::Cancel;
use workspace::{FileKind, LinkPolicy, RelativePath, RootedPath};

use super::failed;
use crate::ignores::{Ignores, shown};

/// Names that are looked at in one call.
const MOST: usize = 200_000;
/// Folders below each other that are gone into.
const DEPTH: usize = 64;

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Everything was seen, or what was looked for was found.
    Whole,
    /// There was more than is looked at in one call.
    Limited,
    Stopped,
}

impl Ended {
    /// What stands below what was found.
    pub(super) const fn note(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Limited => "[Not all files were looked at: there are too many. Name a folder.]\n",
            Self::Stopped => "[Stopped: not all files were looked at.]\n",
        }
    }
}

/// Files that are looked for.
pub(super) struct Walk<'s> {
    pub(super) place: RootedPath<'s>,
    /// Whether those that git ignores are looked at as well.
    pub(super) ignored: bool,
    pub(super) cancel: &'s Cancel,
}

/// A file that was found.
pub(super) struct Found<'p> {
    pub(super) path: &'p RelativePath,
    /// Its path below the folder that was walked.
    pub(super) below: &'p Path,
}

impl Walk<'_> {
    /// Shows every file to `see`, until that says that it is enough.
    ///
    /// # Errors
    /// The folder itself cannot be listed; others that cannot are passed over.
    pub(super) fn files(&self, mut see: impl FnMut(&Found<'_>) -> bool) -> Result<Ended, String> {
        let start = self.place.path.as_path().to_owned();
        let root = self.place.root;
        let at_start = root.stat(&self.place.path, LinkPolicy::Refuse).map_err(|error| failed(&error))?;
        if at_start.kind == FileKind::Regular {
            let below = Path::new(start.file_name().unwrap_or_default());
            see(&Found { path: &self.place.path, below });
            return Ok(Ended::Whole);
        }
        let mut ignores = if self.ignored { Ignores::none(root) } else { Ignores::above(root, &start) };
        let mut seen = 0;
        // Folders that are to be listed, the next one last, with how many ignore files stand above each.
        let mut folders = vec![(start.clone(), ignores.len())];
        let mut is_first = true;
        while let Some((folder, above)) = folders.pop() {
            if self.cancel.is_cancelled() {
                return Ok(Ended::Stopped);
            }
            ignores.truncate(above);
            ignores.enter(&folder);
            let Ok(path) = RelativePath::parse(&shown(&folder)) else { continue };
            let listing = match root.list(&path, MOST) {
                Ok(listing) => listing,
                Err(error) if is_first => return Err(failed(&error)),
                Err(_) => continue,
            };
            is_first = false;
            let mut below = Vec::new();
            for entry in listing.entries {
                seen += 1;
                if seen > MOST {
                    return Ok(Ended::Limited);
                }
                let at = folder.join(&entry.name);
                let is_folder = entry.kind == FileKind::Folder;
                if entry.name == OsStr::new(".git") || ignores.is_ignored(&at, is_folder) {
                    continue;
                }
                let depth = at.components().count().saturating_sub(start.components().count());
                match entry.kind {
                    FileKind::Folder if depth < DEPTH => below.push((at, ignores.len())),
                    FileKind::Regular => {
                        let Some(path) = at.to_str().and_then(|at| RelativePath::parse(at).ok()) else {
                            continue;
                        };
                        let below = at.strip_prefix(&start).unwrap_or(&at);
                        if !see(&Found { path: &path, below }) {
                            return Ok(Ended::Whole);
                        }
                    }
                    _ => {}
                }
            }
            folders.extend(below.into_iter().rev());
        }
        Ok(Ended::Whole)
    }
}
