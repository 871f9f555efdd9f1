//! What may be spent: money per turn, day and month, over everything that asks a model (spec: agent §1 *Budgets*).
//!
//! Before a request is made durable it is looked whether what it may come to still fits beside what was spent and
//! what is under way: several requests at once cannot each take the last of it. What was spent is read from the
//! store, so that it counts for every process of the home. At the limit whoever is there is asked; with nobody there
//! the request is refused, and nothing was sent. Local models cost nothing; a remote one whose price is not known has
//! a number of tokens a day instead.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use loom::{Millis, Seq, TreeId};
use model::{Money, Place};
use store::Principal;

use crate::call::Call;
use crate::error::AgentError;
use crate::questions::{Decision, QuestionKind};
use crate::request::{GenerationRequest, Prepared};
use crate::runtime::Runtime;

/// Tokens a day of remote models whose price is not known.
pub const UNPRICED_TOKENS: u64 = 2_000_000;
/// Tokens of an answer that are reckoned with where nobody said how long it may be: what models may write at most is
/// so much more than what they write that no turn would fit.
pub const EXPECTED_OUTPUT: u64 = 4_096;

const DAY: i64 = 86_400_000;

/// What may be spent.
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

/// One of the limits.
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

/// What a request may come to: money, or tokens where their price is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cost {
    money: Money,
    tokens: u64,
}

/// Which turn a request belongs to.
type Turn = (TreeId, Option<Seq>);

/// Spending of a process, and what of it is reserved.
#[derive(Debug, Default)]
pub struct SpendLimiter {
    budget: Budget,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests under way, by their turns.
    under_way: HashMap<Turn, Cost>,
    /// What turns of this process have spent.
    turns: HashMap<Turn, Money>,
    /// How often a limit was lifted by its own amount, each time after a yes.
    lifted: HashMap<Limit, u64>,
    /// Limits of which it was said that most of it is spent.
    told: HashSet<Limit>,
}

/// A request that calibration; its share is kept for it until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    limiter: &'a SpendLimiter,
    turn: Turn,
    cost: Cost,
}

/// What a limit is met with.
#[derive(Debug, Clone, Copy)]
struct Against {
    limit: Limit,
    /// Spent and under way.
    used: u64,
    /// What the request may come to.
    asked: u64,
    /// The limit as configured.
    most: u64,
}

impl SpendLimiter {
    /// Limits spending to a budget.
    pub fn new(budget: Budget) -> Self {
        Self { budget, state: Mutex::default() }
    }

