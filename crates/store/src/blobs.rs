//! Large bodies as files named by their SHA-256: `<home>/blobs/ab/cdef…`.
//!
//! A name is a promise about the bytes: [`Blobs::put`] returns it only once they are on the device, and
//! [`Blobs::get`] returns bytes only if they still hash to it. Files are reached beneath open directories and
//! never through a symlink, so that a planted link can neither be read nor overwritten.
//!
//! Who refers to a blob is the store's knowledge: it decides when one is removed, and that no `put` of the
//! same bytes runs at that moment.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use data_encoding::HEXLOWER;
use loom::Digest;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::disk::{self, Disk, fd};

/// Why a blob could not be kept, read or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    #[error("blob {id} is not there")]
    Missing { id: Digest },
    /// The bytes hash to another digest than the blob's name.
    #[error("blob {id} is damaged, its bytes hash to {found}")]
    Damaged {
        id: Digest,
        /// What the bytes hash to.
        found: Digest,
    },
    #[error("a body of {bytes} bytes is over the limit of {max}")]
    TooLarge {
        bytes: u64,
        /// The limit, in bytes.
        max: u64,
    },
    /// A symlink or other thing stands where a blob should be.
    #[error("{} is not a plain file or folder", .path.display())]
    NotAFile { path: PathBuf },
    /// The disk is full. Nothing was kept.
    #[error("the disk is full, the body was not saved in {}", .path.display())]
    Full {
        /// Where it should have gone.
        path: PathBuf,
    },
    /// The system refused; the body must not be taken for saved.
    #[error("{} could not be {action}", .path.display())]
    Io {
        /// What was tried, as a participle.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl BlobError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "restore it from a backup, or run `drawloom store check`",
            Self::Damaged { .. } => "restore it from a backup",
            Self::TooLarge { .. } => "cut it or raise the limit",
            Self::NotAFile { .. } => "remove it, nothing of ours is behind it",
            Self::Full { .. } => "free space and try again",
            Self::Io { .. } => "check the disk; it does not count as done",
        }
    }
}

/// What became of a removed blob's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Overwritten in place, then removed. (A file system that copies on write, or a disk that moves its
    /// blocks, may keep an old copy; that is beyond any program's reach.)
    Overwritten,
    /// Only its name was removed: the file has other names (a backup by hard links), and overwriting would
    /// have destroyed those. They still hold the bytes.
    OtherNames { left: u64 },
}

/// The blobs of a home.
pub struct Blobs {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    dir: OwnedFd,
    max_bytes: u64,
    /// Whose entry in the top folder we have fsynced, by first byte.
    synced_shards: Box<[AtomicBool; 256]>,
    /// Whether we have fsynced the top folder's own entry.
    synced_top: AtomicBool,
}

impl std::fmt::Debug for Blobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blobs")
            .field("path", &self.path)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

impl Blobs {
    /// The blobs in `dir` (`<home>/blobs`, which exists), none larger than `max_bytes`.
    ///
    /// # Errors
    /// [`BlobError::NotAFile`] if `dir` is a symlink or no folder, [`BlobError::Io`].
    pub fn open(dir: &Path, max_bytes: u64) -> Result<Self, BlobError> {
        Self::open_on(Arc::new(disk::Kernel), dir, max_bytes)
    }

    fn open_on(disk: Arc<dyn Disk>, dir: &Path, max_bytes: u64) -> Result<Self, BlobError> {
        let path = dir.to_owned();
        let dir = disk::open_dir(dir).map_err(error_at("opened", &path))?;
        let synced_shards = Box::new([const { AtomicBool::new(false) }; 256]);
        Ok(Self { disk, path, dir, max_bytes, synced_shards, synced_top: AtomicBool::new(false) })
    }

    /// Keeps `bytes` and returns their name, once they survive power loss. Keeping them again costs a check:
    /// what is there is verified, and replaced if it is damaged.
    ///
    /// # Errors
    /// [`BlobError::TooLarge`], [`BlobError::Full`], [`BlobError::NotAFile`], [`BlobError::Io`].
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, BlobError> {
        if bytes.len() as u64 > self.max_bytes {
            return Err(BlobError::TooLarge { bytes: bytes.len() as u64, max: self.max_bytes });
        }
        let id = Digest::of(bytes);
        let path = self.path_of(id);
        let shard = self.shard(id, true)?;
        match self.open_blob(&shard, id, false) {
            Ok(file) if self.verify(id, &file).is_ok() => {
                // Its writer may have died between the rename and its fsyncs.
                self.disk.sync(&file).map_err(error_at("brought to the device", &path))?;
            }
            Ok(_) | Err(BlobError::Missing { .. }) => self.write(&shard, id, bytes)?,
            Err(error) => return Err(error),
        }
        disk::sync_dir(&*self.disk, fd(&shard)).map_err(error_at("brought to the device", &path))?;
        self.sync_shard_entry(id)?;
        Ok(id)
    }

