//! Lock of a home for fetching weights: one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::WeightsError;
use crate::fetch_event::{FetchEvent, FetchListener, FetchNotice};

const PAUSE: Duration = Duration::from_millis(100);

/// Lock for fetching; released by the last clone, also by the kernel when the process dies. Work that
/// goes on on a thread holds a clone.
#[derive(Debug, Clone)]
pub(crate) struct PullLock(#[expect(dead_code, reason = "it is held, not read")] Arc<File>);

impl PullLock {
    /// Waits for the lock and reports once which process holds it. Cancel-safe.
    pub(crate) async fn acquire(path: &Path, listener: &mut FetchListener<'_>) -> Result<Self, WeightsError> {
        let failed = |error| WeightsError::io("locked", path, 0)(error);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if told => {}
                Err(TryLockError::WouldBlock) => {
                    listener(FetchEvent::Notice(FetchNotice::Waiting { holder: holder(&mut file) }));
                    told = true;
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            tokio::time::sleep(PAUSE).await;
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(failed)?;
        Ok(Self(Arc::new(file)))
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}
