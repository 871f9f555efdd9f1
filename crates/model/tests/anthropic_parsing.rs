//! Recorded answers in the messages dialect, read whole, in pieces and byte by byte.
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
use recorded::{call, choice, parse, parse_pieces, reply, wire};
use serde_json::json;

const DIALECT: DialectName = DialectName::AnthropicMessages;
const SIGNATURE: &str = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=";
const REDACTED: &str = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw";

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text { choice: 0, text: text.to_owned() }
}

#[test]
fn text_arrives_in_order_with_its_usage() {
    let (events, end) = parse("anthropic_text.sse");
    assert_eq!(end, Ok(()));
    let usage =
        |output| TokenUsage { input_uncached: 25, cache_read: 2048, cache_write: 1024, output, reasoning: 0 };
    let expected = [
        ModelEvent::Start {
            id: Some("msg_01Text".to_owned()),
            model: Some("claude-sonnet-4-5-20250929".to_owned()),
        },
        ModelEvent::InterimUsage(usage(1)),
        text("Guten"),
        text(" Tag, 中"),
        text("文 😀!"),
        ModelEvent::Finish { choice: 0, reason: FinishReason::Stop },
        ModelEvent::Usage(usage(15)),
    ];
    assert_eq!(events, expected);
}

#[test]
fn comments_crlf_pings_and_what_is_unknown_change_nothing() {
    let choice = choice("anthropic_comments_crlf.sse");
    assert_eq!((&*choice.text(), choice.finish.clone()), ("Hi there", Some(FinishReason::Stop)));
}

