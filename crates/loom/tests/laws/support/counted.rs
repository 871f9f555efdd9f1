//! Rows that count what is read of them.

use std::cell::Cell as Counter;

use drawloom_loom::attribution::Attribution;
use drawloom_loom::cell::CellScope;
use drawloom_loom::generation::GenerationRow;
use drawloom_loom::operation::Timeline;
use drawloom_loom::reader::{Order, RowError};
use drawloom_loom::seal::Seal;
use drawloom_loom::{
    Cell, CellKey, Digest, Draft, GenerationId, NodeId, NodeRow, OpRecord, Position, PositionId, Seq, Slot,
    TreeReader, TreeRow, ViewName,
};

/// Every row that is handed out counts as one read, and every question that finds none as well.
pub(crate) struct Counted<'a> {
    rows: &'a dyn TreeReader,
    reads: Counter<u64>,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(rows: &'a dyn TreeReader) -> Self {
        Self { rows, reads: Counter::new(0) }
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads.get()
    }

    fn one<T>(&self, answer: T) -> T {
        self.reads.set(self.reads.get() + 1);
        answer
    }

    fn many<T>(&self, rows: Result<Vec<T>, RowError>) -> Result<Vec<T>, RowError> {
        let rows = rows?;
        self.reads.set(self.reads.get() + 1.max(rows.len() as u64));
        Ok(rows)
    }
}

impl TreeReader for Counted<'_> {
    fn attributions(&self, nodes: &[NodeId]) -> Result<Vec<Attribution>, RowError> {
        self.many(self.rows.attributions(nodes))
    }
    fn tree(&self) -> Result<TreeRow, RowError> {
        self.one(self.rows.tree())
    }
    fn tables(&self) -> Result<u32, RowError> {
        self.one(self.rows.tables())
    }
    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError> {
        self.one(self.rows.position(id))
    }
    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError> {
        self.one(self.rows.node(id))
    }
    fn cell(&self, key: &CellKey) -> Result<Cell, RowError> {
        self.one(self.rows.cell(key))
    }
    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError> {
        self.many(self.rows.cells(scope))
    }
    fn choices(&self, view: Option<&ViewName>, end: PositionId) -> Result<Vec<(CellKey, Cell)>, RowError> {
        self.many(self.rows.choices(view, end))
    }
    fn versions(
        &self,
        at: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError> {
        self.many(self.rows.versions(at, before, limit))
    }
    fn count_versions(&self, position: PositionId) -> Result<u64, RowError> {
        self.one(self.rows.count_versions(position))
    }
    fn version_with_content(&self, at: PositionId, content: Digest) -> Result<Option<NodeId>, RowError> {
        self.one(self.rows.version_with_content(at, content))
    }
    fn children(
        &self,
        at: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError> {
        self.many(self.rows.children(at, before, limit))
    }
    fn count_children(&self, position: PositionId) -> Result<u64, RowError> {
        self.one(self.rows.count_children(position))
    }
    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError> {
        self.one(self.rows.operation(seq))
    }
    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError> {
        self.many(self.rows.operations(after, limit))
    }
    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError> {
        self.many(self.rows.nodes_in_order(after, limit))
    }
    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError> {
        self.one(self.rows.timeline(view))
    }
    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError> {
        self.one(self.rows.draft(view, slot))
    }
    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError> {
        self.many(self.rows.drafts(view))
    }
    fn seals(&self) -> Result<Vec<Seal>, RowError> {
        self.many(self.rows.seals())
    }
    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError> {
        self.one(self.rows.generation(id))
    }
}
