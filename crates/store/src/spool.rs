//! What a model is saying right now, byte for byte, before anything has parsed it.
//!
//! A generation's wire bytes go to `<home>/spool/<generation>` as they arrive and stay there until the store
//! has committed the response. If the process dies in between, the next one finds the exact bytes and makes
//! an interrupted node of them (spec: agent §1 *Crash*, loom §10.7).
//!
//! - Each append is one `write(2)` before it returns: the bytes outlive the process. A thread of the process brings
//!   them to the device within 250 ms, and the end does: power loss costs at most a second.
//! - The writer holds the file's lock for its lifetime, and the file is locked before it has its name, so
//!   that a free lock means a dead writer.
//! - Nothing is removed before the caller says that it is committed.
//!
//! The file is one line of JSON ([`SpoolHeader`]), then the raw bytes.

mod header;
mod recover;
mod sync;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{self, Disk, Locked, fd};

pub use header::{BadGenerationName, GenerationName, SpoolHeader, TornHeader};
pub use recover::{Recovered, Recovery, SeenSpool, Spooled, Torn, look, recover};
pub use sync::SYNC_EVERY;
use sync::SyncedFile;

/// Why spooling failed. The generation must not be reported as saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// That generation has a spool already: a second writer is never right.
    #[error("{} exists already: another process writes this generation or left it to be recovered", .path.display())]
    Exists { path: PathBuf },
    /// The disk is full. What was written stays; append the rest of the chunk once there is room.
    #[error("the disk is full; {} keeps the first {written} bytes of the chunk: free space, then append the rest", .path.display())]
    Full {
        path: PathBuf,
        /// How many bytes of this chunk are in the file.
        written: usize,
    },
    /// An earlier failure left the file's state unknown; no further byte is accepted.
    #[error("{} failed before and accepts nothing more: stop the generation and keep the file", .path.display())]
    Failed { path: PathBuf },
    #[error("the spool {} could not be {action}: check the disk; what was received before is kept", .path.display())]
    Io {
        /// What was tried, as a participle.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A header that cannot be written: too long, or no JSON.
    #[error("the spool header is refused: {reason}")]
    Header { reason: String },
    /// A spool longer than the caller is ready to read.
    #[error("{} holds {bytes} bytes, more than the {max} allowed: raise the limit or set the file aside", .path.display())]
    TooLong { path: PathBuf, bytes: u64, max: u64 },
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SpoolError {
    move |source| SpoolError::Io { action, path: path.to_owned(), source }
}

/// The writer of one generation's spool. Dropping it keeps the file, for recovery.
pub struct Spool {
    disk: Arc<dyn Disk>,
    dir: OwnedFd,
    path: PathBuf,
    name: GenerationName,
    file: Locked,
    received: u64,
    synced: Arc<SyncedFile>,
}

impl std::fmt::Debug for Spool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spool")
            .field("path", &self.path)
            .field("received", &self.received)
            .field("failed", &self.synced.has_failed())
            .finish_non_exhaustive()
    }
}

impl Spool {
    /// Begins the spool of a generation in `dir` (`<home>/spool`).
    ///
    /// # Errors
    /// [`SpoolError::Exists`], [`SpoolError::Header`], [`SpoolError::Io`]; nothing is left behind.
    pub fn create(dir: &Path, header: &SpoolHeader) -> Result<Self, SpoolError> {
        Self::create_on(Arc::new(disk::Kernel), dir, header)
    }

    fn create_on(disk: Arc<dyn Disk>, dir: &Path, header: &SpoolHeader) -> Result<Self, SpoolError> {
        let name = header.generation.clone();
        let path = dir.join(name.as_str());
        let line = header.to_line()?;
        let dir = disk::open_dir(dir).map_err(io_error("created", &path))?;
        let file =
            disk::create_locked(&*disk, fd(&dir), name.as_str(), &line).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::AlreadyExists => SpoolError::Exists { path: path.clone() },
                    _ if disk::is_full(&error) => SpoolError::Full { path: path.clone(), written: 0 },
                    _ => io_error("created", &path)(error),
                }
            })?;
        let synced = SyncedFile::new(Arc::clone(&disk), &dir, name.as_str());
        let synced = synced.map_err(io_error("created", &path))?;
        Ok(Self { disk, dir, path, name, file, received: 0, synced })
    }

    /// Bytes of the body received so far, all of them in the file.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Appends bytes as they were received. When it returns `Ok` they outlive this process.
    ///
    /// # Errors
    /// [`SpoolError::Full`] says how much of `bytes` is kept; appending may go on with the rest. After any
    /// other error nothing more is accepted.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        self.refuse_if_failed()?;
        if let Err((written, error)) = disk::write_all(&*self.disk, &self.file, bytes) {
            self.count(written);
            if disk::is_full(&error) {
                return Err(SpoolError::Full { path: self.path.clone(), written });
            }
            self.synced.fail();
            return Err(io_error("written", &self.path)(error));
        }
        self.count(bytes.len());
        Ok(())
    }

    /// Brings everything to the device: the end of the stream. The lock stays held; the spool is to be
    /// removed by [`Spool::committed`] once the store has the response.
    ///
    /// # Errors
    /// [`SpoolError::Io`]: what was appended since the last sync may not survive power loss, and nothing more is
    /// accepted.
    pub fn finish(&mut self) -> Result<(), SpoolError> {
        self.refuse_if_failed()?;
        self.synced.sync().map_err(io_error("brought to the device", &self.path))?;
        // The thread may have failed in the meantime.
        self.refuse_if_failed()
    }

    /// Removes the file, still locked: the caller's word that the response is in the store.
    ///
    /// # Errors
    /// [`SpoolError::Io`]; the file is then found by recovery, which sees that its generation has ended.
    pub fn committed(self) -> Result<(), SpoolError> {
        disk::unlink(fd(&self.dir), self.name.as_str()).map_err(io_error("removed", &self.path))
    }

    fn count(&mut self, written: usize) {
        if written > 0 {
            self.received += written as u64;
            self.synced.mark_dirty();
        }
    }

    fn refuse_if_failed(&self) -> Result<(), SpoolError> {
        if self.synced.has_failed() { Err(SpoolError::Failed { path: self.path.clone() }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
