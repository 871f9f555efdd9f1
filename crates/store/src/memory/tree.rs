//! One tree in plain maps, and its rows as readers see them.

use std::collections::BTreeMap;

use loom::cell::CellScope;
use loom::rows::{Injection, Order, StoredResponse};
use loom::seal::Seal;
use loom::{
    Cell, CellKey, Digest, Draft, GenerationId, GenerationRow, NodeId, NodeRow, OpRecord, Position,
    PositionId, PositionKind, RowError, Rows, Seq, Slot, Timeline, TreeRow, ViewName,
};

use super::state::State;
use crate::adopt::Import;
use crate::principal::Principal;

/// One tree.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) row: TreeRow,
    pub(super) short_id: String,
    pub(super) session: Option<String>,
    pub(super) purged: bool,
    pub(super) positions: BTreeMap<PositionId, Position>,
    pub(super) nodes: BTreeMap<NodeId, NodeRow>,
    pub(super) order: BTreeMap<Order, NodeId>,
    pub(super) cells: BTreeMap<CellKey, Cell>,
    pub(super) operations: Vec<OpRecord>,
    pub(super) timelines: BTreeMap<ViewName, Timeline>,
    pub(super) drafts: BTreeMap<(ViewName, Slot), Draft>,
    pub(super) seals: Vec<Seal>,
    pub(super) imports: Vec<Import>,
    /// What was shown with nodes, by node and place.
    pub(super) injections: BTreeMap<(NodeId, u32), Injection>,
}

impl Tree {
    /// What was undone in a view's other drafts can no longer be redone.
    pub(super) fn forget_undone(&mut self, view: &ViewName, but: Slot) {
        for ((of, slot), draft) in &mut self.drafts {
            if of == view && *slot != but {
                draft.forget_undone();
            }
        }
    }

    pub(super) fn new(row: TreeRow, short_id: String, session: Option<String>) -> Self {
        Self {
            row,
            short_id,
            session,
            purged: false,
            positions: BTreeMap::new(),
            nodes: BTreeMap::new(),
            order: BTreeMap::new(),
            cells: BTreeMap::new(),
            operations: Vec::new(),
            timelines: BTreeMap::new(),
            drafts: BTreeMap::new(),
            seals: Vec::new(),
            imports: Vec::new(),
            injections: BTreeMap::new(),
        }
    }

    /// Whether it was purged, and holds nothing since.
    pub(super) fn is_tombstones(&self) -> bool {
        let title = self.cell_now(&CellKey::Title).value;
        let holds = |row: &NodeRow| !loom::content::is_empty(&row.node.content);
        self.purged && title.as_text().is_none_or(str::is_empty) && !self.nodes.values().any(holds)
    }

    pub(super) fn cell_now(&self, key: &CellKey) -> Cell {
        self.cells.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn timeline_of(&self, view: &ViewName) -> Timeline {
        self.timelines.get(view).copied().unwrap_or_default()
    }

    /// Nodes, newest first, older than `before`.
    fn newest(&self, before: Option<Order>) -> impl Iterator<Item = &NodeRow> {
        let older =
            self.order.iter().rev().filter(move |(order, _)| before.is_none_or(|before| **order < before));
        older.filter_map(|(_, id)| self.nodes.get(id))
    }
}

/// A tree in its store, as one reader sees it.
pub(super) struct View<'a> {
    pub(super) state: &'a State,
    pub(super) who: &'a Principal,
    pub(super) tree: &'a Tree,
}

