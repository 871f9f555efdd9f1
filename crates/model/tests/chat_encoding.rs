//! Chat requests beyond plain text: pictures, thinking given back, forms of the answer, and what servers want.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/chat.rs"]
mod support;

use bytes::Bytes;
use drawloom_model::encoded::CoveredRange;
use drawloom_model::quirks::{
    CacheForm, CallIds, InstructionRole, LeastEffort, PrefillForm, SchemaForm, ThinkingBack, ThinkingForm,
};
use drawloom_model::{
    Chat, ChatPart, Choice, DialectName, Media, MediaPart, OutputSchema, Params, PartId, PartKind, Quirks,
    ReplyPiece, Thinking, ToolChoice, ToolExchange, ToolSchema, provider,
};
use folded::folded;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{encode, exchange, fields, marked, opaque, picture, png, text, try_encode};

#[test]
fn pictures_make_blocks_of_a_message_and_text_alone_stays_a_string() {
    let sound = Media { mime: "audio/mpeg".to_owned(), data: Bytes::from_static(b"ID3") };
    let encoded = encode(
        vec![
            ChatPart::System(text(1, "Be kind.")),
            ChatPart::User(text(2, "What is this?")),
            picture(3),
            ChatPart::Injected(text(4, "Card")),
            ChatPart::Assistant(text(5, "A cat.")),
            ChatPart::Media(MediaPart { id: PartId(6), media: sound }),
            ChatPart::Assistant(text(7, "A purr.")),
            ChatPart::User(text(8, "Yes.")),
        ],
        Quirks::default(),
    );
    insta::assert_snapshot!(marked(&encoded));
}

#[test]
fn pictures_of_results_follow_the_results_in_the_users_place() {
    let round =
        vec![exchange(2, "call_a", "one", vec![png()]), exchange(4, "call_b", "two", vec![png(), png()])];
    let messages =
        vec![ChatPart::User(text(1, "Look.")), ChatPart::ToolRound(round), ChatPart::User(text(6, "And?"))];
    insta::assert_snapshot!(marked(&encode(messages, Quirks::default())));
}

#[test]
fn what_has_no_block_is_refused() {
    for mime in ["audio/ogg", "video/mp4", "application/pdf", "image/", ""] {
        let media = Media { mime: mime.to_owned(), data: Bytes::new() };
        let messages = vec![ChatPart::Media(MediaPart { id: PartId(1), media: media.clone() })];
        let refused = try_encode(Chat { messages, ..Chat::default() }, &Params::default(), Quirks::default());
        assert_eq!(refused.unwrap_err().code(), "unsupported", "{mime}");
        let messages = vec![ChatPart::ToolRound(vec![exchange(1, "a", "", vec![media])])];
        let refused = try_encode(Chat { messages, ..Chat::default() }, &Params::default(), Quirks::default());
        assert_eq!(refused.unwrap_err().code(), "unsupported", "{mime}");
    }
}

/// A turn that thinks, calls a tool and answers, and one that only answers.
fn thoughtful() -> Vec<ChatPart> {
    let details =
        |words: &str| json!([{"type": "reasoning.text", "text": words, "signature": "s=", "index": 0}]);
    let mut second = exchange(6, "call_b", "rain", Vec::new());
    second.before =
        vec![opaque(8, None, json!([{"type": "reasoning.encrypted", "data": "x", "id": "call_b"}]))];
    vec![
        ChatPart::User(text(1, "Bern?")),
        ChatPart::Opaque(opaque(2, Some("I \"look\"."), details("I \"look\"."))),
        ChatPart::Assistant(text(3, "Wait.")),
        ChatPart::ToolRound(vec![exchange(4, "call_a", "12 °C", Vec::new()), second]),
        ChatPart::Opaque(opaque(9, Some("Cold."), details("Cold."))),
        ChatPart::Assistant(text(10, "Cold and wet.")),
        ChatPart::User(text(11, "Thanks")),
        ChatPart::Opaque(opaque(12, Some("Polite."), details("Polite."))),
        ChatPart::Assistant(text(13, "Gladly.")),
        ChatPart::User(text(14, "Köln?")),
    ]
}

#[test]
fn thinking_is_not_sent_where_nobody_wants_it_back() {
    let encoded = encode(thoughtful(), Quirks::default());
    assert!(encoded.ranges().iter().all(|range| range.kind != PartKind::Opaque));
    assert!(!marked(&encoded).contains("reasoning"));
}

