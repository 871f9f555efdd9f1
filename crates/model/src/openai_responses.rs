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

use serde::Serialize;
use serde_json::{Value, json};

use crate::dialect::{Dialect, DialectName, Parse};
use crate::encoded::{EncodeError, EncodedRequest, PartKind};
use crate::openai_responses_input::{Item, input};
use crate::parts::Parts;
use crate::prompt::{OutputSchema, Params, Prompt, Thinking, ToolChoice};
use crate::quirks::{CacheForm, Quirks, SchemaForm, ThinkingForm};

pub(crate) use crate::openai_responses_parse::parser;

/// The responses dialect with what differs between servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenAiResponses {
    pub quirks: Quirks,
}

/// What changes rarely stands first: two bodies of a session share the longest beginning.
#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    store: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u8>,
    #[serde(flatten)]
    thinking: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    input: Vec<Item>,
}

impl Dialect for OpenAiResponses {
    fn name(&self) -> DialectName {
        DialectName::OpenAiResponses
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<EncodedRequest, EncodeError> {
        let Prompt::Chat(chat) = prompt else {
            return Err(EncodeError::Unsupported { what: "raw document text in a responses request" });
        };
        if chat.prefill.is_some() {
            return Err(EncodeError::Unsupported { what: "a given beginning of the answer" });
        }
        if chat.messages.is_empty() {
            return Err(EncodeError::Empty);
        }
        let quirks = &self.quirks;
        admit(params, quirks)?;
        let mut parts = Parts::new()?;
        let sealed = (quirks.thinking != ThinkingForm::None).then_some("reasoning.encrypted_content");
        let scored = params.logprobs.map(|_| "message.output_text.logprobs");
        // Tools are not strict: that would demand schemas without optional arguments, and arguments are checked here
        // anyway.
        let tools = chat.tools.iter().map(|tool| {
            let function = json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": false,
            });
            parts.value(PartKind::Schema, tool.id, &function)
        });
        let request = Request {
            model,
            store: false,
            include: sealed.into_iter().chain(scored).collect(),
            stream: params.stream.then_some(true),
            temperature: params.temperature.filter(|_| quirks.sampling),
            top_p: params.top_p.filter(|_| quirks.sampling),
            max_output_tokens: params.max_tokens,
            top_logprobs: params.logprobs.filter(|&alternatives| alternatives > 0),
            thinking: thinking_fields(params.thinking, quirks)?,
            text: params.schema.as_ref().map(|schema| form(schema, quirks.schema)),
            prompt_cache_key: params.cache_key.as_deref().filter(|_| quirks.cache == CacheForm::Key),
            tools: tools.collect(),
            tool_choice: if chat.tools.is_empty() { None } else { tool_choice(&params.tool_choice) },
            input: input(&mut parts, &chat.messages, quirks)?,
        };
        parts.request(DialectName::OpenAiResponses, "responses", params.stream, &request)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(streamed)
    }
}

/// Refuses what the API has no field for. What a server is known not to take is left out instead, as everywhere.
fn admit(params: &Params, quirks: &Quirks) -> Result<(), EncodeError> {
    params.check()?;
    let refused = [
        (params.n > 1, "more than one choice in a request"),
        (!params.stop.is_empty(), "a text that ends the answer"),
        (params.seed.is_some() && quirks.seed, "a seed"),
        (params.min_p.is_some() && quirks.min_p, "min_p"),
    ];
    match refused.into_iter().find(|(refused, _)| *refused) {
        Some((_, what)) => Err(EncodeError::Unsupported { what }),
        None => Ok(()),
    }
}

/// A summary is asked for with the thinking: without it nothing of it would be seen.
fn thinking_fields(thinking: Option<Thinking>, quirks: &Quirks) -> Result<Value, EncodeError> {
    let Some(thinking) = thinking else { return Ok(json!({})) };
    let effort = quirks.least_effort.nearest(thinking);
    Ok(match quirks.thinking {
        ThinkingForm::None => json!({}),
        ThinkingForm::Effort | ThinkingForm::ReasoningObject if thinking == Thinking::Off => {
            json!({"reasoning": {"effort": effort}})
        }
        ThinkingForm::Effort | ThinkingForm::ReasoningObject => {
            json!({"reasoning": {"effort": effort, "summary": "auto"}})
        }
        ThinkingForm::TemplateSwitch => {
            json!({"chat_template_kwargs": {"enable_thinking": thinking != Thinking::Off}})
        }
        _ => return Err(EncodeError::Unsupported { what: "this way to say how much to think" }),
    })
}

fn form(schema: &OutputSchema, form: SchemaForm) -> Value {
    json!({"format": match form {
        SchemaForm::Schema => {
            json!({"type": "json_schema", "name": schema.name, "schema": schema.schema, "strict": true})
        }
        SchemaForm::Object => json!({"type": "json_object"}),
    }})
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "name": name})),
    }
}
