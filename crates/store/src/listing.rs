//! Lists of trees, and names people use for trees and nodes.

use loom::{Millis, Mode, NodeId, PositionId, Seq, TreeId};

/// Rows of a list that are asked for at a time where all of them are wanted.
pub const LIST_PAGE: usize = 256;

/// All rows of a list, read a page of [`LIST_PAGE`] at a time so that no statement reads them all. `key` names the
/// place behind a row, `page` reads what stands behind a place. A row that moves in the list meanwhile may be missed.
///
/// # Errors
/// Those of `page`.
pub async fn all_pages<T, K, E, Fut>(
    key: impl Fn(&T) -> K + Send,
    mut page: impl FnMut(Option<K>) -> Fut + Send,
) -> Result<Vec<T>, E>
where
    Fut: Future<Output = Result<Vec<T>, E>> + Send,
    T: Send,
    K: Send,
    E: Send,
{
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let rows = page(after.take()).await?;
        let is_last = rows.len() < LIST_PAGE;
        after = rows.last().map(&key);
        all.extend(rows);
        if is_last {
            return Ok(all);
        }
    }
}

/// A tree as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub id: TreeId,
    /// Short id: unique among the trees of the store, fixed when the tree was made.
    pub short_id: String,
    pub mode: Mode,
    /// Title; empty if the tree has none.
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

impl TreeEntry {
    /// Place in a list of trees: when the tree was last changed, then its id.
    pub const fn place(&self) -> (Millis, TreeId) {
        (self.updated_at, self.id)
    }
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
pub fn split_name(name: &str) -> (Option<&str>, &str) {
    match name.rsplit_once(':') {
        // A title may hold a colon; what follows the last one is the node.
        Some((tree, node)) if !tree.is_empty() => (Some(tree), node),
        _ => (None, name),
    }
}
