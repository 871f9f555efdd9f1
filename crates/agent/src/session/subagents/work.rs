//! A subagent at work, from its place in the queue to what is said of it.

use std::sync::Arc;
use std::time::Duration;

use loom::plan::NewText;
use loom::{Author, AuthorKind, Block, NodeId, Role, TreeId, TreeReader, Trust, ViewName};
use model::Cancel;
use store::Principal;
use tokio::sync::Semaphore;
use tools::{SPAWN, TurnSkills};

use super::desk::said_last;
use super::{EndedSubagent, Parent, SubagentEnd, SubagentResult, SubagentState};
use crate::error::AgentError;
use crate::event::{SayId, SessionEvent, TurnError, TurnOutcome};
use crate::runtime::Runtime;
use crate::session::turn::{TurnConfig, tool_author};
use crate::session::{Handle, Input, Say, SessionOperation, Sessions, TreeChoice, TurnInput, begin};

/// Work of a subagent.
pub(super) struct SubagentWork {
    /// Services of the home, with the bounds of a subagent's turn.
    pub(super) runtime: Runtime,
    /// The session that began it.
    pub(super) begun_by: Handle,
    pub(super) parent: Parent,
    pub(super) slots: Arc<Semaphore>,
    pub(super) cancel: Cancel,
    pub(super) config: Arc<TurnConfig>,
    pub(super) task: String,
    /// The lowest trust that the request which began it sent.
    pub(super) trust: Trust,
    /// Where it was begun, and by which answer.
    pub(super) place: (TreeId, ViewName),
    pub(super) answer: NodeId,
    pub(super) answer_within: Option<Duration>,
    pub(super) hands_back: bool,
}

/// What came of it: its last turn, or why there was none.
type Ended = Result<Box<TurnOutcome>, TurnError>;

impl SubagentWork {
    pub(super) async fn run(mut self) {
        let ended = self.work().await;
        let is_stopped = self.cancel.is_cancelled();
        let running = Arc::clone(&self.parent.running);
        let (state, why) = match &ended {
            _ if is_stopped => (SubagentState::Stopped, String::new()),
            None => (SubagentState::Failed, "its task ended".to_owned()),
            Some(Err(error)) => state_of(error),
            Some(Ok(outcome)) => match &outcome.error {
                Some(error) => state_of(error),
                None => (SubagentState::Done, String::new()),
            },
        };
        let end = {
            let mut progress = running.progress();
            (progress.state, progress.why) = (state, why);
            progress.clone()
        };
        if let Err(error) = self.runtime.keep_end(&running.session, &end).await {
            tracing::warn!(%error, "how a subagent ended is not kept");
        }
        let outcome = ended.and_then(Result::ok);
        let said = if is_stopped { None } else { Some(self.result(&end, outcome.as_deref()).await) };
        let ended = EndedSubagent { session: running.session.clone(), said };
        // A task that has ended hears of nothing.
        let _ = self.begun_by.inputs.send(Input::Subagent(Box::new(ended))).await;
    }

