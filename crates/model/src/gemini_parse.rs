//! Reads Gemini's answers, streamed or whole.
//!
//! Nothing marks the end of a stream: it is complete when the body ends and every candidate has said why it
//! stopped. Earlier servers say so in every chunk, so the last reason holds, and a choice ends with the body.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use crate::body_reader;
use crate::dialect::{DialectName, Parse, ParseError};
use crate::event::{CallBegin, ChunkUsage, FinishReason, ModelEvent, TokenUsage};
use crate::gemini_error;
use crate::gemini_wire::{WireBlob, WireBody, WireCall, WireCandidate, WireLogprobs, WirePart, WireUsage};
use crate::openai_wire::WireText;
use crate::prompt::Media;
use crate::server_text::excerpt;
use crate::text_joiner::TextJoiner;

/// The longest failure that is read from lines of a stream that are no events, in bytes.
const MAX_PLAIN_BYTES: usize = 16 * 1024;

/// A parser for one answer.
pub(crate) fn parser(streamed: bool) -> Box<dyn Parse> {
    body_reader::parser(Answer::default(), streamed)
}

fn garbage(bytes: &[u8]) -> ParseError {
    ParseError::Garbage { dialect: DialectName::Gemini, why: format!("`{}`", excerpt(bytes)) }
}

/// What has been read of an answer.
#[derive(Default)]
struct Answer {
    started: bool,
    response: String,
    /// The prompt was refused: there will be no candidates.
    blocked: bool,
    counts: WireUsage,
    usage: Option<TokenUsage>,
    chunk_usage: ChunkUsage,
    choices: BTreeMap<u32, ChoiceState>,
    /// Lines that are no events: a failure in the middle of a stream may be written plainly, over several.
    plain: Vec<u8>,
}

#[derive(Default)]
struct ChoiceState {
    text: TextJoiner,
    thinking: TextJoiner,
    calls: u32,
    reason: Option<String>,
}

impl Answer {
    /// Takes one chunk, or the whole body.
    fn json(&mut self, json: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        // A struct may be written as a list for serde; here a list is at most a failure in its wrapping.
        if !json.starts_with(b"{") {
            let value = serde_json::from_slice::<Value>(json).unwrap_or_default();
            return Err(gemini_error::reported(&value).map_or_else(|| garbage(json), ParseError::Server));
        }
        let body: WireBody = serde_json::from_slice(json).map_err(|_| garbage(json))?;
        if let Some(failure) = body.error.as_ref().and_then(gemini_error::from_error) {
            return Err(ParseError::Server(failure));
        }
        let WireBody { response_id, model_version, candidates, prompt_feedback, usage_metadata, .. } = body;
        if candidates.is_none() && prompt_feedback.is_none() && usage_metadata.is_none() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.started, true) {
            self.response = response_id.clone().unwrap_or_default();
            events.push(ModelEvent::Start { id: response_id, model: model_version });
        }
        self.blocked |= prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some());
        for candidate in candidates.unwrap_or_default() {
            self.candidate(candidate, events).map_err(|NoMedia| garbage(json))?;
        }
        self.counts = self.counts.followed_by(usage_metadata.unwrap_or_default());
        let usage = self.counts.usage();
        if usage != self.usage {
            self.usage = usage;
            // It leaves out a count of 0.
            events.extend(usage.map(|usage| self.chunk_usage.count(usage, true)));
        }
        Ok(())
    }

    /// Whether the prompt was refused, or every candidate that has begun has said why it stopped.
    fn has_ended(&self) -> bool {
        let complete = !self.choices.is_empty() && self.choices.values().all(|state| state.reason.is_some());
        complete || self.is_refused()
    }

    fn is_refused(&self) -> bool {
        self.blocked && self.choices.is_empty()
    }

    fn candidate(&mut self, wire: WireCandidate, events: &mut Vec<ModelEvent>) -> Result<(), NoMedia> {
        let choice = wire.index.unwrap_or(0);
        let state = self.choices.entry(choice).or_default();
        for part in wire.content.and_then(|content| content.parts).unwrap_or_default() {
            state.part(part, choice, &self.response, events)?;
        }
        let tokens = wire.logprobs_result.map(WireLogprobs::tokens).unwrap_or_default();
        if !tokens.is_empty() {
            events.push(ModelEvent::Logprobs { choice, tokens });
        }
        let reason =
            wire.finish_reason.filter(|name| !name.is_empty() && name != "FINISH_REASON_UNSPECIFIED");
        state.reason = reason.or(state.reason.take());
        Ok(())
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if self.is_refused() {
            events.push(ModelEvent::Finish { choice: 0, reason: FinishReason::ContentFilter });
        }
        for (&choice, state) in &self.choices {
            events.extend(state.finish().map(|reason| ModelEvent::Finish { choice, reason }));
        }
        if !self.has_ended() {
            return Err(ParseError::Cut);
        }
        events.extend(self.chunk_usage.end());
        Ok(())
    }
}

