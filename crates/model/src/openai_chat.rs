//! OpenAI chat completions: `chat/completions` of OpenAI and of every server that speaks like it.

use crate::dialect::{Dialect, DialectName, Parse};
use crate::encoded::{BodyWriter, EncodeError, Encoded, PartKind};
use crate::openai_parse::parser;
use crate::openai_request::open_body;
use crate::prompt::{Chat, ChatPart, Params, Prompt, TextPart, ToolExchange, ToolSchema};
use crate::quirks::{LimitField, PrefillForm, Quirks};

/// The chat dialect with what differs between servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenAiChat {
    /// What the server wants.
    pub quirks: Quirks,
}

impl Dialect for OpenAiChat {
    fn name(&self) -> DialectName {
        DialectName::OpenAiChat
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<Encoded, EncodeError> {
        let Prompt::Chat(chat) = prompt else {
            return Err(EncodeError::Unsupported { what: "raw document text in a chat request" });
        };
        if chat.messages.is_empty() && chat.prefill.is_none() {
            return Err(EncodeError::Empty);
        }
        let mut body = BodyWriter::default();
        let limit = match self.quirks.limit {
            LimitField::MaxTokens => "max_tokens",
            LimitField::MaxCompletionTokens => "max_completion_tokens",
        };
        open_body(&mut body, model, params, limit, &self.quirks)?;
        if let Some(alternatives) = params.logprobs {
            body.frame(",\"logprobs\":true");
            if alternatives > 0 {
                body.frame(",\"top_logprobs\":");
                body.frame_value(&alternatives);
            }
        }
        if chat.prefill.is_some() && self.quirks.prefill == PrefillForm::ContinueFinalMessage {
            body.frame(",\"add_generation_prompt\":false,\"continue_final_message\":true");
        }
        schemas(&mut body, &chat.tools);
        messages(&mut body, chat);
        body.frame("}");
        body.finish(DialectName::OpenAiChat, "chat/completions", params.stream)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(DialectName::OpenAiChat, streamed)
    }
}

fn schemas(body: &mut BodyWriter, tools: &[ToolSchema]) {
    if tools.is_empty() {
        return;
    }
    body.frame(",\"tools\":[");
    for (index, tool) in tools.iter().enumerate() {
        if index > 0 {
            body.frame(",");
        }
        body.frame("{\"type\":\"function\",\"function\":");
        let function = serde_json::json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        });
        body.value(PartKind::Schema, tool.id, &function);
        body.frame("}");
    }
    body.frame("]");
}

fn messages(body: &mut BodyWriter, chat: &Chat) {
    body.frame(",\"messages\":[");
    let mut list = MessageList { body, first: true, open: None };
    for part in &chat.messages {
        match part {
            ChatPart::System(text) => list.text("system", PartKind::System, text),
            ChatPart::User(text) => list.text("user", PartKind::User, text),
            ChatPart::Injected(text) => list.text("user", PartKind::Injected, text),
            ChatPart::Assistant(text) => list.text("assistant", PartKind::Assistant, text),
            ChatPart::ToolRound(round) => list.tool_round(round),
            ChatPart::Media(_) | ChatPart::Opaque(_) => {}
        }
    }
    list.close();
    if let Some(prefill) = &chat.prefill {
        list.text("assistant", PartKind::Prefill, prefill);
        list.close();
    }
    body.frame("]");
}

/// Writes messages; a text message stays open as long as its neighbours have its role.
struct MessageList<'a> {
    body: &'a mut BodyWriter,
    first: bool,
    open: Option<&'static str>,
}

impl MessageList<'_> {
    fn text(&mut self, role: &'static str, kind: PartKind, part: &TextPart) {
        if self.open == Some(role) {
            self.body.frame("\\n\\n");
        } else {
            self.close();
            self.begin(role);
            self.body.frame(",\"content\":\"");
            self.open = Some(role);
        }
        self.body.text(kind, part);
    }

    fn tool_round(&mut self, round: &[ToolExchange]) {
        if round.is_empty() {
            return;
        }
        if self.open == Some("assistant") {
            self.open = None;
            self.body.frame("\"");
        } else {
            self.close();
            self.begin("assistant");
            self.body.frame(",\"content\":null");
        }
        self.body.frame(",\"tool_calls\":[");
        for (index, exchange) in round.iter().enumerate() {
            self.body.frame(if index > 0 { ",{\"id\":" } else { "{\"id\":" });
            self.body.frame_value(&exchange.call.id);
            self.body.frame(",\"type\":\"function\",\"function\":{\"name\":\"");
            self.body.string(PartKind::ToolCall, exchange.call_part, &exchange.call.name);
            self.body.frame("\",\"arguments\":\"");
            self.body.string(PartKind::ToolCall, exchange.call_part, &exchange.call.arguments);
            self.body.frame("\"}}");
        }
        self.body.frame("]}");
        for exchange in round {
            self.begin("tool");
            self.body.frame(",\"tool_call_id\":");
            self.body.frame_value(&exchange.call.id);
            self.body.frame(",\"content\":\"");
            self.body.string(PartKind::ToolResult, exchange.result_part, &exchange.result.text);
            self.body.frame("\"}");
        }
    }

    fn begin(&mut self, role: &str) {
        if !std::mem::take(&mut self.first) {
            self.body.frame(",");
        }
        self.body.frame("{\"role\":\"");
        self.body.frame(role);
        self.body.frame("\"");
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.body.frame("\"}");
        }
    }
}
