//! The face a store shows to the functions of this crate: rows of one tree, by name.
//!
//! The calls are synchronous, because a store runs them on its own threads, next to its rows: a read that
//! follows jump pointers asks for one row after another, and none of those steps may wait for a scheduler.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cell::{Cell, CellKey, CellScope};
use crate::digest::Digest;
use crate::draft::{Draft, Slot};
use crate::generation::{GenerationId, GenerationRow};
use crate::id::{Millis, NodeId, PositionId, Seq, ViewName};
use crate::node::{AuthorKind, NodeRow, Trust};
use crate::operation::{OpRecord, Timeline};
use crate::position::{Position, PositionKind};
use crate::seal::Seal;
use crate::tree::TreeRow;

/// A store that could not answer, or rows that do not fit together.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    #[error("the store could not be read: {0}")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A row that must exist does not.
    #[error("the tree lacks {what} {id}")]
    Missing { what: &'static str, id: String },
    /// A row leads back to itself, or names one that cannot stand where it says.
    #[error("the {what} {id} is damaged")]
    Damaged { what: &'static str, id: String },
}

impl RowError {
    pub fn missing(what: &'static str, id: impl fmt::Display) -> Self {
        Self::Missing { what, id: id.to_string() }
    }

    /// A row that does not fit the others.
    pub fn damaged(what: &'static str, id: impl fmt::Display) -> Self {
        Self::Damaged { what, id: id.to_string() }
    }
}

/// Rows that a default method asks for at a time.
const READ_AT_ONCE: usize = 256;

/// Where a node stands in the order of its tree: operation, then place in it.
pub type Order = (Seq, u32);

/// What came back for a generation, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// SHA-256 of the body as received.
    pub digest: Digest,
    /// The body; for a stream the wire bytes in order. Empty once forgotten.
    pub bytes: Vec<u8>,
    /// Status, headers, timings and usage as JSON, without credentials.
    pub metadata: String,
    pub purged: bool,
}

/// The first node of a position that is of a generation, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerRow {
    pub node: NodeId,
    pub order: Order,
    pub generation: GenerationId,
    pub created_at: Millis,
}

impl AnswerRow {
    /// Of a node's row; none where it is of no generation.
    pub fn of(row: &NodeRow) -> Option<Self> {
        let NodeRow { node, seq, place, .. } = row;
        let generation = node.generation?;
        Some(Self { node: node.id, order: (*seq, *place), generation, created_at: node.created_at })
    }
}

/// The text first written at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalText {
    pub position: PositionId,
    /// How many positions stand above it.
    pub depth: u32,
    pub text: String,
}

/// Something that was shown to a model with a node, and is sent with it from then on, unchanged: a card, a notice, a
/// difference of a file (spec: context §2 *Injections*). It is no part of the tree: no hash binds it, the manifests
/// of the requests that sent it do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// The node it goes with.
    pub node: NodeId,
    /// Place among the injections of the node, from 0.
    pub ordinal: u32,
    /// What it is about, and which version of that: `zone#yellow`.
    pub source: String,
    /// How far it is believed.
    pub trust: Trust,
    /// The text, as it was sent.
    pub text: String,
}

/// A stretch of a node's text by one author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorSpan {
    /// First byte in the node's text.
    pub from: usize,
    /// The byte behind the last.
    pub to: usize,
    /// The version that introduced it; of another node where it is quoted.
    pub node: NodeId,
    pub author: String,
    pub kind: AuthorKind,
}

/// The spans of a node that was edited or quotes, as a store keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    pub node: NodeId,
    pub spans: Vec<AuthorSpan>,
}

