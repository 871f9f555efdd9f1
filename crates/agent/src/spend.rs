//! What may be spent: money per turn, day and month, over everything that asks a model (spec: agent §1 *Budgets*).
//!
//! What a request may come to is reserved in its generation's row, in the transaction that begins it, if it still
//! fits beside what was spent and what runs in the home: several requests at once, of whichever processes, cannot each
//! take the last of it. At the limit whoever is there is asked; with nobody there the request is refused, and nothing
//! was sent. Local models cost nothing; a remote one whose price is not known has
//! a number of tokens a day instead.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use jiff::tz::Offset;
use loom::Millis;
use model::{ModelPlace, Money};
use store::{LimitUse, Principal, Reservation, SpendLimits, Spending};

use crate::call::Call;
use crate::error::AgentError;
use crate::prepared_request::PreparedRequest;
use crate::questions::{Decision, QuestionContext, QuestionKind};
use crate::request::GenerationRequest;
use crate::runtime::Runtime;

/// Tokens a day of remote models whose price is not known.
pub const UNPRICED_TOKENS: u64 = 2_000_000;
/// Tokens of an answer that are reckoned with where nobody said how long it may be: what models may write at most is
/// so much more than what they write that no turn would fit.
pub const EXPECTED_OUTPUT: u64 = 4_096;

const DAY: i64 = 86_400_000;
const NANOS: u64 = 1_000;
const CENT: u64 = 10_000_000;

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
    /// [`UNPRICED_TOKENS`].
    Unpriced,
}

impl Limit {
    /// In the order in which the store compares them.
    const ALL: [Self; 4] = [Self::Turn, Self::Day, Self::Month, Self::Unpriced];

    /// What it limits.
    const fn of(self) -> &'static str {
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

/// Spending of a home, as this process limits it.
#[derive(Debug, Default)]
pub struct SpendLimiter {
    budget: Budget,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often a limit was lifted by its own amount, each time after a yes.
    lifted: HashMap<Limit, u64>,
    /// Limits of which it was said that most of it is spent.
    told: HashSet<Limit>,
}

/// A request that does not fit in a limit.
#[derive(Debug, Clone, Copy)]
struct Excess {
    limit: Limit,
    beside: LimitUse,
}

impl SpendLimiter {
    /// Limits spending to a budget.
    pub fn new(budget: Budget) -> Self {
        Self { budget, state: Mutex::default() }
    }

