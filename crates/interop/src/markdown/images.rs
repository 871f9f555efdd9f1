//! Turns pictures that a Markdown program would fetch into links.
//!
//! `![alt](https://…)` loses its `!`; so do reference pictures whose definition is remote. A raw HTML tag that
//! may load something gets its `<` written as `&lt;`. Text is not parsed as Markdown in full, because programs
//! disagree about it: where the brackets are clear the rule is exact, so that `vec![1]` stays; where code spans
//! or tags stand between them, every candidate loses its `!`. A sample of such a tag inside a code block is
//! written with `&lt;` too.
//!
//! Works paragraph by paragraph, since no picture reaches over an empty line, in linear time.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Bytes of a paragraph that are held; in a longer one every candidate is disarmed.
const LONGEST: usize = 1 << 20;

/// Bytes looked at for one label, alternative text, destination or tag. Whatever is longer is disarmed, so that
/// the work grows with the text alone.
const LABEL: usize = 4_000;
const DESTINATION: usize = 300;

/// Labels that are remembered; beyond them every reference counts as remote.
const MOST_LABELS: usize = 10_000;

/// The labels of definitions that lead elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Remote {
    labels: BTreeSet<String>,
    overflow: bool,
}

impl Remote {
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && !self.overflow
    }

    fn has(&self, label: &str) -> bool {
        self.overflow || self.labels.contains(&folded(label))
    }
}

/// Collects the labels of remote definitions over a text that comes in pieces.
#[derive(Debug, Default)]
pub struct RemoteLabels {
    paragraphs: Paragraphs,
    found: Remote,
}

impl RemoteLabels {
    pub fn push(&mut self, piece: &str) {
        let done = self.paragraphs.push(piece, |paragraph, _| {
            collect(paragraph, &mut self.found);
            Ok::<_, std::convert::Infallible>(())
        });
        match done {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    #[must_use]
    pub fn finish(mut self) -> Remote {
        collect(&self.paragraphs.held, &mut self.found);
        self.found
    }
}

fn collect(paragraph: &str, found: &mut Remote) {
    for (at, _) in paragraph.match_indices("]:") {
        if !is_remote(&paragraph[at + 2..]) {
            continue;
        }
        let label = last(&paragraph[..at], LABEL);
        let Some(open) = label.rfind('[') else { continue };
        if found.labels.len() >= MOST_LABELS {
            found.overflow = true;
        } else {
            found.labels.insert(folded(&label[open + 1..]));
        }
    }
}

/// The last bytes of a text, at most `most`.
fn last(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The first bytes of a text, at most `most`.
fn first(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A label as labels are compared: case and white space do not count.
fn folded(label: &str) -> String {
    let joined = label.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.to_lowercase().to_uppercase()
}

/// Writes a text that comes in pieces, disarmed.
pub struct ImageLinks<'a> {
    out: &'a mut dyn Write,
    remote: Remote,
    paragraphs: Paragraphs,
}

impl<'a> ImageLinks<'a> {
    /// Writes to `out`.
    pub fn new(out: &'a mut dyn Write, remote: Remote) -> Self {
        Self { out, remote, paragraphs: Paragraphs::default() }
    }

    /// The next piece.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn push(&mut self, piece: &str) -> io::Result<()> {
        let (out, remote) = (&mut *self.out, &self.remote);
        self.paragraphs.push(piece, |paragraph, whole| {
            let safe = if whole { disarm(paragraph, remote) } else { disarm_all(paragraph) };
            out.write_all(safe.as_bytes())
        })
    }

    /// Writes what is held.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn finish(self) -> io::Result<()> {
        self.out.write_all(disarm(&self.paragraphs.held, &self.remote).as_bytes())?;
        self.out.flush()
    }
}

/// A text cut at empty lines.
#[derive(Debug, Default)]
struct Paragraphs {
    held: String,
    /// Offset of the newest line.
    line: usize,
    /// Up to here the line was searched for its end.
    searched: usize,
}

impl Paragraphs {
    /// Takes a piece and gives each paragraph that is complete with the empty line behind it (`true`), and
    /// parts of one that is too long (`false`).
    fn push<E>(&mut self, piece: &str, mut each: impl FnMut(&str, bool) -> Result<(), E>) -> Result<(), E> {
        self.held.push_str(piece);
        let bytes = self.held.as_bytes();
        let mut start = 0;
        while let Some(end) = bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + end;
            let blank = bytes[self.line..end].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
            (self.line, self.searched) = (end + 1, end + 1);
            if blank {
                each(&self.held[start..=end], true)?;
                start = end + 1;
            }
        }
        self.searched = bytes.len();
        if bytes.len() - start > LONGEST {
            // What may begin a picture or a tag stays with what follows.
            let end = self.held.trim_end_matches(['!', '<', '\\']).len().max(start);
            each(&self.held[start..end], false)?;
            start = end;
        }
        self.held.drain(..start);
        self.line = self.line.saturating_sub(start);
        self.searched -= start;
        Ok(())
    }
}

