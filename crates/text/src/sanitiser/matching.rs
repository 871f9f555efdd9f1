//! The copy of a text in which patterns are looked for: what looks alike or means the same stands there as one character.
//!
//! Each character is decomposed by compatibility (NFKD) and without its marks, looked up in the table of confusables
//! (UTS #39) and made a small letter; `l` stands as `i`, as a capital `I` looks like it. HTML entities, percent encoding and
//! escapes of JSON stand as what they mean. ASCII is not looked up: there `m` would be `rn`, and `0` a letter. A stretch of
//! white space is one character. For matching alone: nothing of it is ever shown.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};
use unicode_security::confusable_detection::skeleton;

use crate::class::is_invisible;

/// White space with an empty line in it.
pub(super) const PARAGRAPH: char = '\u{2029}';

/// A character of the copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// White space is `' '`, `'\n'` or [`PARAGRAPH`].
    pub(super) c: char,
    /// What it stands for in the text, in bytes.
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Default)]
pub(super) struct MatchingCopy {
    pub(super) units: Vec<Unit>,
}

impl MatchingCopy {
    /// A copy of the text.
    pub(super) fn of(text: &str) -> Self {
        let mut copy = Self { units: Vec::with_capacity(text.len()) };
        copy.append(text, 0);
        copy
    }

    /// A copy of the text without its HTML comments; none where it has none. A comment without an end goes to the end of
    /// the text.
    pub(super) fn without_comments(text: &str) -> Option<Self> {
        let mut copy = Self::default();
        let mut at = 0;
        while let Some(start) = text[at..].find("<!--") {
            copy.append(&text[at..at + start], at);
            let inside = at + start + "<!--".len();
            at = text[inside..].find("-->").map_or(text.len(), |length| inside + length + "-->".len());
        }
        if at > 0 {
            copy.append(&text[at..], at);
        }
        (at > 0).then_some(copy)
    }

    /// A copy of the text without HTML tags, comments and the addresses of Markdown links; none where it has none. A tag or an address ends in the line that it begins in.
    pub(super) fn without_markup(text: &str) -> Option<Self> {
        let mut copy = Self::default();
        let (mut from, mut at) = (0, 0);
        while let Some(start) = text[at..].find(['<', ']']).map(|found| at + found) {
            let is_tag = text.as_bytes()[start] == b'<';
            let end = if is_tag { end_of_tag(text, start) } else { end_of_target(text, start) };
            at = end.unwrap_or(start + 1);
            if end.is_some() {
                copy.append(&text[from..start], from);
                from = at;
            }
        }
        copy.append(&text[from..], from);
        (from > 0).then_some(copy)
    }

    fn append(&mut self, text: &str, offset: usize) {
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let (c, length) = decoded(&text[at..]).unwrap_or((c, c.len_utf8()));
            self.push(c, offset + at, offset + at + length);
            at += length;
        }
    }

    fn push(&mut self, c: char, start: usize, end: usize) {
        if c.is_whitespace() {
            self.push_space(c, start, end);
        } else if c.is_ascii() {
            self.push_folded(c, start, end);
        } else if !is_invisible(c) && !c.is_control() {
            let mut buffer = [0; 4];
            decompose_compatible(c, |part| {
                if part.is_whitespace() {
                    self.push_space(part, start, end);
                } else {
                    self.push_skeleton(part.encode_utf8(&mut buffer), start, end);
                }
            });
        }
    }

    fn push_skeleton(&mut self, part: &str, start: usize, end: usize) {
        if part.is_ascii() {
            part.chars().for_each(|c| self.push_folded(c, start, end));
            return;
        }
        let mut like = skeleton(part).filter(|c| !is_combining_mark(*c)).peekable();
        while let Some(c) = like.next() {
            // What looks like `m` stands as `rn` in the table.
            let is_m = c == 'r' && like.next_if_eq(&'n').is_some();
            self.push_folded(if is_m { 'm' } else { c }, start, end);
        }
    }

    fn push_folded(&mut self, c: char, start: usize, end: usize) {
        if c.is_whitespace() {
            return self.push_space(c, start, end);
        }
        if c.is_control() || is_invisible(c) {
            return;
        }
        for c in c.to_lowercase() {
            self.units.push(Unit { c: fold_l(c), start, end });
        }
    }

    fn push_space(&mut self, c: char, start: usize, end: usize) {
        let c = if is_line_end(c) { '\n' } else { ' ' };
        match self.units.last_mut() {
            Some(last) if is_space(last.c) => {
                last.end = end;
                last.c = match (last.c, c) {
                    (PARAGRAPH, _) | ('\n', '\n') => PARAGRAPH,
                    (' ', ' ') => ' ',
                    _ => '\n',
                };
            }
            _ => self.units.push(Unit { c, start, end }),
        }
    }
}

