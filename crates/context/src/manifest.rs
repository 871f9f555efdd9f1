//! The manifest: what a request was made of, kept with it for ever.

use loom::content::{NotCanonical, canonical};
use loom::{Digest, NodeId, PathDigest, PositionId, Purpose, TreeId, ViewName};
use serde::{Deserialize, Serialize};

use crate::body::StoredBody;
use crate::budget::TokenBudget;
use crate::segment::Segment;

pub const VERSION: u32 = 1;

/// How the fit of a request begins whose tokens were counted.
pub const COUNTED: &str = "counted/";
/// How the fit of a request begins of which the texts alone were counted.
pub const COUNTED_TEXTS: &str = "texts/";

/// How a document is continued: a fact of the model (spec: context §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContinuationForm {
    /// The text alone, at a completion endpoint or in process.
    Raw,
    /// The text as the assistant's beginning.
    Prefill,
    /// The text with an instruction to continue it.
    Instructed,
}

impl ContinuationForm {
    /// The best a model offers.
    pub const fn of(model: &model::ModelInfo) -> Self {
        if model.completion_endpoint && model.dialect.has_completions() {
            Self::Raw
        } else if model.prefill {
            Self::Prefill
        } else {
            Self::Instructed
        }
    }
}

/// A stretch of the path that was sent. History has O(runs) entries, never O(nodes).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRun {
    pub from: PositionId,
    pub to: PositionId,
    pub count: u64,
    pub chars: u64,
    /// Tokens, estimated.
    pub tokens: u64,
    /// Digest of what was shown.
    pub digest: PathDigest,
    /// Positions in it that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<PositionId>,
    /// Bytes of the first position's text that were cut off.
    #[serde(default)]
    pub cut: u64,
    /// Tool calls in it that were shortened or left out; they stay so in later requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallCut>,
}

/// What became of a tool call, for lack of room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallCut {
    /// The position of the answer that made the call.
    pub answer: PositionId,
    /// Which of its calls, from 0.
    pub call: u32,
    /// What is sent of it.
    pub kept: KeptCallPart,
}

/// What is sent of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptCallPart {
    /// The call, and the head and the tail of its result.
    Shortened,
    Nothing,
}

/// The model a request went to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    pub provider: String,
    pub name: String,
    /// The dialect of the body.
    pub dialect: model::DialectName,
    pub place: model::ModelPlace,
}

impl ModelRef {
    /// `PROVIDER/NAME`, as [`model::ModelInfo::full_name`].
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }
}

/// How the request is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTarget {
    /// Below the version root of the API.
    pub path: String,
    /// Whether a streamed answer is asked for.
    pub stream: bool,
    /// Names of the headers sent, never their values.
    pub header_names: Vec<String>,
}

/// Everything known of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    /// What the request is for.
    pub purpose: Purpose,
    /// The tree in whose name it is sent.
    pub tree: TreeId,
    /// The view it was read in; none for a prompt that looked at no place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<ViewName>,
    pub model: ModelRef,
    pub endpoint: RequestTarget,
    /// How a document is continued; none in a dialogue.
    pub way: Option<ContinuationForm>,
    /// The tokens it may have.
    pub budget: TokenBudget,
    /// Tokens it has, counted or estimated.
    pub tokens: u64,
    /// The fit the estimate used; `counted/` and who counted, where it is no estimate.
    pub fit: String,
    /// A node of trust `outside` that is sent.
    pub tainted_by: Option<NodeId>,
    /// White space held back from the end of the text.
    pub held: String,
    /// Segments, in order; those left out behind them.
    pub segments: Vec<Segment>,
    /// The runs of the path it holds.
    pub runs: Vec<PathRun>,
    /// The runs of the path that were not sent: what of them is covered, says the segment that names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<PathRun>,
    /// Digest of what stands above the cache boundary, frozen, as it is kept among the bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Digest>,
    /// Tokens at its beginning, estimated, that are those of the request before it: what a cache can reuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_tokens: Option<u64>,
    /// How its body is stored.
    pub body: StoredBody,
}

impl Manifest {
    /// Canonical bytes of the manifest: what is stored, and what the digest is of.
    ///
    /// # Errors
    /// [`NotCanonical`] never occurs for a manifest made here.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NotCanonical> {
        canonical(self)
    }

    /// Reads stored bytes.
    ///
    /// # Errors
    /// When they are no manifest of a version this program knows.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Whether its tokens were counted with the model's own vocabulary.
    pub fn is_counted(&self) -> bool {
        self.fit.starts_with(COUNTED)
    }

    /// Who counted its tokens, or those of its texts: `embedded`, `server`, `library`; `estimate` where nobody did.
    pub fn counted_by(&self) -> &str {
        let counted = self.fit.strip_prefix(COUNTED).or_else(|| self.fit.strip_prefix(COUNTED_TEXTS));
        counted.unwrap_or("estimate")
    }

    /// Used share of the window, 0 to 1, by estimate.
    pub fn share(&self) -> f64 {
        self.tokens as f64 / self.budget.window.max(1) as f64
    }

    /// Digest of stored bytes.
    pub fn digest(bytes: &[u8]) -> Digest {
        Digest::of(bytes)
    }
}