    /// Waits for a place among those that run, and has the task of its session answer what it is to do.
    async fn work(&mut self) -> Option<Ended> {
        let slots = Arc::clone(&self.slots);
        let mut cancel = self.cancel.clone();
        let _slot = tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            slot = slots.acquire_owned() => slot.ok()?,
        };
        if self.is_forgotten().await {
            self.parent.running.stop.cancel();
            return None;
        }
        let running = Arc::clone(&self.parent.running);
        running.waits(false);
        let key: SayId = match self.runtime.new_id() {
            Ok(key) => key,
            Err(error) => return Some(Err(error.into())),
        };
        let handle = begin(&self.runtime, &Sessions::default(), &running.session, Some(self.parent.clone()));
        let mut events = handle.events_of(key.clone());
        let author = tool_author(SPAWN);
        let text = NewText {
            content: vec![Block::text(std::mem::take(&mut self.task))],
            author: author.clone(),
            role: Some(Role::User),
            trust: self.trust,
        };
        let say = Say {
            key,
            input: TurnInput::New { texts: vec![text], media: Vec::new(), waiting: Vec::new() },
            tree: TreeChoice::Named(running.tree),
            view: ViewName::default(),
            config: Arc::clone(&self.config),
            reply_to: None,
            author,
            trust: self.trust,
            answer_within: self.answer_within,
            hands_back: true,
            skills: TurnSkills::default(),
        };
        handle.send(SessionOperation::Say(Box::new(say))).await.ok()?;
        let (mut ended, mut is_stopped) = (None, false);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = cancel.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    // One that has ended needs no stop.
                    let _ = handle.send(SessionOperation::Stop).await;
                    continue;
                }
            };
            match event.map(|numbered| numbered.event) {
                None | Some(SessionEvent::Idle) => break,
                Some(SessionEvent::Finished { outcome, .. }) => ended = Some(Ok(outcome)),
                Some(SessionEvent::Rejected { error, .. }) => ended = Some(Err(error)),
                Some(SessionEvent::Started { .. }) => running.progress().model_calls += 1,
                Some(SessionEvent::Call { .. }) => running.progress().tool_calls += 1,
                Some(SessionEvent::Committed { usage: Some(usage), .. }) => {
                    running.progress().tokens += usage.input() + usage.output;
                }
                Some(_) => {}
            }
        }
        handle.close().await;
        ended
    }

    /// Whether its task was forgotten while it waited: with the answer that holds it.
    async fn is_forgotten(&self) -> bool {
        let answer = self.answer;
        let read = move |rows: &dyn TreeReader| Ok(rows.node(answer)?.is_none_or(|row| row.purged));
        self.runtime.read(&Principal::Owner, self.place.0, read).await.unwrap_or(true)
    }

    /// What is said where it was begun: how it ended, and what it said last, which is believed as far as what it was sent.
    async fn result(&self, end: &SubagentEnd, outcome: Option<&TurnOutcome>) -> SubagentResult {
        let (label, name) = (&self.parent.terms.label, &self.parent.running.name);
        let label = if self.is_forgotten().await { "…" } else { label };
        let answer = outcome.and_then(|outcome| outcome.answer.as_ref());
        let trust = self.trust_of_sent().await;
        let said = answer.map(|answer| &*answer.text);
        let text = told((label, name), end, said, trust);
        let (tree, view) = self.place.clone();
        // Whoever holds the session goes on in its tree.
        let current = self.runtime.current_tree(&Principal::Owner, &self.begun_by.id).await.ok().flatten();
        let tree = if current == Some(tree) { TreeChoice::Current } else { TreeChoice::Named(tree) };
        let Self { answer_within, hands_back, .. } = *self;
        let (of, author) = (self.parent.running.session.clone(), text.author.clone());
        let skills =
            self.config.tools.as_ref().map(|tools| tools.skills_of_turn_before()).unwrap_or_default();
        SubagentResult { of, text, tree, view, author, trust, answer_within, hands_back, skills }
    }

    /// How far what it says is believed: as far as what it was sent. What cannot be read is from outside.
    async fn trust_of_sent(&self) -> Trust {
        let read = self.runtime.read(&Principal::Owner, self.parent.running.tree, said_last).await;
        read.map_or(Trust::Outside, |(_, trust)| trust).min(self.trust)
    }
}

/// What names of the authors of texts begin with that say what a subagent came to.
const AUTHOR: &str = "subagent/";

/// The author of what the subagent of this name came to.
fn author_of(name: &str) -> Author {
    tool_author(&format!("{AUTHOR}{name}"))
}

/// The name of the subagent that came to what an author says.
pub(in crate::session) fn result_of(author: &Author) -> Option<&str> {
    author.id.strip_prefix(AUTHOR).filter(|_| author.kind == AuthorKind::Tool)
}

/// What is said of a subagent that ended.
pub(super) fn told(
    (label, name): (&str, &str),
    end: &SubagentEnd,
    said: Option<&str>,
    trust: Trust,
) -> NewText {
    let why = if end.why.is_empty() { String::new() } else { format!(": {}", end.why) };
    let said = said.unwrap_or("It said nothing.");
    let text = format!("[subagent {label}, {name}: {}{why}]\n{said}", end.state);
    NewText { content: vec![Block::text(text)], author: author_of(name), role: Some(Role::Tool), trust }
}

fn state_of(error: &TurnError) -> (SubagentState, String) {
    match error.0.as_ref() {
        AgentError::Limit(what) => (SubagentState::Limit, what.clone()),
        AgentError::Budget { message, .. } => (SubagentState::Limit, message.clone()),
        error => (SubagentState::Failed, error.to_string()),
    }
}
