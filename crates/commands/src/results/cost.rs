//! Results of `cost`.

use std::fmt;

use model::Money;
use serde::Serialize;

use crate::args::cost::{CostGrouping, Period};

/// `cost`. Amounts are in dollars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Costs {
    /// Since when.
    pub period: Period,
    /// What the rows are about.
    pub by: CostGrouping,
    /// Everything whose price is known.
    pub total: f64,
    /// The currency.
    pub currency: &'static str,
    /// Tokens whose price is not known; they are in no sum.
    pub unpriced_tokens: u64,
    /// The rows, the dearest first.
    pub rows: Vec<CostRow>,
    /// What may be spent.
    pub limits: LimitsShown,
}

/// What a session came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SessionCost {
    /// Everything whose price is known, in dollars.
    pub total: f64,
    /// Tokens whose price is not known.
    pub unpriced_tokens: u64,
}

impl fmt::Display for SessionCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, unpriced_tokens } = *self;
        match (total > 0.0, unpriced_tokens) {
            (_, 0) => write!(f, "{}", Money::from_dollars(total)),
            (true, tokens) => {
                write!(f, "{}, and {tokens} tokens without a known price", Money::from_dollars(total))
            }
            (false, tokens) => write!(f, "{tokens} tokens without a known price"),
        }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostRow {
    /// The model, purpose or conversation.
    pub key: String,
    /// Requests.
    pub calls: u64,
    /// Input that came from no cache; what was written to one is not in it, as far as that is known.
    pub input_uncached: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache; none where a server does not say it of some of it.
    pub cache_write: Option<u64>,
    /// Output.
    pub output: u64,
    /// What it cost; none where the price of some of it is not known.
    pub cost: Option<f64>,
}

/// What may be spent, and what was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LimitsShown {
    /// In a turn.
    pub turn: f64,
    /// In a day.
    pub day: f64,
    /// In a month.
    pub month: f64,
    /// Spent today.
    pub spent_today: f64,
    /// Spent this month.
    pub spent_this_month: f64,
    /// That of the day's, 0 to 1; none where nothing may be spent.
    pub share_of_day: Option<f64>,
    /// That of the month's.
    pub share_of_month: Option<f64>,
}
