//! What is sent for a document: the window, what is pinned, the coverage of bytes, the budget.

use crate::support::{Desk, echo, prompt_text};
use drawloom_context::document::{DocumentRequest, document};
use drawloom_context::{ContextError, ContinuationForm, Estimator, Kind, SegmentOutcome, TokenBudget, cover};
use loom::plan::NewText;
use loom::render::{Show, render};
use loom::{Op, TextOffset, ViewName};
use model::{Model, Params, Prompt};
use proptest::prelude::*;

fn request(way: ContinuationForm, window: u64) -> DocumentRequest {
    DocumentRequest {
        view: ViewName::default(),
        from: None,
        way,
        budget: TokenBudget::new(window, 256, Some(64)),
        drafts: false,
        system: None,
        context: Vec::new(),
        instruction: Vec::new(),
        again: None,
        before: None,
    }
}

fn passages(count: usize) -> Desk {
    let mut desk = Desk::new();
    for index in 0..count {
        desk.append(&format!("Paragraph {index} says that the rain fell on the town.\n\n"));
    }
    desk
}

#[test]
fn a_short_document_is_sent_whole_and_nothing_else() {
    let desk = passages(5);
    let assembled =
        document(&desk.tree, &request(ContinuationForm::Raw, 8_192), &Estimator::default()).unwrap();
    let rendered =
        render(&desk.tree, &ViewName::default(), Show { drafts: true, spans: false }).unwrap().text;
    assert_eq!(format!("{}{}", prompt_text(&assembled.prompt), assembled.held), rendered);
    assert_eq!((assembled.new_start, assembled.begins.is_some(), assembled.left.len()), (None, false, 0));
    assert_eq!(assembled.runs.len(), 1, "the genesis counts as no text, the path is one run");
}

#[test]
fn a_long_document_starts_at_a_paragraph_and_stays_there() {
    let mut desk = passages(200);
    let window = 1_024;
    let estimator = Estimator::default();
    let first = document(&desk.tree, &request(ContinuationForm::Raw, window), &estimator).unwrap();
    let start = first.new_start.expect("the window had to move");
    let text = prompt_text(&first.prompt);
    assert!(text.starts_with("Paragraph "), "{:?}", &text[..40]);
    assert!(first.tokens <= TokenBudget::new(window, 256, Some(64)).budget);
    // A quarter of the window is free again, so that the next passages do not move it once more.
    desk.run(Op::Compact { to: Some(start), by_hand: false });
    desk.append("One more.\n\n");
    let second = document(&desk.tree, &request(ContinuationForm::Raw, window), &estimator).unwrap();
    assert_eq!(second.new_start, None);
    let whole = render(&desk.tree, &ViewName::default(), Show { drafts: true, spans: false }).unwrap().text;
    let sent = prompt_text(&second.prompt).chars().count() + second.held.chars().count();
    assert_eq!(
        second.left[0].chars as usize + sent,
        whole.chars().count(),
        "every character is accounted for"
    );
    let out = second.pieces.iter().find(|piece| piece.parts.is_empty()).unwrap();
    assert_eq!(out.chars, second.left[0].chars);
    assert!(second.begins.is_some_and(|begins| begins.words.starts_with("Paragraph ")));
    assert!(prompt_text(&second.prompt).starts_with(&text), "the prefix is the same, byte for byte");
}

/// What a model of this window is sent, and whether the start moves.
fn sent(desk: &Desk, window: u64) -> (String, bool) {
    let found = document(&desk.tree, &request(ContinuationForm::Raw, window), &Estimator::default()).unwrap();
    (prompt_text(&found.prompt), found.new_start.is_some())
}

