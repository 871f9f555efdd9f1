//! Listing of a folder: sorted, bounded, and marked where it is incomplete.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, fstat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{LinkPolicy, Root, reopen};
use crate::error::{FileError, FileKind, FileProblem};
use crate::identity::FileId;
use crate::path::RelativePath;
use std::os::fd::{AsFd, OwnedFd};

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, as the file system has it; not always UTF-8.
    pub name: OsString,
    /// Kind of the entry; links are not followed.
    pub kind: FileKind,
    /// Inode that the folder gives for the name: on some stacked file systems not that of the file.
    pub(crate) inode: u64,
}

/// The entries of a folder, ordered by the bytes of their names so that two runs agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The entries, `.` and `..` left out.
    pub entries: Vec<DirEntry>,
    /// More entries exist than were asked for, or the folder failed in mid-scan: whoever decides
    /// "there is nothing here" must look at this.
    pub incomplete: bool,
}

/// What tells that a file was not touched: equal stamps mean equal content, but for a file that was changed within the
/// resolution of the clock of its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    pub id: FileId,
    /// Size in bytes.
    pub bytes: u64,
    pub mode: u32,
    /// Last change of content, in ns since 1970.
    pub modified: i64,
    /// Last change of content or metadata, in ns since 1970; no program can set it.
    pub changed: i64,
}

impl FileStamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        #[allow(clippy::useless_conversion, reason = "the width differs by architecture")]
        let nanoseconds = |seconds, rest| {
            let rest = i64::try_from(rest).unwrap_or(0);
            i64::from(seconds).saturating_mul(1_000_000_000).saturating_add(rest)
        };
        Self {
            id: FileId::of(stat),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & 0o7777,
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// Names of a folder with the stamps of those that are still there, and whether there are more.
pub type StampedListing = (Vec<(DirEntry, FileStamp)>, bool);

impl Root {
    /// Lists a folder as [`Self::list`] does, with a stamp of each entry.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_stamped(&self, path: &RelativePath, max: usize) -> Result<StampedListing, FileError> {
        let listing = self.list(path, max)?;
        let folder = self.folder(path).map_err(|problem| self.failed(path, problem))?;
        let mut entries = Vec::with_capacity(listing.entries.len());
        for mut entry in listing.entries {
            match statat(&folder, &entry.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    entry.kind = FileKind::of(FileType::from_raw_mode(stat.st_mode));
                    entries.push((entry, FileStamp::of(&stat)));
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(self.failed(path, error)),
            }
        }
        Ok((entries, listing.incomplete))
    }

    /// The stamp of one path; no link is followed.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub fn stamp(&self, path: &RelativePath) -> Result<(FileKind, FileStamp), FileError> {
        let stamp = || -> Result<_, FileProblem> {
            let stat = fstat(self.walk(path, LinkPolicy::Refuse, false)?)?;
            Ok((FileKind::of(FileType::from_raw_mode(stat.st_mode)), FileStamp::of(&stat)))
        };
        stamp().map_err(|problem| self.failed(path, problem))
    }

    /// Lists a folder, at most `max` entries. No link on the way to it is followed.
    ///
    /// # Errors
    /// If the folder cannot be reached or opened. A failure in the middle of the scan keeps what
    /// was read and sets [`Listing::incomplete`].
    pub fn list(&self, path: &RelativePath, max: usize) -> Result<Listing, FileError> {
        self.scan(path, max).map_err(|problem| self.failed(path, problem))
    }

    fn scan(&self, path: &RelativePath, max: usize) -> Result<Listing, FileProblem> {
        list_folder(&self.folder(path)?, max)
    }
}

/// Lists the folder that an `O_PATH` descriptor stands for.
pub(super) fn list_folder(folder: &OwnedFd, max: usize) -> Result<Listing, FileProblem> {
    let folder = reopen(folder.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut listing = Listing::default();
    for entry in Dir::read_from(&folder)? {
        let Ok(entry) = entry else {
            listing.incomplete = true;
            break;
        };
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if listing.entries.len() == max {
            listing.incomplete = true;
            break;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => FileType::Unknown,
            },
            known => known,
        };
        listing.entries.push(DirEntry {
            name: OsString::from_vec(name.to_vec()),
            kind: FileKind::of(kind),
            inode: entry.ino(),
        });
    }
    listing.entries.sort_unstable();
    Ok(listing)
}
