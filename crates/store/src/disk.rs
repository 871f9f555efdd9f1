//! The few system calls whose failure decides whether something counts as saved.
//!
//! Spool, blobs and instance locks share three needs: a seam where a test can make a write or an fsync
//! fail; files that no other process ever sees without their lock; and names resolved beneath one open
//! directory, never through a symlink. All of it lives here so that it is right once.
//!
//! **Locked before visible.** A file made by [`create_locked`] is written under a hidden temporary name,
//! locked, and only then linked to its real name. Whoever finds it under that name finds it complete, and
//! finds its lock free only if the writer is gone. A temporary left by a crash is hidden, unlocked, and
//! holds nothing that was ever acknowledged: [`sweep_hidden`] removes it.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// How often a temporary may be swept away by another process before we give up.
const PUBLISH_ATTEMPTS: usize = 16;

/// What a test replaces to see a full disk or a failing device.
pub(crate) trait Disk: Send + Sync {
    /// One `write(2)` at the file's position; may be short.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;
    /// `fsync(2)`. After an error the file's state on the device is unknown.
    fn sync(&self, file: &File) -> io::Result<()>;
}

pub(crate) struct Kernel;

impl Disk for Kernel {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut file, bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }
}

/// Writes until all is written or a call fails; then says how many bytes of `bytes` are in the file.
pub(crate) fn write_all(disk: &dyn Disk, file: &File, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match disk.write(file, rest) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// Whether an error means that the disk (or a quota) is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Opens a directory itself, never what a symlink of that name points to.
pub(crate) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIR_FLAGS, Mode::empty())?)
}

/// Opens a directory beneath another, creating it (0700) if `create` and it is absent.
pub(crate) fn open_dir_at(parent: BorrowedFd<'_>, name: &str, create: bool) -> io::Result<OwnedFd> {
    if create {
        match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rustix::fs::openat(parent, name, DIR_FLAGS, Mode::empty())?)
}

const DIR_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens an existing regular file beneath `dir`. A symlink, FIFO or device is an error, and opening one
/// neither follows nor blocks.
pub(crate) fn open_file_at(dir: BorrowedFd<'_>, name: &str, write: bool) -> io::Result<File> {
    let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Makes a file's entry in its directory survive power loss.
pub(crate) fn sync_dir(disk: &dyn Disk, dir: BorrowedFd<'_>) -> io::Result<()> {
    disk.sync(&File::from(dir.try_clone_to_owned()?))
}

/// A file whose exclusive lock we hold until this is dropped.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Locked {
    /// Takes the lock if it is free. `None`: another open file description holds one.
    pub(crate) fn take(file: File) -> io::Result<Option<Self>> {
        Ok(is_taken(file.try_lock())?.then_some(Self(file)))
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    /// Closing would free it too, but not while a child that another thread just forked still has a copy of
    /// the descriptor, before its `exec`.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "a lock is left to the closing of its file");
        }
    }
}

/// Whether someone holds the exclusive lock. Asks with a shared lock, so that two who ask at once do not
/// take each other for the holder.
pub(crate) fn is_locked(file: &File) -> io::Result<bool> {
    let free = is_taken(file.try_lock_shared())?;
    if free {
        file.unlock()?;
    }
    Ok(!free)
}

