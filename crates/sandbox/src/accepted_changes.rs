//! Changes of protected paths that a person let tools make, or commands by their `touches`, of whichever process.
//!
//! What is new, or another one, when a command ends looks like the command's. What a person let be made is told by a record:
//! before it is made, of what is to stand there, which counts as long as the process that makes it holds the lock of the
//! record; once it is made, of the very file, which counts until anybody writes, moves or links it or changes its rights. That
//! is told by the kernel's time of change, which no program sets: a file of the same bytes that a command puts there is
//! another one.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, DirEntry, File, Metadata, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use workspace::{
    FileId, FileStamp, open_lock_file, open_small_file, read_beginning, read_small_file, replace_small_file,
};

/// Folder of these records, beside those of the commands that run.
const FOLDER: &str = "accepted";
/// Characters of the name of the record of a path that was changed: its digest.
const DIGEST: usize = 64;
/// Beginning of the name of a record of changes that are being made.
const BEING_MADE: &str = "being-made-";
/// File whose lock is shared by tools that make such changes; a look at what commands did has it alone.
const LOCK: &str = "lock";
/// Bytes of a record, at most.
const LONGEST: u64 = 16 << 20;
/// How long one waits for the other, and how often it asks.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);
/// Time after which no command runs any more that was running then.
const OVER: Duration = Duration::from_secs(48 * 3600);
/// How far the time of a file may be behind the clock.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(50);
/// Bytes of a file that a command made by its `touches`, and paths of a folder, that are looked at.
const MOST_BYTES: u64 = 16 << 20;
const MOST_PATHS: usize = 10_000;

/// What a person lets stand at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AcceptedState {
    /// The file or folder that a command makes there by its `touches`, with all below it: a link would lead elsewhere.
    Any,
    Absent,
    /// A folder, and nothing that is in it.
    Folder,
    /// A file with its permission bits; none where the system gives them.
    File {
        mode: Option<u32>,
        bytes: u64,
        digest: String,
    },
}

