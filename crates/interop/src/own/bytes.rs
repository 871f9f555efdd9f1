//! Bytes in a JSON line.

use std::borrow::Cow;

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

/// Bytes as JSON: their text where they are UTF-8, so that a person can read them, else base 64. One value has
/// one form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// UTF-8.
    Utf8(String),
    /// Base 64 with padding (RFC 4648 §4).
    Base64(String),
}

impl Data {
    /// The form of some bytes.
    pub fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes)
            .map_or_else(|error| Self::Base64(BASE64.encode(error.as_bytes())), Self::Utf8)
    }

    /// The bytes; none when the base 64 is malformed.
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Utf8(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Base64(text) => BASE64.decode(text.as_bytes()).ok().map(Cow::Owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_readable_and_other_bytes_survive() {
        for bytes in [b"data: {\"a\":1}\n\n".to_vec(), vec![0xff, 0, 1], Vec::new()] {
            let data = Data::of(bytes.clone());
            let json = serde_json::to_string(&data).unwrap();
            let back: Data = serde_json::from_str(&json).unwrap();
            assert_eq!(back.bytes().unwrap().as_ref(), bytes);
        }
        assert!(matches!(Data::of(b"plain".to_vec()), Data::Utf8(_)));
        assert_eq!(Data::Base64("no base 64".into()).bytes(), None);
    }
}
