//! A part of a text that is searched, read through a few functions that a test can count.
//!
//! A search over a text that arrives in pieces must cost no more than the text. That can be tested without a clock only if
//! nothing is read uncounted: so the bytes of a [`TextSlice`] are reached through it alone.

use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete};

/// A part of a text. Offsets are its own; they stand between characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextSlice<'a>(&'a str);

impl<'a> TextSlice<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// In bytes.
    pub(super) const fn len(self) -> usize {
        self.0.len()
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn from(self, at: usize) -> Self {
        Self(&self.0[at..])
    }

    pub(super) fn to(self, at: usize) -> Self {
        Self(&self.0[..at])
    }

    /// All of it, for a comparison.
    pub(super) fn as_str(self) -> &'a str {
        count_read(self.len());
        self.0
    }

    pub(super) fn chars(self) -> impl DoubleEndedIterator<Item = char> + 'a {
        self.0.chars().inspect(|c| count_read(c.len_utf8()))
    }

    pub(super) fn char_indices(self) -> impl Iterator<Item = (usize, char)> + 'a {
        self.0.char_indices().inspect(|(_, c)| count_read(c.len_utf8()))
    }

    pub(super) fn first(self) -> Option<char> {
        self.chars().next()
    }

    pub(super) fn last(self) -> Option<char> {
        self.chars().next_back()
    }

    /// Bytes before the first such character, or of all.
    pub(super) fn length_before(self, is: impl Fn(char) -> bool) -> usize {
        self.char_indices().find(|(_, c)| is(*c)).map_or(self.len(), |(at, _)| at)
    }

    pub(super) fn trim_start_matches(self, is: impl Fn(char) -> bool) -> Self {
        self.from(self.length_before(|c| !is(c)))
    }

    pub(super) fn trim_end_matches(self, is: impl Fn(char) -> bool) -> Self {
        let trimmed: usize = self.chars().rev().take_while(|c| is(*c)).map(char::len_utf8).sum();
        self.to(self.len() - trimmed)
    }

    pub(super) fn trim_start(self) -> Self {
        self.trim_start_matches(char::is_whitespace)
    }

    pub(super) fn trim_end(self) -> Self {
        self.trim_end_matches(char::is_whitespace)
    }

    pub(super) fn strip_prefix(self, prefix: char) -> Option<Self> {
        (self.first() == Some(prefix)).then(|| self.from(prefix.len_utf8()))
    }

    pub(super) fn strip_suffix(self, suffix: char) -> Option<Self> {
        (self.last() == Some(suffix)).then(|| self.to(self.len() - suffix.len_utf8()))
    }

    /// Whether no grapheme cluster goes on at an offset.
    pub(super) fn is_boundary(self, at: usize) -> bool {
        let (Some(before), Some(after)) = (self.to(at).last(), self.from(at).first()) else { return true };
        let start = at - before.len_utf8();
        let around = &self.0[start..at + after.len_utf8()];
        let mut cursor = GraphemeCursor::new(at, self.len(), true);
        loop {
            match cursor.is_boundary(around, start) {
                Ok(is_boundary) => return is_boundary,
                // Of flags, emoji and conjuncts what stands farther before tells.
                Err(GraphemeIncomplete::PreContext(end)) => {
                    let Some(farther) = self.to(end).last() else { return true };
                    let start = end - farther.len_utf8();
                    cursor.provide_context(&self.0[start..end], start);
                }
                Err(_) => return true,
            }
        }
    }

    /// The greatest cluster boundary at or before an offset.
    pub(super) fn floor(self, mut at: usize) -> usize {
        while !self.is_boundary(at) {
            at -= self.to(at).last().map_or(at, char::len_utf8);
        }
        at
    }
}

#[cfg(not(test))]
const fn count_read(_: usize) {}

#[cfg(test)]
fn count_read(bytes: usize) {
    BYTES_READ.with(|read| read.set(read.get() + bytes));
}

#[cfg(test)]
thread_local! {
    /// Bytes that were read of all slices in this thread.
    pub(super) static BYTES_READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grapheme;

    #[test]
    fn boundaries_are_those_of_clusters() {
        for text in [
            "a\r\nb\u{308}c 한국\u{1112}\u{1161}",
            "🇩🇪🇫🇷🇮z🇫",
            "x👩\u{200D}💻\u{200D}y👩\u{1F3FD}\u{200D}👧👧\u{200D}",
            "\u{308}好。\u{FE00}的\u{600}1",
            "हिन्दी क्ष्म क\u{94D}\u{200D}ष",
        ] {
            for at in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
                let slice = TextSlice::new(text);
                assert_eq!(slice.floor(at), grapheme::floor(text, at), "{text} at {at}");
                assert_eq!(slice.is_boundary(at), grapheme::floor(text, at) == at, "{text} at {at}");
            }
        }
    }
}
