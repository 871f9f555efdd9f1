//! Subagents of a conversation, as they are shown.

use std::collections::{BTreeMap, BTreeSet};

use agent::in_subagent;
use agent::session::{SubagentEnd, SubagentStatus};
use loom::path::{self, ViewOverrides};
use loom::{Block, NodeId, RowError, ToolStatus, TreeReader, ViewName, render};
use store::CallId;

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::file_changes::changed_by;
use crate::results::chat::{Chatted, DeniedCall};
use crate::results::subagents::{SubagentShown, SubagentWork, SubagentsShown};
use crate::rights::Asker;

impl Conversation {
    /// How the subagents of the session stand (`/subagents`).
    ///
    /// # Errors
    /// As the store says.
    pub(crate) async fn subagents_shown(
        &self,
        app: &App,
        asker: &Asker,
    ) -> Result<SubagentsShown, CommandError> {
        let Some(entered) = self.entered_before(app, asker).await? else {
            return Ok(SubagentsShown { subagents: Vec::new() });
        };
        let mut subagents = Vec::new();
        for status in app.runtime.subagents(&app.sessions, &entered.session).await? {
            let denied = app.read(asker, status.tree, work_of).await.map(|work| work.denied.len());
            let denied = denied.unwrap_or_else(|error| {
                tracing::warn!(error = error.message, "what was denied to a subagent is not known");
                0
            });
            subagents.push(shown(status, denied));
        }
        Ok(SubagentsShown { subagents })
    }

    /// The result of a turn with what the subagents did that its calls began; without it where it cannot be read, which is
    /// said. So are calls of theirs that were refused.
    pub(super) async fn with_subagents(&self, app: &App, asker: &Asker, done: Chatted) -> Chatted {
        match self.work_of_subagents(app, asker, &done).await {
            Ok(subagents) => {
                subagents.iter().for_each(|work| tell_denied(app, work));
                Chatted { subagents, ..done }
            }
            Err(error) => {
                app.frontend.note(&format!("what its subagents did could not be read: {}", error.message));
                done
            }
        }
    }

    async fn work_of_subagents(
        &self,
        app: &App,
        asker: &Asker,
        done: &Chatted,
    ) -> Result<Vec<SubagentWork>, CommandError> {
        let mut subagents = Vec::new();
        // Those of earlier turns were begun before.
        let first = done.calls.iter().map(|call| call.id.answer.to_string()).min();
        let first = first.unwrap_or_default();
        for subagent in self.subagents_shown(app, asker).await?.subagents {
            let tree = subagent.tree;
            if tree.to_string() < first {
                continue;
            }
            let WorkOfTree { begun_by, calls, denied } = app.read(asker, tree, work_of).await?;
            if done.calls.iter().any(|call| Some(call.id.answer) == begun_by) {
                let changed = changed_by(app, asker, tree, calls).await?;
                subagents.push(SubagentWork { subagent, changed, denied });
            }
        }
        Ok(subagents)
    }

    /// Says that subagents are waited for, which the turn left at work.
    pub fn tell_subagents(&self, app: &App) {
        let running = self.turn.as_ref().map_or(0, |turn| turn.session.running_subagents());
        if running > 0 {
            let them = if running == 1 { "a subagent".to_owned() } else { format!("{running} subagents") };
            app.frontend.note(&format!("waiting for {them}, and for the answer to what comes of that"));
        }
    }
}

/// Whose text joined a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinedFrom {
    /// Of a person, in this process.
    Here,
    AnotherProcess,
    /// What a subagent came to, which nobody typed.
    Subagent,
}

impl JoinedFrom {
    pub(super) const fn of(is_remote: bool, is_of_subagent: bool) -> Self {
        match (is_remote, is_of_subagent) {
            (_, true) => Self::Subagent,
            (true, false) => Self::AnotherProcess,
            (false, false) => Self::Here,
        }
    }
}

/// What was said while a turn went on, as it is shown: behind the prompt, but for what a subagent came to.
pub fn joined_line(session: &str, text: &str, from: JoinedFrom) -> String {
    match from {
        JoinedFrom::Here => format!("{session}> {text}"),
        JoinedFrom::AnotherProcess => format!("{session}> (another process) {text}"),
        JoinedFrom::Subagent => text.to_owned(),
    }
}

/// Says what was denied to a subagent, as what is denied to its parent is said in its turn.
fn tell_denied(app: &App, SubagentWork { subagent, denied, .. }: &SubagentWork) {
    let why = denied.iter().map(|call| call.why.lines().next().unwrap_or_default());
    let mut told: Vec<&str> = why.collect();
    told.dedup();
    told.iter().for_each(|why| app.frontend.note(&format!("{}: {why}", in_subagent(&subagent.label))));
}

fn shown(status: SubagentStatus, denied_calls: usize) -> SubagentShown {
    let SubagentStatus { name, label, model, tree, progress, cost, unpriced_tokens } = status;
    let SubagentEnd { state, why, model_calls, tool_calls, tokens } = progress;
    let (session, cost) = (name, cost.dollars());
    SubagentShown {
        session,
        label,
        model,
        tree,
        state,
        why,
        model_calls,
        tool_calls,
        denied_calls,
        tokens,
        cost,
        unpriced_tokens,
    }
}

/// What the tree of a subagent says of it.
struct WorkOfTree {
    /// The answer that began it.
    begun_by: Option<NodeId>,
    calls: BTreeSet<CallId>,
    /// Calls of it that were refused.
    denied: Vec<DeniedCall>,
}

fn work_of(rows: &dyn TreeReader) -> Result<WorkOfTree, RowError> {
    let view = ViewName::default();
    let end = render::tip(rows, &view)?;
    let depth = path::position(rows, end)?.depth;
    let overrides = ViewOverrides::read(rows, &view, end)?;
    let limit = usize::try_from(depth).unwrap_or(usize::MAX);
    let (mut calls, mut denied) = (BTreeMap::new(), Vec::new());
    for passage in render::window(rows, &view, &overrides, Some(depth), limit)? {
        let node = &passage.row.node;
        let of_answer = node.content.iter().filter_map(|block| match block {
            Block::ToolCall { id, .. } => Some(id.clone()),
            _ => None,
        });
        let answer = node.position.original();
        calls.extend((0..).zip(of_answer).map(|(number, call)| (call, CallId { answer, number })));
        for block in node.content.iter() {
            if let Block::ToolResult { call_id, status: ToolStatus::Denied, .. } = block
                && let Some(id) = calls.get(call_id)
            {
                let (tool, why) = (node.author.id.clone(), node.said().into_owned());
                denied.push(DeniedCall { id: *id, tool, node: node.id, why });
            }
        }
    }
    let begun_by = rows.tree()?.origin.and_then(|origin| origin.node);
    Ok(WorkOfTree { begun_by, calls: calls.into_values().collect(), denied })
}
