//! Folders that a command may write, held by descriptor.
//!
//! What is put back or moved after a command is named by a path below one of these, and whoever else writes there (another
//! command of the session, at level *partial* what the command left) may put a link in place of any folder on the way. No
//! step follows one: a path is walked from its top by the kernel, which refuses to leave it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, accessat, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;
use workspace::{FileId, descriptor_path};

use crate::quarantine::Quarantine;
use crate::walls::Walls;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Writable roots and git folders of some walls, opened before the command begins.
#[derive(Debug)]
pub(crate) struct RootFolders {
    tops: Vec<(PathBuf, OwnedFd)>,
    /// Modes that they have, by number; none where it is not known.
    modes: Vec<Option<u32>>,
}

/// A folder below one of these, and the mode it had.
#[derive(Debug)]
pub(crate) struct FolderMode {
    path: PathBuf,
    id: FileId,
    mode: u32,
}

/// Gives a folder a mode back by which its owner had a right that is lost. Returns the mode it had; none where nothing was lost.
fn give_mode_back(place: impl AsFd, mode: u32) -> Option<u32> {
    let owners = mode & 0o700;
    let closed = mode_of(&place).ok().filter(|now| now & owners != owners)?;
    set_mode(&place, mode).ok().map(|()| closed)
}

impl RootFolders {
    pub(crate) fn open(walls: &Walls) -> Self {
        let tops = walls.writable_roots().chain(walls.git_folders.iter().map(PathBuf::as_path));
        let opened =
            tops.filter_map(|top| Some((top.to_owned(), openat(CWD, top, PLACE, Mode::empty()).ok()?)));
        let tops: Vec<_> = opened.collect();
        let modes = tops.iter().map(|(_, place)| mode_of(place).ok()).collect();
        Self { tops, modes }
    }

    /// Folders below these with their modes, as far as they can be looked at.
    pub(crate) fn modes_of<'p>(&self, folders: impl Iterator<Item = &'p PathBuf>) -> Vec<FolderMode> {
        let modes = folders.filter_map(|path| {
            let (folder, name) = self.parent_of(path).ok()?;
            let (_, id) = kind_and_identity(&folder, name).ok()?;
            let mode = mode_of(place_of(&folder, name).ok()?).ok()?;
            Some(FolderMode { path: path.clone(), id, mode })
        });
        modes.collect()
    }

    /// Gives roots and folders `below` them their modes back whose owner lost a right to them: nobody works there then.
    /// Returns them with what they had.
    pub(crate) fn give_modes_back<'m>(&'m self, below: &'m [FolderMode]) -> Vec<(&'m Path, u32)> {
        let tops = self
            .tops
            .iter()
            .zip(&self.modes)
            .filter_map(|((top, place), mode)| Some((top.as_path(), give_mode_back(place, (*mode)?)?)));
        let mut given_back: Vec<_> = tops.collect();
        given_back.extend(below.iter().filter_map(|known| {
            let (folder, name) = self.parent_of(&known.path).ok()?;
            kind_and_identity(&folder, name).ok().filter(|(_, id)| *id == known.id)?;
            let place = place_of(&folder, name).ok()?;
            Some((known.path.as_path(), give_mode_back(place, known.mode)?))
        }));
        given_back
    }

    /// Folder above a path, and the path's name in it. Folders of this user that it may not enter are opened up.
    ///
    /// # Errors
    /// If the path lies below no top, or leads through a link.
    pub(crate) fn parent_of<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let (top, below, name) = self.parted(path)?;
        let mut here = entered(top.try_clone()?)?;
        for component in below.components() {
            let Component::Normal(folder) = component else { return Err(io::ErrorKind::InvalidInput.into()) };
            here = entered(openat(&here, folder, PLACE, Mode::empty())?)?;
        }
        Ok((here, name))
    }

    /// Folder above a path, made again where it is gone. What stands in place of a folder goes to quarantine.
    ///
    /// # Errors
    /// If the path lies below no top, or a folder cannot be made.
    pub(crate) fn made_parent_of<'a>(
        &self,
        path: &'a Path,
        quarantine: &mut Quarantine,
    ) -> io::Result<(OwnedFd, &'a OsStr)> {
        let (top, below, name) = self.parted(path)?;
        let mut here = entered(top.try_clone()?)?;
        let mut so_far = path.components().count() - 1 - below.components().count();
        for component in below.components() {
            let Component::Normal(folder) = component else { return Err(io::ErrorKind::InvalidInput.into()) };
            so_far += 1;
            here = entered(match openat(&here, folder, PLACE, Mode::empty()) {
                Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {
                    if error != Errno::NOENT {
                        let whole: PathBuf = path.components().take(so_far).collect();
                        quarantine.take(&here, folder, &whole)?;
                    }
                    mkdirat(&here, folder, Mode::from_raw_mode(0o755))?;
                    openat(&here, folder, PLACE, Mode::empty())?
                }
                other => other?,
            })?;
        }
        Ok((here, name))
    }

    /// The innermost top above a path, the way between the two, and the name.
    fn parted<'a>(&self, path: &'a Path) -> io::Result<(&OwnedFd, &'a Path, &'a OsStr)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let tops = self.tops.iter().filter(|(top, _)| parent.starts_with(top));
        let (top, folder) = tops.max_by_key(|(top, _)| top.as_os_str().len()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "it lies below no folder that the command may write")
        })?;
        Ok((folder, parent.strip_prefix(top).unwrap_or(Path::new("")), name))
    }
}

/// A folder that may be entered.
fn entered(folder: OwnedFd) -> io::Result<OwnedFd> {
    if accessat(&folder, ".", Access::EXEC_OK, AtFlags::empty()).is_err() {
        give_rights(&folder, 0o100)?;
    }
    Ok(folder)
}

/// Gives the owner of a file or folder rights to it, by a descriptor that may be its place alone, and tells its mode before.
///
/// # Errors
/// If it is another user's, or a link.
pub(crate) fn give_rights(place: impl AsFd, rights: u32) -> io::Result<u32> {
    let mode = mode_of(&place)?;
    if mode & rights != rights {
        set_mode(&place, mode | rights)?;
    }
    Ok(mode)
}

fn mode_of(place: impl AsFd) -> io::Result<u32> {
    Ok(fstat(place)?.st_mode & 0o7777)
}

/// Sets the mode of a file or folder, as [`give_rights`].
pub(crate) fn set_mode(place: impl AsFd, mode: u32) -> io::Result<()> {
    fs::set_permissions(descriptor_path(&place), Permissions::from_mode(mode))
}

/// Place of what stands under a name, a link itself included.
pub(crate) fn place_of(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

/// Writes in a folder. Where its mode forbids that to its owner, it is written in all the same and keeps the mode.
pub(crate) fn write_in<T>(folder: impl AsFd, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    match write() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let Ok(mode) = give_rights(&folder, 0o300) else { return Err(error) };
            let written = write();
            let _ = set_mode(&folder, mode);
            written
        }
        other => other,
    }
}

/// Opens a folder to list it; a link is none.
pub(crate) fn open_folder(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, FOLDER, Mode::empty())?)
}

/// Names in a folder that was opened to list it.
pub(crate) fn names_in(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Kind and identity of what stands under a name, a link itself included.
pub(crate) fn kind_and_identity(folder: impl AsFd, name: &OsStr) -> io::Result<(FileType, FileId)> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((FileType::from_raw_mode(stat.st_mode), FileId { device: stat.st_dev, inode: stat.st_ino }))
}

/// Name that nobody has in any folder: of this process, counted.
pub(crate) fn unused_name() -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(".drawloom-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)).into()
}
