//! The JSON of OpenAI's answers, as far as it is read.
//!
//! One shape serves chunks and whole answers, chat and completions: they differ only in which
//! fields are there. Unknown fields are skipped. Text is read as bytes, because a delta may hold
//! half of a character (see [`crate::text_joiner`]).

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::event::TokenUsage;
use crate::token_count::{part_of, token_count, usage_object};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireBody {
    pub(crate) id: Option<String>,
    pub(crate) object: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) choices: Option<Vec<WireChoice>>,
    #[serde(deserialize_with = "usage_object")]
    usage: Option<WireUsage>,
    pub(crate) error: Option<serde_json::Value>,
    #[serde(deserialize_with = "usage_object")]
    pub(crate) prompt_progress: Option<WirePromptProgress>,
    #[serde(deserialize_with = "usage_object")]
    x_groq: Option<WireGroq>,
}

impl WireBody {
    /// The counts of the request, wherever the server puts them; `None` where there are none.
    pub(crate) fn usage(&self) -> Option<WireUsage> {
        let beside = self.x_groq.as_ref().and_then(|groq| groq.usage);
        self.usage.or(beside).filter(|counts| counts.usage().is_some())
    }
}

/// How far llama.cpp has read a prompt, in tokens, those of its cache included.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WirePromptProgress {
    #[serde(deserialize_with = "token_count")]
    pub(crate) processed: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    pub(crate) total: Option<u64>,
}

/// Groq's own part of a chunk, which holds the counts at the end of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireGroq {
    #[serde(deserialize_with = "usage_object")]
    usage: Option<WireUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireChoice {
    pub(crate) index: u32,
    #[serde(alias = "message")]
    pub(crate) delta: Option<WireMessage>,
    pub(crate) text: Option<WireText>,
    pub(crate) logprobs: Option<WireLogprobs>,
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireMessage {
    pub(crate) content: Option<WireText>,
    pub(crate) reasoning_content: Option<WireText>,
    pub(crate) reasoning: Option<WireText>,
    pub(crate) refusal: Option<WireText>,
    pub(crate) tool_calls: Option<Vec<WireCall>>,
    pub(crate) reasoning_details: Option<Vec<serde_json::Value>>,
    pub(crate) images: Option<Vec<WireImage>>,
}

/// A picture the model made.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireImage {
    pub(crate) image_url: WireImageUrl,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireImageUrl {
    pub(crate) url: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireCall {
    pub(crate) index: Option<u32>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<WireFunction>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireFunction {
    pub(crate) name: Option<String>,
    pub(crate) arguments: Option<WireText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireLogprobs {
    pub(crate) content: Option<Vec<WireToken>>,
    pub(crate) refusal: Option<Vec<WireToken>>,
    pub(crate) tokens: Option<Vec<WireText>>,
    pub(crate) token_logprobs: Option<Vec<Option<f64>>>,
    pub(crate) top_logprobs: Option<Vec<Option<WireTop>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireToken {
    pub(crate) token: WireText,
    pub(crate) logprob: Option<f64>,
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) top_logprobs: Option<Vec<WireToken>>,
}

/// An object of token to log-probability, kept as a list: two tokens may be spelled alike.
#[derive(Debug, Default)]
pub(crate) struct WireTop(pub(crate) Vec<(WireText, f64)>);

/// Counts of the request; a chunk may leave out what an earlier one said.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct WireUsage {
    #[serde(deserialize_with = "token_count")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    completion_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
    #[serde(deserialize_with = "usage_object")]
    prompt_tokens_details: Option<WireInputDetails>,
    #[serde(deserialize_with = "usage_object")]
    completion_tokens_details: Option<WireOutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireInputDetails {
    #[serde(deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireOutputDetails {
    #[serde(deserialize_with = "token_count")]
    reasoning_tokens: Option<u64>,
}

impl WireUsage {
    /// What is known after `newer` came.
    pub(crate) fn followed_by(self, newer: Self) -> Self {
        Self {
            prompt_tokens: newer.prompt_tokens.or(self.prompt_tokens),
            completion_tokens: newer.completion_tokens.or(self.completion_tokens),
            prompt_cache_hit_tokens: newer.prompt_cache_hit_tokens.or(self.prompt_cache_hit_tokens),
            cached_tokens: newer.cached_tokens.or(self.cached_tokens),
            prompt_tokens_details: newer.prompt_tokens_details.or(self.prompt_tokens_details),
            completion_tokens_details: newer.completion_tokens_details.or(self.completion_tokens_details),
        }
    }

    pub(crate) const fn counts_output(&self) -> bool {
        self.completion_tokens.is_some()
    }

    /// The counts in our terms; `None` where the object holds none.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        if self.prompt_tokens.is_none() && self.completion_tokens.is_none() {
            return None;
        }
        let input = self.prompt_tokens.unwrap_or(0);
        let details = self.prompt_tokens_details;
        let cached = details.and_then(|details| details.cached_tokens);
        let cached = part_of(input, cached.or(self.prompt_cache_hit_tokens).or(self.cached_tokens));
        let written = part_of(input - cached, details.and_then(|details| details.cache_write_tokens));
        let reasoning = self.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        let output = self.completion_tokens.unwrap_or(0);
        Some(TokenUsage {
            input_uncached: input - cached - written,
            cache_read: cached,
            cache_write: written,
            output,
            reasoning: part_of(output, reasoning),
        })
    }
}

/// The bytes of a JSON string: UTF-8, WTF-8 for lone surrogates, or a piece of either.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireText(pub(crate) Vec<u8>);

impl<'de> Deserialize<'de> for WireText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = WireText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<WireText, E> {
        Ok(WireText(bytes.to_vec()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WireText, E> {
        self.visit_bytes(text.as_bytes())
    }
}

impl<'de> Deserialize<'de> for WireTop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TopVisitor)
    }
}

struct TopVisitor;

impl<'de> Visitor<'de> for TopVisitor {
    type Value = WireTop;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of log-probabilities")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireTop, A::Error> {
        let mut top = Vec::new();
        while let Some(entry) = map.next_entry()? {
            top.push(entry);
        }
        Ok(WireTop(top))
    }
}

/// Reads a body. Some servers give tool arguments as an object instead of its text, and Mistral a
/// message's content as a list of parts, thinking among them: such bodies are read a second time with both as text.
pub(crate) fn read(json: &[u8]) -> Result<WireBody, serde_json::Error> {
    let error = match serde_json::from_slice(json) {
        Ok(body) => return Ok(body),
        Err(error) => error,
    };
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(json) else { return Err(error) };
    for choice in value.get_mut("choices").and_then(|c| c.as_array_mut()).into_iter().flatten() {
        for message in ["delta", "message"] {
            if let Some(message) = choice.get_mut(message) {
                plain_texts(message);
            }
        }
    }
    serde_json::from_value(value).map_err(|_| error)
}

fn plain_texts(message: &mut serde_json::Value) {
    if let Some(content) = message.get_mut("content")
        && let Some(parts) = content.as_array()
    {
        let text: String = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
        let thought: String = parts.iter().filter_map(|part| part.get("thinking")).map(words).collect();
        *content = text.into();
        if let Some(message) = message.as_object_mut().filter(|_| !thought.is_empty()) {
            message.insert("reasoning".to_owned(), thought.into());
        }
    }
    for call in message.get_mut("tool_calls").and_then(|c| c.as_array_mut()).into_iter().flatten() {
        if let Some(arguments) = call.pointer_mut("/function/arguments")
            && arguments.is_object()
        {
            *arguments = arguments.to_string().into();
        }
    }
}

/// The text of a string or of a list of parts.
fn words(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}
