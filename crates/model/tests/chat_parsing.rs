//! Recorded answers of chat servers that go beyond OpenAI's: thinking to give back, pictures, counts, failures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/recorded.rs"]
mod recorded;

use drawloom_model::dialect::FailureKind;
use drawloom_model::{DialectName, FinishReason, ModelEvent, ParseError, ReplyPiece, TokenUsage, ToolCall};
use folded::folded;
use recorded::{choice, parse, parse_pieces, reply, wire};
use serde_json::json;

const RECORDED: &[&str] = &[
    "chat_deepseek_thinking_call.sse",
    "chat_deepseek_thinking_call.json",
    "chat_openrouter_details.sse",
    "chat_openrouter_details.json",
    "chat_openrouter_encrypted.sse",
    "chat_openrouter_image.sse",
    "chat_openrouter_image.json",
    "chat_openrouter_error_midstream.sse",
    "chat_mistral_thinking.sse",
    "chat_mistral_thinking.json",
    "chat_groq_usage.sse",
    "chat_vllm_usage.sse",
    "chat_content_filter.json",
];

fn text(text: &str) -> ReplyPiece {
    ReplyPiece::Text(text.to_owned())
}

fn thinking(text: &str, opaque: Option<serde_json::Value>) -> ReplyPiece {
    ReplyPiece::Thinking { text: text.to_owned(), opaque }
}

fn call(id: &str, arguments: &str) -> ReplyPiece {
    let (id, name, arguments) = (id.to_owned(), "weather".to_owned(), arguments.to_owned());
    ReplyPiece::Call(ToolCall { id, name, arguments })
}

