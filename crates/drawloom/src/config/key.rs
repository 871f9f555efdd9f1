//! One key of the configuration: what it may hold, what it is when nobody sets it, and what it is for.

use commands::settings::size;
use toml::Value;

use super::path::{join, segments};

/// What a key may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// An http or https address.
    Address,
    /// The name of a place in the environment.
    Variable,
    /// True or false.
    Flag,
    /// A whole number in a range, both ends included.
    Whole(i64, i64),
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// A size in a range, both ends included: bytes, or a text such as `"256 MiB"`.
    Bytes(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
}

/// The end of the range of a size that has none.
pub(crate) const ANY: u64 = u64::MAX;

impl Kind {
    /// Refuses a value that does not fit, saying what is wanted.
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        let fits = match (self, value) {
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Boolean(_)) => true,
            (Self::Address, Value::String(text)) => {
                // Whether plain http may go there depends on `insecure_http`, and is judged when it is used.
                model::endpoint::Endpoint::parse(text, true).map_err(|error| error.hint().to_owned())?;
                true
            }
            (Self::Variable, Value::String(text)) => {
                !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            }
            (Self::Whole(from, to), Value::Integer(number)) => (from..=to).contains(number),
            (Self::Number(from, to), Value::Float(number)) => (from..=to).contains(number),
            (Self::Number(from, to), Value::Integer(number)) => (from..=to).contains(&(*number as f64)),
            (Self::Bytes(from, to), Value::Integer(number)) => {
                u64::try_from(*number).is_ok_and(|number| (from..=to).contains(&number))
            }
            (Self::Bytes(from, to), Value::String(text)) => {
                bytes(text).is_some_and(|number| (from..=to).contains(&number))
            }
            (Self::Choice(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::Texts, Value::Array(items)) => items.iter().all(Value::is_str),
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.wanted()) }
    }

    /// What the key holds, in words.
    pub(crate) fn wanted(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Address => "an address such as https://host/v1".to_owned(),
            Self::Variable => "the name of an environment variable".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Whole(from, to) if to >= i64::from(u32::MAX) => format!("a whole number from {from}"),
            Self::Whole(from, to) => format!("a whole number from {from} to {to}"),
            Self::Number(from, to) => format!("a number from {from} to {to}"),
            Self::Bytes(_, ANY) => "a size such as \"256 MiB\", or bytes".to_owned(),
            Self::Bytes(from, to) => {
                format!("a size such as \"256 KiB\", or bytes, from {} to {}", size(from), size(to))
            }
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Texts => "a list of texts".to_owned(),
        }
    }

    /// The value a person wrote on a command line or in the environment: TOML, or plain text where the key
    /// holds text.
    pub(crate) fn read(self, written: &str) -> Result<Value, String> {
        let toml = toml_value(written);
        let plain = || Value::String(written.to_owned());
        let value = match self {
            Self::Text | Self::Address | Self::Variable | Self::Choice(_) => {
                toml.filter(Value::is_str).unwrap_or_else(plain)
            }
            Self::Bytes(..) => toml.unwrap_or_else(plain),
            Self::Texts => match toml {
                Some(list @ Value::Array(_)) => list,
                Some(text @ Value::String(_)) => Value::Array(vec![text]),
                _ => Value::Array(vec![plain()]),
            },
            Self::Flag | Self::Whole(..) | Self::Number(..) => toml.ok_or_else(|| self.wanted())?,
        };
        self.check(&value)?;
        Ok(value)
    }
}

/// The one value of a piece of TOML.
pub(crate) fn toml_value(written: &str) -> Option<Value> {
    let table: toml::Table = format!("v = {written}").parse().ok()?;
    // Exactly one value: a line break in it could smuggle in a second key.
    if table.len() == 1 { table.into_iter().next().map(|(_, value)| value) } else { None }
}

