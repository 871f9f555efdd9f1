//! Hooks of a session's start, and of a turn's end, where one may go on with the turn (spec: agent §10 *Hooks*).

use std::sync::Arc;

use loom::plan::NewText;
use loom::{
    Author, AuthorKind, Block, NodeId, Op, Role, RowError, Seq, TreeId, TreeReader, Trust, ViewName, render,
};
use serde_json::{Map, Value, json};
use store::{AttachedWrites, CallId, Principal};
use text::title::title;
use tools::{CallPlace, Continuation, HookEvent, NextPlace, ToolRegistry, WaitedTime};

use super::call_site::CallSite;
use super::calls::turn_of;
use super::file_changes::CallChanges;
use super::limits::TurnLimits;
use super::{Turn, TurnConfig};
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::lease::SessionLease;

/// How often hooks go on with one turn, at most.
const CONTINUATIONS: u32 = 3;

/// Nodes of hooks behind an answer.
pub(super) struct HookNodes {
    pub(super) trust: Trust,
    pub(super) part_of: Option<Seq>,
}

impl Turn<'_> {
    /// Runs the hooks of the turn's end behind an answer that calls nothing, and writes down what they go on with,
    /// a node each. None where the turn ends.
    ///
    /// # Errors
    /// The answer could not be read, or the text not be written.
    pub(super) async fn go_on_by_hook(
        &self,
        site: &CallSite<'_>,
        registry: &Arc<ToolRegistry>,
        answer: NodeId,
        limits: &mut TurnLimits,
    ) -> Result<Option<HookNodes>, AgentError> {
        let (who, event, cancel) = (&Principal::Owner, HookEvent::TurnEnd, site.held.cancel());
        if !registry.has_hooks(event) || cancel.is_cancelled() {
            return Ok(None);
        }
        let view = site.view.clone();
        let read = move |rows: &dyn TreeReader| {
            let row = rows.node(answer)?.ok_or_else(|| RowError::missing("node", answer))?;
            let is_tip = render::tip(rows, &view)? == row.node.position;
            Ok((is_tip, row.node.said().into_owned(), row.node.trust, turn_of(rows, &view)?))
        };
        let (is_tip, said, trust, part_of) = self.runtime.read(who, site.tree, read).await?;
        if !is_tip {
            return Ok(None);
        }
        let told = [("answer", json!(said)), ("continued", json!(limits.continued))];
        let told: Map<_, _> = told.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        // What they change is a change of the turn's last call; without one they only look.
        let last = limits.last_call;
        let only_looks = last.is_none() || site.config.plan || self.is_plan_mode_on().await;
        let id = last.map_or(CallId { answer, number: 0 }, |last| last.id);
        let trust = last.map_or(trust, |last| last.trust.min(trust));
        let changes = CallChanges::of(self.runtime, (site.tree, id), None, &[site.held.guard()], trust);
        let place = site.call_place(self.runtime, (answer, trust, part_of), limits.waited.clone());
        let goes_on = self.run_hooks(registry, (event, told, only_looks), (changes, place)).await;
        if goes_on.is_empty() {
            return Ok(None);
        }
        if site.held.cancel().is_cancelled() {
            return Err(AgentError::Stopped);
        }
        let ends = match limits.continued >= CONTINUATIONS {
            true => Some(format!("as hooks went on with it {CONTINUATIONS} times")),
            false => limits.are_met().then(|| "as a limit of it is met".to_owned()),
        };
        if let Some(why) = ends {
            for Continuation { hook, text, .. } in goes_on {
                let told =
                    format!("the turn ends, {why}; the hook {hook} would go on with it: {}", title(&text));
                self.log.push(SessionEvent::notice(told));
            }
            return Ok(None);
        }
        limits.continued += 1;
        let author =
            |hook: &str| Author { kind: AuthorKind::Tool, id: format!("hook/{hook}"), profile: None };
        let texts: Vec<_> = goes_on
            .iter()
            .map(|Continuation { hook, text, trust: believed }| NewText {
                content: vec![Block::text(format!("[hook {hook}]\n{text}"))],
                author: author(hook),
                role: Some(Role::Tool),
                trust: trust.min(*believed),
            })
            .collect();
        let trust = texts.iter().fold(trust, |lowest, text| lowest.min(text.trust));
        let op = Op::Reply { to: None, texts, exclude: Vec::new(), part_of };
        let with = AttachedWrites { guards: vec![site.held.guard()], ..AttachedWrites::nothing() };
        let first = author(&goes_on[0].hook);
        let written = self.runtime.change_as((who, &first, trust), site.tree, site.view, op, with).await;
        self.named(site.held, written).await?;
        for Continuation { hook, text, .. } in goes_on {
            let told = format!("the hook {hook} goes on with the turn: {}", title(&text));
            self.log.push(SessionEvent::notice(told));
        }
        Ok(Some(HookNodes { trust, part_of }))
    }

    /// Runs the hooks of the session's start, once in the process, behind what was said first; they only look. What goes
    /// wrong is said.
    pub(super) async fn start_by_hooks(
        &self,
        held: &SessionLease,
        config: &TurnConfig,
        (tree, view): (TreeId, &ViewName),
    ) {
        let event = HookEvent::SessionStart;
        let registry = config.tools.as_ref().filter(|tools| tools.has_hooks(event));
        let Some(registry) = registry.filter(|_| self.inbox.begins()) else { return };
        // No call: the id is a name for what they leave in quarantine.
        let answer = match self.runtime.new_id::<NodeId>() {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(%error, "hooks of the session's start did not run");
                return;
            }
        };
        let trust = Trust::Workspace;
        let id = CallId { answer, number: 0 };
        let changes = CallChanges::of(self.runtime, (tree, id), None, &[held.guard()], trust);
        let place = CallPlace {
            tree,
            view: view.clone(),
            trust,
            masker: Arc::clone(&self.runtime.masker),
            answer: None,
            fence: None,
            turn: None,
            next: NextPlace::default(),
            model: None,
            spending: String::new(),
            waited: WaitedTime::default(),
            cancel: held.cancel(),
            skills_list: None,
            subagents: None,
            person: None,
        };
        let told = [("session".to_owned(), json!(self.session.0))].into_iter().collect();
        self.run_hooks(registry, (event, told, true), (changes, place)).await;
    }

    /// Runs the hooks of an event, and tells what there is to know of them. What one goes on with.
    async fn run_hooks(
        &self,
        registry: &Arc<ToolRegistry>,
        (event, told, only_looks): (HookEvent, Map<String, Value>, bool),
        (changes, place): (CallChanges, CallPlace),
    ) -> Vec<Continuation> {
        let registry = Arc::clone(registry);
        let run = move || registry.run_hooks((event, &told, only_looks), &place.cancel, &changes, &place);
        match tokio::task::spawn_blocking(run).await {
            Ok(ran) => {
                ran.notices.into_iter().for_each(|told| self.log.push(SessionEvent::notice(told)));
                ran.goes_on
            }
            Err(failed) => {
                tracing::error!(%failed, "hooks failed in the program itself");
                Vec::new()
            }
        }
    }
}
