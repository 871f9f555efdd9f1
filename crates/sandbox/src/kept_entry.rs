//! A file, folder or link as it stood at some time, and how it is written again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat, symlinkat};

use crate::root_folders::{names_in, open_folder};
use crate::walls::Walls;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeptEntry {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Folder {
        entries: BTreeMap<OsString, KeptEntry>,
        mode: u32,
    },
    Link(PathBuf),
    /// A socket, pipe or device, of which there is nothing to keep; or what the command may write.
    Other,
}

/// Whether the command may write a path.
pub(crate) fn is_touched(path: &Path, walls: &Walls) -> bool {
    walls.touches.iter().any(|touched| touched == path)
}

impl KeptEntry {
    /// Reads what stands under a name in a folder. `path` is where that is; `room` are the bytes that may be read.
    ///
    /// # Errors
    /// If nothing stands there, it cannot be read, or there is no room for it.
    pub(crate) fn read(
        folder: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        walls: &Walls,
        room: &mut u64,
    ) -> io::Result<Self> {
        if is_touched(path, walls) {
            return Ok(Self::Other);
        }
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = stat.st_mode & 0o7777;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new())?;
                Ok(Self::Link(OsString::from_vec(target.into_bytes()).into()))
            }
            FileType::Directory => {
                let below = open_folder(folder, name)?;
                let mut entries = BTreeMap::new();
                for name in names_in(&below)? {
                    let kept = Self::read(below.as_fd(), &name, &path.join(&name), walls, room)?;
                    entries.insert(name, kept);
                }
                Ok(Self::Folder { entries, mode })
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = File::from(openat(folder, name, flags, Mode::empty())?);
                if !file.metadata()?.is_file() {
                    return Err(io::Error::other("it was replaced while it was read"));
                }
                let too_much = || io::Error::other("there is too much of it");
                let mut bytes = Vec::new();
                // One that grows meanwhile is not read for ever.
                let length = file.take(*room + 1).read_to_end(&mut bytes)?;
                *room = room.checked_sub(length as u64).ok_or_else(too_much)?;
                Ok(Self::File { bytes, mode })
            }
            _ => Ok(Self::Other),
        }
    }

    /// Makes it under a name that nothing has.
    ///
    /// # Errors
    /// If it cannot be made; what was made of it then stays.
    pub(crate) fn make(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        match self {
            Self::Other => {
                Err(io::Error::other("it was a socket, a pipe or a device, which is not made again"))
            }
            Self::Link(target) => Ok(symlinkat(target.as_os_str().as_bytes(), folder, name)?),
            Self::File { bytes, mode } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mut file = File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
                file.write_all(bytes)?;
                file.set_permissions(Permissions::from_mode(*mode))?;
                file.sync_all()
            }
            Self::Folder { entries, mode } => {
                mkdirat(folder, name, Mode::RWXU)?;
                let below = open_folder(folder, name)?;
                for (name, entry) in entries.iter().filter(|(_, entry)| **entry != Self::Other) {
                    entry.make(below.as_fd(), name)?;
                }
                File::from(below).set_permissions(Permissions::from_mode(*mode))
            }
        }
    }
}
