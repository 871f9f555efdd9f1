//! Generations: one request to a model, as far as the tree knows it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::digest::{Digest, PathDigest};
use crate::id::{NodeId, NotAnId, PositionId, TreeId, ViewName, id_type};

id_type!(
    /// One request to a model.
    GenerationId
);

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of a conversation, or a continuation of a document.
    #[default]
    Turn,
    Observe,
    Reflect,
    Wrap,
    Route,
}

impl Purpose {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Observe => "observe",
            Self::Reflect => "reflect",
            Self::Wrap => "wrap",
            Self::Route => "route",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A stretch of the path that stood in a request's window, from the upper position to the lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// First position, the upper one.
    pub from: PositionId,
    pub to: PositionId,
    /// Digest of what was shown on it.
    pub digest: PathDigest,
}

/// The row that is durable, with its manifest, before a request is sent (spec: loom §6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationRow {
    pub id: GenerationId,
    pub tree: TreeId,
    /// The view whose tip follows it.
    pub view: ViewName,
    pub purpose: Purpose,
    /// Digest of the manifest, which is stored under it.
    pub manifest: Digest,
    /// Digest of the agent's profile.
    pub profile: Option<Digest>,
    /// The position its nodes will hang under.
    pub parent: PositionId,
    /// The version shown there when the request was made: the nodes' origin.
    pub parent_node: NodeId,
    /// The ids its nodes will have, one a choice.
    pub reserved: Vec<NodeId>,
    /// The runs of the path in its window.
    pub runs: Vec<Run>,
}
