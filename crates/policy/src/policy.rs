//! The decision on a call: deny rules, ask rules, allow rules, then the table.

use crate::call::{Attendance, CallFacts, SessionFacts};
use crate::decision::{Decision, Reason, Repeat, RuleReason, Verdict};
use crate::exec_match::Match;
use crate::matching::{CallView, Item};
use crate::pattern::Pattern;
use crate::rule::PolicyRule;
use crate::table::{Loosening, OTHER, Row, RowId, rows, strictest};

/// Refusal of a set of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("policy rule {0} is about nothing: name a pattern in its `tool`")]
    NoPattern(usize),
}

/// Rules of the owner above the default table: the general ones, and those of one agent behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<PolicyRule>,
    of_agent: Option<AgentRules>,
}

/// Rules that hold for one agent alone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentRules {
    agent: String,
    rules: Vec<PolicyRule>,
}

impl Policy {
    /// # Errors
    /// The first rule without a pattern; rules are numbered from 1.
    pub fn new(rules: Vec<PolicyRule>) -> Result<Self, PolicyError> {
        for (rule, number) in rules.iter().zip(1..) {
            if rule.tool.is_empty() {
                return Err(PolicyError::NoPattern(number));
            }
        }
        Ok(Self { rules, of_agent: None })
    }

    /// The general rules with those of an agent besides. An allow rule of either goes behind each rule that asks or
    /// denies, so that an agent's rules loosen nothing that a general rule says.
    ///
    /// # Errors
    /// As [`Self::new`], of the agent's rules.
    pub fn for_agent(&self, agent: &str, rules: Vec<PolicyRule>) -> Result<Self, PolicyError> {
        let Self { rules, .. } = Self::new(rules)?;
        let of_agent = (!rules.is_empty()).then(|| AgentRules { agent: agent.to_owned(), rules });
        Ok(Self { rules: self.rules.clone(), of_agent })
    }

