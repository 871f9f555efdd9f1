//! Blocking work on files, off the executor, with progress and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::error::WeightsError;
use crate::fetch_event::ProgressMeter;

/// Time between two reports of progress.
const TICK: Duration = Duration::from_millis(100);

/// Progress and stop flag of blocking work, shared with its waiter.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockingTask(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl BlockingTask {
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn done(&self, done: u64) {
        self.0.done.store(done, Ordering::Relaxed);
    }

    /// Sets the total, where only the work itself knows it.
    pub(crate) fn total(&self, total: u64) {
        self.0.total.store(total, Ordering::Relaxed);
    }

    fn report(&self, meter: &mut ProgressMeter<'_, '_>, last: bool) {
        match self.0.total.load(Ordering::Relaxed) {
            0 => {}
            total => meter.set_total(total),
        }
        let done = self.0.done.load(Ordering::Relaxed);
        match (done, last) {
            // What did not begin is not told.
            (0, _) => {}
            (done, true) => meter.finish(done),
            (done, false) => meter.at(done),
        }
    }
}

struct StopOnDrop(BlockingTask);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.stopped.store(true, Ordering::Relaxed);
    }
}

/// Runs work on a thread of the blocking pool. Dropping the future tells the work to stop and does not wait for it,
/// so the work owns what it needs, the lock included.
pub(crate) async fn run_blocking<T: Send + 'static, E: From<WeightsError> + Send + 'static>(
    meter: &mut ProgressMeter<'_, '_>,
    work: impl FnOnce(&BlockingTask) -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let task = BlockingTask::default();
    let stop = StopOnDrop(task.clone());
    let mut running = tokio::task::spawn_blocking({
        let task = task.clone();
        move || work(&task)
    });
    let mut ticks = tokio::time::interval(TICK);
    let ended = loop {
        tokio::select! {
            ended = &mut running => break ended,
            _ = ticks.tick() => task.report(meter, false),
        }
    };
    task.report(meter, true);
    drop(stop);
    // The work does not panic; should it, that is an error like any other.
    ended.unwrap_or_else(|error| Err(WeightsError::Convert(Box::new(error)).into()))
}
