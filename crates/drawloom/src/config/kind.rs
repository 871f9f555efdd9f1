//! What a key takes.

use ::policy::{Policy, PolicyRule};
use serde_json::Value as Json;
use store::{ServerError, ServerOptions};
use text::bytes::size;
use toml::Value;

use super::values::bytes;

/// What a key takes; ranges with both ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text,
    /// An http or https address.
    Address,
    /// One of a server of tools, which may have a query.
    ServerAddress,
    /// The name of an environment variable.
    Variable,
    /// The URL of a database, without a password.
    Database,
    Flag,
    Whole(i64, i64),
    Number(f64, f64),
    /// Bytes, or a text such as `"256 MiB"`.
    Bytes(u64, u64),
    Choice(Vec<String>),
    Texts,
    /// Rules on calls of tools.
    Rules,
}

impl Kind {
    /// As the schema of a key says.
    pub(super) fn of(schema: &Json) -> Self {
        let (least, most) = (&schema["minimum"], &schema["maximum"]);
        match (schema["format"].as_str(), schema["type"].as_str()) {
            (Some("uri"), _) => Self::Address,
            (Some("server-address"), _) => Self::ServerAddress,
            (Some("variable"), _) => Self::Variable,
            (Some("database"), _) => Self::Database,
            (Some("rules"), _) => Self::Rules,
            (Some("size"), _) => {
                let number = &schema["oneOf"][0];
                Self::Bytes(
                    number["minimum"].as_u64().unwrap_or(0),
                    number["maximum"].as_u64().unwrap_or(u64::MAX),
                )
            }
            (_, Some("boolean")) => Self::Flag,
            (_, Some("integer")) => {
                Self::Whole(least.as_i64().unwrap_or(i64::MIN), most.as_i64().unwrap_or(i64::MAX))
            }
            (_, Some("number")) => {
                Self::Number(least.as_f64().unwrap_or(f64::MIN), most.as_f64().unwrap_or(f64::MAX))
            }
            (_, Some("array")) => Self::Texts,
            _ => match words(schema) {
                words if words.is_empty() => Self::Text,
                words => Self::Choice(words),
            },
        }
    }

    /// Refuses a value that does not fit, saying what is wanted.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        let fits = match (self, value) {
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Boolean(_)) => true,
            (Self::Address | Self::ServerAddress, Value::String(text)) => {
                // Who reads addresses passes over line ends and tabs.
                if text.contains(char::is_control) {
                    return Err(format!("{} without control characters", self.wanted()));
                }
                if !text.contains("://") {
                    return Err(format!("{}: write http:// or https:// before it", self.wanted()));
                }
                let text = match (self, text.split_once('?')) {
                    (Self::ServerAddress, Some((before, query))) if !query.contains('#') => before,
                    _ => text,
                };
                // Whether plain http may go there depends on `insecure_http`, and is judged when it is used.
                model::endpoint::Endpoint::parse(text, true)
                    .map_err(|error| format!("{}: {}", self.wanted(), error.hint()))?;
                true
            }
            (Self::Database, Value::String(text)) => {
                ServerOptions::check_url(text).map_err(|error| match error {
                    ServerError::Url(why) => format!("{}; {why}", self.wanted()),
                    other => other.to_string(),
                })?;
                true
            }
            (Self::Variable, Value::String(text)) => {
                !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            }
            (Self::Whole(from, to), Value::Integer(number)) => (from..=to).contains(&number),
            (Self::Number(from, to), Value::Float(number)) => (from..=to).contains(&number),
            (Self::Number(from, to), Value::Integer(number)) => (*from..=*to).contains(&(*number as f64)),
            (Self::Bytes(from, to), value) => {
                bytes(value).is_some_and(|number| (*from..=*to).contains(&number))
            }
            (Self::Choice(words), Value::String(text)) => words.contains(text),
            (Self::Texts, Value::Array(items)) => items.iter().all(Value::is_str),
            (Self::Rules, value) => {
                let read: Result<Vec<PolicyRule>, _> = value.clone().try_into();
                let rules = read.map_err(|error| format!("{}: {}", self.wanted(), error.message()))?;
                Policy::new(rules).map_err(|why| format!("{}: {why}", self.wanted()))?;
                true
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.wanted()) }
    }

    /// What the key takes, in words.
    pub(crate) fn wanted(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Address => "an address such as https://host/v1".to_owned(),
            Self::ServerAddress => "an address such as https://host/mcp?team=7".to_owned(),
            Self::Variable => "the name of an environment variable".to_owned(),
            Self::Database => "a database such as postgres://USER@HOST/DATABASE".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Whole(i64::MIN, _) => "a whole number".to_owned(),
            Self::Whole(from, to) if *to >= i64::from(u32::MAX) => format!("a whole number from {from}"),
            Self::Whole(from, to) => format!("a whole number from {from} to {to}"),
            Self::Number(from, to) => format!("a number from {from} to {to}"),
            Self::Bytes(0, u64::MAX) => "a size such as \"256 MiB\", or bytes".to_owned(),
            Self::Bytes(from, u64::MAX) => {
                format!("a size such as \"256 MiB\", or bytes, from {}", size(*from))
            }
            Self::Bytes(from, to) => {
                format!("a size such as \"256 KiB\", or bytes, from {} to {}", size(*from), size(*to))
            }
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Texts => "a list of texts".to_owned(),
            Self::Rules => "tables with a decision and patterns".to_owned(),
        }
    }

    /// The value a person wrote on a command line or in the environment: TOML, or plain text where the key
    /// holds text.
    pub(crate) fn read(&self, written: &str) -> Result<Value, String> {
        let toml = toml_value(written);
        let plain = || Value::String(written.to_owned());
        let value = match self {
            Self::Address | Self::ServerAddress
                if !written.contains("://") && !written.starts_with(['"', '\'']) =>
            {
                Value::String(with_scheme(written))
            }
            Self::Text
            | Self::Address
            | Self::ServerAddress
            | Self::Variable
            | Self::Database
            | Self::Choice(_) => toml.filter(Value::is_str).unwrap_or_else(plain),
            Self::Bytes(..) => toml.unwrap_or_else(plain),
            Self::Texts => match toml {
                Some(list @ Value::Array(_)) => list,
                Some(text @ Value::String(_)) => Value::Array(vec![text]),
                _ => Value::Array(vec![plain()]),
            },
            Self::Flag | Self::Whole(..) | Self::Number(..) | Self::Rules => {
                toml.ok_or_else(|| self.wanted())?
            }
        };
        self.check(&value)?;
        Ok(value)
    }
}

