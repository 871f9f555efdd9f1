//! Copies of the store that a backup, a restore or a migration left in the home, and files that were not made to
//! their end: what was killed is swept when a command begins, and copies are named by `forget` until then. Only what
//! has exactly a name that is given here is swept; a file that a person put into the home stays.

use std::fs::{self, File, FileType, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use store::home::{Home, HomeDir, STORE_COPIES, is_unfinished};

/// The folder in which a backup is unpacked.
pub(crate) fn restore_stage(run: &Path, at: i64) -> PathBuf {
    run.join(format!("{RESTORE}{}-{at}", std::process::id()))
}

const RESTORE: &str = "restore-";

/// Whether this is exactly the name of a [`restore_stage`].
fn is_stage(name: &str) -> bool {
    let numbers = name.strip_prefix(RESTORE).and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, at)| is_number(process) && is_number(at))
}

/// Held while copies are made, so that nobody sweeps them.
pub(crate) struct Copying(File);

impl Copying {
    /// Waits for whoever sweeps, which is soon over.
    ///
    /// # Errors
    /// When the lock file cannot be opened or locked.
    pub(crate) fn begin(home: &Home) -> io::Result<Self> {
        loop {
            let file = match lock_file(home, COPIES) {
                // Its folder was removed with a home that nothing was restored into.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            if take_shared(&file, home)? {
                return Ok(Self(file));
            }
        }
    }

    /// Whether nobody else makes copies. Then the lock is held alone, and its file may be removed: whoever waits for
    /// it looks again.
    pub(crate) fn is_alone(&self) -> bool {
        self.0.unlock().is_ok() && self.0.try_lock().is_ok()
    }
}

/// Lock of those who make copies and of whoever sweeps them.
pub(super) const COPIES: &str = "copies.lock";

/// A file to be locked.
///
/// # Errors
/// When it cannot be opened.
pub(super) fn lock_file(home: &Home, name: &str) -> io::Result<File> {
    let dir = home.dir(HomeDir::Locks).map_err(io::Error::other)?;
    workspace::open_lock_file(&dir.join(name))
}

/// Whether a lock on copies is held with others, once nobody holds it alone; not one whose file was removed.
fn take_shared(lock: &File, home: &Home) -> io::Result<bool> {
    lock.lock_shared()?;
    is_named(lock, home)
}

/// Whether a lock on copies is held alone; not one that somebody holds, or whose file was removed.
fn take_alone(lock: &File, home: &Home) -> io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => is_named(lock, home),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether the lock on copies is still the file that others lock.
fn is_named(lock: &File, home: &Home) -> io::Result<bool> {
    let file = lock.metadata()?;
    match home.dir(HomeDir::Locks).map_err(io::Error::other)?.join(COPIES).metadata() {
        Ok(named) => Ok((named.dev(), named.ino()) == (file.dev(), file.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes what was left by processes that ended; nothing while a copy is being made. The store is open, so that
/// nobody migrates it.
///
/// # Errors
/// When the home cannot be read, or something cannot be removed.
pub(crate) fn sweep(home: &Home) -> io::Result<()> {
    let run = home.dir(HomeDir::Run).map_err(io::Error::other)?;
    let files = entries(home.root(), |name, kind| kind.is_file() && is_unfinished(name))?;
    let stages = entries(&run, |name, kind| kind.is_dir() && is_stage(name))?;
    if files.is_empty() && stages.is_empty() {
        return Ok(());
    }
    let lock = lock_file(home, COPIES)?;
    if !take_alone(&lock, home)? {
        return Ok(());
    }
    let files = files.iter().map(fs::remove_file);
    for removed in files.chain(stages.iter().map(fs::remove_dir_all)) {
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Every copy of the store in the home, those that a migration keeps on purpose and those that a person made under
/// such a name among them.
///
/// # Errors
/// When the home cannot be read.
pub(crate) fn found(home: &Home) -> io::Result<Vec<PathBuf>> {
    let run = home.dir(HomeDir::Run).map_err(io::Error::other)?;
    let mut found =
        entries(home.root(), |name, _| STORE_COPIES.iter().any(|beginning| name.starts_with(beginning)))?;
    found.extend(entries(&run, |name, _| name.starts_with(RESTORE))?);
    Ok(found)
}

/// What lies in a folder and is wanted, by name.
fn entries(folder: &Path, wanted: impl Fn(&str, FileType) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type() {
            Ok(kind) if wanted(&entry.file_name().to_string_lossy(), kind) => found.push(entry.path()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

/// What commands left in the home beside the store, a line for each folder of it: what was moved to quarantine, and their
/// HOME, which all conversations of a workspace share.
pub(crate) fn of_commands(home: &Home) -> Vec<String> {
    let used = [HomeDir::Quarantine, HomeDir::Sandbox].into_iter().filter_map(|dir| {
        let folder = home.dir(dir).ok()?;
        let is_used = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
        is_used.then(|| format!("what commands left in {}", folder.display()))
    });
    used.collect()
}

#[cfg(test)]
mod tests {
    use store::home::HomeOptions;

    use super::*;

    #[test]
    fn a_lock_whose_file_was_removed_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path(), HomeOptions::default()).unwrap();
        let first = Copying::begin(&home).unwrap();
        let second = Copying::begin(&home).unwrap();
        assert!(!second.is_alone());
        let second = Copying::begin(&home).unwrap();
        drop(first);
        assert!(second.is_alone());
        drop(second);

        let (copies, sweeps) = (lock_file(&home, COPIES).unwrap(), lock_file(&home, COPIES).unwrap());
        let removed = folder.path().join("locks").join(COPIES);
        fs::remove_file(&removed).unwrap();
        assert!(!take_shared(&copies, &home).unwrap(), "nobody else locks it");
        copies.unlock().unwrap();
        assert!(!take_alone(&sweeps, &home).unwrap());
        sweeps.unlock().unwrap();
        let third = Copying::begin(&home).unwrap();
        assert!(!take_shared(&copies, &home).unwrap(), "another file has its name");
        copies.unlock().unwrap();
        assert!(!take_alone(&sweeps, &home).unwrap());
        assert!(third.is_alone(), "the control: the file that has the name is the lock");
    }
}
