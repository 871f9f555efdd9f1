//! Requests as they are sent, and which of their bytes come from where.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use drawloom_model::encoded::CoveredRange;
use drawloom_model::openai_chat::OpenAiChat;
use drawloom_model::openai_completions::OpenAiCompletions;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::quirks::{LimitField, PrefillForm, Quirks};
use drawloom_model::{
    Chat, ChatPart, Dialect, DialectName, EncodeError, EncodedRequest, Params, PartId, PartKind, PartRange,
    Prompt, TextPart, ToolCall, ToolExchange, ToolResult, ToolSchema,
};
use proptest::prelude::*;

fn text(id: u32, text: &str) -> TextPart {
    TextPart::new(PartId(id), text)
}

fn exchange(id: u32, name: &str, arguments: &str, result: &str) -> ToolExchange {
    ToolExchange {
        before: Vec::new(),
        call_part: PartId(id),
        call: ToolCall { id: format!("call_{id}"), name: name.to_owned(), arguments: arguments.to_owned() },
        result_part: PartId(id + 1),
        result: ToolResult { status: ToolStatus::Ok, text: result.to_owned(), media: Vec::new() },
    }
}

fn conversation() -> Chat {
    Chat {
        tools: vec![ToolSchema {
            id: PartId(0),
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        }],
        messages: vec![
            ChatPart::System(text(1, "Be \"kind\".")),
            ChatPart::System(text(2, "AGENTS\n")),
            ChatPart::User(text(3, "Read a and b — 中")),
            ChatPart::Injected(text(4, "Card: files")),
            ChatPart::Assistant(text(5, "Both.")),
            ChatPart::ToolRound(vec![
                exchange(6, "read", r#"{"path":"a"}"#, "A\t1"),
                exchange(8, "read", r#"{"path":"b"}"#, ""),
            ]),
            ChatPart::ToolRound(vec![exchange(10, "read", "{}", "C")]),
            ChatPart::User(text(12, "Thanks")),
        ],
        ..Chat::default()
    }
}

/// The body with each part marked by its id, which shows parts and framing at a glance.
fn marked(encoded: &EncodedRequest) -> String {
    let body = encoded.body();
    let piece = |range: std::ops::Range<usize>| String::from_utf8(body[range].to_vec()).unwrap();
    let cover = encoded.cover().into_iter().map(|covered| match covered {
        CoveredRange::Part(range) => format!("⟨{}:{}⟩", range.part.0, piece(range.bytes.clone())),
        CoveredRange::Framing(range) => piece(range),
    });
    cover.collect()
}

#[test]
fn a_conversation_is_encoded_with_every_part_marked() {
    let encoded =
        OpenAiChat::default().encode(&Prompt::Chat(conversation()), &Params::default(), "m").unwrap();
    assert_eq!(encoded.path(), "chat/completions");
    insta::assert_snapshot!(marked(&encoded).replace(",{\"role\"", "\n,{\"role\""), @r#"
{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":⟨0:{"name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}⟩}],"messages":[{"role":"system","content":"⟨1:Be \"kind\".⟩\n\n⟨2:AGENTS\n⟩"}
,{"role":"user","content":"⟨3:Read a and b — 中⟩\n\n⟨4:Card: files⟩"}
,{"role":"assistant","content":"⟨5:Both.⟩","tool_calls":[{"id":"call_6","type":"function","function":{"name":"⟨6:read⟩","arguments":"⟨6:{\"path\":\"a\"}⟩"}},{"id":"call_8","type":"function","function":{"name":"⟨8:read⟩","arguments":"⟨8:{\"path\":\"b\"}⟩"}}]}
,{"role":"tool","tool_call_id":"call_6","content":"⟨7:A\t1⟩"}
,{"role":"tool","tool_call_id":"call_8","content":"⟨9:⟩"}
,{"role":"assistant","content":null,"tool_calls":[{"id":"call_10","type":"function","function":{"name":"⟨10:read⟩","arguments":"⟨10:{}⟩"}}]}
,{"role":"tool","tool_call_id":"call_10","content":"⟨11:C⟩"}
,{"role":"user","content":"⟨12:Thanks⟩"}]}
"#);
}

