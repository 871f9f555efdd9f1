//! Settings of a configuration file of git, read as git reads them (git-config(1), *Syntax*).
//!
//! What is read here decides what is protected, so that a comment behind a value, a part of it in quotes and a line that goes
//! on in the next one must not hide where hooks lie. Git refuses a file with an error in it; here the line is passed over, and
//! what stands in the others counts.

use std::iter::Peekable;
use std::path::Path;
use std::slice::Iter;

use crate::small_file::read_small_bytes;

/// A setting that has a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// In lower case, without its subsection.
    pub(crate) section: String,
    /// In lower case.
    pub(crate) key: String,
    /// Bytes of a path may be no text.
    pub(crate) value: Vec<u8>,
}

/// Settings of a file, in order; none if it cannot be read.
pub(crate) fn settings_in(file: &Path) -> Vec<Setting> {
    settings(&read_small_bytes(file).unwrap_or_default())
}

fn settings(text: &[u8]) -> Vec<Setting> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { bytes: text.iter().peekable(), last: 0 };
    let mut found = Vec::new();
    let mut section = String::new();
    while let Some(byte) = reader.next() {
        match byte {
            b'#' | b';' => reader.end_of_line(),
            b'[' => match reader.section() {
                Some(name) => section = name,
                None => reader.end_of_line(),
            },
            _ if byte.is_ascii_alphabetic() => match reader.setting(byte) {
                Ok(Some((key, value))) => found.push(Setting { section: section.clone(), key, value }),
                Ok(None) => {}
                Err(Malformed) => reader.end_of_line(),
            },
            _ if is_blank(byte) => {}
            _ => reader.end_of_line(),
        }
    }
    found
}

/// What git takes for a blank.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// What git refuses. The line is not read to its end.
struct Malformed;

struct Reader<'a> {
    bytes: Peekable<Iter<'a, u8>>,
    last: u8,
}

impl Reader<'_> {
    /// The next byte, with line ends of Windows as those of Unix.
    fn next(&mut self) -> Option<u8> {
        self.last = *self.bytes.next()?;
        if self.last == b'\r' && self.bytes.peek() == Some(&&b'\n') {
            self.bytes.next();
            self.last = b'\n';
        }
        Some(self.last)
    }

    /// Reads the line to its end, unless it was.
    fn end_of_line(&mut self) {
        while self.last != b'\n' && self.next().is_some() {}
    }

    /// Name of a section, behind its bracket. A key may follow in the same line.
    fn section(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => break,
                byte if is_blank(byte) => {
                    self.subsection(byte)?;
                    break;
                }
                byte => name.push(byte.to_ascii_lowercase().into()),
            }
        }
        // Also of the older spelling, with a dot.
        Some(name.split('.').next().unwrap_or_default().to_owned())
    }

    fn subsection(&mut self, mut byte: u8) -> Option<()> {
        while is_blank(byte) && byte != b'\n' {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' if self.next()? == b'\n' => return None,
                _ => {}
            }
        }
        (self.next()? == b']').then_some(())
    }

    /// Key and value, behind the first letter of the key; nothing of one that has no value.
    fn setting(&mut self, first: u8) -> Result<Option<(String, Vec<u8>)>, Malformed> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while let Some(letter) = byte.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            key.push(letter.to_ascii_lowercase().into());
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            Some(b'=') => Ok(Some((key, self.value()?))),
            None | Some(b'\n') => Ok(None),
            Some(_) => Err(Malformed),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut value = Vec::new();
        let mut is_quoted = false;
        // Length without the blanks at its end.
        let mut length = 0;
        loop {
            match self.next() {
                None | Some(b'\n') if is_quoted => return Err(Malformed),
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !is_quoted => {
                    self.end_of_line();
                    break;
                }
                Some(blank) if is_blank(blank) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(blank);
                    }
                    continue;
                }
                Some(b'"') => is_quoted = !is_quoted,
                Some(b'\\') => match self.next() {
                    Some(b'\n') => continue,
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(8),
                    Some(b'n') => value.push(b'\n'),
                    Some(byte @ (b'\\' | b'"')) => value.push(byte),
                    _ => return Err(Malformed),
                },
                Some(byte) => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<(String, String, String)> {
        let value = |setting: Setting| {
            (setting.section, setting.key, String::from_utf8_lossy(&setting.value).into_owned())
        };
        settings(text).into_iter().map(value).collect()
    }

    fn value(text: &str) -> String {
        let [(section, key, value)] = &read(format!("[core]\n\thooksPath = {text}\n").as_bytes())[..] else {
            panic!("{text}")
        };
        assert_eq!((section.as_str(), key.as_str()), ("core", "hookspath"));
        value.clone()
    }

    #[test]
    fn a_value_is_what_git_takes_for_it() {
        for (text, expected) in [
            (".githooks", ".githooks"),
            (".githooks # ours", ".githooks"),
            (".githooks ; ours", ".githooks"),
            (".githooks;ours", ".githooks"),
            ("\".githooks\"", ".githooks"),
            ("\"./git\"hooks2", "./githooks2"),
            ("a\"b # c\"d\\\"", "ab # cd\""),
            ("./a\\\nb # c", "./ab"),
            ("a  b \t ", "a  b"),
            ("\"a \" ", "a "),
            ("\\\\a\\tb", "\\a\tb"),
            ("a = b", "a = b"),
            ("", ""),
        ] {
            assert_eq!(value(text), expected, "{text}");
            assert_eq!(value(&format!("{text}\r")), expected, "{text}, with the line end of Windows");
        }
    }

    #[test]
    fn sections_and_keys_are_read_in_each_of_their_forms() {
        let text =
            b"\xef\xbb\xbf[Core]HooksPath=a\n# [other]\n[includeIf \"gitdir:\\\"]/\"] path = b\n; x = y\n\
            [include.old]\npath = c\n[core] ; behind\n  bare\n\tworktree\t=\td\n[a \"b\"]\nc=\"e";
        let found = read(text);
        let expected = [
            ("core", "hookspath", "a"),
            ("includeif", "path", "b"),
            ("include", "path", "c"),
            ("core", "worktree", "d"),
        ];
        let expected = expected.map(|(section, key, value)| (section.into(), key.into(), value.into()));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_malformed_hides_nothing_behind_it() {
        let found = read(b"[core\n]\nx y = z\n9 = 1\na = \\q\n[include]\npath = \"x\nPATH = y");
        assert_eq!(found, [("include".to_owned(), "path".to_owned(), "y".to_owned())]);
        assert_eq!(settings(b"[include]\npath = a\xff")[0].value, b"a\xff");
    }
}
