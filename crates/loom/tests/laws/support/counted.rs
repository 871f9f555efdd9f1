//! Rows that count what is read of them.

use std::cell::Cell as Counter;

use drawloom_loom::cell::CellScope;
use drawloom_loom::generation::GenerationRow;
use drawloom_loom::operation::Timeline;
use drawloom_loom::reader::{AnswerRow, Attribution, Injection, Order, RowError, StoredResponse};
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

macro_rules! counted {
    ($($count:ident: fn $method:ident($($name:ident: $of:ty),*) -> $found:ty;)*) => {
        $(fn $method(&self, $($name: $of),*) -> Result<$found, RowError> {
            self.$count(self.rows.$method($($name),*))
        })*
    };
}

impl TreeReader for Counted<'_> {
    counted! {
        many: fn attributions(nodes: &[NodeId]) -> Vec<Attribution>;
        one: fn tree() -> TreeRow;
        one: fn tables() -> u32;
        one: fn position(id: PositionId) -> Option<Position>;
        one: fn node(id: NodeId) -> Option<NodeRow>;
        one: fn cell(key: &CellKey) -> Cell;
        many: fn cells(scope: &CellScope) -> Vec<(CellKey, Cell)>;
        many: fn choices(view: Option<&ViewName>, end: PositionId) -> Vec<(CellKey, Cell)>;
        many: fn versions(at: PositionId, before: Option<Order>, limit: usize) -> Vec<NodeRow>;
        one: fn count_versions(position: PositionId) -> u64;
        one: fn version_with_content(at: PositionId, content: Digest) -> Option<NodeId>;
        many: fn children(at: PositionId, before: Option<Order>, limit: usize) -> Vec<Position>;
        one: fn count_children(position: PositionId) -> u64;
        one: fn operation(seq: Seq) -> Option<OpRecord>;
        many: fn operations(after: Seq, limit: usize) -> Vec<OpRecord>;
        many: fn nodes_in_order(after: Option<Order>, limit: usize) -> Vec<NodeRow>;
        many: fn answers(before: Option<Order>, limit: usize) -> Vec<AnswerRow>;
        one: fn timeline(view: &ViewName) -> Timeline;
        one: fn draft(view: &ViewName, slot: Slot) -> Option<Draft>;
        many: fn drafts(view: &ViewName) -> Vec<(Slot, Draft)>;
        many: fn seals() -> Vec<Seal>;
        one: fn generation(id: GenerationId) -> Option<GenerationRow>;
        many: fn generations(after: Option<GenerationId>, limit: usize) -> Vec<(GenerationRow, Option<Digest>)>;
        one: fn answer(generation: GenerationId) -> Option<StoredResponse>;
        many: fn injections(from: NodeId, before: Option<NodeId>) -> Vec<Injection>;
        many: fn started_calls(answer: NodeId) -> Vec<u32>;
        one: fn manifest(digest: Digest) -> Option<Vec<u8>>;
        one: fn body(digest: Digest) -> Option<Vec<u8>>;
        one: fn response(node: NodeId) -> Option<StoredResponse>;
    }
}
