//! Sessions: each is one task that owns its lease, its input queue, the loop of a turn and every commit of it (spec:
//! agent §1).
//!
//! Whoever shows or drives a session, here or in another process, sends operations and renders events; nobody else
//! runs a turn. The lease is held from before the first write of a turn until after the last. What is said meanwhile
//! joins the turn at its next model call, waits for the next turn, or is rejected: a text is never answered by another
//! model than the one it was said to.

mod entry;
mod inbox;
mod log;
mod operation;
mod settings;
pub mod steering;
mod subagents;
mod task;
mod turn;
mod unanswered;
mod waiting_files;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use store::SessionId;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::AgentError;
use crate::event::SayId;
use crate::questions::{Decision, QuestionId};
use crate::runtime::Runtime;
use steering::RemoteInput;
use subagents::{EndedSubagent, Parent, SubagentList};
use task::Task;

pub use entry::{Name, OpenedSession, SessionChoice};
pub use log::{EventLog, EventStream, Numbered};
pub use operation::{FollowUp, Say, SessionOperation, TreeChoice, TurnInput, WaitingFile};
pub use settings::{ChosenModel, SessionSampling, SessionSettings};
pub use subagents::{SubagentEnd, SubagentRecord, SubagentState, SubagentStatus, SubagentTerms};
pub(crate) use turn::{CallChanges, result, tool_author, turn_of, writes_texts};
pub use turn::{TurnConfig, TurnIdentity, answered_calls, calls_not_run, tools_not_run};

/// What a task takes from its channel.
#[derive(Debug)]
enum Input {
    Operation(SessionOperation),
    Remote(Box<RemoteInput>),
    /// What another process said under this key is not to be said.
    Withdrawal(SayId),
    /// One of its subagents has ended.
    Subagent(Box<EndedSubagent>),
}

/// A session's task: operations in, events out. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    id: SessionId,
    /// Which of the tasks this process has begun it is.
    task_number: u64,
    inputs: mpsc::Sender<Input>,
    log: EventLog,
    task: Arc<OnceLock<AbortHandle>>,
    subagents: SubagentList,
}

impl Handle {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Which of the tasks of this process it is: events of different ones are numbered anew.
    pub(crate) const fn task_number(&self) -> u64 {
        self.task_number
    }

    /// Events from a number on, the first being 1. What is older than the turn under way is not told any more.
    pub fn events(&self, from: u64) -> EventStream {
        self.log.stream(from)
    }

    /// Events from now on, for whoever is about to say something under this key: its end is among them, however
    /// slowly they are read.
    pub fn events_of(&self, say: SayId) -> EventStream {
        self.log.stream_of(say)
    }

    /// Number of the next event.
    pub fn next_event(&self) -> u64 {
        self.log.next_number()
    }

    /// Whether nothing is under way, as far as the events tell.
    pub(crate) fn is_idle(&self) -> bool {
        self.log.is_idle()
    }

    /// Whether it had subagents in this process: it is idle once they have ended, and what they came to is answered.
    pub fn has_had_subagents(&self) -> bool {
        self.subagents.have_begun()
    }

    /// How many of its subagents have not ended.
    pub fn running_subagents(&self) -> usize {
        self.subagents.count()
    }

    /// Sends an operation. What comes of it is an event.
    ///
    /// # Errors
    /// [`AgentError::Closed`] when the task has ended.
    pub async fn send(&self, operation: SessionOperation) -> Result<(), AgentError> {
        let sent = self.inputs.send(Input::Operation(operation)).await;
        sent.map_err(|_| AgentError::Closed)
    }

    /// Answers a question of the session's work.
    ///
    /// # Errors
    /// As [`Handle::send`].
    pub async fn answer(&self, question: QuestionId, decision: Decision) -> Result<(), AgentError> {
        self.send(SessionOperation::Answer { question, decision }).await
    }

    /// Takes in what another process says; false, and it is dropped, where as many wait already as may.
    pub(crate) fn take_remote(&self, remote: RemoteInput) -> bool {
        self.inputs.try_send(Input::Remote(Box::new(remote))).is_ok()
    }

    /// Takes back what another process said, unless it is about to be written: that is its reply.
    pub(crate) async fn withdraw(&self, key: SayId) {
        // A task that has ended has given back what it did not say.
        let _ = self.inputs.send(Input::Withdrawal(key)).await;
    }

    /// Drops the task where it waits, as the end of the process would: what a model had said until then is recovered.
    pub fn abort(&self) {
        self.task.get().into_iter().for_each(AbortHandle::abort);
    }

    /// Ends the session's work here: what is under way is finished, what waits is rejected. Returns once the task
    /// has ended.
    pub async fn close(&self) {
        if self.send(SessionOperation::Close).await.is_ok() {
            self.inputs.closed().await;
        }
    }
}

impl Runtime {
    /// How the subagents of a session stand, the oldest first; those that run among the sessions of this process as they
    /// say.
    ///
    /// # Errors
    /// As the store says.
    pub async fn subagents(
        &self,
        sessions: &Sessions,
        id: &SessionId,
    ) -> Result<Vec<SubagentStatus>, AgentError> {
        let here = sessions.get(id).map(|handle| handle.subagents).unwrap_or_default();
        self.subagents_of(id, &here).await
    }
}

/// The sessions whose tasks run in this process.
#[derive(Debug, Clone, Default)]
pub struct Sessions(Arc<Mutex<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    running: HashMap<SessionId, Handle>,
    /// How many were begun.
    begun: u64,
}

impl Sessions {
    /// The task of a session, if it runs here.
    pub fn get(&self, id: &SessionId) -> Option<Handle> {
        self.lock().running.get(id).filter(|handle| !handle.inputs.is_closed()).cloned()
    }

    /// Closes all of them, and waits for their ends.
    pub async fn close_all(&self) {
        let all: Vec<Handle> = self.lock().running.values().cloned().collect();
        for handle in all {
            handle.close().await;
        }
    }

    fn remove(&self, handle: &Handle) {
        let running = &mut self.lock().running;
        if running.get(&handle.id).is_some_and(|found| found.inputs.same_channel(&handle.inputs)) {
            running.remove(&handle.id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task of a session; it is started, unless it is among the sessions of this process already.
pub fn spawn(runtime: &Runtime, sessions: &Sessions, id: &SessionId) -> Handle {
    begin(runtime, sessions, id, None)
}

/// As [`spawn`], with whose subagent it works for.
fn begin(runtime: &Runtime, sessions: &Sessions, id: &SessionId, parent: Option<Parent>) -> Handle {
    let mut tasks = sessions.lock();
    if let Some(found) = tasks.running.get(id).filter(|handle| !handle.inputs.is_closed()) {
        return found.clone();
    }
    let (inputs, received) = mpsc::channel(runtime.waiting.messages);
    tasks.begun += 1;
    let handle = Handle {
        id: id.clone(),
        task_number: tasks.begun,
        inputs,
        log: EventLog::default(),
        task: Arc::default(),
        subagents: SubagentList::default(),
    };
    tasks.running.insert(id.clone(), handle.clone());
    drop(tasks);
    let task = Task {
        runtime: runtime.clone(),
        sessions: sessions.clone(),
        handle: handle.clone(),
        parent,
        before: Mutex::default(),
    };
    let task = tokio::spawn(task::run(task, received));
    // It was not set before: the handle is new.
    let _ = handle.task.set(task.abort_handle());
    handle
}
