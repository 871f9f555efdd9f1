//! A line that is typed key by key while something is shown, and edited at its end alone. A backslash at its end or an
//! open fence of code makes it several, as at the input line. A paste is text of the line,
//! whatever it holds, as at the input line: only Enter behind it ends the line.

use rustix::process::Signal;

use super::lines::{is_open, joined};
use crate::terminal::{PASTE_BEGINS, PASTE_ENDS, SignalKeys};

/// What the end of input says.
pub(super) const QUIT: &str = "/quit";

const BACKSPACE: [u8; 2] = [0x7f, 0x08];
pub(super) const CLEAR: u8 = 0x15;
const CLEAR_WORD: u8 = 0x17;
const END: u8 = 0x04;
const ESCAPE: u8 = 0x1b;
/// Number of the sequence that begins a paste.
const PASTE: u16 = 200;
/// Bytes that end a paste.
const PASTE_END: &[u8] = PASTE_ENDS.as_bytes();

/// Keys that are no whole line yet.
#[derive(Debug)]
pub(super) struct Keys {
    line: Vec<u8>,
    escape: Escape,
    /// Where the line ended when an ESC came behind which nothing did.
    alone: Option<usize>,
    /// What came of a paste that has not ended.
    paste: Option<Vec<u8>>,
    /// Most bytes of a paste; of a longer one nothing is taken.
    longest: usize,
    /// Whether a paste was longer, and nobody was told yet.
    is_too_long: bool,
    signal_keys: SignalKeys,
    /// What keys asked for that send signals, and nobody did yet.
    signals: Vec<Signal>,
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
    /// A sequence that ends with a letter, and the number it began with.
    Sequence(u16),
    /// Bytes that are missing of a character that was typed with Alt.
    Character(u8),
}

impl Keys {
    /// Begins with what was typed before. A paste may have so many bytes; outside of one these keys send signals.
    pub(super) fn of(line: String, longest: usize, signal_keys: SignalKeys) -> Self {
        Self {
            line: line.into_bytes(),
            escape: Escape::None,
            alone: None,
            paste: None,
            longest,
            is_too_long: false,
            signal_keys,
            signals: Vec::new(),
        }
    }

