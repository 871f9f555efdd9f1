//! Authors as they are shown: those of imported text that is not trusted have the file's name before their own.
//!
//! A file can call its authors whatever it likes, the owner's name too. The rows stay as they came, because hashes
//! are over them; what is shown is read through here, so that a passage, a stretch of an edited passage and an
//! export all say `import:<digest>/<name>` until the owner trusts the tree (spec: loom §8, security §13).

use std::collections::{BTreeSet, HashMap};

use interop::import::Provenance;
use loom::attribution::Attribution;
use loom::cell::CellScope;
use loom::reader::{Order, OriginalText, StoredResponse};
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

    // The rest is as it is.

    fn tables(&self) -> Result<u32, RowError> {
        self.rows.tables()
    }

    fn tree(&self) -> Result<TreeRow, RowError> {
        self.rows.tree()
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError> {
        self.rows.position(id)
    }

    fn cell(&self, key: &CellKey) -> Result<Cell, RowError> {
        self.rows.cell(key)
    }

    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError> {
        self.rows.cells(scope)
    }

    fn choices(&self, view: Option<&ViewName>, end: PositionId) -> Result<Vec<(CellKey, Cell)>, RowError> {
        self.rows.choices(view, end)
    }

    fn count_versions(&self, position: PositionId) -> Result<u64, RowError> {
        self.rows.count_versions(position)
    }

    fn version_with_content(
        &self,
        position: PositionId,
        content: Digest,
    ) -> Result<Option<NodeId>, RowError> {
        self.rows.version_with_content(position, content)
    }

    fn children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError> {
        self.rows.children(position, before, limit)
    }

    fn count_children(&self, position: PositionId) -> Result<u64, RowError> {
        self.rows.count_children(position)
    }

    fn upwards(&self, from: PositionId, limit: usize) -> Result<Vec<Position>, RowError> {
        self.rows.upwards(from, limit)
    }

    fn original_texts(&self, from: PositionId, limit: usize) -> Result<Vec<OriginalText>, RowError> {
        self.rows.original_texts(from, limit)
    }

    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError> {
        self.rows.operation(seq)
    }

    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError> {
        self.rows.operations(after, limit)
    }

    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError> {
        self.rows.timeline(view)
    }

    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError> {
        self.rows.draft(view, slot)
    }

    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError> {
        self.rows.drafts(view)
    }

    fn seals(&self) -> Result<Vec<Seal>, RowError> {
        self.rows.seals()
    }

    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError> {
        self.rows.generation(id)
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<(GenerationRow, Option<Digest>)>, RowError> {
        self.rows.generations(after, limit)
    }

    fn answer(&self, generation: GenerationId) -> Result<Option<StoredResponse>, RowError> {
        self.rows.answer(generation)
    }

    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        self.rows.manifest(digest)
    }

    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        self.rows.body(digest)
    }

    fn response(&self, node: NodeId) -> Result<Option<StoredResponse>, RowError> {
        self.rows.response(node)
    }
}
