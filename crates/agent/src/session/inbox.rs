//! The input queue of a session: what waits to be said, and which turn is under way.
//!
//! The task puts operations in while the turn it runs takes inputs out; both are one task, and no lock is held while
//! either waits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loom::{Author, NodeId, PositionId, Trust, ViewName};
use model::CancelHandle;
use store::{Fence, Principal, SessionId};
use tools::TurnSkills;

use super::operation::{FollowUp, Say, SessionOperation};
use super::steering::{RemoteInput, Reply};
use super::subagents::SubagentResult;
use super::turn::{TurnConfig, TurnIdentity};
use super::{EventLog, Input, TreeChoice, TurnInput};
use crate::error::AgentError;
use crate::event::{SayId, SessionEvent};
use crate::questions::{AnswerText, DEADLINE};
use crate::runtime::Runtime;

/// Idempotency keys that are remembered.
const REMEMBERED: usize = 256;

/// When an input is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// In a turn of its own, or in one that is asked in the same way.
    InOrder,
    /// In the turn under way.
    Steers,
    /// After the turn under way.
    AfterTurn,
}

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) key: SayId,
    pub(super) input: TurnInput,
    pub(super) tree: TreeChoice,
    pub(super) view: ViewName,
    /// How it is answered; as the turn before, if none.
    pub(super) config: Option<Arc<TurnConfig>>,
    /// The position under which it is said; the tip, if none.
    pub(super) reply_to: Option<PositionId>,
    pub(super) author: Author,
    pub(super) trust: Trust,
    pub(super) answer_within: Option<Duration>,
    /// Whether the turn it is said in ends with its answer.
    pub(super) hands_back: bool,
    /// The subagent that came to it, if one did: a turn that it begins goes on with the one that began the subagent.
    pub(super) result_of: Option<SessionId>,
    /// Skills that a turn which it begins follows from the first: those whose texts it says, or those of the turn that began a
    /// subagent.
    pub(super) skills: TurnSkills,
    /// The process that said it, if it was another one.
    pub(super) remote: Option<Box<RemoteInput>>,
    when: When,
}

impl Pending {
    /// Event that it is a node.
    pub(super) fn accepted(&self) -> impl FnOnce(NodeId) -> SessionEvent + use<> {
        let (say, text) = (self.key.clone(), self.input.said());
        let (remote, subagent) = (self.remote.is_some(), self.result_of.is_some());
        move |node| SessionEvent::Accepted { say, node, text, remote, subagent }
    }

    fn said(say: Say) -> Self {
        let Say { key, input, tree, view, config, reply_to, author, trust, .. } = say;
        let (answer_within, hands_back, skills) = (say.answer_within, say.hands_back, say.skills);
        let (config, remote, when) = (Some(config), None, When::InOrder);
        Self {
            key,
            input,
            tree,
            view,
            config,
            reply_to,
            author,
            trust,
            answer_within,
            hands_back,
            result_of: None,
            skills,
            remote,
            when,
        }
    }

    fn text(FollowUp { key, text, view, author, trust }: FollowUp, when: When) -> Self {
        Self::unasked((key, view), TurnInput::text(text), (author, trust), when)
    }

    /// What somebody says as the turn before was asked.
    fn unasked(
        (key, view): (SayId, ViewName),
        input: TurnInput,
        (author, trust): (Author, Trust),
        when: When,
    ) -> Self {
        Self {
            key,
            input,
            tree: TreeChoice::Current,
            view,
            config: None,
            reply_to: None,
            author,
            trust,
            answer_within: Some(DEADLINE),
            hands_back: false,
            result_of: None,
            skills: TurnSkills::default(),
            remote: None,
            when,
        }
    }

    /// What a subagent came to: it is answered as the turn before was asked.
    pub(super) fn result(key: SayId, said: SubagentResult) -> Self {
        let SubagentResult { of, text, tree, view, author, trust, answer_within, hands_back, skills } = said;
        let input = TurnInput::New { texts: vec![text], media: Vec::new(), waiting: Vec::new() };
        let pending = Self::unasked((key, view), input, (author, trust), When::Steers);
        Self { tree, answer_within, hands_back, result_of: Some(of), skills, ..pending }
    }

    fn remote(mut remote: Box<RemoteInput>) -> Self {
        // Their pictures and sounds are in the home already.
        let (texts, waiting) = (std::mem::take(&mut remote.texts), std::mem::take(&mut remote.waiting));
        let input = TurnInput::New { texts, media: Vec::new(), waiting };
        let (answer_within, reply_to) = (remote.answer_within, remote.reply_to);
        let by = (remote.author.clone(), remote.trust);
        let pending = Self::unasked((remote.key.clone(), remote.view.clone()), input, by, When::Steers);
        Self { remote: Some(remote), answer_within, reply_to, ..pending }
    }

