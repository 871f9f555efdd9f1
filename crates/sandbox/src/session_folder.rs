//! Folder of a session: its `/tmp` below level *full*, where nothing in memory can be shown as such, and at that level what
//! commands write to package caches.
//!
//! It is locked by the process of the session; the lock ends with that process, also when it is killed. Whoever opens a
//! session in the same place removes folders that nobody holds.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};
use rustix::io::Errno;

const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PREFIX: &str = "session-";
/// Names that are read of a folder at a time.
const BATCH: usize = 4096;

#[derive(Debug)]
pub struct SessionFolder {
    path: PathBuf,
    _lock: File,
}

impl SessionFolder {
    /// Makes a folder in another one, and removes those of sessions that are over.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(place: &Path) -> io::Result<Self> {
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

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SessionFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a folder with all that programs left in it, also in folders that nobody may list: the kernel makes such ones for
/// an overlay. No link is followed.
///
/// # Errors
/// It is no folder, or something stays.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let top = folder_at(CWD, path.as_os_str())?.ok_or(io::ErrorKind::NotADirectory)?;
    empty(&top)?;
    fs::remove_dir(path)
}

/// Removes the folder of a session. What stays is tried again with the next one.
fn remove(path: &Path) {
    if let Err(error) = remove_folder(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "the folder of a session stays behind");
    }
}

/// Empties a folder, however deep it is: folders that lie deeper are moved up into it first. A command may have made so many
/// levels that neither the stack nor the descriptors of a process last for them.
fn empty(top: &OwnedFd) -> io::Result<()> {
    let mut moved = 0_u64;
    while let names @ [_, ..] = names_in(top)?.as_slice() {
        for name in names {
            let Some(folder) = folder_at(top, name)? else {
                unlinkat(top, name, AtFlags::empty())?;
                continue;
            };
            while let names @ [_, ..] = names_in(&folder)?.as_slice() {
                for name in names {
                    match folder_at(&folder, name)? {
                        Some(_) => move_up(&folder, name, top, &mut moved)?,
                        None => unlinkat(&folder, name, AtFlags::empty())?,
                    }
                }
            }
            unlinkat(top, name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(())
}

/// Moves a folder up to a name that is free, or that of an empty folder.
fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match renameat(from, name, top, format!("moved-{moved}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            other => return Ok(other?),
        }
    }
}

/// Opens a folder, which its owner may list and write then; none where there is something else, a link too.
fn folder_at(above: impl AsFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    let folder = match openat(above, name, PLACE, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        folder => folder?,
    };
    // The descriptor is only a place, whose mode is changed by its name in /proc.
    fs::set_permissions(named(&folder), Permissions::from_mode(0o700))?;
    Ok(Some(folder))
}

/// Some of the names in a folder; none if it is empty.
fn names_in(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    fs::read_dir(named(folder))?.take(BATCH).map(|entry| Ok(entry?.file_name())).collect()
}

fn named(folder: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", folder.as_raw_fd())
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

    #[test]
    fn what_a_command_nested_deeper_than_a_stack_lasts_is_removed() {
        const LEVELS: usize = 2_000;
        let place = tempfile::tempdir().unwrap();
        let session = SessionFolder::make(place.path()).unwrap();
        fs::write(session.path().join("moved-1"), "x").unwrap();
        fs::create_dir_all(session.path().join("moved-2/full")).unwrap();
        std::os::unix::fs::symlink("/", session.path().join("link")).unwrap();
        let mut folder = folder_at(CWD, session.path().as_os_str()).unwrap().unwrap();
        for level in 0..LEVELS {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            let inner = folder_at(&folder, OsStr::new("d")).unwrap().unwrap();
            // One that nobody may list.
            if level == LEVELS / 2 {
                fs::set_permissions(named(&folder), Permissions::from_mode(0o000)).unwrap();
            }
            folder = inner;
        }
        let remove = std::thread::Builder::new().stack_size(64 << 10).spawn(move || drop(session));
        remove.unwrap().join().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