#[test]
fn a_tool_call_is_put_together_as_the_model_wrote_it() {
    let (events, _) = parse("anthropic_tool_call.sse");
    let begin = CallBegin { id: "toolu_01A".to_owned(), name: "read_file".to_owned() };
    let first = ModelEvent::ToolCall { choice: 0, index: 0, begin: Some(begin), arguments: String::new() };
    assert_eq!(events[2], first);
    let choice = choice("anthropic_tool_call.sse");
    assert_eq!(choice.tool_calls(), [call("toolu_01A", "read_file", r#"{"path": "notes.md"}"#)]);
    assert_eq!(choice.finish, Some(FinishReason::ToolUse));
}

#[test]
fn parallel_calls_stay_apart_and_one_without_arguments_has_an_empty_object() {
    let choice = choice("anthropic_parallel_calls.sse");
    assert_eq!(choice.text(), "Both at once.");
    let expected = [
        call("toolu_A", "weather", r#"{"city":"Bern"}"#),
        call("toolu_B", "weather", r#"{"city":"Köln"}"#),
        call("toolu_C", "now", "{}"),
    ];
    assert_eq!(choice.tool_calls(), expected);
}

#[test]
fn thinking_ends_with_what_goes_back() {
    let choice = choice("anthropic_thinking.sse");
    let thought = "The file first, then the answer.";
    let signed = json!({"type": "thinking", "thinking": thought, "signature": SIGNATURE});
    let redacted = json!({"type": "redacted_thinking", "data": REDACTED});
    let kept = json!({"type": "thinking", "signature": SIGNATURE});
    let expected = [
        ReplyPiece::Thinking { text: thought.to_owned(), opaque: Some(kept) },
        ReplyPiece::Thinking { text: String::new(), opaque: Some(redacted) },
        ReplyPiece::Text("Let me look.".to_owned()),
        ReplyPiece::Call(call("toolu_01R", "read_file", r#"{"path":"a"}"#)),
    ];
    assert_eq!(choice.pieces, expected, "the text stands once");
    assert_eq!(choice.pieces[0].opaque(), Some(signed));
    let usage = reply("anthropic_thinking.sse").usage.unwrap();
    assert_eq!((usage.output, usage.reasoning), (120, 80));
}

#[test]
fn thinking_that_is_not_shown_still_goes_back() {
    let body = r#"{"id":"m","content":[{"type":"thinking","thinking":"","signature":"EqQB"},{"type":"text","text":"4"}],"stop_reason":"end_turn"}"#;
    let (events, _) = parse_pieces("anthropic_x.json", [body.as_bytes()]);
    let opaque = Some(json!({"type": "thinking", "thinking": "", "signature": "EqQB"}));
    let pieces = &folded(&events).choices[0].pieces;
    assert_eq!(pieces[0], ReplyPiece::Thinking { text: String::new(), opaque });
}

#[test]
fn blocks_of_the_servers_own_tools_are_kept_whole() {
    let choice = choice("anthropic_server_tools.sse");
    assert_eq!(choice.text(), "It rained.");
    let ReplyPiece::Opaque(used) = &choice.pieces[0] else { panic!("{:?}", choice.pieces) };
    assert_eq!((&used["type"], &used["input"]), (&json!("server_tool_use"), &json!({"query": "rain"})));
    let ReplyPiece::Opaque(found) = &choice.pieces[1] else { panic!("{:?}", choice.pieces) };
    assert_eq!(found["content"][0]["encrypted_content"], "EqgfCio=");
    assert!(choice.tool_calls().is_empty(), "they are not ours to run");
    assert_eq!(choice.finish, Some(FinishReason::Other("pause_turn".to_owned())));
    let usage = reply("anthropic_server_tools.sse").usage.unwrap();
    assert_eq!((usage.input_uncached, usage.output), (10682, 510), "later counts hold");
}

#[test]
fn a_block_that_was_not_understood_does_not_go_back() {
    let body = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"sketch\"}}\n\n\
                data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"sketch_delta\",\"line\":[1]}}\n\n\
                data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
                data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                data: {\"type\":\"message_stop\"}\n\n";
    let (events, end) = parse_pieces("anthropic_x.sse", [body.as_bytes()]);
    assert_eq!(end, Ok(()));
    let finish = ModelEvent::Finish { choice: 0, reason: FinishReason::Stop };
    assert_eq!(events, [ModelEvent::Start { id: None, model: None }, finish]);
}

#[test]
fn a_block_of_an_unknown_kind_goes_back_whole_whatever_its_fields_mean() {
    let block = json!({"type": "sketch", "text": [1], "name": 7, "signature": {"by": "k"}});
    let whole =
        json!({"content": [block, {"type": "text", "text": "a"}], "stop_reason": "end_turn"}).to_string();
    let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
    let odd = json!({"type": "content_block_delta", "index": 9, "delta": {"type": "odd", "text": 1}});
    let streamed = format!(
        "data: {start}\n\ndata: {odd}\n\n{}{}{}",
        frame(9, 0, ""),
        "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
        frame(11, 0, "")
    );
    for (name, body) in [("anthropic_x.json", whole), ("anthropic_x.sse", streamed)] {
        let (events, end) = parse_pieces(name, [body.as_bytes()]);
        assert_eq!(end, Ok(()), "{name}");
        let expected = [ReplyPiece::Opaque(block.clone()), ReplyPiece::Text("a".to_owned())];
        assert_eq!(folded(&events).choices[0].pieces, expected, "{name}");
    }
}

#[test]
fn every_reason_to_stop_is_known() {
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("tool_use", FinishReason::ToolUse),
        ("refusal", FinishReason::Refusal),
        ("pause_turn", FinishReason::Other("pause_turn".to_owned())),
    ] {
        let body = json!({"content": [{"type": "text", "text": "a"}], "stop_reason": reason}).to_string();
        let (events, _) = parse_pieces("anthropic_x.json", [body.as_bytes()]);
        assert_eq!(folded(&events).choices[0].finish, Some(expected), "{reason}");
    }
}

#[test]
fn a_refusal_says_why_and_keeps_the_text_before_it() {
    let choice = choice("anthropic_refusal.sse");
    assert_eq!((&*choice.text(), &*choice.refusal()), ("Well, ", "This request was declined."));
    assert_eq!(choice.finish, Some(FinishReason::Refusal));
}

#[test]
fn a_full_answer_is_told_by_its_reason() {
    let choice = choice("anthropic_max_tokens.sse");
    assert_eq!((&*choice.text(), choice.finish.clone()), ("Once upon", Some(FinishReason::Length)));
}

#[test]
fn servers_of_others_may_say_less() {
    let reply = reply("anthropic_llama.sse");
    let choice = &reply.choices[0];
    assert_eq!(choice.pieces[0], ReplyPiece::Thinking { text: "Hm.".to_owned(), opaque: None });
    assert_eq!(choice.tool_calls(), [call("call_chatcmpl-Zq1_0", "ls", r#"{"path":"."}"#)]);
    assert_eq!(choice.finish, Some(FinishReason::ToolUse), "although the server said `end_turn`");
    let expected = TokenUsage { input_uncached: 9, cache_read: 11, cache_write: 0, output: 31, reasoning: 0 };
    assert_eq!(reply.usage, Some(expected));
}

#[test]
fn a_whole_answer_reads_like_a_streamed_one() {
    for name in ["text", "parallel_calls", "thinking", "server_tools", "refusal", "max_tokens"] {
        let streamed = reply(&format!("anthropic_{name}.sse"));
        assert_eq!(reply(&format!("anthropic_{name}.json")), streamed, "{name}");
    }
}

#[test]
fn a_cut_stream_keeps_what_came_and_no_half_signature() {
    let (events, end) = parse("anthropic_cut.sse");
    assert_eq!(end, Err(ParseError::Cut));
    let reply = folded(&events);
    let choice = &reply.choices[0];
    assert!(matches!(&choice.pieces[0], ReplyPiece::Thinking { opaque: Some(_), .. }));
    assert_eq!(choice.pieces[1], ReplyPiece::Thinking { text: "Or".to_owned(), opaque: None });
    assert_eq!(choice.finish, None);
    assert_eq!(reply.usage, None, "the output that a stream begins with is not that of the answer");
    assert_eq!(reply.interim_usage.unwrap().cache_read, 12, "what was read is paid for all the same");
}

#[test]
fn input_is_counted_before_anything_of_the_answer_and_nothing_else_is_heard() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    let error =
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let usage = TokenUsage { input_uncached: 9, output: 1, ..TokenUsage::default() };
    let expected = [ModelEvent::Start { id: None, model: None }, ModelEvent::InterimUsage(usage)];
    let (events, end) = parse_pieces("anthropic_x.sse", [start.as_bytes()]);
    assert_eq!((&events[..], end), (&expected[..], Err(ParseError::Cut)));
    let (events, end) = parse_pieces("anthropic_x.sse", [start.as_bytes(), error.as_bytes()]);
    assert!(matches!(end, Err(ParseError::Server(_))));
    assert_eq!(events, expected, "so that it can be asked again");
}

#[test]
fn garbage_after_text_is_an_error_that_keeps_the_text() {
    let (events, end) = parse("anthropic_garbage.sse");
    let Err(ParseError::Garbage { why, .. }) = end else { panic!("{end:?}") };
    assert!(why.contains("<html>"), "{why}");
    assert_eq!(folded(&events).choices[0].text(), "Well");
}

#[test]
fn a_failure_in_mid_stream_is_the_servers() {
    let (events, end) = parse("anthropic_error_midstream.sse");
    let Err(ParseError::Server(failure)) = end else { panic!("{end:?}") };
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Unavailable, "Overloaded"));
    assert_eq!(folded(&events).choices[0].text(), "Wai");
}

#[test]
fn a_failure_in_a_whole_body_is_the_servers() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let Err(ParseError::Server(failure)) = parse_pieces("anthropic_x.json", [body.as_bytes()]).1 else {
        panic!()
    };
    assert_eq!(failure.kind, FailureKind::RateLimited);
}

#[test]
fn the_kind_of_an_error_response_is_known() {
    let limited = br#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your rate limit."},"request_id":"req_1"}"#;
    assert_eq!(DIALECT.failure(429, limited).kind, FailureKind::RateLimited);
    let long = br#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#;
    assert_eq!(DIALECT.failure(400, long).kind, FailureKind::ContextTooLong);
    assert_eq!(DIALECT.failure(529, b"").kind, FailureKind::Unavailable);
}

#[test]
fn a_whole_answer_that_breaks_off_is_cut_and_a_page_is_garbage() {
    let whole = wire("anthropic_thinking.json");
    for end in [0, 1, whole.len() / 2, whole.len() - 2] {
        assert_eq!(parse_pieces("anthropic_x.json", [&whole[..end]]).1, Err(ParseError::Cut), "{end}");
    }
    for page in ["<html></html>", "{\"status\":\"ok\"}", "[]", "null"] {
        let end = parse_pieces("anthropic_x.json", [page.as_bytes()]).1;
        assert!(matches!(end, Err(ParseError::Garbage { .. })), "{page}: {end:?}");
    }
}

#[test]
fn a_stream_of_another_dialect_is_garbage() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    assert!(matches!(parse_pieces("anthropic_x.sse", [body.as_slice()]).1, Err(ParseError::Garbage { .. })));
}

#[test]
fn characters_split_over_deltas_are_whole_and_an_unfinished_one_is_dropped() {
    assert_eq!(choice("anthropic_split_characters.sse").text(), "a 😀 end");
}

#[test]
fn events_without_blank_lines_between_them_are_read_one_by_one() {
    let text = wire("anthropic_text.sse");
    let squeezed = String::from_utf8(text).unwrap().replace("\n\n", "\n");
    assert_eq!(parse_pieces("anthropic_x.sse", [squeezed.as_bytes()]), parse("anthropic_text.sse"));
}

#[test]
fn a_line_without_end_is_refused_at_the_limit() {
    let mut parser = DIALECT.parser(true);
    let mut events = Vec::new();
    let piece = vec![b'a'; 1024 * 1024];
    parser.feed(b"data: ", &mut events).unwrap();
    let fed: Vec<_> = (0..17).map(|_| parser.feed(&piece, &mut events)).collect();
    assert!(fed[..15].iter().all(Result::is_ok));
    assert_eq!(fed[16], Err(ParseError::TooLong { limit: MAX_EVENT_BYTES }));
}

proptest! {
    #[test]
    fn any_events_are_read_without_panic_and_alike_under_any_chunking(
        frames in proptest::collection::vec((0_usize..14, 0_u32..3, "[ -~]{0,12}"), 0..12),
        tail in proptest::collection::vec(any::<u8>(), 0..40),
        cut: proptest::sample::Index,
    ) {
        let frames: String = frames.iter().map(|(kind, index, text)| frame(*kind, *index, text)).collect();
        let body = [frames.into_bytes(), tail].concat();
        let (head, rest) = body.split_at(cut.index(body.len() + 1));
        prop_assert_eq!(parse_pieces("anthropic_x.sse", [head, rest]), parse_pieces("anthropic_x.sse", [body.as_slice()]));
    }

}

/// Events in any order, also those that make no sense.
fn frame(kind: usize, index: u32, text: &str) -> String {
    let start = |block: serde_json::Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |delta: serde_json::Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let event = match kind {
        0 => json!({"type": "message_start", "message": {"id": text, "usage": {"input_tokens": index}}}),
        1 => start(json!({"type": "text", "text": text})),
        2 => start(json!({"type": "thinking", "signature": text})),
        3 => start(json!({"type": "tool_use", "id": text, "input": {"a": text}})),
        4 => start(json!({"type": text, "input": null})),
        5 => delta(json!({"type": "text_delta", "text": text})),
        6 => delta(json!({"type": "thinking_delta", "thinking": text})),
        7 => delta(json!({"type": "input_json_delta", "partial_json": text})),
        8 => delta(json!({"type": "signature_delta", "signature": text})),
        9 => json!({"type": "content_block_stop", "index": index}),
        10 => {
            json!({"type": "message_delta", "delta": {"stop_reason": text}, "usage": {"output_tokens": index}})
        }
        11 => json!({"type": "message_stop"}),
        12 => json!({"type": text, "index": text}),
        _ => json!({"type": "error", "error": {"message": text}}),
    };
    format!("data: {event}\n\n")
}
