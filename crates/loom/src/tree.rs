//! Trees: one conversation or document each.

use serde::{Deserialize, Serialize};

use crate::id::{Millis, NodeId, PositionId, TreeId};

/// A default way of showing and editing. Storage is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A conversation: turns with roles.
    Dialogue,
    /// A document: continuous text. `document` is read as an alias.
    #[serde(alias = "document")]
    Buffer,
}

impl Mode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dialogue => "dialogue",
            Self::Buffer => "buffer",
        }
    }
}

/// How a tree came from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeOriginKind {
    Wrap,
    Spawn,
    /// A fork by the owner.
    Fork,
    Import,
    Copy,
}

/// Where a tree came from. Edges never cross trees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeOrigin {
    pub tree: TreeId,
    pub node: Option<NodeId>,
    pub kind: TreeOriginKind,
}

/// A tree row. Its title and whether it is archived are cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRow {
    pub id: TreeId,
    pub mode: Mode,
    /// The genesis position: never inferred from edges.
    pub root: PositionId,
    pub created_at: Millis,
    /// The tree it came from.
    pub origin: Option<TreeOrigin>,
}
