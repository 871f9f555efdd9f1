//! Errors of files: one enum, so that callers match instead of reading messages.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::path::PathProblem;

/// A refusal or failure, with the path it is about.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// The path below the workspace; of a further root the absolute one.
    pub path: PathBuf,
    #[source]
    pub problem: FileProblem,
}

impl FileError {
    pub(crate) fn new(path: impl AsRef<Path>, problem: impl Into<FileProblem>) -> Self {
        Self { path: path.as_ref().to_path_buf(), problem: problem.into() }
    }
}

/// Problem of a file or its path.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The path itself was refused before anything was opened.
    #[error(transparent)]
    Path(#[from] PathProblem),
    #[error("it does not exist")]
    NotFound,
    /// Something was to change in a root that is open for reading alone.
    #[error("this folder is open for reading only")]
    ReadOnlyRoot,
    /// A symbolic link led out of the root.
    #[error("it leads outside the allowed workspace")]
    Outside,
    /// A symbolic link where none is followed, a loop, or one of `/proc`'s links.
    #[error("it is reached through a symbolic link: name the file itself")]
    Symlink,
    /// A mount point lies on the way, and the rules ask for one device.
    #[error("it lies on another file system")]
    OtherDevice,
    /// A folder, FIFO, socket or device where a file is wanted.
    #[error("it is a {0}, not a regular file")]
    NotRegular(FileKind),
    /// A file where a folder is wanted, at the end of the path or on the way.
    #[error("it is not a folder")]
    NotAFolder,
    /// Another folder than the one that was written down.
    #[error("another folder stands there")]
    OtherFolder,
    /// More bytes than the rules allow; also a file that grew while it was read.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The file has further names, so its content may be somebody else's.
    #[error("it has {links} hard links: a file with one name is wanted")]
    HardLinked { links: u64 },
    /// One of the store's own files (spec: security §8).
    #[error("it belongs to the store, which alone may open it")]
    StoreFile,
    /// A folder that is closed to tools where their roots are lifted.
    #[error(
        "it lies in a folder that is closed to tools, or holds one: Drawloom's home, or the kernel's own"
    )]
    Closed,
    /// A file to be written in the home, outside its `workspace`.
    #[error("it lies in the home, of which only `workspace/` is written from outside")]
    InHome,
    #[error("it is not valid UTF-8 (byte {valid_up_to})")]
    NotUtf8 {
        /// Number of valid bytes from the start.
        valid_up_to: usize,
    },
    #[error("it exists already")]
    Exists,
    /// The operating system refuses this user.
    #[error("permission denied: check the owner and mode of the file and its folders")]
    PermissionDenied,
    /// Anything else the system reported.
    #[error(transparent)]
    Io(io::Error),
}

impl From<Errno> for FileProblem {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::LOOP => Self::Symlink,
            Errno::XDEV => Self::Outside,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::EXIST => Self::Exists,
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied,
            Errno::NAMETOOLONG => Self::Path(PathProblem::TooLong),
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Io(error),
        }
    }
}

/// The kind stays, so that callers of `std::io` see what they expect.
impl From<FileProblem> for io::Error {
    fn from(problem: FileProblem) -> Self {
        let kind = match problem {
            FileProblem::Io(error) => return error,
            FileProblem::NotFound => io::ErrorKind::NotFound,
            FileProblem::PermissionDenied => io::ErrorKind::PermissionDenied,
            FileProblem::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            FileProblem::NotAFolder => io::ErrorKind::NotADirectory,
            _ => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, problem)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    Regular,
    Folder,
    /// A symbolic link, not followed.
    Symlink,
    Fifo,
    Socket,
    /// A block or character device.
    Device,
    /// Something the file system did not name.
    Unknown,
}

impl FileKind {
    pub(crate) fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::Regular,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::BlockDevice | FileType::CharacterDevice => Self::Device,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Regular => "regular file",
            Self::Folder => "folder",
            Self::Symlink => "symbolic link",
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Unknown => "file of unknown kind",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CI runs as root, whom no mode stops: the mapping is what can be tested everywhere.
    #[test]
    fn a_permission_error_is_named() {
        assert!(matches!(FileProblem::from(Errno::ACCESS), FileProblem::PermissionDenied));
        let denied = io::Error::from_raw_os_error(Errno::ACCESS.raw_os_error());
        assert!(matches!(FileProblem::from(denied), FileProblem::PermissionDenied));
    }
}
