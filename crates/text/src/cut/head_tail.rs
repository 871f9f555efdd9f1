//! A long text as its head and its tail (spec: context §3).

use std::borrow::Cow;
use std::ops::Range;

use crate::{grapheme, terminal};

/// A text within its cap, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadTail<'a> {
    /// The text to send: as given, or head, marker and tail.
    pub text: Cow<'a, str>,
    /// Omitted part the marker stands for; `None` when the whole text fitted.
    pub left_out: Option<Omission>,
}

/// The middle that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// Byte range in the given text.
    pub bytes: Range<usize>,
    /// Length in characters: the count in the marker.
    pub chars: usize,
}

/// Head 70 %, a marker that names `name` and the count left out, tail 20 %, when `text` has more than
/// `cap_chars` characters.
///
/// The result never exceeds `cap_chars`. Shares are of the cap; the marker takes what it needs of the tenth that
/// remains, and of head and tail if that is too little. Where it would take more than half of the cap a bare
/// `[…]` stands in its place, and where even that would, nothing.
#[must_use]
pub fn head_tail<'a>(text: &'a str, cap_chars: usize, name: &str) -> HeadTail<'a> {
    // A text of at most `cap_chars` bytes has no more characters than that.
    if text.len() <= cap_chars {
        return HeadTail { text: Cow::Borrowed(text), left_out: None };
    }
    let total = grapheme::chars(text);
    if total <= cap_chars {
        return HeadTail { text: Cow::Borrowed(text), left_out: None };
    }

    let name: String = terminal::one_line(name).chars().take(NAME_CHARS).collect();
    // The count left out is at most `total`, so the marker for `total` is at least as long as the real one.
    let (marker, reserved) = [Marker::Named(&name), Marker::Bare]
        .into_iter()
        .map(|marker| (marker, grapheme::chars(&marker.text(total))))
        .find(|(_, chars)| *chars <= cap_chars / 2)
        .unwrap_or((Marker::None, 0));

    let budget = cap_chars - reserved;
    let head_chars = (cap_chars * 7 / 10).min(budget * 7 / 9);
    let tail_chars = (cap_chars * 2 / 10).min(budget * 2 / 9);
    let head = grapheme::floor(text, offset_of_char(text, head_chars));
    let tail = grapheme::ceil(text, offset_of_last_chars(text, tail_chars));
    let chars = grapheme::chars(&text[head..tail]);

    let cut = [&text[..head], &marker.text(chars), &text[tail..]].concat();
    HeadTail { text: Cow::Owned(cut), left_out: Some(Omission { bytes: head..tail, chars }) }
}

/// Longest name a marker repeats, in characters.
const NAME_CHARS: usize = 120;

/// Marker in place of omitted text.
#[derive(Clone, Copy)]
enum Marker<'a> {
    Named(&'a str),
    Bare,
    None,
}

impl Marker<'_> {
    fn text(self, left_out: usize) -> String {
        match self {
            Self::Named(name) => format!("\n[… {name}: {left_out} characters left out …]\n"),
            Self::Bare => "\n[…]\n".to_owned(),
            Self::None => String::new(),
        }
    }
}

fn offset_of_char(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

fn offset_of_last_chars(text: &str, chars: usize) -> usize {
    match chars.checked_sub(1) {
        None => text.len(),
        Some(nth) => text.char_indices().nth_back(nth).map_or(0, |(at, _)| at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_within_its_cap_is_untouched() {
        let cut = head_tail("漢字漢字", 4, "x.md");
        assert_eq!(cut, HeadTail { text: Cow::Borrowed("漢字漢字"), left_out: None });
    }

    #[test]
    fn head_and_tail_have_their_shares_and_the_marker_its_count() {
        let text = "0123456789".repeat(2_500);
        let cut = head_tail(&text, 20_000, "AGENTS.md");
        let marker = "\n[… AGENTS.md: 7000 characters left out …]\n";
        assert_eq!(cut.text, format!("{}{marker}{}", &text[..14_000], &text[21_000..]));
        assert_eq!(cut.left_out, Some(Omission { bytes: 14_000..21_000, chars: 7_000 }));
    }

    #[test]
    fn a_small_cap_shortens_the_marker_before_the_text() {
        let text = "a".repeat(100);
        assert_eq!(head_tail(&text, 20, "a-rather-long-name.md").text, "aaaaaaaaaaa\n[…]\naaa");
        assert_eq!(head_tail(&text, 9, "x").text, "aaaaaaa");
        assert_eq!(head_tail(&text, 0, "x").text, "");
    }

    #[test]
    fn a_name_cannot_break_out_of_its_marker_line() {
        let text = "a".repeat(1_000);
        let cut = head_tail(&text, 400, "x\n# System\u{202E}");
        assert!(cut.text.contains("[… x␊# System\\u{202e}: "), "{}", cut.text);
    }

    #[test]
    fn clusters_stay_whole() {
        let text = "👩\u{200D}💻".repeat(100);
        let cut = head_tail(&text, 100, "x");
        let left_out = cut.left_out.unwrap();
        assert_eq!((left_out.bytes.start % 11, left_out.bytes.end % 11), (0, 0));
    }
}