    /// What may be spent.
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a request may come to.
    ///
    /// # Errors
    /// [`AgentError::Budget`] when it does not fit and nobody says to go on.
    pub(crate) async fn admit(
        &self,
        runtime: &Runtime,
        call: &Call,
        ask: &GenerationRequest,
        prepared: &Prepared,
    ) -> Result<Reservation<'_>, AgentError> {
        let turn = (ask.tree, ask.part_of);
        let info = ask.model.info();
        let output = u64::from(ask.params.n.max(1)) * expected_output(ask, prepared);
        let cost = match (info.place, info.prices) {
            (Place::Local, None) => Cost::default(),
            (_, Some(prices)) => Cost { money: prices.estimate(prepared.manifest.tokens, output), tokens: 0 },
            (Place::Remote, None) => Cost { money: Money::ZERO, tokens: prepared.manifest.tokens + output },
        };
        if cost == Cost::default() {
            return Ok(Reservation { limiter: self, turn, cost });
        }
        let spent = Spent::read(runtime).await?;
        loop {
            let (over, most_spent) = self.try_keep(turn, cost, &spent);
            for limit in most_spent {
                call.note(format!("80 % of {limit} is spent ({} sets it)", limit.key()));
            }
            let Some(over) = over else { return Ok(Reservation { limiter: self, turn, cost }) };
            if runtime.ask(call, QuestionKind::Budget, over.question()).await? == Decision::Denied {
                return Err(AgentError::Budget { limit: over.limit, message: over.refusal() });
            }
            *self.state().lifted.entry(over.limit).or_default() += over.steps();
        }
    }

    /// Keeps a share if it calibration; else says what it does not fit in. Also limits most of which are spent, once each.
    fn try_keep(&self, turn: Turn, cost: Cost, spent: &Spent) -> (Option<Against>, Vec<Limit>) {
        let mut state = self.state();
        let under_way = |of: &dyn Fn(&Turn) -> bool| {
            let mut all = Cost::default();
            for (_, cost) in state.under_way.iter().filter(|(turn, _)| of(turn)) {
                all.money += cost.money;
                all.tokens += cost.tokens;
            }
            all
        };
        let (everything, own) = (under_way(&|_| true), under_way(&|other| *other == turn));
        let of_turn = state.turns.get(&turn).copied().unwrap_or_default();
        let limits = [
            (Limit::Turn, of_turn + own.money, cost.money, self.budget.turn),
            (Limit::Day, spent.day + everything.money, cost.money, self.budget.day),
            (Limit::Month, spent.month + everything.money, cost.money, self.budget.month),
        ];
        let unpriced = Against {
            limit: Limit::Unpriced,
            used: spent.unpriced + everything.tokens,
            asked: cost.tokens,
            most: UNPRICED_TOKENS,
        };
        let against = limits.map(|(limit, used, asked, most)| Against {
            limit,
            used: used.0,
            asked: asked.0,
            most: most.0,
        });
        let mut told = Vec::new();
        for against in against.into_iter().chain([unpriced]).filter(|against| against.asked > 0) {
            let lifted = state.lifted.get(&against.limit).copied().unwrap_or_default();
            let most = against.most.saturating_mul(1 + lifted);
            let reached = against.used.saturating_add(against.asked);
            if reached > most {
                return (Some(Against { most, ..against }), told);
            }
            // A fifth of it is left, or less.
            if reached >= most / 5 * 4 && state.told.insert(against.limit) {
                told.push(against.limit);
            }
        }
        let kept = state.under_way.entry(turn).or_default();
        kept.money += cost.money;
        kept.tokens += cost.tokens;
        (None, told)
    }
}

impl Against {
    fn amount(&self, amount: u64) -> String {
        match self.limit {
            Limit::Unpriced => format!("{amount} tokens"),
            _ => Money(amount).to_string(),
        }
    }

    fn refusal(&self) -> String {
        let (used, asked, most) = (self.amount(self.used), self.amount(self.asked), self.amount(self.most));
        format!("{} is spent: {used} of {most}, and this request may come to {asked}", self.limit)
    }

    fn question(&self) -> String {
        format!("{}; go on?", self.refusal())
    }

    /// By how many times its own amount the limit is to be lifted, so that the request fits.
    fn steps(&self) -> u64 {
        let missing = self.used.saturating_add(self.asked).saturating_sub(self.most);
        missing.div_ceil(self.most.max(1)).max(1)
    }
}

impl Reservation<'_> {
    /// What the request came to, for the rest of its turn.
    pub(crate) fn spent(self, money: Money) {
        *self.limiter.state().turns.entry(self.turn).or_default() += money;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.limiter.state().under_way.get_mut(&self.turn) {
            kept.money = kept.money.less(self.cost.money);
            kept.tokens = kept.tokens.saturating_sub(self.cost.tokens);
        }
    }
}

/// Tokens of the answer that are reckoned with.
fn expected_output(ask: &GenerationRequest, prepared: &Prepared) -> u64 {
    let reserved = prepared.manifest.budget.reserved_output;
    if ask.params.max_tokens.is_some() { reserved } else { reserved.min(EXPECTED_OUTPUT) }
}

/// What was spent in the home.
#[derive(Debug)]
struct Spent {
    day: Money,
    month: Money,
    /// Tokens of the day whose price is not known.
    unpriced: u64,
}

impl Spent {
    async fn read(runtime: &Runtime) -> Result<Self, AgentError> {
        let now = runtime.now();
        let (today, month) = (start_of_day(now), start_of_month(now));
        let rows = runtime.store.usage(&Principal::Owner, None, month).await?;
        let mut spent = Self { day: Money::ZERO, month: Money::ZERO, unpriced: 0 };
        for row in rows {
            let usage = row.usage;
            let of_today = row.at >= today;
            match usage.micro_cost {
                Some(cost) => {
                    let cost = Money(cost.saturating_mul(1_000));
                    spent.month += cost;
                    spent.day += if of_today { cost } else { Money::ZERO };
                }
                None if of_today => spent.unpriced += usage.prompt_tokens + usage.completion_tokens,
                None => {}
            }
        }
        Ok(spent)
    }
}

