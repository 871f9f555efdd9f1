//! Locating a document: its folder, its name and its current text.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use loom::Digest;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::{DocumentText, Documents, Failure};
use crate::error::{FileError, FileProblem};
use crate::path::RelativePath;
use crate::root::LinkPolicy;

/// Longest text in bytes that is taken for a document.
const MAX_DOCUMENT: u64 = 64 * 1024 * 1024;

/// The folder a document lies in, and its names.
#[derive(Debug)]
pub(super) struct Location {
    folder: OwnedFd,
    pub(super) name: OsString,
    /// The folder's path, for reports.
    pub(super) parent: RelativePath,
}

impl Location {
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// What stands at a name.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) text: DocumentText,
    pub(super) file: OwnedFd,
    pub(super) stat: Stat,
}

impl Documents<'_> {
    /// Reads a document; `None` if there is none. A link inside the root is followed once.
    ///
    /// # Errors
    /// Refusals of the path and the file, as for replacing it.
    pub fn read(&self, path: &RelativePath) -> Result<Option<DocumentText>, FileError> {
        let read = || -> Result<Option<DocumentText>, FileProblem> {
            let spot = self.locate(path)?;
            Ok(self.current(&spot, &spot.name)?.map(|current| current.text))
        };
        read().map_err(|problem| FileError { path: path.as_path().to_path_buf(), problem })
    }

    /// Finds the folder and the name to write to. No folder on the way may be a link; the document
    /// itself may be one where they are followed: once, to a plain file inside the root.
    pub(super) fn locate(&self, path: &RelativePath) -> Result<Location, FileProblem> {
        let spot = self.spot(path)?;
        match self.calls.stat(spot.folder(), &spot.name) {
            Ok(stat) if is_link(&stat) && self.links == LinkPolicy::Refuse => {
                return Err(FileProblem::Symlink);
            }
            Ok(stat) if is_link(&stat) => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(spot),
            Err(other) => return Err(other.into()),
        }
        let target = readlinkat(spot.folder(), &spot.name, Vec::new())?.into_bytes();
        let target = PathBuf::from(OsString::from_vec(target));
        let target = if target.is_absolute() {
            self.root.relative(&target)?
        } else {
            RelativePath::from_components(&spot.parent.as_path().join(&target))?
        };
        let spot = self.spot(&target)?;
        match self.calls.stat(spot.folder(), &spot.name) {
            Ok(stat) if is_link(&stat) => Err(FileProblem::Symlink),
            Ok(_) => Ok(spot),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn spot(&self, path: &RelativePath) -> Result<Location, FileProblem> {
        let (folder, name) = self.root.split(path)?;
        let (parent, _) = path.split()?;
        // An `O_PATH` descriptor cannot be synced.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&folder, Path::new("."), flags, Mode::empty())?;
        Ok(Location { folder, name, parent })
    }

    /// Content of a file beside the document: a plain file that is none of the store's.
    pub(super) fn current(&self, spot: &Location, name: &OsStr) -> Result<Option<Current>, FileProblem> {
        let found = match self.calls.find(spot.folder(), name) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let stat = fstat(&found)?;
        let (file, bytes) = self.calls.load(&found, self.root.guard(), MAX_DOCUMENT)?;
        let digest = Digest::of(&bytes);
        Ok(Some(Current { text: DocumentText { bytes, digest }, file, stat }))
    }

    /// The hash of what stands at a name, or nothing where that cannot be told.
    pub(super) fn digest_at(&self, spot: &Location, name: &OsStr) -> Option<Digest> {
        self.current(spot, name).ok().flatten().map(|current| current.text.digest)
    }
}

impl Current {
    /// A further name would go on showing the old text, and may be somebody else's file.
    pub(super) fn refuse_further_names(&self, most: u64) -> Result<(), Failure> {
        #[allow(clippy::useless_conversion, reason = "the width differs by architecture")]
        let links = u64::from(self.stat.st_nlink);
        if links > most { Err(FileProblem::HardLinked { links }.into()) } else { Ok(()) }
    }
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}
