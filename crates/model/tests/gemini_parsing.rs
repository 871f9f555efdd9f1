//! Recorded answers of Gemini, read whole, in pieces and byte by byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/recorded.rs"]
mod recorded;

use drawloom_model::dialect::FailureKind;
use drawloom_model::event::CallBegin;
use drawloom_model::sse::MAX_EVENT_BYTES;
use drawloom_model::{
    DialectName, FinishReason, ModelEvent, ParseError, ReplyPiece, TokenLogprob, TokenUsage, TopToken,
};
use folded::folded;
use proptest::prelude::*;
use recorded::{call, choice, parse, parse_pieces, reply, wire};
use serde_json::json;

fn text(text: &str) -> ReplyPiece {
    ReplyPiece::Text(text.to_owned())
}

#[test]
fn text_arrives_in_order_with_its_usage() {
    let (events, end) = parse("gemini_text.sse");
    assert_eq!(end, Ok(()));
    let text = |text: &str| ModelEvent::Text { choice: 0, text: text.to_owned() };
    let usage = |input_uncached, cache_read, output| TokenUsage {
        input_uncached,
        cache_read,
        cache_write: 0,
        output,
        reasoning: 0,
    };
    let start = ModelEvent::Start {
        id: Some("nYIhaeqWDt2ZkdUPoqzF4Qs".to_owned()),
        model: Some("gemini-2.5-flash".to_owned()),
    };
    let expected = [
        start,
        text("Guten"),
        ModelEvent::InterimUsage(usage(31, 0, 0)),
        text(" Tag, 中"),
        ModelEvent::InterimUsage(usage(7, 24, 4)),
        text("文 😀!"),
        ModelEvent::InterimUsage(usage(7, 24, 9)),
        ModelEvent::Finish { choice: 0, reason: FinishReason::Stop },
        ModelEvent::Usage(usage(7, 24, 9)),
    ];
    assert_eq!(events, expected);
}

#[test]
fn thoughts_are_kept_apart_and_a_signature_of_nothing_is_a_part_of_its_own() {
    let choice = choice("gemini_thinking.sse");
    let thought = "**Adding**\n\nTwo and two.\n".to_owned();
    let signature = json!({"text": "", "thoughtSignature": "EpwECpkEAXLI2nwTHo=="});
    let pieces = [
        ReplyPiece::Thinking { text: thought, opaque: None },
        text("It is 4."),
        ReplyPiece::Opaque(signature),
    ];
    assert_eq!(choice.pieces, pieces);
    let usage = reply("gemini_thinking.sse").usage.unwrap();
    assert_eq!((usage.output, usage.reasoning), (40, 35), "thoughts count as output");
}

#[test]
fn a_signature_comes_in_front_of_its_text_and_behind_its_thought() {
    let signed = |signature: &str| json!({"thoughtSignature": signature});
    let thought = ReplyPiece::Thinking { text: "Hm.".to_owned(), opaque: Some(signed("CiQB0e2Kb1==")) };
    let pieces = [thought, text("Well, "), ReplyPiece::Opaque(signed("CvIBAXLI2nyd==")), text("four.")];
    assert_eq!(choice("gemini_signed_text.sse").pieces, pieces);
}

#[test]
fn a_call_comes_whole_with_its_signature_in_front_and_a_stable_id() {
    let (events, _) = parse("gemini_tool_call.sse");
    let at = events.iter().position(|event| matches!(event, ModelEvent::ToolCall { .. })).unwrap();
    let json = json!({"thoughtSignature": "CoIDAeHbji0fGsQ=="});
    assert_eq!(events[at - 1], ModelEvent::Opaque { choice: 0, with_thinking: false, json });
    let begin = CallBegin { id: "call_t4QhaZ-8LqGWvdIPx4mj-AQ_0_0".to_owned(), name: "read_file".to_owned() };
    let arguments =
        r#"{"path":"notes.md","lines":[1,20],"deep":{"ratio":0.5,"all":true,"none":null}}"#.to_owned();
    assert_eq!(events[at], ModelEvent::ToolCall { choice: 0, index: 0, begin: Some(begin), arguments });
    assert_eq!(choice("gemini_tool_call.sse").finish, Some(FinishReason::ToolUse), "the server says `STOP`");
}

