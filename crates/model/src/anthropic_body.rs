//! Tools and turns as they are sent.

use data_encoding::HEXLOWER;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::anthropic_turns::{Block, Content, Role, Turn};
use crate::encoded::{EncodeError, PartKind};
use crate::openai_media::CacheControl;
use crate::parts::Parts;
use crate::prompt::{Media, PartId, ToolExchange, ToolSchema, ToolStatus};
use crate::tool_arguments;

/// What the user says first where a conversation begins with the assistant: the API wants the user to begin.
const OPENING: &str = "[The assistant begins.]";
/// What stands for an error without words: the API takes no empty one.
const WORDLESS: &str = "The tool failed and said nothing.";

#[derive(Serialize)]
pub(crate) struct Message {
    role: &'static str,
    content: Vec<WrittenBlock>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum WrittenBlock {
    Opaque(String),
    Typed(Typed),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Typed {
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: String,
        name: String,
        input: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        content: ResultContent,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
pub(crate) struct Source {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: String,
    data: String,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ResultContent {
    Text(String),
    Blocks(Vec<Typed>),
}

/// The tools; a schema's range is a JSON value, so the cache mark is inside it.
pub(crate) fn tools<'a>(parts: &mut Parts<'a>, tools: &'a [ToolSchema], marked: bool) -> Vec<String> {
    let schemas = tools.iter().enumerate().map(|(index, tool)| {
        let mut schema = json!({
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
        });
        if marked && index + 1 == tools.len() {
            schema["cache_control"] = json!({"type": "ephemeral"});
        }
        parts.value(PartKind::Schema, tool.id, &schema)
    });
    schemas.collect()
}

/// The messages.
///
/// # Errors
/// When the API has no form for something.
pub(crate) fn messages<'a>(parts: &mut Parts<'a>, turns: &[Turn<'a>]) -> Result<Vec<Message>, EncodeError> {
    let message = |turn: &Turn<'a>| {
        let role = match turn.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        };
        Ok(Message { role, content: blocks(parts, &turn.blocks)? })
    };
    turns.iter().map(message).collect()
}

/// The blocks of one message, or of `system`.
///
/// # Errors
/// When the API has no form for something.
pub(crate) fn blocks<'a>(
    parts: &mut Parts<'a>,
    blocks: &[Block<'a>],
) -> Result<Vec<WrittenBlock>, EncodeError> {
    let written = |block: &Block<'a>| {
        let cache_control = CacheControl::of(block.marked);
        let typed = match block.content {
            Content::Opaque(opaque) if !opaque.json.is_object() => {
                return Err(EncodeError::Unsupported { what: "a block of another dialect" });
            }
            Content::Opaque(opaque) => {
                return Ok(WrittenBlock::Opaque(parts.value(PartKind::Opaque, opaque.id, &opaque.json)));
            }
            Content::Text(kind, part) => Typed::Text { text: parts.text(kind, part), cache_control },
            Content::Media(part) => media(parts, part.id, &part.media, cache_control)?,
            Content::Call(exchange) => call(parts, exchange, cache_control),
            Content::Result(exchange) => result(parts, exchange, cache_control)?,
            Content::Opening => Typed::Text { text: OPENING.to_owned(), cache_control },
        };
        Ok(WrittenBlock::Typed(typed))
    };
    blocks.iter().map(written).collect()
}

/// A picture or a PDF.
fn media<'a>(
    parts: &mut Parts<'a>,
    id: PartId,
    media: &'a Media,
    cache_control: Option<CacheControl>,
) -> Result<Typed, EncodeError> {
    let mut source =
        || Source { kind: "base64", media_type: media.mime.clone(), data: parts.media(id, media) };
    match media.mime.as_str() {
        "image/jpeg" | "image/png" | "image/gif" | "image/webp" => {
            Ok(Typed::Image { source: source(), cache_control })
        }
        "application/pdf" => Ok(Typed::Document { source: source(), cache_control }),
        _ => Err(EncodeError::Unsupported { what: "a sound, or a picture in this format," }),
    }
}

fn call<'a>(parts: &mut Parts<'a>, exchange: &'a ToolExchange, cache_control: Option<CacheControl>) -> Typed {
    let (part, call) = (exchange.call_part, &exchange.call);
    let name = parts.string(PartKind::ToolCall, part, &call.name);
    let input = parts.json(PartKind::ToolCall, part, input(&call.arguments));
    Typed::ToolUse { id: call_id(&call.id), name, input, cache_control }
}

/// The arguments as the JSON object the API demands: as the model wrote them where they are one, else the object
/// they mean, else one that holds what the model wrote.
fn input(arguments: &str) -> String {
    if let Ok(Value::Object(_)) = serde_json::from_str(arguments) {
        return arguments.to_owned();
    }
    let object = match tool_arguments::parse(arguments, true) {
        Ok(object) => object,
        Err(_) => serde_json::Map::from_iter([("arguments".to_owned(), arguments.into())]),
    };
    Value::Object(object).to_string()
}

/// The API takes letters, digits, `_` and `-`; ids of other providers are replaced by ones derived from them.
fn call_id(id: &str) -> String {
    if !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return id.to_owned();
    }
    let digest = HEXLOWER.encode(&Sha256::digest(id.as_bytes()));
    format!("call_{}", digest.get(..24).unwrap_or_default())
}

/// A tool's result. The API takes an error only as words that are not empty; that one with pictures is an error, its
/// words say.
fn result<'a>(
    parts: &mut Parts<'a>,
    exchange: &'a ToolExchange,
    cache_control: Option<CacheControl>,
) -> Result<Typed, EncodeError> {
    let (part, result) = (exchange.result_part, &exchange.result);
    let failed = result.status != ToolStatus::Ok && result.media.is_empty();
    let blank = result.text.trim().is_empty();
    let mut text = || parts.string(PartKind::ToolResult, part, &result.text);
    let content = if result.media.is_empty() {
        let wordless = if failed && blank { WORDLESS } else { "" };
        ResultContent::Text(format!("{wordless}{}", text()))
    } else {
        let mut blocks = Vec::new();
        if !blank {
            blocks.push(Typed::Text { text: text(), cache_control: None });
        }
        for picture in &result.media {
            blocks.push(media(parts, part, picture, None)?);
        }
        ResultContent::Blocks(blocks)
    };
    let is_error = failed.then_some(true);
    Ok(Typed::ToolResult { tool_use_id: call_id(&exchange.call.id), is_error, content, cache_control })
}
