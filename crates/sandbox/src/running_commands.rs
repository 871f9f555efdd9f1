//! What stood in a folder when no command ran in it.
//!
//! Commands overlap: those of several sessions and processes, and one in the background with all that come meanwhile. A
//! protected name that one of them made, or a text that it changed where no mount holds it, is found there by the look of
//! another that begins, and is not for that any less a command's. What counts as there before is therefore kept for all of
//! them: a record of each root and git folder, in the home, written by the first command, and a lock that each one holds,
//! shared, until what it did was looked at. A name that is not in the record is new for all.
//!
//! A record whose lock nobody holds was left by commands that were killed. The next one looks after them before it begins;
//! what was made later than their last sign of life is somebody else's.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use workspace::protected::{self, DEPENDENCY_FOLDERS};
use workspace::{FileId, open_lock_file, open_small_file, read_small_file};

use crate::accepted_changes::AcceptedPaths;
use crate::protected_paths::{ProtectedPaths, is_dependency_folder};
use crate::snapshot::Snapshot;
use crate::walls::Walls;

/// Folder of the records, below that of what git had.
const FOLDER: &str = "running";
/// Bytes of a record, at most: what was kept stands in it as text.
const LONGEST: u64 = 512 << 20;
/// Pause between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the end of a command waits for one that begins.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two signs of life that a running command gives, in whole seconds.
pub const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// What is made later than this after the last sign of life was not made by the command.
const SILENCE: Duration = Duration::from_secs(3 * SIGN_OF_LIFE.as_secs());

/// Record of one folder.
#[derive(Debug, Serialize, Deserialize)]
struct FolderRecord {
    #[serde(with = "crate::path_form")]
    folder: PathBuf,
    /// Digests of what was found.
    found: BTreeSet<String>,
    /// Paths that a person allowed the first command to change.
    #[serde(with = "crate::path_form")]
    accepted: Vec<PathBuf>,
    /// When the first command began.
    #[serde(default = "never")]
    began: SystemTime,
    kept: Snapshot,
    /// What stands as a person let it be made since.
    #[serde(skip)]
    since: AcceptedPaths,
}

/// Time of a record that does not say it: nothing was accepted since.
fn never() -> SystemTime {
    SystemTime::now() + Duration::from_secs(1 << 30)
}

