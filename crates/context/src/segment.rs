//! Segments: the pieces of a request, each with a source, a reason and a price (spec: context §1).

use loom::{Digest, NodeId, PositionId, Trust};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Schemas,
    /// Who the agent is, or how it is to continue.
    Identity,
    File,
    SkillsIndex,
    /// What the last session handed over.
    Handoff,
    Memory,
    History,
    /// Something shown once: a card, a notice.
    Injection,
    /// A further source named by the owner.
    ExtraInput,
    Head,
    /// The text of the document.
    Document,
    Note,
    /// Text that is not committed yet.
    Buffer,
    /// Form: JSON syntax, frames, separators.
    Framing,
}

/// Where a segment comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Source {
    /// Index of a run of the path in [`crate::Manifest::runs`].
    Run {
        /// Index into `runs`.
        run: usize,
    },
    Node {
        node: NodeId,
        position: PositionId,
    },
    /// A file of the owner's.
    File {
        /// Name of the file in the workspace.
        path: String,
        /// Digest of its bytes.
        digest: Digest,
    },
    /// Index of a stretch of the path that is not sent, in [`crate::Manifest::left`].
    Left {
        /// Index into `left`.
        left: usize,
    },
    /// Tools, by name.
    Tools {
        names: Vec<String>,
    },
    /// Something shown with a node, from then on sent again unchanged.
    Injection {
        /// The node it is sent with.
        node: NodeId,
        /// Place among the injections of the node, from 0.
        ordinal: u32,
        /// What it is about, and which version of that: `zone#yellow`.
        name: String,
    },
    /// The working buffer of the view.
    WorkingBuffer,
    /// A text of the product itself, by name.
    Product {
        name: String,
    },
    /// The form of the dialect.
    Dialect,
}

/// What a person calls what the format of a request adds to its texts.
pub const FRAMING: &str = "format of the request";

impl Source {
    /// What a person calls it.
    pub fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.clone(),
            Self::Product { name } | Self::Injection { name, .. } => name.clone(),
            Self::Tools { names } => format!("{} tools", names.len()),
            Self::Node { node, .. } => format!("node {node}"),
            Self::Run { .. } => "the conversation".to_owned(),
            Self::Left { .. } => "what left the window".to_owned(),
            Self::WorkingBuffer => "the draft".to_owned(),
            Self::Dialect => FRAMING.to_owned(),
        }
    }
}

/// What became of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentOutcome {
    Sent,
    /// Part of it was sent.
    Trimmed {
        /// Size of the segment, characters.
        from: u64,
        /// What was sent of it, characters.
        to: u64,
    },
    LeftOut {
        why: String,
    },
}

/// What the calls of one tool and their results have of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolShare {
    pub tool: String,
    pub calls: u64,
    /// Characters of arguments and results, as sent.
    pub chars: u64,
    /// Tokens, estimated.
    pub tokens: u64,
}

/// One piece of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub kind: Kind,
    #[serde(flatten)]
    pub source: Source,
    pub reason: String,
    /// Characters, measured.
    pub chars: u64,
    /// Tokens, estimated.
    pub tokens: u64,
    /// Range in the body, bytes, `[from, to)`; none when the segment was left out.
    pub bytes: Option<(u64, u64)>,
    /// Whether it stands above the cache boundary.
    pub stable: bool,
    /// How far it is believed; none for framing.
    pub trust: Option<Trust>,
    pub decision: SegmentOutcome,
    /// What of it is calls of tools: the dearest tool first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolShare>,
}
