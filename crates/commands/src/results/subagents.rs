//! Result of `/subagents`.

use agent::session::SubagentState;
use loom::TreeId;
use serde::Serialize;

use super::chat::{ChangedFile, DeniedCall};

/// `/subagents`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubagentsShown {
    /// The subagents of the session, the oldest first.
    pub subagents: Vec<SubagentShown>,
}

/// A subagent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubagentShown {
    /// Name of its session.
    pub session: String,
    pub label: String,
    /// Model of its own: none where it has that of whoever began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub tree: TreeId,
    pub state: SubagentState,
    /// Why it failed or was stopped, or which limit it reached.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    pub model_calls: u32,
    pub tool_calls: u32,
    /// How many of them were refused.
    pub denied_calls: usize,
    /// Tokens that were sent and received, as far as they were reported.
    pub tokens: u64,
    /// What it cost, in dollars.
    pub cost: f64,
    /// Tokens whose price is not known.
    pub unpriced_tokens: u64,
}

/// What a subagent did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubagentWork {
    #[serde(flatten)]
    pub subagent: SubagentShown,
    /// Files that its calls changed.
    pub changed: Vec<ChangedFile>,
    /// Calls of tools that were refused.
    pub denied: Vec<DeniedCall>,
}
