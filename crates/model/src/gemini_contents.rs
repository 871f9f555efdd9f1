//! The contents of a Gemini request: who said what, part by part.
//!
//! Parts of one content are joined without anything between them, as the pieces of a streamed answer must be. So
//! a text that follows another of its role begins with a blank line, except within one answer of the model,
//! where a signature stands between. Results of tools have a content of their own: what the user says next
//! begins the next turn, and with it what the server demands of signatures.

use data_encoding::BASE64;
use serde_json::{Map, Value};

use crate::encoded::{BodyWriter, EncodeError, PartKind};
use crate::prompt::{
    ChatPart, Media, MediaPart, OpaquePart, PartId, TextPart, ToolExchange, ToolResult, ToolStatus,
};
use crate::quirks::Quirks;
use crate::reply::ToolCall;
use crate::tool_arguments;

/// What the API takes for the signature of a call that no model of its own has made.
const STAND_IN: &str = "skip_thought_signature_validator";

/// Writes `systemInstruction` and a comma, if there are instructions.
pub(crate) fn system_instruction(body: &mut BodyWriter, parts: &[ChatPart]) {
    if parts.is_empty() {
        return;
    }
    body.frame("\"systemInstruction\":{\"parts\":[");
    for (index, part) in parts.iter().enumerate() {
        let ChatPart::System(text) = part else { continue };
        body.frame(if index > 0 { ",{\"text\":\"\\n\\n" } else { "{\"text\":\"" });
        body.text(PartKind::System, text);
        body.frame("\"}");
    }
    body.frame("]},");
}

