//! What is written in one transaction, and what became of it.

use std::collections::BTreeSet;

use loom::reader::Injection;
use loom::{
    Cell, CellChange, CellKey, CellValue, Digest, Millis, NodeId, Operation, Plan, Seq, Slot, Timeline,
    ViewName,
};

use crate::call::CallEnd;
use crate::error::StoreError;
use crate::event::Cursor;
use crate::fence::Guard;
use crate::file_change::AcceptedInventory;
use crate::generation::{GenerationEnd, NewGeneration};
use crate::job::EndedJob;
use crate::preconditions::Preconditions;
use crate::session::NewSession;

/// Rows that go with a plan, in its transaction: a manifest with its generation row, a node with the response it
/// was made of and its cost.
#[derive(Debug, Clone, Default)]
pub struct AttachedWrites {
    pub generations: Vec<NewGeneration>,
    pub outcomes: Vec<GenerationEnd>,
    /// Calls whose results are among the plan's nodes.
    pub calls: Vec<CallEnd>,
    /// What is shown with nodes of the tree, to be sent with them from now on. One that is there stays as it is.
    pub injections: Vec<Injection>,
    /// Leases that must still be held; else nothing of it is written.
    pub guards: Vec<Guard>,
    /// A session that begins with the plan's tree.
    pub begins: Option<NewSession>,
    /// The chat session a new tree is bound to, by its id. A chat session's own token binds to itself, whatever is said here.
    pub session: Option<String>,
    /// Jobs that end with it.
    pub jobs: Vec<EndedJob>,
    /// Texts of workspaces that are accepted from now on.
    pub accepted: Vec<AcceptedInventory>,
    /// The file that the plan's nodes come from: remembered beside the tree.
    pub imported: Option<ImportNote>,
    /// What the plan rests on: if it has changed, nothing is written.
    pub preconditions: Option<Preconditions>,
    /// The newest event when generations that start were prepared: if something of the tree was forgotten since, they
    /// may hold it, and nothing is written.
    pub prepared_at: Option<Cursor>,
    /// Nodes of the plan whose text is not there, as of one that was forgotten: only size and hashes are.
    pub absent: Vec<NodeId>,
}

/// Where imported rows came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportNote {
    pub file: Digest,
    pub at: Millis,
}

impl AttachedWrites {
    pub fn nothing() -> Self {
        Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The operation's number, if there was an operation.
    pub seq: Option<Seq>,
    /// The nodes made, in order, with their short ids.
    pub nodes: Vec<(NodeId, String)>,
    pub drafts: Vec<AppliedDraft>,
    /// Cells an undo or redo left alone, because something else had set them meanwhile.
    pub skipped: Vec<CellKey>,
    /// The newest event this wrote.
    pub cursor: Cursor,
}

/// A draft as a write left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedDraft {
    pub view: ViewName,
    pub slot: Slot,
    /// Revision after the write; none where the draft was removed.
    pub revision: Option<u64>,
}

/// Refuses a plan that cannot be stored whole.
pub(crate) fn check_shape(tree: loom::TreeId, plan: &Plan) -> Result<(), StoreError> {
    let malformed = |what: &str| Err(StoreError::Malformed(what.to_owned()));
    if plan.op.is_none() && !(plan.nodes.is_empty() && plan.positions.is_empty() && plan.tree.is_none()) {
        return malformed("rows without an operation");
    }
    let foreign = plan.nodes.iter().any(|node| node.tree != tree)
        || plan.positions.iter().any(|position| position.tree != tree)
        || plan.tree.as_ref().is_some_and(|row| row.id != tree)
        || plan.op.as_ref().is_some_and(|op| op.tree != tree);
    if foreign {
        return malformed("rows of another tree");
    }
    Ok(())
}

/// Cells that are rows. A draft's cell is history alone: the draft itself is compared by its revision.
pub(crate) const fn is_stored(key: &CellKey) -> bool {
    !matches!(key, CellKey::Draft { .. })
}

/// The views an operation makes.
pub(crate) fn new_views(op: &Operation) -> Vec<ViewName> {
    let made = op.cells.iter().filter(|change| change.old.is_none() && !change.new.is_none());
    let view = |change: &CellChange| match &change.key {
        CellKey::View { view } => Some(view.clone()),
        _ => None,
    };
    made.filter_map(view).collect()
}

/// Empties, as part of the operation that makes a view, the cells that an earlier view of its name left and that
/// the operation does not set itself: so the log says it too.
pub(crate) fn make_fresh(op: &mut Operation, left: Vec<(CellKey, Cell)>) {
    let set: BTreeSet<CellKey> = op.cells.iter().map(|change| change.key.clone()).collect();
    let left = left.into_iter().filter(|(key, cell)| !cell.value.is_none() && !set.contains(key));
    op.cells.extend(left.map(|(key, cell)| CellChange { key, old: cell.value, new: CellValue::None }));
}

/// The timeline of a view that is made anew: nothing can be undone, and revisions go on.
pub(crate) const fn fresh_timeline(left: Timeline) -> Timeline {
    Timeline { undo: None, redo: None, depth: 0, tick: left.tick }
}
