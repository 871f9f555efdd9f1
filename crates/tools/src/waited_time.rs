//! The time in which a turn waited for people: it is none of the turn's own (spec: agent §1 *Limits*).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long people were waited for. A moment in which several questions stand counts once. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct WaitedTime(Arc<Mutex<Waits>>);

#[derive(Debug, Default)]
struct Waits {
    /// How many questions stand.
    open: u32,
    /// Since when there is one.
    since: Option<Instant>,
    /// Sum of the waits that ended.
    ended: Duration,
}

impl WaitedTime {
    /// People are waited for until what it returns is dropped.
    pub fn begin(&self) -> OpenWait {
        let mut waits = self.waits();
        waits.open += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        OpenWait(self.clone())
    }

    /// All until now.
    pub fn total(&self) -> Duration {
        let waits = self.waits();
        waits.ended.saturating_add(waits.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that stands.
#[derive(Debug)]
#[must_use]
pub struct OpenWait(WaitedTime);

impl Drop for OpenWait {
    fn drop(&mut self) {
        let mut waits = self.0.waits();
        waits.open = waits.open.saturating_sub(1);
        if waits.open == 0
            && let Some(since) = waits.since.take()
        {
            waits.ended = waits.ended.saturating_add(since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Until so much of the clock has gone by.
    fn pass(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_moment_in_which_several_questions_stand_counts_once() {
        let (waited, began) = (WaitedTime::default(), Instant::now());
        let first = waited.begin();
        let second = waited.clone().begin();
        pass(Duration::from_millis(2));
        drop(first);
        pass(Duration::from_millis(2));
        drop(second);
        let total = waited.total();
        assert!(total >= Duration::from_millis(4) && total <= began.elapsed(), "{total:?}");
        pass(Duration::from_millis(1));
        assert_eq!(waited.total(), total, "nobody is waited for");
    }
}