    /// The policy with one more general rule.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn with(&self, rule: &PolicyRule) -> Result<Self, PolicyError> {
        let with = Self::new(self.rules.iter().chain([rule]).cloned().collect())?;
        Ok(Self { of_agent: self.of_agent.clone(), ..with })
    }

    /// Whether there is no rule, neither a general one nor one of the agent.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.of_agent.is_none()
    }

    /// The general rules.
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// The rules of the agent.
    pub fn rules_of_agent(&self) -> &[PolicyRule] {
        self.of_agent.as_ref().map_or(&[], |own| &own.rules)
    }

    /// The general rules and then those of the agent, each with the agent whose it is and its place among the rules of that
    /// owner, from 0.
    pub fn placed_rules(&self) -> impl Iterator<Item = (Option<&str>, usize, &PolicyRule)> {
        self.all_rules().map(|PlacedRule { agent, index, rule }| (agent, index, rule))
    }

    /// All rules, each with the agent whose it is and its place among the rules of that owner, from 0.
    fn all_rules(&self) -> impl Iterator<Item = PlacedRule<'_>> {
        let placed = |agent| move |(index, rule)| PlacedRule { agent, index, rule };
        let own = self.of_agent.as_ref();
        let agent = own.map(|own| own.agent.as_str());
        let general = self.rules.iter().enumerate().map(placed(None));
        general.chain(self.rules_of_agent().iter().enumerate().map(placed(agent)))
    }

    /// Decides on a call. In an unattended session the decision is never [`Decision::Ask`].
    pub fn decide(&self, call: &CallFacts, session: &SessionFacts) -> Verdict {
        let view = CallView::new(call);
        let rows = rows(call, session);
        let (decision, reason) = self.decided(&view, &rows, session);
        // Words that are known only once they run are others the next time.
        let repeat = match &reason {
            Reason::Unread(_) => Repeat::EachTime,
            _ => repeat(&rows, session),
        };
        let uncovered = match &reason {
            Reason::Row(row) if row.id == RowId::ExecHosts => self.covered_by(&view, session).err(),
            _ => None,
        };
        let shows_diff = rows.iter().any(|row| row.id == RowId::ProtectedAsk);
        Verdict {
            decision,
            reason,
            repeat,
            shows_diff,
            uncovered: uncovered.and_then(|item| view.named(item)),
        }
    }

    fn decided(
        &self,
        view: &CallView<'_>,
        rows: &[&'static Row],
        session: &SessionFacts,
    ) -> (Decision, Reason) {
        let by_row = |row: &'static Row| (row.decision(session), Reason::Row(row));
        if let Some(rule) = self.hit_by(Decision::Deny, view, session, Match::Yes) {
            return (Decision::Deny, Reason::Rule(rule));
        }
        let fixed = strictest(rows.iter().filter(|row| row.loosening == Loosening::Never), session);
        let fixed = fixed.filter(|row| row.decision(session) > Decision::Allow);
        if let Some(row) = fixed.filter(|row| row.decision(session) == Decision::Deny) {
            return by_row(row);
        }
        if let Some(reason) = self.question(view, session) {
            return match (session.attendance, reason) {
                (Attendance::Attended, reason) => (Decision::Ask, reason),
                (Attendance::Unattended, Reason::Rule(rule)) => (Decision::Deny, Reason::Unanswered(rule)),
                (Attendance::Unattended, reason) => (Decision::Deny, reason),
            };
        }
        match (self.covered_by(view, session).ok().flatten(), fixed) {
            (Some(rule), None) => (Decision::Allow, Reason::Rule(rule)),
            (Some(_), Some(row)) => by_row(row),
            (None, _) => by_row(strictest(rows.iter(), session).unwrap_or(&OTHER)),
        }
    }

    /// Rules of a decision that hold in a session.
    fn rules_of(&self, decision: Decision, session: &SessionFacts) -> impl Iterator<Item = PlacedRule<'_>> {
        let kind = session.kind;
        self.all_rules().filter(move |placed| placed.rule.decision == decision && placed.rule.holds_in(kind))
    }

    /// First rule of a decision that is about the call, or may be.
    fn hit_by(
        &self,
        decision: Decision,
        view: &CallView<'_>,
        session: &SessionFacts,
        wanted: Match,
    ) -> Option<RuleReason> {
        self.rules_of(decision, session).find_map(|placed| match view.falls_to(placed.rule) {
            (found, Some(pattern)) if found >= wanted => Some(placed.reason(pattern)),
            _ => None,
        })
    }

    /// Rule that asks, or that cannot be ruled out.
    fn question(&self, view: &CallView<'_>, session: &SessionFacts) -> Option<Reason> {
        let unread = |decision| self.hit_by(decision, view, session, Match::Unknown).map(Reason::Unread);
        self.hit_by(Decision::Ask, view, session, Match::Yes)
            .map(Reason::Rule)
            .or_else(|| unread(Decision::Deny))
            .or_else(|| unread(Decision::Ask))
    }

    /// First of the rules that together cover all of a call, reading left out; none where that is nothing.
    ///
    /// # Errors
    /// The first part that no rule covers.
    fn covered_by<'v>(
        &self,
        view: &'v CallView<'_>,
        session: &SessionFacts,
    ) -> Result<Option<RuleReason>, Item<'v>> {
        let rules = self.rules_of(Decision::Allow, session);
        let rules: Vec<_> = rules.filter(|placed| !view.is_taken_out(placed.rule)).collect();
        let mut first = None;
        for item in view.demands() {
            let found = rules.iter().find_map(|placed| {
                let pattern = placed.rule.tool.iter().find(|pattern| view.covers(pattern, item))?;
                Some((*placed, pattern))
            });
            first = first.or(Some(found.ok_or(item)?));
        }
        Ok(first.map(|(placed, pattern)| placed.reason(pattern)))
    }
}

/// A rule with the place by which messages name it.
#[derive(Clone, Copy)]
struct PlacedRule<'a> {
    agent: Option<&'a str>,
    index: usize,
    rule: &'a PolicyRule,
}

impl PlacedRule<'_> {
    fn reason(self, pattern: &Pattern) -> RuleReason {
        RuleReason {
            index: self.index,
            agent: self.agent.map(str::to_owned),
            rule: format!("{} {pattern}", self.rule.decision.name()),
            reason: self.rule.reason.clone(),
        }
    }
}

/// Shortest of what the rows that ask let an answer hold for.
fn repeat(rows: &[&Row], session: &SessionFacts) -> Repeat {
    let asking = rows.iter().filter(|row| row.decision(session) == Decision::Ask);
    asking.map(|row| row.repeat).max().unwrap_or(Repeat::AsAnswered)
}
