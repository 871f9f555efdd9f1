//! OpenAI chat completions: `chat/completions` of OpenAI and of every server that speaks like it.
//!
//! What changes from turn to turn comes last in the body, so that two requests of a session share the longest
//! beginning: model and sampling, the form of the answer, tools, messages.

use serde::Serialize;
use serde_json::{Value, json};

use crate::dialect::{Dialect, DialectName, Parse};
use crate::encoded::{EncodeError, EncodedRequest, PartKind};
use crate::openai_messages::{Message, messages};
use crate::openai_parse::parser;
use crate::openai_request::Parameters;
use crate::parts::Parts;
use crate::prompt::{OutputSchema, Params, Prompt, Thinking, ToolChoice};
use crate::quirks::{CacheForm, PrefillForm, Quirks, SchemaForm, ThinkingForm};

/// The chat dialect with what differs between servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenAiChat {
    pub quirks: Quirks,
}

#[derive(Serialize)]
struct Request<'a> {
    #[serde(flatten)]
    parameters: Parameters<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_generation_prompt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continue_final_message: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(flatten)]
    thinking: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    messages: Vec<Message>,
}

impl Dialect for OpenAiChat {
    fn name(&self) -> DialectName {
        DialectName::OpenAiChat
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<EncodedRequest, EncodeError> {
        let Prompt::Chat(chat) = prompt else {
            return Err(EncodeError::Unsupported { what: "raw document text in a chat request" });
        };
        if chat.messages.is_empty() && chat.prefill.is_none() {
            return Err(EncodeError::Empty);
        }
        let quirks = &self.quirks;
        let mut parts = Parts::new()?;
        let continues = chat.prefill.is_some() && quirks.prefill == PrefillForm::ContinueFinalMessage;
        let tools = chat.tools.iter().map(|tool| {
            let function = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            });
            json!({"type": "function", "function": parts.value(PartKind::Schema, tool.id, &function)})
        });
        let request = Request {
            parameters: Parameters::new(model, params, quirks.limit, quirks)?,
            logprobs: params.logprobs.map(|_| true),
            top_logprobs: params.logprobs.filter(|&alternatives| alternatives > 0),
            add_generation_prompt: continues.then_some(false),
            continue_final_message: continues.then_some(true),
            response_format: params.schema.as_ref().map(|schema| response_format(schema, quirks.schema)),
            thinking: thinking_fields(params.thinking, quirks),
            prompt_cache_key: params.cache_key.as_deref().filter(|_| quirks.cache == CacheForm::Key),
            tool_choice: if chat.tools.is_empty() { None } else { tool_choice(&params.tool_choice) },
            tools: tools.collect(),
            messages: messages(&mut parts, chat, quirks)?,
        };
        parts.request(DialectName::OpenAiChat, "chat/completions", params.stream, &request)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(DialectName::OpenAiChat, streamed)
    }
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

fn response_format(form: &OutputSchema, quirk: SchemaForm) -> Value {
    match quirk {
        SchemaForm::Object => json!({"type": "json_object"}),
        SchemaForm::Schema => json!({
            "type": "json_schema",
            "json_schema": {"name": form.name, "strict": is_strict(&form.schema), "schema": form.schema},
        }),
    }
}

/// Whether a schema may be held to the letter: OpenAI does so only where every object names all of its properties
/// as required and allows no others, and refuses the request otherwise.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Array(all) => all.iter().all(is_strict),
        Value::Object(members) => {
            let strict = match members.get("properties").and_then(Value::as_object) {
                Some(properties) => {
                    let required = members.get("required").and_then(Value::as_array);
                    members.get("additionalProperties") == Some(&Value::Bool(false))
                        && properties.keys().all(|name| {
                            required.is_some_and(|names| names.iter().any(|required| required == name))
                        })
                }
                None => members.get("type").is_none_or(|kind| kind != "object"),
            };
            strict && members.values().all(is_strict)
        }
        _ => true,
    }
}

fn thinking_fields(thinking: Option<Thinking>, quirks: &Quirks) -> Value {
    let Some(thinking) = thinking else { return json!({}) };
    let effort = quirks.least_effort.nearest(thinking);
    let on = thinking != Thinking::Off;
    match quirks.thinking {
        ThinkingForm::Effort => json!({"reasoning_effort": effort}),
        ThinkingForm::ReasoningObject => json!({"reasoning": {"effort": if on { effort } else { "none" }}}),
        ThinkingForm::TemplateSwitch => json!({"chat_template_kwargs": {"enable_thinking": on}}),
        ThinkingForm::SwitchAndEffort if on => {
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": effort})
        }
        ThinkingForm::SwitchAndEffort => json!({"thinking": {"type": "disabled"}}),
        // The last two are no forms of this dialect.
        ThinkingForm::None | ThinkingForm::Budget | ThinkingForm::Level => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_strict_when_every_object_in_it_is() {
        let inner = json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"],
            "additionalProperties": false});
        let outer = |inner: Value, required: Value| {
            json!({"type": "object", "properties": {"a": {"type": "array", "items": inner}},
                "required": required, "additionalProperties": false})
        };
        assert!(is_strict(&outer(inner.clone(), json!(["a"]))));
        assert!(!is_strict(&outer(inner, json!([]))), "a property that may be missing");
        let open = json!({"type": "object", "properties": {}, "required": []});
        assert!(!is_strict(&outer(open, json!(["a"]))), "an object that allows others");
        assert!(!is_strict(&outer(json!({"type": "object"}), json!(["a"]))), "an object of anything");
    }
}