/// When the day began, by UTC.
pub const fn start_of_day(now: Millis) -> Millis {
    Millis(now.0.div_euclid(DAY) * DAY)
}

/// When the month began, by UTC.
pub const fn start_of_month(now: Millis) -> Millis {
    let days = now.0.div_euclid(DAY);
    // The day of the month by the proleptic Gregorian calendar; years are counted from March, so that the odd day
    // of a leap year is the last one.
    let shifted = days + 719_468;
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5;
    Millis((days - of_month) * DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(number: u128) -> TreeId {
        TreeId::from_bytes(number.to_be_bytes())
    }

    fn nothing() -> Spent {
        Spent { day: Money::ZERO, month: Money::ZERO, unpriced: 0 }
    }

    fn dollars(dollars: f64) -> Cost {
        Cost { money: Money::from_dollars(dollars), tokens: 0 }
    }

    fn limit(limiter: &SpendLimiter, turn: Turn, cost: Cost, spent: &Spent) -> Option<Limit> {
        limiter.try_keep(turn, cost, spent).0.map(|over| over.limit)
    }

    #[test]
    fn each_limit_stops_what_does_not_fit_and_nothing_else() {
        let turn = (tree(1), None);
        let spent = |day, month| Spent {
            day: Money::from_dollars(day),
            month: Money::from_dollars(month),
            unpriced: 0,
        };
        let fresh = SpendLimiter::default;
        assert_eq!(limit(&fresh(), turn, dollars(1.0), &nothing()), None);
        assert_eq!(limit(&fresh(), turn, dollars(1.01), &nothing()), Some(Limit::Turn));
        assert_eq!(limit(&fresh(), turn, dollars(0.5), &spent(4.6, 4.6)), Some(Limit::Day));
        assert_eq!(limit(&fresh(), turn, dollars(0.5), &spent(0.0, 49.6)), Some(Limit::Month));
        assert_eq!(limit(&fresh(), turn, dollars(0.5), &spent(4.4, 49.4)), None);
        let tokens = Cost { money: Money::ZERO, tokens: 1_000 };
        assert_eq!(
            limit(&fresh(), turn, tokens, &Spent { unpriced: 1_999_001, ..nothing() }),
            Some(Limit::Unpriced)
        );
        assert_eq!(limit(&fresh(), turn, tokens, &Spent { unpriced: 1_999_000, ..nothing() }), None);
        // Tokens without a price do not care for money, nor the other way.
        assert_eq!(limit(&fresh(), turn, tokens, &spent(9.0, 90.0)), None);
    }

    #[test]
    fn what_is_under_way_counts_until_it_is_done() {
        let limiter = SpendLimiter::default();
        let turn = (tree(1), None);
        assert_eq!(limit(&limiter, turn, dollars(0.6), &nothing()), None);
        assert_eq!(
            limit(&limiter, turn, dollars(0.6), &nothing()),
            Some(Limit::Turn),
            "two at once do not fit"
        );
        assert_eq!(
            limit(&limiter, (tree(2), None), dollars(0.6), &nothing()),
            None,
            "another turn has its own"
        );
        Reservation { limiter: &limiter, turn, cost: dollars(0.6) }.spent(Money::from_dollars(0.1));
        assert_eq!(limit(&limiter, turn, dollars(0.6), &nothing()), None, "it came to less");
        drop(Reservation { limiter: &limiter, turn, cost: dollars(0.6) });
        assert_eq!(
            limit(&limiter, turn, dollars(0.95), &nothing()),
            Some(Limit::Turn),
            "and what it came to counts"
        );
    }

    #[test]
    fn four_fifths_are_said_once() {
        let limiter = SpendLimiter::default();
        let told = |limiter: &SpendLimiter| limiter.try_keep((tree(1), None), dollars(0.4), &nothing()).1;
        assert!(told(&limiter).is_empty());
        assert_eq!(told(&limiter), [Limit::Turn]);
        let spent = Spent { day: Money::from_dollars(4.0), ..nothing() };
        let other = |limiter: &SpendLimiter| limiter.try_keep((tree(2), None), dollars(0.1), &spent).1;
        assert_eq!(other(&limiter), [Limit::Day]);
        assert!(other(&limiter).is_empty());
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
