//! Reading counts of tokens, whatever a server writes there.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// 2^53: up to there every whole number has a form of its own.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Reads a count of tokens. What cannot be one (negative, a fraction, too large, no number) is the largest there
/// is: no request is plausible with it, and what it cost is estimated. The answer beside it is read all the same, also
/// where a number is too large to be read (`1e400`).
pub(crate) fn token_count<'de, D: Deserializer<'de>>(count: D) -> Result<Option<u64>, D::Error> {
    let json = Box::<RawValue>::deserialize(count)?;
    Ok(match serde_json::from_str(json.get()) {
        Ok(Value::Null) => None,
        Ok(Value::Number(count)) => {
            Some(count.as_u64().or_else(|| whole(count.as_f64()?)).unwrap_or(u64::MAX))
        }
        Ok(Value::String(count)) => Some(count.parse().unwrap_or(u64::MAX)),
        _ => Some(u64::MAX),
    })
}

fn whole(count: f64) -> Option<u64> {
    (count.fract() == 0.0 && (0.0..=MAX_WHOLE).contains(&count)).then_some(count as u64)
}

/// The count of a part of a whole, as of what came from a cache. More than the whole is none: what cannot be is paid
/// for as if no part of it were.
pub(crate) fn part_of(whole: u64, part: Option<u64>) -> u64 {
    part.filter(|part| *part <= whole).unwrap_or(0)
}

/// Reads an object of counts. What is no object holds none: a list is not read by the order of the counts.
pub(crate) fn usage_object<'de, T, D>(counts: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let json = Box::<RawValue>::deserialize(counts)?;
    let is_object = json.get().starts_with('{');
    Ok(is_object.then(|| serde_json::from_str(json.get()).ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Usage {
        #[serde(deserialize_with = "token_count")]
        tokens: Option<u64>,
    }

    #[test]
    fn what_is_no_count_is_the_largest_and_spoils_nothing() {
        let read = |json: &str| serde_json::from_str::<Usage>(json).unwrap().tokens;
        for (json, tokens) in [("7", 7), ("7.0", 7), ("\"9\"", 9), ("9223372036854775808", 1 << 63)] {
            assert_eq!(read(&format!("{{\"tokens\":{json}}}")), Some(tokens), "{json}");
        }
        for json in [
            "18446744073709551616",
            "-5",
            "1e30",
            "1e400",
            "-1e99999999999",
            "0.5",
            "true",
            "\"many\"",
            "[1,[2]]",
            "{\"a\":{}}",
        ] {
            assert_eq!(read(&format!("{{\"tokens\":{json}}}")), Some(u64::MAX), "{json}");
        }
        assert_eq!((read("{\"tokens\":null}"), read("{}")), (None, None));
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "usage_object")]
        usage: Option<Usage>,
    }

    #[test]
    fn counts_are_an_object_or_none() {
        let read = |usage: &str| {
            let body = serde_json::from_str::<Body>(&format!("{{\"usage\":{usage}}}")).unwrap();
            body.usage.map(|usage| usage.tokens)
        };
        assert_eq!(read("{\"tokens\":7,\"more\":[1]}"), Some(Some(7)));
        for none in ["[7]", "[]", "[[7],{}]", "null", "7", "-7", "0.5", "1e400", "true", "\"7\""] {
            assert_eq!(read(none), None, "{none}");
        }
        assert!(serde_json::from_str::<Body>("{}").unwrap().usage.is_none());
        assert_eq!(read("{\"tokens\":1,\"tokens\":2}"), None, "said twice");
    }
}
