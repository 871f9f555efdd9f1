//! Types of values that TOML has none for: sizes and times.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use text::bytes::size;

/// Size in bytes from `LEAST` to `MOST`, written as a number or as `256 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes<const LEAST: u64 = 0, const MOST: u64 = { u64::MAX }>(pub(crate) u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Bytes<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        bytes(&value).map(Self).ok_or_else(|| D::Error::custom("not a size"))
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Bytes<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&size(self.0))
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Bytes<LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        format!("Bytes_{LEAST}_{MOST}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut number = json_schema!({"type": "integer", "minimum": LEAST});
        if MOST != u64::MAX {
            number.insert("maximum".to_owned(), MOST.into());
        }
        let text = json_schema!({"type": "string", "pattern": "^[0-9.]+ *(B|[KMGT]iB)?$"});
        json_schema!({"format": "size", "unit": "bytes", "oneOf": [number, text]})
    }
}

/// Bytes of a size: a number, or a text such as `256 MiB`, `1.5GiB` or `4096`.
pub(crate) fn bytes(value: &toml::Value) -> Option<u64> {
    let text = match value {
        toml::Value::Integer(number) => return u64::try_from(*number).ok(),
        value => value.as_str()?.trim(),
    };
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

/// Time in seconds, up to a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seconds<const DEFAULT: u64>(pub(crate) u64);

impl<const DEFAULT: u64> Default for Seconds<DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const DEFAULT: u64> JsonSchema for Seconds<DEFAULT> {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": 86_400, "unit": "s"})
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn sizes_are_read_with_binary_units() {
        let bytes = |text: &str| bytes(&text.into());
        assert_eq!(bytes("256 MiB"), Some(256 << 20));
        assert_eq!(bytes("1.5GiB"), Some(3 << 29));
        assert_eq!(bytes("4096"), Some(4096));
        for wrong in ["", "MiB", "1 MB", "-1", "1e3", "99999999 TiB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn limits_hold_in_the_units_of_their_keys() {
        let text = "process_hours = 2\nprocess_log = \"2 KiB\"\nkept_days = 3\nturn_time = 5\nglob = 0.5\ninput_wait = 7\n";
        let limits: crate::config::limits::Limits = toml::from_str(text).unwrap();
        let (commands, seconds) = (limits.of_commands(), Duration::from_secs);
        assert_eq!(commands.processes.time, seconds(2 * 60 * 60));
        assert_eq!(commands.processes.log, 2_048);
        assert_eq!(commands.glob, Duration::from_millis(500));
        assert_eq!(commands.input_wait, seconds(7));
        assert_eq!(limits.of_turns().time, seconds(5));
        assert_eq!(limits.of_kept_files().age, seconds(3 * 24 * 60 * 60));
    }
}
