//! Folder of a session: its `/tmp` below level *full*, where nothing in memory can be shown as such, and at that level what
//! commands write to package caches.
//!
//! It is locked by the process of the session; the lock ends with that process, also when it is killed. Whoever opens a
//! session in the same place removes folders that nobody holds.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};

const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PREFIX: &str = "session-";

#[derive(Debug)]
pub(crate) struct SessionFolder {
    path: PathBuf,
    _lock: File,
}

impl SessionFolder {
    /// Makes a folder in another one, and removes those of sessions that are over.
    pub(crate) fn make(place: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(place)?;
        Self::sweep(place);
        for attempt in 0..100 {
            let path = place.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            }
            // Another one may have swept it before it was locked.
            if let Ok(lock) = lock(&path)
                && path
                    .symlink_metadata()
                    .is_ok_and(|now| lock.metadata().is_ok_and(|held| held.ino() == now.ino()))
            {
                return Ok(Self { path: path.canonicalize()?, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes folders of sessions that are over.
    pub(crate) fn sweep(place: &Path) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) && lock(&entry.path()).is_ok() {
                remove(&entry.path());
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SessionFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a folder with all that commands left in it, also in folders that nobody may list: the kernel makes such ones for
/// an overlay. What stays is tried again with the next session.
fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    if let Ok(top) = openat(CWD, path, PLACE, Mode::empty()) {
        open_up(&top);
    }
    if let Err(error) = fs::remove_dir_all(path) {
        tracing::warn!(path = %path.display(), %error, "the folder of a session stays behind");
    }
}

/// Lets the owner list a folder and all in it. No link is followed.
fn open_up(folder: &OwnedFd) {
    // The descriptor is only a place, whose mode is changed by its name in /proc.
    let named = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let _ = fs::set_permissions(&named, Permissions::from_mode(0o700));
    for entry in fs::read_dir(&named).into_iter().flatten().flatten() {
        if let Ok(inner) = openat(folder, entry.file_name(), PLACE, Mode::empty()) {
            open_up(&inner);
        }
    }
}

fn lock(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_sessions_that_are_over_are_swept_and_others_stay() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("session-1-0/left")).unwrap();
        let one = SessionFolder::make(place.path()).unwrap();
        fs::write(one.path().join("file"), "x").unwrap();
        let two = SessionFolder::make(place.path()).unwrap();
        assert_ne!(one.path(), two.path());
        assert!(one.path().join("file").exists() && !place.path().join("session-1-0").exists());
        drop((one, two));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
