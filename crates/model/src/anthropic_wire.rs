//! The JSON of messages answers, as far as it is read.
//!
//! A whole answer and the events of a stream share their pieces. Unknown fields are skipped, and everything may
//! be missing or null: servers of others speak this dialect with fewer words. Text is read as bytes, because a
//! delta may hold half of a character (see [`crate::text_joiner`]).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::event::TokenUsage;
use crate::openai_wire::WireText;
use crate::token_count::{part_of, token_count, usage_object};

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireEvent {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) index: Option<u32>,
    pub(crate) message: Option<WireMessage>,
    pub(crate) content_block: Option<WireBlock>,
    pub(crate) delta: Option<WireDelta>,
    #[serde(deserialize_with = "usage_object")]
    pub(crate) usage: Option<WireUsage>,
    pub(crate) error: Option<Value>,
}

/// What an event says of itself, read when the rest of it cannot be.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireKind {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
}

/// A whole answer, or its head at the beginning of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireMessage {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) content: Option<Vec<WireBlock>>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) stop_details: Option<WireStopDetails>,
    #[serde(deserialize_with = "usage_object")]
    pub(crate) usage: Option<WireUsage>,
    pub(crate) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireBlock {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) text: Option<WireText>,
    pub(crate) thinking: Option<WireText>,
    pub(crate) signature: Option<String>,
    pub(crate) input: Option<Value>,
}

/// More of a block, or of the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireDelta {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) text: Option<WireText>,
    pub(crate) thinking: Option<WireText>,
    pub(crate) signature: Option<String>,
    pub(crate) partial_json: Option<WireText>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) stop_details: Option<WireStopDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireStopDetails {
    pub(crate) explanation: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct WireUsage {
    #[serde(deserialize_with = "token_count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "usage_object")]
    cache_creation: Option<WireCacheCreation>,
    #[serde(deserialize_with = "usage_object")]
    output_tokens_details: Option<WireOutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireCacheCreation {
    #[serde(deserialize_with = "token_count")]
    ephemeral_5m_input_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireOutputDetails {
    #[serde(deserialize_with = "token_count")]
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    /// Takes in later counts. They are cumulative; some servers leave out or zero what they said before.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.input_tokens = self.input_tokens.max(later.input_tokens);
        self.output_tokens = self.output_tokens.max(later.output_tokens);
        self.cache_creation_input_tokens = self.written().max(later.written());
        self.cache_read_input_tokens = self.cache_read_input_tokens.max(later.cache_read_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    pub(crate) const fn counts_output(&self) -> bool {
        self.output_tokens.is_some()
    }

    /// The counts in our terms; `None` where the object holds none. The dialect's counts of input do not overlap.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        if self.input_tokens.is_none() && self.output_tokens.is_none() {
            return None;
        }
        let output = self.output_tokens.unwrap_or(0);
        let reasoning = self.output_tokens_details.and_then(|details| details.thinking_tokens);
        Some(TokenUsage {
            input_uncached: self.input_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.written().unwrap_or(0),
            output,
            reasoning: part_of(output, reasoning),
        })
    }

    fn written(&self) -> Option<u64> {
        let by_age = self.cache_creation.and_then(|created| {
            let ages = [created.ephemeral_5m_input_tokens, created.ephemeral_1h_input_tokens];
            ages.into_iter().flatten().reduce(u64::saturating_add)
        });
        self.cache_creation_input_tokens.or(by_age)
    }
}

/// Reads an event or a whole answer. Blocks and deltas of kinds this version does not know may give its names
/// another meaning: such a body is read a second time with their kinds alone.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let error = match serde_json::from_slice(json) {
        Ok(body) => return Ok(body),
        Err(error) => error,
    };
    let Ok(mut value) = serde_json::from_slice::<Value>(json) else { return Err(error) };
    for name in ["content_block", "delta"] {
        value.get_mut(name).into_iter().for_each(reduce);
    }
    value.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten().for_each(reduce);
    serde_json::from_value(value).map_err(|_| error)
}

fn reduce(piece: &mut Value) {
    const KNOWN: &[&str] = &[
        "text",
        "thinking",
        "tool_use",
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
    ];
    let Some(fields) = piece.as_object_mut() else { return };
    let unknown = fields.get("type").and_then(Value::as_str).is_some_and(|kind| !KNOWN.contains(&kind));
    if unknown {
        fields.retain(|name, _| name == "type");
    }
}
