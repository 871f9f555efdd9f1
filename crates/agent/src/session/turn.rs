//! A turn: what was said is durable, a model is asked, its answer is kept; then what came meanwhile (spec: agent §1).

mod approval;
mod call_site;
mod calls;
mod config;
mod elicitation;
mod file_changes;
mod hooks;
mod limits;
mod named_skills;
mod next_place;
mod not_run;
mod outcome;
mod result_lines;
mod session_taking;
mod subagents;
mod written_files;

use std::sync::Arc;

use loom::plan::{EditAs, NewText, NewTree};
use loom::{
    Author, Block, Digest, Millis, Mode, NodeId, Op, PositionId, Refusal, Seq, TreeId, Trust, ViewName,
};
use model::{Cancel, Money};
use store::{AttachedWrites, Principal, SessionId, StoreError};
use tools::NextPlace;

use super::inbox::{Inbox, Pending};
use super::task::Task;
use super::{EventLog, TreeChoice, TurnInput};
use crate::commit::GenerationOutcome;
use crate::error::AgentError;
use crate::event::{SayId, SessionEvent};
use crate::lease::SessionLease;
use crate::request::GenerationRequest;
use crate::runtime::Runtime;
use call_site::CallSite;
use calls::Called;
pub(crate) use calls::{result, tool_author, turn_of};
pub use config::{TurnConfig, TurnIdentity};
pub(crate) use file_changes::{CallChanges, writes_texts};
use limits::TurnLimits;
pub(super) use limits::UsedByTurn;
use named_skills::said_by;
use next_place::MOVED;
pub use not_run::{answered_calls, calls_not_run, tools_not_run};
use outcome::{EarlierAnswer, outcomes};

pub(super) struct Turn<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) session: &'a SessionId,
    pub(super) inbox: &'a Inbox,
    pub(super) log: &'a EventLog,
    /// Stops it, by an operation.
    pub(super) cancel: Cancel,
    pub(super) task: &'a Task,
}

/// How what was written is answered.
#[derive(Clone, Copy)]
struct AnswerSite<'a> {
    tree: TreeId,
    config: &'a TurnConfig,
    /// The turn, as far as spending goes.
    turn: &'a str,
    /// Whether what others say meanwhile is theirs.
    hands_back: bool,
}

/// Inputs that are nodes, and have no answer yet.
struct Written {
    says: Vec<SayId>,
    node: NodeId,
    /// Where it is answered; the view's tip, if none.
    from: Option<PositionId>,
    part_of: Option<Seq>,
    view: ViewName,
    /// Author of the last of them.
    author: Author,
    /// The lowest of theirs.
    trust: Trust,
}

