//! Cuts of a document's window: its beginning and the place of its note (spec: context §7).

use std::ops::RangeInclusive;

use super::{paragraph_starts, sentence_starts};
use crate::grapheme;

/// The place in `within` (byte offsets) where the window of a document may begin: the first start of a paragraph,
/// else of a sentence, else of a word, else the first boundary of a grapheme.
///
/// The upper end keeps a long paragraph from costing nearly all of a window; `at_least..=text.len()` sets none.
/// Offsets beyond the text count as its end. Where not even a grapheme ends in `within`, the first boundary
/// behind it is the answer.
#[must_use]
pub fn window_start(text: &str, within: &RangeInclusive<usize>) -> usize {
    paragraph_starts(text)
        .find(|start| start >= within.start())
        .filter(|start| start <= within.end())
        .or_else(|| {
            sentence_starts(text).find(|start| start >= within.start()).filter(|start| start <= within.end())
        })
        .or_else(|| word_start(text, within))
        .unwrap_or_else(|| grapheme::ceil(text, *within.start()))
}

/// The first start of a word behind white space in `within`.
fn word_start(text: &str, within: &RangeInclusive<usize>) -> Option<usize> {
    let from = grapheme::ceil(text, *within.start());
    let begins = text[..from].chars().next_back().is_none_or(char::is_whitespace);
    let rest =
        if begins { &text[from..] } else { text[from..].trim_start_matches(|c: char| !c.is_whitespace()) };
    let start = text.len() - rest.trim_start().len();
    (start <= *within.end() && start < text.len() && grapheme::floor(text, start) == start).then_some(start)
}

/// The byte offset `depth` paragraphs before the end of `text`: for 0 the end, for 1 the start of the last
/// paragraph; the start of the first where there are fewer, and 0 where there is none.
#[must_use]
pub fn note_position(text: &str, depth: usize) -> usize {
    if depth == 0 {
        return text.len();
    }
    let starts: Vec<usize> = paragraph_starts(text).collect();
    starts.get(starts.len().saturating_sub(depth)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "First one. Second one.\n\nThird one. Fourth.\n\nLast.";

    #[test]
    fn a_paragraph_is_preferred_then_a_sentence_then_a_grapheme() {
        assert_eq!(&TEXT[window_start(TEXT, &(3..=TEXT.len()))..][..5], "Third");
        assert_eq!(&TEXT[window_start(TEXT, &(3..=20))..][..6], "Second");
        assert_eq!(window_start(TEXT, &(3..=9)), 6, "a word");
        assert_eq!(window_start(TEXT, &(3..=5)), 3, "no word begins there");
        assert_eq!(window_start("a👩\u{200D}💻b", &(2..=12)), 12);
    }

    #[test]
    fn a_place_that_already_fits_is_taken() {
        assert_eq!(window_start(TEXT, &(0..=TEXT.len())), 0);
        assert_eq!(window_start(TEXT, &(24..=TEXT.len())), 24);
        assert_eq!(window_start(TEXT, &(11..=20)), 11);
    }

    #[test]
    fn beyond_the_last_border_only_the_end_is_left() {
        assert_eq!(window_start(TEXT, &(TEXT.len()..=TEXT.len())), TEXT.len());
        assert_eq!(window_start(TEXT, &(900..=999)), TEXT.len());
    }

    #[test]
    fn the_note_counts_paragraphs_from_the_end() {
        assert_eq!(note_position(TEXT, 0), TEXT.len());
        assert_eq!(&TEXT[note_position(TEXT, 1)..], "Last.");
        assert_eq!(&TEXT[note_position(TEXT, 2)..][..5], "Third");
        assert_eq!(note_position(TEXT, 9), 0);
        assert_eq!(note_position("", 1), 0);
    }
}
