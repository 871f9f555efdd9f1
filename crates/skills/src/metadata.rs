//! What a skill needs, as OpenClaw writes it: `requires`, `os` and `always` of its `metadata`, in YAML or JSON.

use serde_json::Value;
use text::finding::Finding;
use workspace::frontmatter::{FieldError, Map, ScalarKind, YamlValue};

/// The names that `metadata` has for OpenClaw.
const ALIASES: [&str; 3] = ["openclaw", "clawdbot", "clawdis"];

/// Most entries of one list of needs.
const MOST: usize = 64;

/// Needs of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Offered whatever it `requires`, on the systems it is for.
    pub always: bool,
    /// Systems it is for; any without one.
    pub os: Vec<String>,
    /// Programs it needs, each of them.
    pub bins: Vec<String>,
    /// Programs of which it needs one.
    pub any_bins: Vec<String>,
    /// Variables of the environment that must be set. Their values are not looked at.
    pub env: Vec<String>,
    /// Settings of OpenClaw that must be on.
    pub config: Vec<String>,
}

/// What of a machine decides whether a skill can work on it.
pub trait Machine {
    /// Whether a program of this name can be run.
    fn has_program(&self, name: &str) -> bool;
    /// Whether a variable of the environment is set to something.
    fn has_variable(&self, name: &str) -> bool;
    /// The system, in the words of Rust.
    fn os(&self) -> &str {
        std::env::consts::OS
    }
}

impl Requirements {
    /// Needs by a frontmatter; what cannot be read of them is an error, as nobody knows whether it is there.
    pub(crate) fn of(fields: &Map, findings: &mut Vec<Finding>) -> Self {
        let top = Value::Object(json_map(fields));
        let metadata = match fields.get("metadata") {
            Ok(found) => found.map(|value| written(json(value), findings)).unwrap_or_default(),
            Err(error) => {
                findings.push(two_spellings(&error));
                Value::Null
            }
        };
        for name in ALIASES.iter().filter(|name| !metadata[*name].is_null() && !metadata[*name].is_object()) {
            findings.push(unread(&format!("metadata.{name}"), "a mapping is wanted"));
        }
        let of_openclaw = ALIASES.iter().map(|name| &metadata[name]).find(|value| value.is_object());
        let first = |key: &str| {
            let places = [of_openclaw.unwrap_or(&Value::Null), &top];
            places.into_iter().map(|place| &place[key]).find(|value| !value.is_null()).unwrap_or(&Value::Null)
        };
        let requires = first("requires");
        if !requires.is_null() && !requires.is_object() {
            findings.push(unread("requires", "a mapping is wanted"));
        }
        let mut list = |name: &str, value: &Value| match texts(value) {
            Ok(texts) => texts,
            Err(why) => {
                findings.push(unread(name, why));
                Vec::new()
            }
        };
        Self {
            always: matches!(first("always"), Value::Bool(true)),
            os: list("os", first("os")),
            bins: list("requires.bins", &requires["bins"]),
            any_bins: list("requires.anyBins", &requires["anyBins"]),
            env: list("requires.env", &requires["env"]),
            config: list("requires.config", &requires["config"]),
        }
    }

    /// What of them a machine does not have, in words.
    pub fn missing(&self, machine: &impl Machine) -> Vec<String> {
        let os = match machine.os() {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        let mut missing = Vec::new();
        if !self.os.is_empty() && !self.os.iter().any(|wanted| wanted == os) {
            missing.push(format!("os {}", self.os.join(" or ")));
        }
        if self.always {
            return missing;
        }
        let without = |names: &[String], has: &dyn Fn(&str) -> bool| -> Vec<String> {
            names.iter().filter(|name| !has(name)).cloned().collect()
        };
        let program = |name: &str| machine.has_program(name);
        missing.extend(without(&self.bins, &program).iter().map(|name| format!("bin {name}")));
        if !self.any_bins.is_empty() && without(&self.any_bins, &program).len() == self.any_bins.len() {
            missing.push(format!("bin {}", self.any_bins.join(" or ")));
        }
        let variable = |name: &str| machine.has_variable(name);
        missing.extend(without(&self.env, &variable).iter().map(|name| format!("env {name}")));
        // They are settings of another program.
        missing.extend(self.config.iter().map(|path| format!("config {path}")));
        missing
    }
}

/// `metadata` as it is meant: a text is JSON in a line.
fn written(metadata: Value, findings: &mut Vec<Finding>) -> Value {
    let Value::String(text) = &metadata else { return metadata };
    serde_json::from_str(text).unwrap_or_else(|error| {
        let why = format!("it is no mapping and no JSON: {error}");
        findings.push(match text.contains("requires") {
            true => unread("metadata", &why),
            false => Finding::warning("metadata", why),
        });
        Value::Null
    })
}

fn texts(value: &Value) -> Result<Vec<String>, &'static str> {
    let entries = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(entries) => entries.as_slice(),
        single => std::slice::from_ref(single),
    };
    if entries.len() > MOST {
        return Err("it has more than 64 entries");
    }
    let text =
        |entry: &Value| entry.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    entries.iter().map(|entry| text(entry).ok_or("a list of texts is wanted")).collect()
}

fn unread(name: &str, why: &str) -> Finding {
    Finding::error("requirements", format!("{name} cannot be read: {why}"))
}

fn two_spellings(error: &FieldError) -> Finding {
    Finding::error("wrong_kind", error.to_string())
}

fn json(value: &YamlValue) -> Value {
    match value {
        YamlValue::Scalar(scalar) => match scalar.kind() {
            ScalarKind::Null => Value::Null,
            ScalarKind::Bool(value) => Value::Bool(value),
            ScalarKind::Integer(_) | ScalarKind::Float(_) | ScalarKind::Text => scalar.source().into(),
        },
        YamlValue::List(entries) => entries.iter().map(json).collect(),
        YamlValue::Map(map) => Value::Object(json_map(map)),
    }
}

fn json_map(map: &Map) -> serde_json::Map<String, Value> {
    map.iter().map(|(key, value)| (key.to_owned(), json(value))).collect()
}
