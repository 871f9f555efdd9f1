//! What may be spent: money per turn, day and month, over everything that asks a model (spec: agent §1 *Budgets*).
//!
//! What a request may come to is reserved in its generation's row, in the transaction that begins it, if it still
//! fits beside what was spent and what runs in the home: several requests at once, of whichever processes, cannot each
//! take the last of it. At the limit whoever is there is asked; a yes holds for the turn, or for the tree in that day
//! or month, and for nothing else of the process. With nobody there the request is refused, and nothing was sent.
//! A local model without prices costs nothing; a remote one whose price is not known has a number of tokens a day instead.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use jiff::tz::Offset;
use loom::{Millis, TreeId};
use model::Money;
use store::{LimitUse, Reservation, SpendLimits, Spending};

use crate::budget::{Budget, Limit};

/// Tokens a day of remote models whose price is not known.
pub const UNPRICED_TOKENS: u64 = 2_000_000;
/// Tokens of an answer that are reckoned with where nobody said how long it may be: what models may write at most is
/// so much more than what they write that no turn would fit.
pub const EXPECTED_OUTPUT: u64 = 4_096;

const DAY: i64 = 86_400_000;
/// Billionths of a dollar in a micro-dollar.
pub(crate) const NANOS: u64 = 1_000;
const CENT: u64 = 10_000_000;

/// Spending of a home, as this process limits it.
#[derive(Debug, Default)]
pub struct SpendLimiter {
    budget: Budget,
    state: Mutex<State>,
}

/// Requests that a limit is counted over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Period {
    /// Requests of one turn, by its name.
    Turn(String),
    /// Requests of a day or a month, by when it began.
    Since(Millis),
}

impl Period {
    /// The requests that a limit is counted over for one of them.
    fn of(limit: Limit, reservation: &Reservation) -> Self {
        match limit {
            Limit::Turn => Self::Turn(reservation.turn.clone()),
            Limit::Day | Limit::Unpriced => Self::Since(reservation.limits.day_began),
            Limit::Month => Self::Since(reservation.limits.month_began),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// By how much a limit was raised by a yes: for one tree, and there for one turn, day or month. Micro-dollars or
    /// tokens.
    raised: HashMap<(TreeId, Limit, Period), u64>,
    /// Limits and periods of which it was said that most is spent.
    told: HashSet<(Limit, Period)>,
}

impl State {
    /// Lets go what holds for a day or month before that of a reservation.
    fn forget_past(&mut self, reservation: &Reservation) {
        let is_past = |limit: Limit, period: &Period| {
            matches!(period, Period::Since(_)) && *period != Period::of(limit, reservation)
        };
        self.raised.retain(|(_, limit, period), _| !is_past(*limit, period));
        self.told.retain(|(limit, period)| !is_past(*limit, period));
    }

    /// Lets go what holds for a turn.
    fn forget_turn(&mut self, turn: &str) {
        let is_of = |period: &Period| matches!(period, Period::Turn(name) if name == turn);
        self.raised.retain(|(_, _, period), _| !is_of(period));
        self.told.retain(|(_, period)| !is_of(period));
    }
}

/// A turn whose model calls share `budget.turn`, until it is dropped.
#[derive(Debug)]
#[must_use = "what was allowed in the turn ends with it"]
pub struct TurnSpending {
    /// None where it is part of another one.
    limiter: Option<Arc<SpendLimiter>>,
    turn: String,
}

impl TurnSpending {
    pub(crate) const fn new(limiter: Arc<SpendLimiter>, turn: String) -> Self {
        Self { limiter: Some(limiter), turn }
    }

    /// Part of a turn that goes on, or has ended.
    pub(crate) const fn part_of(turn: String) -> Self {
        Self { limiter: None, turn }
    }

    /// The turn's name.
    pub fn turn(&self) -> &str {
        &self.turn
    }
}

impl Drop for TurnSpending {
    fn drop(&mut self) {
        self.limiter.iter().for_each(|limiter| limiter.state().forget_turn(&self.turn));
    }
}

/// A request that does not fit in a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Excess {
    pub(crate) limit: Limit,
    beside: LimitUse,
    /// The amount that a yes adds to the limit, so that the request fits: a multiple of the configured one.
    raise: u64,
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

    /// A reservation with the limits of its turn as of now, raised where that was allowed.
    pub(crate) fn reservation(
        &self,
        (tree, turn): (TreeId, &str),
        (micro_dollars, tokens): (u64, u64),
        now: Millis,
    ) -> Reservation {
        let limits = SpendLimits {
            turn: self.configured(Limit::Turn),
            day: self.configured(Limit::Day),
            month: self.configured(Limit::Month),
            tokens: self.configured(Limit::Unpriced),
            day_began: start_of_day(now),
            month_began: start_of_month(now),
        };
        let plain = Reservation { turn: turn.to_owned(), micro_dollars, tokens, limits };
        let mut state = self.state();
        state.forget_past(&plain);
        let raised = |limit: Limit, most: u64| {
            let raised = state.raised.get(&(tree, limit, Period::of(limit, &plain)));
            most.saturating_add(raised.copied().unwrap_or_default())
        };
        let limits = SpendLimits {
            turn: raised(Limit::Turn, limits.turn),
            day: raised(Limit::Day, limits.day),
            month: raised(Limit::Month, limits.month),
            tokens: raised(Limit::Unpriced, limits.tokens),
            ..limits
        };
        Reservation { limits, ..plain }
    }

    /// The limit as it is configured, in micro-dollars or tokens.
    const fn configured(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Turn => self.budget.turn.0 / NANOS,
            Limit::Day => self.budget.day.0 / NANOS,
            Limit::Month => self.budget.month.0 / NANOS,
            Limit::Unpriced => UNPRICED_TOKENS,
        }
    }

