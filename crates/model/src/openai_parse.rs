//! Reads OpenAI answers, streamed or whole, chat or completions.

use std::collections::BTreeMap;

use crate::body_reader;
use crate::dialect::{DialectName, Parse, ParseError};
use crate::event::{ChunkUsage, FinishReason, ModelEvent};
use crate::openai_calls::Calls;
use crate::openai_thinking::ThinkingRun;
use crate::openai_wire::{WireBody, WireChoice, WirePromptProgress, WireText, WireUsage};
use crate::server_text::excerpt;
use crate::text_joiner::TextJoiner;
use crate::{openai_error, openai_logprobs, openai_media, openai_thinking, openai_wire};

/// A parser for one answer.
pub(crate) fn parser(dialect: DialectName, streamed: bool) -> Box<dyn Parse> {
    body_reader::parser(Answer::new(dialect), streamed)
}

/// What has been read of an answer.
struct Answer {
    dialect: DialectName,
    response: String,
    started: bool,
    /// The stream said that it is done.
    done: bool,
    /// Tokens of the prompt that the server has read, the most it said.
    prompt_read: Option<u64>,
    choices: BTreeMap<u32, ChoiceState>,
    counts: WireUsage,
    usage: ChunkUsage,
}

#[derive(Default)]
struct ChoiceState {
    text: TextJoiner,
    thinking: TextJoiner,
    run: ThinkingRun,
    refusal: TextJoiner,
    refused: bool,
    calls: Calls,
    finished: bool,
}

impl Answer {
    fn new(dialect: DialectName) -> Self {
        Self {
            dialect,
            response: String::new(),
            started: false,
            done: false,
            prompt_read: None,
            choices: BTreeMap::new(),
            counts: WireUsage::default(),
            usage: ChunkUsage::default(),
        }
    }

    /// Takes one chunk, or the whole body.
    fn json(&mut self, json: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        let body = openai_wire::read(json).map_err(|_| body_reader::Answer::garbage(self, json))?;
        self.failure(&body, json)?;
        let usage = body.usage();
        let WireBody { id, model, choices, prompt_progress, .. } = body;
        events.extend(prompt_progress.and_then(|at| self.prompt_read(&at)));
        if choices.is_none() && usage.is_none() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.started, true) {
            self.response = id.clone().unwrap_or_default();
            events.push(ModelEvent::Start { id, model });
        }
        for choice in choices.unwrap_or_default() {
            self.choice(choice, events);
        }
        if let Some(newer) = usage {
            self.counts = self.counts.followed_by(newer);
            let counts_output = self.counts.counts_output();
            events.extend(self.counts.usage().map(|usage| self.usage.count(usage, counts_output)));
        }
        Ok(())
    }

    /// How much of the prompt the server has read, if that is more than ever before and no more than all of it.
    fn prompt_read(&mut self, at: &WirePromptProgress) -> Option<ModelEvent> {
        let (done, total) = (at.processed?, at.total?);
        let goes_on = self.prompt_read.is_none_or(|before| done > before);
        // What is no count is the largest there is.
        if !goes_on || done > total || total == u64::MAX {
            return None;
        }
        self.prompt_read = Some(done);
        Some(ModelEvent::PromptRead { done, total })
    }

    /// Whether every choice that has begun has said why it stopped.
    fn has_ended(&self) -> bool {
        !self.choices.is_empty() && self.choices.values().all(|choice| choice.finished)
    }

    fn failure(&self, body: &WireBody, json: &[u8]) -> Result<(), ParseError> {
        if let Some(error) = &body.error {
            return Err(ParseError::Server(openai_error::from_value(error)));
        }
        if body.object.as_deref() == Some("error")
            && let Ok(value) = serde_json::from_slice(json)
        {
            return Err(ParseError::Server(openai_error::from_value(&value)));
        }
        Ok(())
    }

    fn choice(&mut self, wire: WireChoice, events: &mut Vec<ModelEvent>) {
        let choice = wire.index;
        let state = self.choices.entry(choice).or_default();
        let message = wire.delta.unwrap_or_default();
        let filled = |text: &Option<WireText>| text.as_ref().is_some_and(|text| !text.0.is_empty());
        // Some gateways send the same thinking under both names, and in its details once more.
        let as_content = filled(&message.reasoning_content);
        let thinking = if as_content { message.reasoning_content } else { message.reasoning };
        let details = message.reasoning_details.unwrap_or_default();
        let thinking = if filled(&thinking) {
            thinking
        } else {
            Some(WireText(openai_thinking::words(&details).into_bytes()))
        };
        if filled(&thinking) {
            state.run.shown(as_content);
        }
        state.run.details(details);
        let delta = |joiner: &mut TextJoiner, piece: Option<WireText>| {
            let text = joiner.push(&piece.unwrap_or_default().0);
            (!text.is_empty()).then_some(text)
        };
        events.extend(delta(&mut state.thinking, thinking).map(|text| ModelEvent::Thinking { choice, text }));
        let calls = message.tool_calls.unwrap_or_default();
        let images = message.images.unwrap_or_default();
        let goes_on = [&message.content, &wire.text, &message.refusal].into_iter().any(filled);
        if goes_on || !calls.is_empty() || !images.is_empty() {
            events.extend(state.run.end(choice));
        }
        for piece in [message.content, wire.text] {
            events.extend(delta(&mut state.text, piece).map(|text| ModelEvent::Text { choice, text }));
        }
        state.refused |= filled(&message.refusal);
        events.extend(
            delta(&mut state.refusal, message.refusal).map(|text| ModelEvent::Refusal { choice, text }),
        );
        let pictures = images.iter().filter_map(|image| openai_media::from_data_url(&image.image_url.url));
        events.extend(pictures.map(|media| ModelEvent::Media { choice, media }));
        for call in calls {
            state.calls.fragment(call, choice, &self.response, events);
        }
        let tokens = wire.logprobs.map(openai_logprobs::tokens).unwrap_or_default();
        if !tokens.is_empty() {
            events.push(ModelEvent::Logprobs { choice, tokens });
        }
        if let Some(reason) = wire.finish_reason.filter(|reason| !reason.is_empty()) {
            state.finish(choice, &reason, events);
        }
    }

    /// The answer says it is complete: a choice without a reason stopped by itself.
    fn close(&mut self, events: &mut Vec<ModelEvent>) {
        for (&choice, state) in &mut self.choices {
            state.finish(choice, "stop", events);
        }
        events.extend(self.usage.end());
    }
}