impl Turn<'_> {
    /// Runs the turn to its end. Returns how it was asked, or how the one before it was, where it asked nobody; and when it
    /// began, where its tools may have changed files.
    pub(super) async fn run(
        self,
        mut first: Pending,
        last: Option<Arc<TurnConfig>>,
    ) -> (Option<Arc<TurnConfig>>, Option<Millis>) {
        let mut began = None;
        let Some(config) = first.config.take().or_else(|| last.clone()) else {
            self.reject(&first.key, AgentError::Closed);
            self.inbox.turn_ends();
            return (last, began);
        };
        match self.take_session(&first, &config).await {
            Ok(Some(held)) => {
                let at = self.runtime.now();
                self.hold(held, first, &config).await;
                began = Some(at).filter(|_| !self.cancel.is_cancelled() && config.tools.is_some());
            }
            Ok(None) => {}
            Err(error) => {
                if let TurnInput::New { texts, .. } = &first.input {
                    self.remove_unsaid(&shown_by(texts)).await;
                }
                self.reject(&first.key, error);
            }
        }
        self.inbox.turn_ends();
        (Some(config), began)
    }

    fn reject(&self, say: &SayId, error: AgentError) {
        self.log.push(SessionEvent::Rejected { say: say.clone(), error: error.into() });
    }

    /// Everything from the first write to the last, under the lease.
    async fn hold(&self, held: SessionLease, first: Pending, config: &TurnConfig) {
        let begun = async { Ok((self.tree(&held, &first).await?, self.spending(&first)?)) };
        match begun.await {
            Ok((tree, spending)) => {
                self.inbox.turn_holds(held.fence(), config.identity(tree));
                self.end_lost_calls(&held, tree).await;
                self.tell_not_run(tree, &first.view).await;
                if let Some(tools) = &config.tools {
                    tools.begin_turn(&first.skills);
                    self.tell_written(tools, tree).await;
                }
                let mut limits = self.limits(&first);
                let mut batch = self.beginning(&held, (tree, first), &mut limits).await;
                while !batch.is_empty() {
                    limits.hear(&batch);
                    let hands_back = batch.iter().any(|pending| pending.hands_back);
                    if let Some(written) = self.write(&held, (tree, None), batch).await {
                        self.follow_again(config, (tree, written.from)).await;
                        self.start_by_hooks(&held, config, (tree, &written.view)).await;
                        let asked = AnswerSite { tree, config, turn: spending.turn(), hands_back };
                        self.answer(&held, &asked, written, &mut limits).await;
                    }
                    let is_stopped = self.cancel.is_cancelled() || held.cancel().is_cancelled();
                    if hands_back || is_stopped || limits.are_met() {
                        break;
                    }
                    batch = self.inbox.next_joining();
                }
                self.keep_used(&limits, spending.turn());
            }
            Err(error) => self.reject(&first.key, error),
        }
        // Before the lease is given back: nothing is taken in for a turn that is over.
        self.inbox.turn_ends();
        held.release().await;
    }

    /// Ends the calls of earlier turns of a tree that have no result, and clears away what they left beside files:
    /// whoever holds the session is alone in it.
    async fn end_lost_calls(&self, held: &SessionLease, tree: TreeId) {
        let tell = |told| self.log.push(SessionEvent::notice(told));
        let ended = self.runtime.end_calls_of(tree, held.guard(), &tell).await;
        if let Err(error) = self.named(held, ended).await {
            tracing::warn!(%error, "calls without a result are not ended yet");
        }
    }

    /// The tree an input is said in. A new one is begun under the lease.
    async fn tree(&self, held: &SessionLease, first: &Pending) -> Result<TreeId, AgentError> {
        let (runtime, who) = (self.runtime, &Principal::Owner);
        let title = match &first.tree {
            TreeChoice::Named(tree) => return Ok(*tree),
            TreeChoice::New { title } => title.clone(),
            TreeChoice::Current => match runtime.current_tree(who, self.session).await? {
                Some(tree) => {
                    self.name_tree(held, tree, first).await?;
                    return Ok(tree);
                }
                None => text::title::title(&first.input.said()),
            },
        };
        let tree = runtime.new_id::<TreeId>()?;
        let with = AttachedWrites {
            session: Some(self.session.0.clone()),
            guards: vec![held.guard()],
            ..AttachedWrites::nothing()
        };
        let op = Op::Create(NewTree { mode: Mode::Dialogue, title, origin: None });
        let writer = (who, &first.author, first.trust);
        self.named(held, runtime.change_as(writer, tree, &ViewName::default(), op, with).await).await?;
        Ok(tree)
    }

    /// Calls a tree that a wrap began after what is said first in it.
    async fn name_tree(&self, held: &SessionLease, tree: TreeId, first: &Pending) -> Result<(), AgentError> {
        let (runtime, who) = (self.runtime, &Principal::Owner);
        let entry = runtime.store.tree(who, tree).await?;
        let title = text::title::title(&first.input.said());
        if entry.nodes > 1 || !entry.title.is_empty() || title.is_empty() {
            return Ok(());
        }
        let with = AttachedWrites { guards: vec![held.guard()], ..AttachedWrites::nothing() };
        let named = runtime.change(who, tree, &ViewName::default(), Op::Rename(title), with).await;
        self.named(held, named).await.map(drop)
    }

    /// Makes inputs nodes, one below the other, undone together, and with `part_of` if it is given. None of them that could be written: no
    /// answer is needed.
    async fn write(
        &self,
        held: &SessionLease,
        (tree, part_of): (TreeId, Option<Seq>),
        batch: Vec<Pending>,
    ) -> Option<Written> {
        let mut written: Option<Written> = None;
        for mut pending in batch {
            let (key, view) = (pending.key.clone(), pending.view.clone());
            let accepted = pending.accepted();
            let (author, trust) = (pending.author.clone(), pending.trust);
            let (sent, gone) = self.leave_out_gone(&mut pending.input).await;
            let from = match &pending.input {
                TurnInput::Again { of } => Some(*of),
                TurnInput::New { .. } | TurnInput::Instead { .. } => None,
            };
            let part_of = written.as_ref().map_or(part_of, |before| before.part_of);
            let result_of = pending.result_of.clone();
            match self.write_one(held, (tree, part_of), pending, written.is_none()).await {
                Ok((node, seq)) => {
                    if let Some(subagent) = result_of {
                        self.is_told(&subagent).await;
                    }
                    // Before anybody else may take them along.
                    let kept = self.remove_sent(&sent).await;
                    self.log.push(accepted(node));
                    self.tell_of_files(&gone, kept);
                    let before = written.take().map(|before| (before.says, before.trust));
                    let (mut says, lowest) = before.unwrap_or((Vec::new(), trust));
                    says.push(key);
                    let (trust, part_of) = (trust.min(lowest), part_of.or(seq));
                    written = Some(Written { says, node, from, part_of, view, author, trust });
                }
                Err(error) => self.reject(&key, error),
            }
        }
        written
    }

    async fn write_one(
        &self,
        held: &SessionLease,
        (tree, part_of): (TreeId, Option<Seq>),
        pending: Pending,
        is_first: bool,
    ) -> Result<(NodeId, Option<Seq>), AgentError> {
        let Pending { input, view, reply_to, author, trust, remote, .. } = pending;
        let (runtime, who) = (self.runtime, &Principal::Owner);
        let (op, media) = match input {
            TurnInput::New { texts, media, .. } => {
                let by = |text: NewText| said_by(&author, trust, text);
                // What was said before in this turn is answered together with it.
                let exclude = if is_first && reply_to.is_none() && part_of.is_none() {
                    self.unanswered(tree, &view).await?
                } else {
                    Vec::new()
                };
                (
                    Op::Reply { to: reply_to, texts: texts.into_iter().map(by).collect(), exclude, part_of },
                    media,
                )
            }
            TurnInput::Instead { of, text } => {
                self.include(held, tree, &view, of, false).await?;
                (Op::Edit { position: of, text, edit_as: EditAs::Branch }, Vec::new())
            }
            TurnInput::Again { of } => return self.take_up(held, tree, &view, of).await,
        };
        let with = AttachedWrites { guards: vec![held.guard()], ..AttachedWrites::nothing() };
        let shown = if let Op::Reply { texts, .. } = &op { shown_by(texts) } else { Vec::new() };
        let written = async {
            match &remote {
                None => {
                    let _hold = runtime.keep_blobs(media).await?;
                    runtime.change_as((who, &author, trust), tree, &view, op, with).await
                }
                Some(remote) => {
                    let _hold = runtime.hold_blobs(&shown).await?;
                    let announce = |node| remote.announce(node);
                    runtime.change_announced((who, &author, trust), (tree, &view), op, with, announce).await
                }
            }
        };
        let applied = self.named(held, written.await).await;
        if let Err(error) = &applied {
            match &remote {
                Some(remote) => remote.reject(error).await,
                None => self.remove_unsaid(&shown).await,
            }
        }
        let applied = applied?;
        let node = applied.nodes.last().map(|(node, _)| *node).ok_or(Refusal::Empty)?;
        Ok((node, applied.seq))
    }

    /// Removes pictures and sounds of what was not said, unless a node shows them.
    pub(super) async fn remove_unsaid(&self, all: &[Digest]) {
        if let Err(error) = self.runtime.remove_blobs(&Principal::Owner, all).await {
            tracing::warn!(%error, "what was not said is still there");
        }
    }

    /// Asks the model for all that was written, runs what it calls and asks it again, until it calls nothing more.
    async fn answer(
        &self,
        held: &SessionLease,
        site: &AnswerSite<'_>,
        mut written: Written,
        limits: &mut TurnLimits,
    ) {
        let AnswerSite { tree, config, turn, hands_back } = *site;
        let (mut from, mut cost, next) = (written.from, None, NextPlace::default());
        let mut earlier: Option<EarlierAnswer> = None;
        let ended = loop {
            let call = self.call(held, (&written.author, written.trust), limits);
            let request = GenerationRequest {
                part_of: written.part_of,
                guards: vec![held.guard()],
                ..config.request_from(tree, &written.view, from)
            };
            limits.count_model_call();
            let generated =
                self.named(held, request.send_in_turn(self.runtime, &call, turn.to_owned()).await).await;
            match (&generated, from.take()) {
                (Err(AgentError::TakenOver { .. }), _) => self.runtime.recover_own().await,
                (Ok(GenerationOutcome { nodes, .. }), Some(_)) if !nodes.is_empty() => {
                    self.go_to(held, tree, &written.view, nodes[0].id).await;
                }
                _ => {}
            }
            if let Ok(GenerationOutcome { cost: more, usage, estimated_usage, .. }) = &generated {
                cost = more.map(|more| cost.unwrap_or(Money::ZERO) + more).or(cost);
                let usage = usage.as_ref().unwrap_or(estimated_usage);
                limits.count_tokens(usage.input() + usage.output);
            }
            let mut generated = match generated {
                Ok(generated) if generated.error.is_none() => generated,
                ended => break ended,
            };
            let node = generated.nodes.first().map(|node| node.id);
            let Some(registry) = &config.tools else {
                self.tell_not_offered(tree, node).await;
                break Ok(generated);
            };
            let Some(node) = node else { break Ok(generated) };
            let (view, call, next) = (&written.view, &call, &next);
            let place = CallSite { held, tree, view, call, config, spending: turn, next, hands_back };
            match self.run_calls(&place, registry, node, limits).await {
                Ok(Called::Here(part_of)) => written.part_of = part_of,
                Ok(Called::Nothing) => match self.go_on_by_hook(&place, registry, node, limits).await {
                    Ok(Some(hook)) => {
                        (written.trust, written.part_of) = (hook.trust.min(written.trust), hook.part_of);
                    }
                    Ok(None) => break Ok(generated),
                    Err(error) => {
                        generated.error = Some(error);
                        break Ok(generated);
                    }
                },
                Ok(Called::Elsewhere) => {
                    next.take();
                    self.log.push(SessionEvent::notice(MOVED));
                    break Ok(generated);
                }
                Err(error) => {
                    generated.error = Some(error);
                    break Ok(generated);
                }
            }
            earlier = Some(EarlierAnswer { generated, says: written.says.len(), said: written.node });
            let joining = self.inbox.next_behind(&written.view);
            limits.hear(&joining);
            if !joining.is_empty()
                && let Some(more) = self.write(held, (tree, written.part_of), joining).await
            {
                written.says.extend(more.says);
                (written.node, written.author, written.trust) =
                    (more.node, more.author, more.trust.min(written.trust));
            }
        };
        if let (Some(registry), Some(last)) = (&config.tools, limits.last_call.take()) {
            self.keep_background_changes(held, tree, registry, (last, hands_back)).await;
        }
        self.go_on(held, &written, (tree, &config.agent), (&next, &ended)).await;
        for (says, outcome) in outcomes((written.says, written.node, tree), (ended, earlier), cost) {
            if let Some(error) = &outcome.error {
                limits.end_by(&error.0);
            }
            self.log.push(SessionEvent::Finished { says, outcome: Box::new(outcome) });
        }
    }

    /// What was done, or who took the session over, if that is why it was not.
    pub(super) async fn named<T>(
        &self,
        held: &SessionLease,
        done: Result<T, AgentError>,
    ) -> Result<T, AgentError> {
        match done {
            Err(AgentError::Store(StoreError::Fenced { what })) if what == held.guard().lease => {
                let lease = self.runtime.store.lease(&Principal::Owner, &what).await.ok().flatten();
                let holder = lease.and_then(|lease| lease.holder);
                let by = holder.map_or_else(|| "another process".to_owned(), |by| self.runtime.name_of(&by));
                held.lose();
                Err(AgentError::TakenOver { by })
            }
            done => done,
        }
    }
}

/// Pictures and sounds that texts show.
pub(super) fn shown_by(texts: &[NewText]) -> Vec<Digest> {
    let blocks = texts.iter().flat_map(|text| &text.content);
    blocks
        .filter_map(|block| match block {
            Block::Image { blob, .. } | Block::Audio { blob, .. } => Some(*blob),
            _ => None,
        })
        .collect()
}
