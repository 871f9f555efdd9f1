//! Keeps every opener in this process off the store's files (spec: security §8).
//!
//! SQLite's locks are POSIX locks: closing *any* descriptor of a database file drops all locks the
//! process holds on it, and an acknowledged row can then be lost without a trace. So a file is
//! first taken as an `O_PATH` descriptor (closing that drops nothing), compared with the store's
//! files, and only opened if it is none of them.
//!
//! `-wal` and `-shm` come and go with new inodes, so the guard keeps the folder and the names and
//! looks their inodes up at each check: four `fstatat` calls, no open. The database itself is also
//! held as an `O_PATH` descriptor, so it stays known after a rename.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use crate::identity::FileId;

/// Suffixes of the files SQLite puts beside a database.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// The files that only the store may open. Clones share one registry; a process has one, handed
/// to every [`Root`](crate::Root).
#[derive(Clone, Debug, Default)]
pub struct StoreGuard {
    databases: Arc<RwLock<Vec<Database>>>,
}

#[derive(Debug)]
struct Database {
    folder: OwnedFd,
    names: Vec<OsString>,
    /// Absent if the store had not made its file yet.
    file: Option<OwnedFd>,
}

impl StoreGuard {
    /// A guard that knows no store yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A guard of one database, which need not exist; nor need its folder, and then there is nothing to guard.
    ///
    /// # Errors
    /// As [`protect`](Self::protect).
    pub fn of(database: &Path) -> io::Result<Self> {
        let guard = Self::new();
        match guard.protect(database) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(guard),
            done => done.map(|()| guard),
        }
    }

    /// Puts a database and what SQLite keeps beside it under guard. The folder must exist; the
    /// file need not. Call it before the store opens the file.
    ///
    /// # Errors
    /// If the folder cannot be opened, or `database` has no file name.
    pub fn protect(&self, database: &Path) -> io::Result<()> {
        let Some(name) = database.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the store's path names no file"));
        };
        let folder = match database.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let path_only = OFlags::PATH | OFlags::CLOEXEC;
        let folder = openat(CWD, folder, path_only | OFlags::DIRECTORY, Mode::empty())?;
        let file = match openat(&folder, name, path_only, Mode::empty()) {
            Ok(file) => Some(file),
            Err(Errno::NOENT) => None,
            Err(other) => return Err(other.into()),
        };
        let names = SUFFIXES
            .iter()
            .map(|suffix| {
                let mut full = name.to_os_string();
                full.push(suffix);
                full
            })
            .collect();
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        databases.push(Database { folder, names, file });
        Ok(())
    }

    /// Whether `file` is one of the store's. A store file that cannot be looked at counts as a
    /// match: this fails closed.
    pub fn covers(&self, file: FileId) -> bool {
        self.look().covers(file)
    }

    /// The store's files as they are now.
    pub(crate) fn look(&self) -> StoreFiles {
        let databases = self.databases.read().unwrap_or_else(PoisonError::into_inner);
        let mut files = StoreFiles::default();
        databases.iter().for_each(|database| database.add_to(&mut files));
        files
    }

    /// Whether a name in a folder is one of the store's, taken or free: a planted `-journal` would
    /// be replayed into the database.
    pub(crate) fn claims(&self, folder: BorrowedFd<'_>, name: &OsStr) -> bool {
        self.names_in(folder).iter().any(|known| known == name)
    }

    /// The names in a folder that are the store's, taken or free.
    pub(crate) fn names_in(&self, folder: BorrowedFd<'_>) -> Vec<OsString> {
        let databases = self.databases.read().unwrap_or_else(PoisonError::into_inner);
        let there = databases.iter().filter(|database| match (fstat(&database.folder), fstat(folder)) {
            (Ok(ours), Ok(theirs)) => FileId::of(&ours) == FileId::of(&theirs),
            _ => true,
        });
        there.flat_map(|database| database.names.iter().cloned()).collect()
    }
}

/// The store's files as they were at one look.
///
/// Those that SQLite makes later are none of them: whoever keeps it must know otherwise that a file is not newer.
#[derive(Debug, Default)]
pub(crate) struct StoreFiles {
    ids: Vec<FileId>,
    /// Whether one could not be looked at: then any file may be it.
    is_unknown: bool,
}

impl StoreFiles {
    pub(crate) fn covers(&self, file: FileId) -> bool {
        self.is_unknown || self.ids.contains(&file)
    }
}

impl Database {
    fn add_to(&self, files: &mut StoreFiles) {
        let held = self.file.iter().map(fstat);
        let named = self.names.iter().map(|name| statat(&self.folder, name, AtFlags::empty()));
        for stat in held.chain(named) {
            match stat {
                Ok(stat) => files.ids.push(FileId::of(&stat)),
                Err(Errno::NOENT) => {}
                Err(_) => files.is_unknown = true,
            }
        }
    }
}
