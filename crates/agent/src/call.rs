//! A call: on whose behalf work is done, who hears of it, and what stops it.

use std::sync::Arc;
use std::time::Duration;

use loom::{Author, Trust};
use model::Cancel;
use store::Principal;
use tools::WaitedTime;

use crate::event::{EventSink, SessionEvent};
use crate::session::SubagentTerms;

/// A piece of work in a home, apart from the home's services ([`crate::Runtime`]).
#[derive(Clone)]
pub struct Call {
    /// What the store lets it see and write.
    pub who: Principal,
    /// Author of what it writes.
    pub author: Author,
    /// Trust of what it writes.
    pub trust: Trust,
    pub events: Arc<dyn EventSink>,
    pub cancel: Cancel,
    /// How long somebody may take to answer a question; none where nobody answers.
    pub answer_within: Option<Duration>,
    /// How long somebody was waited for.
    pub waited: WaitedTime,
    /// What holds for it where it is work of a subagent.
    pub subagent: Option<Arc<SubagentTerms>>,
}

impl Call {
    /// Work of the owner that nobody answers questions of.
    pub fn owner(events: Arc<dyn EventSink>) -> Self {
        let who = Principal::Owner;
        Self {
            author: who.author(),
            trust: who.trust(),
            who,
            events,
            cancel: Cancel::never(),
            answer_within: None,
            waited: WaitedTime::default(),
            subagent: None,
        }
    }

    /// In whose name something is written, and how far it is believed.
    pub(crate) const fn writer(&self) -> (&Principal, &Author, Trust) {
        (&self.who, &self.author, self.trust)
    }

    /// Says one line to whoever looks on.
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.events.emit(SessionEvent::notice(text));
    }
}
