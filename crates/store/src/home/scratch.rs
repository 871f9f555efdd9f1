//! Private folders outside a home, for what has to be written while a home is read that cannot be written.
//!
//! A folder is its owner's alone (0700), and the process that made it holds a lock on it for as long as it is used.
//! One without a lock was left by a process that was killed: the next one removes it.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use text::bytes::size;

use crate::disk;

/// Beginning of the name of a private folder; 16 hexadecimal digits follow.
const BEGINNING: &str = "drawloom-reading-";

/// How often a name is tried that a sweeper may take for a leftover.
const ATTEMPTS: usize = 8;

/// Error of a private copy for which no temporary folder has room.
#[derive(Debug, thiserror::Error)]
#[error(
    "it can be read only through a copy, which needs {} ({needed} bytes) in a temporary folder: {} has not as much",
    size(*needed),
    tried.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" or ")
)]
pub struct NoRoom {
    /// In bytes.
    pub needed: u64,
    pub tried: Vec<PathBuf>,
}

/// Private folders of a process, made when they are needed and removed with the value.
#[derive(Debug, Default)]
pub struct Scratch {
    folders: Mutex<Vec<PrivateFolder>>,
}

impl Scratch {
    /// A private folder with room for `bytes`.
    ///
    /// # Errors
    /// [`NoRoom`], also where no folder can be made.
    pub fn with_room(&self, bytes: u64) -> Result<PathBuf, NoRoom> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = folders.iter().find(|made| has_room(&made.path, bytes)) {
            return Ok(made.path.clone());
        }
        Self::sweep();
        let made = Self::places().into_iter().filter(|place| has_room(place, bytes)).find_map(|place| {
            PrivateFolder::make(&place)
                .inspect_err(|error| tracing::debug!(place = %place.display(), %error, "no private folder"))
                .ok()
        });
        let made = made.ok_or_else(|| NoRoom { needed: bytes, tried: Self::places() })?;
        let path = made.path.clone();
        folders.push(made);
        Ok(path)
    }

    /// Where private folders are made: the first that has the room.
    pub(crate) fn places() -> Vec<PathBuf> {
        let mut places = vec![std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/dev/shm")];
        places.dedup();
        places
    }

    /// Removes what processes left that were killed. What fails is tried again next time.
    pub fn sweep() {
        for place in Self::places() {
            let Ok(entries) = place.read_dir() else { continue };
            for entry in entries.flatten() {
                let digits =
                    entry.file_name().to_str().and_then(|name| name.strip_prefix(BEGINNING)).map(str::len);
                if digits == Some(16)
                    && let Err(error) = remove_if_left(&entry.path())
                {
                    tracing::debug!(path = %entry.path().display(), %error, "a leftover is not removed");
                }
            }
        }
    }
}

pub(super) fn has_room(folder: &Path, bytes: u64) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) > bytes)
}

#[derive(Debug)]
struct PrivateFolder {
    path: PathBuf,
    /// The folder itself, locked.
    _lock: File,
}

impl PrivateFolder {
    fn make(place: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let mut random = [0; 8];
            disk::random(&mut random)?;
            let path = place.join(format!("{BEGINNING}{:016x}", u64::from_ne_bytes(random)));
            DirBuilder::new().mode(0o700).create(&path)?;
            // Until it is locked, a sweeper may take it for a leftover.
            if let Ok(folder) = disk::open_dir(&path).map(File::from)
                && folder.try_lock().is_ok()
                && is_at(&folder, &path)
            {
                return Ok(Self { path, _lock: folder });
            }
        }
        Err(io::Error::other("another process keeps removing our temporary folder"))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a private folder could not be removed");
        }
    }
}

fn is_at(folder: &File, path: &Path) -> bool {
    match (folder.metadata(), path.symlink_metadata()) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Removes a private folder of ours that nobody has locked.
fn remove_if_left(path: &Path) -> io::Result<()> {
    let folder = File::from(disk::open_dir(path)?);
    let is_ours = folder.metadata()?.uid() == rustix::process::geteuid().as_raw();
    if is_ours && folder.try_lock().is_ok() && is_at(&folder, path) {
        std::fs::remove_dir_all(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_private_folder_goes_with_its_process_and_one_in_use_stays() {
        let place = tempfile::tempdir().unwrap();
        let kept = PrivateFolder::make(place.path()).unwrap();
        std::fs::write(kept.path.join("loom.db"), "text").unwrap();
        assert_eq!(kept.path.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        remove_if_left(&kept.path).unwrap();
        assert!(kept.path.join("loom.db").exists(), "it is in use");
        let left = PrivateFolder::make(place.path()).unwrap();
        let path = left.path.clone();
        let PrivateFolder { _lock: lock, .. } = &left;
        lock.unlock().unwrap();
        remove_if_left(&path).unwrap();
        assert!(!path.exists(), "nobody has it locked");
        drop((left, kept));
        assert_eq!(place.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_link_of_that_name_leads_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let (target, link) = (place.path().join("mine"), place.path().join(format!("{BEGINNING}{:016x}", 1)));
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(remove_if_left(&link).is_err());
        assert!(target.exists() && link.is_symlink());
    }

    #[test]
    fn what_is_missing_is_said_in_bytes() {
        let error = Scratch::default().with_room(u64::MAX - 1).unwrap_err();
        assert!(error.to_string().contains("18446744073709551614 bytes"), "{error}");
    }
}
