//! Copies of the store that a backup, a restore or a migration left in the home, and stores that were not made to
//! their end: what was killed is swept when a command begins, and named by `forget` until then.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use store::home::{Home, HomeDir, NEW_STORE, STORE_COPY};

/// The copy of the store that a backup is made of.
pub(crate) fn backup_copy(home: &Home, at: i64) -> PathBuf {
    home.root().join(format!("{BACKUP}{at}.db"))
}

/// The folder in which a backup is unpacked.
pub(crate) fn restore_stage(run: &Path, at: i64) -> PathBuf {
    run.join(format!("{RESTORE}{}-{at}", std::process::id()))
}

const BACKUP: &str = ".backup-";
const RESTORE: &str = "restore-";

/// Held while copies are made, so that nobody sweeps them.
pub(crate) struct Copying(#[expect(dead_code, reason = "it is held, not read")] File);

impl Copying {
    /// Waits for whoever sweeps, which is soon over.
    ///
    /// # Errors
    /// When the lock file cannot be opened or locked.
    pub(crate) fn begin(home: &Home) -> io::Result<Self> {
        let file = lock_file(home)?;
        file.lock_shared()?;
        Ok(Self(file))
    }
}

fn lock_file(home: &Home) -> io::Result<File> {
    let dir = home.dir(HomeDir::Locks).map_err(io::Error::other)?;
    File::options().read(true).write(true).create(true).truncate(false).open(dir.join("copies.lock"))
}

/// Removes what was left by processes that ended; nothing while a copy is being made. The store is open, so that
/// nobody migrates it.
///
/// # Errors
/// When the home cannot be read, or something cannot be removed.
pub(crate) fn sweep(home: &Home) -> io::Result<()> {
    let left = found(home)?.into_iter().filter(|path| is_unfinished(path)).collect::<Vec<_>>();
    if left.is_empty() {
        return Ok(());
    }
    let lock = lock_file(home)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    for path in left {
        let removed =
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Every copy of the store in the home, those that a migration keeps on purpose among them.
///
/// # Errors
/// When the home cannot be read.
pub(crate) fn found(home: &Home) -> io::Result<Vec<PathBuf>> {
    let run = home.dir(HomeDir::Run).map_err(io::Error::other)?;
    let mut found = Vec::new();
    for (folder, beginnings) in [(home.root(), &[BACKUP, STORE_COPY, NEW_STORE][..]), (&run, &[RESTORE][..])]
    {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if beginnings.iter().any(|beginning| name.starts_with(beginning)) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a copy is of no use to anybody once its maker has ended.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with(STORE_COPY) || !name.ends_with(".bak")
}