#[test]
fn thinking_goes_back_as_text_in_conversations_with_tools() {
    let quirks = Quirks { thinking_back: ThinkingBack::Content, ..Quirks::default() };
    let encoded = encode(thoughtful(), quirks);
    insta::assert_snapshot!(marked(&encoded));
    let body: Value = serde_json::from_slice(encoded.body()).unwrap();
    assert_eq!(body["messages"][1]["reasoning_content"], "I \"look\".");
}

#[test]
fn where_thinking_goes_back_as_text_no_answer_lacks_it_and_without_tools_none_has_it() {
    let quirks = Quirks { thinking_back: ThinkingBack::Content, ..Quirks::default() };
    let without = |kept: fn(&ChatPart) -> bool| {
        let messages = thoughtful().into_iter().filter(kept).collect();
        let body: Value = serde_json::from_slice(encode(messages, quirks).body()).unwrap();
        let answers = body["messages"].as_array().unwrap().clone().into_iter();
        let answers = answers.filter(|message| message["role"] == "assistant");
        answers.map(|message| message.get("reasoning_content").cloned()).collect::<Vec<_>>()
    };
    let empty = Some(json!(""));
    assert_eq!(without(|part| !matches!(part, ChatPart::Opaque(_))), [empty.clone(), empty.clone(), empty]);
    assert_eq!(without(|part| !matches!(part, ChatPart::ToolRound(_))), [None, None]);
}

#[test]
fn thinking_goes_back_in_details_unchanged() {
    let quirks = Quirks { thinking_back: ThinkingBack::Details, ..Quirks::default() };
    insta::assert_snapshot!(marked(&encode(thoughtful(), quirks)));
}

