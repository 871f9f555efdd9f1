//! Results of the `context` commands.

use context::Segment;
use loom::{Digest, Finish, NodeId};
use serde::Serialize;

use super::tree::AnswerPlace;

/// `context show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextShown {
    /// The model.
    pub model: String,
    /// The model's window, tokens.
    pub window: u64,
    /// What the request may have, tokens.
    pub budget: u64,
    /// What it has: reported where a server did, else estimated.
    pub used: u64,
    /// Whether `used` is an estimate.
    pub estimated: bool,
    /// Who counted its tokens, or those of its texts, before it was sent: `embedded`, `server`, `library` or `estimate`.
    pub counted_by: String,
    /// Tokens at its beginning that a cache can reuse, estimated; none where no request was before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reusable: Option<u64>,
    /// Tokens that the provider read from its cache, as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// The zone of a dialogue; none for a document.
    pub zone: Option<String>,
    /// A node of trust `outside` that was sent.
    pub tainted_by: Option<NodeId>,
    /// That node by its short id.
    #[serde(skip)]
    pub tainted_short: Option<String>,
    /// Characters of the path that stand above its window and were not sent.
    pub left_out: u64,
    /// Where the window begins, where something is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_start: Option<String>,
    /// Digest of the manifest; none for a look ahead.
    pub manifest: Option<Digest>,
    /// Digest of the profile of the agent that asked; none where none was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Digest>,
    /// SHA-256 of the body.
    pub sha256: Digest,
    /// The segments, in order.
    pub segments: Vec<SegmentShown>,
    /// Whether a person sees bars for each kind.
    #[serde(skip)]
    pub map: bool,
}

/// A segment, with its text if asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentShown {
    /// The segment.
    #[serde(flatten)]
    pub segment: Segment,
    /// Bytes of the segment in the body, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `context diff`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextDiff {
    /// Segments only the second has.
    pub added: Vec<Segment>,
    /// Segments only the first has.
    pub removed: Vec<Segment>,
    /// Whether tokens of either request are an estimate.
    pub estimated: bool,
    /// Segments both have, with other content.
    pub changed: Vec<ChangedSegment>,
}

/// A segment that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedSegment {
    /// In the first request.
    pub before: Segment,
    /// In the second.
    pub after: Segment,
    /// Bytes both begin with.
    pub same_prefix: u64,
    /// What was sent of it in the first request, for people.
    #[serde(skip)]
    pub old: String,
    /// What was sent of the segment in the second request, for people.
    #[serde(skip)]
    pub new: String,
}

/// `context replay`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// SHA-256 of the bytes read back; of those encoded anew, for another model.
    pub sha256: Digest,
    /// Whether that is the hash they had when they were sent.
    pub identical: bool,
    /// The model they are for.
    pub model: String,
    /// Whether they were encoded anew for it.
    pub anew: bool,
    /// The new sibling, if they were sent again.
    pub node: Option<NodeId>,
    /// The answer, if they were sent again.
    #[serde(flatten)]
    pub answer: Option<ReplayAnswer>,
}

/// What a request that was sent again was answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayAnswer {
    pub short_id: String,
    pub text: String,
    /// How it ended.
    pub finish: Finish,
    #[serde(flatten)]
    pub place: AnswerPlace,
    /// Whether its text was shown while it came.
    #[serde(skip)]
    pub streamed: bool,
}
