//! Lists of trees, and names people use for trees and nodes.

use loom::{Millis, Mode, NodeId, PositionId, Seq, TreeId};

/// A tree as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub id: TreeId,
    /// Its short id: unique among the trees of the store, fixed when it was made.
    pub short_id: String,
    pub mode: Mode,
    /// Its title; empty if it has none.
    pub title: String,
    pub archived: bool,
    /// Whether its content was purged.
    pub purged: bool,
    /// The chat session it is bound to.
    pub session: Option<String>,
    /// How many nodes it has, genesis included.
    pub nodes: u64,
    pub seq: Seq,
    pub created_at: Millis,
    /// When its newest operation was done.
    pub updated_at: Millis,
}

/// Which trees a list holds. Of one that was purged and holds nothing since, only tombstones are left: it is no tree
/// to choose, and stands in the list of all alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TreeFilter {
    #[default]
    Current,
    Archived,
    All,
}

impl TreeFilter {
    /// Whether a list holds a tree.
    pub const fn holds(self, archived: bool) -> bool {
        match self {
            Self::Current => !archived,
            Self::Archived => archived,
            Self::All => true,
        }
    }

    /// Whether a list holds trees of which only tombstones are left.
    pub(crate) const fn holds_tombstones(self) -> bool {
        matches!(self, Self::All)
    }
}

/// A node found by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    pub tree: TreeId,
    pub node: NodeId,
    pub position: PositionId,
    pub short_id: String,
}

/// What a text may name a node by: `TREE:SHORT`, or an id or short id by itself.
pub(crate) fn split_name(name: &str) -> (Option<&str>, &str) {
    match name.rsplit_once(':') {
        // A title may hold a colon; what follows the last one is the node.
        Some((tree, node)) if !tree.is_empty() => (Some(tree), node),
        _ => (None, name),
    }
}
