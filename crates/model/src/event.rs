//! What a parser reports while an answer arrives.
//!
//! The same events come out of every dialect. Deltas carry only what is new; [`crate::Reply`]
//! folds them into whole choices.

use serde::{Deserialize, Serialize};

use crate::encoded::{EncodedRequest, PartKind};
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
    /// The server reads the prompt: so many of its tokens so far.
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

/// Token counts in chunks of a stream. They are those of the answer once it has ended.
#[derive(Debug, Default)]
pub(crate) struct ChunkUsage {
    interim: Option<TokenUsage>,
}

impl ChunkUsage {
    /// The counts of a chunk, behind which the answer has `ended` or goes on.
    pub(crate) const fn count(&mut self, usage: TokenUsage, ended: bool) -> ModelEvent {
        if ended {
            self.interim = None;
            ModelEvent::Usage(usage)
        } else {
            self.interim = Some(usage);
            ModelEvent::InterimUsage(usage)
        }
    }

    /// The last counts of an answer that has ended by now.
    pub(crate) fn end(&mut self) -> Option<ModelEvent> {
        self.interim.take().map(ModelEvent::Usage)
    }
}

/// Tokens a provider may put in front of a conversation by itself: instructions of its own, forms of tools.
const OWN_INPUT_TOKENS: u64 = 16_384;
/// The most tokens of one picture or sound of a request, beyond its bytes.
const MEDIA_TOKENS: u64 = 50_000;

impl TokenUsage {
    /// Input tokens.
    pub fn input(&self) -> u64 {
        self.input_uncached.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether these counts can be those of a request and of this many bytes of its answer: no token is shorter than a
    /// byte, except those of unseen thinking, which the model's limit of output holds for each choice.
    pub fn is_plausible(
        &self,
        request: &EncodedRequest,
        received: usize,
        output_limit: u32,
        choices: u32,
    ) -> bool {
        let media = request.ranges().iter().filter(|range| range.kind == PartKind::Media).count() as u64;
        self.is_plausible_for((request.body().len() as u64, media), received, output_limit, choices)
    }

    /// As [`TokenUsage::is_plausible`], of a request of so many bytes with so many pictures and sounds.
    pub fn is_plausible_for(
        &self,
        (sent, media): (u64, u64),
        received: usize,
        output_limit: u32,
        choices: u32,
    ) -> bool {
        let most_input =
            sent.saturating_add(OWN_INPUT_TOKENS).saturating_add(media.saturating_mul(MEDIA_TOKENS));
        let unseen = u64::from(output_limit).saturating_mul(u64::from(choices.max(1)));
        self.input() <= most_input && self.output <= (received as u64).saturating_add(unseen)
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::dialect::DialectName;
    use crate::encoded::PartRange;
    use crate::prompt::PartId;

    #[test]
    fn counts_are_bounded_by_what_was_sent_and_received() {
        let request = |ranges| {
            let body = Bytes::from(vec![b'x'; 1_000]);
            EncodedRequest::new(DialectName::OpenAiChat, "p", body, ranges, true).unwrap()
        };
        let plausible = |input_uncached, output| {
            let usage = TokenUsage { input_uncached, output, ..TokenUsage::default() };
            usage.is_plausible(&request(Vec::new()), 500, 8_192, 1)
        };
        assert!(plausible(1_000 + OWN_INPUT_TOKENS, 8_692));
        assert!(!plausible(1_001 + OWN_INPUT_TOKENS, 0) && !plausible(0, 8_693));
        assert!(!plausible(u64::MAX, 0) && !plausible(0, u64::MAX));
        let picture = vec![PartRange { part: PartId(0), kind: PartKind::Media, bytes: 0..10 }];
        let seen = TokenUsage { input_uncached: 48_200, cache_write: u64::MAX, ..TokenUsage::default() };
        assert!(!seen.is_plausible(&request(picture.clone()), 0, 0, 1), "the sum does not overflow");
        assert!(TokenUsage { cache_write: 0, ..seen }.is_plausible(&request(picture), 0, 0, 1));
    }
}