/// Every candidate of a part of an overlong paragraph.
fn disarm_all(part: &str) -> Cow<'_, str> {
    rewrite(part, |_| true, |_| true)
}

fn disarm<'a>(paragraph: &'a str, remote: &Remote) -> Cow<'a, str> {
    if !paragraph.contains("![") && !paragraph.contains('<') {
        return Cow::Borrowed(paragraph);
    }
    let closing = brackets(paragraph);
    let last_remote = paragraph
        .match_indices("](")
        .filter(|(at, _)| is_remote(&paragraph[at + 2..]))
        .map(|(at, _)| at)
        .last();
    let unclear = |at: usize| last_remote.is_some_and(|last| at < last) || !remote.is_empty();
    let picture = |at: usize| {
        let open = at + 1;
        let Some(close) = closing[open] else { return unclear(at) };
        let alt = &paragraph[open + 1..close];
        if alt.len() > LABEL || alt.contains(['`', '<']) {
            return unclear(at);
        }
        let rest = &paragraph[close + 1..];
        if let Some(inline) = rest.strip_prefix('(') {
            return is_remote(inline) || remote.has(alt);
        }
        let second = rest.starts_with('[').then(|| closing[close + 1]).flatten();
        if second.is_some_and(|end| end - close > LABEL) {
            return unclear(at);
        }
        let label = second.map(|end| &paragraph[close + 2..end]).filter(|label| !label.trim().is_empty());
        remote.has(label.unwrap_or(alt)) || remote.has(alt)
    };
    rewrite(paragraph, picture, |at| loads(&paragraph[at + 1..]))
}

/// Drops the `!` of pictures and hides the `<` of tags for which the questions say yes.
fn rewrite(text: &str, picture: impl Fn(usize) -> bool, tag: impl Fn(usize) -> bool) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut from, mut escaped) = (0, false);
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1);
        match byte {
            b'\\' => {
                escaped = !escaped;
                continue;
            }
            b'!' if !escaped && next == Some(&b'[') && picture(at) => {
                out.push_str(&text[from..at]);
                from = at + 1;
            }
            b'<' if next.is_some_and(|next| next.is_ascii_alphabetic() || *next == b'!' || *next == b'?')
                && tag(at) =>
            {
                out.push_str(&text[from..at]);
                out.push_str("&lt;");
                from = at + 1;
            }
            _ => {}
        }
        escaped = false;
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// For each `[` the `]` that closes it, by byte; escaped brackets do not count.
fn brackets(text: &str) -> Vec<Option<usize>> {
    let mut closing = vec![None; text.len()];
    let (mut open, mut escaped) = (Vec::new(), false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\\' if !escaped => {
                escaped = true;
                continue;
            }
            b'[' if !escaped => open.push(at),
            b']' if !escaped => {
                if let Some(start) = open.pop() {
                    closing[start] = Some(at);
                }
            }
            _ => {}
        }
        escaped = false;
    }
    closing
}

/// Whether a link destination may lead elsewhere. Only what is plainly a local path is not: entities and
/// escapes can spell a scheme.
fn is_remote(rest: &str) -> bool {
    let rest = rest.trim_start();
    let (rest, ends): (&str, &[char]) = match rest.strip_prefix('<') {
        Some(inner) => (inner, &['>', '\n']),
        None => (rest, &[' ', '\t', '\n', '\r', ')']),
    };
    let near = first(rest, DESTINATION);
    let Some(end) = near.find(ends).or((near.len() == rest.len()).then_some(rest.len())) else { return true };
    let destination = &near[..end];
    destination.starts_with("//") || destination.contains([':', '&', '\\', '\t'])
}

