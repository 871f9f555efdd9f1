//! Laws that hold for any text.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use drawloom_text::bigrams::{Query, index_text, tokenize};
use drawloom_text::cut::{
    Boundary, BoundaryScan, head_tail, note_position, paragraph_starts, sentence_ends, sentence_starts,
    window_start,
};
use drawloom_text::fold::folded;
use drawloom_text::frame::{TextFrame, fence, plain_name};
use drawloom_text::grapheme::{self, TextCounts};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

/// White space behind a sentence that ends it whatever stands before it, in characters; where it would part CR from LF, one
/// less.
const MOST_SPACE: usize = 64;

/// Text made of what is hard: clusters, ends of lines and sentences, scripts, fences, quotes.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9 .]{1,6}",
        4 => prop::sample::select(vec![
            "\r\n", "\n\n", "\n", "\r", " ", ". ", "! A", "。", "？」", "…", "e\u{301}", "\u{308}", "\u{200D}",
            "👩\u{200D}💻", "🇩🇪", "🇫", "한", "\u{1112}\u{1161}", "漢字", "か\u{3099}", "हिन्दी", "\u{600}", "```",
            "\"", "*", "ß", "İ", "\u{FE0F}", "\u{3000}",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,3}",
        1 => any::<char>().prop_map(|c| c.to_string()),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Text of what is hard to tell from the end of a sentence: abbreviations, speech tags, numbers of items and footnotes.
fn near_ends() -> impl Strategy<Value = String> {
    let pieces = vec![
        "Dr",
        "No",
        "z. B",
        "e.g",
        "U.S",
        "J",
        "am",
        "the",
        "I",
        "i",
        "3",
        "12",
        "1234",
        "Mai",
        "May",
        "Then",
        "he",
        "a",
        ".",
        ".",
        ".",
        ". ",
        ". ",
        " ",
        " ",
        "\n",
        "\r\n",
        "\n\n",
        "!",
        "?",
        "…",
        ";",
        "ς",
        "。",
        "！",
        "「",
        "」",
        "“",
        "”",
        "と",
        "言",
        "他",
        "说",
        "问",
        "题",
        "道",
        "走",
        "*",
        "**",
        "_",
        ")",
        "(",
        "»",
        "«",
        " »",
        "\u{a0}»",
        ",",
        "[",
        "]",
        "^",
        "[1]",
        "[^2]",
        "[1234567]",
        "\u{FE00}",
        "\u{308}",
        "ის",
        "\t",
        "                                ",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

/// The end that is found in a text that is there at once.
fn first_end(boundary: Boundary, text: &str) -> Option<usize> {
    BoundaryScan::default().first_end(boundary, text)
}

/// Cluster boundaries as the segmenter alone gives them.
fn boundaries(text: &str) -> BTreeSet<usize> {
    text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect()
}

proptest! {
    #[test]
    fn clusters_are_those_of_the_segmenter(text in texts()) {
        let expected = boundaries(&text);
        let found: BTreeSet<usize> = grapheme::clusters(&text).map(|cluster| cluster.end).chain([0]).collect();
        prop_assert_eq!(&found, &expected.iter().copied().chain([0]).collect());
        prop_assert_eq!(TextCounts::of(&text).graphemes, text.graphemes(true).count());
        for at in 0..=text.len() {
            let before = expected.range(..=at).next_back().copied().unwrap_or(0);
            let after = expected.range(at..).next().copied().unwrap();
            prop_assert_eq!((grapheme::floor(&text, at), grapheme::ceil(&text, at)), (before, after));
            let index = grapheme::index_of(&text, at);
            prop_assert_eq!(index.is_some(), expected.contains(&at));
            prop_assert_eq!(index.and_then(|index| grapheme::offset_of(&text, index)), index.map(|_| at));
        }
    }

    #[test]
    fn head_and_tail_fit_and_split_no_cluster(text in texts(), cap in 0_usize..200, name in "\\PC{0,12}") {
        let cut = head_tail(&text, cap, &name);
        prop_assert!(grapheme::chars(&cut.text) <= cap);
        let Some(left_out) = cut.left_out else {
            prop_assert_eq!(cut.text, text.as_str());
            return Ok(());
        };
        let (head, tail) = (&text[..left_out.bytes.start], &text[left_out.bytes.end..]);
        prop_assert!(cut.text.starts_with(head) && cut.text.ends_with(tail));
        prop_assert!(boundaries(&text).is_superset(&[left_out.bytes.start, left_out.bytes.end].into()));
        prop_assert_eq!(left_out.chars, grapheme::chars(&text[left_out.bytes]));
        prop_assert!(grapheme::chars(head) <= cap * 7 / 10 && grapheme::chars(tail) <= cap * 2 / 10);
    }

    #[test]
    fn no_border_stands_inside_a_cluster(text in texts(), depth in 0_usize..5, at in any::<(prop::sample::Index, usize)>()) {
        let allowed = boundaries(&text);
        for borders in [
            paragraph_starts(&text).collect::<Vec<_>>(),
            sentence_ends(&text).collect(),
            sentence_starts(&text).collect(),
        ] {
            prop_assert!(borders.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", borders);
            prop_assert!(borders.iter().all(|border| allowed.contains(border)), "{:?}", borders);
        }
        let least = at.0.index(text.len() + 1);
        let start = window_start(&text, &(least..=least.saturating_add(at.1 % 40)));
        prop_assert!(start >= least && allowed.contains(&start));
        prop_assert!(allowed.contains(&note_position(&text, depth)));
    }

    #[test]
    fn a_first_end_is_the_same_in_whatever_pieces_a_text_arrives(
        text in prop_oneof![4 => near_ends(), 1 => texts()],
        lengths in prop::collection::vec(1_usize..9, 1..9),
    ) {
        let ends: Vec<usize> = text.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        for boundary in [Boundary::Sentence, Boundary::Paragraph] {
            let whole = first_end(boundary, &text);
            let (mut by_char, mut by_piece) = (BoundaryScan::default(), BoundaryScan::default());
            let (mut left, mut lengths) = (0, lengths.iter().cycle());
            for end in &ends {
                let fresh = first_end(boundary, &text[..*end]);
                prop_assert_eq!(by_char.first_end(boundary, &text[..*end]), fresh, "{:?} at {}", boundary, end);
                prop_assert!(fresh.is_none() || fresh == whole, "{:?} at {}", boundary, end);
                left = if left == 0 { *lengths.next().unwrap() } else { left } - 1;
                if left == 0 {
                    prop_assert_eq!(by_piece.first_end(boundary, &text[..*end]), fresh, "{:?} at {}", boundary, end);
                }
            }
        }
    }

    #[test]
    fn a_first_sentence_stands_behind_an_end_of_a_sentence(text in prop_oneof![4 => near_ends(), 1 => texts()]) {
        let Some(end) = first_end(Boundary::Sentence, &text) else { return Ok(()) };
        let sentence = text[..end].trim_end();
        let is_limit_of_space = text[sentence.len()..end].chars().count() + 1 >= MOST_SPACE;
        if first_end(Boundary::Paragraph, &text) != Some(end) && !is_limit_of_space {
            let ends: Vec<usize> = sentence_ends(&text).collect();
            prop_assert!(ends.contains(&sentence.len()), "{} is none of {:?}", sentence.len(), ends);
        }
    }

    #[test]
    fn folding_is_idempotent_and_blind_to_case_and_space(text in texts()) {
        let once = folded(&text);
        prop_assert_eq!(folded(&once), once.as_str());
        prop_assert_eq!(folded(&text.split_whitespace().collect::<String>()), once.as_str());
        prop_assert_eq!(folded(&text.to_ascii_uppercase()), once);
    }

    #[test]
    fn nothing_closes_a_frame_from_within(text in texts(), label in "\\PC{0,20}|[`\\[\\]\r\n]{0,9}") {
        let frame = TextFrame::around(&label, &text);
        let fence = fence(&text);
        prop_assert!(!text.contains(&fence));
        prop_assert_eq!(frame.open.lines().count(), 1);
        let name = plain_name(&label);
        prop_assert!(!name.contains('`'));
        prop_assert_eq!(plain_name(&name), name.as_str());
        prop_assert_eq!(frame.wrap(&text).matches(&fence).count(), 2);
    }

    #[test]
    fn every_query_is_answered(query in texts(), text in texts()) {
        let parsed = Query::parse(&query);
        let tokens = tokenize(&text);
        let _ = parsed.matches(&tokens);
        prop_assert_eq!(parsed.tokens().next().is_none(), parsed.is_empty());
        // What an expression of an engine is made of: nothing in it ends a quote or is an operator.
        for (token, _) in parsed.tokens() {
            prop_assert!(!token.is_empty() && !token.contains(['"', '\'', '\\', ' ', '*']), "{}", token);
        }
    }

    #[test]
    fn a_text_is_found_by_its_own_words(text in texts()) {
        let tokens = tokenize(&text);
        for word in text.split_whitespace() {
            let query = Query::parse(&word.replace(['"', '*'], " "));
            prop_assert!(query.is_empty() || query.matches(&tokens), "{} in {:?}", word, tokens);
        }
    }

    #[test]
    fn the_indexed_text_has_the_tokens_of_the_text(text in texts()) {
        let indexed = index_text(&text);
        // What FTS5 does with it: it splits, and folds ASCII.
        let split: Vec<String> = indexed
            .split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric())
            .filter(|token| !token.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        prop_assert_eq!(split, tokenize(&text));
    }
}
