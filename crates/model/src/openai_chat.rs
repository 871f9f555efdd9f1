//! OpenAI chat completions: `chat/completions` of OpenAI and of every server that speaks like it.
//!
//! What changes from turn to turn comes last in the body, so that two requests of a session share the longest
//! beginning: model and sampling, the form of the answer, tools, messages.

use crate::dialect::{Dialect, DialectName, Parse};
use crate::encoded::{BodyWriter, EncodeError, Encoded, PartKind};
use crate::openai_parse::parser;
use crate::openai_request::open_body;
use crate::prompt::{Params, Prompt, ToolSchema};
use crate::quirks::{LimitField, PrefillForm, Quirks};
use crate::{openai_form, openai_messages};

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
        openai_form::write(&mut body, params, &self.quirks);
        if !chat.tools.is_empty() {
            openai_form::tool_choice(&mut body, &params.tool_choice);
            schemas(&mut body, &chat.tools);
        }
        body.frame(",\"messages\":[");
        openai_messages::write(&mut body, chat, &self.quirks)?;
        body.frame("]}");
        body.finish(DialectName::OpenAiChat, "chat/completions", params.stream)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(DialectName::OpenAiChat, streamed)
    }
}

fn schemas(body: &mut BodyWriter, tools: &[ToolSchema]) {
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
