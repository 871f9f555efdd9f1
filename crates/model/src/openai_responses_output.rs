//! What the items of an answer say, as events, each thing once.

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::event::{CallBegin, ModelEvent};
use crate::openai_logprobs;
use crate::openai_responses_items::{Fault, Form, Item, Items, Kind, Last, Slot};
use crate::openai_responses_wire::{WireItem, WirePart};
use crate::openai_wire::{WireLogprobs, WireToken};
use crate::prompt::Media;

impl Items {
    /// Takes an item as a whole: what of it was not told yet.
    pub(crate) fn complete_item(
        &mut self,
        at: usize,
        item: WireItem,
        raw: Option<Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if std::mem::replace(&mut self.items[at].done, true) {
            return Ok(());
        }
        match self.items[at].kind {
            Kind::Message => {
                for (number, part) in (0..).zip(item.content.unwrap_or_default()) {
                    let WirePart { text, refusal, logprobs } = part;
                    if let Some(refusal) = refusal {
                        let slot = Slot { form: Form::Refusal, number };
                        self.complete_part(at, slot, &refusal.0, None, events);
                    }
                    if let Some(text) = text {
                        let slot = Slot { form: Form::Text, number };
                        self.complete_part(at, slot, &text.0, logprobs, events);
                    }
                }
            }
            Kind::Thinking => {
                for (form, parts) in [(Form::Summary, item.summary), (Form::Thinking, item.content)] {
                    for (number, part) in (0..).zip(parts.unwrap_or_default()) {
                        let text = part.text.unwrap_or_default();
                        self.complete_part(at, Slot { form, number }, &text.0, None, events);
                    }
                }
                self.seal(at, raw, events);
            }
            Kind::Call => {
                if let Some(name) = item.name.filter(|_| self.items[at].call.number.is_none()) {
                    self.items[at].call.name = name;
                }
                let arguments = item.arguments.filter(|_| !self.items[at].call.given).unwrap_or_default();
                self.arguments_of(at, &arguments.0, events);
            }
            Kind::Picture => {
                if let Some(result) = item.result.filter(|result| !result.is_empty()) {
                    let data = BASE64.decode(result.as_bytes()).map_err(|_| "a picture that is no base64")?;
                    let mime = mime(item.output_format.as_deref());
                    self.end_thinking_before(Some(at), events);
                    self.last = Last::Other;
                    events.push(ModelEvent::Media { choice: 0, media: Media { mime, data: data.into() } });
                }
            }
        }
        Ok(())
    }

    /// Takes a text as a whole; it is news only where no piece of it came before.
    pub(crate) fn complete_part(
        &mut self,
        at: usize,
        slot: Slot,
        text: &[u8],
        logprobs: Option<Vec<WireToken>>,
        events: &mut Vec<ModelEvent>,
    ) {
        let part = self.items[at].parts.entry(slot).or_default();
        let text = if part.given { &[] } else { text };
        let logprobs = logprobs.filter(|_| !part.scored);
        self.append_text(at, slot, text, logprobs, events);
    }

    /// Takes a piece of a text.
    pub(crate) fn append_text(
        &mut self,
        at: usize,
        slot: Slot,
        piece: &[u8],
        logprobs: Option<Vec<WireToken>>,
        events: &mut Vec<ModelEvent>,
    ) {
        let item = &mut self.items[at];
        let thinking = item.kind == Kind::Thinking && !piece.is_empty();
        if thinking && *item.shown.get_or_insert(slot.form) != slot.form {
            return;
        }
        let part = item.parts.entry(slot).or_default();
        part.given |= !piece.is_empty();
        let text = part.joiner.push(piece);
        if slot.form == Form::Thinking {
            part.text.push_str(&text);
        }
        let tokens = openai_logprobs::tokens(WireLogprobs { content: logprobs, ..WireLogprobs::default() });
        part.scored |= !tokens.is_empty();
        if !text.is_empty() {
            self.end_thinking_before(Some(at), events);
            events.push(self.text_event(at, slot, text));
        }
        if !tokens.is_empty() {
            events.push(ModelEvent::Logprobs { choice: 0, tokens });
        }
    }

