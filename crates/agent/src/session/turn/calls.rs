//! Calls of an answer: checked, started durably, run, and each result a node as soon as it is known (spec: agent §1, 7).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use context::Prefix;
use context::elicitation::QuestionEnd;
use context::segment::Source;
use context::tools::server_of;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt as _};
use loom::plan::{CallResult, NewText};
use loom::{
    Author, AuthorKind, Block, Digest, NodeId, NodeRow, Op, PositionId, Role, Seq, ToolStatus, TreeId,
    TreeReader, Trust, ViewName,
};
use media::Picture;
use policy::Effect;
use serde_json::Value;
use store::{AttachedWrites, CallEnd, CallId, Claim, LeaseOwner, NewCall, Principal};
use tools::{CallPlace, CheckedCall, LIST_SKILLS, SUBAGENT_TOOLS, ToolOutput, ToolRegistry};

use super::Turn;
use super::approval::{Permit, ProposedCall};
use super::call_site::CallSite;
use super::file_changes::CallChanges;
use super::limits::TurnLimits;
use super::named_skills::named_in_turn;
use super::result_lines::result_lines;
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::lease::SessionLease;
use crate::questions::{FROM_OUTSIDE, QuestionContext};

/// The last call of a turn that was run.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastCall {
    pub(super) id: CallId,
    pub(super) trust: Trust,
    part_of: Option<Seq>,
}

/// What came of the calls of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// Nothing was called.
    Nothing,
    /// The view stands below the results; with the operation that began the turn.
    Here(Option<Seq>),
    /// The view went elsewhere meanwhile.
    Elsewhere,
}

/// A call as its answer says it.
pub(super) struct AskedCall {
    /// Which of the calls of its answer, from 0.
    pub(super) number: u32,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// Whether its server asked a person something that nobody answered.
    pub(super) unanswered: Arc<AtomicBool>,
}

impl AskedCall {
    /// Calls of an answer, in order.
    pub(super) fn of(row: &NodeRow) -> Vec<Self> {
        let blocks = row.node.content.iter().filter_map(|block| match block {
            Block::ToolCall { id, name, arguments } => Some((id, name, arguments)),
            _ => None,
        });
        let calls = (0..).zip(blocks).map(|(number, (id, name, arguments))| {
            let (tool, arguments) = context::tools::unwrapped(name, arguments);
            let (tool, arguments) = (tool.to_owned(), arguments.clone());
            Self { number, id: id.clone(), tool, arguments, unanswered: Arc::default() }
        });
        calls.collect()
    }

    /// That it is called.
    pub(super) fn event(&self, answer: NodeId, effects: Vec<Effect>) -> SessionEvent {
        let (tool, arguments) = (self.tool.clone(), self.arguments.to_string());
        SessionEvent::Call { answer, number: self.number, tool, arguments, effects }
    }
}

/// The calls of an answer.
struct AnswerCalls {
    answer: NodeId,
    /// The lowest trust its request sent, and the agent's at most.
    trust: Trust,
    /// The texts from outside that its request sent, as a person is told of them.
    outside: Vec<String>,
    /// The operation that began its turn.
    part_of: Option<Seq>,
    /// Skills that were named in its turn.
    skills: Vec<String>,
    calls: Vec<AskedCall>,
}

/// Where the results of an answer's calls go.
struct Results<'r> {
    site: &'r CallSite<'r>,
    part_of: Option<Seq>,
    /// The lowest trust its request sent, and the agent's at most.
    trust: Trust,
    answer: NodeId,
    /// The last of them, or the answer.
    last: PositionId,
}

/// The operation that began the turn at whose end a view stands: everything of it is undone together.
pub(crate) fn turn_of(rows: &dyn TreeReader, view: &ViewName) -> Result<Option<Seq>, loom::RowError> {
    let newest = rows.timeline(view)?.undo.map(|seq| rows.operation(seq)).transpose()?.flatten();
    Ok(newest.map(|record| record.turn()))
}

