//! Blocks of content from their beginnings, deltas and ends.
//!
//! A whole answer gives each block at once, a stream in pieces; both come through here. What the API wants back
//! unchanged leaves a block only at its end: half a signature is of no use to anyone.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::anthropic_wire::{WireBlock, WireDelta};
use crate::event::{CallBegin, ModelEvent};
use crate::openai_wire::WireText;
use crate::text_joiner::TextJoiner;

/// The blocks of one answer.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: BTreeMap<u32, Open>,
    calls: u32,
}

/// A block that has not ended.
#[derive(Debug)]
enum Open {
    Text(TextJoiner),
    Thinking {
        joiner: TextJoiner,
        /// Whether any text of it was shown.
        shown: bool,
        signature: String,
    },
    Call {
        number: u32,
        joiner: TextJoiner,
        /// The arguments as they stood at the beginning, until any come in pieces.
        input: Option<Value>,
    },
    /// A block the API wants back as it is; `None` once something of it was not understood.
    Other {
        json: Option<Value>,
        thinking: bool,
        joiner: TextJoiner,
        input: String,
    },
}

impl Blocks {
    /// Whether any tool was asked for.
    pub(crate) fn any_calls(&self) -> bool {
        self.calls > 0
    }

    /// A block begins. `raw` gives its JSON, which is needed only for blocks that go back unchanged.
    pub(crate) fn begin(
        &mut self,
        index: u32,
        wire: WireBlock,
        raw: impl FnOnce() -> Option<Value>,
        response: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        self.end(index, events);
        let mut block = match wire.kind.as_deref() {
            Some("text") => Open::Text(TextJoiner::default()),
            Some("thinking") => Open::thinking(),
            Some("tool_use") => self.call(wire.id, wire.name, wire.input, response, events),
            other => {
                let thinking = other == Some("redacted_thinking");
                Open::Other { json: raw(), thinking, joiner: TextJoiner::default(), input: String::new() }
            }
        };
        block.text(wire.text.as_ref(), events);
        block.think(wire.thinking.as_ref(), wire.signature.as_deref(), events);
        self.open.insert(index, block);
    }

    fn call(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
        response: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Open {
        let number = self.calls;
        self.calls += 1;
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| derived_id(response, number));
        let begin = Some(CallBegin { id, name: name.unwrap_or_default() });
        events.push(ModelEvent::ToolCall { choice: 0, index: number, begin, arguments: String::new() });
        Open::Call { number, joiner: TextJoiner::default(), input: input.or_else(|| Some(json!({}))) }
    }

    /// More of a block. A text or thinking whose beginning was not announced begins with its first delta.
    pub(crate) fn delta(&mut self, index: u32, wire: &WireDelta, events: &mut Vec<ModelEvent>) {
        let block = match wire.kind.as_deref() {
            Some("text_delta") => self.open.entry(index).or_insert_with(|| Open::Text(TextJoiner::default())),
            Some("thinking_delta") => self.open.entry(index).or_insert_with(Open::thinking),
            _ => match self.open.get_mut(&index) {
                Some(block) => block,
                None => return,
            },
        };
        match wire.kind.as_deref() {
            Some("text_delta") => block.text(wire.text.as_ref(), events),
            Some("thinking_delta") => block.think(wire.thinking.as_ref(), None, events),
            Some("signature_delta") => block.think(None, wire.signature.as_deref(), events),
            Some("input_json_delta") => block.input(wire.partial_json.as_ref(), events),
            _ => block.unknown(),
        }
    }

    pub(crate) fn end(&mut self, index: u32, events: &mut Vec<ModelEvent>) {
        if let Some(block) = self.open.remove(&index) {
            block.end(events);
        }
    }

    /// All blocks end: the answer is complete, also where a server did not say so of each block.
    pub(crate) fn end_all(&mut self, events: &mut Vec<ModelEvent>) {
        for block in std::mem::take(&mut self.open).into_values() {
            block.end(events);
        }
    }
}

impl Open {
    fn thinking() -> Self {
        Self::Thinking { joiner: TextJoiner::default(), shown: false, signature: String::new() }
    }

    fn text(&mut self, piece: Option<&WireText>, events: &mut Vec<ModelEvent>) {
        if let (Self::Text(joiner), Some(piece)) = (self, piece) {
            let text = joiner.push(&piece.0);
            if !text.is_empty() {
                events.push(ModelEvent::Text { choice: 0, text });
            }
        }
    }

    fn think(&mut self, piece: Option<&WireText>, signed: Option<&str>, events: &mut Vec<ModelEvent>) {
        if let Self::Thinking { joiner, shown, signature } = self {
            signature.push_str(signed.unwrap_or_default());
            let new = piece.map(|piece| joiner.push(&piece.0)).unwrap_or_default();
            if !new.is_empty() {
                *shown = true;
                events.push(ModelEvent::Thinking { choice: 0, text: new });
            }
        }
    }

    fn input(&mut self, piece: Option<&WireText>, events: &mut Vec<ModelEvent>) {
        let Some(piece) = piece else { return };
        match self {
            Self::Call { number, joiner, input } => {
                let arguments = joiner.push(&piece.0);
                if !arguments.is_empty() {
                    *input = None;
                    events.push(ModelEvent::ToolCall { choice: 0, index: *number, begin: None, arguments });
                }
            }
            Self::Other { joiner, input, .. } => input.push_str(&joiner.push(&piece.0)),
            Self::Text(_) | Self::Thinking { .. } => {}
        }
    }

    /// A delta of a kind this version does not know: its block cannot go back unchanged. Citations of a text do
    /// it no harm.
    fn unknown(&mut self) {
        if let Self::Other { json, .. } = self {
            *json = None;
        }
    }

    fn end(self, events: &mut Vec<ModelEvent>) {
        match self {
            Self::Text(_) => {}
            // Unsigned thinking is of no use to a server: it is shown and not sent back.
            Self::Thinking { signature, .. } if signature.is_empty() => {}
            // What was shown is not repeated: a model may think for a hundred megabytes.
            Self::Thinking { shown, signature, .. } => {
                let mut json = json!({"type": "thinking", "thinking": "", "signature": signature});
                if let Some(json) = json.as_object_mut().filter(|_| shown) {
                    json.shift_remove("thinking");
                }
                events.push(ModelEvent::Opaque { choice: 0, with_thinking: true, json });
            }
            Self::Call { number, input, .. } => {
                if let Some(input) = input {
                    let arguments = input.to_string();
                    events.push(ModelEvent::ToolCall { choice: 0, index: number, begin: None, arguments });
                }
            }
            Self::Other { json, thinking, input, .. } => {
                let Some(mut json) = json.filter(Value::is_object) else { return };
                if !input.is_empty() {
                    let Ok(input) = serde_json::from_str::<Value>(&input) else { return };
                    json["input"] = input;
                }
                events.push(ModelEvent::Opaque { choice: 0, with_thinking: thinking, json });
            }
        }
    }
}

fn derived_id(response: &str, number: u32) -> String {
    if response.is_empty() { format!("call_{number}") } else { format!("call_{response}_{number}") }
}