    fn text_event(&mut self, at: usize, slot: Slot, text: String) -> ModelEvent {
        let paragraph = |new: bool, text: String| if new { format!("\n\n{text}") } else { text };
        match slot.form {
            Form::Text => {
                let new = matches!(self.last, Last::Text(other) if other != at);
                self.last = Last::Text(at);
                ModelEvent::Text { choice: 0, text: paragraph(new, text) }
            }
            Form::Refusal => {
                self.refused = true;
                self.last = Last::Other;
                ModelEvent::Refusal { choice: 0, text }
            }
            Form::Summary | Form::Thinking => {
                let new = matches!(self.last, Last::Thinking(..)) && self.last != Last::Thinking(at, slot);
                self.last = Last::Thinking(at, slot);
                if slot.form == Form::Thinking && !self.items[at].sealed {
                    self.thinking = Some(at);
                }
                ModelEvent::Thinking { choice: 0, text: paragraph(new, text) }
            }
        }
    }

    /// What the server wants back, once an item of thinking is done: the item without its state, which OpenAI refuses
    /// to read. Without the sealed thinking or all of it there is nothing in it that a server could use.
    fn seal(&mut self, at: usize, raw: Option<Value>, events: &mut Vec<ModelEvent>) {
        self.end_thinking_before(Some(at), events);
        self.thinking = self.thinking.filter(|&other| other != at);
        let filled = |value: &Value| match value {
            Value::String(text) => !text.is_empty(),
            Value::Array(parts) => !parts.is_empty(),
            _ => false,
        };
        let Some(Value::Object(mut item)) = raw else { return };
        if ["encrypted_content", "content"].iter().all(|name| !item.get(*name).is_some_and(filled)) {
            return;
        }
        if !std::mem::replace(&mut self.items[at].sealed, true) {
            item.shift_remove("status");
            self.last = Last::Other;
            events.push(ModelEvent::Opaque { choice: 0, with_thinking: true, json: Value::Object(item) });
        }
    }

    /// Another item speaks. llama.cpp calls its thinking done only after the text that follows it; what it wants back
    /// must stand in front of that, and is known from what was shown: thinking that is shown in full is not sealed.
    pub(crate) fn end_thinking_before(&mut self, at: Option<usize>, events: &mut Vec<ModelEvent>) {
        let Some(other) = self.thinking.filter(|&other| Some(other) != at) else { return };
        let item = &self.items[other];
        let mut raw = item.announced.clone().unwrap_or_else(|| json!({"type": "reasoning", "summary": []}));
        let texts = item.parts.values().filter(|part| !part.text.is_empty());
        raw["content"] = texts.map(|part| json!({"type": "reasoning_text", "text": part.text})).collect();
        self.thinking = None;
        self.seal(other, Some(raw), events);
    }

    /// Takes a piece of a call's arguments; a call is told of once its name is known.
    pub(crate) fn arguments_of(&mut self, at: usize, piece: &[u8], events: &mut Vec<ModelEvent>) {
        let call = &mut self.items[at].call;
        call.given |= !piece.is_empty();
        let arguments = call.joiner.push(piece);
        match call.number {
            Some(index) if !arguments.is_empty() => {
                self.end_thinking_before(Some(at), events);
                self.last = Last::Other;
                events.push(ModelEvent::ToolCall { choice: 0, index, begin: None, arguments });
            }
            Some(_) => {}
            None => {
                call.held.push_str(&arguments);
                if !call.name.is_empty() {
                    self.begin_call(at, events);
                }
            }
        }
    }

    pub(crate) fn begin_call(&mut self, at: usize, events: &mut Vec<ModelEvent>) {
        self.end_thinking_before(Some(at), events);
        let index = self.calls;
        self.calls += 1;
        self.last = Last::Other;
        let Item { place, call, .. } = &mut self.items[at];
        call.number = Some(index);
        let ids = [&place.call_id, &place.id];
        let id = ids.into_iter().flatten().find(|id| !id.is_empty()).cloned();
        let id = id.unwrap_or_else(|| format!("call_{}_0_{index}", self.response));
        let begin = Some(CallBegin { id, name: call.name.clone() });
        let arguments = std::mem::take(&mut call.held);
        events.push(ModelEvent::ToolCall { choice: 0, index, begin, arguments });
    }
}

/// OpenAI makes PNG unless told otherwise.
fn mime(format: Option<&str>) -> String {
    match format.unwrap_or_default().trim_start_matches("image/") {
        "jpeg" | "jpg" => "image/jpeg",
        "webp" => "image/webp",
        _ => "image/png",
    }
    .to_owned()
}
