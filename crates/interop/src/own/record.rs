//! The records of a file, as they stand in its lines.

use std::sync::Arc;

use loom::content::{Counts, NotCanonical};
use loom::digest::PathDigest;
use loom::seal::Seal;
use loom::{
    Author, Block, Digest, Finish, GenerationId, GenerationRow, Millis, ModelSource, Node, NodeId, NodeRow,
    OpRecord, Origin, PositionId, PositionKind, Quote, Role, Seq, TreeRow, Trust,
};
use serde::{Deserialize, Serialize};

use super::bytes::Data;
use super::contents::{ExportPart, ExportVariant};

/// What the first line names.
pub const FORMAT: &str = "drawloom";

/// The version written; older ones stay readable.
pub const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    Header(Box<FileHeader>),
    /// A position; the line before its original.
    Position(PositionRecord),
    /// A node, in the order of the tree.
    Node(Box<NodeRecord>),
    Operation(Box<OpRecord>),
    Seal(Seal),
    Injection(InjectionRecord),
    Generation(Box<GenerationRecord>),
    Manifest(BytesRecord),
    /// A file body that a manifest names; behind the manifest.
    Body(BodyRecord),
    Response(ResponseRecord),
    /// A picture or a sound of a node.
    Blob(BytesRecord),
    End(End),
}

/// The first line: what the file is and holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileHeader {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    pub variant: ExportVariant,
    pub contains: Vec<ExportPart>,
    pub left_out: Vec<ExportPart>,
    pub tree: TreeRow,
}

/// A position. Depth, jump pointer and sums follow from its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PositionRecord {
    /// Id of the position, which is that of its original node.
    pub id: PositionId,
    /// The position it follows from; none for the genesis.
    pub parent: Option<PositionId>,
    pub kind: PositionKind,
    pub role: Option<Role>,
}

/// Reason and digest of a text that is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// The text was forgotten before the export.
    Purged,
    /// The export left it out.
    Shared,
}

/// A node, without its trust. Its size and digest term are there only where its text is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of loom::Node and loom::NodeRow")]
pub struct NodeRecord {
    pub id: NodeId,
    pub seq: Seq,
    pub place: u32,
    pub short_id: String,
    pub position: PositionId,
    pub author: Author,
    pub role: Option<Role>,
    pub created_at: Millis,
    pub content: Vec<Block>,
    /// Reason why the content is empty although the node's was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Absence>,
    /// Size and digest term of an absent text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<(Counts, PathDigest)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_from: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    pub origins: Vec<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ModelSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<GenerationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Finish>,
    pub content_hash: Digest,
    pub chain_hash: Digest,
}

impl NodeRecord {
    /// The record of a row; `withheld` leaves its content out.
    ///
    /// # Errors
    /// [`NotCanonical`] for a content that cannot be hashed.
    pub fn of(row: NodeRow, withheld: bool) -> Result<Self, NotCanonical> {
        let node = row.node;
        let content_hash = node.content_hash()?;
        let absent = match (row.purged, withheld) {
            (true, _) => Some(Absence::Purged),
            (false, true) => Some(Absence::Shared),
            (false, false) => None,
        };
        Ok(Self {
            id: node.id,
            seq: row.seq,
            place: row.place,
            short_id: row.short_id,
            position: node.position,
            author: node.author,
            role: node.role,
            created_at: node.created_at,
            content: if absent.is_some() { Vec::new() } else { Arc::unwrap_or_clone(node.content) },
            absent,
            was: absent.map(|_| (node.counts, node.term)),
            edited_from: node.edited_from,
            quote: node.quote,
            origins: node.origins,
            source: node.source,
            generation: node.generation,
            finish: node.finish,
            content_hash,
            chain_hash: node.chain_hash,
        })
    }

    /// The row, with size and term computed where the text is there. What arrives is `outside`.
    pub(crate) fn into_row(self, tree: loom::TreeId) -> NodeRow {
        let mut node = Node {
            id: self.id,
            tree,
            position: self.position,
            author: self.author,
            role: self.role,
            created_at: self.created_at,
            content: self.content.into(),
            edited_from: self.edited_from,
            quote: self.quote,
            origins: self.origins,
            source: self.source,
            generation: self.generation,
            trust: Trust::Outside,
            finish: self.finish,
            counts: Counts::default(),
            term: PathDigest::default(),
            kept_hash: Some(self.content_hash),
            chain_hash: self.chain_hash,
        };
        let text = node.text();
        let (counts, term) =
            self.was.unwrap_or_else(|| (Counts::of(&text), PathDigest::term(node.position, &text)));
        (node.counts, node.term) = (counts, term);
        NodeRow {
            node,
            seq: self.seq,
            place: self.place,
            short_id: self.short_id,
            purged: self.absent.is_some(),
        }
    }
}

/// Injection: content shown to models with a node and sent with it again. Its trust is left out, as that of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InjectionRecord {
    pub node: NodeId,
    /// Index among the injections of the node, from 0.
    pub ordinal: u32,
    /// What it is about, and which version of that.
    pub source: String,
    /// The text, as it was sent.
    pub text: String,
}

/// A generation and the response it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationRecord {
    pub row: GenerationRow,
    /// Digest of its response, if there was one.
    pub response: Option<Digest>,
    /// Metadata of its response, where the record of the response has that of another generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BytesRecord {
    /// SHA-256 of the bytes.
    pub digest: Digest,
    pub length: u64,
    /// The bytes; none where they are not in the file.
    pub data: Option<Data>,
}

/// A file body that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyRecord {
    pub manifest: Digest,
    /// Owner of the text, as the manifest says.
    pub name: String,
    /// SHA-256 of the body.
    pub digest: Digest,
    /// Size in bytes.
    pub length: u64,
    /// The body; none without `--with-context`, and where an earlier line has it.
    pub data: Option<Data>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseRecord {
    /// SHA-256 of the body.
    pub digest: Digest,
    /// Status, headers, timings, usage: JSON text, byte for byte as stored.
    pub metadata: String,
    /// Whether the body was forgotten.
    pub purged: bool,
    /// Size of the body, bytes.
    pub length: u64,
    pub data: Option<Data>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub counts: super::contents::RecordCounts,
    pub seq: Seq,
    /// The head of the tree after it.
    pub head: Digest,
    /// SHA-256 over all lines before this one: finds accidents, not attacks.
    pub digest: Digest,
}
