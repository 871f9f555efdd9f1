//! Conversations for Gemini, and short ways to encode them.

use drawloom_model::encoded::CoveredRange;
use drawloom_model::gemini::Gemini;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::{
    Chat, ChatPart, Dialect, EncodedRequest, Media, OpaquePart, Params, PartId, Prompt, Quirks, TextPart,
    ToolCall, ToolExchange, ToolResult, ToolSchema,
};
use serde_json::{Value, json};

pub(crate) fn text(id: u32, text: &str) -> TextPart {
    TextPart::new(PartId(id), text)
}

pub(crate) fn opaque(id: u32, thinking: Option<&str>, json: Value) -> OpaquePart {
    OpaquePart { id: PartId(id), thinking: thinking.map(str::to_owned), json }
}

pub(crate) fn signature(id: u32, signature: &str) -> OpaquePart {
    opaque(id, None, json!({"thoughtSignature": signature}))
}

pub(crate) fn media(mime: &str, data: &'static [u8]) -> Media {
    Media { mime: mime.to_owned(), data: data.into() }
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

pub(crate) fn tool(id: u32, name: &str) -> ToolSchema {
    ToolSchema {
        id: PartId(id),
        name: name.to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"path": {"type": ["string", "null"]}},
            "additionalProperties": false,
        }),
    }
}

pub(crate) fn conversation() -> Chat {
    Chat {
        tools: vec![tool(0, "read")],
        messages: vec![
            ChatPart::System(text(1, "Be \"kind\".")),
            ChatPart::System(text(2, "AGENTS\n")),
            ChatPart::User(text(3, "Read a and b — 中")),
            ChatPart::Injected(text(4, "Card: files")),
            ChatPart::Assistant(text(5, "Both.")),
            ChatPart::ToolRound(vec![
                exchange(6, "read", r#"{ "path": "a", "n": 1.50 }"#, "A\t1"),
                exchange(8, "read", "", ""),
            ]),
            ChatPart::ToolRound(vec![exchange(10, "read", "not JSON", "C")]),
            ChatPart::User(text(12, "Thanks")),
            ChatPart::System(text(13, "It is late.")),
        ],
        ..Chat::default()
    }
}

pub(crate) fn said(messages: Vec<ChatPart>) -> Chat {
    Chat { messages, ..Chat::default() }
}

pub(crate) fn encode(chat: Chat, params: &Params) -> EncodedRequest {
    Gemini::default().encode(&Prompt::Chat(chat), params, "gemini-2.5-flash").unwrap()
}

pub(crate) fn with(quirks: Quirks, chat: Chat, params: &Params) -> EncodedRequest {
    Gemini { quirks }.encode(&Prompt::Chat(chat), params, "m").unwrap()
}

pub(crate) fn body(encoded: &EncodedRequest) -> Value {
    serde_json::from_slice(encoded.body()).unwrap()
}

/// The body with each part marked by its id, which shows parts and framing at a glance.
pub(crate) fn marked(encoded: &EncodedRequest) -> String {
    let body = encoded.body();
    let piece = |range: std::ops::Range<usize>| String::from_utf8(body[range].to_vec()).unwrap();
    let cover = encoded.cover().into_iter().map(|covered| match covered {
        CoveredRange::Part(range) => format!("⟨{}:{}⟩", range.part.0, piece(range.bytes.clone())),
        CoveredRange::Framing(range) => piece(range),
    });
    cover.collect::<String>().replace(",{\"role\"", "\n,{\"role\"").replace("\"contents\"", "\n\"contents\"")
}
