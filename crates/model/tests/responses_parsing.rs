//! Recorded answers in the form of responses, read whole, in pieces and byte by byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/recorded.rs"]
mod recorded;

use drawloom_model::dialect::FailureKind;
use drawloom_model::event::CallBegin;
use drawloom_model::sse::MAX_EVENT_BYTES;
use drawloom_model::{DialectName, FinishReason, ModelEvent, ParseError, ReplyPiece, TokenUsage};
use folded::folded;
use proptest::prelude::*;
use recorded::{Outcome, call, choice, parse, parse_pieces, reply, wire};
use serde_json::json;

fn parse_bytes(bytes: &[u8]) -> Outcome {
    parse_pieces("responses_x.sse", [bytes])
}

fn stream(events: &[serde_json::Value]) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

#[test]
fn text_arrives_in_order_with_its_usage() {
    let (events, end) = parse("responses_text.sse");
    assert_eq!(end, Ok(()));
    let text = |text: &str| ModelEvent::Text { choice: 0, text: text.to_owned() };
    let expected = [
        ModelEvent::Start { id: Some("resp_68f1a".to_owned()), model: Some("gpt-5.1-2025-11-13".to_owned()) },
        text("Guten"),
        text(" Tag, 中"),
        text("文 😀!"),
        ModelEvent::Finish { choice: 0, reason: FinishReason::Stop },
        ModelEvent::Usage(TokenUsage {
            input_uncached: 7,
            cache_read: 24,
            cache_write: 0,
            output: 9,
            reasoning: 0,
        }),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_whole_answer_reads_like_a_streamed_one() {
    for name in TWINS {
        let [streamed, whole] = ["sse", "json"].map(|form| reply(&format!("responses_{name}.{form}")));
        assert_eq!(streamed.choices, whole.choices, "{name}");
        assert_eq!((&streamed.id, streamed.usage), (&whole.id, whole.usage), "{name}");
    }
}

#[test]
fn comments_crlf_and_other_fields_change_nothing() {
    assert_eq!(parse("responses_comments_crlf.sse"), parse("responses_text.sse"));
}

#[test]
fn a_call_is_put_together_from_its_fragments() {
    let (events, _) = parse("responses_call.sse");
    let begin = CallBegin { id: "call_Yx1".to_owned(), name: "read_file".to_owned() };
    let first = ModelEvent::ToolCall { choice: 0, index: 0, begin: Some(begin), arguments: String::new() };
    assert_eq!(events[1], first);
    let choice = choice("responses_call.sse");
    assert_eq!(choice.tool_calls(), [call("call_Yx1", "read_file", r#"{"path":"notes.md"}"#)]);
    assert_eq!(choice.finish, Some(FinishReason::ToolUse));
}

#[test]
fn interleaved_calls_stay_apart_in_order_of_appearance() {
    let choice = choice("responses_parallel.sse");
    assert_eq!(choice.text(), "Both at once.");
    let expected =
        [call("call_A", "weather", r#"{"city":"Bern"}"#), call("call_B", "weather", r#"{"city":"Köln"}"#)];
    assert_eq!(choice.tool_calls(), expected);
}

#[test]
fn thinking_ends_with_the_item_the_provider_wants_back() {
    let choice = choice("responses_thinking.sse");
    let item = |id: &str, sealed: &str, summary: &[&str]| {
        let summary: Vec<_> =
            summary.iter().map(|text| json!({"type": "summary_text", "text": text})).collect();
        Some(json!({"id": id, "type": "reasoning", "encrypted_content": sealed, "summary": summary}))
    };
    let summary = ["**Looking** at it.", "Two and two."];
    let expected = [
        ReplyPiece::Thinking {
            text: summary.join("\n\n"),
            opaque: item("rs_t2", "gAAAAABpAbc-sealed-one", &summary),
        },
        ReplyPiece::Call(call("call_T1", "add", r#"{"a":2,"b":2}"#)),
        ReplyPiece::Thinking { text: String::new(), opaque: item("rs_t4", "gAAAAABpAbd-sealed-two", &[]) },
        ReplyPiece::Call(call("call_T2", "add", r#"{"a":4,"b":4}"#)),
    ];
    assert_eq!(choice.pieces, expected);
    assert_eq!(reply("responses_thinking.sse").usage.unwrap().reasoning, 128);
}

#[test]
fn what_is_wanted_back_has_no_state_and_says_something() {
    let done = |item: serde_json::Value| {
        let end = json!({"type": "response.completed", "response": {"status": "completed"}});
        let bytes = stream(&[json!({"type": "response.output_item.done", "item": item}), end]);
        folded(&parse_bytes(&bytes).0).choices.remove(0).pieces
    };
    let item =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", "status": null});
    let kept = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    assert_eq!(done(item), [ReplyPiece::Thinking { text: String::new(), opaque: Some(kept) }]);
    let shown = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": null, "content": [],
        "summary": [{"type": "summary_text", "text": "Hm."}]});
    assert_eq!(done(shown), [ReplyPiece::Thinking { text: "Hm.".to_owned(), opaque: None }]);
}

#[test]
fn two_messages_of_one_answer_are_paragraphs() {
    assert_eq!(choice("responses_two_messages.sse").text(), "I will look first.\n\nNothing there.");
}

#[test]
fn a_refusal_is_no_text() {
    let choice = choice("responses_refusal.sse");
    assert_eq!((&*choice.refusal(), &*choice.text()), ("I'm sorry, no.", ""));
    assert_eq!(choice.finish, Some(FinishReason::Refusal));
}

#[test]
fn an_incomplete_answer_says_why() {
    assert_eq!(choice("responses_length.sse").finish, Some(FinishReason::Length));
    assert_eq!(choice("responses_length.sse").text(), "It was a dark and stormy");
    assert_eq!(choice("responses_filter.sse").finish, Some(FinishReason::ContentFilter));
    let end = |detail: serde_json::Value| {
        let response = json!({"status": "incomplete", "incomplete_details": detail});
        let (events, end) =
            parse_bytes(&stream(&[json!({"type": "response.completed", "response": response})]));
        assert_eq!(end, Ok(()));
        folded(&events).choices.remove(0).finish
    };
    assert_eq!(end(json!({"reason": "new"})), Some(FinishReason::Other("new".to_owned())));
    assert_eq!(end(json!(null)), Some(FinishReason::Other("incomplete".to_owned())));
}

#[test]
fn a_picture_comes_once_and_where_it_was_made() {
    let choice = choice("responses_picture.sse");
    let [ReplyPiece::Media(media), ReplyPiece::Text(text)] = &choice.pieces[..] else {
        panic!("{:?}", choice.pieces)
    };
    assert_eq!((media.mime.as_str(), text.as_str()), ("image/png", "Here it is."));
    assert_eq!(&media.data[..], b"\x89PNG\r\n\x1a\n");
    let broken = json!({"type": "response.output_item.done", "item": {"type": "image_generation_call", "result": "%"}});
    assert!(matches!(parse_bytes(&stream(&[broken])).1, Err(ParseError::Garbage { .. })));
}

#[test]
fn items_and_events_of_other_kinds_are_skipped() {
    assert_eq!(choice("responses_hosted.sse").pieces, [ReplyPiece::Text("Found it.".to_owned())]);
}

#[test]
fn log_probabilities_come_once() {
    let choice = choice("responses_logprobs.sse");
    let joined: Vec<u8> = choice.logprobs.iter().flat_map(|token| token.bytes.clone()).collect();
    assert_eq!(joined, choice.text().as_bytes());
    assert_eq!(choice.logprobs[1].top[1].token, " sky");
}

#[test]
fn llama_cpp_ends_its_thinking_late_and_it_still_stands_in_front() {
    let choice = choice("responses_llama_cpp.sse");
    let [
        ReplyPiece::Thinking { text, opaque },
        ReplyPiece::Text(said),
        ReplyPiece::Call(add),
        ReplyPiece::Call(sub),
    ] = &choice.pieces[..]
    else {
        panic!("{:?}", choice.pieces)
    };
    assert_eq!((text.as_str(), said.as_str()), ("Two and two.", "Let me add."));
    assert_eq!(
        opaque.as_ref().unwrap()["content"],
        json!([{"type": "reasoning_text", "text": "Two and two."}])
    );
    assert_eq!((add, sub), (&call("fc_K9", "add", r#"{"a":2,"b":2}"#), &call("fc_K8", "sub", r#"{"a":1}"#)));
    assert_eq!(reply("responses_llama_cpp.sse").usage.unwrap().input_uncached, 21);
}

#[test]
fn what_no_delta_brought_comes_with_the_end_and_once() {
    for name in ["responses_only_done.sse", "responses_only_completed.sse"] {
        let (streamed, whole) = (reply(name), reply("responses_parallel.json"));
        assert_eq!((streamed.choices, streamed.usage), (whole.choices, whole.usage), "{name}");
    }
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "Once"}]});
    let whole =
        json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Once"});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let end = json!({"type": "response.completed", "response": {"output": [item]}});
    for events in [&[whole.clone(), done.clone(), end.clone()][..], &[whole, end.clone()], &[done, end]] {
        assert_eq!(folded(&parse_bytes(&stream(events)).0).choices[0].text(), "Once");
    }
}

#[test]
fn deltas_that_name_no_item_are_put_together() {
    let choice = choice("responses_bare_deltas.sse");
    assert_eq!(choice.text(), "Hello");
    assert_eq!(choice.tool_calls(), [call("call_resp_b1_0_0", "f", r#"{"k":1}"#)]);
}

#[test]
fn ids_that_change_from_event_to_event_double_nothing() {
    let choice = choice("responses_changing_ids.sse");
    assert_eq!((&*choice.thinking(), &*choice.text()), ("Hm.", "Yes, it is."));
    assert_eq!(choice.tool_calls(), [call("call_G", "ls", r#"{"path":"."}"#)]);
}

#[test]
fn halves_of_characters_are_joined_and_an_unfinished_one_is_dropped() {
    assert_eq!(choice("responses_halves.sse").text(), "a 😀 b ");
}

#[test]
fn a_cut_stream_keeps_what_came() {
    for name in ["responses_cut.sse", "responses_done_without_end.sse"] {
        let (events, end) = parse(name);
        assert_eq!(end, Err(ParseError::Cut), "{name}");
        let choice = folded(&events).choices.remove(0);
        assert_eq!((&*choice.text(), choice.finish.clone()), ("It was a dark and stormy", None));
    }
}

#[test]
fn a_failure_in_the_body_is_the_servers() {
    let kinds = [
        (
            "responses_failed.sse",
            FailureKind::Unavailable,
            "An error occurred while processing your request.",
        ),
        ("responses_failed.json", FailureKind::RateLimited, "Rate limit reached for gpt-5.1."),
        (
            "responses_error.sse",
            FailureKind::RateLimited,
            "Rate limit reached for gpt-5.1 on tokens per min (TPM). Please try again in 6.2s.",
        ),
    ];
    for (name, kind, message) in kinds {
        let (events, end) = parse(name);
        let Err(ParseError::Server(failure)) = end else { panic!("{name}: {end:?}") };
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message), "{name}");
        if name.ends_with(".sse") {
            assert_eq!(folded(&events).choices[0].text(), "Wai");
        }
    }
    let (events, _) = parse("responses_failed.sse");
    assert!(matches!(events.last(), Some(ModelEvent::Usage(_))), "what it cost is known");
}

#[test]
fn a_failure_may_be_written_plainly() {
    let bodies = [
        (
            "data: {\"error\":{\"code\":500,\"message\":\"oh\",\"type\":\"server_error\"}}\n\n",
            FailureKind::Unavailable,
        ),
        (
            "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"oh\"}}\n",
            FailureKind::ContextTooLong,
        ),
        ("data: {\"object\":\"error\",\"message\":\"oh\",\"code\":400}\n\n", FailureKind::Rejected),
        (
            "data: {\"type\":\"error\",\"error\":{\"code\":\"insufficient_quota\",\"message\":\"oh\"}}\n\n",
            FailureKind::QuotaExceeded,
        ),
        ("data: {\"type\":\"response.failed\",\"response\":{}}\n\n", FailureKind::Unavailable),
    ];
    for (body, kind) in bodies {
        let end = parse_bytes(body.as_bytes()).1;
        assert!(matches!(&end, Err(ParseError::Server(failure)) if failure.kind == kind), "{body}: {end:?}");
    }
}

#[test]
fn every_class_of_refused_request_is_told_apart() {
    let error = |kind: &str, code: &str, message: &str| {
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
    };
    let invalid = "invalid_request_error";
    let cases = [
        (401, error(invalid, "invalid_api_key", "Incorrect API key provided."), FailureKind::Unauthorized),
        (404, error(invalid, "model_not_found", "The model `x` does not exist."), FailureKind::NotFound),
        (429, error("tokens", "rate_limit_exceeded", "Rate limit reached."), FailureKind::RateLimited),
        (429, error("insufficient_quota", "insufficient_quota", "You are out."), FailureKind::QuotaExceeded),
        (503, error("service_unavailable_error", "server_is_overloaded", "Busy."), FailureKind::Unavailable),
        (500, error("server_error", "server_error", "Oh."), FailureKind::Unavailable),
        (
            400,
            error(
                invalid,
                "context_length_exceeded",
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            FailureKind::ContextTooLong,
        ),
        (400, error(invalid, "unknown_parameter", "Unknown parameter: 'seed'."), FailureKind::Rejected),
    ];
    for (status, body, kind) in cases {
        assert_eq!(DialectName::OpenAiResponses.failure(status, body.as_bytes()).kind, kind, "{body}");
    }
}

#[test]
fn garbage_is_told_from_a_cut() {
    let whole = wire("responses_call.json");
    for end in [0, 1, whole.len() / 2, whole.len() - 2] {
        assert_eq!(parse_pieces("responses_x.json", [&whole[..end]]).1, Err(ParseError::Cut), "{end}");
    }
    for page in ["<html></html>", "{\"status\":\"ok\"}", "[]", "null", "{\"output\":3}"] {
        let end = parse_pieces("responses_x.json", [page.as_bytes()]).1;
        assert!(matches!(end, Err(ParseError::Garbage { .. })), "{page}: {end:?}");
    }
    let pending = parse_pieces(
        "responses_x.json",
        [&br#"{"object":"response","status":"in_progress","output":[]}"#[..]],
    );
    assert_eq!(pending.1, Err(ParseError::Cut));
    let body = [wire("responses_cut.sse"), b"<html>502 Bad Gateway</html>\n\n".to_vec()].concat();
    let (events, end) = parse_bytes(&body);
    assert!(matches!(end, Err(ParseError::Garbage { why, .. }) if why.contains("<html>")));
    assert_eq!(folded(&events).choices[0].text(), "It was a dark and stormy");
}

#[test]
fn nothing_counts_behind_the_end() {
    let body =
        [wire("responses_text.sse"), b"data: {\"type\":\"error\",\"message\":\"late\"}\n\n<html>\n".to_vec()]
            .concat();
    assert_eq!(parse_bytes(&body), parse("responses_text.sse"));
    let mut parser = DialectName::OpenAiResponses.parser(true);
    parser.feed(&wire("responses_text.sse"), &mut Vec::new()).unwrap();
    assert!(parser.is_complete());
}

#[test]
fn huge_lines_and_endless_items_are_refused() {
    let mut parser = DialectName::OpenAiResponses.parser(true);
    let mut events = Vec::new();
    parser.feed(b"data: ", &mut events).unwrap();
    let piece = vec![b'a'; 1024 * 1024];
    let fed: Vec<_> = (0..17).map(|_| parser.feed(&piece, &mut events)).collect();
    assert!(fed[..15].iter().all(Result::is_ok));
    assert_eq!(fed[16], Err(ParseError::TooLong { limit: MAX_EVENT_BYTES }));
    let items: Vec<_> = (0..1025)
        .map(|at| json!({"type": "response.output_item.added", "output_index": at, "item": {"type": "message"}}))
        .collect();
    assert!(matches!(parse_bytes(&stream(&items)).1, Err(ParseError::Garbage { .. })));
    assert_eq!(parse_bytes(&stream(&items[..1024])).1, Err(ParseError::Cut));
}

#[test]
fn events_without_blank_lines_or_names_are_read_one_by_one() {
    let text = String::from_utf8(wire("responses_text.sse")).unwrap();
    let data: String =
        text.lines().filter(|line| line.starts_with("data")).map(|line| format!("{line}\n")).collect();
    assert_eq!(parse_bytes(data.as_bytes()), parse("responses_text.sse"));
}

const TWINS: &[&str] = &[
    "text",
    "call",
    "parallel",
    "thinking",
    "two_messages",
    "refusal",
    "length",
    "filter",
    "picture",
    "hosted",
    "logprobs",
    "llama_cpp",
];

const RECORDED: &[&str] = &[
    "responses_text.sse",
    "responses_text.json",
    "responses_call.sse",
    "responses_parallel.sse",
    "responses_parallel.json",
    "responses_thinking.sse",
    "responses_thinking.json",
    "responses_two_messages.sse",
    "responses_refusal.sse",
    "responses_length.sse",
    "responses_filter.sse",
    "responses_picture.sse",
    "responses_picture.json",
    "responses_hosted.sse",
    "responses_hosted.json",
    "responses_logprobs.sse",
    "responses_llama_cpp.sse",
    "responses_only_done.sse",
    "responses_only_completed.sse",
    "responses_bare_deltas.sse",
    "responses_changing_ids.sse",
    "responses_comments_crlf.sse",
    "responses_halves.sse",
    "responses_cut.sse",
    "responses_done_without_end.sse",
    "responses_failed.sse",
    "responses_failed.json",
    "responses_error.sse",
];

proptest! {
    /// Events of an answer in any order, any number of times, some left out: nothing panics, nothing is said after
    /// the end, and chunks make no difference.
    #[test]
    fn shuffled_events_are_read_without_panic(
        name in proptest::sample::select(RECORDED),
        order in proptest::collection::vec(any::<proptest::sample::Index>(), 0..40),
        cut: proptest::sample::Index,
    ) {
        let text = String::from_utf8(wire(name)).unwrap();
        let data: Vec<&str> = text.lines().filter(|line| line.starts_with("data")).collect();
        prop_assume!(!data.is_empty());
        let body: String = order.iter().map(|at| format!("{}\n\n", at.get(&data))).collect();
        let (head, tail) = body.as_bytes().split_at(cut.index(body.len() + 1));
        let (events, end) = parse_pieces("responses_x.sse", [head, tail]);
        prop_assert_eq!((&events, &end), (&parse_bytes(body.as_bytes()).0, &parse_bytes(body.as_bytes()).1));
        let again = events.iter().skip(1).any(|event| matches!(event, ModelEvent::Start { .. }));
        prop_assert!(!again);
    }
}
