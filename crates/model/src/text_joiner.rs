//! Text from pieces that may end in the middle of a character.
//!
//! Tokens are not characters: some servers send a delta with half of a UTF-8 sequence, or an escaped
//! surrogate whose other half comes in the next delta. The joiner holds such a beginning back until
//! the rest arrives. What is still held back when the answer ends is dropped from the text (spec:
//! loom §4); it stays in the stored response.

/// Joins pieces of UTF-8 (and of escaped surrogates, which arrive as WTF-8) into text.
#[derive(Debug, Default)]
pub(crate) struct TextJoiner {
    held: Vec<u8>,
}

impl TextJoiner {
    /// The text completed by `piece`. Bytes that can become no text give U+FFFD.
    pub(crate) fn push(&mut self, piece: &[u8]) -> String {
        if self.held.is_empty()
            && let Ok(text) = std::str::from_utf8(piece)
        {
            return text.to_owned();
        }
        let mut rest = std::mem::take(&mut self.held);
        rest.extend_from_slice(piece);
        let mut text = String::with_capacity(rest.len());
        let mut at = 0;
        while at < rest.len() {
            let (step, used) = next(&rest[at..]);
            match step {
                Step::Text(valid) => text.push_str(valid),
                Step::Char(c) => text.push(c),
                Step::Wait => {
                    self.held = rest[at..].to_vec();
                    break;
                }
            }
            at += used;
        }
        text
    }
}

enum Step<'a> {
    Text(&'a str),
    Char(char),
    Wait,
}

fn next(bytes: &[u8]) -> (Step<'_>, usize) {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return (Step::Text(text), bytes.len()),
        Err(error) => error,
    };
    if error.valid_up_to() > 0 {
        let valid = &bytes[..error.valid_up_to()];
        return (Step::Text(std::str::from_utf8(valid).unwrap_or_default()), valid.len());
    }
    let Some(invalid) = error.error_len() else { return (Step::Wait, 0) };
    match bytes {
        // A high surrogate: wait for its low half, join the two, or give it up.
        [0xED, 0xA0..=0xAF] | [0xED, 0xA0..=0xAF, 0x80..=0xBF] => (Step::Wait, 0),
        [0xED, 0xA0..=0xAF, 0x80..=0xBF, 0xED] | [0xED, 0xA0..=0xAF, 0x80..=0xBF, 0xED, 0xB0..=0xBF] => {
            (Step::Wait, 0)
        }
        [0xED, a @ 0xA0..=0xAF, b @ 0x80..=0xBF, 0xED, c @ 0xB0..=0xBF, d @ 0x80..=0xBF, ..] => {
            let high = (u32::from(a & 0x0F) << 6) | u32::from(b & 0x3F);
            let low = (u32::from(c & 0x0F) << 6) | u32::from(d & 0x3F);
            let joined = 0x1_0000 + (high << 10) + low;
            (Step::Char(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER)), 6)
        }
        [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => (Step::Char(char::REPLACEMENT_CHARACTER), 3),
        _ => (Step::Char(char::REPLACEMENT_CHARACTER), invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[&[u8]]) -> String {
        let mut joiner = TextJoiner::default();
        pieces.iter().map(|piece| joiner.push(piece)).collect()
    }

    #[test]
    fn a_character_split_over_pieces_is_whole() {
        assert_eq!(joined(&[b"a\xe4", b"\xb8", b"\xadb"]), "a中b");
    }

    #[test]
    fn a_beginning_without_its_end_is_dropped() {
        assert_eq!(joined(&[b"ok \xe4\xb8"]), "ok ");
    }

    #[test]
    fn escaped_surrogates_join_over_pieces() {
        assert_eq!(joined(&[b"\xed\xa0\xbd", b"\xed\xb8\x80!"]), "\u{1F600}!");
    }

    #[test]
    fn what_can_become_no_text_is_marked() {
        assert_eq!(joined(&[b"a\xffb"]), "a\u{FFFD}b");
        assert_eq!(joined(&[b"\xed\xa0\xbdx"]), "\u{FFFD}x");
        assert_eq!(joined(&[b"\xed\xb8\x80x"]), "\u{FFFD}x");
    }

    proptest::proptest! {
        #[test]
        fn any_split_of_a_text_gives_the_text(text: String, cut in 0usize..64) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            proptest::prop_assert_eq!(joined(&[&bytes[..cut], &bytes[cut..]]), text);
        }
    }
}
