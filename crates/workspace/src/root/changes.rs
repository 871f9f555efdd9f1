//! Making and moving names beneath a root.
//!
//! Nothing here replaces anything: a taken name is an error. Texts that exist already are changed
//! by [`Documents`](crate::Documents) alone.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, chmod, fstat, fsync, mkdirat, openat, readlinkat,
    renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{LinkPolicy, Root, RootAccess, path_of, reopen};
use crate::descriptor::descriptor_path;
use crate::error::{FileError, FileKind, FileProblem};
use crate::identity::FileId;
use crate::path::RelativePath;

impl Root {
    /// Makes a new, empty file for writing, with mode 0644 less the umask.
    ///
    /// # Errors
    /// [`FileProblem::Exists`] if anything has the name, a dangling link included.
    pub fn create_file(&self, path: &RelativePath) -> Result<File, FileError> {
        let create = || -> Result<File, FileProblem> {
            let (folder, name) = self.split(path)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(openat(folder, &name, flags, Mode::from_raw_mode(0o644))?.into())
        };
        create().map_err(|problem| self.failed(path, problem))
    }

    /// Makes a folder and those missing on the way to it. An existing folder is fine.
    ///
    /// # Errors
    /// If a file or link stands where a folder is needed.
    pub fn create_folder(&self, path: &RelativePath) -> Result<(), FileError> {
        self.create_folders(path, |parent, name| mkdirat(parent, name, Mode::from_raw_mode(0o755)))
    }

    /// [`Self::create_folder`], where new folders have these permission bits from the moment they have their names,
    /// whatever the umask is.
    ///
    /// # Errors
    /// As [`Root::create_folder`].
    pub fn create_folder_as(&self, path: &RelativePath, mode: u32) -> Result<(), FileError> {
        self.create_folders(path, |parent, name| mkdir_as(parent, name, Mode::from_raw_mode(mode)))
    }

    fn create_folders(
        &self,
        path: &RelativePath,
        make: impl Fn(BorrowedFd<'_>, &OsStr) -> Result<(), Errno>,
    ) -> Result<(), FileError> {
        let create = || -> Result<(), FileProblem> {
            self.require_writable()?;
            let mut so_far = RelativePath::root();
            for name in path.as_path() {
                let parent = self.folder(&so_far)?;
                match make(parent.as_fd(), name) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(other) => return Err(other.into()),
                }
                so_far = so_far.join(name)?;
            }
            self.folder(&so_far).map(drop)
        };
        create().map_err(|problem| self.failed(path, problem))
    }

    /// Removes a folder that holds nothing.
    ///
    /// # Errors
    /// It is not there, is no folder, or holds something.
    pub fn remove_folder(&self, path: &RelativePath) -> Result<(), FileError> {
        let remove = || -> Result<(), FileProblem> {
            let (folder, name) = self.split(path)?;
            Ok(unlinkat(folder, &name, AtFlags::REMOVEDIR)?)
        };
        remove().map_err(|problem| self.failed(path, problem))
    }

    /// Removes a pipe or socket, if it still is this one.
    ///
    /// # Errors
    /// [`FileProblem::NotRegular`]: another thing stands there, which stays.
    pub fn remove_special(&self, path: &RelativePath, expected: FileId) -> Result<(), FileError> {
        let remove = || -> Result<(), FileProblem> {
            let (folder, name) = self.split(path)?;
            let stat = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileKind::of(FileType::from_raw_mode(stat.st_mode)) {
                FileKind::Fifo | FileKind::Socket if FileId::of(&stat) == expected => {
                    Ok(unlinkat(folder, &name, AtFlags::empty())?)
                }
                other => Err(FileProblem::NotRegular(other)),
            }
        };
        remove().map_err(|problem| self.failed(path, problem))
    }

    /// Gives a plain file or a folder these permission bits.
    ///
    /// # Errors
    /// It is another thing, or the store's; as the way there says.
    pub fn set_mode(&self, path: &RelativePath, mode: u32) -> Result<(), FileError> {
        let set = || -> Result<(), FileProblem> {
            self.require_writable()?;
            let found = self.walk(path, LinkPolicy::Refuse, false)?;
            let stat = fstat(&found)?;
            match FileKind::of(FileType::from_raw_mode(stat.st_mode)) {
                FileKind::Regular | FileKind::Folder => {}
                FileKind::Symlink => return Err(FileProblem::Symlink),
                other => return Err(FileProblem::NotRegular(other)),
            }
            if self.guard().covers(FileId::of(&stat)) {
                return Err(FileProblem::StoreFile);
            }
            // No second lookup of the name: what was judged is what is changed.
            Ok(chmod(descriptor_path(found.as_fd()), Mode::from_raw_mode(mode))?)
        };
        set().map_err(|problem| self.failed(path, problem))
    }