/// The end of an HTML tag or comment that begins here.
fn end_of_tag(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start + 1..];
    if let Some(comment) = rest.strip_prefix("!--") {
        return Some(comment.find("-->").map_or(text.len(), |end| start + "<!--".len() + end + "-->".len()));
    }
    let is_tag = rest.trim_start_matches('/').starts_with(|c: char| c.is_ascii_alphabetic());
    let end = rest.find(['<', '>', '\n']).filter(|end| is_tag && rest.as_bytes()[*end] == b'>')?;
    Some(start + 1 + end + 1)
}

/// The end of the address or the name of a link, whose text ends with a `]` here.
fn end_of_target(text: &str, start: usize) -> Option<usize> {
    let rest = text[start + 1..].strip_prefix(['(', '['])?;
    let end =
        rest.find(['(', ')', '[', ']', '\n']).filter(|end| matches!(rest.as_bytes()[*end], b')' | b']'))?;
    Some(start + 2 + end + 1)
}

/// `i` for `l`, and the capital for the capital.
pub(super) fn fold_l(c: char) -> char {
    match c {
        'l' => 'i',
        'L' => 'I',
        _ => c,
    }
}

pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\n' | PARAGRAPH)
}

/// Markup that may stand within a word.
pub(super) fn is_markup(c: char) -> bool {
    matches!(c, '*' | '`' | '~' | '_' | '\\')
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What an entity, an encoded byte or an escape at the beginning of a text means, and how many bytes it takes.
fn decoded(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'&' => entity(text),
        b'%' => {
            // However often its `%` was encoded again.
            let again = text[1..].len() - text[1..].trim_start_matches("25").len();
            let places = [1 + again, 1]
                .into_iter()
                .filter_map(|at| Some((hexadecimal(text.get(at..at + 2)?)?, at + 2)));
            places.into_iter().find(|(c, _)| c.is_ascii())
        }
        b'\\' => match bytes.get(1)? {
            b'x' => Some((hexadecimal(text.get(2..4)?)?, 4)),
            b'u' if bytes.get(2) == Some(&b'{') => {
                let digits = bytes[3..].iter().take(7).position(|byte| *byte == b'}')?;
                Some((hexadecimal(text.get(3..3 + digits)?)?, digits + 4))
            }
            b'u' => Some((hexadecimal(text.get(2..6)?)?, 6)),
            _ => None,
        },
        _ => None,
    }
}

fn hexadecimal(digits: &str) -> Option<char> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, 16).ok()).flatten().and_then(char::from_u32)
}

/// Names of entities that patterns are made of.
const ENTITIES: [(&str, char); 18] = [
    ("lt", '<'),
    ("gt", '>'),
    ("amp", '&'),
    ("quot", '"'),
    ("apos", '\''),
    ("colon", ':'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("vert", '|'),
    ("verbar", '|'),
    ("sol", '/'),
    ("num", '#'),
    ("lowbar", '_'),
    ("nbsp", ' '),
    ("NewLine", '\n'),
    ("Tab", '\t'),
];

/// Most characters of what stands between `&` and `;`.
const ENTITY: usize = 10;

/// An entity, however often its `&` was encoded again.
fn entity(text: &str) -> Option<(char, usize)> {
    let mut at = 1;
    while text[at..].starts_with("amp;") {
        at += "amp;".len();
    }
    let rest = &text[at..];
    let meant = rest.bytes().take(ENTITY + 1).position(|byte| byte == b';').and_then(|end| {
        let name = &rest[..end];
        let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
            Some(digits) => hexadecimal(digits),
            None => number.parse().ok().and_then(char::from_u32),
        });
        let named = || ENTITIES.into_iter().find(|(known, _)| *known == name).map(|(_, c)| c);
        Some((number.or_else(named)?, at + end + 1))
    });
    meant.or((at > 1).then_some(('&', at)))
}
