//! File arguments: files a person names on a command line (spec: security §8, §28).
//!
//! A file argument may lie anywhere and be reached through any link, unlike a file beneath a [`Root`](crate::Root). Its
//! kind and identity are checked on an `O_PATH` descriptor before it is opened: that descriptor neither waits for a
//! FIFO's writer nor drops the store's locks when it is closed. The checked file is then opened through the descriptor.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, fstatfs, openat, statat};
use rustix::io::{Errno, dup};

use crate::error::{FileError, FileKind, FileProblem};
use crate::guard::StoreGuard;
use crate::identity::FileId;
use crate::root::{Metadata, read_capped, reopen};

/// `f_type` of the file system of anonymous pipes, which have no name anywhere.
const PIPEFS_MAGIC: u64 = 0x5049_5045;

/// Kinds of file accepted as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    Regular,
    /// Regular files, and pipes the shell hands over as `/dev/fd/N`.
    RegularOrPipe,
}

/// A file named as an argument, or standard input, open for reading. Reading a pipe fails with
/// [`io::ErrorKind::TimedOut`] when nothing came for the time given; what a terminal sends is waited for.
#[derive(Debug)]
pub struct FileArgument {
    file: File,
    metadata: Metadata,
    timeout: Option<Duration>,
}

impl FileArgument {
    /// Opens the file at `path`; `timeout` is how long a pipe may stay silent.
    ///
    /// # Errors
    /// [`FileProblem::StoreFile`] under any name, [`FileProblem::NotRegular`] for what `accept` leaves out, and what
    /// the system refuses.
    pub fn open(
        path: &Path,
        guard: &StoreGuard,
        accept: Accept,
        timeout: Duration,
    ) -> Result<Self, FileError> {
        let open = || -> Result<Self, FileProblem> {
            let found = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            let stat = fstat(&found)?;
            if guard.covers(FileId::of(&stat)) {
                return Err(FileProblem::StoreFile);
            }
            let timeout = match FileKind::of(FileType::from_raw_mode(stat.st_mode)) {
                FileKind::Regular => None,
                FileKind::Fifo if accept == Accept::RegularOrPipe && is_anonymous(&found)? => Some(timeout),
                other => return Err(FileProblem::NotRegular(other)),
            };
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            let file = File::from(reopen(found.as_fd(), flags)?);
            Ok(Self { file, metadata: Metadata::of(&stat), timeout })
        };
        open().map_err(|problem| FileError::new(path, problem))
    }

    /// Standard input; `timeout` is how long it may stay silent, unless it is a terminal.
    ///
    /// # Errors
    /// [`FileProblem::StoreFile`], and what the system refuses.
    pub fn standard_input(guard: &StoreGuard, timeout: Duration) -> Result<Self, FileError> {
        let input = io::stdin();
        let open = || -> Result<Self, FileProblem> {
            let stat = fstat(&input)?;
            // Before it is duplicated: closing the copy would drop the store's locks.
            if guard.covers(FileId::of(&stat)) {
                return Err(FileProblem::StoreFile);
            }
            let file = File::from(dup(&input)?);
            let timeout = (!rustix::termios::isatty(&input)).then_some(timeout);
            Ok(Self { file, metadata: Metadata::of(&stat), timeout })
        };
        open().map_err(|problem| FileError::new("standard input", problem))
    }

    /// Whether standard input is a pipe or a regular file: something was handed over with the call. A terminal, a socket,
    /// a device such as `/dev/null` and a closed descriptor hand over nothing.
    pub fn is_input_piped() -> bool {
        fstat(io::stdin()).is_ok_and(|stat| {
            matches!(FileKind::of(FileType::from_raw_mode(stat.st_mode)), FileKind::Regular | FileKind::Fifo)
        })
    }

    /// Whether something to read, or its end, comes within `timeout`.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn is_ready(&self, timeout: Duration) -> io::Result<bool> {
        match wait_readable(&self.file, timeout) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Metadata of the file at opening.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub fn into_file(self) -> File {
        self.file
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// [`FileProblem::TooLarge`] as soon as more than `limit` bytes came.
    pub fn read_at_most(self, limit: u64) -> Result<Vec<u8>, FileProblem> {
        read_capped(self, limit, 0)
    }
}

impl Read for FileArgument {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(timeout) = self.timeout {
                wait_readable(&self.file, timeout)?;
            }
            match self.file.read(buffer) {
                // Another reader of the same pipe was first.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.timeout.is_some() => {}
                done => return done,
            }
        }
    }
}

/// Reads a regular file of the program's own, such as a cache. A FIFO in its place is refused, not waited for.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] above `limit` bytes, [`io::ErrorKind::InvalidInput`] for another kind of file.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let opened = FileArgument::open(path, &StoreGuard::new(), Accept::Regular, Duration::ZERO);
    Ok(opened.map_err(|error| error.problem)?.read_at_most(limit)?)
}

/// Reads the beginning of a regular file, at most `limit` bytes. A FIFO or a device in its place is refused, not waited for.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for another kind of file, and what the system refuses.
pub fn read_beginning(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let opened = FileArgument::open(path, &StoreGuard::new(), Accept::Regular, Duration::ZERO);
    let mut bytes = Vec::new();
    opened.map_err(|error| error.problem)?.file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a FIFO is a pipe without a name, made by the shell for this call.
fn is_anonymous(fifo: &OwnedFd) -> Result<bool, Errno> {
    Ok(u64::try_from(fstatfs(fifo)?.f_type).is_ok_and(|kind| kind == PIPEFS_MAGIC))
}

fn wait_readable(file: &File, timeout: Duration) -> io::Result<()> {
    let limit = Timespec::try_from(timeout).ok();
    loop {
        match poll(&mut [PollFd::new(file, PollFlags::IN)], limit.as_ref()) {
            Ok(0) => {
                let message = format!("nothing came for {} s", timeout.as_secs_f64());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Refuses a file to be written at `path` that would lie in `home`, its folder `workspace` excepted.
///
/// # Errors
/// [`FileProblem::InHome`]; [`FileProblem::NotFound`] and others when the folder of the file cannot be entered.
pub fn check_output(path: &Path, home: &Path) -> Result<(), FileError> {
    let check = || -> Result<(), FileProblem> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let home = match openat(CWD, home, flags, Mode::empty()) {
            Ok(home) => home,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let workspace = statat(&home, "workspace", AtFlags::empty()).ok().map(|stat| FileId::of(&stat));
        let closed = closed_folders(&home, workspace)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut folder = openat(CWD, parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        let mut id = FileId::of(&fstat(&folder)?);
        loop {
            if Some(id) == workspace {
                return Ok(());
            }
            if closed.contains(&id) {
                return Err(FileProblem::InHome);
            }
            let above = openat(&folder, "..", flags, Mode::empty())?;
            let above_id = FileId::of(&fstat(&above)?);
            if above_id == id {
                return Ok(());
            }
            (folder, id) = (above, above_id);
        }
    };
    check().map_err(|problem| FileError::new(path, problem))
}

/// The home and the folders in it, by identity: one of them may be mounted elsewhere too.
fn closed_folders(home: &OwnedFd, workspace: Option<FileId>) -> Result<Vec<FileId>, FileProblem> {
    let mut closed = vec![FileId::of(&fstat(home)?)];
    let readable = openat(home, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for entry in rustix::fs::Dir::read_from(&readable)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = statat(home, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let id = FileId::of(&stat);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory && Some(id) != workspace {
            closed.push(id);
        }
    }
    Ok(closed)
}

#[cfg(test)]
mod tests;