#[test]
fn several_runs_of_thinking_in_one_message_are_one_text() {
    let quirks = Quirks { thinking_back: ThinkingBack::Content, ..Quirks::default() };
    let messages = vec![
        ChatPart::Opaque(opaque(1, Some("One"), json!("reasoning_content"))),
        ChatPart::Assistant(text(2, "a")),
        ChatPart::Opaque(opaque(3, Some("Two"), json!("reasoning_content"))),
        ChatPart::ToolRound(vec![exchange(4, "call_a", "", Vec::new())]),
    ];
    let encoded = encode(messages, quirks);
    let body: Value = serde_json::from_slice(encoded.body()).unwrap();
    assert_eq!(body["messages"][0]["reasoning_content"], "One\n\nTwo");
    let opaque = encoded.ranges().iter().filter(|range| range.kind == PartKind::Opaque);
    assert_eq!(opaque.map(|range| range.part.0).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn thinking_alone_is_no_message() {
    for thinking_back in [ThinkingBack::Nothing, ThinkingBack::Content, ThinkingBack::Details] {
        let messages = vec![
            ChatPart::User(text(1, "Hi")),
            ChatPart::Opaque(opaque(2, Some("Hm."), json!([{"type": "reasoning.text", "text": "Hm."}]))),
        ];
        let encoded = encode(messages, Quirks { thinking_back, ..Quirks::default() });
        let body: Value = serde_json::from_slice(encoded.body()).unwrap();
        assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{thinking_back:?}");
    }
}

/// The parts of an answer as the layer above sends them again, each call with a result.
fn sent_again(choice: &Choice) -> Vec<ChatPart> {
    let mut parts = vec![ChatPart::User(text(0, "Bern?"))];
    let mut round: Vec<ToolExchange> = Vec::new();
    for (at, piece) in choice.pieces.iter().enumerate() {
        let id = u32::try_from(at).unwrap() * 4 + 1;
        match piece {
            ReplyPiece::Text(said) => parts.push(ChatPart::Assistant(text(id, said))),
            ReplyPiece::Thinking { text, opaque: Some(json) } => {
                parts.push(ChatPart::Opaque(opaque(id, Some(text), json.clone())));
            }
            ReplyPiece::Opaque(json) => parts.push(ChatPart::Opaque(opaque(id, None, json.clone()))),
            ReplyPiece::Call(call) => {
                let mut own = exchange(id, &call.id, "rain", Vec::new());
                own.call = call.clone();
                round.push(own);
            }
            ReplyPiece::Thinking { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    parts.push(ChatPart::ToolRound(round));
    parts
}

/// The messages of a recorded answer, sent again to the provider it came from.
fn returned(provider_name: &str, fixture: &str) -> Value {
    let path = format!("{}/tests/wire/{fixture}", env!("CARGO_MANIFEST_DIR"));
    let mut parser = DialectName::OpenAiChat.parser(true);
    let mut events = Vec::new();
    parser.feed(&std::fs::read(path).unwrap(), &mut events).unwrap();
    parser.finish(&mut events).unwrap();
    let choice = folded(&events).choices.remove(0);
    let quirks = Quirks { cache: CacheForm::Implicit, ..provider(provider_name).unwrap().quirks };
    let body: Value = serde_json::from_slice(encode(sent_again(&choice), quirks).body()).unwrap();
    body["messages"].clone()
}

#[test]
fn an_answer_goes_back_to_deepseek_with_its_thinking() {
    assert_eq!(
        returned("deepseek", "chat_deepseek_thinking_call.sse"),
        json!([
            {"role": "user", "content": "Bern?"},
            {"role": "assistant", "reasoning_content": "I need the weather.", "content": "I look.", "tool_calls": [
                {"id": "call_00_Qa7", "type": "function",
                 "function": {"name": "weather", "arguments": "{\"city\":\"Bern\"}"}}]},
            {"role": "tool", "tool_call_id": "call_00_Qa7", "content": "rain"},
        ])
    );
}

#[test]
fn an_answer_goes_back_to_openrouter_with_its_details() {
    let messages = returned("openrouter", "chat_openrouter_details.sse");
    let details = json!([{"type": "reasoning.text", "text": "They ask of rain.", "format": "anthropic-claude-v1",
        "index": 0, "signature": "EvcBCkgI+sig/=="}]);
    assert_eq!(messages[1]["reasoning_details"], details);
    assert_eq!(messages[1]["content"], "Let me see.");
    let messages = returned("openrouter", "chat_openrouter_encrypted.sse");
    assert_eq!(messages[1]["reasoning_details"][0]["data"], "CiQBjz1rX0==");
    assert_eq!(messages[1]["tool_calls"][0]["id"], "tool_weather_9Z");
}

#[test]
fn an_answer_goes_back_to_mistral_without_fields_it_refuses() {
    let messages = returned("mistral", "chat_mistral_thinking.sse");
    let names: Vec<_> = messages[1].as_object().unwrap().keys().collect();
    assert_eq!(names, ["role", "content", "tool_calls"]);
    assert_eq!(messages[1]["tool_calls"][1]["id"], "x9Yz01AbC", "its own ids are kept");
}

#[test]
fn ids_a_server_does_not_take_are_replaced_alike_in_call_and_result() {
    let round = vec![exchange(1, "call_00_Qa7", "", Vec::new()), exchange(3, "call_00_Qa8", "", Vec::new())];
    let messages = vec![ChatPart::ToolRound(round)];
    let quirks = Quirks { call_ids: CallIds::Nine, ..Quirks::default() };
    let ids = || {
        let body: Value = serde_json::from_slice(encode(messages.clone(), quirks).body()).unwrap();
        let messages = &body["messages"];
        let ids: Vec<_> =
            [0, 1].map(|at| messages[0]["tool_calls"][at]["id"].as_str().unwrap().to_owned()).into();
        let answered: Vec<_> =
            [1, 2].map(|at| messages[at]["tool_call_id"].as_str().unwrap().to_owned()).into();
        assert_eq!(ids, answered);
        ids
    };
    assert!(ids().iter().all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())));
    assert_ne!(ids()[0], ids()[1]);
    assert_eq!(ids(), ids(), "the same in every request");
}

#[test]
fn how_much_is_thought_is_said_in_each_servers_words() {
    let said = |form, thinking| {
        let quirks = Quirks { thinking: form, least_effort: LeastEffort::Minimal, ..Quirks::default() };
        fields(&Params { thinking: Some(thinking), ..Params::default() }, quirks)
    };
    let expected = [
        (ThinkingForm::None, [json!({}), json!({}), json!({})]),
        (ThinkingForm::Effort, ["minimal", "low", "high"].map(|effort| json!({"reasoning_effort": effort}))),
        (
            ThinkingForm::ReasoningObject,
            ["none", "low", "high"].map(|effort| json!({"reasoning": {"effort": effort}})),
        ),
        (
            ThinkingForm::TemplateSwitch,
            [false, true, true].map(|on| json!({"chat_template_kwargs": {"enable_thinking": on}})),
        ),
        (
            ThinkingForm::SwitchAndEffort,
            [
                json!({"thinking": {"type": "disabled"}}),
                json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
                json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
            ],
        ),
    ];
    for (form, [off, low, high]) in expected {
        assert_eq!(said(form, Thinking::Off), off);
        assert_eq!(said(form, Thinking::Low), low);
        assert_eq!(said(form, Thinking::High), high);
        let quirks = Quirks { thinking: form, ..Quirks::default() };
        assert_eq!(fields(&Params::default(), quirks), json!({}), "no wish, no word");
    }
}

#[test]
fn a_form_of_the_answer_is_asked_for_by_its_schema_or_as_any_object() {
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}, "required": ["a", "b"],
        "additionalProperties": false});
    let form = OutputSchema { name: "pair".to_owned(), schema: schema.clone() };
    let params = Params { schema: Some(form), ..Params::default() };
    let full = json!({"response_format": {"type": "json_schema",
        "json_schema": {"name": "pair", "strict": true, "schema": schema}}});
    assert_eq!(fields(&params, Quirks::default()), full);
    let object = Quirks { schema: SchemaForm::Object, ..Quirks::default() };
    assert_eq!(fields(&params, object), json!({"response_format": {"type": "json_object"}}));
}