/// Tags that load or run something by themselves, whatever their attributes say.
const ALWAYS: [&str; 14] = [
    "base", "embed", "form", "frame", "iframe", "image", "link", "math", "meta", "object", "script", "style",
    "svg", "template",
];

/// Whether a tag, given without its `<`, may load something from elsewhere.
fn loads(tag: &str) -> bool {
    if tag.starts_with(['!', '?']) {
        return !tag.starts_with("!--");
    }
    let near = first(tag, LABEL);
    let end = near.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(near.len());
    let (name, rest) = tag.split_at(end);
    let name = name.to_ascii_lowercase();
    if rest.starts_with([':', '@', '.', '+']) {
        // An address in angle brackets.
        return false;
    }
    if ALWAYS.contains(&name.as_str()) {
        return true;
    }
    let rest = first(rest, LABEL);
    let Some(close) = rest.find('>') else { return true };
    let attributes = rest[..close].to_ascii_lowercase();
    if name == "a" {
        return attributes.contains("style") || attributes.contains("ping");
    }
    attributes.contains([':', '&', '\\']) || attributes.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disarmed(text: &str) -> String {
        let mut labels = RemoteLabels::default();
        labels.push(text);
        let mut out = Vec::new();
        let mut links = ImageLinks::new(&mut out, labels.finish());
        // Pieces of one character: what a picture is must not depend on how the text was cut.
        for c in text.chars() {
            links.push(c.encode_utf8(&mut [0; 4])).unwrap();
        }
        links.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn remote_pictures_become_links() {
        for (from, to) in [
            ("a ![x](https://e.test/p.png) b", "a [x](https://e.test/p.png) b"),
            ("![x]( <http://e.test/a b> )", "[x]( <http://e.test/a b> )"),
            ("![x](//e.test/p)", "[x](//e.test/p)"),
            ("![x](&#104;ttps://e.test)", "[x](&#104;ttps://e.test)"),
            ("![a [b](c) d](http://e.test)", "[a [b](c) d](http://e.test)"),
            ("![`]`](http://e.test)", "[`]`](http://e.test)"),
            ("![ `[` ](http://e.test)", "[ `[` ](http://e.test)"),
            ("![x][R 1]\n\n[r  1]: https://e.test/p", "[x][R 1]\n\n[r  1]: https://e.test/p"),
            ("![r]\n\n> [R]: //e.test", "[r]\n\n> [R]: //e.test"),
            ("\\\\![x](http://e.test)", "\\\\[x](http://e.test)"),
        ] {
            assert_eq!(disarmed(from), to);
        }
    }

    #[test]
    fn what_is_no_remote_picture_stays() {
        for text in [
            "![x](pictures/a.png)",
            "use `vec![1]`, see [docs](https://docs.test)",
            "#![allow(unused)] and [docs](https://docs.test)",
            "\\![x](https://e.test)",
            "see <https://e.test> and <a@e.test>, <b>bold</b>, 1 < 2",
            "<a href=\"https://e.test\">x</a>",
            "<img src=\"local.png\">",
        ] {
            assert_eq!(disarmed(text), text);
        }
    }

    #[test]
    fn tags_that_load_are_written_out() {
        for text in [
            "<img src=\"https://e.test/p\">",
            "<IMG\nsrc=//e.test>",
            "<img src=&#104;ttp://e.test>",
            "<p style=\"background:url(x)\">",
            "<iframe>",
            "<svg/onload=1>",
            "<pre>\n<img\n\nsrc=http://e.test>",
        ] {
            assert!(disarmed(text).contains("&lt;"), "{text}");
        }
    }

    #[test]
    fn an_endless_paragraph_is_disarmed_in_parts_and_in_time() {
        let text = "![x](http://e.test) <img src=http://e.test> ".repeat(60_000);
        let mut out = Vec::new();
        let mut links = ImageLinks::new(&mut out, Remote::default());
        for piece in text.as_bytes().chunks(1000) {
            links.push(std::str::from_utf8(piece).unwrap()).unwrap();
        }
        links.finish().unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("![") && !out.contains("<img"));
        let nested = "![".repeat(400_000);
        let mut links = Vec::new();
        let mut one = ImageLinks::new(&mut links, Remote::default());
        one.push(&nested).unwrap();
        one.finish().unwrap();
    }
}
