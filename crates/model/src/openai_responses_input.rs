//! A conversation as the items of a responses request.

use serde::Serialize;
use serde_json::Value;

use crate::encoded::{EncodeError, PartKind};
use crate::openai_media::is_picture;
use crate::parts::Parts;
use crate::prompt::{ChatPart, Media, OpaquePart, PartId, TextPart, ToolExchange};
use crate::quirks::{InstructionRole, Quirks};

/// An item as it is sent.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Item {
    Opaque(String),
    Typed(Typed),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Typed {
    Message { role: &'static str, content: Vec<Block> },
    FunctionCall { call_id: String, name: String, arguments: String },
    FunctionCallOutput { call_id: String, output: Output },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    InputText {
        text: String,
    },
    /// `annotations` is required by the schema; OpenAI forgives its absence, vLLM and Azure do not.
    OutputText {
        annotations: [(); 0],
        text: String,
    },
    InputImage {
        detail: &'static str,
        image_url: String,
    },
}

/// What a tool gave: a plain text where there are no pictures, because not every server reads lists.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Output {
    Text(String),
    Blocks(Vec<Block>),
}

const ASSISTANT: &str = "assistant";
const USER: &str = "user";

/// The items of a conversation.
///
/// # Errors
/// When the dialect has no block for a picture or sound.
pub(crate) fn input<'a>(
    parts: &mut Parts<'a>,
    messages: &'a [ChatPart],
    quirks: &Quirks,
) -> Result<Vec<Item>, EncodeError> {
    let instructions = match quirks.instructions {
        InstructionRole::System => "system",
        InstructionRole::Developer => "developer",
    };
    let mut list = ItemList { parts, items: Vec::new(), ids: quirks.item_ids };
    for part in messages {
        match part {
            ChatPart::System(text) => list.text(instructions, PartKind::System, text),
            ChatPart::User(text) => list.text(USER, PartKind::User, text),
            ChatPart::Injected(text) => list.text(USER, PartKind::Injected, text),
            ChatPart::Assistant(text) => list.text(ASSISTANT, PartKind::Assistant, text),
            ChatPart::Media(part) => {
                let picture = picture(list.parts, part.id, &part.media)?;
                list.block(USER, picture);
            }
            ChatPart::Opaque(part) => list.opaque(part),
            ChatPart::ToolRound(round) => list.tool_round(round)?,
        }
    }
    Ok(list.items)
}

struct ItemList<'l, 'a> {
    parts: &'l mut Parts<'a>,
    items: Vec<Item>,
    ids: bool,
}

impl<'a> ItemList<'_, 'a> {
    fn text(&mut self, role: &'static str, kind: PartKind, part: &'a TextPart) {
        let text = self.parts.text(kind, part);
        let block = match role {
            ASSISTANT => Block::OutputText { annotations: [], text },
            _ => Block::InputText { text },
        };
        self.block(role, block);
    }

    /// Neighbours of one role share a message.
    fn block(&mut self, speaker: &'static str, block: Block) {
        match self.items.last_mut() {
            Some(Item::Typed(Typed::Message { role, content })) if *role == speaker => content.push(block),
            _ => self.items.push(Item::Typed(Typed::Message { role: speaker, content: vec![block] })),
        }
    }

    fn opaque(&mut self, part: &'a OpaquePart) {
        let json = match &part.json {
            Value::Object(item) if !self.ids && item.contains_key("id") => {
                let mut item = item.clone();
                item.shift_remove("id");
                self.parts.value(PartKind::Opaque, part.id, &item)
            }
            json => self.parts.value(PartKind::Opaque, part.id, json),
        };
        self.items.push(Item::Opaque(json));
    }

    fn tool_round(&mut self, round: &'a [ToolExchange]) -> Result<(), EncodeError> {
        for exchange in round {
            for part in &exchange.before {
                self.opaque(part);
            }
            let call_id = exchange.call.id.clone();
            let (part, call) = (exchange.call_part, &exchange.call);
            let name = self.parts.string(PartKind::ToolCall, part, &call.name);
            let arguments = self.parts.string(PartKind::ToolCall, part, &call.arguments);
            self.items.push(Item::Typed(Typed::FunctionCall { call_id, name, arguments }));
        }
        for exchange in round {
            let call_id = exchange.call.id.clone();
            let output = self.output(exchange)?;
            self.items.push(Item::Typed(Typed::FunctionCallOutput { call_id, output }));
        }
        Ok(())
    }

    fn output(&mut self, exchange: &'a ToolExchange) -> Result<Output, EncodeError> {
        let (id, result) = (exchange.result_part, &exchange.result);
        let text = self.parts.string(PartKind::ToolResult, id, &result.text);
        if result.media.is_empty() {
            return Ok(Output::Text(text));
        }
        let mut blocks = vec![Block::InputText { text }];
        for media in &result.media {
            blocks.push(picture(self.parts, id, media)?);
        }
        Ok(Output::Blocks(blocks))
    }
}

/// A picture as a data URL.
fn picture<'a>(parts: &mut Parts<'a>, id: PartId, media: &'a Media) -> Result<Block, EncodeError> {
    if !is_picture(&media.mime) {
        return Err(EncodeError::Unsupported { what: "media that is no picture" });
    }
    let image_url = format!("data:{};base64,{}", media.mime, parts.media(id, media));
    Ok(Block::InputImage { detail: "auto", image_url })
}