impl FolderRecord {
    fn read(file: &Path) -> io::Result<Option<Self>> {
        match read_small_file(file, LONGEST) {
            Ok(bytes) => {
                let mut record: Self = serde_json::from_slice(&bytes)?;
                let records = file.parent().and_then(Path::parent);
                let counts = |path: &Path| path.starts_with(&record.folder);
                record.since =
                    records.map(|all| AcceptedPaths::since(all, record.began, counts)).unwrap_or_default();
                Ok(Some(record))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn overlaps(&self, folder: &Path) -> bool {
        self.folder.starts_with(folder) || folder.starts_with(&self.folder)
    }

    fn is_accepted(&self, path: &Path) -> bool {
        self.accepted.iter().any(|accepted| accepted == path) || self.since.paths.contains(path)
    }

    fn has(&self, kind: &str, path: &Path, value: &[u8]) -> bool {
        // What stands where a tool took something away since is new.
        let was_found =
            || self.found.contains(&digest(kind, path, value)) && !self.since.removed.contains(path);
        !path.starts_with(&self.folder) || was_found() || self.is_accepted(path)
    }

    /// Whether a path is protected for who looks from another folder, and for nobody who looks from that of the record:
    /// a name that only stands at the top of a root, or one in a folder of packages.
    fn cannot_know<'t>(
        &self,
        path: &Path,
        mut tops: impl Iterator<Item = &'t Path>,
        is_packages: impl Fn(&str) -> bool,
    ) -> bool {
        let Ok(here) = path.strip_prefix(&self.folder) else { return true };
        let has = |is: &dyn Fn(&str) -> bool| here.iter().any(|name| is(&name.to_string_lossy()));
        let is_of_packages = has(&is_packages) && !has(&protected::is_git_folder);
        (is_of_packages || !protected::is_mounted(here))
            && tops.any(|top| top != self.folder && path.strip_prefix(top).is_ok_and(protected::is_mounted))
    }
}

/// Digest of something that was found.
fn digest(kind: &str, path: &Path, value: &[u8]) -> String {
    let mut hasher = Sha256::new();
    for part in [kind.as_bytes(), path.as_os_str().as_bytes(), value] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    data_encoding::HEXLOWER.encode(&hasher.finalize()[..16])
}

/// Root or git folder of a command.
#[derive(Debug)]
struct CommandFolder {
    path: PathBuf,
    lock: File,
    record: PathBuf,
    /// Whether no other command runs in it.
    is_first: bool,
}

/// Commands that run in the folders of one that is about to, or does.
#[derive(Debug, Default)]
pub(crate) struct RunningCommands {
    /// None where nothing is recorded.
    records: Option<PathBuf>,
    folders: Vec<CommandFolder>,
    /// Records of the commands that run in these folders, around them and below them.
    joined: Vec<FolderRecord>,
    /// When it looked at its folders first, or before.
    entered: Option<SystemTime>,
    /// Held until it has begun: no other command begins or ends meanwhile.
    changing: Option<File>,
    /// Whether it runs, and was not looked after yet.
    is_running: bool,
}

impl RunningCommands {
    /// Enters the folders of a command, and waits for others that begin or end.
    ///
    /// # Errors
    /// If a record cannot be read or made, a folder is used under another name, or the time was over.
    pub(crate) fn enter(walls: &Walls, is_over: impl Fn() -> bool) -> io::Result<Self> {
        let Some(records) = walls.tracked_records.as_deref().map(|records| records.join(FOLDER)) else {
            return Ok(Self::default());
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&records)?;
        let changing = open_lock_file(&records.join("changing.lock"))?;
        while !is_free(changing.try_lock())? {
            if is_over() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another command that begins holds it"));
            }
            thread::sleep(PAUSE);
        }
        let mut entered = Self {
            records: Some(records.clone()),
            folders: Vec::new(),
            joined: Vec::new(),
            entered: Some(SystemTime::now()),
            changing: Some(changing),
            is_running: false,
        };
        for path in walls.writable_roots().chain(walls.git_folders.iter().map(PathBuf::as_path)) {
            let metadata = path.metadata()?;
            let record = records.join(FileId { device: metadata.dev(), inode: metadata.ino() }.to_string());
            if entered.folders.iter().any(|known| known.record == record) {
                continue;
            }
            let lock = open_lock_file(&record.with_extension("lock"))?;
            let is_first = is_free(lock.try_lock())?;
            if !is_first {
                let running = FolderRecord::read(&record)?.ok_or(io::ErrorKind::NotFound)?;
                if running.folder != path {
                    let other = running.folder.display();
                    return Err(io::Error::other(format!("a command runs in this folder as {other}")));
                }
                entered.joined.push(running);
                lock.try_lock_shared()?;
            }
            entered.folders.push(CommandFolder { path: path.to_owned(), lock, record, is_first });
        }
        entered.join_around_and_below(&records)?;
        for folder in entered.folders.iter().filter(|folder| folder.is_first) {
            folder.lock.try_lock_shared()?;
            // Of killed ones that cannot be looked after while others run here.
            if !entered.joined.is_empty() {
                let left = FolderRecord::read(&folder.record)?;
                entered.joined.extend(left.filter(|left| left.folder == folder.path));
            }
        }
        Ok(entered)
    }

    /// Joins the commands of folders around these and below them.
    fn join_around_and_below(&mut self, records: &Path) -> io::Result<()> {
        for entry in fs::read_dir(records)? {
            let path = entry?.path();
            let is_record = path.extension().is_none()
                && path.with_extension("lock").exists()
                && self.folders.iter().all(|own| own.record != path);
            // One that nobody holds is read by who comes there next.
            if !is_record || is_free(open_lock_file(&path.with_extension("lock"))?.try_lock())? {
                continue;
            }
            let record = FolderRecord::read(&path)?;
            let overlapping =
                record.filter(|record| self.folders.iter().any(|own| record.overlaps(&own.path)));
            self.joined.extend(overlapping);
        }
        Ok(())
    }

    /// What commands that were killed left in these folders: what they found there, and kept; nothing while one of them runs.
    ///
    /// # Errors
    /// If the record of a folder cannot be read, with its path: what they made there would count as its owner's.
    pub(crate) fn left_behind(&self) -> Result<Option<LeftBehind>, (PathBuf, io::Error)> {
        let mut left = LeftBehind::default();
        if !self.joined.is_empty() {
            return Ok(None);
        }
        for folder in self.folders.iter().filter(|folder| folder.is_first) {
            let record =
                FolderRecord::read(&folder.record).map_err(|error| (folder.record.clone(), error))?;
            let seen = folder.lock.metadata().and_then(|metadata| metadata.modified());
            if let (Some(record), Ok(seen)) = (record.filter(|record| record.folder == folder.path), seen) {
                left.records.push((record, seen + SILENCE));
            }
        }
        Ok((!left.records.is_empty()).then_some(left))
    }

    /// Takes out of a look what came while a command ran.
    pub(crate) fn retain(&self, paths: &mut ProtectedPaths, walls: &Walls) {
        let tops = || self.folders.iter().map(|own| own.path.as_path());
        let was_there = |record: &FolderRecord, kind: &str, path: &Path, value: &[u8]| {
            let is_packages = |name: &str| is_dependency_folder(name, walls);
            record.has(kind, path, value) || kind == "path" && record.cannot_know(path, tops(), is_packages)
        };
        if !self.joined.is_empty() {
            paths.retain(|kind, path, value| {
                self.joined.iter().all(|record| was_there(record, kind, path, value))
            });
        }
    }

    /// What was kept of a path when no command ran.
    pub(crate) fn kept(&self) -> Snapshot {
        let mut kept = Snapshot::default();
        for record in &self.joined {
            kept.add_missing(&record.kept, |path| !record.is_accepted(path));
        }
        kept
    }

    /// Notes what a command found before it begins, for those that begin while it runs, and lets others begin.
    ///
    /// # Errors
    /// If a record cannot be written: then it must not begin.
    pub(crate) fn begin(&mut self, paths: &ProtectedPaths, kept: &Snapshot, walls: &Walls) -> io::Result<()> {
        let mut found = BTreeSet::new();
        if self.folders.iter().any(|folder| folder.is_first) {
            paths.clone().retain(|kind, path, value| found.insert(digest(kind, path, value)));
        }
        for folder in &self.folders {
            let record = match self.joined.iter_mut().find(|record| record.folder == folder.path) {
                Some(record) => {
                    if !record.kept.add_missing(kept, |_| true) {
                        continue;
                    }
                    serde_json::to_vec(record)
                }
                None => serde_json::to_vec(&FolderRecord {
                    folder: folder.path.clone(),
                    found: found.clone(),
                    accepted: walls.touches.clone(),
                    began: self.entered.unwrap_or_else(never),
                    kept: kept.clone(),
                    since: AcceptedPaths::default(),
                }),
            };
            workspace::replace_small_file_durably(&folder.record, &record?)?;
        }
        self.sign_of_life();
        self.let_others_begin();
        Ok(())
    }

    /// Says that the command may have done something from here on.
    pub(crate) fn set_running(&mut self) {
        self.sign_of_life();
        self.is_running = true;
    }

    /// What stands in its folders as a person let others make it, since it began: by its own `touches` not all may stand.
    pub(crate) fn accepted_since(&self, began: SystemTime, touches: &[PathBuf]) -> AcceptedPaths {
        let is_own = |path: &Path| touches.iter().any(|touched| touched == path);
        let counts =
            |path: &Path| self.folders.iter().any(|folder| path.starts_with(&folder.path)) && !is_own(path);
        let records = self.records.as_deref().and_then(Path::parent);
        records.map(|records| AcceptedPaths::since(records, began, counts)).unwrap_or_default()
    }

    /// Files whose time says when the command was last alive.
    pub(crate) fn locks(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().map(|folder| folder.record.with_extension("lock"))
    }

    /// Says that what the command did was looked at.
    pub(crate) fn set_looked_after(&mut self) {
        self.is_running = false;
    }

    /// Marks the time, as the helper does from here on.
    fn sign_of_life(&self) {
        for folder in &self.folders {
            if let Err(error) = folder.lock.set_modified(SystemTime::now()) {
                tracing::debug!(%error, "the time of a running command could not be marked");
            }
        }
    }

    fn let_others_begin(&mut self) {
        if let Some(changing) = self.changing.take() {
            let _ = changing.unlock();
        }
    }

    /// Removes the records of folders that no command is left in. Nobody begins before its locks are free, too.
    fn leave(&mut self) -> io::Result<()> {
        let Some(records) = &self.records else { return Ok(()) };
        if self.changing.is_none() {
            let changing = open_lock_file(&records.join("changing.lock"))?;
            let until = Instant::now() + PATIENCE;
            while !is_free(changing.try_lock())? {
                if Instant::now() > until {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                thread::sleep(PAUSE);
            }
            self.changing = Some(changing);
        }
        for folder in &self.folders {
            // Nobody is left.
            if is_free(folder.lock.try_lock())? {
                match fs::remove_file(&folder.record) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Drop for RunningCommands {
    fn drop(&mut self) {
        if !self.is_running
            && let Err(error) = self.leave()
        {
            tracing::warn!(%error, "the record of a command that ended stays, and is looked after by the next one");
        }
        // A program that is about to be started somewhere may have the descriptors for a moment longer.
        for folder in &self.folders {
            let _ = folder.lock.unlock();
        }
        self.let_others_begin();
    }
}

/// What a file of the protected set counts for while commands run in its folder, or were killed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileBefore {
    /// What stands there.
    AsItStands,
    /// Nothing: it came while a command ran.
    New,
    /// What it was.
    Was(Vec<u8>),
}

/// Says of a file by its absolute path what it counts for. `records` is that of [`Walls::tracked_records`]. It waits for
/// commands that begin.
///
/// # Errors
/// If that cannot be said.
pub fn before_running_commands(records: &Path, file: &Path) -> io::Result<FileBefore> {
    let records = records.join(FOLDER);
    let entries = match fs::read_dir(&records) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileBefore::AsItStands),
        entries => entries?,
    };
    let changing = open_small_file(&records.join("changing.lock"))?;
    let until = Instant::now() + PATIENCE;
    while !is_free(changing.try_lock())? {
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "a command begins in its folder"));
        }
        thread::sleep(PAUSE);
    }
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    for entry in entries {
        let path = entry?.path();
        let lock = path.with_extension("lock");
        if path.extension().is_some() || !lock.exists() {
            continue;
        }
        let Some(record) = FolderRecord::read(&path)? else { continue };
        let lock = open_small_file(&lock)?;
        let end = match is_free(lock.try_lock())? {
            true => Some(lock.metadata()?.modified()? + SILENCE),
            false => None,
        };
        // A program that is being started may have the descriptor for a moment longer.
        let _ = lock.unlock();
        for path in [file, &target] {
            if end.is_some_and(|end| is_later(path, end)) {
                continue;
            }
            let is_packages = |name: &str| DEPENDENCY_FOLDERS.contains(&name);
            let was_there = record.has("path", path, b"")
                || record.cannot_know(path, path.parent().into_iter(), is_packages);
            if !was_there {
                return Ok(FileBefore::New);
            }
            if let Some(bytes) = record.kept.file(path).filter(|_| !record.is_accepted(path)) {
                return Ok(FileBefore::Was(bytes.to_vec()));
            }
        }
    }
    Ok(FileBefore::AsItStands)
}

