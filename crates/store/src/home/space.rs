//! Free space, and the bytes held back for when there is none.
//!
//! Below the minimum no new turn starts; but the owner must still be able to write a draft, read, and say
//! `/stop` on a disk that is full (spec: scale §4 `free_space`). Those small writes live off a reserve: a
//! file that takes up real blocks while all is well and is removed when the disk is full.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use super::{Home, HomeError};
use crate::disk;

/// What the reserve takes, in bytes; on a disk under 512 MiB a 32nd of it.
const RESERVE_BYTES: u64 = 16 << 20;
const RESERVE_SHARE: u64 = 32;

/// From when on little space is said, and from when on it is acted upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceLimits {
    /// `limits.free_space`, in bytes: below it no new turn starts.
    pub minimum_free: u64,
    /// Below this percentage of the file system a notice is given.
    pub warn_below_percent: u8,
}

impl Default for SpaceLimits {
    fn default() -> Self {
        Self { minimum_free: 256 << 20, warn_below_percent: 10 }
    }
}

/// How much room the home has. All figures are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Enough {
        /// What we may still use.
        free: u64,
    },
    /// Enough to work, little enough to say so.
    Low {
        /// What we may still use.
        free: u64,
        /// What the file system holds in all.
        total: u64,
    },
    Short {
        /// What we may still use.
        free: u64,
        minimum: u64,
    },
}

impl SpaceLimits {
    /// Judges `free` of `total` bytes.
    #[must_use]
    pub fn judge(&self, free: u64, total: u64) -> Space {
        if free < self.minimum_free {
            Space::Short { free, minimum: self.minimum_free }
        } else if u128::from(free) * 100 < u128::from(total) * u128::from(self.warn_below_percent) {
            Space::Low { free, total }
        } else {
            Space::Enough { free }
        }
    }
}

impl Home {
    /// How much room there is, by the owner's limits.
    ///
    /// # Errors
    /// [`HomeError::Io`] if the file system does not say.
    pub fn space(&self, limits: SpaceLimits) -> Result<Space, HomeError> {
        let (free, total) = self.reserve().free_and_total()?;
        Ok(limits.judge(free, total))
    }

    /// The bytes held back for a full disk.
    #[must_use]
    pub fn reserve(&self) -> Reserve<'_> {
        Reserve { home: self }
    }
}

/// Whether the reserve is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveState {
    /// The file takes up its blocks.
    Held,
    /// The file is gone, and there is not room enough to take it again.
    Released,
}

/// The file of bytes held back. Several processes of one home share it; taking and releasing are idempotent.
#[derive(Debug)]
pub struct Reserve<'a> {
    home: &'a Home,
}

impl Reserve<'_> {
    /// Takes the reserve where there is room for it, and gives it up where less than it is left. To be called at
    /// start.
    ///
    /// # Errors
    /// [`HomeError`] for anything but a full disk, which is [`ReserveState::Released`].
    pub fn keep(&self, limits: SpaceLimits) -> Result<ReserveState, HomeError> {
        let (free, total) = self.free_and_total()?;
        let bytes = RESERVE_BYTES.min(total / RESERVE_SHARE);
        if free < bytes.min(limits.minimum_free) {
            return self.release().map(|_| ReserveState::Released);
        }
        self.hold(bytes, limits)
    }

    fn free_and_total(&self) -> Result<(u64, u64), HomeError> {
        let root = self.home.root();
        self.home.file_systems().free_and_total(root).map_err(HomeError::io("examined", root))
    }

    /// Takes `bytes` back from the disk, unless that would leave less than the minimum, or than half of a small
    /// disk: one that was just freed a little is not filled again by us.
    pub(super) fn hold(&self, bytes: u64, limits: SpaceLimits) -> Result<ReserveState, HomeError> {
        let path = self.home.reserve_file();
        if self.held_bytes() >= bytes {
            return Ok(ReserveState::Held);
        }
        let (free, total) = self.free_and_total()?;
        if free < limits.minimum_free.min(total / 2).saturating_add(bytes) {
            return Ok(ReserveState::Released);
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            // Not to wait for the reader of a FIFO that took its place.
            .custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed())
            .open(&path)
            .map_err(HomeError::io("created", &path))?;
        match self.allocate(&file, bytes) {
            Ok(()) => Ok(ReserveState::Held),
            Err(error) if disk::is_full(&error) => {
                self.release()?;
                Ok(ReserveState::Released)
            }
            Err(error) => Err(HomeError::io("filled", &path)(error)),
        }
    }

    /// Gives the bytes back to the disk. Returns how many; 0 if they were gone already.
    ///
    /// # Errors
    /// [`HomeError`] if the file cannot be removed.
    pub fn release(&self) -> Result<u64, HomeError> {
        let path = self.home.reserve_file();
        let bytes = self.held_bytes();
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(HomeError::io("removed", &path)(error)),
        }
    }

    /// Runs a small write that must not fail for want of space: if the disk is full, the reserve is released
    /// and the write tried once more. For drafts and for what `/stop` records; never for a turn.
    ///
    /// # Errors
    /// What `write` returned, the second time if there was one.
    pub fn spend<T>(&self, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match write() {
            Err(error) if disk::is_full(&error) => match self.release() {
                Ok(0) => Err(error),
                Ok(bytes) => {
                    tracing::warn!(bytes, "the disk is full: released the reserve");
                    write()
                }
                Err(failure) => {
                    tracing::error!(%failure, "the disk is full and the reserve cannot be released");
                    Err(error)
                }
            },
            done => done,
        }
    }

    /// Bytes of real blocks that the reserve takes: a sparse file holds nothing back.
    fn held_bytes(&self) -> u64 {
        let metadata = self.home.reserve_file().symlink_metadata();
        metadata.map_or(0, |m| if m.is_file() { m.blocks().saturating_mul(512).min(m.len()) } else { 0 })
    }

    fn allocate(&self, file: &File, bytes: u64) -> io::Result<()> {
        match self.home.file_systems().allocate(file, bytes) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => fill_with_noise(file, bytes),
            done => done,
        }
    }
}

/// Zeros would take no room on a file system that compresses.
fn fill_with_noise(mut file: &File, bytes: u64) -> io::Result<()> {
    let mut block = vec![0; 1 << 16];
    let mut left = bytes;
    file.seek(SeekFrom::Start(0))?;
    while left > 0 {
        disk::random(&mut block)?;
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        file.write_all(block.get(..n).unwrap_or(&block))?;
        left -= n as u64;
    }
    file.sync_all()
}
