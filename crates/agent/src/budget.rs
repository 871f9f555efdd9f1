//! Limits of spending, as a configuration sets them (spec: agent §1 *Budgets*).

use std::fmt;

use model::Money;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// In a turn: by its model calls together.
    pub turn: Money,
    /// In a day, by UTC.
    pub day: Money,
    /// In a month, by UTC.
    pub month: Money,
}

impl Default for Budget {
    fn default() -> Self {
        Self { turn: Money(1_000_000_000), day: Money(5_000_000_000), month: Money(50_000_000_000) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// `budget.turn`.
    Turn,
    /// `budget.day`.
    Day,
    /// `budget.month`.
    Month,
    /// [`crate::spend::UNPRICED_TOKENS`].
    Unpriced,
}

impl Limit {
    /// In the order in which the store compares them.
    pub(crate) const ALL: [Self; 4] = [Self::Turn, Self::Day, Self::Month, Self::Unpriced];

    /// The scope of a limit, as refusals name it.
    pub(crate) const fn scope(self) -> &'static str {
        match self {
            Self::Turn => "one turn",
            Self::Day => "a day",
            Self::Month => "a month",
            Self::Unpriced => "a day for models of unknown price",
        }
    }

    /// The key of the configuration that sets it.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Turn => "budget.turn",
            Self::Day => "budget.day",
            Self::Month => "budget.month",
            Self::Unpriced => "models.\"PROVIDER/NAME\".price_input and price_output",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turn => "the turn's budget",
            Self::Day => "the day's budget",
            Self::Month => "the month's budget",
            Self::Unpriced => "the day's tokens for models without a known price",
        })
    }
}
