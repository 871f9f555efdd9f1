//! A body as a tree, and where each part of the prompt lies in it.
//!
//! A dialect builds its body as one serialisable tree in which a mark stands for every part. The tree is serialised
//! once, then each mark is replaced by its part, and the place of the mark is the part's range. Marks are drawn at
//! random for each request, so that no text of a prompt can hold one.

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::dialect::DialectName;
use crate::encoded::{EncodeError, EncodedRequest, PartKind, PartRange};
use crate::prompt::{Media, PartId, TextPart};

/// Hex digits of the random beginning of a mark.
const NONCE: usize = 16;
/// Hex digits of a part's number behind it.
const NUMBER: usize = 8;

/// The parts of one request, each behind its mark.
pub(crate) struct Parts<'a> {
    nonce: String,
    parts: Vec<Part<'a>>,
    /// Bytes of all parts before they are escaped.
    size: usize,
}

struct Part<'a> {
    id: PartId,
    kind: PartKind,
    content: Content<'a>,
}

enum Content<'a> {
    /// Text inside a JSON string.
    Text(&'a str),
    /// JSON in the place of a string that holds nothing but the mark.
    Json(String),
    /// Bytes as base64 inside a JSON string.
    Base64(&'a [u8]),
}

impl<'a> Parts<'a> {
    /// No part yet.
    ///
    /// # Errors
    /// [`EncodeError::NoRandomness`] when the system gives no random numbers.
    pub(crate) fn new() -> Result<Self, EncodeError> {
        let mut random = [0; NONCE / 2];
        getrandom::fill(&mut random).map_err(|_| EncodeError::NoRandomness)?;
        Ok(Self { nonce: HEXLOWER.encode(&random), parts: Vec::new(), size: 0 })
    }

    /// The mark of a text.
    pub(crate) fn text(&mut self, kind: PartKind, part: &'a TextPart) -> String {
        self.string(kind, part.id, &part.text)
    }

    /// The mark of a text that belongs to a part. Inside [`PartKind::Opaque`] the quotes next to the text are the
    /// part's own.
    pub(crate) fn string(&mut self, kind: PartKind, id: PartId, text: &'a str) -> String {
        self.mark(kind, id, text.len(), Content::Text(text))
    }

    /// The mark of a JSON value; the string in the tree holds nothing else.
    pub(crate) fn value(&mut self, kind: PartKind, id: PartId, value: &impl Serialize) -> String {
        // Strings, numbers and values cannot fail.
        self.json(kind, id, serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
    }

    /// The mark of JSON that is written already; the string in the tree holds nothing else.
    pub(crate) fn json(&mut self, kind: PartKind, id: PartId, json: String) -> String {
        self.mark(kind, id, json.len(), Content::Json(json))
    }

    /// The mark of a picture or a sound, as base64.
    pub(crate) fn media(&mut self, id: PartId, media: &'a Media) -> String {
        self.mark(PartKind::Media, id, BASE64.encode_len(media.data.len()), Content::Base64(&media.data))
    }

    fn mark(&mut self, kind: PartKind, id: PartId, size: usize, content: Content<'a>) -> String {
        let number = self.parts.len();
        self.parts.push(Part { id, kind, content });
        self.size += size;
        let mut mark = String::with_capacity(NONCE + NUMBER);
        mark.push_str(&self.nonce);
        HEXLOWER.encode_append(&(number as u32).to_be_bytes(), &mut mark);
        mark
    }

    /// The request: the tree with its marks replaced.
    ///
    /// # Errors
    /// [`EncodeError::Coverage`] when a part has no mark in the tree, or more than one.
    pub(crate) fn request(
        self,
        dialect: DialectName,
        path: &str,
        stream: bool,
        tree: &impl Serialize,
    ) -> Result<EncodedRequest, EncodeError> {
        let form = serde_json::to_string(tree).map_err(|_| EncodeError::Coverage { part: 0 })?;
        self.fill(dialect, path, stream, &form)
    }

    /// The request of a tree that is serialised already.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub(crate) fn fill(
        self,
        dialect: DialectName,
        path: &str,
        stream: bool,
        form: &str,
    ) -> Result<EncodedRequest, EncodeError> {
        let mut body = Vec::with_capacity(form.len() + self.size + self.size / 8);
        let mut ranges = Vec::with_capacity(self.parts.len());
        let mut at = 0;
        for mark in memchr::memmem::find_iter(form.as_bytes(), &self.nonce) {
            let end = mark + NONCE + NUMBER;
            let number =
                form.get(mark + NONCE..end).and_then(|digits| usize::from_str_radix(digits, 16).ok());
            let part = number.and_then(|number| self.parts.get(number));
            let Some(Part { id, kind, content }) = part else {
                return Err(EncodeError::Coverage { part: 0 });
            };
            let quoted = |at: usize| form.as_bytes().get(at) == Some(&b'"');
            let (opens, closes) = (quoted(mark.wrapping_sub(1)), quoted(end));
            let is_json = matches!(content, Content::Json(_));
            body.extend_from_slice(&form.as_bytes()[at..mark - usize::from(is_json && opens)]);
            at = end + usize::from(is_json && closes);
            let own_quotes = *kind == PartKind::Opaque && !is_json;
            let from = body.len() - usize::from(own_quotes && opens);
            match content {
                Content::Text(text) => escaped(text, &mut body),
                Content::Json(json) => body.extend_from_slice(json.as_bytes()),
                Content::Base64(bytes) => {
                    let from = body.len();
                    body.resize(from + BASE64.encode_len(bytes.len()), 0);
                    BASE64.encode_mut(bytes, &mut body[from..]);
                }
            }
            if own_quotes && closes {
                body.push(b'"');
                at += 1;
            }
            ranges.push(PartRange { part: *id, kind: *kind, bytes: from..body.len() });
        }
        body.extend_from_slice(&form.as_bytes()[at..]);
        if ranges.len() != self.parts.len() {
            let lost = self.parts.iter().find(|part| ranges.iter().all(|range| range.part != part.id));
            return Err(EncodeError::Coverage { part: lost.map_or(0, |part| part.id.0) });
        }
        EncodedRequest::new(dialect, path, Bytes::from(body), ranges, stream)
    }
}

/// Appends a text as it stands inside a JSON string, without quotes.
fn escaped(text: &str, body: &mut Vec<u8>) {
    struct Unquoted(CompactFormatter);

    impl Formatter for Unquoted {
        fn begin_string<W: ?Sized + std::io::Write>(&mut self, _: &mut W) -> std::io::Result<()> {
            Ok(())
        }

        fn end_string<W: ?Sized + std::io::Write>(&mut self, _: &mut W) -> std::io::Result<()> {
            Ok(())
        }
    }

    // Writing to memory cannot fail.
    let _ = text.serialize(&mut Serializer::with_formatter(body, Unquoted(CompactFormatter)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(parts: Parts<'_>, tree: &serde_json::Value) -> Result<EncodedRequest, EncodeError> {
        parts.request(DialectName::OpenAiChat, "p", false, tree)
    }

    #[test]
    fn marks_are_replaced_where_they_stand_and_ranges_follow_the_body() {
        let (said, media) =
            (TextPart::new(PartId(1), "a\"b\n"), Media { mime: String::new(), data: "M".into() });
        let mut parts = Parts::new().unwrap();
        let text = parts.text(PartKind::User, &said);
        let value = parts.value(PartKind::Schema, PartId(2), &json!({"k": "v"}));
        let opaque = parts.string(PartKind::Opaque, PartId(3), "t");
        let media = parts.media(PartId(4), &media);
        let tree =
            json!({"s": value, "m": format!("data:{media}"), "o": opaque, "t": format!("x\n\n{text}")});
        let request = request(parts, &tree).unwrap();
        assert_eq!(request.body(), r#"{"s":{"k":"v"},"m":"data:TQ==","o":"t","t":"x\n\na\"b\n"}"#.as_bytes());
        let cut =
            |at: usize| std::str::from_utf8(&request.body()[request.ranges()[at].bytes.clone()]).unwrap();
        assert_eq!([cut(0), cut(1), cut(2), cut(3)], [r#"{"k":"v"}"#, "TQ==", r#""t""#, r#"a\"b\n"#]);
        assert_eq!(request.ranges().iter().map(|range| range.part.0).collect::<Vec<_>>(), [2, 4, 3, 1]);
    }

    #[test]
    fn a_part_that_is_lost_or_said_twice_is_refused() {
        let said = TextPart::new(PartId(1), "a");
        let mut parts = Parts::new().unwrap();
        parts.text(PartKind::User, &said);
        assert_eq!(request(parts, &json!({})).unwrap_err().code(), "coverage");
        let mut parts = Parts::new().unwrap();
        let mark = parts.text(PartKind::User, &said);
        assert_eq!(request(parts, &json!([mark, mark])).unwrap_err().code(), "coverage");
    }
}