    pub const fn budget(&self) -> Budget {
        self.budget
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be reserved for a request, if it fits beside what the home has spent and reserved; none where it
    /// costs nothing. The store looks once more when it reserves it.
    ///
    /// # Errors
    /// [`AgentError::Budget`] when it does not fit and nobody says to go on.
    pub(crate) async fn admit(
        &self,
        runtime: &Runtime,
        call: &Call,
        ask: &GenerationRequest,
        prepared: &PreparedRequest,
        group: &str,
    ) -> Result<Option<Reservation>, AgentError> {
        let info = ask.model.info();
        let output = u64::from(ask.choices()) * expected_output(ask, prepared);
        let (money, tokens) = match (info.place, info.prices) {
            (ModelPlace::Local, None) => (Money::ZERO, 0),
            (_, Some(prices)) => (prices.estimate(prepared.manifest.tokens, output), 0),
            (ModelPlace::Remote, None) => (Money::ZERO, prepared.manifest.tokens + output),
        };
        if (money, tokens) == (Money::ZERO, 0) {
            return Ok(None);
        }
        let micro_dollars = money.0.div_ceil(NANOS);
        let turn = ask.part_of.map_or_else(|| group.to_owned(), |seq| seq.to_string());
        let mut is_recovered = false;
        loop {
            let limits = self.limits(runtime.now());
            let reservation = Reservation { turn: turn.clone(), micro_dollars, tokens, limits };
            let spending = runtime.store.spending(&Principal::Owner, ask.tree, &reservation).await?;
            let (over, most_spent) = self.look(&reservation, &spending);
            for limit in most_spent {
                call.note(format!("80 % of {limit} is spent ({} sets it)", limit.key()));
            }
            let Some(over) = over else { return Ok(Some(reservation)) };
            if !std::mem::replace(&mut is_recovered, true) {
                // What a process that died had reserved is free again.
                Box::pin(runtime.recover(call.events.as_ref())).await?;
                continue;
            }
            let asker = QuestionContext { call, tree: ask.tree, guards: &ask.guards };
            if runtime.ask(&asker, QuestionKind::Budget, over.question()).await? == Decision::Denied {
                return Err(AgentError::Budget { limit: over.limit, message: over.refusal() });
            }
            *self.state().lifted.entry(over.limit).or_default() += over.steps();
        }
    }

    /// The limits as of now, with what was lifted.
    fn limits(&self, now: Millis) -> SpendLimits {
        let state = self.state();
        let most =
            |limit, most: u64| most.saturating_mul(1 + state.lifted.get(&limit).copied().unwrap_or_default());
        let micro = |limit, money: Money| most(limit, money.0 / NANOS);
        SpendLimits {
            turn: micro(Limit::Turn, self.budget.turn),
            day: micro(Limit::Day, self.budget.day),
            month: micro(Limit::Month, self.budget.month),
            tokens: most(Limit::Unpriced, UNPRICED_TOKENS),
            day_began: start_of_day(now),
            month_began: start_of_month(now),
        }
    }

    /// The first limit a request does not fit in. Also limits most of which are spent with it, once each.
    fn look(&self, reservation: &Reservation, spending: &Spending) -> (Option<Excess>, Vec<Limit>) {
        let mut told = Vec::new();
        for (limit, beside) in Limit::ALL.into_iter().zip(reservation.beside(spending)) {
            if beside.is_over() {
                return (Some(Excess { limit, beside }), told);
            }
            // A fifth of it is left, or less.
            let reached = beside.used.saturating_add(beside.asked);
            if beside.asked > 0 && reached >= beside.most / 5 * 4 && self.state().told.insert(limit) {
                told.push(limit);
            }
        }
        (None, told)
    }
}

impl Excess {
    fn amount(&self, amount: u64) -> String {
        let money = Money(amount.saturating_mul(NANOS));
        match self.limit {
            Limit::Unpriced => format!("{amount} tokens"),
            // From a dollar on in cents, rounded up.
            _ if money >= Money::from_dollars(1.0) => Money(money.0.div_ceil(CENT) * CENT).to_string(),
            _ => money.to_string(),
        }
    }

    fn refusal(&self) -> String {
        let LimitUse { used, asked, most } = self.beside;
        let spent = if used > 0 {
            format!(", of which {} is spent or reserved", self.amount(used))
        } else {
            String::new()
        };
        let (asked, most) = (self.amount(asked), self.amount(most));
        format!("this request may cost up to {asked}; the limit of {} is {most}{spent}", self.limit.of())
    }

    fn question(&self) -> String {
        let what = match self.limit {
            Limit::Turn => "allow as much for later turns in this terminal".to_owned(),
            _ => {
                let more = self.amount(self.beside.most.saturating_mul(self.steps()));
                format!("raise this limit by {more} in this terminal")
            }
        };
        format!("{}. Send it, and {what}?", self.refusal())
    }