#[test]
fn the_choice_of_tools_is_sent_with_tools_alone() {
    let choices = [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
        (ToolChoice::Tool("look".to_owned()), json!({"type": "function", "function": {"name": "look"}})),
    ];
    for (tool_choice, expected) in choices {
        let params = Params { tool_choice, ..Params::default() };
        assert_eq!(fields(&params, Quirks::default()), json!({}), "without tools");
        let look = ToolSchema {
            id: PartId(9),
            name: "look".to_owned(),
            description: "Looks.".to_owned(),
            parameters: json!({"type": "object"}),
        };
        let chat =
            Chat { tools: vec![look], messages: vec![ChatPart::User(text(1, "Hi"))], ..Chat::default() };
        let encoded = try_encode(chat, &params, Quirks::default()).unwrap();
        let body: Value = serde_json::from_slice(encoded.body()).unwrap();
        assert_eq!(body["tool_choice"], expected);
    }
}

#[test]
fn what_only_shapes_the_sampling_is_left_out_where_it_is_refused() {
    let params = Params {
        temperature: Some(0.5),
        top_p: Some(0.5),
        min_p: Some(0.1),
        seed: Some(1),
        cache_key: Some("tree-1".to_owned()),
        ..Params::default()
    };
    let all = json!({"temperature": 0.5, "top_p": 0.5, "min_p": 0.1, "seed": 1});
    assert_eq!(fields(&params, Quirks::default()), all);
    let none =
        Quirks { sampling: false, min_p: false, seed: false, cache: CacheForm::Key, ..Quirks::default() };
    assert_eq!(fields(&params, none), json!({"prompt_cache_key": "tree-1"}));
    let bad = Params { temperature: Some(f64::NAN), ..Params::default() };
    let chat = Chat { messages: vec![ChatPart::User(text(1, "Hi"))], ..Chat::default() };
    assert_eq!(try_encode(chat, &bad, none).unwrap_err().code(), "bad_parameter", "left out or not");
    let plain = Quirks { stream_options: false, ..Quirks::default() };
    let encoded = encode(vec![ChatPart::User(text(1, "Hi"))], plain);
    assert!(!marked(&encoded).contains("stream_options"));
}

