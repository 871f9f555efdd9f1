//! The JSON of Gemini's answers, as far as it is read.
//!
//! A chunk of a stream and a whole answer have one shape. Unknown fields are skipped; a part of an unknown kind
//! is kept as it is, because the server may want it back.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::event::{TokenLogprob, TokenUsage, TopToken};
use crate::openai_wire::WireText;
use crate::token_count::{part_of, token_count, usage_object};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireBody {
    pub(crate) response_id: Option<String>,
    pub(crate) model_version: Option<String>,
    pub(crate) candidates: Option<Vec<WireCandidate>>,
    pub(crate) prompt_feedback: Option<WireFeedback>,
    #[serde(deserialize_with = "usage_object")]
    pub(crate) usage_metadata: Option<WireUsage>,
    pub(crate) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireFeedback {
    pub(crate) block_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireCandidate {
    /// The first candidate's 0 may be left out.
    pub(crate) index: Option<u32>,
    pub(crate) content: Option<WireContent>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) logprobs_result: Option<WireLogprobs>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireContent {
    pub(crate) parts: Option<Vec<WirePart>>,
}

/// A part, read by hand: `serde(flatten)` would read texts into strings first, which halves of characters are
/// none of.
#[derive(Debug, Default)]
pub(crate) struct WirePart {
    pub(crate) text: Option<WireText>,
    pub(crate) thought: bool,
    pub(crate) signature: Option<String>,
    pub(crate) call: Option<WireCall>,
    pub(crate) inline_data: Option<WireBlob>,
    pub(crate) other: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireCall {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) args: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireBlob {
    pub(crate) mime_type: Option<String>,
    pub(crate) data: Option<String>,
}

/// Counts so far: each chunk brings them again, and an early one may lack some.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireUsage {
    #[serde(deserialize_with = "token_count")]
    prompt_token_count: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    cached_content_token_count: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    candidates_token_count: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    thoughts_token_count: Option<u64>,
    #[serde(deserialize_with = "token_count")]
    tool_use_prompt_token_count: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireLogprobs {
    top_candidates: Option<Vec<WireTop>>,
    chosen_candidates: Option<Vec<WireToken>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireTop {
    candidates: Option<Vec<WireToken>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireToken {
    token: WireText,
    log_probability: Option<f64>,
}

impl WireUsage {
    /// What is known after `newer` came.
    pub(crate) fn followed_by(self, newer: Self) -> Self {
        Self {
            prompt_token_count: newer.prompt_token_count.or(self.prompt_token_count),
            cached_content_token_count: newer.cached_content_token_count.or(self.cached_content_token_count),
            candidates_token_count: newer.candidates_token_count.or(self.candidates_token_count),
            thoughts_token_count: newer.thoughts_token_count.or(self.thoughts_token_count),
            tool_use_prompt_token_count: newer
                .tool_use_prompt_token_count
                .or(self.tool_use_prompt_token_count),
        }
    }

    /// The counts in our terms; `None` where there are none. The prompt's count includes what came from the
    /// cache, that of the candidates does not include their thoughts.
    pub(crate) fn usage(self) -> Option<TokenUsage> {
        if self.prompt_token_count.is_none() && self.candidates_token_count.is_none() {
            return None;
        }
        let prompt = self.prompt_token_count.unwrap_or(0);
        let cached = part_of(prompt, self.cached_content_token_count);
        let reasoning = self.thoughts_token_count.unwrap_or(0);
        Some(TokenUsage {
            input_uncached: (prompt - cached).saturating_add(self.tool_use_prompt_token_count.unwrap_or(0)),
            cache_read: cached,
            cache_write: 0,
            output: self.candidates_token_count.unwrap_or(0).saturating_add(reasoning),
            reasoning,
        })
    }
}

impl WireLogprobs {
    /// The tokens of one chunk.
    pub(crate) fn tokens(self) -> Vec<TokenLogprob> {
        let mut tops = self.top_candidates.unwrap_or_default().into_iter();
        let chosen = self.chosen_candidates.unwrap_or_default().into_iter().map(|wire| {
            let top = tops.next().and_then(|top| top.candidates).unwrap_or_default().into_iter();
            let top = top.filter_map(|wire| {
                let logprob = wire.log_probability?;
                let (token, bytes) = wire.spelled();
                Some(TopToken { token, bytes, logprob })
            });
            let mut top: Vec<TopToken> = top.collect();
            top.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));
            let logprob = wire.log_probability;
            let (token, bytes) = wire.spelled();
            TokenLogprob { token, bytes, logprob, top }
        });
        chosen.collect()
    }
}

impl WireToken {
    fn spelled(self) -> (String, Vec<u8>) {
        (String::from_utf8_lossy(&self.token.0).into_owned(), self.token.0)
    }
}

impl<'de> Deserialize<'de> for WirePart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = WirePart;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WirePart, A::Error> {
        let mut part = WirePart::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "text" => part.text = map.next_value()?,
                "thought" => part.thought = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "thoughtSignature" => part.signature = map.next_value()?,
                "functionCall" => part.call = map.next_value()?,
                "inlineData" => part.inline_data = map.next_value()?,
                _ => {
                    let value = map.next_value()?;
                    part.other.insert(name, value);
                }
            }
        }
        part.signature = part.signature.filter(|signature| !signature.is_empty());
        Ok(part)
    }
}
