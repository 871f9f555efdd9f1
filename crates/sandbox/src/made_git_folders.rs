//! Git folders that commands made and in which nothing runs by itself.
//!
//! They are not mounted read-only for the next command, which could not remove them otherwise: test suites make repositories
//! and tidy up. After each command they are looked at as new ones are.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use workspace::FileId;

use crate::git_folder::is_fresh;
use crate::level::Level;
use crate::protected_paths::ProtectedPaths;
use crate::walls::Walls;

/// Bytes of the record, at most.
const LONGEST: u64 = 16 << 20;

/// Record of them, one a workspace, in the home.
#[derive(Debug)]
pub(crate) struct MadeGitFolders {
    /// None where nothing is recorded.
    file: Option<PathBuf>,
    known: BTreeSet<String>,
}

impl MadeGitFolders {
    /// Reads the record of the first root that a command may write. Below level *full* nothing is mounted.
    pub(crate) fn open(level: Level, walls: &Walls) -> Self {
        let folder = walls.tracked_records.as_deref().filter(|_| level == Level::Full);
        let root = walls.writable_roots().next().and_then(|root| root.metadata().ok());
        let root = root.map(|metadata| FileId { device: metadata.dev(), inode: metadata.ino() });
        let file = folder.zip(root).map(|(folder, root)| folder.join(format!("made-{root}")));
        let known = file.as_deref().map(read).unwrap_or_default();
        Self { file, known }
    }

    /// What is to be protected of what was there before a command, by what was found.
    pub(crate) fn without_them(&self, found: &ProtectedPaths, before: &ProtectedPaths) -> ProtectedPaths {
        let made = found.git_folders.iter().filter(|folder| self.has(folder) && is_fresh(folder));
        before.without_git_folders(&made.cloned().collect())
    }

    /// Records those that a command made, and those that are still as they were.
    ///
    /// # Errors
    /// If it cannot be written: then they are protected as others are.
    pub(crate) fn keep(self, before: &ProtectedPaths, after: &ProtectedPaths) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let is_made = |folder: &&PathBuf| !before.git_folders.contains(*folder) || self.has(folder);
        let made = after.git_folders.iter().filter(is_made).filter(|folder| is_fresh(folder));
        let made: BTreeSet<String> = made.filter_map(|folder| identity(folder)).collect();
        if made == self.known {
            return Ok(());
        }
        let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Another command may have ended since this one began.
        let changing = workspace::open_lock_file(&folder.join("changing.lock"))?;
        changing.lock()?;
        let others = read(file).difference(&self.known).cloned().collect();
        let made: BTreeSet<String> = made.union(&others).cloned().collect();
        let text: String = made.iter().flat_map(|one| [one.as_str(), "\n"]).collect();
        workspace::replace_small_file(file, text.as_bytes())
    }

    fn has(&self, folder: &Path) -> bool {
        !self.known.is_empty() && identity(folder).is_some_and(|identity| self.known.contains(&identity))
    }
}

fn read(file: &Path) -> BTreeSet<String> {
    let bytes = workspace::read_small_file(file, LONGEST).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

/// Device, inode and time of birth of a folder; none where the file system does not know the time, as another folder may get the
/// inode.
fn identity(folder: &Path) -> Option<String> {
    let metadata = folder.symlink_metadata().ok().filter(fs::Metadata::is_dir)?;
    let born = metadata.created().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
    (born > 0).then(|| format!("{} {} {born}", metadata.dev(), metadata.ino()))
}