    /// Whether it says texts of skills, which are followed from the beginning of a turn.
    pub(super) fn names_skills(&self) -> bool {
        self.result_of.is_none() && !self.skills.is_empty()
    }

    /// Whether it can be said in a turn of this kind.
    fn fits(&self, turn: &TurnIdentity) -> bool {
        match (self.when, &self.config) {
            (When::AfterTurn, _) => false,
            _ if self.names_skills() => false,
            (When::Steers, _) | (When::InOrder, None) => true,
            (When::InOrder, Some(config)) => {
                let is_there = match self.tree {
                    TreeChoice::Current => true,
                    TreeChoice::Named(tree) => tree == turn.tree,
                    TreeChoice::New { .. } => false,
                };
                is_there && config.identity(turn.tree) == *turn
            }
        }
    }
}

/// The error of one message too many.
fn full(most: usize) -> AgentError {
    AgentError::Refused(format!(
        "{most} messages wait for this session already (limits.steering): this one was not taken"
    ))
}

#[derive(Debug)]
pub(super) struct Inbox {
    state: Mutex<State>,
    /// Inputs that may wait (spec: scale §4 `steering`).
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    pending: VecDeque<Pending>,
    /// Keys that were taken in, the newest last.
    seen: VecDeque<SayId>,
    turn: Option<UnderWay>,
    /// Whether hooks were told that the session begins.
    has_begun: bool,
    closing: bool,
}

