//! The JSON of responses, as far as it is read.
//!
//! Which fields an event has is said by its `type`, so that is read first: events of unknown types may hold anything
//! under the same names. Text is read as bytes, as in [`crate::openai_wire`].

use serde::Deserialize;
use serde_json::Value;

use crate::event::TokenUsage;
use crate::openai_wire::{WireText, WireToken};
use crate::token_count::{part_of, token_count, usage_object};

/// The type of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireType {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
}

/// An event of a known type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireEvent {
    pub(crate) output_index: Option<u64>,
    pub(crate) item_id: Option<String>,
    pub(crate) content_index: Option<u64>,
    pub(crate) summary_index: Option<u64>,
    pub(crate) delta: Option<WireText>,
    pub(crate) text: Option<WireText>,
    pub(crate) refusal: Option<WireText>,
    pub(crate) arguments: Option<WireText>,
    pub(crate) logprobs: Option<Vec<WireToken>>,
    pub(crate) item: Option<WireItem>,
    pub(crate) response: Option<WireResponse>,
}

/// The response itself: in the events of its beginning and end, and as a whole body.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireResponse {
    pub(crate) id: Option<String>,
    pub(crate) object: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) incomplete_details: Option<WireDetails>,
    pub(crate) error: Option<Value>,
    pub(crate) output: Option<Vec<WireItem>>,
    #[serde(deserialize_with = "usage_object")]
    pub(crate) usage: Option<WireUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireDetails {
    pub(crate) reason: Option<String>,
}

/// One item of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireItem {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) arguments: Option<WireText>,
    pub(crate) content: Option<Vec<WirePart>>,
    pub(crate) summary: Option<Vec<WirePart>>,
    pub(crate) result: Option<String>,
    pub(crate) output_format: Option<String>,
}

/// One part of a message, or of thinking.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WirePart {
    pub(crate) text: Option<WireText>,
    pub(crate) refusal: Option<WireText>,
    pub(crate) logprobs: Option<Vec<WireToken>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireUsage {
    #[serde(deserialize_with = "token_count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "usage_object")]
    input_tokens_details: Option<WireInputDetails>,
    #[serde(deserialize_with = "usage_object")]
    output_tokens_details: Option<WireOutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireInputDetails {
    #[serde(deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireOutputDetails {
    #[serde(deserialize_with = "token_count")]
    reasoning_tokens: Option<u64>,
}

impl WireUsage {
    pub(crate) const fn counts_output(&self) -> bool {
        self.output_tokens.is_some()
    }

    /// The counts in our terms; `None` where the object holds none.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        if self.input_tokens.is_none() && self.output_tokens.is_none() {
            return None;
        }
        let input = self.input_tokens.unwrap_or(0);
        let cached = self.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let cached = part_of(input, cached);
        let reasoning = self.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        let output = self.output_tokens.unwrap_or(0);
        Some(TokenUsage {
            input_uncached: input - cached,
            cache_read: cached,
            cache_write: 0,
            output,
            reasoning: part_of(output, reasoning),
        })
    }
}

/// Reads an event or a response. Items of unknown types may hold anything, and some servers give arguments as an
/// object instead of its text: what is no event at first sight is read a second time without either.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(json: &[u8]) -> Result<T, serde_json::Error> {
    let error = match serde_json::from_slice(json) {
        Ok(event) => return Ok(event),
        Err(error) => error,
    };
    let Ok(mut value) = serde_json::from_slice::<Value>(json) else { return Err(error) };
    arguments_as_text(&mut value);
    for path in ["/output", "/response/output"] {
        value.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten().for_each(plain);
    }
    value.get_mut("item").into_iter().for_each(plain);
    serde_json::from_value(value).map_err(|_| error)
}

fn plain(item: &mut Value) {
    match item.get("type").and_then(Value::as_str) {
        Some("message" | "reasoning" | "image_generation_call") => {}
        Some("function_call") => arguments_as_text(item),
        _ => *item = Value::Object(serde_json::Map::new()),
    }
}

fn arguments_as_text(holder: &mut Value) {
    if let Some(arguments) = holder.get_mut("arguments")
        && arguments.is_object()
    {
        *arguments = arguments.to_string().into();
    }
}
