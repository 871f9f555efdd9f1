//! Rules that decide on the calls of a session: those that it began with, and those that stand in the configuration by now.
//!
//! A rule that its owner writes while a turn runs holds for the next call. The stricter of the two decides: what was loosened
//! meanwhile holds in a process that begins later.

use std::fmt;
use std::sync::Arc;

use policy::{
    CallFacts, Decision, LastingAnswers, Permission, Policy, Reason, Repeat, SessionFacts, SessionType,
    Verdict,
};

/// Reads the rules as they stand now. It blocks.
///
/// # Errors
/// Why they cannot be read.
type NewestPolicy = dyn Fn() -> Result<Arc<Policy>, String> + Send + Sync;

/// Rules on the calls of a session.
#[derive(Clone, Default)]
pub struct SessionPolicy {
    began: Policy,
    newest: Option<Arc<NewestPolicy>>,
    /// Whether they decide for a subagent: what they say of isolated sessions holds beside what they say of its parent's.
    is_of_subagent: bool,
}

impl fmt::Debug for SessionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPolicy").field("began", &self.began).finish_non_exhaustive()
    }
}

/// Rules that nobody changes.
impl From<Policy> for SessionPolicy {
    fn from(began: Policy) -> Self {
        Self { began, newest: None, is_of_subagent: false }
    }
}

impl SessionPolicy {
    pub fn new(began: Policy, newest: Arc<NewestPolicy>) -> Self {
        Self { began, newest: Some(newest), is_of_subagent: false }
    }

    /// Rules of the session for a subagent.
    pub(crate) fn of_subagent(&self) -> Self {
        Self { is_of_subagent: true, ..self.clone() }
    }

    /// Whether there is no rule. It blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.began.is_empty()
            && self.newest.as_ref().is_none_or(|newest| newest().is_ok_and(|policy| policy.is_empty()))
    }

    /// Decision on a call that nobody allowed before. It blocks.
    pub(crate) fn decide(&self, call: &CallFacts, session: &SessionFacts) -> Verdict {
        self.decide_with(call, session, &[])
    }

    /// Decision on a call, where a person allowed some calls before. Rules that cannot be read allow nothing. It blocks.
    pub(crate) fn decide_with(
        &self,
        call: &CallFacts,
        session: &SessionFacts,
        permissions: &[Permission],
    ) -> Verdict {
        let of_session = self.decide_in(call, session, permissions);
        if !self.is_of_subagent {
            return of_session;
        }
        let isolated = SessionFacts { kind: SessionType::Isolated, ..*session };
        let of_subagents = self.decide_in(call, &isolated, permissions);
        if of_subagents.decision > of_session.decision { of_subagents } else { of_session }
    }

    fn decide_in(&self, call: &CallFacts, session: &SessionFacts, permissions: &[Permission]) -> Verdict {
        let began = self.began.decide_with(call, session, permissions);
        let now = match self.newest.as_ref().map(|newest| newest()) {
            None => return began,
            Some(Ok(newest)) => newest.decide_with(call, session, permissions),
            Some(Err(why)) => Verdict {
                decision: Decision::Deny,
                reason: Reason::Unreadable(why),
                repeat: Repeat::EachTime,
                shows_diff: false,
                uncovered: None,
            },
        };
        if now.decision > began.decision { now } else { began }
    }

    /// What a yes to the question about a call may hold for, by both. It blocks.
    pub(crate) fn lasting_answers(&self, call: &CallFacts, session: &SessionFacts) -> LastingAnswers {
        let began = self.began.lasting_answers(call, session);
        let now = match self.newest.as_ref().map(|newest| newest()) {
            None => return began,
            Some(Err(_)) => return LastingAnswers::default(),
            Some(Ok(newest)) => newest.lasting_answers(call, session),
        };
        LastingAnswers {
            session: began.session.filter(|given| now.session.as_ref() == Some(given)),
            always: began.always.filter(|rule| now.always.as_ref() == Some(rule)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use policy::{Attendance, Effect, PolicyRule, SandboxLevel};

    use super::*;

    fn rules(decision: Decision) -> Policy {
        let tool = serde_json::from_value::<Permission>(serde_json::json!(["write"])).unwrap();
        Policy::new(vec![PolicyRule {
            decision,
            tool: tool.patterns().to_vec(),
            unless: Vec::new(),
            sessions: Vec::new(),
            reason: None,
        }])
        .unwrap()
    }

    #[test]
    fn the_stricter_of_the_rules_at_the_beginning_and_now_decides() {
        let call =
            CallFacts { tool: "write".to_owned(), effects: [Effect::Write].into(), ..CallFacts::default() };
        let session = SessionFacts {
            kind: SessionType::Main,
            attendance: Attendance::Attended,
            sandbox: SandboxLevel::Full,
            tainted: false,
            plan_mode: false,
            keeps_old_bytes: true,
        };
        for began in [Decision::Allow, Decision::Ask, Decision::Deny] {
            let now = Arc::new(Mutex::new(Ok(Arc::new(rules(began)))));
            let newest = Arc::clone(&now);
            let policy = SessionPolicy::new(rules(began), Arc::new(move || newest.lock().unwrap().clone()));
            for later in [Decision::Deny, Decision::Allow, Decision::Ask] {
                *now.lock().unwrap() = Ok(Arc::new(rules(later)));
                assert_eq!(policy.decide(&call, &session).decision, began.max(later), "{began:?}, {later:?}");
            }
            *now.lock().unwrap() = Err("config.toml is broken".to_owned());
            let verdict = policy.decide(&call, &session);
            assert_eq!(verdict.decision, Decision::Deny);
            assert!(verdict.decision == began || verdict.to_string().contains("config.toml is broken"));
        }
    }
}
