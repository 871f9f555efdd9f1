//! Results of commands that ask a model, and of what it wrote.

use loom::{Digest, Finish, NodeId, PositionId, TreeId};
use serde::Serialize;

/// `tree tokens`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokensShown {
    pub tree: TreeId,
    pub node: NodeId,
    pub short_id: String,
    /// The tokens of its text, in order.
    pub tokens: Vec<TokenShown>,
}

/// A token as it was chosen, with what else could have stood there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenShown {
    /// Number of the token in the answer, from 0.
    pub index: usize,
    /// Where it begins in the node's text, in characters (grapheme clusters).
    pub at: usize,
    pub text: String,
    /// Natural logarithm of its probability, where the server gave one.
    pub logprob: Option<f64>,
    /// The likeliest tokens at its place, the likeliest first.
    pub alternatives: Vec<AlternativeShown>,
}

/// A token that could have stood there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlternativeShown {
    /// As `tree branch --token` takes it.
    pub rank: usize,
    pub text: String,
    pub logprob: f64,
}

/// `tree generate`, `regenerate`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Generated {
    /// The nodes made, in order of their siblings.
    pub nodes: Vec<GeneratedNode>,
    /// Digest of the manifest of the first request.
    pub manifest: Digest,
    /// Tokens of all requests together.
    pub usage: UsageShown,
    /// Characters of the path that stood above the window of the first request.
    pub left_out: u64,
    /// Where that window began, where something was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_start: Option<String>,
    #[serde(flatten)]
    pub place: AnswerPlace,
}

/// Where the view stands after an answer was asked for: an answer asked for at the tip moves it to the first sibling,
/// one asked for elsewhere leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerPlace {
    /// The view's tip.
    pub tip: PositionId,
    #[serde(skip)]
    pub view: String,
    /// The command that goes to the answer; none where the view stands there.
    #[serde(skip)]
    pub go: Option<String>,
    /// Where the next answer stands, if there are several.
    #[serde(skip)]
    pub next: Option<NextAnswer>,
}

/// How one of several answers is reached from the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextAnswer {
    /// The command that goes to it.
    pub command: String,
    /// Number of the answer among its siblings, from 1.
    pub number: usize,
    /// The number of the first.
    pub from: usize,
    /// How many siblings there are.
    pub of: usize,
}

/// A node a model made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratedNode {
    pub id: NodeId,
    pub short_id: String,
    pub text: String,
    /// How it ended.
    pub finish: Finish,
    /// Whether its text was shown while it came.
    #[serde(skip)]
    pub streamed: bool,
}

impl From<agent::CommittedNode> for GeneratedNode {
    fn from(made: agent::CommittedNode) -> Self {
        Self {
            id: made.id,
            short_id: made.short_id,
            text: made.text.to_string(),
            finish: made.finish,
            streamed: false,
        }
    }
}

/// Tokens of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct UsageShown {
    /// Input that came from no cache.
    pub input_uncached: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
    /// Whether all of it was reported; else it is estimated, or nothing of it is known.
    pub reported: bool,
}

impl UsageShown {
    /// Whether there are no tokens.
    pub const fn is_nothing(&self) -> bool {
        self.input_uncached == 0 && self.cache_read == 0 && self.cache_write == 0 && self.output == 0
    }

    /// Tokens of one request: as reported, else as estimated.
    pub fn of(reported: Option<model::TokenUsage>, estimated: model::TokenUsage) -> Self {
        let usage = reported.unwrap_or(estimated);
        Self {
            input_uncached: usage.input_uncached,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            output: usage.output,
            reported: reported.is_some(),
        }
    }
}

/// `tree generate --dry-run`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Where it would go.
    pub model: String,
    /// Whether text would leave this machine.
    pub place: model::ModelPlace,
    /// Requests.
    pub requests: u32,
    /// Input tokens of one request.
    pub input_tokens: u64,
    /// Whether the input tokens were counted; else they are estimated.
    pub counted: bool,
    /// Who counted them, or those of the texts: `embedded`, `server`, `library`; `estimate` where nobody did.
    pub counted_by: String,
    /// Output tokens of all requests, at most.
    pub output_tokens: u64,
    /// Characters of the document that stand above its window and are not sent.
    pub left_out: u64,
    /// Where the window begins, where something is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_start: Option<String>,
    /// Price; none where it is not known.
    pub cost: Option<f64>,
}