impl AnswerCalls {
    /// Calls of an answer at which a view still stands; none where it stands elsewhere, or where the answer calls
    /// nothing.
    fn read(rows: &dyn TreeReader, view: &ViewName, node: NodeId) -> Result<Option<Self>, loom::RowError> {
        let Some(row) = rows.node(node)? else { return Ok(None) };
        if row.purged || loom::render::tip(rows, view)? != row.node.position {
            return Ok(None);
        }
        let calls = AskedCall::of(&row);
        let answer = row.node.position.original();
        let (trust, part_of) = (row.node.trust, turn_of(rows, view)?);
        let outside = outside_text(rows, &row)?;
        if calls.is_empty() {
            return Ok(None);
        }
        let skills = named_in_turn(rows, row.node.position, part_of)?;
        Ok(Some(Self { answer, trust, outside, part_of, skills, calls }))
    }
}

/// Texts from outside that are named in a question.
const OUTSIDE_NAMED: usize = 5;

/// What of the request of an answer came from outside, a line each: by its node, who wrote it, and how it begins, which of a
/// page is its address (spec: security §14).
fn outside_text(rows: &dyn TreeReader, answer: &NodeRow) -> Result<Vec<String>, loom::RowError> {
    let generation = answer.node.generation.filter(|_| answer.node.trust == Trust::Outside);
    let Some(generation) = generation.map(|id| rows.generation(id)).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let manifest = crate::stored::manifest(rows, generation.manifest)?;
    let Some(manifest) = manifest else { return Ok(Vec::new()) };
    let mut nodes: Vec<NodeId> = manifest.tainted_by.into_iter().collect();
    for segment in manifest.segments.iter().filter(|segment| segment.trust == Some(Trust::Outside)) {
        if let Source::Node { node, .. } | Source::Injection { node, .. } = &segment.source
            && segment.bytes.is_some()
            && !nodes.contains(node)
        {
            nodes.push(*node);
        }
    }
    let mut lines = Vec::new();
    for node in nodes.iter().take(OUTSIDE_NAMED) {
        let Some(row) = rows.node(*node)? else { continue };
        let (author, begins) = (&row.node.author.id, text::title::title(&row.node.said()));
        lines.push(format!("{FROM_OUTSIDE}{}, {author}: {begins}", row.short_id));
    }
    if nodes.len() > OUTSIDE_NAMED {
        lines.push(format!("{FROM_OUTSIDE}{} more texts: /trust lists them", nodes.len() - OUTSIDE_NAMED));
    }
    Ok(lines)
}