/// What commands that were killed left behind.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    records: Vec<(FolderRecord, SystemTime)>,
}

impl LeftBehind {
    /// What of a look was there before those commands, or came after them.
    pub(crate) fn before(&self, now: &ProtectedPaths) -> ProtectedPaths {
        let mut before = now.clone();
        before.retain(|kind, path, value| {
            self.records.iter().all(|(record, end)| record.has(kind, path, value) || is_later(path, *end))
        });
        before
    }

    /// What stands as a person let it be made since they began.
    pub(crate) fn accepted(&self) -> AcceptedPaths {
        let mut accepted = AcceptedPaths::default();
        self.records.iter().for_each(|(record, _)| accepted.add(&record.since));
        accepted
    }

    /// What they kept, without what was changed after them.
    pub(crate) fn kept(&self) -> Snapshot {
        let mut kept = Snapshot::default();
        for (record, end) in &self.records {
            kept.add_missing(&record.kept, |path| !record.is_accepted(path) && !is_later(path, *end));
        }
        kept
    }
}

/// Whether what stands at a path was made or changed after a time: by the kernel's time of change, which no program sets.
fn is_later(path: &Path, end: SystemTime) -> bool {
    let changed = path.symlink_metadata().ok().and_then(|metadata| {
        let seconds = u64::try_from(metadata.ctime()).ok()?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    });
    changed.is_some_and(|changed| changed > end)
}

fn is_free(locked: Result<(), TryLockError>) -> io::Result<bool> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
