//! A tree in memory: plain maps, as simple as can be.
//!
//! What a file is read into before it is verified or imported, each row as it came; the naive model that stores are
//! tested against is made of it (`loom/testing`). It holds everything, so it is not for large trees that live on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::cell::{Cell, CellKey, CellScope, OpTarget};
use crate::digest::Digest;
use crate::draft::{Draft, Slot};
use crate::generation::{GenerationId, GenerationRow};
use crate::id::{NodeId, PositionId, Seq, ViewName};
use crate::node::NodeRow;
use crate::operation::{OpRecord, Timeline};
use crate::position::{Position, PositionKind};
use crate::reader::{AnswerRow, Attribution, Injection, Order, RowError, StoredResponse, TreeReader};
use crate::seal::Seal;
use crate::tree::TreeRow;

/// One tree, in maps. They are open: nothing is said of what stands in them before it is verified.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    pub tree: Option<TreeRow>,
    pub positions: BTreeMap<PositionId, Position>,
    pub nodes: BTreeMap<NodeId, NodeRow>,
    pub order: BTreeMap<Order, NodeId>,
    pub cells: BTreeMap<CellKey, Cell>,
    pub operations: Vec<OpRecord>,
    pub timelines: BTreeMap<ViewName, Timeline>,
    pub drafts: BTreeMap<(ViewName, Slot), Draft>,
    pub generations: BTreeMap<GenerationId, GenerationRow>,
    pub seals: Vec<Seal>,
    pub short_ids: BTreeSet<String>,
    pub injections: BTreeMap<(Order, u32), Injection>,
    /// Calls that were started: the answer, and which of its calls.
    pub started: BTreeSet<(NodeId, u32)>,
}

impl MemoryTree {
    fn timeline_of(&self, view: &ViewName) -> Timeline {
        self.timelines.get(view).copied().unwrap_or_default()
    }

    fn order_of(&self, node: NodeId) -> Option<Order> {
        self.nodes.get(&node).map(|row| (row.seq, row.place))
    }

    pub fn add_generation(&mut self, row: GenerationRow) {
        self.generations.insert(row.id, row);
    }

    pub fn add_seal(&mut self, seal: Seal) {
        self.seals.push(seal);
    }

    /// Sets the tree row, as read from a file.
    pub fn restore_tree(&mut self, tree: TreeRow) {
        self.tree = Some(tree);
    }

    /// Adds a position, as read from a file.
    pub fn restore_position(&mut self, position: Position) {
        self.positions.insert(position.id, position);
    }

    /// Adds or replaces a node row, as read from a file.
    pub fn restore_node(&mut self, row: NodeRow) {
        self.order.insert((row.seq, row.place), row.node.id);
        self.short_ids.insert(row.short_id.clone());
        self.nodes.insert(row.node.id, row);
    }

    /// Appends an operation, as read from a file, with what it did to cells and timeline.
    pub fn restore_operation(&mut self, record: OpRecord) {
        for change in &record.op.cells {
            if !matches!(change.key, CellKey::Draft { .. }) {
                self.cells.insert(change.key.clone(), Cell { value: change.new.clone(), seq: record.seq });
            }
        }
        if let Some(view) = &record.op.view {
            let after = self.timeline_of(view).after(&record.op.timeline, record.seq);
            self.timelines.insert(view.clone(), after);
        }
        self.operations.push(record);
    }

    fn page(&self, ids: impl Iterator<Item = NodeId>, limit: usize) -> Vec<NodeRow> {
        ids.filter_map(|id| self.nodes.get(&id).cloned()).take(limit).collect()
    }

    fn newest_first(&self, before: Option<Order>) -> impl Iterator<Item = NodeId> {
        let all = before.is_none();
        let before = before.unwrap_or_default();
        self.order.iter().rev().filter(move |(order, _)| all || **order < before).map(|(_, id)| *id)
    }
}

/// Where the record of a number stands in a log without a gap.
fn place_of(seq: Seq) -> usize {
    usize::try_from(seq.0).unwrap_or(usize::MAX).wrapping_sub(1)
}

impl TreeReader for MemoryTree {
    fn attributions(&self, _: &[NodeId]) -> Result<Vec<Attribution>, RowError> {
        Ok(Vec::new())
    }

    fn started_calls(&self, answer: NodeId) -> Result<Vec<u32>, RowError> {
        let of = self.started.range((answer, 0)..=(answer, u32::MAX));
        Ok(of.map(|(_, number)| *number).collect())
    }

    fn tables(&self) -> Result<u32, RowError> {
        Ok(text::grapheme::TABLES)
    }

