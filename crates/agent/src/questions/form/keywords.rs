//! Keywords of a form's schema: those that are looked at and told. Others are left out, as the types of the protocol do: whoever
//! fills it in would not know of them.

use serde_json::{Map, Value, json};
use tools::ArgumentSchema;

use super::is_plain;

const OF_ALL: [&str; 5] = ["type", "title", "description", "default", "const"];
const OF_TEXT: [&str; 8] =
    ["enum", "enumNames", "oneOf", "anyOf", "minLength", "maxLength", "pattern", "format"];
const OF_NUMBER: [&str; 6] =
    ["enum", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"];
const FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

/// Schema of a form with the keywords of its fields that are looked at.
pub(super) fn of_form(properties: &Map<String, Value>, required: &Value) -> Value {
    let fields: Map<String, Value> =
        properties.iter().map(|(name, property)| (name.clone(), of_field(property))).collect();
    let is_required =
        |name: &&String| required.as_array().is_some_and(|all| all.iter().any(|one| one == *name));
    let required: Vec<&String> = properties.keys().filter(is_required).collect();
    json!({"type": "object", "properties": fields, "required": required})
}

fn of_field(property: &Value) -> Value {
    let keys: &[&str] = match property["type"].as_str() {
        Some("string") => &OF_TEXT,
        Some("number" | "integer") => &OF_NUMBER,
        Some("boolean") => &["enum"],
        Some("array") => &["minItems", "maxItems", "items"],
        _ => &[],
    };
    taken(property, keys)
}

fn taken(property: &Value, keys: &[&str]) -> Value {
    let keyword = |key: &&str| {
        let value = match *key {
            "items" => taken(&property["items"], &OF_TEXT),
            "oneOf" | "anyOf" => titled(&property[*key])?,
            key => property.get(key)?.clone(),
        };
        is_looked_at(key, &value).then(|| ((*key).to_owned(), value))
    };
    let mut taken: Map<String, Value> = OF_ALL.iter().chain(keys).filter_map(keyword).collect();
    if let Some(only) = taken.get("const").cloned().filter(|_| !taken.contains_key("enum")) {
        taken.insert("enum".to_owned(), json!([only]));
    }
    Value::Object(taken)
}

/// Choices by their values and titles alone; none where one of them has no value.
fn titled(choices: &Value) -> Option<Value> {
    let choice = |one: &Value| {
        let value = one["const"].as_str()?;
        Some(
            one["title"]
                .as_str()
                .map_or_else(|| json!({"const": value}), |title| json!({"const": value, "title": title})),
        )
    };
    choices.as_array()?.iter().map(choice).collect()
}

/// Whether a keyword is told, and its value one of it: that of `exclusiveMinimum` is no `true`, as it was in draft 4.
fn is_looked_at(key: &str, value: &Value) -> bool {
    let is_told = match key {
        "pattern" => value.as_str().is_some_and(is_plain),
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        // 0.3 is no multiple of 0.1 for a computer.
        "multipleOf" => value.as_f64().is_some_and(|step| step.fract() == 0.0),
        _ => true,
    };
    is_told && ArgumentSchema::with_formats(&json!({key: value})).is_ok()
}