#[test]
fn a_start_that_a_small_window_asked_for_costs_a_large_one_nothing() {
    let mut desk = passages(200);
    let small = document(&desk.tree, &request(ContinuationForm::Raw, 1_024), &Estimator::default()).unwrap();
    desk.run(Op::Compact { to: small.new_start, by_hand: false });
    let (text, moves) = sent(&desk, 100_000);
    assert!(text.starts_with("Paragraph 0 ") && !moves, "all of it fits");
    assert_eq!(sent(&desk, 1_024), (prompt_text(&small.prompt), false), "the small one begins where it did");

    // Nothing but a little of the text is left below the start.
    let desk_of = |by_hand| {
        let mut desk = passages(200);
        let last = desk.append("The last one.\n\n").as_position();
        desk.append("A little more.");
        desk.run(Op::Compact { to: Some(TextOffset { position: last, at: 0 }), by_hand });
        desk
    };
    let (text, moves) = sent(&desk_of(false), 2_048);
    assert!(moves && text.len() > 2_000, "{text}");
    for window in [2_048, 100_000] {
        let (text, moves) = sent(&desk_of(true), window);
        assert!(!moves && text.starts_with("The last one."), "what was moved by hand stays: {text}");
    }
}

#[test]
fn a_start_inside_a_passage_cuts_that_passage() {
    let mut desk = Desk::new();
    let node = desk.append("First paragraph.\n\nSecond paragraph.");
    desk.run(Op::Compact { to: Some(TextOffset { position: node.as_position(), at: 18 }), by_hand: true });
    let assembled =
        document(&desk.tree, &request(ContinuationForm::Raw, 8_192), &Estimator::default()).unwrap();
    assert_eq!(prompt_text(&assembled.prompt), "Second paragraph.");
    assert_eq!(assembled.runs[0].cut, 18);
    assert_eq!(
        (assembled.left[0].chars, assembled.left[0].count),
        (18, 0),
        "a part of a passage is left out too"
    );
}

#[test]
fn head_comes_first_and_the_note_some_paragraphs_before_the_end() {
    let mut desk = passages(4);
    desk.run(Op::PinHead(NewText::owner("HEAD", None)));
    desk.run(Op::PinNote { text: NewText::owner("NOTE", None), depth: Some(1) });
    let assembled =
        document(&desk.tree, &request(ContinuationForm::Raw, 8_192), &Estimator::default()).unwrap();
    let text = prompt_text(&assembled.prompt);
    assert!(text.starts_with("HEAD\n\nParagraph 0"), "{text}");
    let (before, after) = text.split_once("NOTE\n\n").expect("the note is in it");
    assert!(before.ends_with("town.\n\n") && after.starts_with("Paragraph 3"), "{text}");
}

#[test]
fn what_is_pinned_has_a_limit() {
    let mut desk = passages(1);
    desk.run(Op::PinHead(NewText::owner("word ".repeat(2_000), None)));
    let refused = document(&desk.tree, &request(ContinuationForm::Raw, 1_024), &Estimator::default());
    assert!(matches!(refused, Err(ContextError::TooLong { .. })), "{refused:?}");
}

#[test]
fn an_empty_document_is_not_sent() {
    let desk = Desk::new();
    let refused = document(&desk.tree, &request(ContinuationForm::Raw, 1_024), &Estimator::default());
    assert!(matches!(refused, Err(ContextError::Empty)), "{refused:?}");
}

#[test]
fn left_out_passages_are_not_sent_and_are_named() {
    let mut desk = passages(2);
    let node = desk.append("SECRET PLAN");
    desk.run(Op::Exclude(loom::OpTarget::Position(node.as_position())));
    desk.append("The end.");
    let assembled =
        document(&desk.tree, &request(ContinuationForm::Raw, 8_192), &Estimator::default()).unwrap();
    assert!(!prompt_text(&assembled.prompt).contains("SECRET PLAN"));
    assert_eq!(assembled.runs[0].excluded, vec![node.as_position()]);
}

#[test]
fn drafts_are_sent_only_for_a_look_ahead() {
    let mut desk = passages(1);
    desk.draft("and then");
    let mut ask = request(ContinuationForm::Raw, 8_192);
    assert!(
        !prompt_text(&document(&desk.tree, &ask, &Estimator::default()).unwrap().prompt).contains("and then")
    );
    ask.drafts = true;
    let assembled = document(&desk.tree, &ask, &Estimator::default()).unwrap();
    assert!(prompt_text(&assembled.prompt).ends_with("and then"));
    assert!(assembled.pieces.iter().any(|piece| piece.kind == Kind::Buffer));
}

