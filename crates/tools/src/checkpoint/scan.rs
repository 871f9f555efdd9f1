//! Recording a root: a walk over all that stands beneath it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use loom::Digest;
use model::Cancel;
use workspace::protected::{DEPENDENCY_FOLDERS, is_git_folder, is_held};
use workspace::{
    FileError, FileKind, FileProblem, FileStamp, OwnerAccess, ReadRules, RelativePath, Root, StampedListing,
};

use super::index::Index;
use super::pack::{Pack, Place};
use super::{Checkpoint, CheckpointError, CheckpointRules, Entry, EntryKind, NotKept};
use crate::ignores::Ignores;

/// Names that are looked at in one root.
const MOST: usize = 200_000;
/// Folders below each other that are gone into.
const DEPTH: usize = 64;
/// How long after a change a file system may give the same time to another one, in ns.
const RESOLUTION: i64 = 50_000_000;
/// Closed folders that are open at one time, each by a descriptor.
const OPENED: usize = 256;
/// Drawloom's own folder in a workspace.
const OWN: &str = ".drawloom";

/// Whether nothing stands at a path that was recorded.
const fn is_gone(problem: &FileProblem) -> bool {
    matches!(problem, FileProblem::NotFound | FileProblem::NotAFolder | FileProblem::Symlink)
}

