//! A conversation as the items of a responses request.

use data_encoding::BASE64;
use serde_json::Value;

use crate::encoded::{BodyWriter, EncodeError, PartKind};
use crate::prompt::{ChatPart, Media, OpaquePart, PartId, TextPart, ToolExchange};
use crate::quirks::{InstructionRole, Quirks};

/// Writes the items.
pub(crate) fn input(
    body: &mut BodyWriter,
    messages: &[ChatPart],
    quirks: &Quirks,
) -> Result<(), EncodeError> {
    let instructions = match quirks.instructions {
        InstructionRole::System => Speaker::System,
        InstructionRole::Developer => Speaker::Developer,
    };
    body.frame(",\"input\":[");
    let mut list = ItemList { body, first: true, open: None, ids: quirks.item_ids };
    for part in messages {
        match part {
            ChatPart::System(text) => list.text(instructions, PartKind::System, text),
            ChatPart::User(text) => list.text(Speaker::User, PartKind::User, text),
            ChatPart::Injected(text) => list.text(Speaker::User, PartKind::Injected, text),
            ChatPart::Assistant(text) => list.text(Speaker::Assistant, PartKind::Assistant, text),
            ChatPart::Media(part) => {
                list.block(Speaker::User);
                picture(list.body, part.id, &part.media)?;
            }
            ChatPart::Opaque(part) => list.opaque(part),
            ChatPart::ToolRound(round) => list.tool_round(round)?,
        }
    }
    list.close();
    body.frame("]");
    Ok(())
}

/// Who a message is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    System,
    Developer,
    User,
    Assistant,
}

impl Speaker {
    fn role(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Writes items; a message stays open for further blocks as long as its neighbours have its role.
struct ItemList<'a> {
    body: &'a mut BodyWriter,
    first: bool,
    open: Option<Speaker>,
    ids: bool,
}

impl ItemList<'_> {
    fn text(&mut self, speaker: Speaker, kind: PartKind, part: &TextPart) {
        self.block(speaker);
        match speaker {
            // `annotations` is required by the schema; OpenAI forgives its absence, vLLM and Azure do not.
            Speaker::Assistant => {
                self.body.frame("{\"type\":\"output_text\",\"annotations\":[],\"text\":\"");
            }
            _ => self.body.frame("{\"type\":\"input_text\",\"text\":\""),
        }
        self.body.text(kind, part);
        self.body.frame("\"}");
    }

    fn opaque(&mut self, part: &OpaquePart) {
        self.begin();
        match &part.json {
            Value::Object(item) if !self.ids && item.contains_key("id") => {
                let mut item = item.clone();
                item.shift_remove("id");
                self.body.value(PartKind::Opaque, part.id, &item);
            }
            json => self.body.value(PartKind::Opaque, part.id, json),
        }
    }

    fn tool_round(&mut self, round: &[ToolExchange]) -> Result<(), EncodeError> {
        for exchange in round {
            for part in &exchange.before {
                self.opaque(part);
            }
            self.begin();
            self.body.frame("{\"type\":\"function_call\",\"call_id\":");
            self.body.frame_value(&exchange.call.id);
            self.body.frame(",\"name\":\"");
            self.body.string(PartKind::ToolCall, exchange.call_part, &exchange.call.name);
            self.body.frame("\",\"arguments\":\"");
            self.body.string(PartKind::ToolCall, exchange.call_part, &exchange.call.arguments);
            self.body.frame("\"}");
        }
        for exchange in round {
            self.begin();
            self.body.frame("{\"type\":\"function_call_output\",\"call_id\":");
            self.body.frame_value(&exchange.call.id);
            self.body.frame(",\"output\":");
            self.output(exchange)?;
            self.body.frame("}");
        }
        Ok(())
    }

    /// A plain text where there are no pictures: not every server reads lists.
    fn output(&mut self, exchange: &ToolExchange) -> Result<(), EncodeError> {
        let (id, result) = (exchange.result_part, &exchange.result);
        if result.media.is_empty() {
            self.body.frame("\"");
            self.body.string(PartKind::ToolResult, id, &result.text);
            self.body.frame("\"");
            return Ok(());
        }
        self.body.frame("[{\"type\":\"input_text\",\"text\":\"");
        self.body.string(PartKind::ToolResult, id, &result.text);
        self.body.frame("\"}");
        for media in &result.media {
            self.body.frame(",");
            picture(self.body, id, media)?;
        }
        self.body.frame("]");
        Ok(())
    }

    /// Makes place for a content block of a speaker.
    fn block(&mut self, speaker: Speaker) {
        if self.open == Some(speaker) {
            self.body.frame(",");
            return;
        }
        self.begin();
        self.body.frame("{\"type\":\"message\",\"role\":\"");
        self.body.frame(speaker.role());
        self.body.frame("\",\"content\":[");
        self.open = Some(speaker);
    }

    /// Makes place for an item.
    fn begin(&mut self) {
        self.close();
        if !std::mem::take(&mut self.first) {
            self.body.frame(",");
        }
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.body.frame("]}");
        }
    }
}

/// Writes a picture as a data URL.
fn picture(body: &mut BodyWriter, id: PartId, media: &Media) -> Result<(), EncodeError> {
    let subtype = media.mime.strip_prefix("image/").unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if subtype.is_empty() || !subtype.bytes().all(plain) {
        return Err(EncodeError::Unsupported { what: "media that is no picture" });
    }
    body.frame("{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":\"data:");
    body.frame(&media.mime);
    body.frame(";base64,");
    body.string(PartKind::Media, id, &BASE64.encode(&media.data));
    body.frame("\"}");
    Ok(())
}