#[test]
fn thinking_as_text_is_given_back_by_the_name_of_its_field() {
    let expected = [
        thinking("I need the weather.", Some(json!("reasoning_content"))),
        text("I look."),
        call("call_00_Qa7", r#"{"city":"Bern"}"#),
    ];
    let choice = choice("chat_deepseek_thinking_call.sse");
    assert_eq!(choice.pieces, expected);
    assert_eq!(choice.finish, Some(FinishReason::ToolUse));
    let usage = TokenUsage { input_uncached: 54, cache_read: 256, cache_write: 0, output: 58, reasoning: 21 };
    assert_eq!(reply("chat_deepseek_thinking_call.sse").usage, Some(usage));
}

#[test]
fn thinking_in_details_is_put_together_and_kept_whole() {
    let details = json!([{"type": "reasoning.text", "text": "They ask of rain.", "format": "anthropic-claude-v1",
        "index": 0, "signature": "EvcBCkgI+sig/=="}]);
    let expected = [
        thinking("They ask of rain.", Some(details)),
        text("Let me see."),
        call("toolu_01Ab", r#"{"city":"Bern"}"#),
    ];
    assert_eq!(choice("chat_openrouter_details.sse").pieces, expected);
    let usage =
        TokenUsage { input_uncached: 50, cache_read: 1000, cache_write: 150, output: 80, reasoning: 30 };
    assert_eq!(reply("chat_openrouter_details.sse").usage, Some(usage));
}

#[test]
fn what_is_encrypted_stands_before_the_call_it_came_with() {
    let entry = json!([{"type": "reasoning.encrypted", "data": "CiQBjz1rX0==", "id": "tool_weather_9Z",
        "format": "google-gemini-v1", "index": 0}]);
    let expected = [ReplyPiece::Opaque(entry), call("tool_weather_9Z", r#"{"city":"Bern"}"#)];
    assert_eq!(choice("chat_openrouter_encrypted.sse").pieces, expected);
}

#[test]
fn details_alone_are_shown_as_thinking() {
    let chunk = |delta: serde_json::Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
    };
    let entry = |kind: &str, words: &str, index: u32| json!({"type": kind, "text": words, "index": index});
    let stream = [
        chunk(json!({"reasoning_details": [entry("reasoning.text", "One", 0)]})),
        chunk(
            json!({"reasoning_details": [entry("reasoning.text", ", two", 0), entry("reasoning.text", ".", 1)]}),
        ),
        chunk(json!({"content": "Three"})),
        "data: [DONE]\n\n".to_owned(),
    ];
    let (events, end) = parse_pieces("chat_x.sse", [stream.concat().as_bytes()]);
    assert_eq!(end, Ok(()));
    let kept = json!([entry("reasoning.text", "One, two", 0), entry("reasoning.text", ".", 1)]);
    let pieces = folded(&events).choices.remove(0).pieces;
    assert_eq!(pieces, [thinking("One, two.", Some(kept)), text("Three")]);
}

#[test]
fn a_picture_the_model_made_is_read() {
    let choice = choice("chat_openrouter_image.sse");
    assert_eq!(choice.text(), "Here it is.");
    let ReplyPiece::Media(media) = &choice.pieces[1] else { panic!("{:?}", choice.pieces) };
    assert_eq!(media.mime, "image/png");
    assert!(media.data.starts_with(b"\x89PNG\r\n\x1a\n"));
}

#[test]
fn thinking_among_the_content_is_no_text() {
    let choice = choice("chat_mistral_thinking.sse");
    let expected = [
        thinking("Bern, then.", None),
        text("I ask."),
        call("D681PevKs", r#"{"city": "Bern"}"#),
        call("x9Yz01AbC", r#"{"city": "Köln"}"#),
    ];
    assert_eq!(choice.pieces, expected);
}

#[test]
fn a_body_and_its_stream_give_the_same() {
    for name in RECORDED.iter().filter_map(|name| name.strip_suffix(".json")) {
        let (stream, body) = (format!("{name}.sse"), format!("{name}.json"));
        if !RECORDED.contains(&stream.as_str()) {
            continue;
        }
        let (streamed, whole) = (reply(&stream), reply(&body));
        assert_eq!((streamed.choices, streamed.usage), (whole.choices, whole.usage), "{name}");
    }
}

#[test]
fn counts_are_found_wherever_servers_put_them() {
    let usage = |name| reply(name).usage.unwrap();
    let groq = TokenUsage { input_uncached: 16, cache_read: 64, cache_write: 0, output: 9, reasoning: 3 };
    assert_eq!(usage("chat_groq_usage.sse"), groq);
    let vllm = TokenUsage { input_uncached: 20, output: 4, ..TokenUsage::default() };
    assert_eq!(usage("chat_vllm_usage.sse"), vllm, "the last of many holds");
    assert_eq!(choice("chat_vllm_usage.sse").finish, Some(FinishReason::Length));
    assert_eq!(choice("chat_vllm_usage.sse").thinking(), "Hm.");
}

#[test]
fn a_filter_ends_an_answer() {
    let choice = choice("chat_content_filter.json");
    assert_eq!((&*choice.text(), choice.finish.clone()), ("It was", Some(FinishReason::ContentFilter)));
}

#[test]
fn a_failure_in_mid_stream_keeps_what_came() {
    let (events, end) = parse("chat_openrouter_error_midstream.sse");
    let Err(ParseError::Server(failure)) = end else { panic!("{end:?}") };
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert_eq!(failure.message, "Provider disconnected unexpectedly");
    assert_eq!(folded(&events).choices[0].text(), "The sto");
}

#[test]
fn a_failure_in_mid_stream_is_of_the_kind_its_name_says() {
    let kinds = [
        ("rate_limit_exceeded", FailureKind::RateLimited),
        ("invalid_request_error", FailureKind::Rejected),
        ("authentication_error", FailureKind::Unauthorized),
        ("context_length_exceeded", FailureKind::ContextTooLong),
        ("insufficient_quota", FailureKind::QuotaExceeded),
        ("server_error", FailureKind::Unavailable),
    ];
    for (name, kind) in kinds {
        let event = format!("event: error\ndata: {}\n\n", json!({"error": {"message": "no", "type": name}}));
        let (_, end) = parse_pieces("chat_x.sse", [event.as_bytes()]);
        let Err(ParseError::Server(failure)) = end else { panic!("{end:?}") };
        assert_eq!(failure.kind, kind, "{name}");
    }
}

#[test]
fn errors_of_each_server_are_told_apart() {
    let table = [
        // OpenAI
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            FailureKind::Unauthorized,
        ),
        (
            404,
            r#"{"error":{"message":"The model `gpt-z` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
            FailureKind::NotFound,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            FailureKind::QuotaExceeded,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            FailureKind::RateLimited,
        ),
        (
            400,
            r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            FailureKind::ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.5 with this model.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#,
            FailureKind::Rejected,
        ),
        // OpenRouter
        (
            402,
            r#"{"error":{"message":"Insufficient credits","code":402},"user_id":"u"}"#,
            FailureKind::QuotaExceeded,
        ),
        (
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens.","code":400,"metadata":{"provider_name":null}}}"#,
            FailureKind::ContextTooLong,
        ),
        (
            429,
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream","provider_name":"P"}}}"#,
            FailureKind::RateLimited,
        ),
        (503, r#"{"error":{"message":"No instances available","code":503}}"#, FailureKind::Unavailable),
        // DeepSeek
        (
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
            FailureKind::QuotaExceeded,
        ),
        (
            400,
            r#"{"error":{"message":"Missing `reasoning_content` field in the assistant message","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
            FailureKind::Rejected,
        ),
        // Mistral
        (
            422,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_error","param":null,"code":null}"#,
            FailureKind::Rejected,
        ),
        (401, r#"{"detail":"Unauthorized"}"#, FailureKind::Unauthorized),
        (
            400,
            r#"{"object":"error","message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}"#,
            FailureKind::ContextTooLong,
        ),
        (
            429,
            r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}"#,
            FailureKind::RateLimited,
        ),
        // Groq
        (
            413,
            r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 8000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}"#,
            FailureKind::Rejected,
        ),
        (
            400,
            r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            FailureKind::ContextTooLong,
        ),
        (
            503,
            r#"{"error":{"message":"Service unavailable","type":"internal_server_error"}}"#,
            FailureKind::Unavailable,
        ),
        // llama.cpp, while it loads
        (
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            FailureKind::Unavailable,
        ),
        // Ollama
        (
            404,
            r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
            FailureKind::NotFound,
        ),
    ];
    for (status, body, kind) in table {
        let failure = DialectName::OpenAiChat.failure(status, body.as_bytes());
        assert_eq!(failure.kind, kind, "{status} {body}");
        assert!(!failure.message.is_empty() && failure.message != body, "the message is read: {body}");
    }
}

#[test]
fn an_answer_that_breaks_off_in_its_thinking_has_nothing_to_give_back() {
    for name in ["chat_deepseek_thinking_call.sse", "chat_openrouter_details.sse"] {
        let bytes = wire(name);
        let end = bytes.windows(7).position(|w| w == b"I look." || w == b"Let me ").unwrap();
        let (events, cut) = parse_pieces("chat_x.sse", [&bytes[..end]]);
        assert_eq!(cut, Err(ParseError::Cut));
        assert!(!events.iter().any(|event| matches!(event, ModelEvent::Opaque { .. })), "{name}");
        assert!(!folded(&events).choices[0].thinking().is_empty());
    }
}

#[test]
fn counts_of_an_answer_that_goes_on_are_not_those_of_the_whole() {
    let chunk = |text: &str, finish: &str, output: u32| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":{finish}}}],\
             \"usage\":{{\"prompt_tokens\":20,\"completion_tokens\":{output}}}}}\n\n"
        )
    };
    let usage = |output| Some(TokenUsage { input_uncached: 20, output, ..TokenUsage::default() });
    let cut = folded(&parse_pieces("chat_x.sse", [chunk("One", "null", 1).as_bytes()]).0);
    assert_eq!((cut.usage, cut.interim_usage), (None, usage(1)));
    let ends = [chunk("", "\"stop\"", 2), "data: [DONE]\n\n".to_owned()];
    for (end, output) in ends.into_iter().zip([2, 1]) {
        let body = chunk("One", "null", 1) + &end;
        assert_eq!(folded(&parse_pieces("chat_x.sse", [body.as_bytes()]).0).usage, usage(output), "{end}");
    }
}

#[test]
fn counts_behind_the_first_of_several_choices_are_not_those_of_the_whole() {
    let chunk = |index: u32, finish: &str, output: u32| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"One\"}},\"finish_reason\":{finish}}}],\
             \"usage\":{{\"prompt_tokens\":20,\"completion_tokens\":{output}}}}}\n\n"
        )
    };
    let usage = |output| Some(TokenUsage { input_uncached: 20, output, ..TokenUsage::default() });
    let mut parser = DialectName::OpenAiChat.parser(true);
    let mut events = Vec::new();
    let mut counted = |said: &str| {
        parser.feed(said.as_bytes(), &mut events).unwrap();
        let reply = folded(&events);
        (reply.usage, reply.interim_usage)
    };
    assert_eq!(counted(&chunk(0, "\"stop\"", 1)), (None, usage(1)), "where it was cut here");
    assert_eq!(counted(&chunk(1, "null", 2)), (None, usage(2)));
    assert_eq!(counted(&chunk(1, "\"stop\"", 3)), (None, usage(3)));
    assert_eq!(counted("data: [DONE]\n\n"), (usage(3), None));
}

#[test]
fn counts_by_themselves_are_those_of_the_whole_once_the_stream_has_ended() {
    let choice = |index: u32, finish: &str| {
        let delta = r#"{"content":"One"}"#;
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{index},\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let counts = |output: u32| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[],\"usage\":{{\"prompt_tokens\":20,\"completion_tokens\":{output}}}}}\n\n"
        )
    };
    let usage = |output| Some(TokenUsage { input_uncached: 20, output, ..TokenUsage::default() });
    let first = choice(0, "\"stop\"") + &counts(1);
    let mut events = Vec::new();
    DialectName::OpenAiChat.parser(true).feed(first.as_bytes(), &mut events).unwrap();
    let reply = folded(&events);
    assert_eq!((reply.usage, reply.interim_usage), (None, usage(1)), "another choice may begin");
    for (rest, whole) in [
        (String::new(), usage(1)),
        ("data: [DONE]\n\n".to_owned(), usage(1)),
        (choice(1, "null"), None),
        (choice(1, "\"stop\"") + &counts(2), usage(2)),
    ] {
        let (events, _) = parse_pieces("chat_x.sse", [first.as_bytes(), rest.as_bytes()]);
        assert_eq!(folded(&events).usage, whole, "{rest}");
    }
}
