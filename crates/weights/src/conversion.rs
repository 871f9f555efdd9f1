//! Conversion of the fetched file, by a function that is passed in: this crate does not know what is in the files.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::blocking_task::BlockingTask;
use crate::error::WeightsError;
use crate::files;
use crate::installed::{InstalledWeights, checked};
use crate::pull_lock::PullLock;
use crate::registry::{Registry, RegistryEntry};
use crate::table::Weights;
use crate::weights_folders::WeightsFolders;

pub type ConvertError = Box<dyn std::error::Error + Send + Sync>;

/// Converter of the file at the first path into one at the second, which does not exist yet. It reports progress to
/// the function it is given: done and total, in a unit of its own choice.
pub type Converter =
    Box<dyn FnOnce(&Path, &Path, &mut dyn FnMut(u64, u64)) -> Result<(), ConvertError> + Send>;

/// Conversion of the fetched file into the installed one. It owns the lock: it ends before another begins, even if
/// nobody waits for it any more.
pub(crate) struct Conversion {
    pub(crate) weights: Weights,
    pub(crate) folders: WeightsFolders,
    pub(crate) lock: PullLock,
}

impl Conversion {
    pub(crate) fn run(
        self,
        convert: Converter,
        task: &BlockingTask,
    ) -> Result<InstalledWeights, WeightsError> {
        let Self { weights, folders, lock: _held } = self;
        let (source, target) = (folders.fetched(&weights), folders.converted(&weights));
        let new = files::beside(&target);
        files::remove(&new)?;
        let mut progress = |done, total| {
            task.total(total);
            task.done(done);
        };
        let made = convert(&source, &new, &mut progress).map_err(|error| full_disk(error, &new, &weights));
        let made = made.and_then(|()| if task.is_stopped() { Err(WeightsError::Cancelled) } else { Ok(()) });
        if made.is_err() {
            files::remove(&new)?;
        }
        made?;
        let hashed =
            File::open(&new).and_then(|mut file| files::fingerprint(&mut file, &BlockingTask::default()));
        let hashed = hashed.map_err(WeightsError::io("read", &new, 0))?;
        let entry =
            RegistryEntry { sha256: hashed.sha256, bytes: hashed.bytes, made_of: weights.file.sha256 };
        files::publish(&new, &target)?;
        Registry::read(&folders)?.write_with(weights.name, entry, &folders)?;
        files::remove(&source)?;
        checked(&weights, &folders, &BlockingTask::default())
    }
}

/// Error of a conversion: [`WeightsError::DiskFull`] if one of its causes says so.
fn full_disk(error: ConvertError, path: &Path, weights: &Weights) -> WeightsError {
    let first: &(dyn std::error::Error + 'static) = error.as_ref();
    let full = std::iter::successors(Some(first), |cause| cause.source()).any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::StorageFull)
    });
    if full {
        WeightsError::DiskFull { path: path.to_owned(), needed: weights.converted_bytes, free: 0 }
    } else {
        WeightsError::Convert(error)
    }
}
