//! A text without the characters that are not seen.

use std::borrow::Cow;
use std::ops::Range;

use crate::class::is_invisible;

/// A text as it is seen, with line feeds at the ends of its lines.
pub(super) struct Seen<'a> {
    pub(super) text: Cow<'a, str>,
    /// Stretches of the original that were removed or became line feeds; CR before LF, which only ends a line, apart.
    pub(super) hidden: Vec<Range<usize>>,
    /// From which byte of the text on how many bytes of the original are missing.
    missing: Vec<(usize, usize)>,
}

impl<'a> Seen<'a> {
    pub(super) fn of(original: &'a str) -> Self {
        let Some(first) = original.find(is_hidden) else {
            return Self { text: Cow::Borrowed(original), hidden: Vec::new(), missing: Vec::new() };
        };
        let mut text = String::with_capacity(original.len());
        text.push_str(&original[..first]);
        let (mut hidden, mut missing): (Vec<Range<usize>>, _) = (Vec::new(), Vec::new());
        let mut rest = original[first..].char_indices().map(|(at, c)| (first + at, c)).peekable();
        while let Some((at, c)) = rest.next() {
            if !is_hidden(c) {
                text.push(c);
                continue;
            }
            let end = at + c.len_utf8();
            let is_crlf = c == '\r' && rest.peek().is_some_and(|(_, next)| *next == '\n');
            if !is_crlf {
                match hidden.last_mut() {
                    Some(last) if last.end == at => last.end = end,
                    _ => hidden.push(at..end),
                }
                if is_line_end(c) {
                    text.push('\n');
                }
            }
            missing.push((text.len(), end - text.len()));
        }
        Self { text: Cow::Owned(text), hidden, missing }
    }

    /// Where a stretch of the text, which is not empty, stands in the original.
    pub(super) fn original(&self, start: usize, end: usize) -> Range<usize> {
        let of = |at: usize| {
            let before = self.missing.partition_point(|(from, _)| *from <= at);
            at + before.checked_sub(1).map_or(0, |last| self.missing[last].1)
        };
        of(start)..of(end.saturating_sub(1)) + 1
    }
}

fn is_hidden(c: char) -> bool {
    is_invisible(c) || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Whether a line ends here in some editor, so that what follows is at the start of one.
fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
