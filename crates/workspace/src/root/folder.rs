//! Many files of one folder, read with the fewest calls that keep the rules of reading one.
//!
//! A folder is found beneath the root once, without a link on the way, and each file then by its plain name in the
//! descriptor of the folder. As everywhere, the name becomes an `O_PATH` descriptor, that is judged, and the very same
//! file is opened for reading.
//!
//! The store's files are looked at once a folder, *after* its names were listed: a file that was among the names and
//! still is the same file was there at that look, so it is none that SQLite made since. Any other file, one that
//! took the place of the listed one, is compared with the store's files as they are at that moment; so is one that
//! changed shortly before the look or later, as every file does that is made or given a further name, lest a new file
//! has the inode of one that was listed. The names that SQLite uses are refused in the store's folder whatever they
//! name.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::path::DecInt;

use super::beneath::WalkRules;
use super::listing::list_folder;
use super::{LinkPolicy, Listing, Resolver, Root, require_regular};
use crate::descriptor::open_descriptors;
use crate::error::{FileError, FileProblem};
use crate::guard::{StoreFiles, StoreGuard};
use crate::identity::FileId;
use crate::path::RelativePath;

/// A folder beneath a root, held by descriptor, and the names in it.
#[derive(Debug)]
pub struct OpenFolder {
    path: RelativePath,
    /// Path of the folder as it is shown.
    shown: PathBuf,
    folder: OwnedFd,
    id: FileId,
    listing: Listing,
    resolver: Resolver,
    guard: StoreGuard,
    /// As they were after the names were listed.
    store: StoreFiles,
    /// When that was, in seconds since 1970.
    looked: i64,
    /// Names of this folder that are the store's.
    store_names: Vec<OsString>,
}

impl Root {
    /// Opens a folder and lists it, as [`list`](Self::list) does, so that its files can be read.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn open_folder(&self, path: &RelativePath, max: usize) -> Result<OpenFolder, FileError> {
        let open = || -> Result<OpenFolder, FileProblem> {
            let folder = self.folder(path)?;
            let id = FileId::of(&fstat(&folder)?);
            let listing = list_folder(&folder, max)?;
            let store_names = self.guard.names_in(folder.as_fd());
            let looked = seconds_since_1970();
            let (store, guard, resolver) = (self.guard.look(), self.guard.clone(), self.resolver);
            Ok(OpenFolder {
                path: path.clone(),
                shown: self.shown(path),
                folder,
                id,
                listing,
                resolver,
                guard,
                store,
                looked,
                store_names,
            })
        };
        open().map_err(|problem| self.failed(path, problem))
    }
}

impl OpenFolder {
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    pub fn path(&self) -> &RelativePath {
        &self.path
    }

    /// Opens for reading the entry at a place of the listing. Returns its size in bytes as well.
    fn open(
        &self,
        at: usize,
        max_bytes: u64,
        descriptors: BorrowedFd<'_>,
    ) -> Result<(OwnedFd, u64), FileProblem> {
        let entry = self.listing.entries.get(at).ok_or(FileProblem::NotFound)?;
        let name = RelativePath::root().join(&entry.name)?;
        let rules = WalkRules { links: LinkPolicy::Refuse, one_device: false, whole_system: false };
        let found = self.resolver.walk(self.folder.as_fd(), &name, rules)?;
        let stat = fstat(&found)?;
        require_regular(&stat)?;
        let id = FileId::of(&stat);
        let is_listed = id == FileId { inode: entry.inode, ..self.id };
        let is_the_stores = self.store.covers(id) || self.store_names.contains(&entry.name);
        let is_older = stat.st_ctime.saturating_add(CLOCKS) < self.looked;
        if is_the_stores || (!(is_listed && is_older) && self.guard.covers(id)) {
            return Err(FileProblem::StoreFile);
        }
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        if bytes > max_bytes {
            return Err(FileProblem::TooLarge { limit: max_bytes });
        }
        // As `reopen` does, from a descriptor of the folder of descriptors.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok((openat(descriptors, DecInt::from_fd(&found), flags, Mode::empty())?, bytes))
    }
}

/// Reads files one after the other into one buffer. It is for one thread, and not for a process that was forked with it.
#[derive(Debug)]
pub struct FileReader {
    /// Folder of this process's descriptors: the way there is gone once.
    descriptors: OwnedFd,
    buffer: Vec<u8>,
}

impl FileReader {
    /// # Errors
    /// [`FileProblem::Io`] without a folder of descriptors.
    pub fn new() -> Result<Self, FileProblem> {
        let descriptors = open_descriptors().map_err(|errno| match errno {
            Errno::NOENT => super::no_proc(),
            other => other.into(),
        })?;
        Ok(Self { descriptors, buffer: Vec::new() })
    }

    /// The bytes of a file: the entry at a place of the folder's listing.
    ///
    /// # Errors
    /// As [`Root::read`] with rules that follow no links.
    pub fn read(&mut self, folder: &OpenFolder, at: usize, max_bytes: u64) -> Result<&[u8], FileError> {
        let opened = folder.open(at, max_bytes, self.descriptors.as_fd());
        let length = opened.and_then(|(file, bytes)| self.fill(&file, bytes, max_bytes));
        length.map(|length| &self.buffer[..length]).map_err(|problem| {
            let name = folder.listing.entries.get(at).map(|entry| entry.name.as_os_str());
            FileError::new(folder.shown.join(name.unwrap_or_default()), problem)
        })
    }

    /// Reads a file whose size is known, unless it changes meanwhile. Returns how many bytes there are.
    fn fill(&mut self, file: &OwnedFd, bytes: u64, max_bytes: u64) -> Result<usize, FileProblem> {
        let too_large = FileProblem::TooLarge { limit: max_bytes };
        let (Ok(bytes), Ok(max)) = (usize::try_from(bytes), usize::try_from(max_bytes)) else {
            return Err(too_large);
        };
        let mut length = 0;
        loop {
            // One byte more than there should be tells that there are no more.
            let wanted = bytes.max(length).saturating_add(1).max(MIN_BUFFER);
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted.next_power_of_two(), 0);
            }
            let room = &mut self.buffer[length..];
            let asked = room.len();
            let got = retry_on_intr(|| read(file, &mut *room))?;
            length += got;
            if length > max {
                return Err(too_large);
            }
            // A file of no size may be one that the kernel writes while it is read.
            if got == 0 || (length == bytes && got < asked && bytes > 0) {
                return Ok(length);
            }
        }
    }
}

/// Seconds by which the clock of a file system may be behind.
const CLOCKS: i64 = 2;

/// Bytes that are asked for at least.
const MIN_BUFFER: usize = 16 << 10;

/// 0 of a clock that cannot be right: then every file counts as new.
fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(0)
}