    /// The path a symbolic link leads to, as it stands in the link.
    ///
    /// # Errors
    /// [`FileProblem::NotRegular`]: it is no link; as the way there says.
    pub fn link_target(&self, path: &RelativePath) -> Result<Vec<u8>, FileError> {
        let read = || -> Result<Vec<u8>, FileProblem> {
            let found = self.walk(path, LinkPolicy::Refuse, false)?;
            match FileKind::of(FileType::from_raw_mode(fstat(&found)?.st_mode)) {
                FileKind::Symlink => Ok(readlinkat(&found, "", Vec::new())?.into_bytes()),
                other => Err(FileProblem::NotRegular(other)),
            }
        };
        read().map_err(|problem| self.failed(path, problem))
    }

    /// Makes a symbolic link. Where it leads is not looked at: nothing here follows it out of the root.
    ///
    /// # Errors
    /// [`FileProblem::Exists`] if anything has the name.
    pub fn create_link(&self, path: &RelativePath, target: &[u8]) -> Result<(), FileError> {
        let create = || -> Result<(), FileProblem> {
            let (folder, name) = self.split(path)?;
            Ok(symlinkat(OsStr::from_bytes(target), folder, &name)?)
        };
        create().map_err(|problem| self.failed(path, problem))
    }

    /// Gives a file, a link or a folder with all it holds another name, in one step, and makes that durable. The new
    /// name may lie beneath another root of the same file system.
    ///
    /// # Errors
    /// [`FileProblem::Exists`] if the new name is taken, [`FileProblem::OtherDevice`] if it lies on another file
    /// system; the store's files are refused.
    pub fn rename(&self, from: &RelativePath, to_root: &Self, to: &RelativePath) -> Result<(), FileError> {
        let (old_folder, old_name) = self.split(from).map_err(|problem| self.failed(from, problem))?;
        let (new_folder, new_name) = to_root.split(to).map_err(|problem| to_root.failed(to, problem))?;
        let stat = statat(&old_folder, &old_name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.failed(from, errno))?;
        if self.guard().covers(FileId::of(&stat)) {
            return Err(self.failed(from, FileProblem::StoreFile));
        }
        renameat_with(&old_folder, &old_name, &new_folder, &new_name, RenameFlags::NOREPLACE).map_err(
            |errno| match errno {
                Errno::XDEV => to_root.failed(to, FileProblem::OtherDevice),
                other => to_root.failed(to, other),
            },
        )?;
        sync(&new_folder).map_err(|problem| to_root.failed(to, problem))?;
        sync(&old_folder).map_err(|problem| self.failed(from, problem))
    }

    /// The folder in which something is to change, and its name there, which must not be one of the store's.
    pub(crate) fn split(&self, path: &RelativePath) -> Result<(OwnedFd, OsString), FileProblem> {
        self.require_writable()?;
        let (parent, name) = path.split()?;
        let folder = self.folder(&parent)?;
        if self.guard().claims(folder.as_fd(), &name) {
            return Err(FileProblem::StoreFile);
        }
        // What holds a closed folder stays where it is, too.
        if !self.closed.is_empty() {
            let stands = path_of(&folder)?.join(&name);
            if self.closed.iter().any(|closed| closed.starts_with(&stands) || stands.starts_with(closed)) {
                return Err(FileProblem::Closed);
            }
        }
        Ok((folder, name))
    }
}

impl Root {
    pub(super) fn require_writable(&self) -> Result<(), FileProblem> {
        match self.access {
            RootAccess::ReadWrite => Ok(()),
            RootAccess::ReadOnly => Err(FileProblem::ReadOnlyRoot),
        }
    }
}

/// Brings the names in a folder to the device.
fn sync(folder: &OwnedFd) -> Result<(), FileProblem> {
    // An `O_PATH` descriptor cannot be synced.
    Ok(fsync(reopen(folder.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?)?)
}

/// Makes a folder on a thread that has a umask of its own: that of the process keeps everybody else out, and a process that
/// dies before it changed that would leave the folder so.
fn mkdir_as(parent: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> Result<(), Errno> {
    let make = || {
        #[cfg(target_os = "linux")]
        {
            use rustix::thread::{UnshareFlags, unshare_unsafe};
            #[allow(
                unsafe_code,
                reason = "rustix marks all of unshare unsafe for the sake of the flag FILES"
            )]
            // SAFETY: the flag is another one.
            let is_own = unsafe { unshare_unsafe(UnshareFlags::FS) }.is_ok();
            if is_own {
                rustix::process::umask(Mode::empty());
            }
        }
        mkdirat(parent, name, mode)
    };
    std::thread::scope(|scope| scope.spawn(make).join()).unwrap_or(Err(Errno::IO))
}
