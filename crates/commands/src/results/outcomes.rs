//! Results of `/note`.

use loom::{Millis, NodeId, TreeId, Trust};
use serde::Serialize;
use store::{OutcomeId, OutcomeKind};

/// `/note TEXT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutcomeNoted {
    pub id: OutcomeId,
    pub kind: OutcomeKind,
    pub trust: Trust,
    pub text: String,
    /// The one that it strikes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrects: Option<OutcomeId>,
}

/// `/note`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct OutcomesShown {
    /// In the order in which they were noted.
    pub outcomes: Vec<OutcomeShown>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutcomeShown {
    pub id: OutcomeId,
    pub kind: OutcomeKind,
    pub trust: Trust,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrects: Option<OutcomeId>,
    /// Whether a later one corrects it.
    pub struck: bool,
    pub tree: TreeId,
    /// Node it was said in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    pub at: Millis,
}
