//! Recorded answers of servers, read whole, in pieces and byte by byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/recorded.rs"]
mod recorded;

use drawloom_model::event::CallBegin;
use drawloom_model::sse::MAX_EVENT_BYTES;
use drawloom_model::{DialectName, FinishReason, ModelEvent, ParseError, TokenLogprob, TokenUsage, TopToken};
use folded::folded;
use recorded::{call, choice, parse, parse_pieces, reply, wire};

#[test]
fn text_arrives_in_order_with_its_usage() {
    let (events, end) = parse("chat_text.sse");
    assert_eq!(end, Ok(()));
    let text = |text: &str| ModelEvent::Text { choice: 0, text: text.to_owned() };
    let usage = TokenUsage { input_uncached: 7, cache_read: 24, cache_write: 0, output: 9, reasoning: 0 };
    let expected = [
        ModelEvent::Start {
            id: Some("chatcmpl-CVa1".to_owned()),
            model: Some("gpt-4.1-mini-2025-04-14".to_owned()),
        },
        text("Guten"),
        text(" Tag, 中"),
        text("文 😀!"),
        ModelEvent::Finish { choice: 0, reason: FinishReason::Stop },
        ModelEvent::InterimUsage(usage),
        ModelEvent::Usage(usage),
    ];
    assert_eq!(events, expected);
}

#[test]
fn comments_crlf_and_other_fields_change_nothing() {
    let choice = choice("chat_comments_crlf.sse");
    assert_eq!((&*choice.text(), choice.finish.clone()), ("Hi there", Some(FinishReason::Length)));
}

