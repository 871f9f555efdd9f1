//! What a parser reports while an answer arrives.
//!
//! The same events come out of every dialect. Deltas carry only what is new; [`crate::Reply`]
//! folds them into whole choices.

use serde::{Deserialize, Serialize};

use crate::prompt::Media;

/// One step of an arriving answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The server began to answer. Comes first and once.
    Start {
        /// The server's id of the response.
        id: Option<String>,
        /// The model as the server names it.
        model: Option<String>,
    },
    /// The server reads the prompt: so many of its tokens so far, more each time.
    PromptRead {
        done: u64,
        total: u64,
    },
    /// New text of a choice.
    Text {
        choice: u32,
        text: String,
    },
    /// New thinking of a choice.
    Thinking {
        choice: u32,
        text: String,
    },
    /// What the provider wants back unchanged when the answer is sent again, where it stood in the answer.
    Opaque {
        choice: u32,
        /// Whether it belongs to the thinking just before it, which it ends; an empty one, if there is none.
        with_thinking: bool,
        json: serde_json::Value,
    },
    /// A picture or a sound the model made.
    Media {
        choice: u32,
        media: Media,
    },
    /// New text of a refusal, which some providers keep apart from the answer.
    Refusal {
        choice: u32,
        text: String,
    },
    /// A tool call begins, or more of its arguments arrived.
    ToolCall {
        choice: u32,
        /// Index of the call in its choice: 0, 1, … in order of appearance.
        index: u32,
        /// Id and name; given once, with the call's first event.
        begin: Option<CallBegin>,
        /// More of the arguments: a fragment of JSON text.
        arguments: String,
    },
    /// Probabilities of the tokens that arrived.
    Logprobs {
        choice: u32,
        /// The tokens, in order.
        tokens: Vec<TokenLogprob>,
    },
    /// Token counts of the whole request. May come more than once; the last one holds.
    Usage(TokenUsage),
    /// Token counts of an answer that goes on: those of its input hold, that of its output is of what came so far, or of
    /// nothing yet.
    InterimUsage(TokenUsage),
    Finish {
        choice: u32,
        reason: FinishReason,
    },
}

/// How a tool call is named. Where a server gives no id, one is derived from the response, so that
/// reading the stored response again gives the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBegin {
    pub id: String,
    pub name: String,
}

/// Why a choice ended. Interruptions are not among these: they are [`crate::ModelError`]s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done, or a stop text was met.
    Stop,
    /// The limit of output or of the window was met.
    Length,
    /// The model waits for results of tools.
    ToolUse,
    /// The provider's filter ended it.
    ContentFilter,
    Refusal,
    /// A reason this version does not know, as the provider wrote it.
    Other(String),
}

/// Token counts of one request, converted in the dialect (spec: context §4).
///
/// Input is the sum of the first three, which do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Input tokens that came from no cache.
    pub input_uncached: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
}

/// Token counts in chunks of a stream. They are those of the answer once the stream has ended: behind each chunk another
/// choice may begin.
#[derive(Debug, Default)]
pub(crate) struct ChunkUsage {
    whole: Option<TokenUsage>,
}

impl ChunkUsage {
    /// The counts of a chunk, and whether one of the output is among them: without it they are never those of the whole.
    pub(crate) const fn count(&mut self, usage: TokenUsage, counts_output: bool) -> ModelEvent {
        self.whole = if counts_output { Some(usage) } else { None };
        ModelEvent::InterimUsage(usage)
    }

    /// The last counts of an answer that has ended by now.
    pub(crate) fn end(&mut self) -> Option<ModelEvent> {
        self.whole.take().map(ModelEvent::Usage)
    }
}

impl TokenUsage {
    /// Input tokens.
    pub fn input(&self) -> u64 {
        self.input_uncached.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

/// A chosen token with its probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// The token as text; U+FFFD stands where its bytes are not text on their own.
    pub token: String,
    /// The token's bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability; `None` where the server gave none.
    pub logprob: Option<f64>,
    /// The likeliest tokens at this place, likeliest first.
    pub top: Vec<TopToken>,
}

/// An alternative at a token's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopToken {
    /// The token as text; U+FFFD stands where its bytes are not text on their own.
    pub token: String,
    /// The token's bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f64,
}

/// Receives events while an answer arrives.
///
/// Called between reads of the socket, so it must not block: a slow listener keeps its own queue.
/// Any `FnMut(Event) + Send` is one.
pub trait EventListener: Send {
    fn event(&mut self, event: ModelEvent);
}

impl<F: FnMut(ModelEvent) + Send> EventListener for F {
    fn event(&mut self, event: ModelEvent) {
        self(event);
    }
}
