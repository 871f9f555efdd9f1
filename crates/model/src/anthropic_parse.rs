//! Reads messages answers, streamed or whole.

use crate::anthropic_blocks::Blocks;
use crate::anthropic_wire::{WireEvent, WireKind, WireMessage, WireStopDetails, WireUsage};
use crate::body_reader;
use crate::dialect::{DialectName, Parse, ParseError};
use crate::event::{FinishReason, ModelEvent};
use crate::server_text::excerpt;
use crate::{anthropic_error, anthropic_wire};

/// A parser for one answer.
pub(crate) fn parser(streamed: bool) -> Box<dyn Parse> {
    body_reader::parser(Answer::default(), streamed)
}

/// What has been read of an answer.
#[derive(Default)]
struct Answer {
    started: bool,
    response: String,
    blocks: Blocks,
    usage: WireUsage,
    finished: bool,
    /// The answer said that it is complete.
    done: bool,
}

impl Answer {
    fn json(&mut self, json: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        let wire = match anthropic_wire::read::<WireEvent>(json) {
            Ok(wire) => wire,
            Err(_) if is_unknown(json) => return Ok(()),
            Err(_) => return Err(garbage(json)),
        };
        if let Some(error) = failure(wire.error.is_some() || wire.kind.as_deref() == Some("error"), json) {
            return Err(error);
        }
        let index = wire.index.unwrap_or(0);
        match wire.kind.as_deref() {
            Some("message_start") => self.start(wire.message.unwrap_or_default(), events),
            Some("content_block_start") => {
                self.start(WireMessage::default(), events);
                let raw =
                    || serde_json::from_slice::<serde_json::Value>(json).ok()?.get("content_block").cloned();
                let block = wire.content_block.unwrap_or_default();
                self.blocks.begin(index, block, raw, &self.response, events);
            }
            Some("content_block_delta") => {
                self.start(WireMessage::default(), events);
                self.blocks.delta(index, &wire.delta.unwrap_or_default(), events);
            }
            Some("content_block_stop") => self.blocks.end(index, events),
            Some("message_delta") => {
                self.start(WireMessage::default(), events);
                let delta = wire.delta.unwrap_or_default();
                if let Some(reason) = delta.stop_reason.filter(|reason| !reason.is_empty()) {
                    self.finish(&reason, delta.stop_details, events);
                }
                if let Some(usage) = wire.usage {
                    self.count(&usage, events);
                }
            }
            Some("message_stop") => {
                self.close(events);
                self.done = self.started;
                return Ok(());
            }
            Some(_) => {}
            None => return Err(garbage(json)),
        }
        Ok(())
    }

    fn message(
        &mut self,
        wire: WireMessage,
        json: &[u8],
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ParseError> {
        let WireMessage { id, model, content, stop_reason, stop_details, usage, error } = wire;
        if let Some(error) = failure(error.is_some(), json) {
            return Err(error);
        }
        let Some(content) = content else { return Err(garbage(json)) };
        self.start(WireMessage { id, model, ..WireMessage::default() }, events);
        for (at, block) in content.into_iter().enumerate() {
            let raw = || {
                let value = serde_json::from_slice::<serde_json::Value>(json).ok()?;
                value.get("content")?.get(at).cloned()
            };
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            self.blocks.begin(index, block, raw, &self.response, events);
            self.blocks.end(index, events);
        }
        self.finish(stop_reason.as_deref().unwrap_or("end_turn"), stop_details, events);
        if let Some(usage) = usage {
            self.count(&usage, events);
        }
        Ok(())
    }

    fn start(&mut self, message: WireMessage, events: &mut Vec<ModelEvent>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let WireMessage { id, model, usage, .. } = message;
        self.response = id.clone().unwrap_or_default();
        events.push(ModelEvent::Start { id, model });
        if let Some(usage) = usage {
            self.usage.merge(&usage);
            // The output has only begun: the count of it that a stream opens with is that of no answer.
            events.extend(self.usage.usage().map(ModelEvent::InterimUsage));
        }
    }

    fn count(&mut self, usage: &WireUsage, events: &mut Vec<ModelEvent>) {
        self.usage.merge(usage);
        let event = if usage.counts_output() { ModelEvent::Usage } else { ModelEvent::InterimUsage };
        events.extend(self.usage.usage().map(event));
    }

    fn finish(&mut self, reason: &str, details: Option<WireStopDetails>, events: &mut Vec<ModelEvent>) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.blocks.end_all(events);
        let reason = match reason {
            "end_turn" | "tool_use" if self.blocks.any_calls() => FinishReason::ToolUse,
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolUse,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::Refusal,
            other => FinishReason::Other(excerpt(other.as_bytes())),
        };
        let explanation = details.and_then(|details| details.explanation);
        if let Some(text) = explanation.filter(|text| !text.is_empty()) {
            events.push(ModelEvent::Refusal { choice: 0, text });
        }
        events.push(ModelEvent::Finish { choice: 0, reason });
    }

    /// The answer says that it is complete.
    fn close(&mut self, events: &mut Vec<ModelEvent>) {
        if self.started {
            self.finish("end_turn", None, events);
        }
    }
}

impl body_reader::Answer for Answer {
    fn event(&mut self, data: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        // Gateways that speak several dialects end their streams so.
        if data == b"[DONE]" {
            self.done = self.started;
            self.close(events);
            return Ok(());
        }
        self.json(data, events)
    }

    /// A server's failure written plainly, or garbage.
    fn stray(&mut self, line: &[u8]) -> Result<(), ParseError> {
        let value = serde_json::from_slice::<serde_json::Value>(line).ok();
        let reported = value.is_some_and(|value| value.get("error").is_some_and(|error| !error.is_null()));
        Err(failure(reported, line).unwrap_or_else(|| garbage(line)))
    }

    fn ended(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if self.finished { Ok(()) } else { Err(ParseError::Cut) }
    }

    fn whole(&mut self, body: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        let message = anthropic_wire::read::<WireMessage>(body).map_err(|_| garbage(body))?;
        self.message(message, body, events)
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn garbage(&self, bytes: &[u8]) -> ParseError {
        garbage(bytes)
    }
}

/// Whether an event is of a kind this version does not read, so that its fields may be anything.
fn is_unknown(json: &[u8]) -> bool {
    let kind = serde_json::from_slice::<WireKind>(json).ok().and_then(|wire| wire.kind);
    kind.is_some_and(|kind| {
        !matches!(
            kind.as_str(),
            "message_start"
                | "content_block_start"
                | "content_block_delta"
                | "content_block_stop"
                | "message_delta"
                | "message_stop"
                | "error"
        )
    })
}

/// The failure a body reports.
fn failure(reported: bool, json: &[u8]) -> Option<ParseError> {
    let value = reported.then(|| serde_json::from_slice(json).ok()).flatten()?;
    Some(ParseError::Server(anthropic_error::from_value(&value)))
}

fn garbage(bytes: &[u8]) -> ParseError {
    let why = format!("`{}`", excerpt(bytes));
    ParseError::Garbage { dialect: DialectName::AnthropicMessages, why }
}
