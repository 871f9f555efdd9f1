//! What a request to a model leaves in the store: its row, what was sent, what came back, what it cost.

use std::sync::Arc;

use loom::{Digest, GenerationId, GenerationRow, Millis, Purpose, TreeId};

use crate::error::StoreError;
use crate::fence::Claim;
use crate::rows::bytes::pack;
use crate::rows::generations::dictionary;

/// Bytes under their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedBytes {
    pub digest: Digest,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl HashedBytes {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { digest: Digest::of(&bytes), bytes }
    }
}

/// A generation about to start: durable, with its manifest, before the request is sent (spec: loom §6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGeneration {
    pub row: GenerationRow,
    pub claim: Claim,
    /// The manifest, whose digest the row names.
    pub manifest: Vec<u8>,
    /// File bodies and other large parts that the manifest names by digest.
    pub bodies: Vec<HashedBytes>,
    /// Digests of further bodies that the manifest cites and the store has already.
    pub cited: Vec<Digest>,
    /// What is kept for it while it runs; none where it costs nothing.
    pub reservation: Option<Reservation>,
}

/// What a generation may come to. It is kept for it from its beginning to its outcome, for all processes of the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Names the turn it is a part of, within its tree.
    pub turn: String,
    pub micro_dollars: u64,
    /// Tokens whose price is not known.
    pub tokens: u64,
    pub limits: SpendLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendLimits {
    pub turn: u64,
    /// Micro-dollars since `day_began`.
    pub day: u64,
    /// Micro-dollars since `month_began`.
    pub month: u64,
    /// Tokens without a known price since `day_began`.
    pub tokens: u64,
    pub day_began: Millis,
    pub month_began: Millis,
}

/// What is spent, and reserved by generations that run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spending {
    pub turn: u64,
    pub day: u64,
    pub month: u64,
    /// Tokens of the day whose price is not known.
    pub tokens: u64,
}

/// A request beside one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUse {
    pub used: u64,
    /// What the request may come to.
    pub asked: u64,
    pub most: u64,
}

impl LimitUse {
    /// Whether the request does not fit.
    pub const fn is_over(&self) -> bool {
        self.asked > 0 && self.used.saturating_add(self.asked) > self.most
    }
}

impl Reservation {
    /// The request beside the limits of turn, day, month and tokens, in this order.
    pub const fn beside(&self, spending: &Spending) -> [LimitUse; 4] {
        let (money, limits) = (self.micro_dollars, &self.limits);
        [
            LimitUse { used: spending.turn, asked: money, most: limits.turn },
            LimitUse { used: spending.day, asked: money, most: limits.day },
            LimitUse { used: spending.month, asked: money, most: limits.month },
            LimitUse { used: spending.tokens, asked: self.tokens, most: limits.tokens },
        ]
    }
}

/// How far a generation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GenerationState {
    /// Runs, or was cut off and waits to be recovered.
    Started,
    /// Ended; its response, if there was one, is stored.
    Done,
    /// Given up before it sent anything, or stopped without an answer.
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    pub row: GenerationRow,
    pub state: GenerationState,
    /// Who runs it, or ran it last.
    pub claim: Claim,
}

/// The end of a generation, stored with the nodes made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationEnd {
    pub generation: GenerationId,
    /// Who reports it; refused unless it still is theirs.
    pub claim: Claim,
    /// Done or cancelled. `Started` stores the response and leaves the generation running: one of several
    /// choices came in.
    pub state: GenerationState,
    /// What came back, if anything did.
    pub response: Option<Received>,
    pub usage: Option<GenerationCost>,
    pub at: Millis,
}

/// A response to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// SHA-256 of its body.
    pub digest: Digest,
    /// The body as its row holds it.
    pub(crate) packed: Arc<Vec<u8>>,
    /// Status, headers, timings and usage as JSON, without credentials.
    pub(crate) metadata: String,
}

impl Received {
    /// Packs a body, which may take long: not within a transaction, for which others wait.
    ///
    /// # Errors
    /// When there is no memory to compress it.
    pub fn new(body: &[u8], metadata: String) -> Result<Self, StoreError> {
        let packed = pack(body, dictionary(&metadata))?.into();
        Ok(Self { digest: Digest::of(body), packed, metadata })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenerationCost {
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Tokens of the prompt read from the provider's cache.
    pub cached_tokens: u64,
    /// Price in micro-dollars; none where it is not known, which is not nothing.
    pub micro_cost: Option<u64>,
}

impl GenerationCost {
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            completion_tokens: self.completion_tokens + other.completion_tokens,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            micro_cost: match (self.micro_cost, other.micro_cost) {
                (Some(one), Some(two)) => Some(one + two),
                _ => None,
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageRow {
    pub generation: GenerationId,
    pub tree: TreeId,
    /// When it was written down.
    pub at: Millis,
    pub usage: GenerationCost,
}

/// Usage of one generation, with what it is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpentRow {
    pub row: UsageRow,
    /// What the request was for.
    pub purpose: Purpose,
    /// Manifest of the request, which names the model.
    pub manifest: Digest,
    /// Tokens of the prompt written to the provider's cache, as `usage.cache_write` of the response's metadata says;
    /// none where nothing says it, which is not nothing.
    pub cache_write: Option<u64>,
}

/// What requests came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownCost {
    /// What is known of their price.
    pub micro_dollars: u64,
    /// Tokens of those whose price is not known.
    pub unpriced_tokens: u64,
    /// How many there were, and their tokens.
    pub requests: u32,
    pub tokens: u64,
    /// Calls of tools that were started for their answers.
    pub calls: u32,
}

/// Where a page of usage goes on: behind this row.
pub type SpentAfter = (Millis, GenerationId);

/// Which generations a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GenerationFilter {
    /// Only those of this tree.
    pub tree: Option<TreeId>,
    /// Only those as far as this.
    pub state: Option<GenerationState>,
}
