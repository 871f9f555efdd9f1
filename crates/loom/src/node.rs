//! Nodes: immutable content by exactly one author, at one position.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::{Block, Counts, NotCanonical, content_hash, plain_text, whole_text};
use crate::digest::{Digest, PathDigest};
use crate::generation::GenerationId;
use crate::id::{Millis, NodeId, PositionId, Seq, TreeId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorKind {
    Human,
    Model,
    Tool,
}

/// The one author of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub kind: AuthorKind,
    /// The agent's name: `owner`, `main`, or `import:<digest>/<name>`.
    pub id: String,
    /// Digest of the agent's profile when it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Digest>,
}

impl Author {
    /// The name of the owner of a home.
    pub const OWNER: &'static str = "owner";

    /// The owner, as a human author.
    pub fn owner() -> Self {
        Self { kind: AuthorKind::Human, id: Self::OWNER.to_owned(), profile: None }
    }
}

/// The part a position plays in a dialogue. Fixed at creation, hashed, inherited by versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// How far a content is believed; the lowest of what it came from wins (spec: security §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// From the web, a server, an import.
    Outside,
    /// A file of a trusted workspace.
    Workspace,
    Agent,
    Owner,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model stopped, or a stop string was met.
    Stop,
    /// The limit of tokens was met.
    Length,
    ToolUse,
    Refused,
    /// Cut off; the exact partial text was kept.
    Interrupted(String),
}

/// What kind of thing answered. Hashed, so that a script cannot pass for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Remote,
    /// A server or engine on this machine.
    Local,
    Script,
    /// Stored bytes sent again.
    Replay,
}

/// Which part of a response a node was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponsePart {
    /// The choice with this index.
    Index(u32),
    /// An alternative token out of the stored probabilities.
    Token {
        /// Index of the token in the response, from 0.
        index: u32,
        /// Rank of the alternative, 0 for the most probable.
        rank: u32,
    },
}

/// Where a model node came from. Everything here is hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSource {
    /// Provider, as requested.
    pub provider: String,
    /// Model, as requested.
    pub model: String,
    /// Dialect, as requested.
    pub dialect: String,
    pub kind: SourceKind,
    /// Digest of the manifest: what was sent.
    pub manifest: Digest,
    /// Digest of the stored response; none for an import without one.
    pub response: Option<Digest>,
    pub choice: ResponsePart,
}

/// Text taken from another node of the same tree, so that its authors stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub node: NodeId,
    pub chain: Digest,
    /// Byte range of its text.
    pub from: u64,
    pub to: u64,
    /// Byte offset in this node's text at which the quoted text stands.
    pub at: u64,
}

/// The part a source plays for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginRole {
    /// The version of the parent position that was shown.
    Parent,
    /// An extra input, sent just before the newest turn.
    Context,
    /// An extra input, sent with the system part.
    Instruction,
    /// The node this one is a remark on.
    Annotation,
    /// The genesis, for the tree's head.
    Head,
    /// The genesis, for the tree's note.
    Note,
}

/// A source of a node as it was at creation: which version it followed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub role: OriginRole,
    pub node: NodeId,
    pub chain: Digest,
}

/// A node as planned and stored. Never changed; `forget` and `purge` leave a tombstone ([`NodeRow::purged`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub id: NodeId,
    pub tree: TreeId,
    pub position: PositionId,
    pub author: Author,
    /// The role of its position; none in a document.
    pub role: Option<Role>,
    /// When, for people.
    pub created_at: Millis,
    /// Shared with what it was planned from: it may be many MiB.
    #[serde(with = "crate::shared")]
    pub content: Arc<Vec<Block>>,
    /// The version it was made from, if it is an edit.
    pub edited_from: Option<NodeId>,
    /// Text of another node within it.
    pub quote: Option<Quote>,
    /// Origin parents and extra inputs, in order, as frozen at creation.
    pub origins: Vec<Origin>,
    /// Where a model's text came from.
    pub source: Option<ModelSource>,
    /// The generation that made it. Outside the hash.
    pub generation: Option<GenerationId>,
    /// How far it is believed. Outside the hash.
    pub trust: Trust,
    /// How the completion ended. Outside the hash.
    pub finish: Option<Finish>,
    /// The size of its text.
    pub counts: Counts,
    /// Term of the node in the path digest.
    pub term: PathDigest,
    /// The hash of its content where it is kept beside it: of a version, and of a content that was removed.
    pub kept_hash: Option<Digest>,
    /// SHA-256 of the record that binds it to what it came from.
    pub chain_hash: Digest,
}

impl Node {
    /// Text blocks of the node, joined.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        plain_text(&self.content)
    }

    /// What it says: its text; of a result of a tool, what the tool said.
    pub fn said(&self) -> std::borrow::Cow<'_, str> {
        match self.role {
            Some(Role::Tool) => whole_text(&self.content).into(),
            _ => self.text(),
        }
    }

    /// SHA-256 of its canonical content, or of what it was before it was removed.
    ///
    /// # Errors
    /// [`NotCanonical`] for a content without a canonical form, which no plan makes.
    pub fn content_hash(&self) -> Result<Digest, NotCanonical> {
        self.kept_hash.map_or_else(|| content_hash(&self.content), Ok)
    }

    /// Whether it is the node first written at its position.
    pub fn is_original(&self) -> bool {
        self.position.original() == self.id
    }
}

/// A stored node: the node, its place in the order of its tree, its short id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    /// The node. When purged its content is empty and its hashes stay.
    pub node: Node,
    /// The operation that made it.
    pub seq: Seq,
    /// Place within that operation, from 0.
    pub place: u32,
    /// 4 or more characters, unique in the tree, fixed at creation.
    pub short_id: String,
    /// Whether its content was removed by `forget` or `purge`.
    pub purged: bool,
}