/// The rows of one tree, as one reader may see them.
pub trait TreeReader {
    fn tree(&self) -> Result<TreeRow, RowError>;
    /// The version of the Unicode tables ([`text::grapheme::TABLES`]) that the tree's clusters and digests were counted
    /// by; 0 where it was not written down.
    fn tables(&self) -> Result<u32, RowError>;
    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError>;
    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError>;
    /// A cell; one never set is the default.
    fn cell(&self, key: &CellKey) -> Result<Cell, RowError>;
    /// The cells of a scope that were ever set, in the order of their keys. One set back to nothing is among
    /// them: its `seq` says when, which drift has to know.
    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError>;
    /// The choices on the path that ends at a position: what is pruned or left out there, and, of `view`, what it
    /// selected and kept. In any order; one set back to nothing is among them. Costs what is found, whatever was
    /// chosen elsewhere in the tree.
    fn choices(&self, view: Option<&ViewName>, end: PositionId) -> Result<Vec<(CellKey, Cell)>, RowError>;
    /// Versions at a position, newest first, older than `before`, at most `limit`.
    fn versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError>;
    /// How many versions a position has.
    fn count_versions(&self, position: PositionId) -> Result<u64, RowError>;
    /// A version at a position with this content, the newest.
    fn version_with_content(&self, position: PositionId, content: Digest)
    -> Result<Option<NodeId>, RowError>;
    /// Positions below a position, newest first, older than `before` (the order of their originals), at most
    /// `limit`; of every kind.
    fn children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError>;
    /// The remarks that hang on these positions, or on any of the tree, the oldest first.
    fn annotations(&self, at: Option<&[PositionId]>) -> Result<Vec<Position>, RowError> {
        let mut found = Vec::new();
        let Some(at) = at else {
            let mut last = None;
            loop {
                let page = self.nodes_in_order(last, READ_AT_ONCE)?;
                let Some(end) = page.last() else { return Ok(found) };
                last = Some((end.seq, end.place));
                for row in page.iter().filter(|row| row.node.is_original()) {
                    found.extend(self.position(row.node.position)?);
                }
                found.retain(|position| position.kind == PositionKind::Annotation);
            }
        };
        for position in at {
            let mut before = None;
            loop {
                let page = self.children(*position, before, READ_AT_ONCE)?;
                let Some(last) = page.last() else { break };
                let row = self.node(last.id.original())?;
                before = Some(
                    row.map(|row| (row.seq, row.place)).ok_or_else(|| RowError::missing("node", last.id))?,
                );
                found.extend(page.into_iter().filter(|child| child.kind == PositionKind::Annotation));
            }
        }
        found.sort_by_key(|position| position.id);
        Ok(found)
    }
    /// The tags of these positions, each with its position, in the order of their names.
    fn tags(&self, at: &[PositionId]) -> Result<Vec<(PositionId, String)>, RowError> {
        let mut found = Vec::new();
        for position in at {
            for (key, cell) in self.cells(&CellScope::Tags(*position))? {
                if let CellKey::Tag { position, tag } = key
                    && cell.value.is_set()
                {
                    found.push((position, tag));
                }
            }
        }
        Ok(found)
    }
    /// How many `Path` positions stand below a position.
    fn count_children(&self, position: PositionId) -> Result<u64, RowError>;
    /// The position itself and those above it, upwards, at most `limit`. Stores may read them in one go.
    fn upwards(&self, from: PositionId, limit: usize) -> Result<Vec<Position>, RowError> {
        let mut found = Vec::new();
        let mut next = Some(from);
        while let Some(id) = next.filter(|_| found.len() < limit) {
            let row = self.position(id)?.ok_or_else(|| RowError::missing("position", id))?;
            if found.last().is_some_and(|below: &Position| below.depth != row.depth.wrapping_add(1)) {
                return Err(RowError::damaged("position", id));
            }
            next = row.parent;
            found.push(row);
        }
        Ok(found)
    }
    /// The texts of the originals at a position and at all above it, from the top. A store reads them without anything
    /// else of the rows: rendering a long path is made of this.
    fn original_texts(&self, from: PositionId) -> Result<Vec<OriginalText>, RowError> {
        let mut positions = self.upwards(from, usize::MAX)?;
        positions.reverse();
        let ids: Vec<NodeId> = positions.iter().map(|position| position.id.original()).collect();
        let nodes = self.nodes(&ids)?;
        let texts = positions.into_iter().zip(nodes).map(|(position, row)| OriginalText {
            position: position.id,
            depth: position.depth,
            text: row.node.text().into_owned(),
        });
        Ok(texts.collect())
    }
    /// Nodes, in the order given. Stores may read them in one go.
    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRow>, RowError> {
        ids.iter().map(|id| self.node(*id)?.ok_or_else(|| RowError::missing("node", id))).collect()
    }
    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError>;
    /// Operations after `after`, oldest first, at most `limit`.
    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError>;
    /// Nodes after `after` in the order of the tree, at most `limit`.
    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError>;
    /// The first nodes of positions that are of a generation, newest first, older than `before`, at most `limit`.
    fn answers(&self, before: Option<Order>, limit: usize) -> Result<Vec<AnswerRow>, RowError>;
    /// Where a view stands in its timeline.
    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError>;
    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError>;
    /// The drafts of a view.
    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError>;
    /// The tree's seals, oldest first.
    fn seals(&self) -> Result<Vec<Seal>, RowError>;
    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError>;
    /// Generations of the tree behind `after`, in the order of their ids, at most `limit`, each with the digest of
    /// its response, if it got one.
    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<(GenerationRow, Option<Digest>)>, RowError>;
    /// What came back for a generation of the tree; none where the reader has none or may not see it.
    fn answer(&self, generation: GenerationId) -> Result<Option<StoredResponse>, RowError>;
    /// Whether [`Self::answer`] has something, which need not be read for it.
    fn has_answer(&self, generation: GenerationId) -> Result<bool, RowError> {
        Ok(self.answer(generation)?.is_some())
    }
    /// What was shown with nodes of the tree that are not older than `from` and older than `before`, by node and
    /// place; none where the reader has none or may not see it.
    fn injections(&self, from: NodeId, before: Option<NodeId>) -> Result<Vec<Injection>, RowError>;
    /// Which calls of an answer were started here, from 0, in order; it is the first node of its position.
    fn started_calls(&self, answer: NodeId) -> Result<Vec<u32>, RowError>;
    /// What is kept of the authors of nodes, of this program's [`crate::attribution::VERSION`]; nodes of which nothing
    /// is kept are left out. In any order.
    fn attributions(&self, nodes: &[NodeId]) -> Result<Vec<Attribution>, RowError>;
    /// A manifest by its digest; none where the reader has none or may not see it.
    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError>;
    /// A body that a manifest names, by its digest; none where the reader has none or may not see it.
    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError>;
    /// Whether [`Self::body`] has something, which need not be read for it.
    fn has_body(&self, digest: Digest) -> Result<bool, RowError> {
        Ok(self.body(digest)?.is_some())
    }
    /// The response a node was made of; none where the reader has none or may not see it.
    fn response(&self, node: NodeId) -> Result<Option<StoredResponse>, RowError>;
}