impl body_reader::Answer for Answer {
    fn event(&mut self, data: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if self.plain.is_empty() { self.json(data, events) } else { Err(garbage(&self.plain)) }
    }

    fn stray(&mut self, line: &[u8]) -> Result<(), ParseError> {
        self.plain.extend_from_slice(line);
        self.plain.push(b'\n');
        let text = self.plain.trim_ascii();
        let begins = text.starts_with(b"{") || text.starts_with(b"[");
        if !begins || text.len() > MAX_PLAIN_BYTES {
            return Err(garbage(line));
        }
        // Read only where it may have ended, so that many lines cost no more than few.
        if !text.ends_with(b"}") && !text.ends_with(b"]") {
            return Ok(());
        }
        match serde_json::from_slice::<Value>(text) {
            Ok(value) => {
                Err(gemini_error::reported(&value).map_or_else(|| garbage(text), ParseError::Server))
            }
            Err(error) if error.is_eof() => Ok(()),
            Err(_) => Err(garbage(text)),
        }
    }

    fn ended(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if self.plain.is_empty() { self.end(events) } else { Err(ParseError::Cut) }
    }

    fn whole(&mut self, body: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        self.json(body, events)?;
        if self.started { self.end(events) } else { Err(garbage(body)) }
    }

    /// Nothing in a stream says it.
    fn is_complete(&self) -> bool {
        false
    }

    fn garbage(&self, bytes: &[u8]) -> ParseError {
        garbage(bytes)
    }
}

/// What should be a picture is no base64.
struct NoMedia;

impl ChoiceState {
    fn part(
        &mut self,
        part: WirePart,
        choice: u32,
        response: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), NoMedia> {
        let WirePart { text, thought, signature, call, inline_data, mut other } = part;
        let opaque = |with_thinking, json| ModelEvent::Opaque { choice, with_thinking, json };
        let signed = signature.as_ref().map(|signature| json!({"thoughtSignature": signature}));
        if thought {
            let text = self.thinking.push(&text.unwrap_or_default().0);
            if !text.is_empty() {
                events.push(ModelEvent::Thinking { choice, text });
            }
            events.extend(signed.map(|json| opaque(true, json)));
        } else if let Some(call) = call {
            events.extend(signed.map(|json| opaque(false, json)));
            events.push(self.call(call, choice, response));
        } else if let Some(blob) = inline_data {
            let media = media(blob)?;
            events.extend(signed.map(|json| opaque(false, json)));
            events.push(ModelEvent::Media { choice, media });
        } else if text.is_none() && !other.is_empty() {
            // Code the provider ran, what it gave, and whatever comes later.
            other
                .extend(signature.map(|signature| ("thoughtSignature".to_owned(), Value::String(signature))));
            events.push(opaque(false, Value::Object(other)));
        } else {
            self.said(&text.unwrap_or_default(), signature, choice, events);
        }
        Ok(())
    }

    fn said(
        &mut self,
        text: &WireText,
        signature: Option<String>,
        choice: u32,
        events: &mut Vec<ModelEvent>,
    ) {
        let text = self.text.push(&text.0);
        if let Some(signature) = signature {
            let mut json = Map::new();
            // A signature of nothing is a part of its own, and not that of the part behind it.
            if text.is_empty() {
                json.insert("text".to_owned(), Value::String(String::new()));
            }
            json.insert("thoughtSignature".to_owned(), Value::String(signature));
            events.push(ModelEvent::Opaque { choice, with_thinking: false, json: Value::Object(json) });
        }
        if !text.is_empty() {
            events.push(ModelEvent::Text { choice, text });
        }
    }

    /// Calls come whole. One without an id gets one that reading the response again gives too.
    fn call(&mut self, wire: WireCall, choice: u32, response: &str) -> ModelEvent {
        let index = self.calls;
        self.calls = self.calls.saturating_add(1);
        let id = wire.id.filter(|id| !id.is_empty()).unwrap_or_else(|| match response {
            "" => format!("call_{choice}_{index}"),
            response => format!("call_{response}_{choice}_{index}"),
        });
        let begin = Some(CallBegin { id, name: wire.name.unwrap_or_default() });
        let arguments = Value::Object(wire.args.unwrap_or_default()).to_string();
        ModelEvent::ToolCall { choice, index, begin, arguments }
    }

    fn finish(&self) -> Option<FinishReason> {
        Some(match self.reason.as_deref()? {
            // Gateways say of a call what it is, the provider itself only that it stopped.
            "STOP" | "FUNCTION_CALL" | "TOOL_CALL" if self.calls > 0 => FinishReason::ToolUse,
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => FinishReason::ContentFilter,
            other => FinishReason::Other(excerpt(other.as_bytes())),
        })
    }
}

fn media(blob: WireBlob) -> Result<Media, NoMedia> {
    let data = BASE64.decode(blob.data.unwrap_or_default().as_bytes()).map_err(|_| NoMedia)?;
    Ok(Media { mime: blob.mime_type.unwrap_or_default(), data: data.into() })
}