    /// By how many times its own amount the limit is to be lifted, so that the request fits.
    fn steps(&self) -> u64 {
        let LimitUse { used, asked, most } = self.beside;
        used.saturating_add(asked).saturating_sub(most).div_ceil(most.max(1)).max(1)
    }
}

/// Tokens of the answer that are reckoned with.
fn expected_output(ask: &GenerationRequest, prepared: &PreparedRequest) -> u64 {
    let reserved = prepared.manifest.budget.reserved_output;
    if ask.params.max_tokens.is_some() { reserved } else { reserved.min(EXPECTED_OUTPUT) }
}

/// When the day began, by UTC.
pub const fn start_of_day(now: Millis) -> Millis {
    Millis(now.0.div_euclid(DAY) * DAY)
}

/// When the month began, by UTC.
pub fn start_of_month(now: Millis) -> Millis {
    let first =
        Timestamp::from_millisecond(now.0).map(|now| Offset::UTC.to_datetime(now).first_of_month().date());
    let began = first.and_then(|first| Offset::UTC.to_timestamp(first.into()));
    // A time beyond the calendar is of no month but its own.
    began.map_or(now, |began| Millis(began.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dollars: f64, tokens: u64, limiter: &SpendLimiter) -> Reservation {
        let micro_dollars = Money::from_dollars(dollars).0 / NANOS;
        Reservation { turn: String::new(), micro_dollars, tokens, limits: limiter.limits(Millis(0)) }
    }

    fn spent(turn: f64, day: f64, month: f64, tokens: u64) -> Spending {
        let micro = |dollars| Money::from_dollars(dollars).0 / NANOS;
        Spending { turn: micro(turn), day: micro(day), month: micro(month), tokens }
    }

    #[test]
    fn each_limit_stops_what_does_not_fit_and_nothing_else() {
        let limiter = SpendLimiter::default();
        let limit = |dollars, tokens, spent| {
            limiter.look(&of(dollars, tokens, &limiter), &spent).0.map(|over| over.limit)
        };
        assert_eq!(limit(1.0, 0, Spending::default()), None);
        assert_eq!(limit(1.01, 0, Spending::default()), Some(Limit::Turn));
        assert_eq!(limit(0.6, 0, spent(0.6, 0.6, 0.6, 0)), Some(Limit::Turn), "with what its turn has spent");
        assert_eq!(limit(0.5, 0, spent(0.0, 4.6, 4.6, 0)), Some(Limit::Day));
        assert_eq!(limit(0.5, 0, spent(0.0, 0.0, 49.6, 0)), Some(Limit::Month));
        assert_eq!(limit(0.5, 0, spent(0.5, 4.4, 49.4, 0)), None);
        assert_eq!(limit(0.0, 1_000, spent(0.0, 0.0, 0.0, 1_999_001)), Some(Limit::Unpriced));
        assert_eq!(limit(0.0, 1_000, spent(0.0, 0.0, 0.0, 1_999_000)), None);
        // Tokens without a price do not care for money, nor the other way.
        assert_eq!(limit(0.0, 1_000, spent(0.0, 9.0, 90.0, 0)), None);
    }

    #[test]
    fn a_limit_is_lifted_by_as_much_as_the_request_needs() {
        let limiter = SpendLimiter::default();
        let over = limiter.look(&of(2.5, 0, &limiter), &Spending::default()).0.unwrap();
        assert_eq!((over.limit, over.steps()), (Limit::Turn, 2));
        *limiter.state().lifted.entry(over.limit).or_default() += over.steps();
        assert!(limiter.look(&of(2.5, 0, &limiter), &Spending::default()).0.is_none());
        let day = limiter.look(&of(2.5, 0, &limiter), &spent(0.0, 3.0, 3.0, 0)).0.unwrap();
        assert_eq!(day.limit, Limit::Day, "another limit stays as it is");
    }

    #[test]
    fn the_question_names_cost_limit_and_what_a_yes_allows() {
        let limiter = SpendLimiter::default();
        let asked = |dollars, spent| {
            limiter.look(&of(dollars, 0, &limiter), &spent).0.map(|over| over.question()).unwrap_or_default()
        };
        assert_eq!(
            asked(1.4658, Spending::default()),
            "this request may cost up to $1.47; the limit of one turn is $1.00. Send it, and allow as much for later \
             turns in this terminal?"
        );
        assert_eq!(
            asked(0.5, spent(0.0, 4.6, 4.6, 0)),
            "this request may cost up to $0.5000; the limit of a day is $5.00, of which $4.60 is spent or reserved. \
             Send it, and raise this limit by $5.00 in this terminal?"
        );
    }

    #[test]
    fn four_fifths_are_said_once() {
        let limiter = SpendLimiter::default();
        let told = |dollars, spent| limiter.look(&of(dollars, 0, &limiter), &spent).1;
        assert!(told(0.4, Spending::default()).is_empty());
        assert_eq!(told(0.4, spent(0.4, 0.4, 0.4, 0)), [Limit::Turn]);
        assert_eq!(told(0.1, spent(0.0, 4.0, 4.0, 0)), [Limit::Day]);
        assert!(told(0.1, spent(0.0, 4.0, 4.0, 0)).is_empty());
    }

    #[test]
    fn days_and_months_begin_by_utc() {
        // 2024-02-29 12:00 and 2026-11-22 06:00.
        assert_eq!(start_of_day(Millis(1_709_208_000_000)), Millis(1_709_164_800_000));
        assert_eq!(start_of_month(Millis(1_709_208_000_000)), Millis(1_706_745_600_000));
        assert_eq!(start_of_month(Millis(1_795_327_200_000)), Millis(1_793_491_200_000));
        assert_eq!(start_of_month(Millis(0)), Millis(0));
    }
}