    /// Raises a limit for the turn, day or month of a request, in its tree.
    pub(crate) fn raise(&self, tree: TreeId, reservation: &Reservation, over: &Excess) {
        let period = Period::of(over.limit, reservation);
        let mut state = self.state();
        let raised = state.raised.entry((tree, over.limit, period)).or_default();
        *raised = raised.saturating_add(over.raise);
    }

    /// The first limit a request does not fit in. Also limits most of which are spent with it, once in each turn, day
    /// or month.
    pub(crate) fn look(
        &self,
        reservation: &Reservation,
        spending: &Spending,
    ) -> (Option<Excess>, Vec<Limit>) {
        let mut told = Vec::new();
        for (limit, beside) in Limit::ALL.into_iter().zip(reservation.beside(spending)) {
            if beside.is_over() {
                let LimitUse { used, asked, most } = beside;
                let (missing, amount) =
                    (used.saturating_add(asked).saturating_sub(most), self.configured(limit).max(1));
                let raise = missing.div_ceil(amount).saturating_mul(amount);
                return (Some(Excess { limit, beside, raise }), told);
            }
            // A fifth of it is left, or less.
            let reached = beside.used.saturating_add(beside.asked);
            let is_near = beside.asked > 0 && reached >= beside.most / 5 * 4;
            if is_near && self.state().told.insert((limit, Period::of(limit, reservation))) {
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

    pub(crate) fn refusal(&self) -> String {
        let LimitUse { used, asked, most } = self.beside;
        let spent = if used > 0 {
            format!(", of which {} is spent or reserved", self.amount(used))
        } else {
            String::new()
        };
        let (asked, most) = (self.amount(asked), self.amount(most));
        format!("this request may cost up to {asked}; the limit of {} is {most}{spent}", self.limit.scope())
    }

    pub(crate) fn question(&self) -> String {
        let period = match self.limit {
            Limit::Turn => "in this turn",
            Limit::Day | Limit::Unpriced => "in this tree today (UTC)",
            Limit::Month => "in this tree this month (UTC)",
        };
        format!("{}. Send it, and allow {} more {period}?", self.refusal(), self.amount(self.raise))
    }
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

    const TREE: TreeId = TreeId::from_bytes([1; 16]);
    const OTHER: TreeId = TreeId::from_bytes([2; 16]);

    fn of(dollars: f64, tokens: u64, limiter: &SpendLimiter) -> Reservation {
        at(dollars, tokens, limiter, (TREE, "one", 0))
    }

    /// A request of a turn in a tree, on a day.
    fn at(
        dollars: f64,
        tokens: u64,
        limiter: &SpendLimiter,
        (tree, turn, day): (TreeId, &str, i64),
    ) -> Reservation {
        let micro_dollars = Money::from_dollars(dollars).0 / NANOS;
        limiter.reservation((tree, turn), (micro_dollars, tokens), Millis(day * DAY))
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
    fn a_yes_raises_a_limit_by_as_much_as_the_request_needs_and_nothing_else() {
        let limiter = SpendLimiter::default();
        let is_over = |dollars, place, spent| {
            limiter.look(&at(dollars, 0, &limiter, place), &spent).0.map(|over| over.limit)
        };
        let (here, later) = ((TREE, "one", 0), (TREE, "two", 0));
        let asked = of(2.5, 0, &limiter);
        let over = limiter.look(&asked, &Spending::default()).0.unwrap();
        assert_eq!((over.limit, over.raise), (Limit::Turn, 2_000_000));
        limiter.raise(TREE, &asked, &over);
        assert_eq!(is_over(2.5, here, Spending::default()), None);
        assert_eq!(is_over(2.5, later, Spending::default()), Some(Limit::Turn), "a later turn");
        assert_eq!(is_over(2.5, (OTHER, "one", 0), Spending::default()), Some(Limit::Turn), "another tree");
        // What is raised already is counted: a second yes adds what its question says.
        let more = of(2.0, 0, &limiter);
        let over = limiter.look(&more, &spent(2.5, 2.5, 2.5, 0)).0.unwrap();
        assert_eq!((over.limit, over.raise), (Limit::Turn, 2_000_000));
        limiter.raise(TREE, &more, &over);
        assert_eq!(is_over(2.0, here, spent(2.5, 2.5, 2.5, 0)), None);

        let day = limiter.look(&more, &spent(0.0, 4.0, 4.0, 0)).0.unwrap();
        assert_eq!((day.limit, day.raise), (Limit::Day, 5_000_000), "another limit stays as it is");
        limiter.raise(TREE, &more, &day);
        let full = spent(0.0, 4.6, 4.6, 0);
        assert_eq!(is_over(0.5, later, full), None, "the rest of the day in this tree");
        assert_eq!(is_over(0.5, (OTHER, "two", 0), full), Some(Limit::Day), "another session");
        assert_eq!(is_over(0.5, (TREE, "two", 1), full), Some(Limit::Day), "the next day");
    }

    #[test]
    fn a_limit_of_nothing_is_raised_by_what_the_request_may_cost() {
        let limiter = SpendLimiter::new(Budget { turn: Money::ZERO, ..Budget::default() });
        let over = limiter.look(&of(0.25, 0, &limiter), &Spending::default()).0.unwrap();
        assert_eq!((over.limit, over.raise), (Limit::Turn, 250_000));
    }

    #[test]
    fn the_question_names_cost_limit_and_what_a_yes_allows() {
        let limiter = SpendLimiter::default();
        let asked = |dollars, spent| {
            limiter.look(&of(dollars, 0, &limiter), &spent).0.map(|over| over.question()).unwrap_or_default()
        };
        assert_eq!(
            asked(1.4658, Spending::default()),
            "this request may cost up to $1.47; the limit of one turn is $1.00. Send it, and allow $1.00 more in this \
             turn?"
        );
        assert_eq!(
            asked(0.5, spent(0.0, 4.6, 4.6, 0)),
            "this request may cost up to $0.5000; the limit of a day is $5.00, of which $4.60 is spent or reserved. \
             Send it, and allow $5.00 more in this tree today (UTC)?"
        );
    }

    #[test]
    fn four_fifths_are_said_once_in_each_turn_and_day() {
        let limiter = SpendLimiter::default();
        let in_turn =
            |turn, dollars, spent| limiter.look(&at(dollars, 0, &limiter, (TREE, turn, 0)), &spent).1;
        let told = |dollars, spent| in_turn("one", dollars, spent);
        assert!(told(0.4, Spending::default()).is_empty());
        assert_eq!(told(0.4, spent(0.4, 0.4, 0.4, 0)), [Limit::Turn]);
        assert_eq!(told(0.1, spent(0.0, 4.0, 4.0, 0)), [Limit::Day]);
        assert!(told(0.1, spent(0.0, 4.0, 4.0, 0)).is_empty());
        assert_eq!(in_turn("two", 0.8, spent(0.0, 4.0, 4.0, 0)), [Limit::Turn], "of the day it was said");
        assert!(in_turn("one", 0.8, spent(0.0, 4.0, 4.0, 0)).is_empty(), "turns that alternate");
        assert!(in_turn("two", 0.8, spent(0.0, 4.0, 4.0, 0)).is_empty());
    }

    #[test]
    fn what_holds_for_a_turn_or_a_day_goes_with_it() {
        let limiter = Arc::new(SpendLimiter::default());
        let turn = TurnSpending::new(Arc::clone(&limiter), "one".to_owned());
        let held = || {
            let state = limiter.state();
            (state.raised.len(), state.told.len())
        };
        let asked = at(2.5, 0, &limiter, (TREE, turn.turn(), 0));
        let over = limiter.look(&asked, &Spending::default()).0.unwrap();
        limiter.raise(TREE, &asked, &over);
        let asked = at(2.5, 0, &limiter, (TREE, turn.turn(), 0));
        let day = limiter.look(&asked, &spent(0.0, 4.0, 4.0, 0)).0.unwrap();
        assert_eq!(day.limit, Limit::Day);
        limiter.raise(TREE, &asked, &day);
        assert_eq!(held(), (2, 1));
        drop(turn);
        assert_eq!(held(), (1, 0), "the day is not over");
        of(0.1, 0, &limiter);
        assert_eq!(held(), (1, 0));
        at(0.1, 0, &limiter, (TREE, "two", 1));
        assert_eq!(held(), (0, 0));
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