#[test]
fn instructions_have_the_role_the_server_wants() {
    let quirks = Quirks { instructions: InstructionRole::Developer, ..Quirks::default() };
    let encoded = encode(vec![ChatPart::System(text(1, "a")), ChatPart::System(text(2, "b"))], quirks);
    insta::assert_snapshot!(marked(&encoded), @r#"{"model":"m","messages":[{"role":"developer","content":"⟨1:a⟩\n\n⟨2:b⟩"}]}"#);
}

#[test]
fn a_beginning_is_flagged_where_the_server_wants_a_flag() {
    let quirks = Quirks { prefill: PrefillForm::PrefixFlag, ..Quirks::default() };
    let chat = Chat {
        messages: vec![ChatPart::User(text(1, "Go on."))],
        prefill: Some(text(2, "It was ")),
        ..Chat::default()
    };
    let encoded = try_encode(chat, &Params { stream: false, ..Params::default() }, quirks).unwrap();
    insta::assert_snapshot!(marked(&encoded), @r#"
    {"model":"m","messages":[{"role":"user","content":"⟨1:Go on.⟩"}
    ,{"role":"assistant","content":"⟨2:It was ⟩","prefix":true}]}
    "#);
}

#[test]
fn cache_marks_stand_at_the_boundary_and_at_the_end() {
    let quirks = Quirks { cache: CacheForm::Marks, ..Quirks::default() };
    let messages = vec![
        ChatPart::System(text(1, "Be kind.")),
        ChatPart::System(text(2, "AGENTS")),
        ChatPart::System(text(3, "Now")),
        ChatPart::User(text(4, "Look.")),
        ChatPart::ToolRound(vec![
            exchange(5, "call_a", "one", Vec::new()),
            exchange(7, "call_b", "two", Vec::new()),
        ]),
    ];
    let chat = Chat { messages: messages.clone(), stable: 2, ..Chat::default() };
    let encoded = try_encode(chat, &Params { stream: false, ..Params::default() }, quirks).unwrap();
    insta::assert_snapshot!(marked(&encoded));
    for (stable, marks) in [(0, 1), (2, 2), (4, 2), (5, 1), (99, 1)] {
        let chat = Chat { messages: messages.clone(), stable, ..Chat::default() };
        let encoded = try_encode(chat, &Params::default(), quirks).unwrap();
        assert_eq!(marked(&encoded).matches("cache_control").count(), marks, "stable: {stable}");
    }
}

fn any_part(kind: u8, id: u32, a: &str, b: &str) -> ChatPart {
    let media = Media { mime: "image/png".to_owned(), data: Bytes::from(b.as_bytes().to_vec()) };
    match kind % 7 {
        0 => ChatPart::System(text(id, a)),
        1 => ChatPart::User(text(id, a)),
        2 => ChatPart::Injected(text(id, a)),
        3 => ChatPart::Assistant(text(id, a)),
        4 => ChatPart::Media(MediaPart { id: PartId(id), media }),
        5 => ChatPart::Opaque(opaque(id, Some(a), json!([{"type": "reasoning.text", "text": a}]))),
        _ => ChatPart::ToolRound(vec![exchange(id, a, b, vec![media]), exchange(id + 2, b, a, Vec::new())]),
    }
}

proptest! {
    #[test]
    fn any_conversation_is_covered_and_gives_its_texts_back(
        parts in proptest::collection::vec((any::<u8>(), any::<String>(), any::<String>()), 1..8),
        stable in 0usize..8,
        row in 0..drawloom_model::providers().len(),
    ) {
        let messages: Vec<ChatPart> = parts
            .iter()
            .enumerate()
            .map(|(at, (kind, a, b))| any_part(*kind, u32::try_from(at).unwrap() * 4, a, b))
            .collect();
        let quirks = drawloom_model::providers()[row].quirks;
        let chat = Chat { messages: messages.clone(), stable, ..Chat::default() };
        let encoded = try_encode(chat, &Params::default(), quirks).unwrap();
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
        let body: Value = serde_json::from_slice(encoded.body()).unwrap();
        let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
        prop_assert!(roles.windows(2).all(|pair| pair[0] != pair[1] || pair[0] == "tool" || pair[0] == "assistant"));
        let plain = |id: u32, kind: PartKind| -> Vec<String> {
            let own = encoded.ranges().iter().filter(|range| range.part == PartId(id) && range.kind == kind);
            own.map(|range| encoded.plain_text(range)).collect()
        };
        for message in &messages {
            match message {
                ChatPart::System(t) => prop_assert_eq!(plain(t.id.0, PartKind::System), vec![t.text.clone()]),
                ChatPart::User(t) => prop_assert_eq!(plain(t.id.0, PartKind::User), vec![t.text.clone()]),
                ChatPart::Injected(t) => prop_assert_eq!(plain(t.id.0, PartKind::Injected), vec![t.text.clone()]),
                ChatPart::Assistant(t) => prop_assert_eq!(plain(t.id.0, PartKind::Assistant), vec![t.text.clone()]),
                ChatPart::Media(part) => {
                    let sent = data_encoding::BASE64.encode(&part.media.data);
                    prop_assert_eq!(plain(part.id.0, PartKind::Media), vec![sent]);
                }
                ChatPart::Opaque(part) => {
                    prop_assert!(plain(part.id.0, PartKind::Opaque).len() <= 1);
                }
                ChatPart::ToolRound(round) => for e in round {
                    let call = vec![e.call.name.clone(), e.call.arguments.clone()];
                    prop_assert_eq!(plain(e.call_part.0, PartKind::ToolCall), call);
                    prop_assert_eq!(plain(e.result_part.0, PartKind::ToolResult), vec![e.result.text.clone()]);
                    prop_assert_eq!(plain(e.result_part.0, PartKind::Media).len(), e.result.media.len());
                },
            }
        }
    }
}