    /// The bytes of that name, verified.
    ///
    /// # Errors
    /// [`BlobError::Missing`], [`BlobError::Damaged`], [`BlobError::TooLarge`], [`BlobError::NotAFile`],
    /// [`BlobError::Io`].
    pub fn get(&self, id: Digest) -> Result<Vec<u8>, BlobError> {
        let file = self.open_blob(&self.shard(id, false)?, id, false)?;
        self.verify(id, &file)
    }

    /// Verifies a blob of any size, read in pieces.
    ///
    /// # Errors
    /// As [`Blobs::get`], but for [`BlobError::TooLarge`].
    pub fn check(&self, id: Digest) -> Result<(), BlobError> {
        let path = self.path_of(id);
        let mut file = self.open_blob(&self.shard(id, false)?, id, false)?;
        match digest_of(&mut file).map_err(error_at("read", &path))? {
            found if found == id => Ok(()),
            found => Err(BlobError::Damaged { id, found }),
        }
    }

    /// Whether there is a file of that name; its bytes are not read.
    ///
    /// # Errors
    /// [`BlobError::NotAFile`], [`BlobError::Io`].
    pub fn contains(&self, id: Digest) -> Result<bool, BlobError> {
        Ok(self.size(id)?.is_some())
    }

    /// The size of a blob in bytes; none if there is no file of that name. Its bytes are not read.
    ///
    /// # Errors
    /// [`BlobError::NotAFile`], [`BlobError::Io`].
    pub fn size(&self, id: Digest) -> Result<Option<u64>, BlobError> {
        match self.shard(id, false).and_then(|shard| self.open_blob(&shard, id, false)) {
            Ok(file) => {
                let path = self.path_of(id);
                Ok(Some(file.metadata().map_err(error_at("examined", &path))?.len()))
            }
            Err(BlobError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a blob for good: overwritten, fsynced, unlinked (spec: security §21). After an error it is
    /// either still there under its name or gone, so that removing it can be repeated.
    ///
    /// # Errors
    /// [`BlobError::Missing`], [`BlobError::NotAFile`], [`BlobError::Io`].
    pub fn remove(&self, id: Digest) -> Result<Removal, BlobError> {
        let path = self.path_of(id);
        let shard = self.shard(id, false)?;
        let file = self.open_blob(&shard, id, true)?;
        let metadata = file.metadata().map_err(error_at("examined", &path))?;
        let removal = match metadata.nlink() {
            0 | 1 => {
                self.overwrite(&file, metadata.len()).map_err(|source| BlobError::Io {
                    action: "overwritten",
                    path: path.clone(),
                    source,
                })?;
                Removal::Overwritten
            }
            names => Removal::OtherNames { left: names - 1 },
        };
        disk::unlink(fd(&shard), &file_name(id)).map_err(error_at("removed", &path))?;
        disk::sync_dir(&*self.disk, fd(&shard)).map_err(error_at("removed", &path))?;
        Ok(removal)
    }

    /// The names of all blobs, a folder at a time. What is not a blob's name is passed over.
    ///
    /// # Errors
    /// [`BlobError::Io`] for a folder that cannot be read; the next call goes on with the next folder.
    pub fn ids(&self) -> impl Iterator<Item = Result<Digest, BlobError>> + '_ {
        (0..=u8::MAX).flat_map(move |first| match self.ids_in(first) {
            Ok(ids) => ids.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        })
    }

    /// Removes what crashed `put`s left. They never had a name; still, their bytes are overwritten.
    /// Returns how many there were.
    ///
    /// # Errors
    /// [`BlobError::Io`].
    pub fn sweep(&self) -> Result<usize, BlobError> {
        let mut swept = 0;
        for first in 0..=u8::MAX {
            let name = shard_name(first);
            let path = self.path.join(&name);
            let Some(shard) = self.existing_shard(&name)? else { continue };
            let overwrite = |orphan: &File| self.overwrite(orphan, orphan.metadata()?.len());
            swept += disk::sweep_hidden(fd(&shard), overwrite).map_err(error_at("cleaned", &path))?;
        }
        Ok(swept)
    }

    #[must_use]
    pub fn path_of(&self, id: Digest) -> PathBuf {
        self.path.join(shard_name(id.0[0])).join(file_name(id))
    }

    fn shard(&self, id: Digest, create: bool) -> Result<OwnedFd, BlobError> {
        let name = shard_name(id.0[0]);
        disk::open_dir_at(fd(&self.dir), &name, create).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => BlobError::Missing { id },
            _ => error_at("opened", &self.path.join(&name))(error),
        })
    }

    fn existing_shard(&self, name: &str) -> Result<Option<OwnedFd>, BlobError> {
        match disk::open_dir_at(fd(&self.dir), name, false) {
            Ok(shard) => Ok(Some(shard)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error_at("opened", &self.path.join(name))(error)),
        }
    }

