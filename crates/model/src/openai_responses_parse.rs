//! Reads responses, streamed or whole.
//!
//! A stream ends with the event that carries the response's final state. Nothing else ends it: gateways put `[DONE]`
//! also behind a stream that broke off before them.

use serde_json::Value;

use crate::body_reader;
use crate::dialect::{DialectName, Parse, ParseError};
use crate::event::{FinishReason, ModelEvent};
use crate::openai_error;
use crate::openai_responses_items::{Fault, Form, Items, Place, Slot};
use crate::openai_responses_wire::{WireEvent, WireItem, WireResponse, WireType, read};
use crate::openai_wire::WireText;
use crate::server_text::excerpt;

/// A parser for one answer.
pub(crate) fn parser(streamed: bool) -> Box<dyn Parse> {
    body_reader::parser(Answer::default(), streamed)
}

/// What has been read of an answer.
#[derive(Default)]
struct Answer {
    items: Items,
    started: bool,
    ended: bool,
}

impl Answer {
    fn json(&mut self, json: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        let kind: WireType = serde_json::from_slice(json).map_err(|_| garbage(json))?;
        let Some(kind) = kind.kind else { return failure(json).map_or(Ok(()), Err) };
        let Some(step) = Step::of(&kind) else { return Ok(()) };
        if matches!(step, Step::Error) {
            let value = serde_json::from_slice(json).map_err(|_| garbage(json))?;
            return Err(ParseError::Server(openai_error::from_value(&value)));
        }
        let event: WireEvent = read(json).map_err(|_| garbage(json))?;
        match step {
            Step::End => {
                let response = event.response.unwrap_or_default();
                let raw = raw(json, "/response/output", response.output.iter().flatten());
                self.end(response, &kind, raw.as_ref(), events)
            }
            Step::Begin => {
                self.start(event.response.unwrap_or_default(), events);
                Ok(())
            }
            step => {
                self.start(WireResponse::default(), events);
                self.item(step, event, json, events).map_err(faulty)
            }
        }
    }

    fn item(
        &mut self,
        step: Step,
        event: WireEvent,
        json: &[u8],
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let WireEvent { output_index: index, item_id: id, logprobs, item, .. } = event;
        let slot = |form| {
            let number = if form == Form::Summary { event.summary_index } else { event.content_index };
            Slot { form, number: number.unwrap_or(0) }
        };
        let place = Place { index, id, call_id: None };
        let bytes = |text: Option<WireText>| text.unwrap_or_default().0;
        match step {
            Step::Announced | Step::Done => {
                let raw = raw(json, "/item", &item);
                let item = item.unwrap_or_default();
                match step {
                    Step::Done => self.items.done(index, item, raw, events),
                    _ => self.items.announce(index, item, raw, events),
                }
            }
            Step::Delta(form) => self.items.delta(place, slot(form), &bytes(event.delta), logprobs, events),
            Step::Whole(form) => {
                let text = bytes(event.text.or(event.refusal));
                self.items.whole(place, slot(form), &text, logprobs, events)
            }
            Step::Arguments => self.items.arguments(place, &bytes(event.delta), false, events),
            Step::AllArguments => self.items.arguments(place, &bytes(event.arguments), true, events),
            Step::Begin | Step::End | Step::Error => Ok(()),
        }
    }

    fn start(&mut self, response: WireResponse, events: &mut Vec<ModelEvent>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let WireResponse { id, model, .. } = response;
        self.items.begin(id.clone().unwrap_or_default());
        events.push(ModelEvent::Start { id, model });
    }