impl AcceptedState {
    /// A file of these bytes.
    pub fn file(mode: Option<u32>, bytes: &[u8]) -> Self {
        Self::File { mode, bytes: bytes.len() as u64, digest: digest(bytes) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct AcceptedChange {
    #[serde(with = "crate::path_form")]
    path: PathBuf,
    state: AcceptedState,
    /// The file, once it was made.
    stamp: Option<FileStamp>,
    at: SystemTime,
    /// Whether a command made it by its `touches`: nobody saw it before.
    #[serde(default)]
    by_command: bool,
}

impl AcceptedChange {
    /// Whether it stands so.
    fn stands(&self) -> bool {
        let found = || self.path.symlink_metadata();
        match &self.state {
            AcceptedState::Any => {
                found().map_or_else(|error| is_gone(&error), |found| found.is_file() || found.is_dir())
            }
            AcceptedState::Absent => found().is_err_and(|error| is_gone(&error)),
            AcceptedState::Folder => found().is_ok_and(|found| found.is_dir()),
            AcceptedState::File { mode, bytes, digest: expected } => {
                let is_it = |found: Metadata| {
                    let stamp = stamp(&found);
                    found.is_file()
                        && found.nlink() == 1
                        && stamp.bytes == *bytes
                        && mode.is_none_or(|mode| mode == stamp.mode)
                        && self.stamp.is_none_or(|known| known == stamp)
                };
                found().is_ok_and(is_it)
                    && read_beginning(&self.path, bytes + 1).is_ok_and(|bytes| digest(&bytes) == *expected)
                    && found().is_ok_and(is_it)
            }
        }
    }

    /// The change as it was made, if it stands so.
    fn made(self) -> Option<Self> {
        let stamp = match self.state {
            AcceptedState::File { .. } => Some(stamp(&self.path.symlink_metadata().ok()?)),
            AcceptedState::Any | AcceptedState::Absent | AcceptedState::Folder => None,
        };
        let made = Self { stamp, at: SystemTime::now(), ..self };
        made.stands().then_some(made)
    }

    /// File of the record of it, once it was made.
    fn record(&self, folder: &Path) -> PathBuf {
        folder.join(digest(self.path.as_os_str().as_bytes()))
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn digest(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

fn stamp(found: &Metadata) -> FileStamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    FileStamp {
        id: FileId { device: found.dev(), inode: found.ino() },
        bytes: found.len(),
        mode: found.mode() & 0o7777,
        modified: nanoseconds(found.mtime(), found.mtime_nsec()),
        changed: nanoseconds(found.ctime(), found.ctime_nsec()),
    }
}

/// Changes that are being made: as long as it is there, no look at what commands did takes them for theirs. `records` is that
/// of [`Walls::tracked_records`](crate::Walls::tracked_records).
#[derive(Debug)]
pub struct AcceptedChanges {
    folder: PathBuf,
    changes: Vec<AcceptedChange>,
    /// Folders that stood before at and below paths that a command may write.
    folders: BTreeSet<FileId>,
    /// Record of them, which is locked.
    being_made: NamedTempFile,
    /// What keeps looks out meanwhile: what is half made is like nothing that was accepted.
    _unseen: Option<File>,
}

impl AcceptedChanges {
    /// Says what is about to be made, as a person let it: absolute paths.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn begin(
        records: &Path,
        changes: impl IntoIterator<Item = (PathBuf, AcceptedState)>,
    ) -> io::Result<Self> {
        let folder = records.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let at = SystemTime::now();
        remove_old(&folder, at)?;
        let change = |(path, state)| {
            let by_command = state == AcceptedState::Any;
            AcceptedChange { path, state, stamp: None, at, by_command }
        };
        let changes: Vec<AcceptedChange> = changes.into_iter().map(change).collect();
        let touched = changes.iter().filter(|change| change.by_command).map(|change| change.path.clone());
        let folders = folders_below(touched.collect());
        // A command may run for hours.
        let is_command = changes.iter().any(|change| change.by_command);
        let unseen = if is_command { None } else { wait_for(&folder, File::try_lock_shared) };
        let mut being_made = NamedTempFile::with_prefix_in(BEING_MADE, &folder)?;
        being_made.as_file().lock()?;
        being_made.write_all(&serde_json::to_vec(&changes)?)?;
        Ok(Self { folder, changes, folders, being_made, _unseen: unseen })
    }

    /// Says that they were made: what stands as it was to counts from here on as long as nobody changes it.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn finish(self) -> io::Result<()> {
        let Self { folder, changes, folders, being_made, _unseen } = self;
        for change in changes.into_iter().flat_map(|change| found(change, &folders)) {
            let record = change.record(&folder);
            match change.made() {
                Some(made) => replace_small_file(&record, &serde_json::to_vec(&made)?)?,
                // What another process made there meanwhile stays accepted.
                None if read(&record).is_some_and(|other: AcceptedChange| other.stands()) => {}
                None => remove(&record)?,
            }
        }
        drop(being_made);
        Ok(())
    }
}

/// Keeps tools from making such changes as long as it is there, while what commands did is looked at. None where nobody ever
/// made any, or one takes too long.
pub(crate) fn hold(records: &Path) -> Option<File> {
    let folder = records.join(FOLDER);
    folder.is_dir().then(|| wait_for(&folder, File::try_lock)).flatten()
}

/// Waits for a lock on the file of it; none where that cannot be had in time.
fn wait_for(folder: &Path, lock: fn(&File) -> Result<(), TryLockError>) -> Option<File> {
    let file = open_lock_file(&folder.join(LOCK)).ok()?;
    let began = Instant::now();
    loop {
        match lock(&file) {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < WAIT => std::thread::sleep(PAUSE),
            Err(error) => {
                tracing::debug!(%error, "a look at commands and a change of files are not kept apart");
                return None;
            }
        }
    }
}

/// Folders at and below some paths.
fn folders_below(mut rest: Vec<PathBuf>) -> BTreeSet<FileId> {
    let mut found = BTreeSet::new();
    while let Some(path) = rest.pop().filter(|_| found.len() < MOST_PATHS) {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() && found.insert(stamp(&metadata).id) {
            let below = fs::read_dir(&path).into_iter().flatten().flatten();
            let may_be_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            rest.extend(below.filter(may_be_folder).map(|entry| entry.path()));
        }
    }
    found
}

/// A change with what there is to tell of it: of what a command made by its `touches`, what is another one since it began, and
/// all of a folder that was none of those that stood `before`: it may have been moved there.
fn found(change: AcceptedChange, before: &BTreeSet<FileId>) -> Vec<AcceptedChange> {
    if change.state != AcceptedState::Any {
        return vec![change];
    }
    let (mut found, mut rest) = (Vec::new(), vec![(change.path, false)]);
    let is_new = |metadata: &Metadata| {
        let changed = u64::try_from(stamp(metadata).changed).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_nanos(changed) + CLOCK_RESOLUTION >= change.at
    };
    while let Some((path, in_new)) = rest.pop().filter(|_| found.len() < MOST_PATHS) {
        let state = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                let in_new = in_new || !before.contains(&stamp(&metadata).id);
                let below = fs::read_dir(&path).into_iter().flatten().flatten();
                rest.extend(below.map(|entry| (entry.path(), in_new)));
                if !(in_new || is_new(&metadata)) {
                    continue;
                }
                AcceptedState::Folder
            }
            Ok(metadata) if !(in_new || is_new(&metadata)) => continue,
            Ok(metadata) if metadata.is_file() && metadata.len() <= MOST_BYTES => {
                let Ok(bytes) = read_beginning(&path, MOST_BYTES) else { continue };
                AcceptedState::file(None, &bytes)
            }
            Err(error) if is_gone(&error) => AcceptedState::Absent,
            _ => continue,
        };
        found.push(AcceptedChange { path, state, stamp: None, at: change.at, by_command: true });
    }
    found
}

/// Paths that stand as a person let them be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcceptedPaths {
    /// With all below them.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Folders alone.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// The part of `paths` that was made since, and not long ago.
    pub(crate) meanwhile: BTreeSet<PathBuf>,
    /// Paths that tools took away since, whatever stands there by now.
    pub(crate) removed: BTreeSet<PathBuf>,
    /// The part of `paths` that a command may write, or wrote since, by its `touches`: one that runs beside it may have, too.
    pub(crate) by_commands: BTreeSet<PathBuf>,
}

