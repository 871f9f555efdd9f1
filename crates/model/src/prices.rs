//! What tokens cost. All sums are whole numbers: a price is in micro-dollars for a million tokens, an amount in
//! nano-dollars, so that adding up a month loses nothing.
//!
//! A price that is not known is `None` wherever it could stand; it is never taken for zero (spec: agent §1 *Budgets*).

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::event::TokenUsage;

/// An amount in nano-dollars (10⁻⁹ of a US dollar).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    pub const ZERO: Self = Self(0);

    /// An amount in dollars; less than nothing, and what is no number, is nothing.
    pub fn from_dollars(dollars: f64) -> Self {
        // The conversion keeps to the range by itself.
        Self((dollars * 1e9).round() as u64)
    }

    /// The amount in dollars, for people and for JSON.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// What is left after some of it is gone; nothing, if that is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    /// `$1.50`; below a dollar to the hundredth of a cent, so that one request is not shown as nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = 10_000_000;
        if self.0 == 0 || (self.0 >= 100 * cents && self.0.is_multiple_of(cents)) || self.0 >= 1_000 * cents {
            return write!(f, "${:.2}", self.dollars());
        }
        if self.0 < cents / 100 { f.write_str("<$0.0001") } else { write!(f, "${:.4}", self.dollars()) }
    }
}

/// Prices in micro-dollars for a million tokens: 1,250,000 are $1.25.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Input that came from no cache.
    pub input: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    pub output: u64,
}

impl Rates {
    pub const FREE: Self = Self { input: 0, cache_read: 0, cache_write: 0, output: 0 };

    /// What a request came to, rounded up to a nano-dollar.
    fn cost(&self, usage: &TokenUsage) -> Money {
        let product = |tokens: u64, rate: u64| u128::from(tokens) * u128::from(rate);
        let sum = product(usage.input_uncached, self.input)
            + product(usage.cache_read, self.cache_read)
            + product(usage.cache_write, self.cache_write)
            + product(usage.output, self.output);
        // Micro-dollars for a million tokens are thousandths of a nano-dollar for one.
        Money(u64::try_from(sum.div_ceil(1_000)).unwrap_or(u64::MAX))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    pub base: Rates,
    /// Other prices for requests with a long input.
    #[serde(default)]
    pub long: Option<LongInput>,
}

/// Prices of a request whose input is longer than this; they hold for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongInput {
    /// The longest input at the usual prices, in tokens.
    pub above: u64,
    pub rates: Rates,
}

impl Prices {
    /// A model that costs nothing but time.
    pub const FREE: Self = Self { base: Rates::FREE, long: None };

    /// Prices that do not depend on the length of the input.
    pub const fn flat(base: Rates) -> Self {
        Self { base, long: None }
    }

    /// What a request came to.
    pub fn cost(&self, usage: &TokenUsage) -> Money {
        let input = usage.input();
        match self.long {
            Some(long) if input > long.above => long.rates.cost(usage),
            _ => self.base.cost(usage),
        }
    }

    /// What a request may come to, before it is sent: all of its input new, or written to the cache if that is
    /// dearer.
    pub fn estimate(&self, input: u64, output: u64) -> Money {
        let new = TokenUsage { input_uncached: input, output, ..TokenUsage::default() };
        let written = TokenUsage { cache_write: input, output, ..TokenUsage::default() };
        self.cost(&new).max(self.cost(&written))
    }

    /// Input and output for people, as `$1.25 in, $10.00 out per million tokens`.
    pub fn in_words(&self) -> String {
        if *self == Self::FREE {
            return "free".to_owned();
        }
        let dollars = |rate: u64| format!("${:.2}", rate as f64 / 1e6);
        // A price of less than a cent still is one.
        let shown = |rate: u64| {
            if rate.is_multiple_of(10_000) { dollars(rate) } else { format!("${}", rate as f64 / 1e6) }
        };
        format!("{} in, {} out per million tokens", shown(self.base.input), shown(self.base.output))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SONNET: Prices = Prices {
        base: Rates { input: 3_000_000, cache_read: 300_000, cache_write: 3_750_000, output: 15_000_000 },
        long: Some(LongInput {
            above: 200_000,
            rates: Rates {
                input: 6_000_000,
                cache_read: 600_000,
                cache_write: 7_500_000,
                output: 22_500_000,
            },
        }),
    };

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = TokenUsage {
            input_uncached: 1_000,
            cache_read: 10_000,
            cache_write: 2_000,
            output: 500,
            reasoning: 400,
        };
        // 0.003 + 0.003 + 0.0075 + 0.0075
        assert_eq!(SONNET.cost(&usage), Money(21_000_000));
        assert_eq!(SONNET.cost(&usage).to_string(), "$0.0210");
        assert_eq!(Prices::FREE.cost(&usage), Money::ZERO);
    }

    #[test]
    fn a_long_input_has_the_long_price_for_all_of_it() {
        let of = |input| SONNET.cost(&TokenUsage { input_uncached: input, ..TokenUsage::default() });
        assert_eq!(of(200_000), Money(600_000_000));
        assert_eq!(of(200_001), Money(1_200_006_000));
    }

    #[test]
    fn amounts_are_shown_so_that_little_is_not_nothing() {
        let shown = |dollars| Money::from_dollars(dollars).to_string();
        assert_eq!(
            [0.0, 0.000_01, 0.0123, 1.0, 5.5, 1.2345, 50.0, 1234.567].map(shown),
            ["$0.00", "<$0.0001", "$0.0123", "$1.00", "$5.50", "$1.2345", "$50.00", "$1234.57"]
        );
        assert_eq!(Money::from_dollars(-1.0), Money::ZERO);
        assert_eq!(Money::from_dollars(f64::NAN), Money::ZERO);
    }

    #[test]
    fn prices_are_words() {
        assert_eq!(SONNET.in_words(), "$3.00 in, $15.00 out per million tokens");
        assert_eq!(Prices::FREE.in_words(), "free");
        let tiny = Prices::flat(Rates { input: 37_500, ..Rates::FREE });
        assert_eq!(tiny.in_words(), "$0.0375 in, $0.00 out per million tokens");
    }

    proptest! {
        #[test]
        fn an_estimate_is_never_below_what_the_same_tokens_cost(
            new in 0_u64..400_000, read in 0_u64..400_000, written in 0_u64..400_000, output in 0_u64..50_000,
        ) {
            let usage = TokenUsage { input_uncached: new, cache_read: read, cache_write: written, output, reasoning: 0 };
            prop_assert!(SONNET.estimate(new + read + written, output) >= SONNET.cost(&usage));
        }
    }
}