    /// Takes the response's final state. Its `status` holds; where there is none, the event's type says it.
    fn end(
        &mut self,
        mut response: WireResponse,
        kind: &str,
        raw: Option<&Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ParseError> {
        let (id, model) = (response.id.take(), response.model.take());
        self.start(WireResponse { id, model, ..WireResponse::default() }, events);
        let status = response.status.as_deref().unwrap_or_else(|| kind.trim_start_matches("response."));
        if matches!(status, "in_progress" | "queued") {
            return Err(ParseError::Cut);
        }
        let output = response.output.unwrap_or_default();
        self.items.end(output, raw, events).map_err(faulty)?;
        let usage = response.usage.and_then(|counts| {
            let event = if counts.counts_output() { ModelEvent::Usage } else { ModelEvent::InterimUsage };
            counts.usage().map(event)
        });
        if status == "failed" {
            events.extend(usage);
            let error = response.error.unwrap_or_default();
            return Err(ParseError::Server(openai_error::from_value(&error)));
        }
        let detail = response.incomplete_details.and_then(|details| details.reason);
        let reason = self.reason(status, detail.as_deref());
        events.push(ModelEvent::Finish { choice: 0, reason });
        events.extend(usage);
        self.ended = true;
        Ok(())
    }

    fn reason(&self, status: &str, detail: Option<&str>) -> FinishReason {
        match (status, detail) {
            ("incomplete", Some("max_output_tokens" | "max_tokens" | "length")) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
            ("completed", _) if self.items.calls > 0 => FinishReason::ToolUse,
            ("completed", _) if self.items.refused => FinishReason::Refusal,
            ("completed", _) => FinishReason::Stop,
            (status, detail) => FinishReason::Other(excerpt(detail.unwrap_or(status).as_bytes())),
        }
    }
}

impl body_reader::Answer for Answer {
    fn event(&mut self, data: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if data == b"[DONE]" { Ok(()) } else { self.json(data, events) }
    }

    fn stray(&mut self, line: &[u8]) -> Result<(), ParseError> {
        Err(failure(line).unwrap_or_else(|| garbage(line)))
    }

    fn ended(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        Err(ParseError::Cut)
    }

    fn whole(&mut self, body: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        let response: WireResponse = read(body).map_err(|_| garbage(body))?;
        let known = response.output.is_some() || response.object.as_deref() == Some("response");
        if !known {
            return Err(failure(body).unwrap_or_else(|| garbage(body)));
        }
        let raw = raw(body, "/output", response.output.iter().flatten());
        self.end(response, "response.completed", raw.as_ref(), events)
    }

    fn is_complete(&self) -> bool {
        self.ended
    }

    fn garbage(&self, bytes: &[u8]) -> ParseError {
        garbage(bytes)
    }
}

#[derive(Clone, Copy)]
enum Step {
    Begin,
    Announced,
    Delta(Form),
    Whole(Form),
    Arguments,
    AllArguments,
    Done,
    End,
    Error,
}

impl Step {
    /// What an event of this type does; events of all other types are skipped, whatever they hold.
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "response.created" | "response.queued" | "response.in_progress" => Self::Begin,
            "response.output_item.added" => Self::Announced,
            "response.output_text.delta" => Self::Delta(Form::Text),
            "response.output_text.done" => Self::Whole(Form::Text),
            "response.refusal.delta" => Self::Delta(Form::Refusal),
            "response.refusal.done" => Self::Whole(Form::Refusal),
            "response.reasoning_summary_text.delta" => Self::Delta(Form::Summary),
            "response.reasoning_summary_text.done" => Self::Whole(Form::Summary),
            "response.reasoning_text.delta" | "response.reasoning.delta" => Self::Delta(Form::Thinking),
            "response.reasoning_text.done" | "response.reasoning.done" => Self::Whole(Form::Thinking),
            "response.function_call_arguments.delta" => Self::Arguments,
            "response.function_call_arguments.done" => Self::AllArguments,
            "response.output_item.done" => Self::Done,
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                Self::End
            }
            "error" | "response.error" => Self::Error,
            _ => return None,
        })
    }
}

/// What stands at `path`, as it was sent. Only thinking is wanted back so; nothing else is read a second time.
fn raw<'a>(json: &[u8], path: &str, items: impl IntoIterator<Item = &'a WireItem>) -> Option<Value> {
    if !items.into_iter().any(|item| item.kind.as_deref() == Some("reasoning")) {
        return None;
    }
    serde_json::from_slice::<Value>(json).ok()?.pointer_mut(path).map(Value::take)
}

/// The failure a server writes plainly, without the type of an event.
fn failure(json: &[u8]) -> Option<ParseError> {
    let value: Value = serde_json::from_slice(json).ok()?;
    let named = value.get("error").is_some_and(|error| !error.is_null());
    let is_error = named || value.get("object").and_then(Value::as_str) == Some("error");
    is_error.then(|| ParseError::Server(openai_error::from_value(&value)))
}

fn garbage(bytes: &[u8]) -> ParseError {
    ParseError::Garbage { dialect: DialectName::OpenAiResponses, why: format!("`{}`", excerpt(bytes)) }
}

fn faulty(fault: Fault) -> ParseError {
    ParseError::Garbage { dialect: DialectName::OpenAiResponses, why: fault.to_owned() }
}