/// Writes `contents`: the conversation, and the answer's beginning where one is set.
pub(crate) fn contents(
    body: &mut BodyWriter,
    parts: &[ChatPart],
    prefill: Option<&TextPart>,
    quirks: Quirks,
) -> Result<(), EncodeError> {
    body.frame("\"contents\":[");
    let mut list =
        Contents { body, quirks, first: true, open: None, before: Before::Nothing, signature: None };
    for part in parts {
        match part {
            ChatPart::System(text) => list.text(Role::User, PartKind::System, text),
            ChatPart::User(text) => list.text(Role::User, PartKind::User, text),
            ChatPart::Injected(text) => list.text(Role::User, PartKind::Injected, text),
            ChatPart::Media(part) => list.media(part),
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
    list.body.frame("]");
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Model,
}

/// What stands before the next part in its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Text,
    Other,
}

/// Writes contents; one stays open as long as its neighbours have its role.
struct Contents<'b, 'p> {
    body: &'b mut BodyWriter,
    quirks: Quirks,
    first: bool,
    open: Option<Role>,
    before: Before,
    /// The signature of the next part of the answer.
    signature: Option<(PartId, &'p str)>,
}

impl<'p> Contents<'_, 'p> {
    fn text(&mut self, role: Role, kind: PartKind, part: &TextPart) {
        self.begin(role);
        let apart = self.before == Before::Text && self.signature.is_none();
        self.comma();
        self.body.frame("{");
        self.signed();
        self.body.frame(if apart { "\"text\":\"\\n\\n" } else { "\"text\":\"" });
        self.body.text(kind, part);
        self.body.frame("\"}");
        self.before = Before::Text;
    }

    fn media(&mut self, part: &MediaPart) {
        self.begin(Role::User);
        self.comma();
        self.inline_data(part.id, &part.media);
    }

    fn opaque(&mut self, part: &'p OpaquePart) -> Result<(), EncodeError> {
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
        self.comma();
        self.body.value(PartKind::Opaque, part.id, &whole);
        Ok(())
    }

    fn tool_round(&mut self, round: &'p [ToolExchange]) -> Result<(), EncodeError> {
        if round.is_empty() {
            return Ok(());
        }
        self.begin(Role::Model);
        for (index, exchange) in round.iter().enumerate() {
            for part in &exchange.before {
                self.opaque(part)?;
            }
            self.comma();
            self.body.frame("{");
            if self.signature.is_none() && index == 0 && self.quirks.signature_stand_in {
                self.body.frame("\"thoughtSignature\":");
                self.body.frame_value(STAND_IN);
                self.body.frame(",");
            }
            self.signed();
            self.call(exchange.call_part, &exchange.call);
        }
        self.close();
        self.begin(Role::User);
        for exchange in round {
            self.result(exchange.result_part, &exchange.call, &exchange.result);
        }
        self.close();
        Ok(())
    }

    fn call(&mut self, part: PartId, call: &ToolCall) {
        self.body.frame("\"functionCall\":{");
        self.id(&call.id);
        self.body.frame("\"name\":\"");
        self.body.string(PartKind::ToolCall, part, &call.name);
        self.body.frame("\",\"args\":");
        match tool_arguments::parse(&call.arguments, true) {
            // As the model wrote them, to the last digit.
            Ok(_) if call.arguments.trim_start().starts_with('{') => {
                self.body.raw(PartKind::ToolCall, part, &call.arguments);
            }
            Ok(object) => self.body.value(PartKind::ToolCall, part, &object),
            Err(_) => {
                self.body.frame("{\"arguments\":\"");
                self.body.string(PartKind::ToolCall, part, &call.arguments);
                self.body.frame("\"}");
            }
        }
        self.body.frame("}}");
    }

    fn result(&mut self, part: PartId, call: &ToolCall, result: &ToolResult) {
        self.comma();
        self.body.frame("{\"functionResponse\":{");
        self.id(&call.id);
        self.body.frame("\"name\":");
        self.body.frame_value(&call.name);
        self.body.frame(match result.status {
            ToolStatus::Ok => ",\"response\":{\"result\":\"",
            ToolStatus::Error | ToolStatus::Denied | ToolStatus::Unknown => ",\"response\":{\"error\":\"",
        });
        self.body.string(PartKind::ToolResult, part, &result.text);
        self.body.frame("\"}");
        let (inside, behind): (&[Media], &[Media]) =
            if self.quirks.media_in_results { (&result.media, &[]) } else { (&[], &result.media) };
        for (index, media) in inside.iter().enumerate() {
            self.body.frame(if index > 0 { "," } else { ",\"parts\":[" });
            self.inline_data(part, media);
        }
        self.body.frame(if inside.is_empty() { "}}" } else { "]}}" });
        for media in behind {
            self.comma();
            self.inline_data(part, media);
        }
    }

    /// Ids bind results to calls. Text that was imported may have none.
    fn id(&mut self, id: &str) {
        if !id.is_empty() {
            self.body.frame("\"id\":");
            self.body.frame_value(id);
            self.body.frame(",");
        }
    }

    fn inline_data(&mut self, part: PartId, media: &Media) {
        self.body.frame("{\"inlineData\":{\"mimeType\":");
        // The API has a name of its own for this one.
        self.body.frame_value(if media.mime == "audio/mpeg" { "audio/mp3" } else { &media.mime });
        self.body.frame(",\"data\":\"");
        self.body.string(PartKind::Media, part, &BASE64.encode(&media.data));
        self.body.frame("\"}}");
    }

    /// The signature of the part that is being written.
    fn signed(&mut self) {
        if let Some((part, signature)) = self.signature.take() {
            self.body.frame("\"thoughtSignature\":");
            self.body.value(PartKind::Opaque, part, signature);
            self.body.frame(",");
        }
    }

    /// A signature whose part is not there goes back on an empty one.
    fn end_answer(&mut self) {
        if self.signature.is_some() {
            self.comma();
            self.body.frame("{");
            self.signed();
            self.body.frame("\"text\":\"\"}");
        }
    }

    fn begin(&mut self, role: Role) {
        if self.open == Some(role) {
            return;
        }
        self.close();
        if !std::mem::take(&mut self.first) {
            self.body.frame(",");
        }
        self.body.frame(match role {
            Role::User => "{\"role\":\"user\",\"parts\":[",
            Role::Model => "{\"role\":\"model\",\"parts\":[",
        });
        self.open = Some(role);
        self.before = Before::Nothing;
    }

    fn comma(&mut self) {
        if std::mem::replace(&mut self.before, Before::Other) != Before::Nothing {
            self.body.frame(",");
        }
    }

    fn close(&mut self) {
        self.end_answer();
        if self.open.take().is_some() {
            self.body.frame("]}");
        }
    }
}