    fn open_blob(&self, shard: &OwnedFd, id: Digest, write: bool) -> Result<File, BlobError> {
        disk::open_file_at(fd(shard), &file_name(id), write).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => BlobError::Missing { id },
            _ => error_at("opened", &self.path_of(id))(error),
        })
    }

    fn verify(&self, id: Digest, file: &File) -> Result<Vec<u8>, BlobError> {
        let path = self.path_of(id);
        let length = file.metadata().map_err(error_at("examined", &path))?.len();
        if length > self.max_bytes {
            return Err(BlobError::TooLarge { bytes: length, max: self.max_bytes });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        file.take(self.max_bytes).read_to_end(&mut bytes).map_err(error_at("read", &path))?;
        match Digest::of(&bytes) {
            found if found == id => Ok(bytes),
            found => Err(BlobError::Damaged { id, found }),
        }
    }

    /// Temporary, locked file; write; fsync; rename. The directory is the caller's to fsync.
    fn write(&self, shard: &OwnedFd, id: Digest, bytes: &[u8]) -> Result<(), BlobError> {
        let (path, name) = (self.path_of(id), file_name(id));
        let (hidden, file) = disk::create_hidden(fd(shard), &name).map_err(error_at("created", &path))?;
        let saved = disk::write_all(&*self.disk, &file, bytes)
            .map_err(|(_, error)| error_at("written", &path)(error))
            .and_then(|()| self.disk.sync(&file).map_err(error_at("brought to the device", &path)))
            .and_then(|()| {
                rustix::fs::renameat(shard, &*hidden, shard, &*name)
                    .map_err(|error| error_at("named", &path)(error.into()))
            });
        if saved.is_err()
            && let Err(error) = disk::unlink(fd(shard), &hidden)
        {
            tracing::warn!(%error, %id, "a blob that failed left a temporary file; sweep removes it");
        }
        saved
    }

    fn sync_shard_entry(&self, id: Digest) -> Result<(), BlobError> {
        let Some(synced) = self.synced_shards.get(usize::from(id.0[0])) else { return Ok(()) };
        if !synced.load(Ordering::Acquire) {
            disk::sync_dir(&*self.disk, fd(&self.dir))
                .map_err(error_at("brought to the device", &self.path))?;
            synced.store(true, Ordering::Release);
        }
        if !self.synced_top.load(Ordering::Acquire) {
            disk::open_dir_at(fd(&self.dir), "..", false)
                .and_then(|above| disk::sync_dir(&*self.disk, fd(&above)))
                .map_err(error_at("brought to the device", &self.path))?;
            self.synced_top.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn overwrite(&self, file: &File, length: u64) -> io::Result<()> {
        let zeros = vec![0; 1 << 16];
        let mut left = length;
        while left > 0 {
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
            let block = zeros.get(..n).unwrap_or(&zeros);
            disk::write_all(&*self.disk, file, block).map_err(|(_, error)| error)?;
            left -= n as u64;
        }
        self.disk.sync(file)
    }

    fn ids_in(&self, first: u8) -> Result<Vec<Digest>, BlobError> {
        let name = shard_name(first);
        let Some(shard) = self.existing_shard(&name)? else { return Ok(Vec::new()) };
        let names = disk::entries(fd(&shard)).map_err(error_at("listed", &self.path.join(&name)))?;
        Ok(names.iter().filter_map(|rest| format!("{name}{rest}").parse().ok()).collect())
    }
}

/// The folder of the blobs whose digest begins with this byte.
fn shard_name(first: u8) -> String {
    HEXLOWER.encode(&[first])
}

fn file_name(id: Digest) -> String {
    HEXLOWER.encode(id.0.get(1..).unwrap_or_default())
}

fn error_at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BlobError {
    move |source| {
        let path = path.to_owned();
        match source.kind() {
            // O_DIRECTORY on what is none; a folder, FIFO or device where a file should be.
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => {
                BlobError::NotAFile { path }
            }
            // O_NOFOLLOW on a symlink.
            _ if source.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => BlobError::NotAFile { path },
            _ if disk::is_full(&source) => BlobError::Full { path },
            _ => BlobError::Io { action, path, source },
        }
    }
}

/// SHA-256 of what a reader gives, read in pieces.
///
/// # Errors
/// The reader's.
pub fn digest_of(reader: &mut impl Read) -> io::Result<Digest> {
    let mut hasher = HashWriter(Sha256::new());
    io::copy(reader, &mut hasher)?;
    Ok(Digest(hasher.0.finalize().into()))
}

struct HashWriter(Sha256);

impl Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

/// Blobs that a content shows, those within tool results included.
pub(crate) fn shown_in(content: &[loom::Block]) -> BTreeSet<Digest> {
    let mut found = BTreeSet::new();
    for block in content {
        match block {
            loom::Block::Image { blob, .. } | loom::Block::Audio { blob, .. } => drop(found.insert(*blob)),
            loom::Block::ToolResult { blocks, .. } => found.extend(shown_in(blocks)),
            _ => {}
        }
    }
    found
}
