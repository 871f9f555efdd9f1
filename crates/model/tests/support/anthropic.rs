//! Conversations for the messages dialect, and short ways to encode them.

use drawloom_model::anthropic::Anthropic;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::{
    Chat, ChatPart, Dialect, EncodeError, EncodedRequest, Params, PartId, Prompt, Quirks, TextPart, ToolCall,
    ToolExchange, ToolResult, ToolSchema,
};
use serde_json::{Value, json};

pub(crate) fn text(id: u32, text: &str) -> TextPart {
    TextPart::new(PartId(id), text)
}

pub(crate) fn user(id: u32, words: &str) -> ChatPart {
    ChatPart::User(text(id, words))
}

pub(crate) fn assistant(id: u32, words: &str) -> ChatPart {
    ChatPart::Assistant(text(id, words))
}

pub(crate) fn exchange(id: u32, name: &str, arguments: &str, result: &str) -> ToolExchange {
    ToolExchange {
        before: Vec::new(),
        call_part: PartId(id),
        call: ToolCall { id: format!("call_{id}"), name: name.to_owned(), arguments: arguments.to_owned() },
        result_part: PartId(id + 1),
        result: ToolResult { status: ToolStatus::Ok, text: result.to_owned(), media: Vec::new() },
    }
}

pub(crate) fn tool(id: u32) -> ToolSchema {
    ToolSchema {
        id: PartId(id),
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }
}

pub(crate) fn conversation() -> Chat {
    Chat {
        tools: vec![tool(0)],
        messages: vec![
            ChatPart::System(text(1, "Be \"kind\".")),
            ChatPart::System(text(2, "AGENTS\n")),
            user(3, "Read a and b — 中"),
            ChatPart::Injected(text(4, "Card: files")),
            assistant(5, "Both."),
            ChatPart::ToolRound(vec![
                exchange(6, "read", r#"{"path": "a"}"#, "A\t1"),
                exchange(8, "read", r#"{"path":"b"}"#, ""),
            ]),
            ChatPart::ToolRound(vec![exchange(10, "read", "", "C")]),
            ChatPart::System(text(12, "It is noon.")),
            user(13, "Thanks"),
        ],
        stable: 2,
        ..Chat::default()
    }
}

pub(crate) fn chat(messages: Vec<ChatPart>) -> Chat {
    Chat { messages, ..Chat::default() }
}

pub(crate) fn encode_with(
    quirks: Quirks,
    chat: Chat,
    params: &Params,
) -> Result<EncodedRequest, EncodeError> {
    Anthropic { quirks }.encode(&Prompt::Chat(chat), params, "m")
}

pub(crate) fn body(encoded: &EncodedRequest) -> Value {
    serde_json::from_slice(encoded.body()).unwrap()
}

pub(crate) fn unsupported(result: &Result<EncodedRequest, EncodeError>) -> bool {
    matches!(result, Err(EncodeError::Unsupported { .. }))
}
