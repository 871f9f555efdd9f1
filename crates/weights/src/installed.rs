//! Installed weights, verified whole before they are used.
//!
//! The hash is computed at every load. Remembering it by size and time of change would save a tenth of a
//! second or two, and would trust two numbers that whoever changes a file can set.

use std::fs::File;
use std::io::{self, Seek};
use std::path::PathBuf;

use loom::digest::Digest;

use crate::blocking_task::BlockingTask;
use crate::error::WeightsError;
use crate::files;
use crate::registry::Registry;
use crate::table::Weights;
use crate::weights_folders::WeightsFolders;

/// Installed weights, verified.
#[derive(Debug)]
pub struct InstalledWeights {
    /// Path of the converted file.
    pub path: PathBuf,
    /// SHA-256 of the file, recorded when it was made and computed again now.
    pub sha256: Digest,
    pub bytes: u64,
    /// The open file that was hashed, rewound: whatever has taken the path since is not read.
    pub file: File,
}

/// Verifies the installed file of these weights. Reads all of it (about 145 MB for `smollm2`) and so blocks for
/// some tenths of a second: call it from a blocking thread.
///
/// # Errors
/// [`WeightsError::NotInstalled`], [`WeightsError::Outdated`]; [`WeightsError::Damaged`] if one byte
/// differs from what was made here; [`WeightsError::Register`], [`WeightsError::Io`].
pub fn installed(weights: &Weights, folders: &WeightsFolders) -> Result<InstalledWeights, WeightsError> {
    checked(weights, folders, &BlockingTask::default())
}

pub(crate) fn checked(
    weights: &Weights,
    folders: &WeightsFolders,
    task: &BlockingTask,
) -> Result<InstalledWeights, WeightsError> {
    let name = || weights.name.to_owned();
    let register = Registry::read(folders)?;
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
    Ok(InstalledWeights { sha256: found.sha256, bytes: found.bytes, path, file })
}
