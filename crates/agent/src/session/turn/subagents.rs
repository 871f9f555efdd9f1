//! What a turn has to do with subagents: those that its calls begin, and whose subagent it is one of.

use std::sync::Arc;

use loom::{Author, NodeId, Trust};
use store::{Principal, SessionId};

use super::Turn;
use super::calls::CallSite;
use super::limits::TurnLimits;
use crate::call::Call;
use crate::error::AgentError;
use crate::event::{EventSink, SessionEvent};
use crate::lease::SessionLease;
use crate::session::subagents::{RelayedEvents, SubagentDesk};
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

    /// A turn, as far as spending goes: a subagent spends what the turn that began it may.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(super) fn spending(&self) -> Result<TurnSpending, AgentError> {
        match &self.task.parent {
            Some(parent) => Ok(TurnSpending::part_of(parent.spending.clone())),
            None => self.runtime.new_turn(),
        }
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
            tokens: limits.tokens_left(),
        }
    }
}
