//! Short reads under way, to which long ones give way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a long read pauses between two batches while others read.
const PAUSE: Duration = Duration::from_millis(1);

/// Counts the short reads that wait or run.
#[derive(Debug, Default)]
pub(crate) struct Traffic(AtomicUsize);

impl Traffic {
    /// Counts one as long as the answer lives.
    pub(crate) fn enter(self: &Arc<Self>) -> ShortRead {
        self.0.fetch_add(1, Ordering::Relaxed);
        ShortRead(Arc::clone(self))
    }

    /// Called by a long read after each batch: pauses if others read.
    pub(crate) fn give_way(&self) {
        if self.0.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(PAUSE);
        }
    }
}

#[derive(Debug)]
pub(crate) struct ShortRead(Arc<Traffic>);

impl Drop for ShortRead {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