    fn tree(&self) -> Result<TreeRow, RowError> {
        self.tree.clone().ok_or_else(|| RowError::missing("tree", "row"))
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError> {
        Ok(self.positions.get(&id).cloned())
    }

    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError> {
        Ok(self.nodes.get(&id).cloned())
    }

    fn cell(&self, key: &CellKey) -> Result<Cell, RowError> {
        Ok(self.cells.get(key).cloned().unwrap_or_default())
    }

    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError> {
        let held = self.cells.iter().filter(|(key, _)| scope.holds(key));
        Ok(held.map(|(key, cell)| (key.clone(), cell.clone())).collect())
    }

    fn choices(&self, view: Option<&ViewName>, end: PositionId) -> Result<Vec<(CellKey, Cell)>, RowError> {
        let chosen = self.cells.iter().filter_map(|(key, cell)| {
            let position = match key {
                CellKey::Selected { view: of, position } | CellKey::Keep { view: of, position } => {
                    (Some(of) == view).then_some(*position)
                }
                CellKey::Pruned { target } | CellKey::Excluded { target } => match target {
                    OpTarget::Position(position) => Some(*position),
                    OpTarget::Version(node) => self.nodes.get(node).map(|row| row.node.position),
                },
                _ => None,
            };
            Some((position?, key, cell))
        });
        let chosen: Vec<_> = chosen.collect();
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let up = |id: &PositionId| self.positions.get(id)?.parent;
        let path: BTreeSet<PositionId> = std::iter::successors(Some(end), up).collect();
        let on_path = chosen.into_iter().filter(|(position, ..)| path.contains(position));
        Ok(on_path.map(|(_, key, cell)| (key.clone(), cell.clone())).collect())
    }

    fn versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError> {
        let here = self.newest_first(before).filter(|id| self.nodes[id].node.position == position);
        Ok(self.page(here, limit))
    }

    fn count_versions(&self, position: PositionId) -> Result<u64, RowError> {
        Ok(self.nodes.values().filter(|row| row.node.position == position).count() as u64)
    }

    fn version_with_content(
        &self,
        position: PositionId,
        content: Digest,
    ) -> Result<Option<NodeId>, RowError> {
        Ok(self.newest_first(None).find(|id| {
            let node = &self.nodes[id].node;
            node.position == position && node.content_hash().is_ok_and(|hash| hash == content)
        }))
    }

    fn children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError> {
        let originals = self.newest_first(before).filter_map(|id| self.positions.get(&id.as_position()));
        Ok(originals.filter(|child| child.parent == Some(position)).take(limit).cloned().collect())
    }

    fn count_children(&self, position: PositionId) -> Result<u64, RowError> {
        let below = self.positions.values().filter(|child| child.parent == Some(position));
        Ok(below.filter(|child| child.kind == PositionKind::Path).count() as u64)
    }

    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError> {
        let fits = |record: &&OpRecord| record.seq == seq;
        let found = self.operations.get(place_of(seq)).filter(fits);
        Ok(found.or_else(|| self.operations.iter().find(fits)).cloned())
    }

    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError> {
        // Where the numbers are without a gap, those up to `after` need not be looked at.
        let at = place_of(after);
        let skip = if self.operations.get(at).is_some_and(|record| record.seq == after) { at } else { 0 };
        let later = self.operations.iter().skip(skip).filter(|record| record.seq > after);
        Ok(later.take(limit).cloned().collect())
    }

    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError> {
        let later = self.order.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded));
        Ok(self.page(later.map(|(_, id)| *id), limit))
    }

    fn answers(&self, before: Option<Order>, limit: usize) -> Result<Vec<AnswerRow>, RowError> {
        let rows = self.newest_first(before).filter_map(|id| self.nodes.get(&id));
        let answers = rows.filter(|row| row.node.is_original()).filter_map(AnswerRow::of);
        Ok(answers.take(limit).collect())
    }

    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError> {
        Ok(self.timeline_of(view))
    }

    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError> {
        Ok(self.drafts.get(&(view.clone(), slot)).cloned())
    }

    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError> {
        let here = self.drafts.iter().filter(|((of, _), _)| of == view);
        Ok(here.map(|((_, slot), draft)| (*slot, draft.clone())).collect())
    }

    fn seals(&self) -> Result<Vec<Seal>, RowError> {
        Ok(self.seals.clone())
    }

    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError> {
        Ok(self.generations.get(&id).cloned())
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<(GenerationRow, Option<Digest>)>, RowError> {
        let later =
            self.generations.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded));
        Ok(later.take(limit).map(|(_, row)| (row.clone(), None)).collect())
    }

    // What was sent and received is not held.

    fn answer(&self, _: GenerationId) -> Result<Option<StoredResponse>, RowError> {
        Ok(None)
    }

    fn manifest(&self, _: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(None)
    }

    fn body(&self, _: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(None)
    }

    fn response(&self, _: NodeId) -> Result<Option<StoredResponse>, RowError> {
        Ok(None)
    }

    fn injections(&self, from: NodeId, before: Option<NodeId>) -> Result<Vec<Injection>, RowError> {
        let Some(from) = self.order_of(from) else { return Ok(Vec::new()) };
        let before = before.and_then(|node| self.order_of(node));
        let shown = self.injections.range((from, 0)..);
        Ok(shown
            .take_while(|((order, _), _)| before.is_none_or(|before| *order < before))
            .map(|(_, injection)| injection.clone())
            .collect())
    }
}
