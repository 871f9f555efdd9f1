//! Parts of conversations for chat completions, and short ways to encode them.

use bytes::Bytes;
use drawloom_model::encoded::CoveredRange;
use drawloom_model::openai_chat::OpenAiChat;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::{
    Chat, ChatPart, Dialect, EncodedRequest, Media, MediaPart, OpaquePart, Params, PartId, Prompt, Quirks,
    TextPart, ToolExchange, ToolResult,
};
use serde_json::Value;

pub(crate) fn text(id: u32, text: &str) -> TextPart {
    TextPart::new(PartId(id), text)
}

pub(crate) fn png() -> Media {
    Media { mime: "image/png".to_owned(), data: Bytes::from_static(b"\x89PNG") }
}

pub(crate) fn picture(id: u32) -> ChatPart {
    ChatPart::Media(MediaPart { id: PartId(id), media: png() })
}

pub(crate) fn exchange(id: u32, call: &str, result: &str, media: Vec<Media>) -> ToolExchange {
    ToolExchange {
        before: Vec::new(),
        call_part: PartId(id),
        call: drawloom_model::ToolCall {
            id: call.to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        },
        result_part: PartId(id + 1),
        result: ToolResult { status: ToolStatus::Ok, text: result.to_owned(), media },
    }
}

pub(crate) fn opaque(id: u32, thinking: Option<&str>, json: Value) -> OpaquePart {
    OpaquePart { id: PartId(id), thinking: thinking.map(str::to_owned), json }
}

pub(crate) fn try_encode(
    chat: Chat,
    params: &Params,
    quirks: Quirks,
) -> Result<EncodedRequest, drawloom_model::EncodeError> {
    OpenAiChat { quirks }.encode(&Prompt::Chat(chat), params, "m")
}

pub(crate) fn encode(messages: Vec<ChatPart>, quirks: Quirks) -> EncodedRequest {
    let chat = Chat { messages, ..Chat::default() };
    try_encode(chat, &Params { stream: false, ..Params::default() }, quirks).unwrap()
}

/// The body with each part marked by its id, which shows parts and framing at a glance.
pub(crate) fn marked(encoded: &EncodedRequest) -> String {
    let body = encoded.body();
    let piece = |range: std::ops::Range<usize>| String::from_utf8(body[range].to_vec()).unwrap();
    let cover = encoded.cover().into_iter().map(|covered| match covered {
        CoveredRange::Part(range) => format!("⟨{}:{}⟩", range.part.0, piece(range.bytes.clone())),
        CoveredRange::Framing(range) => piece(range),
    });
    cover.collect::<String>().replace(",{\"role\"", "\n,{\"role\"")
}

/// The fields of a request that says only `Hi`, but for the usual ones.
pub(crate) fn fields(params: &Params, quirks: Quirks) -> Value {
    let chat = Chat { messages: vec![ChatPart::User(text(1, "Hi"))], ..Chat::default() };
    let encoded = try_encode(chat, params, quirks).unwrap();
    let mut body: Value = serde_json::from_slice(encoded.body()).unwrap();
    for usual in ["model", "messages", "stream", "stream_options"] {
        body.as_object_mut().unwrap().shift_remove(usual);
    }
    body
}
