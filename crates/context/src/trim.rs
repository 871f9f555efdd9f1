//! What gives way when the next request does not fit (spec: context §2 *Trims*, §3 *History*, *The running turn*).
//!
//! Trims are rare and large: every one of them costs the cache everything behind it. So one leaves room for many
//! turns, and what it cut stays cut.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimator;
use crate::history::turns;
use crate::manifest::KeptCallPart;
use crate::pairs::{Pair, Pairs};
use crate::piece::ContextError;
use crate::render_history::Spoken;

/// What a trim leaves of the room for history, in percent.
const LEAVES: u64 = 60;
/// Calls of the running turn that are never cut, from the newest.
const NEWEST: usize = 2;

/// How a conversation that is too long is cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The oldest turns leave.
    #[default]
    Rolling,
    /// The first turn stays, and the newest; a mark stands between them.
    TruncateMiddle,
    /// Nothing leaves: the conversation ends.
    StopAtLimit,
}

/// The first node of a window that fits into `room` tokens, with the calls cut that have to be. Turns leave whole;
/// the newest stays.
///
/// # Errors
/// [`ContextError::TooLong`] when the newest turn does not fit, or nothing may leave.
pub(crate) fn fit(
    spoken: &[Spoken],
    pairs: &mut Pairs,
    (room, complete): (u64, bool),
    strategy: Strategy,
    estimator: &Estimator,
) -> Result<usize, ContextError> {
    let costs = pairs.costs(spoken, estimator);
    let total: u64 = costs.iter().sum();
    if complete && total <= room {
        return Ok(0);
    }
    if strategy == Strategy::StopAtLimit {
        return Err(ContextError::TooLong {
            what: "the conversation, of which nothing may leave (context.strategy),".to_owned(),
            needed: total,
            budget: room,
        });
    }
    let target = room * LEAVES / 100;
    let starts = turns(spoken);
    let mut from = starts.last().copied().unwrap_or(0);
    let mut used: u64 = costs[from..].iter().sum();
    if used > room {
        used = cut(spoken, pairs, from, used, target, estimator);
        if used > room {
            return Err(ContextError::TooLong {
                what: "the newest turn".to_owned(),
                needed: used,
                budget: room,
            });
        }
    }
    for start in starts.into_iter().rev().skip(1) {
        used += costs[start..from].iter().sum::<u64>();
        if used > target {
            break;
        }
        from = start;
    }
    Ok(from)
}

/// Cuts calls of the turn that begins at `from`, oldest first, down to `target` tokens as far as that can be:
/// results are shortened, then calls leave with their results. Returns the tokens it has then.
fn cut(
    spoken: &[Spoken],
    pairs: &mut Pairs,
    from: usize,
    mut used: u64,
    target: u64,
    estimator: &Estimator,
) -> u64 {
    let within: Vec<Pair> = pairs.all.iter().filter(|pair| pair.call.0 >= from).copied().collect();
    let older = &within[..within.len().saturating_sub(NEWEST)];
    for kept in [KeptCallPart::Shortened, KeptCallPart::Nothing] {
        for pair in older {
            if used <= target {
                return used;
            }
            let now = pairs.tokens(spoken, pair, pairs.cut(spoken, pair), estimator);
            let then = pairs.tokens(spoken, pair, Some(kept), estimator);
            if then < now {
                pairs.set(spoken, pair, kept);
                used -= now - then;
            }
        }
    }
    used
}
