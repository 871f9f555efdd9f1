//! Results of `approvals`.

use loom::{Millis, TreeId};
use serde::Serialize;
use store::QuestionId;

/// `approvals list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Approvals {
    pub approvals: Vec<Approval>,
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
    /// The process that asks.
    pub asker: String,
    pub text: String,
    /// Words that approve it; the first is meant where none is said.
    pub answers: Vec<String>,
    pub asked: Millis,
    /// When it is denied unless it was answered.
    pub expires: Millis,
}