    /// What was asked for by keys that send signals, since this was asked last.
    pub(super) fn signals(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.signals)
    }

    /// The signal of a key that came by itself, where a paste has not ended: it is the way out of one whose end was lost.
    pub(super) fn signal_alone(&self, typed: &[u8]) -> Option<Signal> {
        let &[key] = typed else { return None };
        self.is_pasting().then(|| self.signal_keys.signal(key)).flatten()
    }

    /// Whether a paste has begun and not ended.
    pub(super) fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Whether a paste was left out since this was asked last, as it was too long.
    pub(super) fn left_paste_out(&mut self) -> bool {
        std::mem::take(&mut self.is_too_long)
    }

    /// The line as far as it was typed, with what came of a paste that never ended.
    pub(super) fn end(mut self) -> String {
        self.end_paste();
        self.line().to_owned()
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

    /// Takes in a paste that came whole.
    pub(super) fn paste(&mut self, text: &str) {
        self.line.extend(pasted(text).into_bytes());
    }

    /// Nothing came behind an ESC: it stands for itself, and what is typed next is text.
    pub(super) fn end_escape(&mut self) {
        (self.escape, self.alone) = (Escape::Alone, Some(self.line.len()));
    }

    /// Takes in what was typed. Returns the lines that are whole now.
    pub(super) fn take(&mut self, typed: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        let late = if self.escape == Escape::Alone { late_report(typed).unwrap_or(0) } else { 0 };
        for byte in typed.iter().copied().skip(late) {
            if let Some(pasted) = &mut self.paste {
                // Of one that is too long its end is still to be found.
                if pasted.len() >= self.longest.saturating_add(2 * PASTE_END.len()) {
                    pasted.drain(self.longest + 1..=self.longest + PASTE_END.len());
                }
                pasted.push(byte);
                if pasted.ends_with(PASTE_END) {
                    pasted.truncate(pasted.len() - PASTE_END.len());
                    self.end_paste();
                }
                continue;
            }
            if let Some(signal) = self.signal_keys.signal(byte) {
                self.signals.push(signal);
                self.escape = Escape::None;
                continue;
            }
            self.escape = match (std::mem::take(&mut self.escape), byte) {
                (Escape::Begun, b'\n' | b'\r') => {
                    self.line.push(b'\n');
                    Escape::None
                }
                (Escape::Begun, 0xc0..=0xdf) => Escape::Character(1),
                (Escape::Begun, 0xe0..=0xef) => Escape::Character(2),
                (Escape::Begun, 0xf0..=0xff) => Escape::Character(3),
                (Escape::Begun, b'[' | b'O') => Escape::Sequence(0),
                (Escape::Sequence(number), digit @ b'0'..=b'9') => {
                    Escape::Sequence(number.saturating_mul(10).saturating_add((digit - b'0').into()))
                }
                (Escape::Sequence(PASTE), b'~') => {
                    self.paste = Some(Vec::new());
                    Escape::None
                }
                // Further numbers are of no matter.
                (Escape::Sequence(_), b' '..=b'?') => Escape::Sequence(u16::MAX),
                (Escape::Character(missing @ 2..), 0x80..=0xbf) => Escape::Character(missing - 1),
                (_, ESCAPE) => Escape::Begun,
                (Escape::Begun, _)
                | (Escape::Sequence(_), b'@'..=b'~')
                | (Escape::Character(_), 0x80..=0xbf) => Escape::None,
                (_, byte) => {
                    whole.extend(self.key(byte));
                    self.begin_late_paste();
                    Escape::None
                }
            };
        }
        whole
    }

    /// A paste begins whose ESC was taken for itself, as the rest came late.
    fn begin_late_paste(&mut self) {
        if let Some(at) = self.alone.filter(|at| self.line.get(*at..) == PASTE_BEGINS.as_bytes().get(1..)) {
            self.line.truncate(at);
            (self.alone, self.paste) = (None, Some(Vec::new()));
        }
    }

    fn end_paste(&mut self) {
        let Some(mut text) = self.paste.take() else { return };
        if text.len() > self.longest {
            self.is_too_long = true;
            return;
        }
        // One that never ended may have come to the middle of its end.
        if let Some(cut) = (1..PASTE_END.len()).rev().find(|cut| text.ends_with(&PASTE_END[..*cut])) {
            text.truncate(text.len() - cut);
        }
        self.paste(&String::from_utf8_lossy(&text));
    }

    /// Takes in a byte of the line, or of a key that edits it. Returns the line once it is whole.
    fn key(&mut self, byte: u8) -> Option<String> {
        match byte {
            b'\n' | b'\r' => {
                self.alone = None;
                if is_open(self.line()) {
                    self.line.push(b'\n');
                    return None;
                }
                let line = std::mem::take(&mut self.line);
                return Some(joined(&String::from_utf8_lossy(&line)));
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

/// What is pasted, with its line ends as they are typed. Only text of it counts.
pub(super) fn pasted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "")
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

    const LONGEST: usize = 64;

    #[test]
    fn keys_make_lines() {
        let mut keys = Keys::of("he".to_owned(), LONGEST, SignalKeys::usual());
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
            let mut keys = Keys::of(String::new(), LONGEST, SignalKeys::usual());
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
        let mut keys = Keys::of(String::new(), LONGEST, SignalKeys::usual());
        assert!(keys.take(b"next\x1b").is_empty());
        keys.end_escape();
        assert_eq!(keys.take(b"\r"), ["next"]);
    }

    #[test]
    fn an_answer_of_the_terminal_that_comes_by_the_byte_is_no_text() {
        let mut keys = Keys::of(String::new(), LONGEST, SignalKeys::usual());
        for byte in b"a\x1b[12;7Rb" {
            assert!(keys.take(&[*byte]).is_empty());
        }
        assert_eq!(keys.line(), "ab");
    }

    #[test]
    fn a_paste_is_text_of_the_line_wherever_its_bytes_are_parted() {
        let typed =
            b"a \x1b[200~def f():\r\n\treturn 1\r\r\n/undo\x03\r\x1b[A\x7f//x\n\x1b[201~ b\x7fc\rnext";
        for at in 0..=typed.len() {
            let mut keys = Keys::of(String::new(), LONGEST, SignalKeys::usual());
            let (mut whole, parts) = (Vec::new(), typed.split_at(at));
            for part in [parts.0.chunks(typed.len()), parts.1.chunks(1)].into_iter().flatten() {
                whole.extend(keys.take(part));
                if keys.ends_with_escape() {
                    keys.end_escape();
                }
            }
            assert_eq!(whole, ["a def f():\n\treturn 1\n\n/undo\n[A//x\n c"], "{at}");
            assert_eq!(keys.end(), "next");
        }
    }

    #[test]
    fn an_open_line_goes_on_behind_enter() {
        let mut keys = Keys::of(String::new(), LONGEST, SignalKeys::usual());
        assert_eq!(keys.take(b"a \\\rb\r```\rx\r```\rc\\\r"), ["a \nb", "```\nx\n```"]);
        assert_eq!(keys.end(), "c\\\n", "as the input line goes on with it");
    }

    #[test]
    fn keys_send_signals_outside_of_a_paste() {
        let mut keys = Keys::of(String::new(), LONGEST, SignalKeys::usual());
        assert_eq!(keys.take(b"ab\x1b\x03c\x1a\r\x1b[200~\x03x\x1a\x1c\x1b[201~\x1c\r"), ["abc", "x"]);
        assert_eq!(keys.signals(), [Signal::INT, Signal::TSTP, Signal::QUIT]);
        assert!(keys.signals().is_empty() && keys.signal_alone(b"\x03").is_none());
        keys.take(b"\x1b[200~");
        assert_eq!(keys.signal_alone(b"\x03"), Some(Signal::INT));
        assert_eq!((keys.signal_alone(b"x"), keys.signal_alone(b"x\x03")), (None, None));
    }

    #[test]
    fn a_paste_that_never_ends_is_kept() {
        for rest in [&b""[..], b"\x1b", b"\x1b[20"] {
            let mut keys = Keys::of("a".to_owned(), LONGEST, SignalKeys::usual());
            assert!(keys.take(&[&b"\x1b[200~one\r/exit\r"[..], rest].concat()).is_empty());
            assert!(keys.is_pasting() && keys.line() == "a");
            assert_eq!(keys.end(), "aone\n/exit\n");
        }
    }

    #[test]
    fn a_paste_that_is_too_long_is_left_out_and_its_end_is_found() {
        for length in [LONGEST, LONGEST + 1, 10 * LONGEST] {
            let mut keys = Keys::of("a".to_owned(), LONGEST, SignalKeys::usual());
            let text = vec![b'x'; length];
            assert_eq!(keys.take(&[b"\x1b[200~", &text[..], b"\x1b[201~b\r"].concat()).len(), 1);
            assert_eq!(keys.left_paste_out(), length > LONGEST, "{length}");
            assert!(!keys.left_paste_out());
        }
    }
}
