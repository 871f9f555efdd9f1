//! Operations on files: hash, compare, create, publish, replace, remove.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use loom::digest::Digest;
use sha2::{Digest as _, Sha256};

use crate::blocking_task::BlockingTask;
use crate::error::{SourceError, WeightsError};
use crate::table::Fingerprint;

const BUFFER_BYTES: usize = 256 * 1024;

/// Size and hash of all that is left to read.
pub(crate) fn fingerprint(reader: &mut impl Read, task: &BlockingTask) -> io::Result<Fingerprint> {
    copy_hashed(reader, &mut io::sink(), u64::MAX, task)
}

/// Copies no more than `limit` bytes and gives their fingerprint. Fails when the task is told to stop.
pub(crate) fn copy_hashed(
    reader: &mut impl Read,
    writer: &mut impl Write,
    limit: u64,
    task: &BlockingTask,
) -> io::Result<Fingerprint> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    let mut reader = reader.take(limit);
    loop {
        if task.is_stopped() {
            return Err(io::Error::other("stopped"));
        }
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = buffer.get(..read).unwrap_or_default();
        hasher.update(piece);
        writer.write_all(piece)?;
        bytes += read as u64;
        task.done(bytes);
    }
    Ok(Fingerprint { bytes, sha256: Digest(hasher.finalize().into()) })
}

/// Compares the fingerprint of a file with the pinned one.
pub(crate) fn compare(what: &str, found: Fingerprint, expected: Fingerprint) -> Result<(), SourceError> {
    let what = || what.to_owned();
    if found.bytes != expected.bytes {
        return Err(SourceError::WrongSize { what: what(), expected: expected.bytes, found: found.bytes });
    }
    if found.sha256 != expected.sha256 {
        return Err(SourceError::Checksum { what: what(), expected: expected.sha256, found: found.sha256 });
    }
    Ok(())
}

/// Opens a file for reading; a FIFO in its place is not waited for, and is empty.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Creates a file of mode 0600, in place of one that is there.
pub(crate) fn create(path: &Path) -> Result<File, WeightsError> {
    remove(path)?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(WeightsError::io("created", path, 0))
}

/// Removes a file; one that is absent is no error.
pub(crate) fn remove(path: &Path) -> Result<(), WeightsError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WeightsError::io("removed", path, 0)(error))
        }
        _ => Ok(()),
    }
}

/// Removes a folder with all in it; one that is absent is no error.
pub(crate) fn remove_folder(path: &Path) -> Result<(), WeightsError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WeightsError::io("removed", path, 0)(error))
        }
        _ => Ok(()),
    }
}

/// Moves a finished file to its place with mode 0600. It is there whole or not at all, also after a power cut.
pub(crate) fn publish(from: &Path, to: &Path) -> Result<(), WeightsError> {
    let folder = to.parent().unwrap_or_else(|| Path::new("."));
    let put = || {
        let file = File::open(from)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.sync_all()?;
        std::fs::rename(from, to)?;
        File::open(folder)?.sync_all()
    };
    put().map_err(WeightsError::io("put in place", to, 0))
}

/// Replaces a small file atomically.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), WeightsError> {
    let new = beside(path);
    create(&new)?.write_all(bytes).map_err(WeightsError::io("written", &new, bytes.len() as u64))?;
    publish(&new, path)
}

/// Path at which a file is made before it is published.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}