impl Turn<'_> {
    /// Runs the calls of an answer.
    ///
    /// # Errors
    /// A limit is met, the work was stopped, or a result could not be kept.
    pub(super) async fn run_calls(
        &self,
        site: &CallSite<'_>,
        registry: &Arc<ToolRegistry>,
        node: NodeId,
        limits: &mut TurnLimits,
    ) -> Result<Called, AgentError> {
        let (who, view) = (&Principal::Owner, site.view.clone());
        let read = move |rows: &dyn TreeReader| AnswerCalls::read(rows, &view, node);
        let read = self.runtime.read(who, site.tree, read).await?;
        let Some(AnswerCalls { answer, trust, outside, part_of, skills, calls }) = read else {
            return Ok(Called::Nothing);
        };
        if !skills.is_empty() {
            let registry = Arc::clone(registry);
            // It may look at the disk.
            let followed = tokio::task::spawn_blocking(move || registry.follow_named(&skills)).await;
            followed.map_err(|failed| {
                AgentError::Refused(format!("which skills are followed is not known: {failed}"))
            })?;
        }
        let place = Some((site.view, answer.as_position()));
        let asker = QuestionContext {
            call: site.call,
            tree: site.tree,
            guards: &[site.held.guard()],
            place,
            end: QuestionEnd::never(),
        };
        let mut results = Results { site, part_of, trust, answer, last: answer.as_position() };
        let (checking, mut cancel) = (Arc::clone(registry), site.held.cancel());
        // The schema of a server may take long.
        let checked = tokio::select! {
            checked = tokio::task::spawn_blocking(move || batches(&checking, calls)) => checked,
            () = cancel.cancelled() => return Err(AgentError::Stopped),
        };
        let checked = checked
            .map_err(|failed| AgentError::Refused(format!("a call could not be checked: {failed}")))?;
        for batch in checked {
            let mut running = FuturesUnordered::new();
            let begun = self.run_batch(&mut results, &outside, batch, &mut running, limits, &asker).await;
            // Whatever went wrong: what runs comes to its end, and what it did is a result.
            let kept = self.keep_ended(&mut results, &mut running, limits).await;
            begun.and(kept)?;
            // What was not started has no result, and a request says that it was not.
            if site.held.cancel().is_cancelled() {
                return Err(AgentError::Stopped);
            }
        }
        limits.require(self.runtime, &asker).await?;
        let (view, last) = (site.view.clone(), results.last);
        let tip = self.runtime.read(who, site.tree, move |rows| loom::render::tip(rows, &view)).await?;
        Ok(if tip == last { Called::Here(part_of) } else { Called::Elsewhere })
    }

    /// Runs calls that may run beside each other. Those that are still running in the end are left in `running`.
    ///
    /// # Errors
    /// As of [`Self::run_calls`].
    async fn run_batch<'r>(
        &self,
        results: &mut Results<'r>,
        outside: &[String],
        batch: Vec<CheckedOrRefused>,
        running: &mut FuturesUnordered<BoxFuture<'r, EndedCall>>,
        limits: &mut TurnLimits,
        asker: &QuestionContext<'_>,
    ) -> Result<(), AgentError> {
        let Results { site, part_of, trust, answer, .. } = *results;
        for (asked, checked) in batch {
            if limits.end_calls() {
                self.keep_ended(results, running, limits).await?;
                limits.require(self.runtime, asker).await?;
            }
            if !checked.as_ref().is_ok_and(CheckedCall::looks_at_a_command) {
                limits.count(&asked.tool, &asked.arguments);
            }
            let effects = checked.as_ref().map_or_else(|_| Vec::new(), |call| call.effects().to_vec());
            self.log.push(asked.event(answer, effects));
            let checked = match checked {
                Ok(checked) => checked,
                // It never runs, and its reason is its result.
                Err(output) => {
                    self.keep(results, &asked, (output, String::new()), None).await?;
                    continue;
                }
            };
            // Whoever turns it on while the turn runs means the next call, too.
            let plan_mode = site.config.plan || self.is_plan_mode_on().await;
            let checked = Arc::new(if plan_mode { checked.in_plan_mode() } else { checked });
            let id = CallId { answer, number: asked.number };
            let mut has_changed = false;
            let permit = {
                let tool = &asked.tool;
                let proposed = ProposedCall { id, tool, checked: &checked, trust, outside, plan_mode };
                let mut permit = pin!(self.permit(site, limits.denied(), proposed));
                // Those that run do not wait for an answer about this one.
                loop {
                    tokio::select! {
                        biased;
                        permit = &mut permit => break permit,
                        Some((ended, claim, (told, changed))) = running.next() => {
                            has_changed |= changed;
                            self.keep(results, &ended, told?, Some(claim)).await?;
                        }
                    }
                }
            };
            if has_changed {
                limits.begin_same_calls_anew();
            }
            let is_approved = match permit {
                Ok(Permit::Refused(output)) => {
                    self.keep(results, &asked, (output, String::new()), None).await?;
                    continue;
                }
                Ok(permit) => matches!(permit, Permit::Approved),
                Err(error) => {
                    limits.end_by(&error);
                    return Err(error);
                }
            };
            let claim = self.start(site, id).await?;
            limits.last_call = Some(LastCall { id, trust, part_of });
            let guards = [site.held.guard()];
            let changes = CallChanges::of(self.runtime, (site.tree, id), Some(&claim), &guards, trust)
                .approved(is_approved)
                .by(&asked.tool);
            let mut place = site.call_place(self.runtime, (answer, trust, part_of), limits.waited.clone());
            if server_of(&asked.tool).is_some() {
                place.person = Some(Arc::new(self.person(site, id, &asked)));
            }
            if asked.tool == LIST_SKILLS {
                let request = self.runtime.recent_request(&Principal::Owner, site.tree).await?;
                let prefix = request.as_ref().and_then(|request| request.prefix.as_ref());
                place.skills_list = prefix.and_then(Prefix::skills_list).map(str::to_owned);
            }
            if SUBAGENT_TOOLS.contains(&asked.tool.as_str()) {
                place.subagents = Some(Arc::new(self.subagents(site, answer, limits)));
            }
            running.push(Box::pin(run(site.held, checked, (changes, place), asked, claim)));
        }
        Ok(())
    }

    /// Writes down what commands that run on in the background changed since the last call of the turn, as changes of that
    /// call; once they are ended, where their process ends with the turn.
    pub(super) async fn keep_background_changes(
        &self,
        held: &SessionLease,
        tree: TreeId,
        registry: &Arc<ToolRegistry>,
        (last, ends): (LastCall, bool),
    ) {
        let changes = CallChanges::of(self.runtime, (tree, last.id), None, &[held.guard()], last.trust);
        let registry = Arc::clone(registry);
        let settle = move || {
            if ends {
                registry.end_commands();
            }
            registry.keep_background_changes(&changes, (tree, last.part_of))
        };
        match tokio::task::spawn_blocking(settle).await {
            Ok(changed) => changed.iter().flat_map(tools::ChangedFiles::notes).for_each(|note| {
                self.log.push(SessionEvent::notice(format!("of commands in the background: {note}")));
            }),
            Err(failed) => tracing::error!(%failed, "what commands in the background changed is not known"),
        }
    }

    /// Writes down that a call is about to run: whoever finds it without a result knows that it may have.
    async fn start(&self, site: &CallSite<'_>, id: CallId) -> Result<Claim, AgentError> {
        let owner = LeaseOwner::new(self.runtime.instance.to_string());
        let claim = Claim { owner, fence: site.held.fence() };
        let new = NewCall { id, claim: claim.clone(), guards: vec![site.held.guard()] };
        let started = self.runtime.store.start_call(&Principal::Owner, site.tree, new).await;
        self.named(site.held, started.map_err(AgentError::from)).await?;
        Ok(claim)
    }

    /// Keeps the results of the calls that run, as they come.
    ///
    /// # Errors
    /// One could not be kept; the others are.
    async fn keep_ended(
        &self,
        results: &mut Results<'_>,
        running: &mut (impl Stream<Item = EndedCall> + Unpin),
        limits: &mut TurnLimits,
    ) -> Result<(), AgentError> {
        let mut all = Ok(());
        while let Some((asked, claim, (told, changed))) = running.next().await {
            if changed {
                limits.begin_same_calls_anew();
            }
            let kept = match told {
                Ok(told) => self.keep(results, &asked, told, Some(claim)).await,
                Err(error) => self.named(results.site.held, Err(error)).await,
            };
            all = all.and(kept);
        }
        all
    }

    /// Makes a result, with the difference that its call made, a node below the one before it.
    async fn keep(
        &self,
        results: &mut Results<'_>,
        asked: &AskedCall,
        (output, difference): (ToolOutput, String),
        claim: Option<Claim>,
    ) -> Result<(), AgentError> {
        let Results { site, part_of, trust, answer, last: to } = *results;
        let ToolOutput { status, text, beside, brief, pictures, trust: read } = output;
        let (author, trust) = (tool_author(&asked.tool), trust.min(read));
        let lines = result_lines(&text, &brief, &difference);
        // Whoever reads what the tool itself said reads the first block.
        let beside = Some(beside).filter(|beside| !beside.is_empty());
        let texts = [text].into_iter().chain(beside).map(Block::text);
        let said = texts.chain(pictures.iter().map(shown));
        let text = result(&asked.id, status, said.collect(), (author.clone(), trust));
        // Not removed before the node that shows them is there.
        let pictures: Vec<Vec<u8>> = pictures.into_iter().map(|picture| picture.bytes).collect();
        let blobs: Vec<Digest> = pictures.iter().map(|bytes| Digest::of(bytes)).collect();
        let hold = self.runtime.keep_blobs(pictures).await?;
        let op = Op::Result(Box::new(CallResult { to, text, part_of }));
        let id = CallId { answer, number: asked.number };
        let with = AttachedWrites {
            calls: claim.into_iter().map(|claim| CallEnd { id, claim }).collect(),
            guards: vec![site.held.guard()],
            ..AttachedWrites::nothing()
        };
        let writer = (&Principal::Owner, &author, trust);
        let written = self.runtime.change_as(writer, site.tree, site.view, op, with).await;
        drop(hold);
        if written.is_err() {
            self.remove_unsaid(&blobs).await;
        }
        let applied = self.named(site.held, written).await?;
        let node = applied.nodes.last().map(|(node, _)| *node).ok_or(loom::Refusal::Empty)?;
        let unanswered = asked.unanswered.load(Ordering::Relaxed);
        self.log.push(SessionEvent::Result { answer, number: asked.number, status, node, lines, unanswered });
        results.last = node.as_position();
        Ok(())
    }
}

