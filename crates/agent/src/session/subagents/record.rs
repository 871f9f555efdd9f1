//! How subagents stand: of those that run here as they say, of the others as was written with their sessions.

use std::collections::BTreeMap;
use std::fmt;

use loom::{NodeId, TreeId};
use model::Money;
use serde::{Deserialize, Serialize};
use store::{KnownCost, LIST_PAGE, LeaseOwner, Principal, Session, SessionFilter, SessionId, all_pages};

use super::SubagentList;
use crate::error::AgentError;
use crate::runtime::Runtime;
use crate::session::SessionSettings;

/// Of whom a session is the subagent, as it is written with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubagentRecord {
    /// The session that began it.
    pub parent: SessionId,
    pub label: String,
    /// Model of its own: none where it has that of whoever began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The process in which it runs.
    pub owner: String,
    /// How it ended; none before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<SubagentEnd>,
}

/// State of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentState {
    /// Others run, and it waits for its turn.
    Queued,
    Running,
    /// A question of it waits for an answer.
    Waiting,
    Done,
    Failed,
    /// A limit ended it before it was done.
    Limit,
    Stopped,
}

impl fmt::Display for SubagentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting for an answer",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Limit => "not finished: a limit was reached",
            Self::Stopped => "stopped",
        })
    }
}

/// How far a subagent has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubagentEnd {
    pub state: SubagentState,
    /// Why it failed, or which limit it reached.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    pub model_calls: u32,
    pub tool_calls: u32,
    /// Tokens that were sent and received, as far as they were reported.
    pub tokens: u64,
}

impl SubagentEnd {
    pub(super) const fn nothing_yet(state: SubagentState) -> Self {
        Self { state, why: String::new(), model_calls: 0, tool_calls: 0, tokens: 0 }
    }
}

/// How a subagent stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentStatus {
    /// Name of its session.
    pub name: String,
    pub label: String,
    /// Model of its own: none where it has that of whoever began it.
    pub model: Option<String>,
    pub tree: TreeId,
    pub progress: SubagentEnd,
    /// What its requests came to.
    pub cost: Money,
    /// Tokens whose price is not known.
    pub unpriced_tokens: u64,
}

impl fmt::Display for SubagentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SubagentEnd { state, why, model_calls, tool_calls, tokens } = &self.progress;
        write!(f, "{} ({})", self.name, self.label)?;
        if let Some(model) = &self.model {
            write!(f, " on {model}")?;
        }
        write!(f, ": {state}")?;
        if !why.is_empty() {
            write!(f, ": {why}")?;
        }
        let tokens = text::number::grouped(*tokens);
        write!(f, " · {model_calls} model calls, {tool_calls} tool calls, {tokens} tokens, {}", self.cost)
    }
}

impl Runtime {
    /// The subagents that a session began, the oldest first.
    ///
    /// # Errors
    /// As the store says.
    pub(in crate::session) async fn subagents_of(
        &self,
        parent: &SessionId,
        here: &SubagentList,
    ) -> Result<Vec<SubagentStatus>, AgentError> {
        let mut found = Vec::new();
        for (session, record) in self.subagent_records(parent).await? {
            let Some(tree) = session.tree() else { continue };
            let spent = self.store.spent_in(&Principal::Owner, tree).await?;
            let status = SubagentStatus {
                name: session.name.clone(),
                progress: self.progress_of((&session, &record), spent, here).await?,
                label: record.label,
                model: record.model,
                tree,
                cost: Money(spent.micro_dollars.saturating_mul(crate::spend::NANOS)),
                unpriced_tokens: spent.unpriced_tokens,
            };
            found.push(status);
        }
        // Ids are in the order in which they were made.
        found.sort_by_key(|status| status.tree);
        Ok(found)
    }

    /// The process in which subagents of a session run; none where none runs.
    pub(in crate::session) async fn owner_of_subagents(
        &self,
        parent: &SessionId,
    ) -> Result<Option<LeaseOwner>, AgentError> {
        let records = self.subagent_records(parent).await?;
        for (_, record) in records.into_iter().filter(|(_, record)| record.ended.is_none()) {
            let owner = LeaseOwner::new(record.owner);
            if !self.is_gone(&owner)? {
                return Ok(Some(owner));
            }
        }
        Ok(None)
    }

    /// The answers in a tree that began subagents of a session, by the names of these.
    ///
    /// # Errors
    /// As the store says.
    pub(in crate::session) async fn answers_of_subagents(
        &self,
        parent: &SessionId,
        tree: TreeId,
    ) -> Result<BTreeMap<String, NodeId>, AgentError> {
        let mut found = BTreeMap::new();
        for (session, _) in self.subagent_records(parent).await? {
            let Some(own) = session.tree() else { continue };
            let origin = self.read(&Principal::Owner, own, |rows| Ok(rows.tree()?.origin)).await?;
            let answer = origin.filter(|origin| origin.tree == tree).and_then(|origin| origin.node);
            found.extend(answer.map(|answer| (session.name, answer)));
        }
        Ok(found)
    }

    async fn subagent_records(
        &self,
        parent: &SessionId,
    ) -> Result<Vec<(Session, SubagentRecord)>, AgentError> {
        let who = &Principal::Owner;
        let Some(session) = self.store.session(who, parent).await? else { return Ok(Vec::new()) };
        let filter = SessionFilter { workspace: Some(session.workspace), name: None, archived: true };
        let page = |after| self.store.sessions(who, filter.clone(), after, LIST_PAGE);
        let of_parent = |session: Session| {
            let record = SessionSettings::read(&session.settings).ok()?.subagent?;
            (record.parent == *parent).then_some((session, record))
        };
        Ok(all_pages(Session::place, page).await?.into_iter().filter_map(of_parent).collect())
    }

    async fn progress_of(
        &self,
        (session, record): (&Session, &SubagentRecord),
        spent: KnownCost,
        here: &SubagentList,
    ) -> Result<SubagentEnd, AgentError> {
        if let Some(ended) = &record.ended {
            return Ok(ended.clone());
        }
        if let Some(running) = here.find(&session.name) {
            return Ok(running.progress().clone());
        }
        let owner = LeaseOwner::new(record.owner.clone());
        let is_elsewhere = record.owner != self.instance.to_string() && !self.is_gone(&owner)?;
        let counted = |state, why| SubagentEnd {
            state,
            why,
            model_calls: spent.requests,
            tool_calls: spent.calls,
            tokens: spent.tokens,
        };
        Ok(if is_elsewhere {
            let open = self.open_questions(&Principal::Owner).await?;
            let waits = open.iter().any(|question| question.session.as_ref() == Some(&session.id));
            let state = if waits { SubagentState::Waiting } else { SubagentState::Running };
            counted(state, format!("in {}", self.name_of(&owner)))
        } else {
            counted(SubagentState::Stopped, "its process ended, and nothing of it goes on".to_owned())
        })
    }

    /// Writes with a subagent's session how it ended.
    pub(super) async fn keep_end(&self, session: &SessionId, end: &SubagentEnd) -> Result<(), AgentError> {
        let keep = |settings: &mut SessionSettings| {
            if let Some(record) = &mut settings.subagent {
                record.ended = Some(end.clone());
            }
        };
        self.change_settings_of(session, keep).await
    }
}
