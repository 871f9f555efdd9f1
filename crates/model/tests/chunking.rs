//! Laws for every recorded answer of every dialect: what is heard depends neither on how it is cut into pieces, nor
//! on when it is read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/recorded.rs"]
mod recorded;

use std::sync::LazyLock;

use drawloom_model::{ModelEvent, reparse};
use folded::folded;
use proptest::prelude::*;
use proptest::sample::Index;
use recorded::{dialect, parse, parse_pieces, wire};

/// The names of all that was recorded.
static RECORDED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = format!("{}/tests/wire", env!("CARGO_MANIFEST_DIR"));
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
});

fn any_recorded() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(RECORDED.iter().map(String::as_str).collect::<Vec<_>>())
}

fn any_streamed() -> impl Strategy<Value = &'static str> {
    let streamed: Vec<&str> =
        RECORDED.iter().map(String::as_str).filter(|name| name.ends_with(".sse")).collect();
    proptest::sample::select(streamed)
}

/// Every dialect, asked for one of its own, streamed and whole.
const NAMES: [&str; 10] = [
    "chat_.sse",
    "chat_.json",
    "completion_.sse",
    "completion_.json",
    "responses_.sse",
    "responses_.json",
    "anthropic_.sse",
    "anthropic_.json",
    "gemini_.sse",
    "gemini_.json",
];

#[test]
fn one_byte_a_chunk_gives_the_same_events() {
    assert!(RECORDED.len() > 100, "they are found");
    for name in RECORDED.iter() {
        let bytes = wire(name);
        assert_eq!(parse_pieces(name, bytes.chunks(1)), parse(name), "{name}");
    }
}

#[test]
fn other_line_ends_give_the_same_events() {
    for name in RECORDED.iter().filter(|name| name.ends_with(".sse")) {
        let Ok(text) = String::from_utf8(wire(name)) else { continue };
        if !text.contains('\r') {
            let crlf = text.replace('\n', "\r\n");
            assert_eq!(parse_pieces(name, [crlf.as_bytes()]), parse(name), "{name}");
        }
    }
}

#[test]
fn a_stored_response_reads_the_same_again() {
    for name in RECORDED.iter() {
        let (events, end) = parse(name);
        let read = reparse(dialect(name), &wire(name), name.ends_with(".sse"));
        let heard = folded(&events);
        let found = (read.choices, read.usage, read.problem);
        assert_eq!(found, (heard.choices, heard.usage, end.err()), "{name}");
    }
}

proptest! {
    // There are many to choose from.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 4, ..Default::default() })]

    #[test]
    fn any_chunking_gives_the_same_events(
        name in any_recorded(),
        cuts in proptest::collection::vec(any::<Index>(), 0..12),
    ) {
        let bytes = wire(name);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(parse_pieces(name, pieces), parse(name));
    }

    #[test]
    fn a_stream_cut_anywhere_gives_a_beginning_of_its_events(name in any_streamed(), cut: Index) {
        // Each chunk of these says that it is the last: cut behind one, they are whole.
        prop_assume!(name != "gemini_reason_in_every_chunk.sse");
        let bytes = wire(name);
        let whole = parse(name).0;
        let (events, _) = parse_pieces(name, [&bytes[..cut.index(bytes.len())]]);
        // Some dialects know only at the end that a choice was whole, or that no later counts come.
        let ends = |event: &ModelEvent| matches!(event, ModelEvent::Finish { .. } | ModelEvent::Usage(_));
        let said = events.iter().rposition(|event| !ends(event)).map_or(0, |last| last + 1);
        prop_assert_eq!(&events[..said], &whole[..said]);
        prop_assert!(events[said..].iter().all(|end| whole.contains(end)), "{:?}", &events[said..]);
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_alike_under_any_chunking(
        name in proptest::sample::select(&NAMES[..]),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        frames in proptest::collection::vec("(data: |: |event: |[{\\[])?[ -~]{0,20}(\n|\r\n|\n\n)", 0..8),
        cut: Index,
    ) {
        let body = [frames.concat().into_bytes(), bytes].concat();
        let (head, tail) = body.split_at(cut.index(body.len() + 1));
        prop_assert_eq!(parse_pieces(name, [head, tail]), parse_pieces(name, [body.as_slice()]));
    }
}