#[test]
fn every_parameter_has_its_field() {
    let params = Params {
        temperature: Some(0.7),
        top_p: Some(0.9),
        min_p: Some(0.05),
        max_tokens: Some(64),
        stop: vec!["\n\n".to_owned()],
        seed: Some(-3),
        logprobs: Some(4),
        n: 3,
        stream: false,
        ..Params::default()
    };
    let chat = Chat { messages: vec![ChatPart::User(text(1, "Hi"))], ..Chat::default() };
    let dialect =
        OpenAiChat { quirks: Quirks { limit: LimitField::MaxCompletionTokens, ..Quirks::default() } };
    let encoded = dialect.encode(&Prompt::Chat(chat), &params, "m").unwrap();
    insta::assert_snapshot!(marked(&encoded), @r#"{"model":"m","temperature":0.7,"top_p":0.9,"min_p":0.05,"max_completion_tokens":64,"stop":["\n\n"],"seed":-3,"n":3,"logprobs":true,"top_logprobs":4,"messages":[{"role":"user","content":"⟨1:Hi⟩"}]}"#);
    let raw = Prompt::Raw(vec![text(1, "Once "), text(2, ""), text(3, "upon\n")]);
    let encoded = OpenAiCompletions::default().encode(&raw, &params, "m").unwrap();
    assert_eq!(encoded.path(), "completions");
    insta::assert_snapshot!(marked(&encoded), @r#"{"model":"m","temperature":0.7,"top_p":0.9,"min_p":0.05,"max_tokens":64,"stop":["\n\n"],"seed":-3,"n":3,"logprobs":4,"prompt":"⟨1:Once ⟩⟨2:⟩⟨3:upon\n⟩"}"#);
}

#[test]
fn a_beginning_of_the_answer_comes_last_and_is_asked_to_be_continued_where_needed() {
    let chat = Chat {
        messages: vec![ChatPart::User(text(1, "Go on."))],
        prefill: Some(text(2, "It was ")),
        ..Chat::default()
    };
    let dialect =
        OpenAiChat { quirks: Quirks { prefill: PrefillForm::ContinueFinalMessage, ..Quirks::default() } };
    let encoded = dialect.encode(&Prompt::Chat(chat), &Params::default(), "m").unwrap();
    insta::assert_snapshot!(marked(&encoded), @r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"add_generation_prompt":false,"continue_final_message":true,"messages":[{"role":"user","content":"⟨1:Go on.⟩"},{"role":"assistant","content":"⟨2:It was ⟩"}]}"#);
}

#[test]
fn what_a_dialect_cannot_say_is_refused() {
    let chat = OpenAiChat::default();
    let raw = Prompt::Raw(vec![text(1, "a")]);
    let empty = Prompt::Chat(Chat::default());
    let unsupported = |error: EncodeError| error.code() == "unsupported";
    assert!(unsupported(chat.encode(&raw, &Params::default(), "m").unwrap_err()));
    assert!(unsupported(OpenAiCompletions::default().encode(&empty, &Params::default(), "m").unwrap_err()));
    assert_eq!(chat.encode(&empty, &Params::default(), "m"), Err(EncodeError::Empty));
    for params in [
        Params { temperature: Some(f64::NAN), ..Params::default() },
        Params { top_p: Some(-1.0), ..Params::default() },
        Params { n: 0, ..Params::default() },
    ] {
        let error = OpenAiCompletions::default().encode(&raw, &params, "m").unwrap_err();
        assert_eq!(error.code(), "bad_parameter");
    }
}

#[test]
fn ranges_that_do_not_fit_the_body_are_refused() {
    let body = "{\"ä\":1}";
    let new = |ranges: &[(usize, usize)]| {
        let ranges = ranges
            .iter()
            .map(|&(from, to)| PartRange { part: PartId(1), kind: PartKind::User, bytes: from..to })
            .collect();
        EncodedRequest::new(DialectName::OpenAiChat, "p", body.into(), ranges, true)
    };
    assert!(new(&[(2, 4), (4, 5)]).is_ok());
    for ranges in [&[(2, 4), (3, 5)][..], &[(7, 99)], &[(2, 3)]] {
        assert_eq!(new(ranges), Err(EncodeError::Coverage { part: 1 }), "{ranges:?}");
    }
}

fn any_part(kind: u8, id: u32, a: &str, b: &str) -> ChatPart {
    match kind % 5 {
        0 => ChatPart::System(TextPart::new(PartId(id), a)),
        1 => ChatPart::User(TextPart::new(PartId(id), a)),
        2 => ChatPart::Injected(TextPart::new(PartId(id), a)),
        3 => ChatPart::Assistant(TextPart::new(PartId(id), a)),
        _ => ChatPart::ToolRound(vec![exchange(id, a, b, a), exchange(id + 2, b, a, b)]),
    }
}

proptest! {
    #[test]
    fn parts_and_framing_cover_the_body_and_give_every_text_back(
        parts in proptest::collection::vec((any::<u8>(), any::<String>(), any::<String>()), 1..8),
    ) {
        let messages: Vec<ChatPart> = parts
            .into_iter()
            .enumerate()
            .map(|(at, (kind, a, b))| any_part(kind, u32::try_from(at).unwrap() * 4, &a, &b))
            .collect();
        let prompt = Prompt::Chat(Chat { messages: messages.clone(), ..conversation() });
        let encoded = OpenAiChat::default().encode(&prompt, &Params::default(), "m").unwrap();
        let mut at = 0;
        for covered in encoded.cover() {
            let range = match covered {
                CoveredRange::Part(part) => part.bytes.clone(),
                CoveredRange::Framing(range) => range,
            };
            prop_assert_eq!(range.start, at);
            at = range.end;
        }
        prop_assert_eq!(at, encoded.body().len());
        serde_json::from_slice::<serde_json::Value>(encoded.body()).unwrap();
        let plain = |id: u32| -> Vec<String> {
            let own = encoded.ranges().iter().filter(|r| r.part == PartId(id) && r.kind != PartKind::Schema);
            own.map(|range| encoded.plain_text(range)).collect()
        };
        for message in &messages {
            match message {
                ChatPart::System(t) | ChatPart::User(t) | ChatPart::Injected(t) | ChatPart::Assistant(t) => {
                    prop_assert_eq!(plain(t.id.0), vec![t.text.clone()]);
                }
                ChatPart::Media(_) | ChatPart::Opaque(_) => {}
                ChatPart::ToolRound(round) => for e in round {
                    prop_assert_eq!(plain(e.call_part.0)[..2].to_vec(), vec![e.call.name.clone(), e.call.arguments.clone()]);
                    prop_assert!(plain(e.result_part.0).contains(&e.result.text));
                },
            }
        }
    }

    #[test]
    fn raw_text_is_sent_byte_for_byte(parts in proptest::collection::vec(any::<String>(), 1..5)) {
        let prompt = Prompt::Raw(parts.iter().map(|part| TextPart::new(PartId(0), part.clone())).collect());
        let encoded = OpenAiCompletions::default().encode(&prompt, &Params::default(), "m").unwrap();
        let body: serde_json::Value = serde_json::from_slice(encoded.body()).unwrap();
        prop_assert_eq!(body["prompt"].as_str().unwrap(), parts.concat());
    }
}