#[derive(Debug)]
struct UnderWay {
    stop: CancelHandle,
    /// Once it has the session: the number of its lease, and how it is asked.
    held: Option<(Fence, TurnIdentity)>,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One in which so many inputs may wait.
    pub(super) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), most }
    }

    /// Takes in an operation. What it comes to at once is an event.
    pub(super) fn take(&self, input: Input, log: &EventLog, runtime: &Runtime) {
        match input {
            Input::Operation(SessionOperation::Say(say)) => self.wait(Pending::said(*say), log),
            Input::Operation(SessionOperation::Steer(text)) => {
                self.wait(Pending::text(text, When::Steers), log);
            }
            Input::Operation(SessionOperation::Queue(text)) => {
                self.wait(Pending::text(text, When::AfterTurn), log);
            }
            Input::Operation(SessionOperation::Stop) => {
                if let Some(turn) = &self.state().turn {
                    turn.stop.cancel();
                }
            }
            Input::Operation(SessionOperation::Answer { question, decision }) => {
                let (runtime, log) = (runtime.clone(), log.clone());
                // The session waits for no answer of the store's.
                tokio::spawn(async move {
                    let who = &Principal::Owner;
                    let done = runtime.answer_question(who, question, decision, AnswerText::default()).await;
                    if let Err(error) = done {
                        log.push(SessionEvent::notice(error.to_string()));
                    }
                });
            }
            Input::Operation(SessionOperation::Close) => self.close(log),
            Input::Remote(remote) => self.take_remote(remote, log),
            Input::Withdrawal(key) => self.withdraw(&key),
            Input::Subagent(ended) => {
                if let Some(said) = ended.said {
                    match runtime.new_id() {
                        Ok(key) => self.wait(Pending::result(key, said), log),
                        Err(error) => log.push(SessionEvent::notice(error.to_string())),
                    }
                }
            }
        }
    }

    fn wait(&self, pending: Pending, log: &EventLog) {
        let mut state = self.state();
        if state.seen.contains(&pending.key) {
            return;
        }
        let refused = if state.closing {
            Some(AgentError::Closed)
        } else if state.pending.len() >= self.most && pending.result_of.is_none() {
            // As many subagents as there may be are the bound of their results.
            Some(full(self.most))
        } else {
            None
        };
        let say = pending.key.clone();
        match refused {
            Some(error) => log.push(SessionEvent::Rejected { say, error: error.into() }),
            None => {
                if state.turn.is_some() || !state.pending.is_empty() {
                    log.push(SessionEvent::Queued { say, place: state.pending.len() + 1 });
                }
                state.remember(&pending.key);
                state.pending.push_back(pending);
            }
        }
    }

    /// Takes in what another process says, if it is for the turn under way and for its model.
    fn take_remote(&self, remote: Box<RemoteInput>, log: &EventLog) {
        let mut state = self.state();
        let held = state.turn.as_ref().and_then(|turn| turn.held.as_ref());
        let refused = match held {
            _ if state.closing => Some(Reply::Closed),
            None => Some(Reply::Closed),
            Some((fence, _)) if fence.0 != remote.fence => Some(Reply::Closed),
            Some((_, identity)) if *identity != remote.identity => Some(Reply::Differs),
            Some(_) if state.pending.len() >= self.most => {
                Some(Reply::Refused { error: full(self.most).failure() })
            }
            Some(_) if state.seen.contains(&remote.key) => {
                Some(Reply::Refused { error: AgentError::SaidBefore.failure() })
            }
            Some(_) => None,
        };
        if let Some(reply) = refused {
            return remote.reply_now(reply);
        }
        remote.reply_now(Reply::Waits);
        log.push(SessionEvent::Queued { say: remote.key.clone(), place: state.pending.len() + 1 });
        state.remember(&remote.key);
        state.pending.push_back(Pending::remote(remote));
    }

    /// Takes back what another process said, unless it is about to be written.
    fn withdraw(&self, key: &SayId) {
        let mut state = self.state();
        let is_meant = |pending: &Pending| pending.remote.is_some() && pending.key == *key;
        let Some(place) = state.pending.iter().position(is_meant) else { return };
        let remote = state.pending.remove(place).and_then(|pending| pending.remote);
        state.forget(key);
        if let Some(remote) = remote {
            remote.reply_now(Reply::Withdrawn);
        }
    }

    /// Says that the session begins, unless that was said before.
    pub(super) fn begins(&self) -> bool {
        !std::mem::replace(&mut self.state().has_begun, true)
    }

    /// The input that begins the next turn, and what stops that turn.
    pub(super) fn next_turn(&self, stop: impl FnOnce() -> CancelHandle) -> Option<Pending> {
        let mut state = self.state();
        let first = state.pending.iter().position(|pending| pending.when != When::AfterTurn);
        let next = state.pending.remove(first.unwrap_or(0))?;
        state.turn = Some(UnderWay { stop: stop(), held: None });
        Some(next)
    }

    /// The turn under way has the session.
    pub(super) fn turn_holds(&self, fence: Fence, identity: TurnIdentity) {
        if let Some(turn) = &mut self.state().turn {
            turn.held = Some((fence, identity));
        }
    }

    /// What is answered next in the turn under way: one input of another process, or all that was said here until
    /// then.
    pub(super) fn next_joining(&self) -> Vec<Pending> {
        self.next_that(|_| true)
    }

    /// What is said in a view at its end, behind the results of tools.
    pub(super) fn next_behind(&self, view: &ViewName) -> Vec<Pending> {
        self.next_that(|next| {
            matches!(next.input, TurnInput::New { .. }) && next.reply_to.is_none() && next.view == *view
        })
    }

    fn next_that(&self, is_wanted: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let mut state = self.state();
        let State { pending, turn, closing, .. } = &mut *state;
        let held = turn.as_ref().and_then(|turn| turn.held.as_ref());
        let (Some((_, identity)), false) = (held, *closing) else { return Vec::new() };
        let mut batch: Vec<Pending> = Vec::new();
        while let Some(place) = pending.iter().position(|pending| pending.when != When::AfterTurn) {
            let next = &pending[place];
            let alone = |one: &Pending| one.remote.is_some() || one.when == When::InOrder;
            let joins =
                batch.first().is_none_or(|first| !alone(first) && !alone(next) && first.view == next.view);
            if !next.fits(identity) || !joins || !is_wanted(next) {
                break;
            }
            batch.extend(pending.remove(place));
        }
        batch
    }

    /// The turn is at its end: what other processes said and is not said yet is theirs again.
    pub(super) fn turn_ends(&self) {
        let mut state = self.state();
        state.turn = None;
        let (remote, own): (VecDeque<_>, VecDeque<_>) =
            state.pending.drain(..).partition(|pending| pending.remote.is_some());
        state.pending = own;
        for remote in remote.into_iter().filter_map(|pending| pending.remote) {
            // It may come again, for a later turn.
            state.forget(&remote.key);
            remote.reply_now(Reply::Closed);
        }
    }

    /// Whether what a subagent came to waits.
    pub(super) fn has_result_of(&self, subagent: &SessionId) -> bool {
        self.state().pending.iter().any(|pending| pending.result_of.as_ref() == Some(subagent))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().pending.is_empty()
    }

    /// Whether the task is to end.
    pub(super) fn is_closing(&self) -> bool {
        self.state().closing
    }

    /// Takes nothing from now on, and rejects what waits.
    fn close(&self, log: &EventLog) {
        let mut state = self.state();
        state.closing = true;
        for pending in std::mem::take(&mut state.pending) {
            match pending.remote {
                Some(remote) => remote.reply_now(Reply::Closed),
                None => {
                    log.push(SessionEvent::Rejected { say: pending.key, error: AgentError::Closed.into() });
                }
            }
        }
    }
}

impl State {
    fn remember(&mut self, key: &SayId) {
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back(key.clone());
    }

    /// What was taken in under this key was not said.
    fn forget(&mut self, key: &SayId) {
        self.seen.retain(|seen| seen != key);
    }
}
