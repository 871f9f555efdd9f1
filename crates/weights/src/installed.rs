//! The installed file, looked at whole before anybody uses it.
//!
//! The hash is computed at every load. Remembering it by size and time of change would save a tenth of a
//! second or two, and would trust two numbers that whoever changes a file can set.

use std::fs::File;
use std::io::{self, Seek};
use std::path::PathBuf;

use loom::digest::Digest;

use crate::error::WeightsError;
use crate::files;
use crate::folders::Folders;
use crate::register::Register;
use crate::table::Weights;
use crate::thread::Task;

/// Weights that are here and are what was installed.
#[derive(Debug)]
pub struct Installed {
    /// Where the converted file lies.
    pub path: PathBuf,
    /// Its SHA-256: recorded when it was made, found again now.
    pub sha256: Digest,
    /// Its size in bytes.
    pub bytes: u64,
    /// The very file that was hashed, at its start: what is read from here was looked at, whatever has
    /// taken the path since.
    pub file: File,
}

/// The installed file of these weights. Reads all of it (about 145 MB for `smollm2`) and so blocks for
/// some tenths of a second: call it from a blocking thread.
///
/// # Errors
/// [`WeightsError::NotInstalled`], [`WeightsError::Outdated`]; [`WeightsError::Damaged`] if one byte
/// differs from what was made here; [`WeightsError::Register`], [`WeightsError::Io`].
pub fn installed(weights: &Weights, folders: &Folders) -> Result<Installed, WeightsError> {
    checked(weights, folders, &Task::default())
}

pub(crate) fn checked(weights: &Weights, folders: &Folders, task: &Task) -> Result<Installed, WeightsError> {
    let name = || weights.name.to_owned();
    let register = Register::read(folders)?;
    let entry = register.entry(weights.name).ok_or_else(|| WeightsError::NotInstalled { name: name() })?;
    if entry.made_of != weights.file.sha256 {
        return Err(WeightsError::Outdated { name: name() });
    }
    let path = folders.converted(weights);
    let mut file = match files::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(WeightsError::NotInstalled { name: name() });
        }
        Err(error) => return Err(WeightsError::io("opened", &path, 0)(error)),
    };
    let damaged = |why: String| WeightsError::Damaged { path: path.clone(), why, name: name() };
    let read = |error| WeightsError::io("read", &path, 0)(error);
    let metadata = file.metadata().map_err(read)?;
    if !metadata.is_file() {
        return Err(damaged("it is no regular file".to_owned()));
    }
    if metadata.len() != entry.bytes {
        return Err(damaged(format!("it has {} bytes, not {}", metadata.len(), entry.bytes)));
    }
    task.total(entry.bytes);
    let found = files::fingerprint(&mut file, task).map_err(read)?;
    if found.sha256 != entry.sha256 || found.bytes != entry.bytes {
        return Err(damaged(format!("its SHA-256 is {}, not {}", found.sha256, entry.sha256)));
    }
    file.rewind().map_err(read)?;
    Ok(Installed { sha256: found.sha256, bytes: found.bytes, path, file })
}
