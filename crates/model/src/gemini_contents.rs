//! The contents of a Gemini request: who said what, part by part.
//!
//! Parts of one content are joined without anything between them, as the pieces of a streamed answer must be. So
//! a text that follows another of its role begins with a blank line, except within one answer of the model,
//! where a signature stands between. Results of tools have a content of their own: what the user says next
//! begins the next turn, and with it what the server demands of signatures.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::encoded::{EncodeError, PartKind};
use crate::parts::Parts;
use crate::prompt::{ChatPart, Media, OpaquePart, PartId, TextPart, ToolExchange, ToolStatus};
use crate::quirks::Quirks;
use crate::reply::ToolCall;
use crate::tool_arguments;

/// What the API takes for the signature of a call that no model of its own has made.
const STAND_IN: &str = "skip_thought_signature_validator";

/// What one side said without a break.
#[derive(Serialize)]
pub(crate) struct Content {
    role: Role,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Model,
}

#[derive(Serialize)]
#[serde(untagged)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every part is typed, and boxes cost more than they save"
)]
enum Part {
    Opaque(String),
    Typed(Data),
}

/// One of the last four, with the signature of the answer's part.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Answer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Blob>,
}

/// Ids bind results to calls. Text that was imported may have none.
#[derive(Serialize)]
struct Call {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    args: Value,
}

#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    response: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    mime_type: String,
    data: String,
}

/// The instructions above the conversation, if there are any.
pub(crate) fn system_instruction<'a>(parts: &mut Parts<'a>, instructions: &'a [ChatPart]) -> Option<Value> {
    let texts = instructions.iter().enumerate().filter_map(|(index, part)| {
        let ChatPart::System(text) = part else { return None };
        let apart = if index > 0 { "\n\n" } else { "" };
        Some(json!({"text": format!("{apart}{}", parts.text(PartKind::System, text))}))
    });
    let texts: Vec<Value> = texts.collect();
    (!texts.is_empty()).then(|| json!({"parts": texts}))
}

/// The conversation, and the answer's beginning where one is set.
///
/// # Errors
/// When a part wants back what this dialect has no form for.
pub(crate) fn contents<'a>(
    parts: &mut Parts<'a>,
    messages: &'a [ChatPart],
    prefill: Option<&'a TextPart>,
    quirks: Quirks,
) -> Result<Vec<Content>, EncodeError> {
    let mut list =
        Contents { parts, quirks, contents: Vec::new(), closed: true, after_text: false, signature: None };
    for part in messages {
        match part {
            ChatPart::System(text) => list.text(Role::User, PartKind::System, text),
            ChatPart::User(text) => list.text(Role::User, PartKind::User, text),
            ChatPart::Injected(text) => list.text(Role::User, PartKind::Injected, text),
            ChatPart::Media(part) => {
                list.begin(Role::User);
                let blob = list.inline_data(part.id, &part.media);
                list.push(blob);
            }
            ChatPart::Assistant(text) => list.text(Role::Model, PartKind::Assistant, text),
            ChatPart::Opaque(part) => list.opaque(part)?,
            ChatPart::ToolRound(round) => list.tool_round(round)?,
        }
    }
    list.end_answer();
    if let Some(prefill) = prefill {
        list.text(Role::Model, PartKind::Prefill, prefill);
    }
    list.close();
    Ok(list.contents)
}

/// Contents as they grow; the last one stays open as long as its neighbours have its role.
struct Contents<'l, 'a> {
    parts: &'l mut Parts<'a>,
    quirks: Quirks,
    contents: Vec<Content>,
    closed: bool,
    /// Whether the last part of the open content is a text.
    after_text: bool,
    /// The signature of the next part of the answer.
    signature: Option<(PartId, &'a str)>,
}

impl<'a> Contents<'_, 'a> {
    fn text(&mut self, role: Role, kind: PartKind, part: &'a TextPart) {
        self.begin(role);
        let apart = self.after_text && self.signature.is_none();
        let text = format!("{}{}", if apart { "\n\n" } else { "" }, self.parts.text(kind, part));
        self.signed(Data { text: Some(text), ..Data::default() });
        self.after_text = true;
    }

