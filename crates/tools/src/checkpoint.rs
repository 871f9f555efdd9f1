//! What stands beneath a root before a command runs: paths, modes, links, and the bytes of files (spec: agent §3
//! *Checkpoints*).
//!
//! A command may change anything beneath its root, so all of it is recorded first, in a folder of the home that can be
//! missed: an index of stamps and a pack of bytes. A file whose stamp is the one of the record before is not read again.
//! What a command changed is told by two records, and its old bytes go from the pack to the store.
//!
//! Recorded is what a person would miss: not the git folder, not what git ignores, not the folders of dependencies.

mod difference;
mod index;
mod pack;
mod roots;
mod scan;
mod unfinished;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use loom::Digest;
use model::Cancel;
use serde::{Deserialize, Serialize};
use workspace::{FileStamp, Root, RootStamp};

pub(crate) use difference::{CommandChange, Differences, StoodState};
use index::{Index, IndexFile};
use pack::{Pack, Place};
pub use roots::{RootCheckpoints, RootRecords};
use scan::Scan;
pub(crate) use unfinished::UnfinishedRecord;

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRules {
    /// Bytes of one file at most.
    pub file: u64,
    /// Files at most.
    pub files: usize,
    /// Bytes of all files at most.
    pub workspace: u64,
    /// Names of folders that are not recorded, beside [`workspace::protected::DEPENDENCY_FOLDERS`].
    pub dependency_folders: Vec<String>,
    /// Folders that are not recorded, by their absolute paths: the home of Drawloom.
    pub private: Vec<PathBuf>,
}

impl Default for CheckpointRules {
    fn default() -> Self {
        Self {
            file: 10 << 20,
            files: 20_000,
            workspace: 1 << 30,
            dependency_folders: Vec::new(),
            private: Vec::new(),
        }
    }
}

/// Folder of the records of commands that are running.
const PENDING: &str = "pending";

/// The file by which one process at a time is kept at the records of a root.
const LOCK: &str = "lock";

/// Bytes that no file needs any more, after which a pack is written anew.
const WASTE: u64 = 256 << 20;

/// Why nothing could be recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    #[error("{} could not be {action}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("it was stopped")]
    Stopped,
    #[error("{0}")]
    Root(#[from] workspace::FileError),
}

impl CheckpointError {
    /// Whether the home failed, such as a full disk, and not what is recorded.
    pub(crate) const fn is_of_the_home(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

fn io_at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.to_owned();
    move |source| CheckpointError::Io { action, path, source }
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    stamp: FileStamp,
    /// Whether an equal stamp tells that nothing changed: not so of a file that changed just before it was looked at.
    settled: bool,
    kind: EntryKind,
}

impl Entry {
    fn digest(&self) -> Option<Digest> {
        match &self.kind {
            EntryKind::File { digest, .. } => Some(*digest),
            EntryKind::Link { target } => Some(Digest::of(target)),
            EntryKind::Folder | EntryKind::Special | EntryKind::NotKept(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryKind {
    Folder,
    File {
        digest: Digest,
        place: Place,
    },
    Link {
        target: Vec<u8>,
    },
    /// A pipe or socket.
    Special,
    /// A file whose bytes are not kept.
    NotKept(NotKept),
}

/// Why the bytes of a file are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotKept {
    TooLarge,
    /// The workspace has more files, or more bytes, than are kept.
    TooMany,
    Unreadable,
}

/// What stood beneath a root at one time.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    index: Index,
    pack: Pack,
}

/// Records of one root, in a folder of their own.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    rules: CheckpointRules,
    /// The newest, as long as no other process made one.
    last: Mutex<Option<(IndexFile, Arc<Checkpoint>)>>,
}

impl Checkpoints {
    /// Records of the root that this folder belongs to. It is made when it is needed.
    #[must_use]
    pub fn within(folder: PathBuf, rules: CheckpointRules) -> Self {
        Self { folder, rules, last: Mutex::default() }
    }

    /// Records what stands beneath a root. With a name, the record outlives this process under it, until
    /// [`Self::finish`].
    pub(crate) fn record(
        &self,
        root: &Root,
        name: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Arc<Checkpoint>, CheckpointError> {
        let _lock = self.lock()?;
        let mut newest = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = newest.take();
        let before = match known {
            Some((file, checkpoint)) if file.is_current(&self.folder) => Some((file, checkpoint)),
            _ => self.load().map(|(file, checkpoint)| (file, Arc::new(checkpoint))),
        };
        let (index, pack) = {
            let old = before.as_ref().map(|(_, old)| old.as_ref());
            let pack = match old {
                Some(old) if !self.is_wasteful(old) => old.pack.again()?,
                _ => Pack::create(&self.folder)?,
            };
            let mut scan = Scan::new(root, &self.rules, pack, old);
            scan.run(cancel)?;
            scan.done()
        };
        let unchanged = before.filter(|(_, old)| old.index == index && old.pack.is_same(&pack));
        let (file, checkpoint) = match unchanged {
            Some(unchanged) => unchanged,
            None => {
                let file = IndexFile::write(&self.folder, (root.path(), &self.rules), &index, &pack)?;
                self.remove_other_packs(&pack);
                (file, Arc::new(Checkpoint { index, pack }))
            }
        };
        if let Some(name) = name {
            file.keep_as(&self.pending(name))?;
        }
        *newest = Some((file, Arc::clone(&checkpoint)));
        Ok(checkpoint)
    }

    /// The newest record, where it can be read: what cannot is made anew.
    fn load(&self) -> Option<(IndexFile, Checkpoint)> {
        let (file, read) = IndexFile::read(&self.folder.join(index::NAME))?;
        let pack = Pack::open(&self.folder, &read.pack).ok()?;
        Some((file, Checkpoint { index: read.index, pack }))
    }

    fn pending(&self, name: &str) -> PathBuf {
        self.folder.join(PENDING).join(name)
    }

    /// Whether a new pack without what is needed no more saves much.
    fn is_wasteful(&self, old: &Checkpoint) -> bool {
        old.pack.len() > old.index.kept_bytes() + WASTE && !self.has_pending()
    }

    fn has_pending(&self) -> bool {
        fs::read_dir(self.folder.join(PENDING)).is_ok_and(|mut entries| entries.next().is_some())
    }

    fn remove_other_packs(&self, pack: &Pack) {
        if self.has_pending() {
            return;
        }
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if pack::is_pack(&name) && name != pack.name() {
                fs::remove_file(entry.path()).ok();
            }
        }
    }