/// The bytes of a size such as `256 MiB`, `1.5GiB` or `4096`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor: u64 = match text[end..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    let bytes = number * factor as f64;
    (bytes.is_finite() && bytes < i64::MAX as f64).then_some(bytes as u64)
}

/// A key of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// Its dotted path; `NAME` stands for any name, `MODEL` for that of a model.
    pub(crate) path: &'static str,
    /// What it may hold.
    pub(crate) kind: Kind,
    /// Its value when nobody sets it, as TOML; none where there is none.
    pub(crate) default: Option<&'static str>,
    /// The unit of the value; empty where it has none.
    pub(crate) unit: &'static str,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// Whether it is a secret: kept in `keys.toml`, never shown.
    pub(crate) secret: bool,
}

impl Key {
    /// A key without a default.
    pub(crate) const fn new(path: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { path, kind, default: None, unit: "", doc, secret: false }
    }

    /// With a default, as TOML.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// With a unit.
    pub(crate) const fn in_unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// As a secret.
    pub(crate) const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// Whether this row is about the key of that path.
    pub(crate) fn is(&self, path: &str) -> bool {
        let theirs = segments(path);
        let fits = |(ours, theirs): (&str, &String)| match ours {
            "NAME" => is_name(theirs),
            "MODEL" => !theirs.is_empty(),
            ours => ours == theirs,
        };
        self.path.split('.').count() == theirs.len() && self.path.split('.').zip(&theirs).all(fits)
    }

    /// The key of this row in a named section (`providers.box`), or its path where `section` is empty and it has
    /// no name in it; none where it does not stand there.
    pub(crate) fn in_section(&self, section: &str) -> Option<String> {
        match self.around_name() {
            None => section.is_empty().then(|| self.path.to_owned()),
            Some((head, rest)) => {
                let name = section.strip_prefix(head)?.strip_prefix('.')?;
                Some(format!("{head}.{name}.{rest}"))
            }
        }
    }

    /// What stands before and behind the name in the path of a section that has one of its own.
    pub(crate) fn around_name(&self) -> Option<(&'static str, &'static str)> {
        self.path.split_once(".NAME.").or_else(|| self.path.split_once(".MODEL."))
    }

    /// The path with the name filled in as in `path`, as far as the two agree.
    pub(crate) fn named_as(&self, path: &str) -> String {
        let name = segments(path).into_iter().nth(1).filter(|name| !name.is_empty());
        match (self.around_name(), name) {
            (Some((head, rest)), Some(name)) => format!("{head}.{}.{rest}", join(&[name])),
            _ => self.path.to_owned(),
        }
    }
}

/// Whether a provider, preset or agent can be called so.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_binary_units() {
        assert_eq!(bytes("256 MiB"), Some(256 << 20));
        assert_eq!(bytes("1.5GiB"), Some(3 << 29));
        assert_eq!(bytes("4096"), Some(4096));
        for wrong in ["", "MiB", "1 MB", "-1", "1e3", "99999999 TiB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

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
    fn a_value_cannot_bring_a_second_key_along() {
        assert!(Kind::Flag.read("true\nother = 1").is_err());
        assert_eq!(Kind::Text.read("\"a\"\nb = 1").unwrap(), Value::String("\"a\"\nb = 1".into()));
    }

    #[test]
    fn a_name_stands_for_any_name_but_for_no_path() {
        let key = Key::new("providers.NAME.window", Kind::Whole(1, 9), "");
        assert!(key.is("providers.my-box.window"));
        let model = Key::new("models.MODEL.window", Kind::Whole(1, 9), "");
        assert!(model.is("models.\"openai/gpt-5.1\".window") && !model.is("models.openai/gpt-5.1.window"));
        assert_eq!(model.in_section("models.\"a/b.c\"").as_deref(), Some("models.\"a/b.c\".window"));
        assert!(
            !key.is("providers.window") && !key.is("providers.a.b.window") && !key.is("providers..window")
        );
    }
}
