//! A text without the characters that are not seen, but for those that words and emoji are written with.
//!
//! A selector of emoji or text (VS15, VS16) stays behind a character that has both forms, a joiner (ZWJ) between emoji,
//! ZWJ and ZWNJ between letters that join (Arabic, Syriac, scripts of India, …) and behind a virama. Whether one stays
//! depends on what stands before it in the result and on what follows it and is seen, so that doing it twice is doing it
//! once.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

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
            let next = rest.peek().map(|(_, next)| *next);
            if !is_hidden(c) || is_written(text.chars().next_back(), c, next) {
                text.push(c);
                continue;
            }
            let end = at + c.len_utf8();
            let is_crlf = c == '\r' && next == Some('\n');
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
        let text = if missing.is_empty() { Cow::Borrowed(original) } else { Cow::Owned(text) };
        Self { text, hidden, missing }
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

/// Whether a character that is not seen belongs to how a word or an emoji is written, between what stands before it in the
/// result and what follows it in the text.
fn is_written(before: Option<char>, c: char, next: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match c {
        // The key of a telephone, as 1️⃣, is a digit, a selector and a frame.
        '\u{FE0F}' if matches!(before, '0'..='9' | '#' | '*') => next == Some('\u{20E3}'),
        '\u{FE0E}' | '\u{FE0F}' => is_emoji(before),
        '\u{200C}' | '\u{200D}' if is_virama(before) => true,
        '\u{200C}' | '\u{200D}' if is_joining(before) => next.is_some_and(is_joining),
        '\u{200D}' => (before == '\u{FE0F}' || is_emoji(before)) && next.is_some_and(is_emoji),
        _ => false,
    }
}

/// Letters and marks of scripts in which a joiner tells how two of them are written, but for those that look like a colon,
/// with which a marker ends.
fn is_joining(c: char) -> bool {
    let of_script = matches!(c, '\u{600}'..='\u{7FF}' | '\u{860}'..='\u{8FF}' | '\u{900}'..='\u{DFF}' | '\u{1000}'..='\u{109F}'
        | '\u{1780}'..='\u{17FF}' | '\u{1800}'..='\u{18AF}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}');
    of_script
        && (c.is_alphabetic() || is_combining_mark(c))
        && !is_hidden(c)
        && !matches!(c, '\u{903}' | '\u{A83}')
}

/// The sign that takes the vowel from a letter of a script of India.
fn is_virama(c: char) -> bool {
    canonical_combining_class(c) == 9
}

/// Emoji, and characters that are one with a selector behind them; no digits. Modifiers of skin are among them.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '\u{2194}'..='\u{2199}' | '\u{21A9}' | '\u{21AA}' | '\u{231A}' | '\u{231B}'
        | '\u{2328}' | '\u{23CF}' | '\u{23E9}'..='\u{23F3}' | '\u{23F8}'..='\u{23FA}' | 'Ⓜ' | '\u{25AA}' | '\u{25AB}'
        | '\u{25B6}' | '\u{25C0}' | '\u{25FB}'..='\u{25FE}' | '\u{2600}'..='\u{26FF}' | '\u{2702}' | '\u{2705}'
        | '\u{2708}'..='\u{270D}' | '\u{270F}' | '\u{2712}' | '\u{2714}' | '\u{2716}' | '\u{271D}' | '\u{2721}' | '\u{2728}'
        | '\u{2733}' | '\u{2734}' | '\u{2744}' | '\u{2747}' | '\u{274C}' | '\u{274E}' | '\u{2753}'..='\u{2755}' | '\u{2757}'
        | '\u{2763}' | '\u{2764}' | '\u{2795}'..='\u{2797}' | '\u{27A1}' | '\u{27B0}' | '\u{27BF}' | '\u{2934}' | '\u{2935}'
        | '\u{2B05}'..='\u{2B07}' | '\u{2B1B}' | '\u{2B1C}' | '\u{2B50}' | '\u{2B55}' | '\u{3030}' | '\u{303D}' | '\u{3297}'
        | '\u{3299}' | '\u{1F000}'..='\u{1FAFF}')
}

/// Whether a line ends here in some editor, so that what follows is at the start of one.
fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::super::matching::MatchingCopy;
    use super::*;

    #[test]
    fn no_character_that_an_edit_ends_with_takes_a_joiner_or_selector() {
        for c in ('\0'..=char::MAX).filter(|c| is_joining(*c) || is_virama(*c) || is_emoji(*c)) {
            let units = MatchingCopy::of(&c.to_string()).units;
            assert!(units.iter().all(|unit| !matches!(unit.c, ':' | '<' | '[')), "{c:?} {:x}", c as u32);
        }
    }
}
