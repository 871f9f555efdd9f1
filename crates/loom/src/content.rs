//! What a node holds: a list of blocks, order kept (spec: loom §5); and how large its text is.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{Digest, DigestWriter};

/// The size of a text. Clusters are counted inside a node and never span two. Sums wrap: a damaged row is found by who
/// compares, and ends nobody's read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// UTF-8 bytes.
    pub bytes: u64,
    pub chars: u64,
    pub graphemes: u64,
}

impl Counts {
    /// The size of `text`.
    pub fn of(text: &str) -> Self {
        let counts = text::grapheme::TextCounts::of(text);
        Self { bytes: counts.bytes as u64, chars: counts.chars as u64, graphemes: counts.graphemes as u64 }
    }

    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_add(other.bytes),
            chars: self.chars.wrapping_add(other.chars),
            graphemes: self.graphemes.wrapping_add(other.graphemes),
        }
    }

    /// Takes another away, which must be part of it.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_sub(other.bytes),
            chars: self.chars.wrapping_sub(other.chars),
            graphemes: self.graphemes.wrapping_sub(other.graphemes),
        }
    }
}

/// How a tool call ended. `Unknown` is a call whose outcome was lost, never success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Ok,
    Error,
    /// Policy or a person said no.
    Denied,
    /// The call was started; what became of it is not known.
    Unknown,
}

/// One piece of a node's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text, white space kept byte for byte.
    Text {
        text: String,
    },
    Thinking {
        text: String,
        /// What the provider wants back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// A picture, as a blob.
    Image {
        /// SHA-256 of the bytes.
        blob: Digest,
        /// Media type, as `image/png`.
        mime: String,
    },
    /// A sound, as a blob.
    Audio {
        /// SHA-256 of the bytes.
        blob: Digest,
        mime: String,
    },
    /// A model's call of a tool.
    ToolCall {
        id: String,
        name: String,
        arguments: Value,
    },
    ToolResult {
        call_id: String,
        status: ToolStatus,
        blocks: Vec<Block>,
    },
    /// What one provider wants back, sent only to the dialect and model it came from.
    Opaque {
        dialect: String,
        model: String,
        json: Value,
    },
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The text of a content: its text blocks, one after another.
pub fn plain_text(blocks: &[Block]) -> Cow<'_, str> {
    let mut texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let Some(first) = texts.next() else { return Cow::Borrowed("") };
    match texts.next() {
        None => Cow::Borrowed(first),
        Some(second) => {
            let mut all = String::from(first);
            all.push_str(second);
            texts.for_each(|text| all.push_str(text));
            Cow::Owned(all)
        }
    }
}

/// As [`plain_text`], with the texts in results of tools.
pub fn whole_text(blocks: &[Block]) -> String {
    let mut all = String::new();
    for block in blocks {
        match block {
            Block::Text { text } => all.push_str(text),
            Block::ToolResult { blocks, .. } => all.push_str(&whole_text(blocks)),
            _ => {}
        }
    }
    all
}

/// How a text names a blob: by the first digits of its digest. What is sent of a node besides its text names its
/// blobs so, and by these names is found where the node is forgotten.
pub fn blob_name(blob: Digest) -> String {
    blob.to_string().chars().take(16).collect()
}

/// Whether a content says nothing: no block, or empty texts only.
pub fn is_empty(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| matches!(block, Block::Text { text } if text.is_empty()))
}

/// SHA-256 of the canonical content alone (RFC 8785 JSON). Not the edit history (spec: loom §6).
///
/// # Errors
/// [`NotCanonical`] when a number in a tool's arguments has no RFC 8785 form.
pub fn content_hash(blocks: &[Block]) -> Result<Digest, NotCanonical> {
    let mut hasher = DigestWriter::default();
    for (at, block) in blocks.iter().enumerate() {
        hasher.update(if at == 0 { b"[" } else { b"," });
        match block {
            Block::Text { text } => text_block(None, text, "text", &mut hasher)?,
            Block::Thinking { text, opaque } => text_block(opaque.as_ref(), text, "thinking", &mut hasher)?,
            block => hasher.update(&canonical(block)?),
        }
    }
    hasher.update(if blocks.is_empty() { b"[]" } else { b"]" });
    Ok(hasher.digest())
}

/// Bytes of a text that are written at a time: as JSON it would be there once more.
const PART: usize = 64 << 10;

/// Adds the RFC 8785 form of a block that is a text and its type, and what its maker put beside them.
fn text_block(
    opaque: Option<&Value>,
    text: &str,
    kind: &str,
    hasher: &mut DigestWriter,
) -> Result<(), NotCanonical> {
    hasher.update(b"{");
    if let Some(opaque) = opaque {
        hasher.update(b"\"opaque\":");
        hasher.update(&canonical(opaque)?);
        hasher.update(b",");
    }
    hasher.update(b"\"text\":\"");
    let mut rest = text;
    while !rest.is_empty() {
        let end = (0..=rest.len().min(PART)).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or_default();
        let (part, behind) = rest.split_at(end);
        // Each character is written by itself, so that parts stand for the whole.
        let json = canonical(&part)?;
        hasher.update(&json[1..json.len() - 1]);
        rest = behind;
    }
    hasher.update(b"\",\"type\":\"");
    hasher.update(kind.as_bytes());
    hasher.update(b"\"}");
    Ok(())
}

/// The RFC 8785 form of a value.
///
/// # Errors
/// [`NotCanonical`] when it has none.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, NotCanonical> {
    serde_json_canonicalizer::to_vec(value).map_err(|error| NotCanonical(error.to_string()))
}

/// A value without a canonical JSON form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this value has no canonical JSON form: {0}")]
pub struct NotCanonical(pub String);

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_change_the_hash() {
        let call = |json: &str| Block::ToolCall {
            id: "c1".into(),
            name: "read".into(),
            arguments: serde_json::from_str(json).unwrap(),
        };
        assert_eq!(content_hash(&[call(r#"{"a":1,"b":2}"#)]), content_hash(&[call(r#"{"b":2,"a":1.0}"#)]));
        assert_ne!(content_hash(&[call(r#"{"a":1}"#)]), content_hash(&[call(r#"{"a":2}"#)]));
    }

    proptest! {
        #[test]
        fn the_hash_is_that_of_the_canonical_form(texts in vec((any::<String>(), "[\\x00-\\x7f]*", 0..4), 0..4)) {
            let block = |(one, two, kind)| match kind {
                0 => Block::Text { text: one },
                1 => Block::Text { text: two },
                2 => Block::Thinking { text: two, opaque: None },
                _ => Block::Thinking { text: two, opaque: Some(one.into()) },
            };
            let blocks: Vec<Block> = texts.into_iter().map(block).collect();
            prop_assert_eq!(content_hash(&blocks), Ok(Digest::of(&canonical(&blocks).unwrap())));
        }
    }

    #[test]
    fn a_long_text_is_hashed_like_a_short_one() {
        let blocks = [Block::text("\u{1f327}\"\n\u{1}".repeat(PART / 3))];
        assert_eq!(content_hash(&blocks), Ok(Digest::of(&canonical(&blocks).unwrap())));
    }

    #[test]
    fn texts_are_joined_in_order_and_other_blocks_are_left_out() {
        let blocks =
            [Block::text("a "), Block::Thinking { text: "hm".into(), opaque: None }, Block::text("b\n")];
        assert_eq!(plain_text(&blocks), "a b\n");
        assert_eq!(plain_text(&[]), "");
    }
}
