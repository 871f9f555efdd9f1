//! A byte stream without the styles of a terminal.

/// Bytes of a sequence that is held back at most: a link has an address of this length.
const LONGEST: usize = 4096;
const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// Takes the escape sequences of ECMA-48 that have an end out of a byte stream as it arrives: colours, movements, links,
/// titles. What only begins as one stands as it is, so that nothing is taken out with it.
///
/// For any chunking the pieces joined are the same.
#[derive(Debug, Clone, Default)]
pub struct UnstyledStream {
    /// A sequence that has no end yet.
    held: Vec<u8>,
}

/// What a sequence is, so far.
enum Sequence {
    Begun,
    Ended,
    None,
}

impl UnstyledStream {
    /// A stream that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that stand between sequences.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if self.held.is_empty() && byte != ESC {
                out.push(byte);
                continue;
            }
            self.held.push(byte);
            match self.sequence() {
                Sequence::Begun => {}
                Sequence::Ended => self.held.clear(),
                // Another one may begin there.
                Sequence::None if byte == ESC => {
                    self.held.pop();
                    out.append(&mut self.held);
                    self.held.push(ESC);
                }
                Sequence::None => out.append(&mut self.held),
            }
        }
        out
    }

    /// What was held back, once nothing more comes. The stream begins anew.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// What is held, whose last byte is new.
    fn sequence(&self) -> Sequence {
        let [ESC, rest @ ..] = self.held.as_slice() else { return Sequence::None };
        let is = |is_begun: bool, is_ended: bool| match (is_ended, is_begun) {
            (true, _) => Sequence::Ended,
            (false, true) if self.held.len() < LONGEST => Sequence::Begun,
            _ => Sequence::None,
        };
        match rest {
            [] | [b'[' | b']' | 0x20..=0x2f] => Sequence::Begun,
            // Parameters, and a final byte.
            [b'[', .., last] => is(matches!(last, 0x20..=0x3f), matches!(last, 0x40..=0x7e)),
            // A text up to BEL or ESC \.
            [b']', .., ESC, last] => is(false, *last == b'\\'),
            [b']', .., last] => is(*last >= 0x20 || *last == ESC, *last == BEL),
            // A set of characters.
            [0x20..=0x2f, .., last] => is(matches!(last, 0x20..=0x2f), matches!(last, 0x30..=0x7e)),
            _ => Sequence::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unstyled(pieces: &[&[u8]]) -> String {
        let mut stream = UnstyledStream::new();
        let mut out: Vec<u8> = pieces.iter().flat_map(|piece| stream.push(piece)).collect();
        out.extend(stream.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn styles_go_and_what_only_begins_as_one_stays() {
        for (text, plain) in [
            ("a\x1b[01;31m\x1b[Kb\x1b[m\x1b[Kc", "abc"),
            ("\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\.", "link."),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b(Bplain", "plain"),
            ("end \x1b", "end \x1b"),
            ("\x1b[1;2", "\x1b[1;2"),
            ("\x1b[1\nline", "\x1b[1\nline"),
            ("\x1b]no end\nline", "\x1b]no end\nline"),
            ("\x1bPdevice", "\x1bPdevice"),
            ("\x1b\x1b[1mbold", "\x1bbold"),
            ("\x1b]open\x1b[1mbold", "\x1b]open\x1b[1mbold"),
        ] {
            assert_eq!(unstyled(&[text.as_bytes()]), plain, "{text:?}");
        }
        let long = format!("\x1b]{}", "x".repeat(LONGEST));
        assert_eq!(unstyled(&[long.as_bytes()]), long);
    }

    proptest! {
        #[test]
        fn where_it_is_cut_makes_no_difference(
            text in "(\\x1b|\\[|\\]|[0-9;m\\\\\\n]|\\x07|\\(B|a){0,24}", cut in 0usize..24
        ) {
            let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
            prop_assert_eq!(unstyled(&[first, second]), unstyled(&[text.as_bytes()]));
        }
    }
}
