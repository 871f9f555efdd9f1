//! Listing of a folder: sorted, bounded, and marked where it is incomplete.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};

use super::{Root, reopen};
use crate::error::{FileError, FileKind, FileProblem};
use crate::path::RelativePath;
use std::os::fd::AsFd;

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, as the file system has it; not always UTF-8.
    pub name: OsString,
    /// Kind of the entry; links are not followed.
    pub kind: FileKind,
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

impl Root {
    /// Lists a folder, at most `max` entries. No link on the way to it is followed.
    ///
    /// # Errors
    /// If the folder cannot be reached or opened. A failure in the middle of the scan keeps what
    /// was read and sets [`Listing::incomplete`].
    pub fn list(&self, path: &RelativePath, max: usize) -> Result<Listing, FileError> {
        self.scan(path, max).map_err(|problem| FileError::new(path, problem))
    }

    fn scan(&self, path: &RelativePath, max: usize) -> Result<Listing, FileProblem> {
        let folder = reopen(self.folder(path)?.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
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
            listing
                .entries
                .push(DirEntry { name: OsString::from_vec(name.to_vec()), kind: FileKind::of(kind) });
        }
        listing.entries.sort();
        Ok(listing)
    }
}