#[test]
fn parallel_calls_keep_their_ids_and_only_the_first_is_signed() {
    let choice = choice("gemini_parallel_calls.sse");
    let calls = [
        call("ugwn3nvw", "weather", r#"{"city":"Bern"}"#),
        call("xq1s7b1k", "weather", r#"{"city":"Köln"}"#),
        call("call_v4QhabPPNoK6vdIPy5ed0AE_0_2", "now", "{}"),
    ];
    assert_eq!(choice.tool_calls(), calls);
    let signatures = choice.pieces.iter().filter(|piece| matches!(piece, ReplyPiece::Opaque(_))).count();
    assert_eq!((signatures, choice.pieces.len()), (1, 4));
    assert_eq!(choice.finish, Some(FinishReason::ToolUse));
}

#[test]
fn pictures_are_media_with_their_signatures_in_front() {
    let choice = choice("gemini_image.sse");
    assert!(
        matches!(&choice.pieces[2], ReplyPiece::Opaque(json) if json["thoughtSignature"] == "CgEBimg1==")
    );
    let media = choice.pieces.iter().filter_map(|piece| match piece {
        ReplyPiece::Media(media) => Some(media),
        _ => None,
    });
    let media: Vec<_> = media.collect();
    assert_eq!(media.len(), 2);
    assert_eq!((media[0].mime.as_str(), &media[0].data[..4]), ("image/png", &b"\x89PNG"[..]));
}

#[test]
fn a_picture_that_is_no_base64_is_garbage() {
    let body = br#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%"}}]},"finishReason":"STOP"}]}"#;
    let end = parse_pieces("gemini_x.json", [body.as_slice()]).1;
    assert!(matches!(end, Err(ParseError::Garbage { .. })), "{end:?}");
}

#[test]
fn candidates_are_told_apart_by_index_and_the_first_may_lack_it() {
    let read: Vec<_> = reply("gemini_two_candidates.sse")
        .choices
        .iter()
        .map(|c| (c.index, c.text().into_owned(), c.finish.clone().unwrap()))
        .collect();
    assert_eq!(read, [(0, "bb".to_owned(), FinishReason::Stop), (1, "aa".to_owned(), FinishReason::Length)]);
}

#[test]
fn tokens_come_with_their_alternatives_likeliest_first() {
    let choice = choice("gemini_logprobs.sse");
    let top = |token: &str, logprob| TopToken {
        token: token.to_owned(),
        bytes: token.as_bytes().to_vec(),
        logprob,
    };
    let first = TokenLogprob {
        token: " the".to_owned(),
        bytes: b" the".to_vec(),
        logprob: Some(-0.25),
        top: vec![top(" the", -0.25), top(" a", -1.5)],
    };
    assert_eq!(choice.logprobs[0], first);
    assert_eq!(choice.logprobs[2].top, [], "a place without alternatives");
    let joined: Vec<u8> = choice.logprobs.iter().flat_map(|token| token.bytes.clone()).collect();
    assert_eq!(joined, choice.text().as_bytes());
}

#[test]
fn parts_of_other_kinds_are_kept_as_they_are() {
    let choice = choice("gemini_code.sse");
    let code = json!({
        "executableCode": {"language": "PYTHON", "code": "print(2+2)\n"},
        "thoughtSignature": "CgEBc0==",
    });
    assert_eq!(choice.pieces[0], ReplyPiece::Opaque(code));
    assert_eq!((choice.pieces.len(), &*choice.text()), (3, "Four."));
    let usage = reply("gemini_code.sse").usage.unwrap();
    assert_eq!(usage.input_uncached, 40, "what tools gave is input too");
}

#[test]
fn filters_limits_and_unknown_reasons_are_told_apart() {
    let finish = |name: &str| choice(name).finish.unwrap();
    assert_eq!(finish("gemini_safety.sse"), FinishReason::ContentFilter);
    assert_eq!(choice("gemini_safety.sse").text(), "First you");
    assert_eq!(finish("gemini_max_tokens.sse"), FinishReason::Length);
    assert_eq!(choice("gemini_max_tokens.sse").text(), "");
    assert_eq!(
        finish("gemini_malformed_call.sse"),
        FinishReason::Other("MALFORMED_FUNCTION_CALL".to_owned())
    );
    let reasons = [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ];
    for reason in reasons {
        let body = format!(r#"{{"candidates":[{{"finishReason":"{reason}"}}]}}"#);
        let (events, end) = parse_pieces("gemini_x.json", [body.as_bytes()]);
        assert_eq!(end, Ok(()));
        let last = events.last().unwrap();
        assert_eq!(*last, ModelEvent::Finish { choice: 0, reason: FinishReason::ContentFilter }, "{reason}");
    }
}

#[test]
fn a_refused_prompt_is_an_answer_that_was_filtered() {
    for name in ["gemini_blocked.sse", "gemini_blocked.json"] {
        let choice = choice(name);
        assert_eq!((choice.pieces.len(), choice.finish), (0, Some(FinishReason::ContentFilter)), "{name}");
        assert_eq!(reply(name).usage.unwrap().input_uncached, 9);
    }
}

#[test]
fn a_reason_in_every_chunk_ends_nothing_before_the_body_does() {
    let choice = choice("gemini_reason_in_every_chunk.sse");
    assert_eq!(choice.text(), "Hi there");
    assert_eq!(choice.tool_calls(), [call("call_0_0", "ls", "{}")]);
    assert_eq!(choice.finish, Some(FinishReason::ToolUse));
}

#[test]
fn a_whole_answer_reads_like_the_streamed_one() {
    for name in TWINS {
        let streamed = reply(&format!("gemini_{name}.sse"));
        let whole = reply(&format!("gemini_{name}.json"));
        assert_eq!(streamed, whole, "{name}");
    }
}

#[test]
fn a_cut_stream_keeps_what_came() {
    let (events, end) = parse("gemini_cut.sse");
    assert_eq!(end, Err(ParseError::Cut));
    let choice = folded(&events).choices.remove(0);
    assert_eq!((&*choice.text(), choice.finish.clone()), ("It was a dark and stormy", None));
}

#[test]
fn counts_behind_the_first_of_several_candidates_are_not_those_of_the_whole() {
    let chunk = |index: u32, reason: &str, output: u32| {
        let candidate =
            json!({"index": index, "content": {"parts": [{"text": "One"}]}, "finishReason": reason});
        let counts = json!({"promptTokenCount": 20, "candidatesTokenCount": output});
        format!("data: {}\n\n", json!({"candidates": [candidate], "usageMetadata": counts}))
    };
    let mut parser = DialectName::Gemini.parser(true);
    let mut events = Vec::new();
    // Earlier servers say in every chunk why they stopped.
    for (index, output) in [(0, 1), (0, 2), (1, 3)] {
        parser.feed(chunk(index, "STOP", output).as_bytes(), &mut events).unwrap();
        let cut = folded(&events);
        assert_eq!((cut.usage, cut.interim_usage.unwrap().output), (None, u64::from(output)));
    }
    parser.finish(&mut events).unwrap();
    assert_eq!(folded(&events).usage.unwrap().output, 3);
}

#[test]
fn a_stream_in_which_one_candidate_never_ended_is_cut() {
    let body = b"data: {\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"},{\"index\":1}]}\n\n";
    let (events, end) = parse_pieces("gemini_x.sse", [body.as_slice()]);
    assert_eq!(end, Err(ParseError::Cut));
    assert!(events.contains(&ModelEvent::Finish { choice: 0, reason: FinishReason::Stop }));
}

#[test]
fn a_whole_answer_that_breaks_off_is_cut_and_a_page_is_garbage() {
    let whole = wire("gemini_tool_call.json");
    let length = whole.trim_ascii_end().len();
    for end in [0, 1, length / 2, length - 1] {
        assert_eq!(parse_pieces("gemini_x.json", [&whole[..end]]).1, Err(ParseError::Cut), "{end}");
    }
    for page in ["<html></html>", "{\"status\":\"ok\"}", "[]", "null", "[{\"candidates\":[]}]", "[[],[]]"] {
        let end = parse_pieces("gemini_x.json", [page.as_bytes()]).1;
        assert!(matches!(end, Err(ParseError::Garbage { .. })), "{page}: {end:?}");
    }
    let silent = br#"{"usageMetadata":{"promptTokenCount":3},"modelVersion":"m"}"#;
    assert_eq!(
        parse_pieces("gemini_x.json", [silent.as_slice()]).1,
        Err(ParseError::Cut),
        "no candidate at all"
    );
}

#[test]
fn a_failure_in_mid_stream_is_the_servers_however_it_is_written() {
    for (name, kind) in [
        ("gemini_error_midstream.sse", FailureKind::Unavailable),
        ("gemini_error_plain_midstream.sse", FailureKind::RateLimited),
    ] {
        let (events, end) = parse(name);
        let Err(ParseError::Server(failure)) = end else { panic!("{name}: {end:?}") };
        assert_eq!(failure.kind, kind, "{name}");
        assert_eq!(folded(&events).choices[0].text(), "Wai");
    }
    let plain = wire("gemini_error_plain_midstream.sse");
    let end = parse_pieces("gemini_x.sse", [&plain[..plain.len() - 20]]).1;
    assert_eq!(end, Err(ParseError::Cut), "a failure that breaks off");
    let listed = br#"[{"error":{"code":500,"message":"m","status":"INTERNAL"}}]"#;
    for name in ["gemini_x.sse", "gemini_x.json"] {
        let end = parse_pieces(name, [listed.as_slice()]).1;
        assert!(matches!(end, Err(ParseError::Server(_))), "{name}: {end:?}");
    }
}

#[test]
fn garbage_after_text_is_an_error_that_keeps_the_text() {
    let (events, end) = parse("gemini_garbage.sse");
    let Err(ParseError::Garbage { why, .. }) = end else { panic!("{end:?}") };
    assert!(why.contains("<html>"), "{why}");
    assert_eq!(folded(&events).choices[0].text(), "Wai");
    let mut endless = b"{\"a\":[\n".to_vec();
    endless.extend(b"1,\n".repeat(16 * 1024));
    let end = parse_pieces("gemini_x.sse", [endless.as_slice()]).1;
    assert!(matches!(end, Err(ParseError::Garbage { .. })), "lines without end: {end:?}");
}

#[test]
fn every_failure_has_its_kind() {
    for (status, name, kind) in [
        (400, "bad_key", FailureKind::Unauthorized),
        (403, "no_key", FailureKind::Unauthorized),
        (404, "not_found", FailureKind::NotFound),
        (429, "rate_limit", FailureKind::RateLimited),
        (429, "daily_quota", FailureKind::QuotaExceeded),
        (429, "no_credit", FailureKind::QuotaExceeded),
        (503, "overloaded", FailureKind::Unavailable),
        (504, "deadline", FailureKind::Unavailable),
        (500, "internal", FailureKind::Unavailable),
        (400, "too_long", FailureKind::ContextTooLong),
        (400, "bad_request", FailureKind::Rejected),
    ] {
        let body = wire(&format!("gemini_error_{name}.json"));
        let failure = DialectName::Gemini.failure(status, &body);
        assert_eq!(failure.kind, kind, "{name}: {failure}");
        // The same in a body whose status was fine.
        let end = parse_pieces("gemini_x.json", [body.as_slice()]).1;
        assert_eq!(end, Err(ParseError::Server(failure)), "{name}");
    }
}

#[test]
fn failures_of_others_on_the_way_are_read_by_their_status() {
    let kind = |status, body: &str| DialectName::Gemini.failure(status, body.as_bytes()).kind;
    assert_eq!(kind(502, "<html>busy</html>"), FailureKind::Unavailable);
    assert_eq!(kind(429, r#"{"error":{"message":"slow down"}}"#), FailureKind::RateLimited);
    assert_eq!(kind(401, r#"{"error":"no key"}"#), FailureKind::Unauthorized);
    assert_eq!(kind(404, ""), FailureKind::NotFound);
    let failure =
        DialectName::Gemini.failure(400, b"{\"error\":{\"message\":\"no \\u001b[2J\",\"status\":\"X\"}}");
    assert_eq!(failure.message, "no \\u{1b}[2J");
    assert_eq!(DialectName::Gemini.failure(400, br#"{"error":{}}"#).message, "it gave no reason");
}

#[test]
fn comments_line_ends_and_other_fields_change_nothing() {
    for name in TWINS {
        let name = &format!("gemini_{name}.sse");
        let text = String::from_utf8(wire(name)).unwrap();
        let lines = text.replace("\r\n", "\n");
        let noisy = format!(": ping\n\n{}", lines.replace("data: ", ": c\nid: 7\nevent: m\ndata: "));
        for other in [lines.clone(), lines.replace('\n', "\r\n"), noisy] {
            assert_eq!(parse_pieces(name, [other.as_bytes()]), parse(name), "{name}");
        }
    }
}

#[test]
fn events_and_fields_that_are_not_known_are_skipped() {
    let body = "data: {}\n\ndata: {\"news\":1}\n\ndata:\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"partMetadata\":{\"k\":1}},{},{\"text\":null}],\"extra\":[]},\"finishReason\":\"STOP\",\"urlContextMetadata\":{}}],\"responseId\":null}\n\n";
    let (events, end) = parse_pieces("gemini_x.sse", [body.as_bytes()]);
    assert_eq!(end, Ok(()));
    let expected = [
        ModelEvent::Start { id: None, model: None },
        ModelEvent::Text { choice: 0, text: "a".to_owned() },
        ModelEvent::Finish { choice: 0, reason: FinishReason::Stop },
    ];
    assert_eq!(events, expected);
}

#[test]
fn halves_of_characters_join_over_chunks() {
    let chunk = |text: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
        )
    };
    let body = chunk("\\ud83d") + &chunk("\\ude00!");
    let (events, end) = parse_pieces("gemini_x.sse", [body.as_bytes()]);
    assert_eq!(end, Ok(()));
    assert_eq!(folded(&events).choices[0].text(), "😀!");
}

#[test]
fn a_line_without_end_is_refused_at_the_limit_and_a_large_one_below_it_is_read() {
    let mut parser = DialectName::Gemini.parser(true);
    let mut events = Vec::new();
    let piece = vec![b'a'; 1024 * 1024];
    parser.feed(b"data: ", &mut events).unwrap();
    let fed: Vec<_> = (0..17).map(|_| parser.feed(&piece, &mut events)).collect();
    assert!(fed[..15].iter().all(Result::is_ok));
    let error = Err(ParseError::TooLong { limit: MAX_EVENT_BYTES });
    assert_eq!((&fed[16], parser.finish(&mut events)), (&error, error.clone()), "an error stays");
    let text = "x".repeat(2 * 1024 * 1024);
    let body = format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
    );
    let (events, end) = parse_pieces("gemini_x.sse", body.as_bytes().chunks(16 * 1024));
    assert_eq!(end, Ok(()));
    assert_eq!(folded(&events).choices[0].text().len(), text.len());
}

/// Answers there are both streamed and whole.
const TWINS: &[&str] = &[
    "text",
    "thinking",
    "signed_text",
    "tool_call",
    "parallel_calls",
    "image",
    "two_candidates",
    "logprobs",
    "code",
    "safety",
    "blocked",
    "max_tokens",
];

proptest! {
    #[test]
    fn a_stream_cut_anywhere_gives_a_beginning_of_its_events_and_is_known_for_cut(
        name in proptest::sample::select(
            &["gemini_text.sse", "gemini_thinking.sse", "gemini_tool_call.sse", "gemini_parallel_calls.sse", "gemini_image.sse", "gemini_code.sse"][..],
        ),
        cut: proptest::sample::Index,
    ) {
        let bytes = wire(name);
        let whole = parse(name).0;
        let last = bytes.windows(6).rposition(|window| window == b"data: ").unwrap();
        // Less than the first event's name might be anything.
        let cut = 5 + cut.index(last - 5);
        let (events, end) = parse_pieces("gemini_x.sse", [&bytes[..cut]]);
        prop_assert_eq!(&events[..], &whole[..events.len()]);
        prop_assert_eq!(end, Err(ParseError::Cut));
    }
}
