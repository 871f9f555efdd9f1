//! Counts and places in grapheme clusters, the unit of authorship and of offsets a person sees (spec: loom §4).
//!
//! Clusters are counted inside one text and never span two, so that a document's offsets are sums of per-node
//! counts. Segmentation is by UAX #29 extended clusters. It is slow beside ASCII, and most text is mostly ASCII;
//! between two ASCII characters there is always a boundary, CR LF apart, so only the stretches around other
//! characters are handed to the segmenter.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Range};

use unicode_segmentation::{GraphemeCursor, GraphemeIndices, UnicodeSegmentation};

/// The version of the tables that clusters and folded text are made by: that of the segmentation, then that of the
/// standard library's cases, a byte for each of their first two numbers.
pub const TABLES: u32 = {
    let (cut, folded) = (unicode_segmentation::UNICODE_VERSION, char::UNICODE_VERSION);
    (cut.0 as u32) << 24 | (cut.1 as u32) << 16 | (folded.0 as u32) << 8 | folded.1 as u32
};

/// The length of a text in its three units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TextCounts {
    /// UTF-8 bytes.
    pub bytes: usize,
    pub chars: usize,
    pub graphemes: usize,
}

impl TextCounts {
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { bytes: text.len(), chars: chars(text), graphemes: count(text) }
    }
}

impl AddAssign for TextCounts {
    fn add_assign(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.chars += more.chars;
        self.graphemes += more.graphemes;
    }
}

impl Add for TextCounts {
    type Output = Self;

    fn add(mut self, more: Self) -> Self {
        self += more;
        self
    }
}

impl Sum for TextCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Self::add)
    }
}

/// Number of characters (Unicode scalar values).
#[must_use]
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

#[must_use]
pub fn count(text: &str) -> usize {
    if text.is_ascii() {
        let bytes = text.as_bytes();
        bytes.len() - bytes.windows(2).filter(|pair| pair == b"\r\n").count()
    } else {
        clusters(text).count()
    }
}

/// Byte offset at which cluster `index` begins; for `index` = [`count`] the length of the text, beyond it
/// `None`.
#[must_use]
pub fn offset_of(text: &str, index: usize) -> Option<usize> {
    starts(text).nth(index)
}

/// The inverse of [`offset_of`]: the number of clusters before byte `offset`, or `None` where that is inside a
/// cluster or beyond the end.
#[must_use]
pub fn index_of(text: &str, offset: usize) -> Option<usize> {
    if offset > text.len() {
        return None;
    }
    let (index, start) = starts(text).enumerate().find(|(_, start)| *start >= offset)?;
    (start == offset).then_some(index)
}

/// The byte ranges of the clusters, in order.
#[must_use]
pub fn clusters(text: &str) -> Clusters<'_> {
    Clusters { text, at: 0, segment: None }
}

/// The greatest cluster boundary at or before byte `offset`; the end where `offset` is beyond it.
#[must_use]
pub fn floor(text: &str, offset: usize) -> usize {
    let offset = floor_char(text, offset);
    let mut cursor = GraphemeCursor::new(offset, text.len(), true);
    // With the whole text at hand the cursor never asks for more context.
    if cursor.is_boundary(text, 0).unwrap_or(true) {
        offset
    } else {
        cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
    }
}

/// The least cluster boundary at or after byte `offset`; the end where `offset` is beyond it.
#[must_use]
pub fn ceil(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset += 1;
    }
    let mut cursor = GraphemeCursor::new(offset, text.len(), true);
    if cursor.is_boundary(text, 0).unwrap_or(true) {
        offset
    } else {
        cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
    }
}

/// The greatest character boundary at or before byte `offset`.
fn floor_char(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Every boundary: the start of each cluster, then the end of the text (once, also of an empty one).
fn starts(text: &str) -> impl Iterator<Item = usize> {
    clusters(text).map(|cluster| cluster.start).chain(std::iter::once(text.len()))
}

/// Iterator of [`clusters`].
#[derive(Clone)]
pub struct Clusters<'a> {
    text: &'a str,
    /// Where the next stretch begins; always a boundary.
    at: usize,
    /// The stretch in the segmenter's hands and where it begins.
    segment: Option<(usize, GraphemeIndices<'a>)>,
}

impl std::fmt::Debug for Clusters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clusters").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Iterator for Clusters<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if let Some((base, graphemes)) = &mut self.segment {
            if let Some((start, grapheme)) = graphemes.next() {
                let start = *base + start;
                return Some(start..start + grapheme.len());
            }
            self.segment = None;
        }
        let start = self.at;
        match *self.text.as_bytes().get(start..)? {
            [] => None,
            [b'\r', b'\n', ..] => self.take(2),
            [a] if a.is_ascii() => self.take(1),
            [a, b, ..] if a.is_ascii() && b.is_ascii() => self.take(1),
            _ => {
                self.at = self.segment_end(start);
                self.segment = Some((start, self.text[start..self.at].grapheme_indices(true)));
                self.next()
            }
        }
    }
}

impl Clusters<'_> {
    fn take(&mut self, bytes: usize) -> Option<Range<usize>> {
        let start = self.at;
        self.at += bytes;
        Some(start..self.at)
    }

    /// The first sure boundary behind `start`: between two ASCII characters that are not CR LF.
    fn segment_end(&self, start: usize) -> usize {
        let bytes = &self.text.as_bytes()[start..];
        bytes
            .windows(2)
            .position(|pair| pair.is_ascii() && pair != b"\r\n")
            .map_or(self.text.len(), |at| start + at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_units_differ() {
        let counts = TextCounts::of("e\u{301}👩\u{200D}💻\r\nx");
        assert_eq!(counts, TextCounts { bytes: 17, chars: 8, graphemes: 4 });
    }

    #[test]
    fn places_go_there_and_back() {
        let text = "a\r\nb\u{308}c 한국👨\u{200D}👩\u{200D}👧🇩🇪🇫🇷z";
        for index in 0..=count(text) {
            let offset = offset_of(text, index).unwrap();
            assert_eq!(index_of(text, offset), Some(index));
        }
        assert_eq!(offset_of(text, count(text)), Some(text.len()));
        assert_eq!(offset_of(text, count(text) + 1), None);
        assert_eq!(index_of(text, 2), None, "inside CR LF");
        assert_eq!(index_of(text, text.len() + 1), None);
        assert_eq!((offset_of("", 0), offset_of("", 1)), (Some(0), None));
    }

    #[test]
    fn floor_and_ceil_stay_outside_clusters() {
        let text = "x👩\u{200D}💻y";
        for offset in 1..text.len() - 1 {
            assert_eq!(floor(text, offset), 1);
        }
        for offset in 2..text.len() {
            assert_eq!(ceil(text, offset), text.len() - 1);
        }
        assert_eq!((floor(text, 999), ceil(text, 999)), (text.len(), text.len()));
    }
}