/// What a call brought, and the difference it made; or why it stays without a result.
type CallOutcome = Result<(ToolOutput, String), AgentError>;

/// A call that has ended, with what came of it, and whether it changed a file.
type EndedCall = (AskedCall, Claim, (CallOutcome, bool));

/// A call and what its check says.
type CheckedOrRefused = (AskedCall, Result<CheckedCall, ToolOutput>);

/// Calls in the order they run: those that only read and stand beside each other at one time, every other one when
/// the one before has ended.
fn batches(registry: &ToolRegistry, calls: Vec<AskedCall>) -> Vec<Vec<CheckedOrRefused>> {
    let mut batches: Vec<Vec<CheckedOrRefused>> = Vec::new();
    let mut joins = false;
    for asked in calls {
        let checked = registry.check(&asked.tool, &asked.arguments);
        let only_reads = checked.as_ref().map_or(true, CheckedCall::only_reads);
        match batches.last_mut().filter(|_| joins && only_reads) {
            Some(batch) => batch.push((asked, checked)),
            None => batches.push(vec![(asked, checked)]),
        }
        joins = only_reads;
    }
    batches
}

/// Runs a call on a thread that may wait for the disk; with its difference, and whether a file was changed.
async fn run(
    held: &SessionLease,
    checked: Arc<CheckedCall>,
    (changes, place): (CallChanges, CallPlace),
    asked: AskedCall,
    claim: Claim,
) -> EndedCall {
    let cancel = held.cancel();
    let ran = tokio::task::spawn_blocking(move || {
        let output = checked.run(&cancel, &changes, &place);
        (changes.left().map_or_else(|| Ok((output, changes.difference())), Err), changes.are_some())
    });
    let output = match ran.await {
        Ok(output) => output,
        Err(failed) => {
            tracing::error!(%failed, tool = asked.tool, "a tool failed in the program itself");
            let output = ToolOutput::error("the tool failed: this is an error of the program");
            (Ok((output, String::new())), true)
        }
    };
    (asked, claim, output)
}

/// A tool as the author of what it says.
pub(crate) fn tool_author(name: &str) -> Author {
    Author { kind: AuthorKind::Tool, id: name.to_owned(), profile: None }
}

/// A picture of a result, which is kept.
fn shown(picture: &Picture) -> Block {
    Block::Image { blob: Digest::of(&picture.bytes), mime: picture.kind.mime().to_owned() }
}

/// The result of a call as a node.
pub(crate) fn result(
    call: &str,
    status: ToolStatus,
    blocks: Vec<Block>,
    (author, trust): (Author, Trust),
) -> NewText {
    NewText {
        content: vec![Block::ToolResult { call_id: call.to_owned(), status, blocks }],
        author,
        role: Some(Role::Tool),
        trust,
    }
}
