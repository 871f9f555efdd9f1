//! Authors as they are shown: those of imported text that is not trusted have the file's name before their own.
//!
//! A file can call its authors whatever it likes, the owner's name too. The rows stay as they came, because hashes
//! are over them; what is shown is read through here, so that a passage, a stretch of an edited passage and an
//! export all say `import:<digest>/<name>` until the owner trusts the tree (spec: loom §8, security §13).

use std::collections::{BTreeSet, HashMap};

use interop::import::Provenance;
use loom::cell::CellScope;
use loom::reader::{AnswerRow, Attribution, Injection, Order, OriginalText, StoredResponse};
use loom::seal::Seal;
use loom::{
    Cell, CellKey, Digest, Draft, GenerationId, GenerationRow, NodeId, NodeRow, OpRecord, Position,
    PositionId, RowError, Seq, Slot, Timeline, TreeId, TreeReader, TreeRow, Trust, ViewName,
};
use store::Import;

use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

/// Rows of a tree in which strangers are named as such.
pub(crate) struct NamedAuthors<'a> {
    rows: &'a dyn TreeReader,
    imports: &'a [Import],
}

/// Reads through rows in which strangers are named as such; where nothing was imported, through the rows themselves.
pub(crate) fn naming<T>(
    rows: &dyn TreeReader,
    imports: &[Import],
    f: impl FnOnce(&dyn TreeReader) -> T,
) -> T {
    if imports.is_empty() { f(rows) } else { f(&NamedAuthors { rows, imports }) }
}

impl App {
    /// Where parts of a tree came from.
    ///
    /// # Errors
    /// As the store says.
    pub(crate) async fn imports(&self, asker: &Asker, tree: TreeId) -> Result<Vec<Import>, CommandError> {
        Ok(self.runtime.store.imports(&asker.principal, tree).await?)
    }
}

impl NamedAuthors<'_> {
    fn named(&self, mut row: NodeRow) -> NodeRow {
        if row.node.trust == Trust::Outside
            && let Some(import) = self.imports.iter().find(|import| import.covers(row.seq))
        {
            row.node.author.id = Provenance { file: import.note.file }.author(&row.node.author);
        }
        row
    }

    fn all(&self, rows: Vec<NodeRow>) -> Vec<NodeRow> {
        rows.into_iter().map(|row| self.named(row)).collect()
    }
}

/// Methods that answer as the rows do.
macro_rules! unchanged {
    ($(fn $method:ident($($name:ident: $of:ty),*) -> $found:ty;)*) => {
        $(fn $method(&self, $($name: $of),*) -> Result<$found, RowError> {
            self.rows.$method($($name),*)
        })*
    };
}

impl TreeReader for NamedAuthors<'_> {
    fn attributions(&self, nodes: &[NodeId]) -> Result<Vec<Attribution>, RowError> {
        let mut kept = self.rows.attributions(nodes)?;
        let named: BTreeSet<NodeId> =
            kept.iter().flat_map(|kept| &kept.spans).map(|span| span.node).collect();
        let named: Vec<NodeId> = named.into_iter().collect();
        let authors: HashMap<NodeId, String> =
            self.nodes(&named)?.into_iter().map(|row| (row.node.id, row.node.author.id)).collect();
        for span in kept.iter_mut().flat_map(|kept| &mut kept.spans) {
            if let Some(author) = authors.get(&span.node) {
                span.author.clone_from(author);
            }
        }
        Ok(kept)
    }

    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError> {
        Ok(self.rows.node(id)?.map(|row| self.named(row)))
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRow>, RowError> {
        Ok(self.all(self.rows.nodes(ids)?))
    }

    fn versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError> {
        Ok(self.all(self.rows.versions(position, before, limit)?))
    }

    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError> {
        Ok(self.all(self.rows.nodes_in_order(after, limit)?))
    }

    unchanged! {
        fn tables() -> u32;
        fn started_calls(answer: NodeId) -> Vec<u32>;
        fn answers(before: Option<Order>, limit: usize) -> Vec<AnswerRow>;
        fn tree() -> TreeRow;
        fn position(id: PositionId) -> Option<Position>;
        fn cell(key: &CellKey) -> Cell;
        fn cells(scope: &CellScope) -> Vec<(CellKey, Cell)>;
        fn choices(view: Option<&ViewName>, end: PositionId) -> Vec<(CellKey, Cell)>;
        fn count_versions(position: PositionId) -> u64;
        fn version_with_content(position: PositionId, content: Digest) -> Option<NodeId>;
        fn children(position: PositionId, before: Option<Order>, limit: usize) -> Vec<Position>;
        fn count_children(position: PositionId) -> u64;
        fn annotations(at: Option<&[PositionId]>) -> Vec<Position>;
        fn tags(at: &[PositionId]) -> Vec<(PositionId, String)>;
        fn upwards(from: PositionId, limit: usize) -> Vec<Position>;
        fn original_texts(from: PositionId) -> Vec<OriginalText>;
        fn operation(seq: Seq) -> Option<OpRecord>;
        fn operations(after: Seq, limit: usize) -> Vec<OpRecord>;
        fn timeline(view: &ViewName) -> Timeline;
        fn draft(view: &ViewName, slot: Slot) -> Option<Draft>;
        fn drafts(view: &ViewName) -> Vec<(Slot, Draft)>;
        fn seals() -> Vec<Seal>;
        fn generation(id: GenerationId) -> Option<GenerationRow>;
        fn generations(after: Option<GenerationId>, limit: usize) -> Vec<(GenerationRow, Option<Digest>)>;
        fn answer(generation: GenerationId) -> Option<StoredResponse>;
        fn injections(from: NodeId, before: Option<NodeId>) -> Vec<Injection>;
        fn manifest(digest: Digest) -> Option<Vec<u8>>;
        fn body(digest: Digest) -> Option<Vec<u8>>;
        fn response(node: NodeId) -> Option<StoredResponse>;
    }
}
