//! Slices: the few rows a plan reads, gathered before it is made.
//!
//! A plan asks a slice for rows by [`ReadKey`]. What is not there is collected and asked for in one go
//! ([`ReadSet::load`]), a number of rounds that does not depend on the size of the tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::cell::{Cell, CellKey, CellScope};
use crate::digest::Digest;
use crate::draft::{Draft, Slot};
use crate::id::{NodeId, PositionId, Seq, ViewName};
use crate::node::NodeRow;
use crate::operation::{OpRecord, Timeline};
use crate::path;
use crate::position::Position;
use crate::reader::{RowError, TreeReader};
use crate::resolve;
use crate::tree::TreeRow;

/// Names a row, or a small question about rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadKey {
    Tree,
    Position(PositionId),
    Node(NodeId),
    Cell(CellKey),
    /// The names of all views.
    Views,
    /// The selections of a view.
    Selections(ViewName),
    /// The newest version of a position that is not pruned.
    NewestVisible(PositionId),
    /// Whether a position has a visible version other than this one.
    OtherVisible(PositionId, NodeId),
    /// A version of a position by its content hash.
    VersionWithContent(PositionId, Digest),
    /// The child of the first position on the way to the second; none if the first is not above the second.
    ChildToward(PositionId, PositionId),
    /// The lowest position above both (or one of them).
    CommonAncestor(PositionId, PositionId),
    /// Whether a position or one above it is pruned, the named one not counted.
    Hidden {
        at: PositionId,
        /// A position whose pruning does not count.
        but: Option<PositionId>,
    },
    /// The nearest position that is pruned itself, at a position or above it.
    PrunedAbove(PositionId),
    /// The newest visible leaf below a position.
    NewestLeaf(PositionId),
    /// The drafts of a view.
    Drafts(ViewName),
    /// A view's place in its timeline.
    Timeline(ViewName),
    Operation(Seq),
}

/// Rows gathered for one plan. What was asked for and is not in the tree is here as `None`.
#[derive(Debug, Clone, Default)]
pub struct ReadSet {
    tree: Option<TreeRow>,
    positions: BTreeMap<PositionId, Option<Position>>,
    nodes: BTreeMap<NodeId, Option<NodeRow>>,
    cells: BTreeMap<CellKey, Cell>,
    views: Option<Vec<ViewName>>,
    selections: BTreeMap<ViewName, Vec<(PositionId, NodeId)>>,
    found_nodes: BTreeMap<ReadKey, Option<NodeId>>,
    found_positions: BTreeMap<ReadKey, Option<PositionId>>,
    facts: BTreeMap<ReadKey, bool>,
    drafts: BTreeMap<ViewName, Vec<(Slot, Draft)>>,
    timelines: BTreeMap<ViewName, Timeline>,
    operations: BTreeMap<Seq, Option<OpRecord>>,
}

/// What a plan still has to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs(pub BTreeSet<ReadKey>);

impl Needs {
    pub fn one(key: ReadKey) -> Self {
        Self(BTreeSet::from([key]))
    }
}

impl ReadSet {
    /// Reads what is asked for.
    ///
    /// # Errors
    /// [`RowError`] when the store fails or a row that must exist does not.
    pub fn load(&mut self, needs: &Needs, rows: &dyn TreeReader) -> Result<(), RowError> {
        for key in &needs.0 {
            self.load_one(key, rows)?;
        }
        Ok(())
    }

    fn load_one(&mut self, key: &ReadKey, rows: &dyn TreeReader) -> Result<(), RowError> {
        match key {
            ReadKey::Tree => self.tree = Some(rows.tree()?),
            ReadKey::Position(id) => {
                self.positions.insert(*id, rows.position(*id)?);
            }
            ReadKey::Node(id) => {
                self.nodes.insert(*id, rows.node(*id)?);
            }
            ReadKey::Cell(cell) => {
                self.cells.insert(cell.clone(), rows.cell(cell)?);
            }
            ReadKey::Views => {
                let views = rows.cells(&CellScope::Views)?.into_iter().filter_map(|(key, cell)| match key {
                    CellKey::View { view } if !cell.value.is_none() => Some(view),
                    _ => None,
                });
                self.views = Some(views.collect());
            }
            ReadKey::Selections(view) => {
                let cells = rows.cells(&CellScope::Selected(view.clone()))?;
                let pairs = cells.into_iter().filter_map(|(key, cell)| match (key, cell.value.as_node()) {
                    (CellKey::Selected { position, .. }, Some(node)) => Some((position, node)),
                    _ => None,
                });
                self.selections.insert(view.clone(), pairs.collect());
            }
            ReadKey::NewestVisible(position) => {
                self.found_nodes.insert(key.clone(), resolve::newest_visible(rows, *position, None)?);
            }
            ReadKey::OtherVisible(position, node) => {
                let other = resolve::newest_visible(rows, *position, Some(*node))?;
                self.facts.insert(key.clone(), other.is_some());
            }
            ReadKey::VersionWithContent(position, content) => {
                self.found_nodes.insert(key.clone(), rows.version_with_content(*position, *content)?);
            }
            ReadKey::ChildToward(above, below) => {
                self.found_positions.insert(key.clone(), path::child_toward(rows, *above, *below)?);
            }
            ReadKey::CommonAncestor(a, b) => {
                self.found_positions.insert(key.clone(), Some(path::common_ancestor(rows, *a, *b)?.id));
            }
            ReadKey::Hidden { at, but } => {
                self.facts.insert(key.clone(), path::is_hidden_but(rows, *at, *but)?);
            }
            ReadKey::PrunedAbove(position) => {
                self.found_positions.insert(key.clone(), path::pruned_above(rows, *position)?);
            }
            ReadKey::NewestLeaf(position) => {
                self.found_positions.insert(key.clone(), Some(path::newest_leaf(rows, *position)?));
            }
            ReadKey::Drafts(view) => {
                self.drafts.insert(view.clone(), rows.drafts(view)?);
            }
            ReadKey::Timeline(view) => {
                self.timelines.insert(view.clone(), rows.timeline(view)?);
            }
            ReadKey::Operation(seq) => {
                self.operations.insert(*seq, rows.operation(*seq)?);
            }
        }
        Ok(())
    }

