//! Results of `approvals`.

use loom::{Millis, TreeId};
use serde::Serialize;
use serde_json::Value;
use store::{Decision, QuestionId};

/// `approvals list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Approvals {
    pub approvals: Vec<Approval>,
}

/// `approve`, `deny`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decided {
    pub ok: bool,
    #[serde(skip)]
    pub decision: Decision,
    /// The process that asked.
    #[serde(skip)]
    pub asker: String,
    /// What it asked.
    #[serde(skip)]
    pub text: String,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Approval {
    pub id: QuestionId,
    pub short_id: String,
    pub kind: String,
    /// Name of its session; none where the work is of none.
    pub session: Option<String>,
    pub tree: TreeId,
    #[serde(skip)]
    pub tree_short: String,
    /// Title of that tree; may be empty.
    pub title: String,
    /// The process that asks.
    pub asker: String,
    pub text: String,
    /// Lines that it is about, as a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The texts from outside that led to it: node, author, and how each begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tainted_by: Vec<String>,
    /// Words that approve it; the first is meant where none is said.
    pub answers: Vec<String>,
    /// JSON Schema of the fields that a yes has besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    pub asked: Millis,
    /// When it is denied unless it was answered.
    pub expires: Millis,
}
