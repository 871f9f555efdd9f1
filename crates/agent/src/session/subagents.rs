//! Subagents of a session (spec: agent §8). Each is a session of its own, in a tree that names the answer which began it,
//! with a task like any other; what it asks is asked in the session that began it, and what it comes to is said there.
//!
//! The list of those that have not ended is the parent's; what has ended stands with the subagent's session
//! ([`SubagentRecord`]), whose owner is known, so that it is known as well what a process left behind.

mod desk;
mod record;
mod untold;
mod work;

use std::collections::HashSet;
use std::iter::successors;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use loom::Trust;
use loom::plan::NewText;
use loom::{Author, TreeId, ViewName};
use model::{CancelHandle, Money};
use store::SessionId;
use tokio::sync::{Notify, Semaphore};
use tools::TurnSkills;

use crate::event::{EventSink, SessionEvent};
use crate::session::EventLog;
use crate::session::turn::UsedByTurn;

pub(super) use desk::SubagentDesk;
pub use record::{SubagentEnd, SubagentRecord, SubagentState, SubagentStatus};
pub(super) use work::result_of;

/// What holds for the requests and questions of a subagent.
#[derive(Debug)]
pub struct SubagentTerms {
    pub label: String,
    /// Most that it may cost, with those below it; none where only what holds for its parent does.
    pub budget: Option<Money>,
    /// Trees of the subagent and of those below it.
    trees: Mutex<Vec<TreeId>>,
    /// Terms of the subagent that began it, if one did.
    above: Option<Arc<Self>>,
}

impl SubagentTerms {
    fn new(label: String, budget: Option<Money>, tree: TreeId, above: Option<Arc<Self>>) -> Self {
        let terms = Self { label, budget, trees: Mutex::default(), above };
        terms.and_above().for_each(|terms| terms.lock().push(tree));
        terms
    }

    /// Terms of the subagent and of all that it works for, the nearest first.
    pub(crate) fn and_above(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |terms| terms.above.as_deref())
    }

    pub(crate) fn trees(&self) -> Vec<TreeId> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TreeId>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose subagent a task works for.
#[derive(Clone)]
pub(super) struct Parent {
    pub(super) terms: Arc<SubagentTerms>,
    /// The session of a person that it works for in the end: plan mode and what was allowed there hold.
    pub(super) session: SessionId,
    /// The turn that began it, as far as spending goes.
    pub(super) spending: String,
    /// What that turn used and was denied, which they have together.
    pub(super) turn: UsedByTurn,
    /// How many subagents stand between that session and it, itself among them.
    pub(super) depth: u32,
    /// Where its questions are asked.
    pub(super) events: Arc<dyn EventSink>,
    pub(super) running: Arc<RunningSubagent>,
}

/// Events of a subagent: its questions are heard in the session that began it, too.
pub(super) struct RelayedEvents {
    pub(super) own: EventLog,
    pub(super) parent: Parent,
}

impl EventSink for RelayedEvents {
    fn emit(&self, event: SessionEvent) {
        if matches!(event, SessionEvent::Question { .. } | SessionEvent::Answered { .. }) {
            self.parent.running.waits(matches!(event, SessionEvent::Question { .. }));
            self.parent.events.emit(event.clone());
        }
        self.own.push(event);
    }
}

/// A subagent that has not ended.
#[derive(Debug)]
pub(super) struct RunningSubagent {
    session: SessionId,
    /// What it is called by: the name of its session.
    name: String,
    tree: TreeId,
    stop: CancelHandle,
    progress: Mutex<SubagentEnd>,
}

impl RunningSubagent {
    fn progress(&self) -> MutexGuard<'_, SubagentEnd> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody is asked, or has answered.
    fn waits(&self, waits: bool) {
        self.progress().state = if waits { SubagentState::Waiting } else { SubagentState::Running };
    }
}

/// The subagents of a session in this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct SubagentList(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    running: Mutex<Vec<Arc<RunningSubagent>>>,
    /// Labels that were given in this process.
    labels: Mutex<HashSet<String>>,
    /// As many permits as may run at one time; none before the first.
    slots: OnceLock<Arc<Semaphore>>,
    ended: Notify,
}

impl SubagentList {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<RunningSubagent>>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any was begun in this process.
    pub(super) fn have_begun(&self) -> bool {
        self.0.slots.get().is_some()
    }

    /// How many have not ended.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The names of those that have not ended: each is stopped.
    pub(super) fn stop_all(&self) -> Vec<String> {
        let stopped = |running: &Arc<RunningSubagent>| {
            running.stop.cancel();
            running.name.clone()
        };
        self.lock().iter().map(stopped).collect()
    }

    /// Waits until all have ended.
    pub(super) async fn ended(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Whether one has not ended, or nobody heard of it yet.
    fn has(&self, session: &SessionId) -> bool {
        self.lock().iter().any(|running| running.session == *session)
    }

    fn find(&self, name: &str) -> Option<Arc<RunningSubagent>> {
        self.lock().iter().find(|running| running.name == name).cloned()
    }

    /// The label, with a number behind it where another one was given it: questions are told apart by it.
    fn own_label(&self, label: &str) -> String {
        let mut labels = self.0.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = label.to_owned();
        let mut number = 1;
        while !labels.insert(own.clone()) {
            number += 1;
            own = format!("{label} {number}");
        }
        own
    }

    fn add(&self, running: Arc<RunningSubagent>) {
        self.lock().push(running);
    }

    /// Takes one that has ended off the list: whoever looks at that hears of it before.
    pub(super) fn remove(&self, ended: &EndedSubagent) {
        self.lock().retain(|running| running.session != ended.session);
        self.0.ended.notify_waiters();
    }
}

/// That a subagent has ended, for the task of its parent.
#[derive(Debug)]
pub(super) struct EndedSubagent {
    session: SessionId,
    /// What is said of it; none of one that was stopped.
    pub(super) said: Option<SubagentResult>,
}

/// What a subagent came to, to be said where it was begun.
#[derive(Debug)]
pub(super) struct SubagentResult {
    /// The subagent's session.
    pub(super) of: SessionId,
    pub(super) text: NewText,
    pub(super) tree: super::TreeChoice,
    pub(super) view: ViewName,
    pub(super) author: Author,
    pub(super) trust: Trust,
    pub(super) answer_within: Option<std::time::Duration>,
    pub(super) hands_back: bool,
    /// Skills of the turn that began it.
    pub(super) skills: TurnSkills,
}