impl Rows for View<'_> {
    fn tree(&self) -> Result<TreeRow, RowError> {
        Ok(self.tree.row.clone())
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError> {
        Ok(self.tree.positions.get(&id).cloned())
    }

    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError> {
        Ok(self.tree.nodes.get(&id).cloned())
    }

    fn cell(&self, key: &CellKey) -> Result<Cell, RowError> {
        Ok(self.tree.cell_now(key))
    }

    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError> {
        let held = self.tree.cells.iter().filter(|(key, _)| scope.holds(key));
        Ok(held.map(|(key, cell)| (key.clone(), cell.clone())).collect())
    }

    fn versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError> {
        Ok(self
            .tree
            .newest(before)
            .filter(|row| row.node.position == position)
            .take(limit)
            .cloned()
            .collect())
    }

    fn count_versions(&self, position: PositionId) -> Result<u64, RowError> {
        Ok(self.tree.newest(None).filter(|row| row.node.position == position).count() as u64)
    }

    fn version_with_content(
        &self,
        position: PositionId,
        content: Digest,
    ) -> Result<Option<NodeId>, RowError> {
        let mut here = self.tree.newest(None).filter(|row| row.node.position == position);
        Ok(here.find(|row| row.node.content_hash == content).map(|row| row.node.id))
    }

    fn children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError> {
        let originals =
            self.tree.newest(before).filter_map(|row| self.tree.positions.get(&row.node.id.as_position()));
        Ok(originals.filter(|child| child.parent == Some(position)).take(limit).cloned().collect())
    }

    fn count_children(&self, position: PositionId) -> Result<u64, RowError> {
        let below = self.tree.positions.values().filter(|child| child.parent == Some(position));
        Ok(below.filter(|child| child.kind == PositionKind::Path).count() as u64)
    }

    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError> {
        Ok(self.tree.operations.iter().find(|record| record.seq == seq).cloned())
    }

    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError> {
        Ok(self.tree.operations.iter().filter(|record| record.seq > after).take(limit).cloned().collect())
    }

    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError> {
        let later = self.tree.order.iter().filter(|(order, _)| after.is_none_or(|after| **order > after));
        Ok(later.filter_map(|(_, id)| self.tree.nodes.get(id).cloned()).take(limit).collect())
    }

    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError> {
        Ok(self.tree.timeline_of(view))
    }

    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError> {
        Ok(self.tree.drafts.get(&(view.clone(), slot)).cloned())
    }

    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError> {
        let here = self.tree.drafts.iter().filter(|((of, _), _)| of == view);
        Ok(here.map(|((_, slot), draft)| (*slot, draft.clone())).collect())
    }

    fn seals(&self) -> Result<Vec<Seal>, RowError> {
        Ok(self.tree.seals.clone())
    }

    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError> {
        let found = self.state.generations.get(&id).map(|generation| generation.row.clone());
        Ok(found.filter(|row| row.tree == self.tree.row.id))
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<(GenerationRow, Option<Digest>)>, RowError> {
        let own = self.state.generations.iter().filter(|(id, generation)| {
            generation.row.tree == self.tree.row.id && after.is_none_or(|after| **id > after)
        });
        let response = |id| self.state.responses.get(id).map(|response| response.digest);
        Ok(own.map(|(id, generation)| (generation.row.clone(), response(id))).take(limit).collect())
    }

    fn answer(&self, generation: GenerationId) -> Result<Option<StoredResponse>, RowError> {
        let own = self.state.generations.get(&generation);
        let own = own.filter(|own| own.row.tree == self.tree.row.id && self.who.sees_context());
        Ok(own.and_then(|own| self.state.responses.get(&own.row.id).cloned()))
    }

    fn injections(&self, from: NodeId, before: Option<NodeId>) -> Result<Vec<Injection>, RowError> {
        let order = |node: NodeId| self.tree.nodes.get(&node).map(|row| (row.seq, row.place));
        let Some(from) = order(from).filter(|_| self.who.sees_context()) else { return Ok(Vec::new()) };
        let before = before.and_then(order);
        let within = |at: Order| at >= from && before.is_none_or(|before| at < before);
        let shown = self.tree.injections.values().filter_map(|shown| Some((order(shown.node)?, shown)));
        let mut shown: Vec<_> = shown.filter(|(at, _)| within(*at)).collect();
        shown.sort_by_key(|(at, shown)| (*at, shown.ordinal));
        Ok(shown.into_iter().map(|(_, shown)| shown.clone()).collect())
    }

    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(self.state.manifest(self.who, digest).ok())
    }

    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(self.state.body(self.who, digest).ok())
    }

    fn response(&self, node: NodeId) -> Result<Option<StoredResponse>, RowError> {
        Ok(self.state.response(self.who, node).ok())
    }
}
