//! The decision on a call: deny rules, ask rules, allow rules, then the table.

use crate::call::{Attendance, CallFacts, SessionFacts};
use crate::decision::{Decision, Reason, Repeat, RuleReason, Verdict};
use crate::exec_match::{Match, is_futile};
use crate::matching::CallView;
use crate::pattern::Pattern;
use crate::rule::PolicyRule;
use crate::table::{Loosening, OTHER, Row, RowId, rows, strictest};

/// Refusal of a set of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("policy rule {0} is about nothing: name a pattern in its `tool`")]
    NoPattern(usize),
    /// A prefix that can match no call.
    #[error(
        "policy rule {number}: `{pattern}` allows nothing, as this program runs whatever its arguments say; write the \
         whole command, without `*`"
    )]
    FutileAllow { number: usize, pattern: String },
}

/// Rules of the owner above the default table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<PolicyRule>,
}

impl Policy {
    /// # Errors
    /// The first rule that can match nothing; rules are numbered from 1.
    pub fn new(rules: Vec<PolicyRule>) -> Result<Self, PolicyError> {
        for (rule, number) in rules.iter().zip(1..) {
            if rule.tool.is_empty() {
                return Err(PolicyError::NoPattern(number));
            }
            let futile = rule
                .tool
                .iter()
                .find(|pattern| matches!(pattern, Pattern::Exec { words, more: true } if is_futile(words)));
            if let (Decision::Allow, Some(pattern)) = (rule.decision, futile) {
                return Err(PolicyError::FutileAllow { number, pattern: pattern.to_string() });
            }
        }
        Ok(Self { rules })
    }

    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
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
        Verdict { decision, reason, repeat, shows_diff: rows.iter().any(|row| row.id == RowId::ProtectedAsk) }
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
        match (self.allowed_by(view, session), fixed) {
            (Some(rule), None) => (Decision::Allow, Reason::Rule(rule)),
            (Some(_), Some(row)) => by_row(row),
            (None, _) => by_row(strictest(rows.iter(), session).unwrap_or(&OTHER)),
        }
    }

    /// Rules of a decision that hold in a session.
    fn rules_of(
        &self,
        decision: Decision,
        session: &SessionFacts,
    ) -> impl Iterator<Item = (usize, &PolicyRule)> {
        let kind = session.kind;
        self.rules
            .iter()
            .enumerate()
            .filter(move |(_, rule)| rule.decision == decision && rule.holds_in(kind))
    }

    /// First rule of a decision that is about the call, or may be.
    fn hit_by(
        &self,
        decision: Decision,
        view: &CallView<'_>,
        session: &SessionFacts,
        wanted: Match,
    ) -> Option<RuleReason> {
        self.rules_of(decision, session).find_map(|(index, rule)| match view.falls_to(rule) {
            (found, Some(pattern)) if found >= wanted => Some(reason(index, rule, pattern)),
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

    /// First of the rules that together cover all of a call, reading left out.
    fn allowed_by(&self, view: &CallView<'_>, session: &SessionFacts) -> Option<RuleReason> {
        let rules = self.rules_of(Decision::Allow, session);
        let rules: Vec<_> = rules.filter(|(_, rule)| !view.is_taken_out(rule)).collect();
        let mut first = None;
        for item in view.demands() {
            let found = rules.iter().find_map(|(index, rule)| {
                let pattern = rule.tool.iter().find(|pattern| view.covers(pattern, item))?;
                Some((*index, *rule, pattern))
            })?;
            first = first.or(Some(found));
        }
        first.map(|(index, rule, pattern)| reason(index, rule, pattern))
    }
}

fn reason(index: usize, rule: &PolicyRule, pattern: &Pattern) -> RuleReason {
    let text = format!("{} {pattern}", rule.decision.name());
    RuleReason { index, rule: text, reason: rule.reason.clone() }
}

/// Shortest of what the rows that ask let an answer hold for.
fn repeat(rows: &[&Row], session: &SessionFacts) -> Repeat {
    let asking = rows.iter().filter(|row| row.decision(session) == Decision::Ask);
    asking.map(|row| row.repeat).max().unwrap_or(Repeat::AsAnswered)
}