impl AcceptedPaths {
    /// Of those that count, all that stand so; what is gone only where that was since a time: who looked later saw it gone.
    pub(crate) fn since(records: &Path, since: SystemTime, counts: impl Fn(&Path) -> bool) -> Self {
        let folder = records.join(FOLDER);
        // Before the others: who finishes makes those first.
        let open: Vec<(Vec<AcceptedChange>, bool)> = being_made_in(&folder)
            .map(|record| (read(&record).unwrap_or_default(), is_held(&record)))
            .collect();
        let made: Vec<AcceptedChange> = records_in(&folder).filter_map(|record| read(&record)).collect();
        // Of a process that was killed, what it had made and no tool changed later.
        let counts_still = |change: &AcceptedChange| {
            let is_later = |other: &AcceptedChange| other.path == change.path && other.at >= change.at;
            matches!(change.state, AcceptedState::File { .. }) && !made.iter().any(is_later)
        };
        let mut being_made = Vec::new();
        for (mut changes, is_held) in open {
            if !is_held {
                changes.retain(counts_still);
            }
            being_made.extend(changes);
        }
        let mut found = Self::default();
        for change in made.into_iter().chain(being_made) {
            let is_gone = change.state == AcceptedState::Absent;
            let is_late = is_gone && change.at < since;
            if is_gone && !is_late && counts(&change.path) {
                found.removed.insert(change.path.clone());
            }
            if is_late || !counts(&change.path) || !change.stands() {
                continue;
            }
            if change.state == AcceptedState::Folder {
                found.folders.insert(change.path);
                continue;
            }
            let is_open = change.state == AcceptedState::Any;
            if change.by_command && (is_open || change.at >= since) {
                found.by_commands.insert(change.path.clone());
            }
            if change.at >= since {
                found.meanwhile.insert(change.path.clone());
            }
            found.paths.insert(change.path);
        }
        found
    }

    /// Whether one is at a path, or below it, that is there.
    pub(crate) fn any_in(&self, path: &Path) -> bool {
        let has = |of: &BTreeSet<PathBuf>| {
            let mut within = of.range(path.to_owned()..).take_while(|other| other.starts_with(path));
            within.any(|other| other.symlink_metadata().is_ok())
        };
        has(&self.paths) || has(&self.folders)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.paths.extend(other.paths.iter().cloned());
        self.folders.extend(other.folders.iter().cloned());
        self.meanwhile.extend(other.meanwhile.iter().cloned());
        self.removed.extend(other.removed.iter().cloned());
        self.by_commands.extend(other.by_commands.iter().cloned());
    }
}

fn read<T: for<'r> Deserialize<'r>>(record: &Path) -> Option<T> {
    serde_json::from_slice(&read_small_file(record, LONGEST).ok()?).ok()
}

fn remove(record: &Path) -> io::Result<()> {
    match fs::remove_file(record) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what no command can need any more.
fn remove_old(folder: &Path, now: SystemTime) -> io::Result<()> {
    let is_over = |change: AcceptedChange| now.duration_since(change.at).is_ok_and(|age| age > OVER);
    let old = records_in(folder).filter(|record| read(record).is_none_or(is_over));
    // Of processes that were killed.
    let left = being_made_in(folder).filter(|record| is_older(record, now) && !is_held(record));
    old.chain(left).try_for_each(|record| remove(&record))
}

/// Whether a record is older than the moment in which it has no lock yet.
fn is_older(record: &Path, now: SystemTime) -> bool {
    let made = record.metadata().and_then(|metadata| metadata.modified());
    made.is_ok_and(|made| now.duration_since(made).is_ok_and(|age| age > OVER))
}

/// Whether somebody holds the lock of a record.
fn is_held(record: &Path) -> bool {
    open_small_file(record).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Records of what was made, without what another process is about to make one of.
fn records_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    entries_in(folder, |name| name.len() == DIGEST && name.iter().all(u8::is_ascii_hexdigit))
}

fn being_made_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    entries_in(folder, |name| name.starts_with(BEING_MADE.as_bytes()))
}

fn entries_in(folder: &Path, counts: fn(&[u8]) -> bool) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let counts = move |entry: &DirEntry| counts(entry.file_name().as_bytes());
    entries.filter(counts).map(|entry| entry.path())
}

#[cfg(test)]
mod tests;
