//! Requests in the form of responses, and which of their bytes come from where.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use bytes::Bytes;
use drawloom_model::encoded::CoveredRange;
use drawloom_model::openai_responses::OpenAiResponses;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::quirks::{CacheForm, InstructionRole, LeastEffort, Quirks, SchemaForm, ThinkingForm};
use drawloom_model::{
    Chat, ChatPart, Dialect, DialectName, EncodeError, EncodedRequest, Media, MediaPart, OpaquePart,
    OutputSchema, Params, PartId, PartKind, Prompt, ReplyPiece, TextPart, Thinking, ToolCall, ToolChoice,
    ToolExchange, ToolResult, ToolSchema, reparse,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn text(id: u32, text: &str) -> TextPart {
    TextPart::new(PartId(id), text)
}

fn picture(mime: &str) -> Media {
    Media { mime: mime.to_owned(), data: Bytes::from_static(b"\x89PNG\r\n") }
}

fn opaque(id: u32, json: Value) -> OpaquePart {
    OpaquePart { id: PartId(id), thinking: None, json }
}

fn reasoning(name: &str) -> Value {
    json!({"id": format!("rs_{name}"), "type": "reasoning", "encrypted_content": name, "summary": []})
}

fn exchange(id: u32, arguments: &str, result: &str) -> ToolExchange {
    ToolExchange {
        before: Vec::new(),
        call_part: PartId(id),
        call: ToolCall { id: format!("call_{id}"), name: "read".to_owned(), arguments: arguments.to_owned() },
        result_part: PartId(id + 1),
        result: ToolResult { status: ToolStatus::Ok, text: result.to_owned(), media: Vec::new() },
    }
}

fn read_tool() -> ToolSchema {
    ToolSchema {
        id: PartId(0),
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }
}

fn conversation() -> Chat {
    let mut second = exchange(9, r#"{"path":"b"}"#, "");
    second.before.push(opaque(8, reasoning("second")));
    second.result.media.push(picture("image/png"));
    Chat {
        tools: vec![read_tool()],
        messages: vec![
            ChatPart::System(text(1, "Be \"kind\".")),
            ChatPart::System(text(2, "AGENTS\n")),
            ChatPart::User(text(3, "Read a and b — 中")),
            ChatPart::Media(MediaPart { id: PartId(4), media: picture("image/webp") }),
            ChatPart::Injected(text(5, "Card: files")),
            ChatPart::Opaque(opaque(6, reasoning("first"))),
            ChatPart::Assistant(text(7, "Both.")),
            ChatPart::ToolRound(vec![exchange(11, r#"{"path":"a"}"#, "A\t1"), second]),
            ChatPart::Assistant(text(13, "Done.")),
            ChatPart::System(text(14, "Be short.")),
            ChatPart::User(text(15, "Thanks")),
        ],
        ..Chat::default()
    }
}

fn hello() -> Chat {
    Chat { messages: vec![ChatPart::User(text(1, "Hi"))], ..Chat::default() }
}

fn encode(quirks: Quirks, chat: Chat, params: &Params) -> Result<EncodedRequest, EncodeError> {
    OpenAiResponses { quirks }.encode(&Prompt::Chat(chat), params, "m")
}

fn body(quirks: Quirks, chat: Chat, params: &Params) -> Value {
    serde_json::from_slice(encode(quirks, chat, params).unwrap().body()).unwrap()
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
    let encoded = encode(Quirks::default(), conversation(), &Params::default()).unwrap();
    assert_eq!((encoded.path(), encoded.dialect()), ("responses", DialectName::OpenAiResponses));
    let lines = marked(&encoded).replace(",{\"type\":\"message", "\n,{\"type\":\"message");
    insta::assert_snapshot!(lines.replace(",{\"type\":\"function", "\n,{\"type\":\"function"), @r#"
{"model":"m","store":false,"stream":true,"tools":[⟨0:{"type":"function","name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false}⟩],"input":[{"type":"message","role":"system","content":[{"type":"input_text","text":"⟨1:Be \"kind\".⟩"},{"type":"input_text","text":"⟨2:AGENTS\n⟩"}]}
,{"type":"message","role":"user","content":[{"type":"input_text","text":"⟨3:Read a and b — 中⟩"},{"type":"input_image","detail":"auto","image_url":"data:image/webp;base64,⟨4:iVBORw0K⟩"},{"type":"input_text","text":"⟨5:Card: files⟩"}]},⟨6:{"type":"reasoning","encrypted_content":"first","summary":[]}⟩
,{"type":"message","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"⟨7:Both.⟩"}]}
,{"type":"function_call","call_id":"call_11","name":"⟨11:read⟩","arguments":"⟨11:{\"path\":\"a\"}⟩"},⟨8:{"type":"reasoning","encrypted_content":"second","summary":[]}⟩
,{"type":"function_call","call_id":"call_9","name":"⟨9:read⟩","arguments":"⟨9:{\"path\":\"b\"}⟩"}
,{"type":"function_call_output","call_id":"call_11","output":"⟨12:A\t1⟩"}
,{"type":"function_call_output","call_id":"call_9","output":[{"type":"input_text","text":"⟨10:⟩"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,⟨10:iVBORw0K⟩"}]}
,{"type":"message","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"⟨13:Done.⟩"}]}
,{"type":"message","role":"system","content":[{"type":"input_text","text":"⟨14:Be short.⟩"}]}
,{"type":"message","role":"user","content":[{"type":"input_text","text":"⟨15:Thanks⟩"}]}]}
"#);
}

#[test]
fn every_parameter_has_its_field() {
    let params = Params {
        temperature: Some(0.7),
        top_p: Some(0.9),
        max_tokens: Some(64),
        logprobs: Some(4),
        stream: false,
        tool_choice: ToolChoice::Tool("read".to_owned()),
        schema: Some(OutputSchema { name: "answer".to_owned(), schema: json!({"type": "object"}) }),
        thinking: Some(Thinking::High),
        cache_key: Some("tree-7".to_owned()),
        ..Params::default()
    };
    let quirks = Quirks {
        instructions: InstructionRole::Developer,
        thinking: ThinkingForm::Effort,
        cache: CacheForm::Key,
        ..Quirks::default()
    };
    let chat = Chat {
        tools: vec![read_tool()],
        messages: vec![ChatPart::System(text(1, "Be kind.")), ChatPart::User(text(2, "Hi"))],
        ..Chat::default()
    };
    insta::assert_snapshot!(marked(&encode(quirks, chat, &params).unwrap()), @r#"{"model":"m","store":false,"include":["reasoning.encrypted_content","message.output_text.logprobs"],"temperature":0.7,"top_p":0.9,"max_output_tokens":64,"top_logprobs":4,"reasoning":{"effort":"high","summary":"auto"},"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"},"strict":true}},"prompt_cache_key":"tree-7","tools":[⟨0:{"type":"function","name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false}⟩],"tool_choice":{"type":"function","name":"read"},"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"⟨1:Be kind.⟩"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"⟨2:Hi⟩"}]}]}"#);
}

#[test]
fn nothing_is_kept_at_the_provider() {
    for thinking in [ThinkingForm::None, ThinkingForm::Effort] {
        let body = body(Quirks { thinking, ..Quirks::default() }, hello(), &Params::default());
        assert_eq!(body["store"], json!(false));
        assert!(body.get("previous_response_id").is_none());
    }
}

#[test]
fn sealed_thinking_is_asked_for_where_thinking_can_be_asked_for() {
    let include = |thinking, params: &Params| {
        body(Quirks { thinking, ..Quirks::default() }, hello(), params).get("include").cloned()
    };
    let logprobs = Params { logprobs: Some(0), ..Params::default() };
    assert_eq!(include(ThinkingForm::None, &Params::default()), None);
    assert_eq!(include(ThinkingForm::None, &logprobs), Some(json!(["message.output_text.logprobs"])));
    assert_eq!(
        include(ThinkingForm::Effort, &logprobs),
        Some(json!(["reasoning.encrypted_content", "message.output_text.logprobs"]))
    );
}

#[test]
fn thinking_is_asked_for_as_the_server_wants_it() {
    let asked = |form, thinking| {
        let quirks = Quirks { thinking: form, least_effort: LeastEffort::Minimal, ..Quirks::default() };
        let body = body(quirks, hello(), &Params { thinking: Some(thinking), ..Params::default() });
        (body.get("reasoning").cloned(), body.get("chat_template_kwargs").cloned())
    };
    assert_eq!(asked(ThinkingForm::None, Thinking::High), (None, None));
    assert_eq!(asked(ThinkingForm::Effort, Thinking::Off), (Some(json!({"effort": "minimal"})), None));
    let low = Some(json!({"effort": "low", "summary": "auto"}));
    assert_eq!(asked(ThinkingForm::Effort, Thinking::Low), (low, None));
    let only_high =
        Quirks { thinking: ThinkingForm::Effort, least_effort: LeastEffort::High, ..Quirks::default() };
    for thinking in [Thinking::Off, Thinking::Low, Thinking::High] {
        let body = body(only_high, hello(), &Params { thinking: Some(thinking), ..Params::default() });
        assert_eq!(body["reasoning"]["effort"], "high", "it knows no other");
    }
    let off = Some(json!({"enable_thinking": false}));
    assert_eq!(asked(ThinkingForm::TemplateSwitch, Thinking::Off), (None, off));
    let quirks = Quirks { thinking: ThinkingForm::Budget, ..Quirks::default() };
    let params = Params { thinking: Some(Thinking::Low), ..Params::default() };
    assert_eq!(encode(quirks, hello(), &params).unwrap_err().code(), "unsupported");
}

#[test]
fn a_tool_choice_goes_only_with_tools() {
    let choice = |tools: Vec<ToolSchema>, tool_choice| {
        let params = Params { tool_choice, ..Params::default() };
        body(Quirks::default(), Chat { tools, ..hello() }, &params).get("tool_choice").cloned()
    };
    assert_eq!(choice(vec![read_tool()], ToolChoice::Auto), None);
    assert_eq!(choice(vec![read_tool()], ToolChoice::None), Some(json!("none")));
    assert_eq!(choice(vec![read_tool()], ToolChoice::Required), Some(json!("required")));
    assert_eq!(choice(Vec::new(), ToolChoice::Required), None);
}

#[test]
fn a_form_may_be_any_object() {
    let params = Params {
        schema: Some(OutputSchema { name: "a".to_owned(), schema: json!({}) }),
        ..Params::default()
    };
    let quirks = Quirks { schema: SchemaForm::Object, ..Quirks::default() };
    assert_eq!(body(quirks, hello(), &params)["text"], json!({"format": {"type": "json_object"}}));
}

#[test]
fn ids_go_back_only_where_they_are_wanted() {
    let chat = || Chat {
        messages: vec![ChatPart::Opaque(opaque(1, reasoning("r"))), ChatPart::User(text(2, "Hi"))],
        ..Chat::default()
    };
    let mut item = reasoning("r");
    let kept = body(Quirks { item_ids: true, ..Quirks::default() }, chat(), &Params::default());
    assert_eq!(kept["input"][0], item);
    item.as_object_mut().unwrap().remove("id");
    assert_eq!(body(Quirks::default(), chat(), &Params::default())["input"][0], item);
}

#[test]
fn what_the_dialect_cannot_say_is_refused() {
    let refused = |chat: Chat, params: Params| {
        let error = encode(Quirks::default(), chat, &params).unwrap_err();
        error.code() == "unsupported"
    };
    let sound = Chat {
        messages: vec![ChatPart::Media(MediaPart { id: PartId(1), media: picture("audio/wav") })],
        ..Chat::default()
    };
    let odd = Chat {
        messages: vec![ChatPart::Media(MediaPart { id: PartId(1), media: picture("image/\"") })],
        ..Chat::default()
    };
    assert!(refused(sound, Params::default()) && refused(odd, Params::default()));
    assert!(refused(Chat { prefill: Some(text(2, "It ")), ..hello() }, Params::default()));
    for params in [
        Params { stop: vec!["\n".to_owned()], ..Params::default() },
        Params { n: 2, ..Params::default() },
        Params { seed: Some(1), ..Params::default() },
        Params { min_p: Some(0.1), ..Params::default() },
    ] {
        assert!(refused(hello(), params.clone()), "{params:?}");
    }
    let raw = OpenAiResponses::default().encode(&Prompt::Raw(vec![text(1, "a")]), &Params::default(), "m");
    assert_eq!(raw.unwrap_err().code(), "unsupported");
    assert_eq!(encode(Quirks::default(), Chat::default(), &Params::default()), Err(EncodeError::Empty));
    for params in [
        Params { temperature: Some(f64::NAN), ..Params::default() },
        Params { top_p: Some(-1.0), ..Params::default() },
        Params { n: 0, ..Params::default() },
    ] {
        assert_eq!(encode(Quirks::default(), hello(), &params).unwrap_err().code(), "bad_parameter");
    }
}

#[test]
fn what_a_server_is_known_not_to_take_is_left_out() {
    let quirks = Quirks { seed: false, min_p: false, sampling: false, ..Quirks::default() };
    let params = Params {
        seed: Some(1),
        min_p: Some(0.1),
        temperature: Some(0.5),
        top_p: Some(0.5),
        ..Params::default()
    };
    let body = body(quirks, hello(), &params);
    for name in ["seed", "min_p", "temperature", "top_p"] {
        assert!(body.get(name).is_none(), "{name}");
    }
}

/// An answer as the layer above gives it back: its pieces in order, calls with their results.
fn history(name: &str) -> Vec<ChatPart> {
    let wire = std::fs::read(format!("{}/tests/wire/responses_{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let read = reparse(DialectName::OpenAiResponses, &wire, true);
    let (mut parts, mut round) = (Vec::new(), Vec::new());
    let mut before = Vec::new();
    for (id, piece) in (1..).map(|id| id * 10).zip(read.choices[0].pieces.clone()) {
        match piece {
            ReplyPiece::Thinking { text, opaque: Some(json) } => {
                before.push(OpaquePart { id: PartId(id), thinking: Some(text), json });
            }
            ReplyPiece::Text(said) => {
                parts.extend(before.drain(..).map(ChatPart::Opaque));
                parts.push(ChatPart::Assistant(text(id, &said)));
            }
            ReplyPiece::Call(call) => {
                let before = std::mem::take(&mut before);
                round.push(ToolExchange { before, call, ..exchange(id, "", "4") });
            }
            other => panic!("{other:?}"),
        }
    }
    parts.push(ChatPart::ToolRound(round));
    parts
}

#[test]
fn thinking_and_calls_go_back_as_they_came() {
    let messages = history("thinking.sse");
    let quirks = Quirks { item_ids: true, ..Quirks::default() };
    let input = &body(quirks, Chat { messages, ..Chat::default() }, &Params::default())["input"];
    let sealed = |id: &str, sealed: &str, summary: Value| json!({"id": id, "type": "reasoning", "encrypted_content": sealed, "summary": summary});
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "add", "arguments": arguments});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "4"});
    let summary = json!([
        {"type": "summary_text", "text": "**Looking** at it."},
        {"type": "summary_text", "text": "Two and two."},
    ]);
    let expected = json!([
        sealed("rs_t2", "gAAAAABpAbc-sealed-one", summary),
        call("call_T1", r#"{"a":2,"b":2}"#),
        sealed("rs_t4", "gAAAAABpAbd-sealed-two", json!([])),
        call("call_T2", r#"{"a":4,"b":4}"#),
        output("call_T1"),
        output("call_T2"),
    ]);
    assert_eq!(input, &expected);
}

#[test]
fn open_thinking_goes_back_in_front_of_what_it_led_to() {
    let messages = history("llama_cpp.sse");
    let input = &body(Quirks::default(), Chat { messages, ..Chat::default() }, &Params::default())["input"];
    let thought = json!({"type": "reasoning", "summary": [], "encrypted_content": "",
        "content": [{"type": "reasoning_text", "text": "Two and two."}]});
    assert_eq!(input[0], thought);
    assert_eq!(input[1]["content"][0]["text"], "Let me add.");
    let kinds: Vec<_> = input.as_array().unwrap()[2..].iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["function_call", "function_call", "function_call_output", "function_call_output"]);
}

fn any_part(kind: u8, id: u32, a: &str, b: &str) -> ChatPart {
    match kind % 7 {
        0 => ChatPart::System(text(id, a)),
        1 => ChatPart::User(text(id, a)),
        2 => ChatPart::Injected(text(id, a)),
        3 => ChatPart::Assistant(text(id, a)),
        4 => ChatPart::Media(MediaPart { id: PartId(id), media: picture("image/png") }),
        5 => {
            ChatPart::Opaque(opaque(id, json!({"type": "reasoning", "encrypted_content": a, "summary": [b]})))
        }
        _ => ChatPart::ToolRound(vec![exchange(id, a, b), exchange(id + 2, b, a)]),
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
            .map(|(at, (kind, a, b))| any_part(kind, u32::try_from(at).unwrap() * 4 + 1, &a, &b))
            .collect();
        let chat = Chat { messages: messages.clone(), ..conversation() };
        let encoded = encode(Quirks::default(), chat, &Params::default()).unwrap();
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
        serde_json::from_slice::<Value>(encoded.body()).unwrap();
        let plain = |id: u32| -> Vec<String> {
            let own = encoded.ranges().iter().filter(|r| r.part == PartId(id) && r.kind != PartKind::Schema);
            own.map(|range| encoded.plain_text(range)).collect()
        };
        for message in &messages {
            match message {
                ChatPart::System(t) | ChatPart::User(t) | ChatPart::Injected(t) | ChatPart::Assistant(t) => {
                    prop_assert_eq!(plain(t.id.0), vec![t.text.clone()]);
                }
                ChatPart::Media(part) => prop_assert_eq!(plain(part.id.0), vec!["iVBORw0K".to_owned()]),
                ChatPart::Opaque(part) => {
                    let sent: Value = serde_json::from_str(&plain(part.id.0)[0]).unwrap();
                    prop_assert_eq!(&sent, &part.json);
                }
                ChatPart::ToolRound(round) => for e in round {
                    prop_assert_eq!(plain(e.call_part.0), vec![e.call.name.clone(), e.call.arguments.clone()]);
                    prop_assert_eq!(plain(e.result_part.0), vec![e.result.text.clone()]);
                },
            }
        }
    }
}