    fn opaque(&mut self, part: &'a OpaquePart) -> Result<(), EncodeError> {
        let Value::Object(json) = &part.json else {
            return Err(EncodeError::Unsupported { what: "what another dialect wants back" });
        };
        self.begin(Role::Model);
        self.end_answer();
        let mut whole = Map::new();
        match (&part.thinking, json.get("thoughtSignature")) {
            (None, Some(Value::String(signature))) if json.len() == 1 => {
                self.signature = Some((part.id, signature));
                return Ok(());
            }
            (None, _) => {}
            (Some(thinking), _) => {
                whole.insert("text".to_owned(), Value::String(thinking.clone()));
                whole.insert("thought".to_owned(), Value::Bool(true));
            }
        }
        whole.extend(json.clone());
        let whole = self.parts.value(PartKind::Opaque, part.id, &whole);
        self.push(Part::Opaque(whole));
        Ok(())
    }

    fn tool_round(&mut self, round: &'a [ToolExchange]) -> Result<(), EncodeError> {
        if round.is_empty() {
            return Ok(());
        }
        self.begin(Role::Model);
        for (index, exchange) in round.iter().enumerate() {
            for part in &exchange.before {
                self.opaque(part)?;
            }
            let call = Some(self.call(exchange.call_part, &exchange.call));
            let call = Data { function_call: call, ..Data::default() };
            if self.signature.is_none() && index == 0 && self.quirks.signature_stand_in {
                self.push(Part::Typed(Data { thought_signature: Some(STAND_IN.to_owned()), ..call }));
            } else {
                self.signed(call);
            }
        }
        self.close();
        self.begin(Role::User);
        for exchange in round {
            self.result(exchange);
        }
        self.close();
        Ok(())
    }

    fn call(&mut self, part: PartId, call: &'a ToolCall) -> Call {
        let name = self.parts.string(PartKind::ToolCall, part, &call.name);
        let args = match tool_arguments::parse(&call.arguments, true) {
            // As the model wrote them, to the last digit.
            Ok(_) if call.arguments.trim_start().starts_with('{') => {
                json!(self.parts.json(PartKind::ToolCall, part, call.arguments.clone()))
            }
            Ok(object) => json!(self.parts.value(PartKind::ToolCall, part, &object)),
            Err(_) => json!({"arguments": self.parts.string(PartKind::ToolCall, part, &call.arguments)}),
        };
        Call { id: id(call), name, args }
    }

    fn result(&mut self, exchange: &'a ToolExchange) {
        let (part, call, result) = (exchange.result_part, &exchange.call, &exchange.result);
        let text = self.parts.string(PartKind::ToolResult, part, &result.text);
        let response = match result.status {
            ToolStatus::Ok => json!({"result": text}),
            ToolStatus::Error | ToolStatus::Denied | ToolStatus::Unknown => json!({"error": text}),
        };
        let media: Vec<Part> = result.media.iter().map(|media| self.inline_data(part, media)).collect();
        let (parts, behind) =
            if self.quirks.media_in_results { (media, Vec::new()) } else { (Vec::new(), media) };
        let answer = Answer { id: id(call), name: call.name.clone(), response, parts };
        self.push(Part::Typed(Data { function_response: Some(answer), ..Data::default() }));
        behind.into_iter().for_each(|media| self.push(media));
    }

    fn inline_data(&mut self, part: PartId, media: &'a Media) -> Part {
        // The API has a name of its own for this one.
        let mime = if media.mime == "audio/mpeg" { "audio/mp3" } else { &media.mime };
        let data = self.parts.media(part, media);
        let blob = Blob { mime_type: mime.to_owned(), data };
        Part::Typed(Data { inline_data: Some(blob), ..Data::default() })
    }

    /// Adds a part with the signature that is waiting for one.
    fn signed(&mut self, data: Data) {
        let signature = self.signature.take();
        let thought_signature =
            signature.map(|(part, signature)| self.parts.value(PartKind::Opaque, part, &signature));
        self.push(Part::Typed(Data { thought_signature, ..data }));
    }

    /// A signature whose part is not there goes back on an empty one.
    fn end_answer(&mut self) {
        if self.signature.is_some() {
            self.signed(Data { text: Some(String::new()), ..Data::default() });
        }
    }

    fn begin(&mut self, role: Role) {
        if !self.closed && self.contents.last().is_some_and(|content| content.role == role) {
            return;
        }
        self.close();
        self.contents.push(Content { role, parts: Vec::new() });
        self.closed = false;
    }

    fn push(&mut self, part: Part) {
        if let Some(content) = self.contents.last_mut() {
            content.parts.push(part);
        }
        self.after_text = false;
    }

    fn close(&mut self) {
        self.end_answer();
        self.closed = true;
        self.after_text = false;
    }
}

fn id(call: &ToolCall) -> Option<String> {
    (!call.id.is_empty()).then(|| call.id.clone())
}
