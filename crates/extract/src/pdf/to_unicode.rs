//! The map of a font from its codes to text (`ToUnicode`), read leniently: what is no part of a map is passed over.

use std::collections::BTreeMap;

/// Text of codes. Codes of each length in bytes are codes of their own, but a font has one length.
#[derive(Debug, Default)]
pub(super) struct ToUnicode {
    single: BTreeMap<u32, String>,
    /// By the first code: the last one, and the UTF-16 of the first, whose last unit counts up.
    ranges: BTreeMap<u32, (u32, Vec<u16>)>,
}

enum Token<'a> {
    Hex(Vec<u8>),
    Open,
    Close,
    Word(&'a [u8]),
}

impl ToUnicode {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        let mut strings: Vec<Vec<u8>> = Vec::new();
        let (mut list, mut is_range, mut is_char) = (None::<Vec<Vec<u8>>>, false, false);
        let mut rest = bytes;
        while let Some(token) = next(&mut rest) {
            match token {
                Token::Hex(bytes) => match &mut list {
                    Some(list) => list.push(bytes),
                    None => strings.push(bytes),
                },
                Token::Open => list = Some(Vec::new()),
                Token::Close => {
                    if let (true, [low, _], Some(list)) = (is_range, strings.as_slice(), list.take()) {
                        for (code, text) in (code(low)..).zip(list) {
                            map.single.insert(code, decoded(&units(&text)));
                        }
                        strings.clear();
                    }
                }
                Token::Word(word) => {
                    (is_char, is_range) = (word == b"beginbfchar", word == b"beginbfrange");
                    strings.clear();
                    list = None;
                }
            }
            match strings.as_slice() {
                [from, to] if is_char => {
                    map.single.insert(code(from), decoded(&units(to)));
                    strings.clear();
                }
                [low, high, to] if is_range && list.is_none() => {
                    map.ranges.insert(code(low), (code(high), units(to)));
                    strings.clear();
                }
                _ => {}
            }
        }
        map
    }

    pub(super) fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.single.get(&code) {
            return Some(text.clone());
        }
        let (low, (high, units)) = self.ranges.range(..=code).next_back()?;
        let mut units = units.clone();
        let last = units.last_mut().filter(|_| code <= *high)?;
        *last = last.wrapping_add((code - low) as u16);
        Some(decoded(&units))
    }
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<Token<'a>> {
    let is_word = |byte: &u8| !byte.is_ascii_whitespace() && !b"<>[]%/".contains(byte);
    loop {
        let (first, after) = rest.split_first()?;
        *rest = after;
        match first {
            b'<' => {
                let end = after.iter().position(|byte| *byte == b'>').unwrap_or(after.len());
                let digits = after[..end].iter().filter_map(|byte| char::from(*byte).to_digit(16));
                let digits: Vec<u8> = digits.map(|digit| digit as u8).collect();
                *rest = after.get(end + 1..).unwrap_or_default();
                let pairs = digits.chunks(2);
                return Some(Token::Hex(
                    pairs.map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)).collect(),
                ));
            }
            b'[' => return Some(Token::Open),
            b']' => return Some(Token::Close),
            b'%' => {
                let end = after.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                *rest = &after[end.unwrap_or(after.len())..];
            }
            byte if is_word(byte) => {
                let end = after.iter().position(|byte| !is_word(byte)).unwrap_or(after.len());
                *rest = &after[end..];
                // A number says only how many lines follow.
                if !byte.is_ascii_digit() {
                    // From `first` on: it stands just before `after`.
                    return Some(Token::Word(word_from(after, end, *byte)));
                }
            }
            _ => {}
        }
    }
}

/// The two words that matter, and one that stands for all others.
fn word_from(after: &[u8], end: usize, first: u8) -> &'static [u8] {
    match (first, &after[..end]) {
        (b'b', b"eginbfchar") => b"beginbfchar",
        (b'b', b"eginbfrange") => b"beginbfrange",
        _ => b"",
    }
}

fn code(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, byte| code << 8 | u32::from(*byte))
}

fn units(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks(2).map(|pair| pair.iter().fold(0, |unit, byte| unit << 8 | u16::from(*byte))).collect()
}

fn decoded(units: &[u16]) -> String {
    String::from_utf16_lossy(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_ranges_and_lists_are_mapped_and_the_rest_is_passed_over() {
        let map = ToUnicode::parse(
            b"/CIDInit /ProcSet findresource begin % <0001> <0041>\n1 begincodespacerange <0000> <FFFF> endcodespacerange\n\
              2 beginbfchar <0003> <0020> <0004><00660066> endbfchar\n\
              3 beginbfrange <0010> <0012> <0061> <0020> <0021> [<0058> <D83DDE00>] <30> <FFFFFFFF> <0030>endbfrange end",
        );
        let text = |code| map.text(code);
        assert_eq!([3, 4, 0x11, 0x20].map(|code| text(code).unwrap()), [" ", "ff", "b", "X"]);
        assert_eq!((text(0x21).as_deref(), text(0x35).as_deref()), (Some("\u{1f600}"), Some("5")));
        assert_eq!((text(1), text(0x13)), (None, None));
        assert_eq!(ToUnicode::parse(b"beginbfchar <").text(0), None);
    }
}
