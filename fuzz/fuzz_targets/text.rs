//! Cutting, framing and finding: borders stand between clusters, nothing closes a frame from within, and a text
//! is found by its own words.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use text::bigrams::{Query, index_text, tokenize};
use text::cut::{head_tail, note_position, paragraph_starts, sentence_ends, sentence_starts, window_start};
use text::fold::folded;
use text::frame::{TextFrame, fence, plain_name};
use text::grapheme;

#[derive(Arbitrary, Debug)]
struct Input {
    cap: u8,
    at: u16,
    depth: u8,
    label: String,
    text: String,
}

fuzz_target!(|input: Input| {
    let Input { cap, at, depth, label, text } = input;
    let cap = usize::from(cap);
    let borders: Vec<usize> = grapheme::clusters(&text).map(|cluster| cluster.end).chain([0]).collect();
    let allowed = |at: usize| borders.contains(&at);

    let cut = head_tail(&text, cap, &label);
    assert!(grapheme::chars(&cut.text) <= cap);
    match cut.left_out {
        None => assert_eq!(cut.text, text.as_str()),
        Some(left_out) => {
            assert!(allowed(left_out.bytes.start) && allowed(left_out.bytes.end));
            assert!(cut.text.starts_with(&text[..left_out.bytes.start]));
            assert!(cut.text.ends_with(&text[left_out.bytes.end..]));
        }
    }
    for starts in [
        paragraph_starts(&text).collect::<Vec<_>>(),
        sentence_starts(&text).collect(),
        sentence_ends(&text).collect(),
    ] {
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(starts.iter().all(|start| allowed(*start)));
    }
    let least = usize::from(at) % (text.len() + 1);
    let start = window_start(&text, &(least..=least + cap));
    assert!(start >= least && allowed(start));
    assert!(allowed(note_position(&text, depth.into())));
    for offset in [least, usize::from(at), text.len() + 1] {
        assert!(allowed(grapheme::floor(&text, offset)) && allowed(grapheme::ceil(&text, offset)));
    }

    let frame = TextFrame::around(&label, &text);
    let marks = fence(&text);
    assert!(!text.contains(&marks));
    assert_eq!(frame.open.lines().count(), 1);
    assert_eq!(frame.wrap(&text).matches(&marks).count(), 2);
    let name = plain_name(&label);
    assert_eq!(plain_name(&name), name);

    assert_eq!(folded(&folded(&text)), folded(&text));
    let tokens = tokenize(&text);
    let indexed = index_text(&text);
    let split = indexed.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
    let split: Vec<String> = split.filter(|token| !token.is_empty()).map(str::to_ascii_lowercase).collect();
    assert_eq!(split, tokens);
    for word in text.split_whitespace().take(20) {
        let query = Query::parse(&word.replace(['"', '*'], " "));
        assert!(query.is_empty() || query.matches(&tokens), "{word:?} in {tokens:?}");
    }
    let query = Query::parse(&label);
    assert_eq!(query.tokens().next().is_none(), query.is_empty());
});
