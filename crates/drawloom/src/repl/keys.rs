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
    Begun,
    /// A sequence that ends with a letter.
    Sequence,
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

    /// Takes in what was typed. Returns the lines that are whole now.
    pub(super) fn take(&mut self, typed: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        for byte in typed.iter().copied() {
            match (&self.escape, byte) {
                (Escape::Begun, b'[' | b'O') => self.escape = Escape::Sequence,
                (Escape::Begun, _) | (Escape::Sequence, b'@'..=b'~') => self.escape = Escape::None,
                (Escape::None, ESCAPE) => self.escape = Escape::Begun,
                (Escape::None, b'\n' | b'\r') => {
                    let line = std::mem::take(&mut self.line);
                    whole.push(String::from_utf8_lossy(&line).into_owned());
                }
                (Escape::None, END) if self.line.is_empty() => whole.push(QUIT.to_owned()),
                (Escape::None, CLEAR) => self.line.clear(),
                (Escape::None, CLEAR_WORD) => {
                    let line = self.line().trim_end();
                    let space = line.char_indices().rfind(|(_, c)| c.is_whitespace());
                    let kept = space.map_or(0, |(at, space)| at + space.len_utf8());
                    self.line.truncate(kept);
                }
                (Escape::None, byte) if BACKSPACE.contains(&byte) => {
                    let last = self.line().char_indices().next_back().map_or(0, |(at, _)| at);
                    self.line.truncate(last);
                }
                (Escape::None, byte) if byte >= b' ' || byte == b'\t' => self.line.push(byte),
                (Escape::None | Escape::Sequence, _) => {}
            }
        }
        whole
    }
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
}