    /// Asks at once for everything on a list that is not here yet.
    ///
    /// # Errors
    /// [`Needs`] with the keys that are missing.
    pub fn require(&self, keys: impl IntoIterator<Item = ReadKey>) -> Result<(), Needs> {
        let missing: BTreeSet<ReadKey> = keys.into_iter().filter(|key| !self.has(key)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Needs(missing)) }
    }

    fn has(&self, key: &ReadKey) -> bool {
        match key {
            ReadKey::Tree => self.tree.is_some(),
            ReadKey::Position(id) => self.positions.contains_key(id),
            ReadKey::Node(id) => self.nodes.contains_key(id),
            ReadKey::Cell(cell) => self.cells.contains_key(cell),
            ReadKey::Views => self.views.is_some(),
            ReadKey::Selections(view) => self.selections.contains_key(view),
            ReadKey::Drafts(view) => self.drafts.contains_key(view),
            ReadKey::Timeline(view) => self.timelines.contains_key(view),
            ReadKey::Operation(seq) => self.operations.contains_key(seq),
            ReadKey::NewestVisible(_) | ReadKey::VersionWithContent(..) => self.found_nodes.contains_key(key),
            ReadKey::ChildToward(..)
            | ReadKey::CommonAncestor(..)
            | ReadKey::PrunedAbove(_)
            | ReadKey::NewestLeaf(_) => self.found_positions.contains_key(key),
            ReadKey::OtherVisible(..) | ReadKey::Hidden { .. } => self.facts.contains_key(key),
        }
    }

    pub fn tree(&self) -> Result<&TreeRow, Needs> {
        self.tree.as_ref().ok_or_else(|| Needs::one(ReadKey::Tree))
    }

    /// A position, if the tree has it.
    pub fn position(&self, id: PositionId) -> Result<Option<&Position>, Needs> {
        self.positions.get(&id).map(Option::as_ref).ok_or_else(|| Needs::one(ReadKey::Position(id)))
    }

    /// A node, if the tree has it.
    pub fn node(&self, id: NodeId) -> Result<Option<&NodeRow>, Needs> {
        self.nodes.get(&id).map(Option::as_ref).ok_or_else(|| Needs::one(ReadKey::Node(id)))
    }

    pub fn cell(&self, key: &CellKey) -> Result<&Cell, Needs> {
        self.cells.get(key).ok_or_else(|| Needs::one(ReadKey::Cell(key.clone())))
    }

    pub fn views(&self) -> Result<&[ViewName], Needs> {
        self.views.as_deref().ok_or_else(|| Needs::one(ReadKey::Views))
    }

    /// The selections of a view.
    pub fn selections(&self, view: &ViewName) -> Result<&[(PositionId, NodeId)], Needs> {
        self.selections
            .get(view)
            .map(Vec::as_slice)
            .ok_or_else(|| Needs::one(ReadKey::Selections(view.clone())))
    }

    /// The answer to a key that asks for a node.
    pub fn found_node(&self, key: ReadKey) -> Result<Option<NodeId>, Needs> {
        self.found_nodes.get(&key).copied().ok_or_else(|| Needs::one(key))
    }

    /// The answer to a key that asks for a position.
    pub fn found_position(&self, key: ReadKey) -> Result<Option<PositionId>, Needs> {
        self.found_positions.get(&key).copied().ok_or_else(|| Needs::one(key))
    }

    /// The answer to a key that asks yes or no.
    pub fn fact(&self, key: ReadKey) -> Result<bool, Needs> {
        self.facts.get(&key).copied().ok_or_else(|| Needs::one(key))
    }

    /// The drafts of a view.
    pub fn drafts(&self, view: &ViewName) -> Result<&[(Slot, Draft)], Needs> {
        self.drafts.get(view).map(Vec::as_slice).ok_or_else(|| Needs::one(ReadKey::Drafts(view.clone())))
    }

    /// A view's place in its timeline.
    pub fn timeline(&self, view: &ViewName) -> Result<Timeline, Needs> {
        self.timelines.get(view).copied().ok_or_else(|| Needs::one(ReadKey::Timeline(view.clone())))
    }

    /// An operation, if the tree has it.
    pub fn operation(&self, seq: Seq) -> Result<Option<&OpRecord>, Needs> {
        self.operations.get(&seq).map(Option::as_ref).ok_or_else(|| Needs::one(ReadKey::Operation(seq)))
    }
}
