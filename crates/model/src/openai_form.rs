//! What a chat request asks of the answer as a whole: its form, how much is thought, which tools may be called.

use serde_json::{Value, json};

use crate::encoded::BodyWriter;
use crate::prompt::{OutputSchema, Params, Thinking, ToolChoice};
use crate::quirks::{CacheForm, Quirks, SchemaForm, ThinkingForm};

/// Writes the fields, each with a comma before it.
pub(crate) fn write(body: &mut BodyWriter, params: &Params, quirks: &Quirks) {
    if let Some(schema) = &params.schema {
        field(body, "response_format", &response_format(schema, quirks.schema));
    }
    if let Some(thinking) = params.thinking {
        for (name, value) in thinking_fields(thinking, quirks) {
            field(body, name, &value);
        }
    }
    if let (CacheForm::Key, Some(key)) = (quirks.cache, &params.cache_key) {
        field(body, "prompt_cache_key", &json!(key));
    }
}

/// Writes the choice of tools; only for a request that has some.
pub(crate) fn tool_choice(body: &mut BodyWriter, choice: &ToolChoice) {
    let choice = match choice {
        ToolChoice::Auto => return,
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    };
    field(body, "tool_choice", &choice);
}

fn field(body: &mut BodyWriter, name: &str, value: &Value) {
    body.frame(",\"");
    body.frame(name);
    body.frame("\":");
    body.frame_value(value);
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

fn thinking_fields(thinking: Thinking, quirks: &Quirks) -> Vec<(&'static str, Value)> {
    let effort = quirks.least_effort.nearest(thinking);
    let on = thinking != Thinking::Off;
    match quirks.thinking {
        ThinkingForm::Effort => vec![("reasoning_effort", json!(effort))],
        ThinkingForm::ReasoningObject => {
            vec![("reasoning", json!({"effort": if on { effort } else { "none" }}))]
        }
        ThinkingForm::TemplateSwitch => vec![("chat_template_kwargs", json!({"enable_thinking": on}))],
        ThinkingForm::SwitchAndEffort if on => {
            vec![("thinking", json!({"type": "enabled"})), ("reasoning_effort", json!(effort))]
        }
        ThinkingForm::SwitchAndEffort => vec![("thinking", json!({"type": "disabled"}))],
        // The last two are no forms of this dialect.
        ThinkingForm::None | ThinkingForm::Budget | ThinkingForm::Level => Vec::new(),
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
