//! Reading counts of tokens, whatever a server writes there.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Reads a count of tokens. What cannot be one (negative, a fraction, too large, no number) is the largest there
/// is: no request is plausible with it, and what it cost is estimated. The answer beside it is read all the same.
pub(crate) fn token_count<'de, D: Deserializer<'de>>(count: D) -> Result<Option<u64>, D::Error> {
    count.deserialize_any(CountVisitor)
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count of tokens")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Self::Value, E> {
        Ok(Some(count))
    }

    fn visit_i64<E>(self, count: i64) -> Result<Self::Value, E> {
        Ok(Some(u64::try_from(count).unwrap_or(u64::MAX)))
    }

    fn visit_f64<E>(self, count: f64) -> Result<Self::Value, E> {
        // 2^53: up to there every whole number has a form of its own.
        let whole = count.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&count);
        Ok(Some(if whole { count as u64 } else { u64::MAX }))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Some(u64::MAX))
    }

    fn visit_str<E>(self, count: &str) -> Result<Self::Value, E> {
        Ok(Some(count.parse().unwrap_or(u64::MAX)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(u64::MAX))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(u64::MAX))
    }
}

/// The count of a part of a whole, as of what came from a cache. More than the whole is none: what cannot be is paid
/// for as if no part of it were.
pub(crate) fn part_of(whole: u64, part: Option<u64>) -> u64 {
    part.filter(|part| *part <= whole).unwrap_or(0)
}

/// Reads an object of counts. What is no object holds none: a list is not read by the order of the counts.
pub(crate) fn usage_object<'de, T, D>(counts: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    counts.deserialize_any(UsageVisitor(PhantomData))
}

struct UsageVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for UsageVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of counts")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
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
        for json in ["18446744073709551616", "-5", "1e30", "0.5", "true", "\"many\"", "[1,[2]]", "{\"a\":{}}"]
        {
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
        for none in ["[7]", "[]", "[[7],{}]", "null", "7", "-7", "0.5", "true", "\"7\""] {
            assert_eq!(read(none), None, "{none}");
        }
        assert!(serde_json::from_str::<Body>("{}").unwrap().usage.is_none());
    }
}