/// A walk that records.
pub(super) struct Scan<'a> {
    root: &'a Root,
    rules: &'a CheckpointRules,
    /// Private folders beneath the root.
    private: Vec<PathBuf>,
    pack: Pack,
    /// The record before, of the same pack or not.
    old: Option<&'a Checkpoint>,
    /// Bytes that lie in the pack already.
    places: HashMap<Digest, Place>,
    index: Index,
    files: usize,
    bytes: u64,
    /// When it began, in ns since 1970.
    began: i64,
    /// Folders that a command closed, open until the walk is done.
    opened: Vec<OwnerAccess>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        root: &'a Root,
        rules: &'a CheckpointRules,
        pack: Pack,
        old: Option<&'a Checkpoint>,
    ) -> Self {
        let of_pack = old.filter(|old| old.pack.is_same(&pack));
        let place = |entry: &Entry| match entry.kind {
            EntryKind::File { digest, place } => Some((digest, place)),
            _ => None,
        };
        let places = of_pack.into_iter().flat_map(|old| old.entries().values().filter_map(place)).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let (index, files, bytes) = (Index::default(), 0, 0);
        let below = |folder: &PathBuf| folder.strip_prefix(root.path()).ok().map(Path::to_owned);
        let private = rules.private.iter().filter_map(below).collect();
        let opened = Vec::new();
        Self { root, rules, private, pack, old, places, index, files, bytes, began, opened }
    }

    pub(super) fn done(self) -> (Index, Pack) {
        (self.index, self.pack)
    }

    /// Walks, and looks as well at what was recorded before and is passed over by now.
    pub(super) fn run(&mut self, cancel: &Cancel) -> Result<(), CheckpointError> {
        self.index.folder = Some(self.root.root_stamp()?);
        let mut ignores = Ignores::above(self.root, Path::new(""));
        let mut folders = vec![(RelativePath::root(), 0)];
        let mut seen = 0;
        'walk: while let Some((folder, above)) = folders.pop() {
            if cancel.is_cancelled() {
                return Err(CheckpointError::Stopped);
            }
            ignores.truncate(above);
            let (entries, is_cut) = match self.list(&folder) {
                Ok(listed) => listed,
                Err(error) if folder.is_root() => return Err(error.into()),
                Err(_) => {
                    self.index.passed_over.insert(folder.as_path().into());
                    continue;
                }
            };
            ignores.enter(folder.as_path());
            self.index.is_cut |= is_cut;
            for (entry, stamp) in entries {
                seen += 1;
                if seen > MOST {
                    self.index.is_cut = true;
                    break 'walk;
                }
                let is_folder = entry.kind == FileKind::Folder;
                let path = folder.as_path().join(&entry.name);
                let known = entry.name.to_str().is_some().then(|| folder.join(&entry.name).ok()).flatten();
                let (Some(name), Some(at)) = (entry.name.to_str(), known) else {
                    self.index.passed_over.insert(path.into());
                    continue;
                };
                if self.is_passed_over(name, is_folder, &path) || ignores.is_ignored(&path, is_folder) {
                    self.index.passed_over.insert(path.into());
                    continue;
                }
                if is_folder {
                    if path.components().count() < DEPTH {
                        folders.push((at.clone(), ignores.len()));
                    } else {
                        self.index.passed_over.insert(path.clone().into());
                    }
                }
                self.take(&at, entry.kind, stamp)?;
            }
        }
        self.look_again()
    }

    /// The names in a folder, also in one that was closed since the record before.
    fn list(&mut self, folder: &RelativePath) -> Result<StampedListing, FileError> {
        let listed = self.root.list_stamped(folder, MOST);
        match listed {
            Err(error) if self.is_closed_since(folder, &error) && self.opened.len() < OPENED => {
                self.opened.extend(self.root.owner_access(folder)?);
                self.root.list_stamped(folder, MOST)
            }
            listed => listed,
        }
    }

    /// Whether this user is kept out of what the record before has, or what is new since: a command closed it. What they
    /// closed themselves before is left alone, and so is what the walls close.
    fn is_closed_since(&self, at: &RelativePath, error: &FileError) -> bool {
        let path = at.as_path();
        let was_open = |old: &Checkpoint| {
            let is_unreadable = |entry: &Entry| matches!(entry.kind, EntryKind::NotKept(NotKept::Unreadable));
            !old.passes_over(path) && !old.entries().get(path).is_some_and(is_unreadable)
        };
        matches!(error.problem, FileProblem::PermissionDenied)
            && !at.is_root()
            && self.old.is_some_and(was_open)
            && !is_held(path)
    }

    fn is_passed_over(&self, name: &str, is_folder: bool, path: &Path) -> bool {
        let is_private = || is_folder && self.private.iter().any(|private| private == path);
        is_git_folder(name)
            || name == OWN
            || is_private()
            || (is_folder
                && (DEPENDENCY_FOLDERS.contains(&name)
                    || self.rules.dependency_folders.iter().any(|folder| folder == name)))
    }

    /// A path that was recorded stays so, whatever git ignores by now.
    fn look_again(&mut self) -> Result<(), CheckpointError> {
        let Some(old) = self.old else { return Ok(()) };
        let missing = old.entries().keys().filter(|path| !self.index.entries.contains_key(*path));
        let missing: Vec<PathBuf> = missing.cloned().collect();
        for path in missing {
            let Ok(at) = path.iter().try_fold(RelativePath::root(), |at, name| at.join(name)) else {
                continue;
            };
            match self.root.stamp(&at) {
                Ok((kind, stamp)) => self.take(&at, kind, stamp)?,
                // A link, or nothing, where a folder was.
                Err(error) if is_gone(&error.problem) => {}
                // It may be there still: nothing is known of it.
                Err(_) => {
                    if let Some(entry) = old.entries().get(&path) {
                        let kind = EntryKind::NotKept(NotKept::Unreadable);
                        self.index.entries.insert(path, Entry { kind, ..entry.clone() });
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, at: &RelativePath, kind: FileKind, stamp: FileStamp) -> Result<(), CheckpointError> {
        let path = at.as_path().to_owned();
        let settled = stamp.changed.saturating_add(RESOLUTION) < self.began;
        let kind = match kind {
            FileKind::Folder => EntryKind::Folder,
            FileKind::Symlink => match self.root.link_target(at) {
                Ok(target) => EntryKind::Link { target },
                Err(_) => EntryKind::NotKept(NotKept::Unreadable),
            },
            FileKind::Regular => return self.take_file(at, stamp, settled),
            FileKind::Fifo | FileKind::Socket => EntryKind::Special,
            // A device: nothing that could be given back.
            _ => {
                self.index.passed_over.insert(path.into());
                return Ok(());
            }
        };
        self.index.entries.insert(path, Entry { stamp, settled, kind });
        Ok(())
    }

    fn take_file(
        &mut self,
        at: &RelativePath,
        stamp: FileStamp,
        settled: bool,
    ) -> Result<(), CheckpointError> {
        self.files += 1;
        let known = self.old.and_then(|old| Some((old, old.entries().get(at.as_path())?)));
        // What was kept before stays so, however much came beside it.
        let was_kept = known.is_some_and(|(_, entry)| matches!(entry.kind, EntryKind::File { .. }));
        let known = known.filter(|(_, entry)| entry.settled && entry.stamp == stamp);
        let (kind, stamp, settled) = match known {
            _ if stamp.bytes > self.rules.file => (EntryKind::NotKept(NotKept::TooLarge), stamp, settled),
            _ if !was_kept
                && (self.files > self.rules.files || self.bytes + stamp.bytes > self.rules.workspace) =>
            {
                (EntryKind::NotKept(NotKept::TooMany), stamp, settled)
            }
            Some((old, Entry { kind: EntryKind::File { digest, place }, .. })) => {
                let place = match self.places.get(digest) {
                    Some(place) => Ok(*place),
                    // It lies in another pack.
                    None => match old.pack.read(*place, *digest) {
                        Ok(bytes) => self.push(*digest, &bytes),
                        Err(_) => return self.read_file(at, stamp, settled),
                    },
                }?;
                (EntryKind::File { digest: *digest, place }, stamp, settled)
            }
            _ => return self.read_file(at, stamp, settled),
        };
        self.keep(at.as_path(), Entry { stamp, settled, kind });
        Ok(())
    }

    fn read_file(
        &mut self,
        at: &RelativePath,
        stamp: FileStamp,
        settled: bool,
    ) -> Result<(), CheckpointError> {
        let rules = ReadRules::at_most(self.rules.file);
        let read = match self.root.read(at, &rules) {
            Err(error) if self.is_closed_since(at, &error) => {
                let _open = self.root.owner_access(at);
                self.root.read(at, &rules)
            }
            read => read,
        };
        let entry = match read {
            Ok(content) => {
                let digest = content.digest();
                let place = match self.places.get(&digest) {
                    Some(place) => *place,
                    None => self.push(digest, &content.bytes)?,
                };
                // What is written to meanwhile is read again the next time.
                let settled = settled && self.root.stamp(at).is_ok_and(|(_, after)| after == stamp);
                Entry { stamp, settled, kind: EntryKind::File { digest, place } }
            }
            Err(error) if matches!(error.problem, FileProblem::NotFound) => return Ok(()),
            Err(_) => Entry { stamp, settled, kind: EntryKind::NotKept(NotKept::Unreadable) },
        };
        self.keep(at.as_path(), entry);
        Ok(())
    }

    fn keep(&mut self, path: &Path, entry: Entry) {
        if let EntryKind::File { place, .. } = entry.kind {
            self.bytes += place.bytes;
        }
        self.index.entries.insert(path.to_owned(), entry);
    }

    fn push(&mut self, digest: Digest, bytes: &[u8]) -> Result<Place, CheckpointError> {
        let place = self.pack.push(bytes)?;
        self.places.insert(digest, place);
        Ok(place)
    }
}
