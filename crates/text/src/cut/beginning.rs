//! The beginning of a text that is too long as a whole.

use super::{paragraph_starts, sentence_ends};
use crate::{code, grapheme};

/// The beginning of a Markdown text, of at most `most` characters and without white space at its end: the text itself
/// where it fits; else it ends with the last paragraph that does, with a sentence where that keeps twice as much, or with a
/// word where not even a sentence fits. A block of code is whole or not there, no grapheme is divided. Empty where
/// nothing fits.
#[must_use]
pub fn beginning(text: &str, most: usize) -> &str {
    let Some((cap, _)) = text.char_indices().nth(most) else { return text.trim_end() };
    let blocks = code::blocks(text);
    let block_at = |at: usize| blocks.iter().find(|block| block.start < at && at < block.end);
    let limit = block_at(cap).map_or(cap, |block| block.start);
    let limit = grapheme::floor(text, limit);
    let last = |ends: &mut dyn Iterator<Item = usize>| {
        ends.take_while(|end| *end <= limit).filter(|end| block_at(*end).is_none()).last().unwrap_or(0)
    };
    // A block of code ends what stands before it, and itself, also without a blank line.
    let edges = blocks.iter().flat_map(|block| [block.start, block.end]);
    let edge = edges.rev().find(|edge| *edge <= limit).unwrap_or(0);
    let paragraph = last(&mut paragraph_starts(text)).max(edge);
    let sentence = last(&mut sentence_ends(text));
    let end = match paragraph {
        0 if sentence == 0 => word_end(text, limit),
        paragraph if sentence > paragraph * 2 => sentence,
        paragraph => paragraph,
    };
    text[..end].trim_end()
}

/// The end of the last word that ends at a limit or before it, else the limit.
fn word_end(text: &str, limit: usize) -> usize {
    let begins = text[limit..].chars().next().is_none_or(char::is_whitespace);
    match text[..limit].rfind(char::is_whitespace) {
        Some(space) if !begins && !text[..space].trim().is_empty() => space,
        _ => limit,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::beginning;
    use crate::{code, grapheme};

    #[test]
    fn it_ends_with_a_paragraph_else_with_a_sentence_else_with_a_word() {
        let text = "One is here. Two is here.\n\nThree is here. Four is here.";
        assert_eq!(beginning(text, 99), text);
        assert_eq!(beginning(text, 30), "One is here. Two is here.");
        assert_eq!(beginning(text, 20), "One is here.");
        assert_eq!(beginning(text, 6), "One is");
        assert_eq!(beginning(text, 5), "One");
        assert_eq!(beginning(text, 2), "On");
        assert_eq!(beginning(text, 0), "");
        let short = "A.\n\nOne is here. Two is here and longer.";
        assert_eq!(beginning(short, 20), "A.\n\nOne is here.", "a sentence keeps more than twice as much");
    }

    #[test]
    fn a_block_of_code_is_whole_or_not_there() {
        let text = "Say:\n```\nOne. Two.\n\nThree.\n```\nFour five.";
        assert_eq!(beginning(text, 20), "Say:");
        assert_eq!(beginning(text, 36), "Say:\n```\nOne. Two.\n\nThree.\n```");
        assert_eq!(beginning("```\nOne. Two.\n\nThree.", 15), "", "it has no end");
        assert_eq!(beginning("e\u{301}\u{301}e", 2), "");
    }

    proptest! {
        #[test]
        fn it_is_a_beginning_that_fits_and_divides_nothing(
            text in "([a.! \n]|```\n|\n\n|e\u{301}|👩\u{200d}💻|漢。){0,60}",
            most in 0_usize..80,
        ) {
            let kept = beginning(&text, most);
            prop_assert!(text.starts_with(kept) && kept.chars().count() <= most);
            prop_assert_eq!(grapheme::floor(&text, kept.len()), kept.len());
            let divides = |block: &std::ops::Range<usize>| {
                block.start < kept.len() && kept.len() < text[..block.end].trim_end().len()
            };
            prop_assert!(!code::blocks(&text).iter().any(divides), "{:?}", kept);
            prop_assert_eq!(beginning(kept, most), kept);
        }
    }
}