fn is_taken(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether `name` still names the open file: false once it was removed or replaced.
pub(crate) fn names(dir: BorrowedFd<'_>, name: &str, file: &File) -> io::Result<bool> {
    let ours = rustix::fs::fstat(file)?;
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Ok(there.st_dev == ours.st_dev && there.st_ino == ours.st_ino),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a name; absent already is fine.
pub(crate) fn unlink(dir: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A new hidden file (0600), locked by us, for `name`. Its own name comes back with it.
pub(crate) fn create_hidden(dir: BorrowedFd<'_>, name: &str) -> io::Result<(String, Locked)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..PUBLISH_ATTEMPTS {
        let hidden = format!(".{name}.{:016x}", random_u64()?);
        let file = File::from(rustix::fs::openat(dir, &*hidden, flags, Mode::RUSR | Mode::WUSR)?);
        // Between these two calls a sweep may take the file for an orphan; then another name is tried.
        if let Some(locked) = Locked::take(file)?
            && names(dir, &hidden, &locked)?
        {
            return Ok((hidden, locked));
        }
        unlink(dir, &hidden)?;
    }
    Err(io::Error::other("another process keeps removing our temporary file"))
}

/// Whether [`create_hidden`] made this name. Other dot files are somebody's, and are left alone.
pub(crate) fn is_hidden(name: &str) -> bool {
    let random = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')).map(|(_, random)| random);
    random.is_some_and(|random| random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Creates `name` holding `contents`, locked by us before anyone can see it.
///
/// # Errors
/// `AlreadyExists` if the name is taken; otherwise what the system says. Nothing is left behind.
pub(crate) fn create_locked(
    disk: &dyn Disk,
    dir: BorrowedFd<'_>,
    name: &str,
    contents: &[u8],
) -> io::Result<Locked> {
    let (hidden, file) = create_hidden(dir, name)?;
    let published = write_all(disk, &file, contents).map_err(|(_, error)| error).and_then(|()| {
        rustix::fs::linkat(dir, &*hidden, dir, name, AtFlags::empty()).map_err(io::Error::from)
    });
    unlink(dir, &hidden)?;
    published.map(|()| file)
}

/// Removes hidden temporaries whose writer is gone, each after `before` saw it. Returns how many. What is no file of
/// ours is left alone.
pub(crate) fn sweep_hidden(
    dir: BorrowedFd<'_>,
    before: impl Fn(&File) -> io::Result<()>,
) -> io::Result<usize> {
    let mut swept = 0;
    for name in entries(dir)?.into_iter().filter(|name| is_hidden(name)) {
        let file = match open_file_at(dir, &name, true) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(%name, %error, "a hidden entry cannot be opened and is left alone");
                continue;
            }
        };
        if let Some(orphan) = Locked::take(file)?
            && names(dir, &name, &orphan)?
        {
            before(&orphan)?;
            unlink(dir, &name)?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// The names in a directory, sorted, without `.` and `..`. A name that is not UTF-8 is none of ours and is
/// left out.
pub(crate) fn entries(dir: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if entry.file_type() == FileType::Directory && matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        if let Ok(name) = OsString::from_vec(entry.file_name().to_bytes().to_vec()).into_string()
            && !matches!(name.as_str(), "." | "..")
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Fills `bytes` from the system's random source.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
}

fn random_u64() -> io::Result<u64> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A borrowed descriptor, spelled once.
pub(crate) fn fd(dir: &OwnedFd) -> BorrowedFd<'_> {
    dir.as_fd()
}

#[cfg(test)]
pub(crate) mod faults {
    //! A disk that fails on request.

    use super::{Disk, Kernel};
    use std::fs::File;
    use std::io;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Passes calls through until a budget is used up.
    #[derive(Default)]
    pub(crate) struct Faulty {
        /// Bytes that still fit; `None` for no limit.
        pub(crate) room: Mutex<Option<usize>>,
        /// The number of the `sync` call (from 1) that fails with `EIO`, and all after it.
        pub(crate) failing_sync: Mutex<Option<usize>>,
        /// `sync` calls so far.
        pub(crate) syncs: AtomicUsize,
    }

    impl Faulty {
        pub(crate) fn full_after(bytes: usize) -> Self {
            Self { room: Mutex::new(Some(bytes)), ..Self::default() }
        }

        pub(crate) fn sync_fails_at(call: usize) -> Self {
            Self { failing_sync: Mutex::new(Some(call)), ..Self::default() }
        }
    }

    impl Disk for Faulty {
        fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
            let mut room = self.room.lock().unwrap();
            let Some(left) = room.as_mut() else { return Kernel.write(file, bytes) };
            if *left == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let n = Kernel.write(file, &bytes[..bytes.len().min(*left)])?;
            *left -= n;
            Ok(n)
        }

        fn sync(&self, file: &File) -> io::Result<()> {
            let call = self.syncs.fetch_add(1, Ordering::Relaxed) + 1;
            match *self.failing_sync.lock().unwrap() {
                Some(at) if call >= at => Err(io::Error::from_raw_os_error(5)),
                _ => Kernel.sync(file),
            }
        }
    }
}
