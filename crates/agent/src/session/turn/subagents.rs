//! What a turn has to do with subagents: those that its calls begin, and whose subagent it is one of.

use std::sync::Arc;

use context::elicitation::QuestionEnd;
use loom::{Author, NodeId, TreeId, Trust};
use store::{Principal, SessionId};

use super::Turn;
use super::call_site::CallSite;
use super::limits::TurnLimits;
use crate::call::Call;
use crate::error::AgentError;
use crate::event::{EventSink, SessionEvent};
use crate::lease::SessionLease;
use crate::questions::QuestionContext;
use crate::session::inbox::Pending;
use crate::session::subagents::{RelayedEvents, SubagentDesk};
use crate::session::task::TurnBefore;
use crate::spend::TurnSpending;

impl Turn<'_> {
    /// Work of the turn, in the name of whoever said what it answers.
    pub(super) fn call(
        &self,
        held: &SessionLease,
        (author, trust): (&Author, Trust),
        limits: &TurnLimits,
    ) -> Call {
        Call {
            who: Principal::Owner,
            author: author.clone(),
            trust,
            events: self.events(),
            // Stopped as well when the session is lost: its result would be refused.
            cancel: held.cancel(),
            answer_within: limits.answer_within,
            waited: limits.waited.clone(),
            subagent: self.task.parent.as_ref().map(|parent| Arc::clone(&parent.terms)),
        }
    }

    /// Who hears of its work.
    fn events(&self) -> Arc<dyn EventSink> {
        let own = self.log.clone();
        match &self.task.parent {
            Some(parent) => Arc::new(RelayedEvents { own, parent: parent.clone() }),
            None => Arc::new(own),
        }
    }

    /// Says one line to whoever answers its questions.
    pub(super) fn tell_asked(&self, told: String) {
        match &self.task.parent {
            Some(parent) => {
                parent.events.emit(SessionEvent::notice(format!("{}: {told}", parent.terms.label)));
            }
            None => self.log.push(SessionEvent::notice(told)),
        }
    }

    /// The session whose settings hold: that of a person.
    pub(in crate::session) fn settings_session(&self) -> &SessionId {
        self.task.parent.as_ref().map_or(self.session, |parent| &parent.session)
    }

    /// A turn, as far as spending goes: a subagent spends what the turn that began it may, and so does the turn that its
    /// result begins.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(super) fn spending(&self, first: &Pending) -> Result<TurnSpending, AgentError> {
        let before = self.task.before(first).map(|before| before.spending);
        match self.task.parent.as_ref().map(|parent| parent.spending.clone()).or(before) {
            Some(part_of) => Ok(TurnSpending::part_of(part_of)),
            None => self.runtime.new_turn(),
        }
    }

    /// Limits of a turn: of one that a result begins, what is left of those of the turn before, so that nothing goes round
    /// without end; of a subagent, what is left of those of the turn that began it.
    pub(super) fn limits(&self, first: &Pending) -> TurnLimits {
        let (bounds, parent) = (self.runtime.turn_bounds, self.task.parent.as_ref());
        let before = self.task.before(first).map(|before| before.used);
        match before.or_else(|| parent.map(|parent| parent.turn.clone())) {
            Some(used) => TurnLimits::after(bounds, used),
            None => TurnLimits::new(bounds),
        }
    }

    /// What a turn begins with; nothing where its limits are met already, as those of one that a result begins may be, and
    /// nobody says that it goes on.
    pub(super) async fn beginning(
        &self,
        held: &SessionLease,
        (tree, first): (TreeId, Pending),
        limits: &mut TurnLimits,
    ) -> Vec<Pending> {
        limits.hear(std::slice::from_ref(&first));
        let call = self.call(held, (&first.author, first.trust), limits);
        let asker = QuestionContext {
            call: &call,
            tree,
            guards: &[held.guard()],
            place: None,
            end: QuestionEnd::never(),
        };
        match limits.require(self.runtime, &asker).await {
            Ok(()) => {
                let mut batch = self.untold(tree, &first).await;
                batch.push(first);
                batch
            }
            Err(error) => {
                self.reject(&first.key, error);
                Vec::new()
            }
        }
    }

    /// Keeps what the turn used, for those that go on with it.
    pub(super) fn keep_used(&self, limits: &TurnLimits, spending: &str) {
        self.task.keep_before(TurnBefore { used: limits.used(), spending: spending.to_owned() });
    }

    /// The subagents of its session, for a call of an answer.
    pub(super) fn subagents(&self, site: &CallSite<'_>, answer: NodeId, limits: &TurnLimits) -> SubagentDesk {
        SubagentDesk {
            runtime: self.runtime.clone(),
            handle: self.task.handle.clone(),
            parent: self.task.parent.clone(),
            config: site.config.clone(),
            answer,
            events: self.events(),
            answer_within: limits.answer_within,
            hands_back: site.hands_back,
            turn: limits.of_subagent(self.runtime.subagents.model_calls),
        }
    }
}
