//! UTF-8 from byte chunks that may be split anywhere.

use std::str;

/// Decodes a byte stream to text as it arrives.
///
/// A sequence that a chunk leaves incomplete is held back (at most three bytes) until the next one. Bytes that
/// cannot be UTF-8 become U+FFFD, one for each maximal invalid part, exactly as `String::from_utf8_lossy` would
/// write them for the whole; only an incomplete sequence at the very end is dropped and counted instead of
/// replaced (spec: loom §4: the bytes stay in the response).
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    held: [u8; 4],
    held_len: usize,
    replaced: usize,
}

impl Utf8Stream {
    /// A stream that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that `bytes` completes.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut out = String::with_capacity(bytes.len());
        self.push_to(bytes, &mut out);
        out
    }

    /// As [`Utf8Stream::push`], appended to `out`.
    pub fn push_to(&mut self, bytes: &[u8], out: &mut String) {
        let rest = self.complete_held(bytes, out);
        let mut chunks = rest.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            // Anywhere but at the end a byte follows that breaks the sequence.
            if chunks.peek().is_none() && is_incomplete(invalid) {
                self.hold(invalid);
            } else if !invalid.is_empty() {
                self.replace(out);
            }
        }
    }

    /// Ends the stream. The answer is how many bytes of an incomplete sequence were dropped, 0 to 3; the stream
    /// begins anew.
    pub fn finish(&mut self) -> usize {
        let dropped = self.held_len;
        *self = Self::default();
        dropped
    }

    /// Number of U+FFFD put in for invalid bytes so far.
    #[must_use]
    pub fn replaced(&self) -> usize {
        self.replaced
    }

    /// Feeds bytes to the held sequence until it is complete or broken; gives back the bytes not used.
    fn complete_held<'a>(&mut self, mut bytes: &'a [u8], out: &mut String) -> &'a [u8] {
        while self.held_len > 0 {
            let Some((next, rest)) = bytes.split_first() else { return bytes };
            self.held[self.held_len] = *next;
            let sequence = &self.held[..=self.held_len];
            if let Ok(text) = str::from_utf8(sequence) {
                out.push_str(text);
                self.held_len = 0;
                bytes = rest;
            } else if is_incomplete(sequence) {
                self.held_len += 1;
                bytes = rest;
            } else {
                // What was held is one maximal invalid part; the byte that broke it is looked at afresh.
                self.held_len = 0;
                self.replace(out);
            }
        }
        bytes
    }

    fn hold(&mut self, sequence: &[u8]) {
        self.held[..sequence.len()].copy_from_slice(sequence);
        self.held_len = sequence.len();
    }

    fn replace(&mut self, out: &mut String) {
        self.replaced += 1;
        out.push(char::REPLACEMENT_CHARACTER);
    }
}

fn is_incomplete(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_character_is_held_back() {
        let mut stream = Utf8Stream::new();
        let emoji = "🎉".as_bytes();
        assert_eq!(stream.push(&emoji[..1]), "");
        assert_eq!(stream.push(&emoji[1..3]), "");
        assert_eq!(stream.push(&emoji[3..]), "🎉");
        assert_eq!(stream.finish(), 0);
    }

    #[test]
    fn an_incomplete_end_is_dropped_and_counted() {
        let mut stream = Utf8Stream::new();
        assert_eq!(stream.push(b"ok\xF0\x9F\x8E"), "ok");
        assert_eq!(stream.finish(), 3);
        assert_eq!(stream.replaced(), 0);
    }

    #[test]
    fn a_broken_sequence_is_replaced_and_what_broke_it_is_kept() {
        let mut stream = Utf8Stream::new();
        assert_eq!(stream.push(b"\xE2\x82"), "");
        assert_eq!(stream.push(b"A\xFF"), "\u{FFFD}A\u{FFFD}");
        assert_eq!(stream.push(b"\xC2\xE2\x82"), "\u{FFFD}");
        assert_eq!(stream.push(b"\xAC"), "€");
        assert_eq!(stream.replaced(), 3);
    }
}
