//! Folder of a session below level *full*, where nothing in memory can be shown as `/tmp`.
//!
//! It is locked by the process of the session; the lock ends with that process, also when it is killed. Whoever opens a
//! session in the same place removes folders that nobody holds.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

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
        for entry in fs::read_dir(place)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) && lock(&entry.path()).is_ok() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SessionFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
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
