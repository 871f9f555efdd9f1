//! System calls of a replacement, behind a trait that tests implement.
//!
//! Whether no text is ever lost depends on the order of a dozen calls and on what a person's
//! editor does between any two of them. Tests stand in this trait: they save as a competing
//! writer before each call, make one fail, or take a feature of the file system away.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, Stat, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fsync,
    linkat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, try_close};
use rustix::process::{Gid, Uid};

use crate::error::FileProblem;
use crate::guard::StoreGuard;
use crate::root::{read_capped, reopen_regular};

/// The calls a replacement makes, one method each, in terms of names in one folder.
pub(super) trait Calls {
    /// `fstatat` without following a link.
    fn stat(&self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<Stat, Errno> {
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// An `O_PATH` descriptor of the name itself.
    fn find(&self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
        openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }

    /// Opens what was found and reads it whole.
    fn load(
        &self,
        found: &OwnedFd,
        guard: &StoreGuard,
        limit: u64,
    ) -> Result<(OwnedFd, Vec<u8>), FileProblem> {
        let file = reopen_regular(found, guard)?;
        let bytes = read_capped(File::from(file.try_clone()?), limit, 0)?;
        Ok((file, bytes))
    }

    /// Makes a file nobody else made.
    fn create(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(folder, name, flags, Mode::from_raw_mode(mode))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> Result<(), Errno> {
        file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Gives a new file the owner, mode and attributes of the one it will replace.
    fn dress(&self, file: BorrowedFd<'_>, like: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
        dress(file, like, stat)
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
        fchmod(file, Mode::from_raw_mode(mode))
    }

    /// `fsync` of a file or a folder.
    fn sync(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        fsync(file)
    }

    /// Closes, and says what `close` said.
    fn close(&self, file: OwnedFd) -> Result<(), Errno> {
        let raw = file.into_raw_fd();
        #[allow(unsafe_code, reason = "std and rustix offer no safe close that reports its error")]
        // SAFETY: `raw` was owned by `file`, which is gone; it is used nowhere else.
        unsafe {
            try_close(raw)
        }
    }

    /// `renameat2(RENAME_EXCHANGE)`: both names stay, what they stand for changes places.
    fn exchange(&self, folder: BorrowedFd<'_>, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
        renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE)
    }

    /// Gives a file a name that must be free.
    fn rename_to_free(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE)
    }

    /// Plain `renameat`, replacing.
    fn rename(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        renameat(folder, from, folder, to)
    }

    /// A second name, which must be free.
    fn link(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        linkat(folder, from, folder, to, AtFlags::empty())
    }

    fn unlink(&self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
        unlinkat(folder, name, AtFlags::empty())
    }
}

#[derive(Debug)]
pub(super) struct Kernel;

impl Calls for Kernel {}

/// Whether the answer means "this file system cannot do that", rather than "it failed".
pub(super) fn unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Owner before mode: changing the owner clears the set-id bits.
fn dress(file: BorrowedFd<'_>, like: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
    let now = rustix::fs::fstat(file)?;
    if (now.st_uid, now.st_gid) != (stat.st_uid, stat.st_gid) {
        fchown(file, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
    }
    copy_attributes(like.as_fd(), file)?;
    fchmod(file, Mode::from_raw_mode(stat.st_mode & 0o7777))
}

/// Attributes the owner may set are kept or the write fails; those of the system's security
/// modules are set by the system and kept where it lets us.
fn copy_attributes(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut names = vec![0_u8; 64 * 1024];
    let length = match flistxattr(from, names.as_mut_slice()) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
        Err(other) => return Err(other),
    };
    let mut value = vec![0_u8; 64 * 1024];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let ours = name.starts_with(b"user.") || name.starts_with(b"system.");
        let copied = fgetxattr(from, name, value.as_mut_slice())
            .and_then(|size| fsetxattr(to, name, &value[..size], rustix::fs::XattrFlags::empty()));
        match copied {
            Err(errno) if ours => return Err(errno),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
