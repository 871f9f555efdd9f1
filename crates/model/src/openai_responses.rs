//! OpenAI responses: `responses` of OpenAI, and of servers that speak like it (llama.cpp, vLLM, OpenRouter).
//!
//! The request is a list of items instead of messages: messages, calls, results and thinking stand side by side in
//! the order in which they were said. Three decisions:
//!
//! Nothing is kept at the provider (`store` is false), so every request carries the whole conversation and thinking
//! comes back sealed (`reasoning.encrypted_content`) to be sent again. It is asked for only where a server can be told
//! how much to think, because OpenAI refuses the wish for models that do not think. The id of such an item names what
//! the server would have kept; sent along, it makes OpenAI look for items that are not there and check what follows
//! them, so it is left out ([`Quirks::item_ids`](crate::Quirks)).
//!
//! Instructions are items with the role `developer` or `system`, not the field `instructions`: so each keeps its place
//! in the conversation and its own range of bytes, also below the first message.
//!
//! Every part is a content block of its own, so nothing has to be put between neighbours of one role.

use crate::dialect::{Dialect, DialectName, Parse};
use crate::encoded::{BodyWriter, EncodeError, Encoded, PartKind};
use crate::openai_responses_input::input;
use crate::openai_responses_request::open_body;
use crate::prompt::{Params, Prompt, ToolChoice, ToolSchema};
use crate::quirks::Quirks;

pub(crate) use crate::openai_responses_parse::parser;

/// The responses dialect with what differs between servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenAiResponses {
    /// What the server wants.
    pub quirks: Quirks,
}

impl Dialect for OpenAiResponses {
    fn name(&self) -> DialectName {
        DialectName::OpenAiResponses
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<Encoded, EncodeError> {
        let Prompt::Chat(chat) = prompt else {
            return Err(EncodeError::Unsupported { what: "raw document text in a responses request" });
        };
        if chat.prefill.is_some() {
            return Err(EncodeError::Unsupported { what: "a given beginning of the answer" });
        }
        if chat.messages.is_empty() {
            return Err(EncodeError::Empty);
        }
        let mut body = BodyWriter::default();
        open_body(&mut body, model, params, &self.quirks)?;
        tools(&mut body, &chat.tools, &params.tool_choice);
        input(&mut body, &chat.messages, &self.quirks)?;
        body.frame("}");
        body.finish(DialectName::OpenAiResponses, "responses", params.stream)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(streamed)
    }
}

/// Tools are not strict: that would demand schemas without optional arguments, and arguments are checked here anyway.
fn tools(body: &mut BodyWriter, tools: &[ToolSchema], choice: &ToolChoice) {
    if tools.is_empty() {
        return;
    }
    body.frame(",\"tools\":[");
    for (index, tool) in tools.iter().enumerate() {
        if index > 0 {
            body.frame(",");
        }
        let function = serde_json::json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": false,
        });
        body.value(PartKind::Schema, tool.id, &function);
    }
    body.frame("]");
    match choice {
        ToolChoice::Auto => {}
        ToolChoice::None => body.frame(",\"tool_choice\":\"none\""),
        ToolChoice::Required => body.frame(",\"tool_choice\":\"required\""),
        ToolChoice::Tool(name) => {
            body.frame(",\"tool_choice\":{\"type\":\"function\",\"name\":");
            body.frame_value(name);
            body.frame("}");
        }
    }
}