#[test]
fn a_tool_call_is_put_together_from_its_fragments() {
    let (events, _) = parse("chat_tool_call.sse");
    let begin = CallBegin { id: "call_Yx1".to_owned(), name: "read_file".to_owned() };
    let first = ModelEvent::ToolCall { choice: 0, index: 0, begin: Some(begin), arguments: String::new() };
    assert_eq!(events[1], first);
    let choice = choice("chat_tool_call.sse");
    assert_eq!(choice.tool_calls(), [call("call_Yx1", "read_file", r#"{"path":"notes.md"}"#)]);
    assert_eq!(choice.finish, Some(FinishReason::ToolUse));
}

#[test]
fn parallel_calls_stay_apart() {
    let choice = choice("chat_parallel_calls.sse");
    assert_eq!(choice.text(), "Both at once.");
    let expected =
        [call("call_A", "weather", r#"{"city":"Bern"}"#), call("call_B", "weather", r#"{"city":"Köln"}"#)];
    assert_eq!(choice.tool_calls(), expected);
}

#[test]
fn calls_under_one_index_are_told_apart_by_id() {
    let choice = choice("chat_calls_same_index.sse");
    assert_eq!(choice.tool_calls(), [call("call_A", "a", "{}"), call("call_B", "b", r#"{"k":1}"#)]);
    assert_eq!(choice.finish, Some(FinishReason::ToolUse), "although the server said `stop`");
}

#[test]
fn calls_without_ids_get_stable_ones_and_object_arguments_become_text() {
    let choice = choice("chat_calls_without_ids.sse");
    assert_eq!(choice.tool_calls(), [call("call_x2_0_0", "a", r#"{"k":1}"#), call("call_x2_0_1", "b", "")]);
}

#[test]
fn thinking_is_kept_apart_from_text() {
    let choice = choice("chat_thinking.sse");
    assert_eq!((&*choice.thinking(), &*choice.text()), ("Two and two.", "4"));
    let usage = folded(&parse("chat_thinking.sse").0).usage.unwrap();
    assert_eq!((usage.output, usage.reasoning), (40, 35));
}

#[test]
fn a_refusal_is_no_text() {
    let choice = choice("chat_refusal.sse");
    assert_eq!((&*choice.refusal(), &*choice.text()), ("I'm sorry, no.", ""));
    assert_eq!(choice.finish, Some(FinishReason::Refusal));
}

#[test]
fn interleaved_choices_are_sorted_by_index() {
    let choices = reply("chat_two_choices.sse").choices;
    let read: Vec<_> =
        choices.iter().map(|c| (c.index, c.text().into_owned(), c.finish.clone().unwrap())).collect();
    assert_eq!(read, [(0, "b".to_owned(), FinishReason::Stop), (1, "aa".to_owned(), FinishReason::Length)]);
}

#[test]
fn a_missing_done_is_forgiven_when_all_choices_ended() {
    assert_eq!(choice("chat_missing_done.sse").text(), "done");
}

#[test]
fn a_cut_stream_keeps_what_came() {
    let (events, end) = parse("chat_cut.sse");
    assert_eq!(end, Err(ParseError::Cut));
    let choice = folded(&events).choices.remove(0);
    assert_eq!((&*choice.text(), choice.finish.clone()), ("It was a dark and stormy", None));
}

#[test]
fn garbage_after_text_is_an_error_that_keeps_the_text() {
    let (events, end) = parse("garbage.sse");
    let Err(ParseError::Garbage { why, .. }) = end else { panic!("{end:?}") };
    assert!(why.contains("<html>"), "{why}");
    assert_eq!(folded(&events).choices[0].text(), "Well");
}

#[test]
fn a_failure_in_mid_stream_is_the_servers() {
    let (events, end) = parse("chat_error_midstream.sse");
    let Err(ParseError::Server(failure)) = end else { panic!("{end:?}") };
    assert_eq!(failure.message, "The server had an error while processing your request");
    assert_eq!(folded(&events).choices[0].text(), "Wai");
}

#[test]
fn a_whole_answer_reads_like_a_streamed_one() {
    let choices = reply("chat_whole.json").choices;
    assert_eq!((&*choices[0].thinking(), &*choices[0].text()), ("Hm.", "Here:"));
    assert_eq!(choices[0].tool_calls(), [call("call_1", "ls", r#"{"path":"."}"#)]);
    assert_eq!((&*choices[1].text(), choices[1].finish.clone()), ("Nothing.", Some(FinishReason::Stop)));
}

#[test]
fn a_whole_answer_that_breaks_off_is_cut_and_a_page_is_garbage() {
    let whole = wire("chat_whole.json");
    for end in [0, 1, whole.len() / 2, whole.len() - 1] {
        assert_eq!(parse_pieces("x.json", [&whole[..end]]).1, Err(ParseError::Cut), "{end}");
    }
    for page in ["<html></html>", "{\"status\":\"ok\"}", "[]", "null"] {
        let end = parse_pieces("x.json", [page.as_bytes()]).1;
        assert!(matches!(end, Err(ParseError::Garbage { .. })), "{page}: {end:?}");
    }
}

#[test]
fn completions_give_tokens_bytes_and_alternatives_likeliest_first() {
    let choice = choice("completion_logprobs.sse");
    assert_eq!(choice.text(), " the sea海");
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
    assert_eq!(choice.logprobs[2].bytes, b"\xe6\xb5", "a token that is no text is given by its bytes");
    let joined: Vec<u8> = choice.logprobs.iter().flat_map(|token| token.bytes.clone()).collect();
    assert_eq!(joined, choice.text().as_bytes());
}

#[test]
fn chat_gives_tokens_bytes_and_alternatives() {
    let choice = choice("chat_logprobs.sse");
    let joined: Vec<u8> = choice.logprobs.iter().flat_map(|token| token.bytes.clone()).collect();
    assert_eq!(joined, choice.text().as_bytes());
    assert_eq!(choice.logprobs[0].top[1].token, " a");
}

#[test]
fn completions_may_bring_several_choices_in_one_body() {
    let texts: Vec<_> =
        reply("completion_two_choices.json").choices.into_iter().map(|c| c.text().into_owned()).collect();
    assert_eq!(texts, [" one\n", " two"], "white space is kept");
}

#[test]
fn characters_split_over_deltas_are_whole_and_an_unfinished_one_is_dropped() {
    assert_eq!(choice("completion_split_utf8.sse").text(), "中 😀 end");
}

#[test]
fn events_without_blank_lines_between_them_are_read_one_by_one() {
    let text = wire("chat_text.sse");
    let squeezed = String::from_utf8(text).unwrap().replace("\n\n", "\n");
    assert_eq!(parse_pieces("x.sse", [squeezed.as_bytes()]), parse("chat_text.sse"));
}

#[test]
fn a_line_without_end_is_refused_at_the_limit() {
    let mut parser = DialectName::OpenAiChat.parser(true);
    let mut events = Vec::new();
    let piece = vec![b'a'; 1024 * 1024];
    parser.feed(b"data: ", &mut events).unwrap();
    let fed: Vec<_> = (0..17).map(|_| parser.feed(&piece, &mut events)).collect();
    assert!(fed[..15].iter().all(Result::is_ok));
    assert_eq!(fed[16], Err(ParseError::TooLong { limit: MAX_EVENT_BYTES }));
}

#[test]
fn a_large_line_below_the_limit_is_read() {
    let text = "x".repeat(2 * 1024 * 1024);
    let body = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
    );
    let (events, end) = parse_pieces("x.sse", body.as_bytes().chunks(16 * 1024));
    assert_eq!(end, Ok(()));
    assert_eq!(folded(&events).choices[0].text().len(), text.len());
}

#[test]
fn counts_that_are_no_object_are_none_and_spoil_nothing() {
    for (name, usage, details) in [
        ("chat_whole.json", "usage", "prompt_tokens_details"),
        ("completion_two_choices.json", "usage", "prompt_tokens_details"),
        ("responses_text.json", "usage", "input_tokens_details"),
        ("anthropic_text.json", "usage", "cache_creation"),
        ("gemini_text.json", "usageMetadata", ""),
    ] {
        let whole = reply(name);
        let body: serde_json::Value = serde_json::from_slice(&wire(name)).unwrap();
        let read = |body: &serde_json::Value| {
            let (events, end) = parse_pieces(name, [body.to_string().as_bytes()]);
            assert_eq!(end, Ok(()), "{name}: {body}");
            folded(&events)
        };
        assert!(read(&body).usage.is_some(), "{name}: the control");
        for none in ["[1,2]", "[]", "[[1],2]", "12", "\"12\"", "true"] {
            let none: serde_json::Value = serde_json::from_str(none).unwrap();
            let mut changed = body.clone();
            changed[usage] = none.clone();
            let read_again = read(&changed);
            assert_eq!((read_again.usage, read_again.interim_usage), (None, None), "{name}: {none}");
            assert_eq!(read_again.choices, whole.choices, "{name}: {none}");
            if details.is_empty() {
                continue;
            }
            let (mut without, mut changed) = (body.clone(), body.clone());
            without[usage][details] = serde_json::Value::Null;
            changed[usage][details] = none.clone();
            assert_eq!(read(&changed).usage, read(&without).usage, "{name}: {details} {none}");
        }
    }
}