impl body_reader::Answer for Answer {
    fn event(&mut self, data: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if data == b"[DONE]" {
            self.done = true;
            self.close(events);
            return Ok(());
        }
        self.json(data, events)
    }

    /// A server's failure written plainly, or garbage.
    fn stray(&mut self, line: &[u8]) -> Result<(), ParseError> {
        Err(match serde_json::from_slice::<serde_json::Value>(line) {
            Ok(value) if value.get("error").is_some_and(|error| !error.is_null()) => {
                ParseError::Server(openai_error::from_value(&value))
            }
            _ => self.garbage(line),
        })
    }

    fn ended(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if !self.has_ended() {
            return Err(ParseError::Cut);
        }
        events.extend(self.usage.end());
        Ok(())
    }

    fn whole(&mut self, body: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        self.json(body, events)?;
        if !self.started {
            return Err(self.garbage(body));
        }
        self.close(events);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn garbage(&self, bytes: &[u8]) -> ParseError {
        ParseError::Garbage { dialect: self.dialect, why: format!("`{}`", excerpt(bytes)) }
    }
}

impl ChoiceState {
    fn finish(&mut self, choice: u32, reason: &str, events: &mut Vec<ModelEvent>) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        events.extend(self.run.end(choice));
        let reason = match reason {
            // Several servers say `stop` where the protocol wants `tool_calls`.
            "stop" | "tool_calls" | "function_call" if self.calls.any() => FinishReason::ToolUse,
            "stop" if self.refused => FinishReason::Refusal,
            "stop" => FinishReason::Stop,
            "length" => FinishReason::Length,
            "tool_calls" | "function_call" => FinishReason::ToolUse,
            "content_filter" => FinishReason::ContentFilter,
            other => FinishReason::Other(excerpt(other.as_bytes())),
        };
        events.push(ModelEvent::Finish { choice, reason });
    }
}