    /// Keeps other processes from recording the same root meanwhile.
    fn lock(&self) -> Result<File, CheckpointError> {
        let pending = self.folder.join(PENDING);
        loop {
            match make_private(&pending).and_then(|()| locked(&self.folder)) {
                Ok(lock) if pending.is_dir() => return Ok(lock),
                // Its records were removed meanwhile.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_at("locked", &self.folder.join(LOCK))(error)),
            }
        }
    }
}

/// Removes the records of every root, their bytes first: they may hold what is to be forgotten. What a running command
/// changes cannot be given back then. It blocks.
///
/// # Errors
/// Something could not be removed.
pub fn remove_records(all: &Path) -> io::Result<()> {
    match fs::read_dir(all) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        folders => folders?.try_for_each(|folder| remove_record(&folder?.path())),
    }
}

/// Removes the records of one folder, if there are any, and those whose folders have its name with a `.` and more behind
/// it, their bytes first. It blocks.
///
/// # Errors
/// Something could not be removed.
pub fn remove_records_of(folder: &Path) -> io::Result<()> {
    let (Some(all), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let beginning = [name.as_encoded_bytes(), b"."].concat();
    for other in fs::read_dir(all).into_iter().flatten() {
        let other = other?;
        if other.file_name().as_encoded_bytes().starts_with(&beginning) {
            remove_record(&other.path())?;
        }
    }
    remove_record(folder)
}

/// Removes the records of one folder, if there are any, their bytes first.
fn remove_record(folder: &Path) -> io::Result<()> {
    let _lock = match locked(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock?,
    };
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            for file in fs::read_dir(&path)? {
                remove_overwritten(&file?.path())?;
            }
            remove_emptied(&path)?;
        } else if path.file_name().is_some_and(|name| name != LOCK) {
            remove_overwritten(&path)?;
        }
    }
    // From here on others may make the folder anew.
    fs::remove_file(folder.join(LOCK))?;
    remove_emptied(folder)
}

/// Removes a file, its bytes first. One that went meanwhile is gone.
fn remove_overwritten(path: &Path) -> io::Result<()> {
    match overwrite(path).and_then(|()| fs::remove_file(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes a folder, unless it went, or somebody began with it anew.
fn remove_emptied(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Keeps other processes from the records in a folder.
fn locked(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    loop {
        let file = workspace::open_lock_file(&path)?;
        file.lock()?;
        // Whoever removed the records meanwhile removed it, too.
        match fs::metadata(&path) {
            Ok(found) if found.ino() == file.metadata()?.ino() => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

/// Bytes of a pack that are searched at a time.
const SEARCHED: usize = 1 << 20;

/// Folders of records whose bytes hold a text. It blocks.
///
/// # Errors
/// Something could not be read.
pub fn records_with(all: &Path, text: &str) -> io::Result<u64> {
    let folders = match fs::read_dir(all) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        folders => folders?,
    };
    let finder = memchr::memmem::Finder::new(text);
    let mut found = 0;
    for folder in folders {
        for file in fs::read_dir(folder?.path())? {
            let file = file?;
            if pack::is_pack(&file.file_name()) && holds(&File::open(file.path())?, &finder)? {
                found += 1;
                break;
            }
        }
    }
    Ok(found)
}

/// Whether a file holds what is looked for, also over the border of two pieces.
fn holds(mut file: &File, finder: &memchr::memmem::Finder<'_>) -> io::Result<bool> {
    let mut piece = Vec::new();
    loop {
        let kept = piece.len().min(finder.needle().len().saturating_sub(1));
        piece.drain(..piece.len() - kept);
        let read = file.by_ref().take(SEARCHED as u64).read_to_end(&mut piece)?;
        if finder.find(&piece).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
    }
}

/// Writes zero bytes over a file.
fn overwrite(path: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let len = file.metadata()?.len();
    io::copy(&mut io::repeat(0).take(len), &mut &file)?;
    file.sync_data()
}

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

impl Checkpoint {
    /// Digests of the files whose bytes are kept, and of what links lead to.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        self.index.entries.values().filter_map(Entry::digest).collect()
    }

    /// Paths of files with one of these digests.
    pub(crate) fn paths_of(&self, digests: &HashSet<Digest>) -> Vec<&Path> {
        let is_one = |entry: &Entry| entry.digest().is_some_and(|digest| digests.contains(&digest));
        self.index.entries.iter().filter(|(_, entry)| is_one(entry)).map(|(path, _)| path.as_path()).collect()
    }

    /// The folder of the root; none where it was not recorded.
    pub(crate) const fn folder(&self) -> Option<&RootStamp> {
        self.index.folder.as_ref()
    }

    fn entries(&self) -> &HashMap<PathBuf, Entry> {
        &self.index.entries
    }

    fn passed_over(&self) -> &HashSet<OsString> {
        &self.index.passed_over
    }
}

#[cfg(test)]
mod tests;
