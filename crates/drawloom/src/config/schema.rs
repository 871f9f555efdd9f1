//! A JSON schema of `config.toml`, made of the table of keys: for editors, and for whoever writes the file by
//! program (spec: cli §5). Secrets are not in it: they have a file of their own.

use serde_json::{Map, Value, json};

use super::key::{ANY, Key, Kind};
use super::table::{KEYS, default};

/// Names of providers, presets and agents, as [`super::key::is_name`] takes them.
const NAME: &str = "^[A-Za-z0-9_-]+$";
/// Names of models.
const MODEL: &str = "^.+$";

/// The schema, of draft 2020-12.
pub(crate) fn schema() -> Value {
    let mut whole = section();
    for key in KEYS.iter().filter(|key| !key.secret) {
        let mut at = &mut whole;
        let mut parts = key.path.split('.').peekable();
        while let Some(part) = parts.next() {
            let (kind, name) = match part {
                "NAME" => ("patternProperties", NAME),
                "MODEL" => ("patternProperties", MODEL),
                part => ("properties", part),
            };
            let leaf = parts.peek().is_none();
            let entry = entry(at, kind, name);
            if leaf {
                *entry = described(key);
            } else if entry.is_null() {
                *entry = section();
            }
            at = entry;
        }
    }
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    whole["title"] = "Drawloom: config.toml".into();
    whole
}

fn section() -> Value {
    json!({"type": "object", "additionalProperties": false})
}

/// The place of a name among the properties of an object.
fn entry<'a>(object: &'a mut Value, kind: &str, name: &str) -> &'a mut Value {
    let properties = &mut object[kind];
    if properties.is_null() {
        *properties = Value::Object(Map::new());
    }
    &mut properties[name]
}

fn described(key: &Key) -> Value {
    let mut described = kind(key.kind);
    described["description"] = match key.unit {
        "" => key.doc.into(),
        unit => format!("{} In {unit}.", key.doc).into(),
    };
    if let Some(default) = default(key.path).and_then(|default| serde_json::to_value(default).ok()) {
        described["default"] = default;
    }
    described
}

fn kind(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Address => json!({"type": "string", "pattern": "^https?://"}),
        Kind::Variable => json!({"type": "string", "pattern": "^[A-Za-z0-9_]+$"}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Whole(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
        Kind::Number(from, to) => json!({"type": "number", "minimum": from, "maximum": to}),
        Kind::Bytes(from, to) => {
            let mut number = json!({"type": "integer", "minimum": from});
            if to != ANY {
                number["maximum"] = to.into();
            }
            let text = json!({"type": "string", "pattern": "^[0-9.]+ *(B|[KMGT]iB)?$"});
            json!({"oneOf": [number, text]})
        }
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::is_name;
    use super::*;

    #[test]
    fn every_key_but_the_secrets_is_in_it_with_default_and_meaning() {
        let schema = schema();
        for key in KEYS {
            let pointer = key.path.split('.').map(|part| match part {
                "NAME" => format!("/patternProperties/{NAME}"),
                "MODEL" => format!("/patternProperties/{MODEL}"),
                part => format!("/properties/{part}"),
            });
            let found = schema.pointer(&pointer.collect::<String>());
            assert_eq!(found.is_none(), key.secret, "{}", key.path);
            let Some(found) = found else { continue };
            assert!(found["description"].as_str().unwrap().starts_with(key.doc), "{}", key.path);
            assert_eq!(found.get("default").is_some(), key.default.is_some(), "{}", key.path);
        }
    }

    #[test]
    fn nothing_else_is_allowed_anywhere() {
        fn closed(object: &Value) -> bool {
            let inner =
                ["properties", "patternProperties"].into_iter().filter_map(|kind| object[kind].as_object());
            let mut inner = inner.flat_map(|found| found.values());
            object["type"] != "object" || (object["additionalProperties"] == false && inner.all(closed))
        }
        assert!(closed(&schema()));
    }

    #[test]
    fn names_are_those_the_file_may_have() {
        for (name, good) in [("my-box_2", true), ("a.b", false), ("", false), ("ü", false)] {
            assert_eq!(is_name(name), good, "{name}: keep NAME as it is");
        }
    }
}
