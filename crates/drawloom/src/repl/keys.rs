//! A line that is typed key by key while something is shown, and edited at its end alone.

/// What the end of input says.
pub(super) const QUIT: &str = "/quit";

const BACKSPACE: [u8; 2] = [0x7f, 0x08];
pub(super) const CLEAR: u8 = 0x15;
const CLEAR_WORD: u8 = 0x17;
const END: u8 = 0x04;
const ESCAPE: u8 = 0x1b;

/// Keys that are no whole line yet.
#[derive(Debug, Default)]
pub(super) struct Keys {
    line: Vec<u8>,
    escape: Escape,
}

/// How much of a key that writes no text has come.
#[derive(Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// An ESC, with which another key may have begun.
    Begun,
    /// An ESC behind which nothing came: Esc was pressed, or the rest of an answer of the terminal is late.
    Alone,
    /// A sequence that ends with a letter.
    Sequence,
    /// Bytes that are missing of a character that was typed with Alt.
    Character(u8),
}

impl Keys {
    /// Begins with what was typed before.
    pub(super) fn of(line: String) -> Self {
        Self { line: line.into_bytes(), escape: Escape::None }
    }

    /// The line as far as it was typed; a letter of which bytes are missing is not part of it yet.
    pub(super) fn line(&self) -> &str {
        match str::from_utf8(&self.line) {
            Ok(line) => line,
            Err(error) => str::from_utf8(&self.line[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// Whether the last key is an ESC, which may be the beginning of another one.
    pub(super) fn ends_with_escape(&self) -> bool {
        self.escape == Escape::Begun
    }

    /// Nothing came behind an ESC: it stands for itself, and what is typed next is text.
    pub(super) fn end_escape(&mut self) {
        self.escape = Escape::Alone;
    }

    /// Takes in what was typed. Returns the lines that are whole now.
    pub(super) fn take(&mut self, typed: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        let late = if self.escape == Escape::Alone { late_report(typed).unwrap_or(0) } else { 0 };
        for byte in typed.iter().copied().skip(late) {
            self.escape = match (std::mem::take(&mut self.escape), byte) {
                (Escape::Begun, b'\n' | b'\r') => {
                    self.line.push(b'\n');
                    Escape::None
                }
                (Escape::Begun, 0xc0..=0xdf) => Escape::Character(1),
                (Escape::Begun, 0xe0..=0xef) => Escape::Character(2),
                (Escape::Begun, 0xf0..=0xff) => Escape::Character(3),
                (Escape::Begun, b'[' | b'O') | (Escape::Sequence, b' '..=b'?') => Escape::Sequence,
                (Escape::Character(missing @ 2..), 0x80..=0xbf) => Escape::Character(missing - 1),
                (_, ESCAPE) => Escape::Begun,
                (Escape::Begun, _)
                | (Escape::Sequence, b'@'..=b'~')
                | (Escape::Character(_), 0x80..=0xbf) => Escape::None,
                (_, byte) => {
                    whole.extend(self.key(byte));
                    Escape::None
                }
            };
        }
        whole
    }

    /// Takes in a byte of the line, or of a key that edits it. Returns the line once it is whole.
    fn key(&mut self, byte: u8) -> Option<String> {
        match byte {
            b'\n' | b'\r' => {
                let line = std::mem::take(&mut self.line);
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            END if self.line.is_empty() => return Some(QUIT.to_owned()),
            CLEAR => self.line.clear(),
            CLEAR_WORD => {
                let line = self.line().trim_end();
                let space = line.char_indices().rfind(|(_, c)| c.is_whitespace());
                let kept = space.map_or(0, |(at, space)| at + space.len_utf8());
                self.line.truncate(kept);
            }
            byte if BACKSPACE.contains(&byte) => {
                let last = self.line().char_indices().next_back().map_or(0, |(at, _)| at);
                self.line.truncate(last);
            }
            byte if byte >= b' ' || byte == b'\t' => self.line.push(byte),
            _ => {}
        }
        None
    }
}

/// Bytes that say where the cursor is (`[ row ; column R`), of an answer that was parted behind its ESC.
fn late_report(typed: &[u8]) -> Option<usize> {
    let numbers = typed.strip_prefix(b"[")?;
    let end = numbers.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';')?;
    (numbers[end] == b'R' && numbers[..end].contains(&b';')).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_make_lines() {
        let mut keys = Keys::of("he".to_owned());
        assert!(keys.take(b"lo wirld").is_empty());
        assert_eq!(keys.line(), "helo wirld");
        assert_eq!(keys.take(b"\x17world\x1b[D\x1bOP\x1bx\x7fd\x01\rsecond\nth"), ["helo world", "second"]);
        assert_eq!(keys.line(), "th");
        assert!(keys.take(b"\x15\xe6\xbc").is_empty());
        assert_eq!(keys.line(), "");
        keys.take(b"\xa2x\x7f");
        assert_eq!(keys.line(), "漢");
        keys.take("\u{3000}字\x17".as_bytes());
        assert_eq!(keys.line(), "漢\u{3000}");
        keys.take(b"\x7f");
        assert!(keys.take(b"\x04").is_empty(), "a line has begun");
        assert_eq!(keys.take(b"\x7f\x04"), [QUIT]);
    }

    #[test]
    fn a_key_behind_an_escape_is_taken_whole_or_not_at_all() {
        let typed = |parts: &[&[u8]]| {
            let mut keys = Keys::default();
            for part in parts {
                assert!(keys.take(part).is_empty(), "{part:?}");
                // As nothing comes behind it.
                if keys.ends_with_escape() {
                    keys.end_escape();
                }
            }
            keys.line().to_owned()
        };
        assert_eq!(typed(&[b"\x1b", b"next"]), "next");
        assert_eq!(typed(&[b"\x1b", "élan".as_bytes()]), "élan");
        assert_eq!(typed(&["\x1bélan\x1b漢x\x1b😀y".as_bytes()]), "lanxy");
        assert_eq!(typed(&[b"a\x1b\rb\x1b\nc"]), "a\nb\nc");
        assert_eq!(typed(&[b"\x1b\x1b[Ax"]), "x");
        assert_eq!(typed(&[b"a\x1b", b"[2;1Rb"]), "ab", "an answer that is late");
        assert_eq!(typed(&[b"a\x1b", b"[2]b"]), "a[2]b");
        let mut keys = Keys::default();
        assert!(keys.take(b"next\x1b").is_empty());
        keys.end_escape();
        assert_eq!(keys.take(b"\r"), ["next"]);
    }

    #[test]
    fn an_answer_of_the_terminal_that_comes_by_the_byte_is_no_text() {
        let mut keys = Keys::default();
        for byte in b"a\x1b[12;7Rb" {
            assert!(keys.take(&[*byte]).is_empty());
        }
        assert_eq!(keys.line(), "ab");
    }
}
