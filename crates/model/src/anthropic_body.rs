//! Writes tools and turns, with the range of every part.

use data_encoding::{BASE64, HEXLOWER};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::anthropic_turns::{Block, Content, Role, Turns};
use crate::encoded::{BodyWriter, EncodeError, PartKind};
use crate::prompt::{Chat, Media, PartId, ToolExchange, ToolSchema, ToolStatus};
use crate::quirks::{CacheForm, Quirks};
use crate::tool_arguments;

const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
/// What the user says first where a conversation begins with the assistant: the API wants the user to begin.
const OPENING: &str = "{\"type\":\"text\",\"text\":\"[The assistant begins.]\"";
/// What stands for an error without words: the API takes no empty one.
const WORDLESS: &str = "The tool failed and said nothing.";

/// Writes `tools`, `system` and `messages`, what was thought only with `thinking`.
///
/// # Errors
/// When nothing is left to answer to, or the API has no form for something.
pub(crate) fn conversation(
    body: &mut BodyWriter,
    chat: &Chat,
    quirks: &Quirks,
    thinking: bool,
) -> Result<(), EncodeError> {
    let mut turns = Turns::of(chat, quirks.instructions_inside, thinking)?;
    if quirks.cache == CacheForm::Marks {
        turns.mark(!chat.tools.is_empty());
    }
    schemas(body, &chat.tools, turns.tools_marked);
    if !turns.system.is_empty() {
        body.frame(",\"system\":");
        blocks(body, &turns.system)?;
    }
    body.frame(",\"messages\":[");
    for (index, turn) in turns.messages.iter().enumerate() {
        body.frame(if index > 0 { ",{\"role\":\"" } else { "{\"role\":\"" });
        body.frame(match turn.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        });
        body.frame("\",\"content\":");
        blocks(body, &turn.blocks)?;
        body.frame("}");
    }
    body.frame("]");
    Ok(())
}

fn schemas(body: &mut BodyWriter, tools: &[ToolSchema], marked: bool) {
    for (index, tool) in tools.iter().enumerate() {
        body.frame(if index > 0 { "," } else { ",\"tools\":[" });
        let mut schema = serde_json::json!({
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
        });
        // A schema's range is a JSON value, so the mark is inside it.
        if marked && index + 1 == tools.len() {
            schema["cache_control"] = serde_json::json!({"type": "ephemeral"});
        }
        body.value(PartKind::Schema, tool.id, &schema);
    }
    if !tools.is_empty() {
        body.frame("]");
    }
}

fn blocks(body: &mut BodyWriter, blocks: &[Block<'_>]) -> Result<(), EncodeError> {
    for (index, block) in blocks.iter().enumerate() {
        body.frame(if index > 0 { "," } else { "[" });
        match block.content {
            Content::Opaque(opaque) => {
                if !opaque.json.is_object() {
                    return Err(EncodeError::Unsupported { what: "a block of another dialect" });
                }
                body.value(PartKind::Opaque, opaque.id, &opaque.json);
                continue;
            }
            Content::Text(kind, part) => {
                body.frame("{\"type\":\"text\",\"text\":\"");
                body.text(kind, part);
                body.frame("\"");
            }
            Content::Media(part) => media(body, part.id, &part.media)?,
            Content::Call(exchange) => call(body, exchange),
            Content::Result(exchange) => result(body, exchange)?,
            Content::Opening => body.frame(OPENING),
        }
        body.frame(if block.marked { MARK } else { "" });
        body.frame("}");
    }
    body.frame("]");
    Ok(())
}

/// A picture or a PDF, without its closing brace.
fn media(body: &mut BodyWriter, id: PartId, media: &Media) -> Result<(), EncodeError> {
    body.frame(match media.mime.as_str() {
        "image/jpeg" | "image/png" | "image/gif" | "image/webp" => "{\"type\":\"image\"",
        "application/pdf" => "{\"type\":\"document\"",
        _ => return Err(EncodeError::Unsupported { what: "a sound, or a picture in this format," }),
    });
    body.frame(",\"source\":{\"type\":\"base64\",\"media_type\":");
    body.frame_value(&media.mime);
    body.frame(",\"data\":\"");
    body.string(PartKind::Media, id, &BASE64.encode(&media.data));
    body.frame("\"}");
    Ok(())
}

fn call(body: &mut BodyWriter, exchange: &ToolExchange) {
    body.frame("{\"type\":\"tool_use\",\"id\":");
    body.frame_value(&call_id(&exchange.call.id));
    body.frame(",\"name\":\"");
    body.string(PartKind::ToolCall, exchange.call_part, &exchange.call.name);
    body.frame("\",\"input\":");
    body.raw(PartKind::ToolCall, exchange.call_part, &input(&exchange.call.arguments));
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

/// A tool's result, without its closing brace. The API takes an error only as words that are not empty; that one
/// with pictures is an error, its words say.
fn result(body: &mut BodyWriter, exchange: &ToolExchange) -> Result<(), EncodeError> {
    let (part, result) = (exchange.result_part, &exchange.result);
    let failed = result.status != ToolStatus::Ok && result.media.is_empty();
    let blank = result.text.trim().is_empty();
    body.frame("{\"type\":\"tool_result\",\"tool_use_id\":");
    body.frame_value(&call_id(&exchange.call.id));
    if failed {
        body.frame(",\"is_error\":true");
    }
    body.frame(",\"content\":");
    if result.media.is_empty() {
        body.frame("\"");
        body.frame(if failed && blank { WORDLESS } else { "" });
        body.string(PartKind::ToolResult, part, &result.text);
        body.frame("\"");
        return Ok(());
    }
    body.frame("[");
    if !blank {
        body.frame("{\"type\":\"text\",\"text\":\"");
        body.string(PartKind::ToolResult, part, &result.text);
        body.frame("\"},");
    }
    for (index, picture) in result.media.iter().enumerate() {
        body.frame(if index > 0 { "," } else { "" });
        media(body, part, picture)?;
        body.frame("}");
    }
    body.frame("]");
    Ok(())
}
