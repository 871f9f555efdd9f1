//! Lock on a workspace: one process at a time replaces its documents.
//!
//! The lock lies in the home, named by the workspace's device and inode. A lock on the document
//! would be a lock on an inode that the next replacement takes away; a lock file in the workspace
//! could be held for ever by any command that runs there (spec: security §18).

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use crate::identity::FileId;
use crate::small_file::open_lock_file;

/// First and longest pause between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Exclusive lock on the documents of one workspace; released on drop, and by the kernel when the
/// process ends.
#[derive(Debug)]
pub struct WorkspaceLock {
    _file: File,
    workspace: FileId,
}

/// Failure to take a workspace's lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another holder, in this process or another, kept the lock until the timeout.
    #[error("another process{} is writing this workspace's documents: try again when it is done", .holder.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    Busy {
        /// Process id the holder wrote into the lock file.
        holder: Option<u32>,
    },
    /// The lock file could not be made or opened.
    #[error("the lock in the home's locks folder cannot be opened: {0}")]
    Io(#[from] io::Error),
}

impl WorkspaceLock {
    /// Takes the lock, trying for about `timeout`; a zero timeout tries once. `locks` is
    /// `<home>/locks`, made if missing.
    ///
    /// # Errors
    /// [`LockError::Busy`] when the time is over.
    pub fn acquire(locks: &Path, workspace: FileId, timeout: Duration) -> Result<Self, LockError> {
        Self::acquire_pausing(locks, workspace, timeout, std::thread::sleep)
    }

    /// As [`acquire`](Self::acquire), with the pause given: the time waited is the sum of pauses,
    /// so no clock is read.
    fn acquire_pausing(
        locks: &Path,
        workspace: FileId,
        timeout: Duration,
        mut pause: impl FnMut(Duration),
    ) -> Result<Self, LockError> {
        DirBuilder::new().recursive(true).mode(0o700).create(locks)?;
        let mut file = open_lock_file(&locks.join(workspace.to_string()))?;
        let mut waited = Duration::ZERO;
        let mut next = FIRST_PAUSE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if waited < timeout => {
                    let now = next.min(timeout - waited);
                    pause(now);
                    waited += now;
                    next = (next * 2).min(LONGEST_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Busy { holder: holder(&mut file) });
                }
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
        }
        file.set_len(0)?;
        file.write_all(std::process::id().to_string().as_bytes())?;
        Ok(Self { _file: file, workspace })
    }

    /// The workspace it is for.
    pub fn workspace(&self) -> FileId {
        self.workspace
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: FileId = FileId { device: 1, inode: 2 };

    #[test]
    fn a_held_lock_is_busy_and_names_its_holder() {
        let home = tempfile::tempdir().unwrap();
        let locks = home.path().join("locks");
        let held = WorkspaceLock::acquire(&locks, WORKSPACE, Duration::ZERO).unwrap();
        let busy = WorkspaceLock::acquire(&locks, WORKSPACE, Duration::ZERO).unwrap_err();
        assert!(matches!(busy, LockError::Busy { holder: Some(pid) } if pid == std::process::id()));
        assert!(busy.to_string().contains(&std::process::id().to_string()));
        let other = FileId { device: 1, inode: 3 };
        assert!(WorkspaceLock::acquire(&locks, other, Duration::ZERO).is_ok());
        drop(held);
        assert!(WorkspaceLock::acquire(&locks, WORKSPACE, Duration::ZERO).is_ok());
    }

    #[test]
    fn waiting_backs_off_and_ends_at_the_timeout() {
        let home = tempfile::tempdir().unwrap();
        let _held = WorkspaceLock::acquire(home.path(), WORKSPACE, Duration::ZERO).unwrap();
        let mut pauses = Vec::new();
        let timeout = Duration::from_millis(200);
        let busy = WorkspaceLock::acquire_pausing(home.path(), WORKSPACE, timeout, |d| pauses.push(d));
        assert!(matches!(busy, Err(LockError::Busy { .. })));
        assert_eq!(pauses.iter().sum::<Duration>(), timeout);
        assert!(pauses.iter().all(|pause| *pause <= LONGEST_PAUSE));
    }

    #[test]
    fn a_lock_freed_while_waiting_is_had() {
        let home = tempfile::tempdir().unwrap();
        let mut held = Some(WorkspaceLock::acquire(home.path(), WORKSPACE, Duration::ZERO).unwrap());
        let timeout = Duration::from_secs(1);
        let lock = WorkspaceLock::acquire_pausing(home.path(), WORKSPACE, timeout, |_| drop(held.take()));
        assert_eq!(lock.unwrap().workspace(), WORKSPACE);
    }

    #[test]
    fn a_lock_held_on_a_file_of_the_workspace_delays_nothing() {
        let home = tempfile::tempdir().unwrap();
        let workspace = tempfile::tempdir().unwrap();
        let document = File::create(workspace.path().join("HANDOFF.md")).unwrap();
        document.lock().unwrap();
        let folder = File::open(workspace.path()).unwrap();
        folder.lock().unwrap();
        let never = |_| panic!("it waited");
        assert!(WorkspaceLock::acquire_pausing(home.path(), WORKSPACE, Duration::ZERO, never).is_ok());
    }
}