#[test]
fn the_note_stands_in_a_look_ahead_where_it_stands_in_the_request() {
    for depth in 0..4 {
        for (typed, count) in [("typed", 1), ("typed", 3), ("two\n\nparagraphs", 2), ("\n\nbelow a line", 2)]
        {
            let mut desk = passages(count);
            desk.run(Op::PinNote { text: NewText::owner("NOTE", None), depth: Some(depth) });
            desk.draft(typed);
            let mut ask = request(ContinuationForm::Raw, 8_192);
            ask.drafts = true;
            let shown = document(&desk.tree, &ask, &Estimator::default()).unwrap();
            desk.run(Op::Commit);
            ask.drafts = false;
            let sent = document(&desk.tree, &ask, &Estimator::default()).unwrap();
            assert_eq!(prompt_text(&shown.prompt), prompt_text(&sent.prompt), "{depth} {typed:?} {count}");
            let in_buffer = shown.pieces.iter().filter(|piece| piece.kind == Kind::Buffer);
            let chars: u64 = in_buffer.map(|piece| piece.chars).sum();
            assert_eq!(chars, typed.len() as u64, "{depth} {typed:?} {count}");
        }
    }
}

proptest! {
    /// Whatever stands in the document and however it is asked: the segments cover the body from the first
    /// byte to the last, the request keeps within its budget, and text and held white space make the end.
    #[test]
    fn every_byte_has_a_segment(
        texts in prop::collection::vec("[a-zé雨🦀\"\\\\ \n\t]{1,60}", 1..30),
        window in 256u64..4_096,
        way in prop::sample::select(vec![ContinuationForm::Raw, ContinuationForm::Prefill, ContinuationForm::Instructed]),
        head in prop::option::of("[a-z ]{1,20}"),
        note in prop::option::of("[a-z ]{1,20}"),
    ) {
        let mut desk = Desk::new();
        for text in &texts {
            desk.append(text);
        }
        if let Some(head) = head {
            desk.run(Op::PinHead(NewText::owner(head, None)));
        }
        if let Some(note) = note {
            desk.run(Op::PinNote { text: NewText::owner(note, None), depth: Some(2) });
        }
        let estimator = Estimator::default();
        let ask = request(way, window);
        let assembled = match document(&desk.tree, &ask, &estimator) {
            Ok(assembled) => assembled,
            Err(ContextError::Empty) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let prompt = assembled.prompt.clone();
        if let Prompt::Raw(parts) = &prompt && parts.is_empty() {
            return Ok(());
        }
        let encoded = echo().encode(&prompt, &Params::default()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let segments = cover(&encoded, &assembled.pieces, &estimator).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut at = 0;
        for segment in segments.iter().filter(|segment| segment.decision == SegmentOutcome::Sent) {
            let (from, to) = segment.bytes.expect("sent segments have bytes");
            prop_assert_eq!(from, at);
            at = to;
        }
        prop_assert_eq!(at, encoded.body().len() as u64);
        prop_assert!(assembled.tokens <= ask.budget.budget, "{} > {}", assembled.tokens, ask.budget.budget);
        let full: String = texts.concat();
        let sent = prompt_text(&prompt);
        let last_line = full.trim_end().rsplit('\n').next().unwrap_or_default();
        prop_assert!(way == ContinuationForm::Raw || sent.contains(last_line) || assembled.new_start.is_some());
        prop_assert!(full.ends_with(&assembled.held));
    }
}

#[test]
fn a_part_without_a_piece_stops_the_request() {
    let desk = passages(2);
    let assembled =
        document(&desk.tree, &request(ContinuationForm::Raw, 8_192), &Estimator::default()).unwrap();
    let encoded = echo().encode(&assembled.prompt, &Params::default()).unwrap();
    let refused = cover(&encoded, &[], &Estimator::default());
    assert!(matches!(refused, Err(ContextError::Uncovered { .. })), "{refused:?}");
}