/// An address that may have been written without its scheme: that of a server on this machine or of this network, which
/// needs no `https`, else that of one elsewhere.
fn with_scheme(written: &str) -> String {
    let host = written.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port.trim_end_matches(']'));
    // A word alone is no address, nor is one with something else than a port.
    let is_host = host.contains(['.', ':']) || host == "localhost";
    if !is_host || port.is_some_and(|port| port.is_empty() || !port.bytes().all(|b| b.is_ascii_hexdigit())) {
        return written.to_owned();
    }
    let plain = format!("http://{written}");
    let is_near = model::endpoint::Endpoint::parse(&plain, false).is_ok();
    if is_near { plain } else { format!("https://{written}") }
}

/// The words of a choice, with or without a meaning each.
fn words(schema: &Json) -> Vec<String> {
    let each = schema["oneOf"].as_array().into_iter().flatten().chain([schema]);
    let words =
        each.flat_map(|one| one.get("const").into_iter().chain(one["enum"].as_array().into_iter().flatten()));
    words.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// The one value of a piece of TOML.
fn toml_value(written: &str) -> Option<Value> {
    let table: toml::Table = format!("v = {written}").parse().ok()?;
    // Exactly one value: a line break in it could smuggle in a second key.
    if table.len() == 1 { table.into_iter().next().map(|(_, value)| value) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_text_and_numbers_must_be_numbers() {
        assert_eq!(Kind::Text.read("a = b").unwrap(), Value::String("a = b".into()));
        assert_eq!(Kind::Text.read("\"quoted\"").unwrap(), Value::String("quoted".into()));
        assert_eq!(Kind::Text.read("12").unwrap(), Value::String("12".into()));
        assert_eq!(Kind::Whole(0, 9).read("7").unwrap(), Value::Integer(7));
        assert!(Kind::Whole(0, 9).read("10").unwrap_err().contains("0 to 9"));
        assert!(Kind::Flag.read("yes").is_err());
        assert_eq!(Kind::Texts.read("one").unwrap(), Value::Array(vec!["one".into()]));
    }

    #[test]
    fn an_address_needs_no_scheme() {
        let read = |written: &str| Kind::Address.read(written).unwrap();
        for (written, address) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("localhost:8080/v1", "http://localhost:8080/v1"),
            ("host.example/v1", "https://host.example/v1"),
            ("192.168.1.5:8000", "http://192.168.1.5:8000"),
            ("[fd00::1]:8080/v1", "http://[fd00::1]:8080/v1"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ] {
            assert_eq!(read(written), Value::String(address.to_owned()));
        }
        // What stands in the file is taken as it is.
        for (written, fits) in
            [("127.0.0.1:1", false), ("http:/127.0.0.1:1", false), ("http://127.0.0.1:1", true)]
        {
            let checked = Kind::Address.check(&Value::String(written.to_owned()));
            assert_eq!(checked.is_ok(), fits, "{written}");
            assert!(
                fits || checked.unwrap_err().ends_with("write http:// or https:// before it"),
                "{written}"
            );
        }
        for wrong in ["not an address", "", "ftp://host", "word", "http//127.0.0.1:8080", "unix:/tmp/s"] {
            assert!(Kind::Address.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_address_of_a_server_of_tools_alone_has_a_query() {
        let address = "https://mcp.example.com/mcp?project_ref=abc&read_only=true";
        assert_eq!(Kind::ServerAddress.read(address).unwrap(), Value::String(address.to_owned()));
        assert!(Kind::Address.read(address).is_err());
        for wrong in ["https://a.example/mcp?a=b#c", "https://me:word@a.example/?a=b", "ftp://a.example/?a=b"]
        {
            assert!(Kind::ServerAddress.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_has_no_control_characters() {
        for wrong in ["http://localhost:8080/v1\n", "http://local\thost:8080", "localhost:8080\u{1b}"] {
            assert!(Kind::Address.read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_value_cannot_bring_a_second_key_along() {
        assert!(Kind::Flag.read("true\nother = 1").is_err());
        assert_eq!(Kind::Text.read("\"a\"\nb = 1").unwrap(), Value::String("\"a\"\nb = 1".into()));
    }
}
