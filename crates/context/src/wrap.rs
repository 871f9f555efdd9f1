//! Whether a session that is in the red is handed over (spec: context §5 *Wrap condition*). A pure decision; the
//! hand-over itself is another's.

use serde::{Deserialize, Serialize};

use crate::zone::Zone;

/// What is freed must be at least one part in so many of the window.
const LEAST_FREED: u64 = 5;
/// A session with fewer finished turns has nothing to hand over.
pub const LEAST_TURNS: u32 = 2;
/// No second hand-over within this many turns: what fills the window that fast would fill the next one too.
const APART: u32 = 10;

/// What the red zone of a session means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrapMode {
    /// The owner is asked: interactive main sessions.
    Ask,
    /// The session is handed over without asking: main sessions without a person.
    Auto,
    /// Never: isolated sessions finish, report and end.
    Off,
}

/// How full a session is, and what a new one would start with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The model's window, tokens.
    pub window: u64,
    pub used: u64,
    /// Tokens the next session would start with, its hand-over included.
    pub fresh: u64,
    /// Turns of this session that ended.
    pub finished_turns: u32,
    /// Turns since the last hand-over that led to this session; none if there was none.
    pub since_wrap: Option<u32>,
}

/// What is to be done about the load of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrapDecision {
    /// Nothing: it is not in the red, or must not be handed over.
    No,
    /// The owner is asked whether to hand over.
    Ask,
    Do,
    /// Handing over would not help: the largest sources are shown, once.
    FixedLoad,
}

impl Load {
    /// The used share of the window, 0 to 1 and beyond.
    pub fn share(&self) -> f64 {
        self.used as f64 / self.window.max(1) as f64
    }

    /// The zone of that share.
    pub fn zone(&self) -> Zone {
        Zone::of(self.share())
    }

    /// What is to be done.
    pub fn decide(&self, mode: WrapMode) -> WrapDecision {
        if self.zone() != Zone::Red || mode == WrapMode::Off {
            return WrapDecision::No;
        }
        let fresh = self.fresh as f64 / self.window.max(1) as f64;
        let lower = Zone::of(fresh) < Zone::Red;
        let frees = self.used.saturating_sub(self.fresh).saturating_mul(LEAST_FREED) >= self.window;
        let grown = self.finished_turns >= LEAST_TURNS;
        let apart = self.since_wrap.is_none_or(|turns| turns > APART);
        match mode {
            _ if !(lower && frees && grown && apart) => WrapDecision::FixedLoad,
            WrapMode::Ask => WrapDecision::Ask,
            _ => WrapDecision::Do,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(used: u64, fresh: u64) -> Load {
        Load { window: 1_000, used, fresh, finished_turns: 5, since_wrap: None }
    }

    #[test]
    fn only_red_wraps_and_only_when_it_helps() {
        assert_eq!(load(500, 100).decide(WrapMode::Ask), WrapDecision::No);
        assert_eq!(load(501, 100).decide(WrapMode::Ask), WrapDecision::Ask);
        assert_eq!(load(501, 100).decide(WrapMode::Auto), WrapDecision::Do);
        assert_eq!(load(501, 100).decide(WrapMode::Off), WrapDecision::No);
        // The next session would be as full, or hardly less so.
        assert_eq!(load(900, 501).decide(WrapMode::Auto), WrapDecision::FixedLoad);
        assert_eq!(load(601, 402).decide(WrapMode::Auto), WrapDecision::FixedLoad);
        assert_eq!(load(602, 402).decide(WrapMode::Auto), WrapDecision::Do);
        let young = Load { finished_turns: 1, ..load(900, 100) };
        assert_eq!(young.decide(WrapMode::Auto), WrapDecision::FixedLoad);
        let again = Load { since_wrap: Some(10), ..load(900, 100) };
        assert_eq!(again.decide(WrapMode::Auto), WrapDecision::FixedLoad);
    }

    proptest! {
        /// Whatever is said, and however large the window is.
        #[test]
        fn no_second_wrap_within_ten_turns(
            window in prop::sample::select(vec![4_096_u64, 8_192, 32_768, 200_000, 1_000_000]),
            fixed in 0.0_f64..0.25,
            turns in prop::collection::vec(0.0_f64..0.6, 1..120),
        ) {
            let fresh = (window as f64 * fixed) as u64;
            let (mut used, mut finished, mut since) = (fresh, 0, None);
            let mut wraps: Vec<usize> = Vec::new();
            for (turn, grown) in turns.into_iter().enumerate() {
                // A window that is full is trimmed.
                used = (used + (window as f64 * grown) as u64).min(window);
                finished += 1;
                since = since.map(|turns: u32| turns + 1);
                let load = Load { window, used, fresh, finished_turns: finished, since_wrap: since };
                if load.decide(WrapMode::Auto) == WrapDecision::Do {
                    wraps.push(turn);
                    (used, finished, since) = (fresh, 0, Some(0));
                }
            }
            for pair in wraps.windows(2) {
                prop_assert!(pair[1] - pair[0] > 10, "{wraps:?}");
            }
        }
    }
}
