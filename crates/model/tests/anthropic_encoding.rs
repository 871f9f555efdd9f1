//! Requests in the messages dialect, and which of their bytes come from where.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/anthropic.rs"]
mod support;

use bytes::Bytes;
use drawloom_model::encoded::CoveredRange;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::quirks::{CacheForm, Quirks};
use drawloom_model::{
    Chat, ChatPart, DialectName, EncodeError, EncodedRequest, Media, MediaPart, OpaquePart, Params, PartId,
    PartKind, ReplyPiece, TextPart, ToolExchange,
};
use folded::folded;
use proptest::prelude::*;
use serde_json::{Value, json};

use support::{assistant, body, chat, conversation, encode_with, exchange, text, tool, unsupported, user};

fn picture(mime: &str) -> Media {
    Media { mime: mime.to_owned(), data: Bytes::from_static(b"\x89PNG") }
}

fn encode(chat: Chat) -> EncodedRequest {
    encode_with(Quirks::default(), chat, &Params::default()).unwrap()
}

/// The body with each part marked by its id, which shows parts and framing at a glance.
fn marked(encoded: &EncodedRequest) -> String {
    let body = encoded.body();
    let piece = |range: std::ops::Range<usize>| String::from_utf8(body[range].to_vec()).unwrap();
    let cover = encoded.cover().into_iter().map(|covered| match covered {
        CoveredRange::Part(range) => format!("⟨{}:{}⟩", range.part.0, piece(range.bytes.clone())),
        CoveredRange::Framing(range) => piece(range),
    });
    cover.collect::<String>().replace(",{\"role\"", "\n,{\"role\"")
}

#[test]
fn a_conversation_is_encoded_with_every_part_marked() {
    let encoded = encode(conversation());
    assert_eq!((encoded.path(), encoded.dialect()), ("messages", DialectName::AnthropicMessages));
    insta::assert_snapshot!(marked(&encoded), @r#"
{"model":"m","max_tokens":8192,"stream":true,"tools":[⟨0:{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}⟩],"system":[{"type":"text","text":"⟨1:Be \"kind\".⟩"},{"type":"text","text":"⟨2:AGENTS\n⟩"}],"messages":[{"role":"user","content":[{"type":"text","text":"⟨3:Read a and b — 中⟩"},{"type":"text","text":"⟨4:Card: files⟩"}]}
,{"role":"assistant","content":[{"type":"text","text":"⟨5:Both.⟩"},{"type":"tool_use","id":"call_6","name":"⟨6:read⟩","input":⟨6:{"path": "a"}⟩},{"type":"tool_use","id":"call_8","name":"⟨8:read⟩","input":⟨8:{"path":"b"}⟩}]}
,{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_6","content":"⟨7:A\t1⟩"},{"type":"tool_result","tool_use_id":"call_8","content":"⟨9:⟩"}]}
,{"role":"assistant","content":[{"type":"tool_use","id":"call_10","name":"⟨10:read⟩","input":⟨10:{}⟩}]}
,{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_10","content":"⟨11:C⟩"},{"type":"text","text":"⟨12:It is noon.⟩"},{"type":"text","text":"⟨13:Thanks⟩"}]}]}
"#);
}

#[test]
fn every_parameter_has_its_field() {
    let params = Params {
        temperature: Some(0.7),
        top_p: Some(0.9),
        min_p: Some(0.05),
        max_tokens: Some(64),
        stop: vec!["END".to_owned()],
        seed: Some(-3),
        stream: false,
        ..Params::default()
    };
    let encoded = encode_with(Quirks::default(), chat(vec![user(1, "Hi")]), &params).unwrap();
    insta::assert_snapshot!(marked(&encoded), @r#"{"model":"m","max_tokens":64,"temperature":0.7,"top_p":0.9,"min_p":0.05,"seed":-3,"stop_sequences":["END"],"messages":[{"role":"user","content":[{"type":"text","text":"⟨1:Hi⟩"}]}]}"#);
    let plain = Quirks { min_p: false, seed: false, sampling: false, ..Quirks::default() };
    let encoded = encode_with(plain, chat(vec![user(1, "Hi")]), &params).unwrap();
    insta::assert_snapshot!(marked(&encoded), @r#"{"model":"m","max_tokens":64,"stop_sequences":["END"],"messages":[{"role":"user","content":[{"type":"text","text":"⟨1:Hi⟩"}]}]}"#);
}

#[test]
fn pictures_and_results_have_their_blocks() {
    let mut failed = exchange(4, "see", "{}", "no such file");
    failed.result.status = ToolStatus::Error;
    let mut shown = exchange(6, "see", "{}", "");
    shown.result.media = vec![picture("image/webp"), picture("application/pdf")];
    shown.result.status = ToolStatus::Denied;
    let mut wordless = exchange(8, "see", "{}", "");
    wordless.result.status = ToolStatus::Unknown;
    let messages = vec![
        ChatPart::Media(MediaPart { id: PartId(1), media: picture("image/png") }),
        user(2, "What is it?"),
        ChatPart::ToolRound(vec![failed, shown, wordless]),
    ];
    insta::assert_snapshot!(marked(&encode(chat(messages))), @r#"
{"model":"m","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"⟨1:iVBORw==⟩"}},{"type":"text","text":"⟨2:What is it?⟩"}]}
,{"role":"assistant","content":[{"type":"tool_use","id":"call_4","name":"⟨4:see⟩","input":⟨4:{}⟩},{"type":"tool_use","id":"call_6","name":"⟨6:see⟩","input":⟨6:{}⟩},{"type":"tool_use","id":"call_8","name":"⟨8:see⟩","input":⟨8:{}⟩}]}
,{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_4","is_error":true,"content":"⟨5:no such file⟩"},{"type":"tool_result","tool_use_id":"call_6","content":[{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"⟨7:iVBORw==⟩"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"⟨7:iVBORw==⟩"}}]},{"type":"tool_result","tool_use_id":"call_8","is_error":true,"content":"The tool failed and said nothing.⟨9:⟩"}]}]}
"#);
    for mime in ["audio/wav", "image/tiff", "text/plain"] {
        let part = ChatPart::Media(MediaPart { id: PartId(1), media: picture(mime) });
        assert!(unsupported(&encode_with(Quirks::default(), chat(vec![part]), &Params::default())), "{mime}");
    }
}

#[test]
fn an_answer_with_thinking_goes_back_as_it_came() {
    let name = format!("{}/tests/wire/anthropic_thinking.sse", env!("CARGO_MANIFEST_DIR"));
    let mut parser = DialectName::AnthropicMessages.parser(true);
    let mut events = Vec::new();
    parser.feed(&std::fs::read(name).unwrap(), &mut events).unwrap();
    let pieces = folded(&events).choices.remove(0).pieces;
    let mut messages = vec![user(0, "Read a.")];
    for (piece, id) in pieces.into_iter().zip(1..) {
        let opaque = piece.opaque();
        messages.push(match piece {
            ReplyPiece::Thinking { text, .. } => {
                ChatPart::Opaque(OpaquePart { id: PartId(id), thinking: Some(text), json: opaque.unwrap() })
            }
            ReplyPiece::Text(words) => assistant(id, &words),
            ReplyPiece::Call(call) => {
                ChatPart::ToolRound(vec![ToolExchange { call, ..exchange(id, "", "", "A") }])
            }
            other => panic!("{other:?}"),
        });
    }
    let sent = body(&encode(chat(messages)));
    let whole = format!("{}/tests/wire/anthropic_thinking.json", env!("CARGO_MANIFEST_DIR"));
    let came: Value = serde_json::from_slice(&std::fs::read(whole).unwrap()).unwrap();
    assert_eq!(sent["messages"][1], json!({"role": "assistant", "content": came["content"]}));
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_01R", "content": "A"}]);
    assert_eq!(sent["messages"][2], json!({"role": "user", "content": result}));
}

fn thought(id: u32) -> OpaquePart {
    let json = json!({"type": "thinking", "thinking": "Hm.", "signature": "EqQB"});
    OpaquePart { id: PartId(id), thinking: Some("Hm.".to_owned()), json }
}

fn kinds(message: &Value) -> Vec<String> {
    let blocks = message["content"].as_array().unwrap();
    blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn thinking_in_front_of_calls_stays_there_and_thinking_that_led_to_nothing_is_not_sent() {
    let before = ToolExchange { before: vec![thought(2)], ..exchange(3, "read", "{}", "A") };
    let messages = vec![
        user(1, "Go."),
        ChatPart::ToolRound(vec![before]),
        ChatPart::Opaque(thought(5)),
        user(6, "Well?"),
    ];
    let sent = body(&encode(chat(messages)));
    assert_eq!(kinds(&sent["messages"][1]), ["thinking", "tool_use"]);
    assert_eq!(kinds(&sent["messages"][2]), ["tool_result", "text"], "and the turns around it are one");
    assert_eq!(sent["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn blocks_of_the_servers_own_tools_go_back_where_they_stood() {
    let block = json!({"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "q"}});
    let opaque = |json: Value| ChatPart::Opaque(OpaquePart { id: PartId(2), thinking: None, json });
    let sent = body(&encode(chat(vec![user(1, "Go."), opaque(block.clone()), assistant(3, "Done.")])));
    assert_eq!(sent["messages"][1]["content"], json!([block, {"type": "text", "text": "Done."}]));
    let odd = chat(vec![user(1, "Go."), opaque(json!("a word")), assistant(3, "Done.")]);
    assert!(unsupported(&encode_with(Quirks::default(), odd, &Params::default())));
}

#[test]
fn empty_texts_are_never_sent() {
    let messages = vec![
        ChatPart::System(text(1, " \n")),
        user(2, ""),
        user(3, "Hi"),
        assistant(4, "\t"),
        ChatPart::Injected(text(5, "  ")),
        ChatPart::ToolRound(vec![]),
        user(6, "you"),
    ];
    let sent = body(&encode(Chat { prefill: Some(text(7, "")), ..chat(messages) }));
    assert_eq!(sent["system"], Value::Null);
    let content = json!([{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}]);
    assert_eq!(sent["messages"], json!([{"role": "user", "content": content}]));
    for nothing in [vec![], vec![ChatPart::System(text(1, "Be kind."))], vec![user(1, " ")]] {
        let result = encode_with(Quirks::default(), chat(nothing), &Params::default());
        assert_eq!(result, Err(EncodeError::Empty));
    }
}

#[test]
fn instructions_inside_a_conversation_stand_where_the_model_takes_them() {
    let quirks = Quirks { instructions_inside: true, ..Quirks::default() };
    let roles = |messages: Vec<ChatPart>| -> Vec<String> {
        let sent = body(&encode_with(quirks, chat(messages), &Params::default()).unwrap());
        let messages = sent["messages"].as_array().unwrap().iter();
        messages
            .map(|message| format!("{} {}", message["role"].as_str().unwrap(), kinds(message).len()))
            .collect()
    };
    let system = |id| ChatPart::System(text(id, "It is noon."));
    assert_eq!(
        roles(vec![user(1, "a"), system(2), system(3), assistant(4, "b")]),
        ["user 1", "system 2", "assistant 1"]
    );
    assert_eq!(
        roles(vec![system(1), user(2, "a"), system(3)]),
        ["user 1", "system 1"],
        "the first stands above"
    );
    assert_eq!(
        roles(vec![user(1, "a"), system(2), user(3, "b")]),
        ["user 3"],
        "not within what the user says"
    );
    assert_eq!(roles(vec![user(1, "a"), assistant(2, "b"), system(3)]), ["user 1", "assistant 1", "user 1"]);
    let round = ChatPart::ToolRound(vec![exchange(3, "read", "{}", "A")]);
    let called = vec![user(1, "a"), system(2), round, system(5), assistant(6, "b")];
    assert_eq!(roles(called), ["user 1", "system 1", "assistant 1", "user 1", "system 1", "assistant 1"]);
}

#[test]
fn a_conversation_that_begins_with_the_assistant_is_opened_for_it() {
    let sent = body(&encode(chat(vec![assistant(1, "Welcome."), user(2, "Hi")])));
    let roles: Vec<_> = sent["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[test]
fn a_beginning_of_the_answer_comes_last() {
    let begun = |words: &str| Chat { prefill: Some(text(2, words)), ..chat(vec![user(1, "Go on.")]) };
    insta::assert_snapshot!(marked(&encode(begun("It was"))), @r#"
{"model":"m","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"⟨1:Go on.⟩"}]}
,{"role":"assistant","content":[{"type":"text","text":"⟨2:It was⟩"}]}]}
"#);
    let default = Params::default();
    assert!(unsupported(&encode_with(Quirks::default(), begun("It was "), &default)), "the API refuses it");
}

#[test]
fn arguments_are_always_an_object() {
    for (arguments, expected) in [
        ("", json!({})),
        ("null", json!({})),
        (r#"{ "a" : 1 }"#, json!({"a": 1})),
        (r#""{\"a\":1}""#, json!({"a": 1})),
        (r#"{"arguments":{"a":1}}"#, json!({"arguments": {"a": 1}})),
        ("[1]", json!({"arguments": "[1]"})),
        ("{\"a\":", json!({"arguments": "{\"a\":"})),
    ] {
        let round = ChatPart::ToolRound(vec![exchange(2, "read", arguments, "")]);
        let encoded = encode(chat(vec![user(1, "Go."), round]));
        assert_eq!(body(&encoded)["messages"][1]["content"][0]["input"], expected, "{arguments}");
        let range = encoded.ranges().iter().filter(|range| range.kind == PartKind::ToolCall).nth(1).unwrap();
        let plain: Value = serde_json::from_str(&encoded.plain_text(range)).unwrap();
        assert_eq!(plain, expected, "its plain text is the object");
    }
}

#[test]
fn ids_the_api_does_not_take_are_replaced_in_call_and_result_alike() {
    let mut odd = exchange(2, "read", "{}", "A");
    odd.call.id = "functions.read:0".to_owned();
    let mut other = exchange(4, "read", "{}", "B");
    other.call.id = "functions.read:1".to_owned();
    let sent = body(&encode(chat(vec![user(1, "Go."), ChatPart::ToolRound(vec![odd, other])])));
    let id = |message: usize, block: usize, field: &str| {
        sent["messages"][message]["content"][block][field].as_str().unwrap().to_owned()
    };
    assert_eq!(id(1, 0, "id"), id(2, 0, "tool_use_id"));
    assert_ne!(id(1, 0, "id"), id(1, 1, "id"));
    assert!(id(1, 0, "id").bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
}

/// The paths of all blocks with a cache mark.
fn marks(sent: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |path: String, blocks: &Value| {
        for (index, block) in blocks.as_array().into_iter().flatten().enumerate() {
            if block["cache_control"] == json!({"type": "ephemeral"}) {
                found.push(format!("{path}{index} {}", block["type"].as_str().unwrap_or("tool")));
            }
        }
    };
    look("tools/".to_owned(), &sent["tools"]);
    look("system/".to_owned(), &sent["system"]);
    for (index, message) in sent["messages"].as_array().into_iter().flatten().enumerate() {
        look(format!("{index}/"), &message["content"]);
    }
    found
}

#[test]
fn cache_marks_stand_on_the_boundary_and_at_the_end() {
    let sent = |chat: Chat| {
        let quirks = Quirks { cache: CacheForm::Marks, ..Quirks::default() };
        marks(&body(&encode_with(quirks, chat, &Params::default()).unwrap()))
    };
    assert_eq!(sent(conversation()), ["system/1 text", "4/2 text"]);
    assert_eq!(sent(Chat { stable: 1, ..conversation() }), ["system/0 text", "4/2 text"]);
    assert_eq!(sent(Chat { stable: 0, ..conversation() }), ["tools/0 tool", "4/2 text"]);
    assert_eq!(sent(Chat { stable: 6, ..conversation() }), ["2/1 tool_result", "4/2 text"]);
    assert_eq!(sent(Chat { stable: 99, ..conversation() }), ["4/2 text"]);
    let begun = Chat { prefill: Some(text(20, "You")), ..conversation() };
    assert_eq!(sent(begun), ["system/1 text", "4/2 text"], "the answer's beginning will not stay as it is");
    let block = OpaquePart { id: PartId(21), thinking: None, json: json!({"type": "server_tool_use"}) };
    let mut opaque = conversation();
    opaque.messages.push(ChatPart::Opaque(block));
    assert_eq!(sent(opaque), ["system/1 text", "4/2 text"], "what goes back unchanged takes no mark");
    assert_eq!(
        marks(&body(&encode(conversation()))),
        Vec::<String>::new(),
        "only where the server wants them"
    );
}

fn any_part(kind: u8, id: u32, a: &str, b: &str) -> ChatPart {
    match kind % 7 {
        0 => ChatPart::System(TextPart::new(PartId(id), a)),
        1 => user(id, a),
        2 => ChatPart::Injected(TextPart::new(PartId(id), a)),
        3 => assistant(id, a),
        4 => ChatPart::Opaque(thought(id)),
        5 => ChatPart::Media(MediaPart { id: PartId(id), media: picture("image/gif") }),
        _ => {
            let mut second = exchange(id + 2, b, a, b);
            second.result.media = vec![picture("image/jpeg")];
            ChatPart::ToolRound(vec![exchange(id, a, b, a), second])
        }
    }
}

proptest! {
    #[test]
    fn any_conversation_is_covered_valid_and_gives_every_text_back(
        parts in proptest::collection::vec((any::<u8>(), any::<String>(), any::<String>()), 1..8),
        stable in 0_usize..8,
        marks_wanted: bool,
    ) {
        let messages: Vec<ChatPart> = parts
            .into_iter()
            .enumerate()
            .map(|(at, (kind, a, b))| any_part(kind, 100 + u32::try_from(at).unwrap() * 4, &a, &b))
            .chain([user(99, "So?")])
            .collect();
        let cache = if marks_wanted { CacheForm::Marks } else { CacheForm::Implicit };
        let chat = Chat { tools: vec![tool(0)], messages: messages.clone(), stable, prefill: None };
        let encoded = encode_with(Quirks { cache, ..Quirks::default() }, chat, &Params::default()).unwrap();
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
        let sent = body(&encoded);
        prop_assert!(marks(&sent).len() <= 2);
        api_takes(&sent)?;
        let plain = |id: PartId| -> Vec<String> {
            let own = encoded.ranges().iter().filter(|range| range.part == id);
            own.map(|range| encoded.plain_text(range)).collect()
        };
        for message in &messages {
            match message {
                ChatPart::System(t) | ChatPart::User(t) | ChatPart::Injected(t) | ChatPart::Assistant(t) => {
                    let expected = if t.text.trim().is_empty() { vec![] } else { vec![t.text.clone()] };
                    prop_assert_eq!(plain(t.id), expected);
                }
                ChatPart::Media(part) => prop_assert_eq!(plain(part.id), ["iVBORw=="].map(str::to_owned)),
                ChatPart::Opaque(part) => {
                    let back: Vec<Value> =
                        plain(part.id).iter().map(|json| serde_json::from_str(json).unwrap()).collect();
                    prop_assert!(back.is_empty() || back == [part.json.clone()]);
                }
                ChatPart::ToolRound(round) => for e in round {
                    prop_assert_eq!(plain(e.call_part)[0].clone(), e.call.name.clone());
                    prop_assert!(serde_json::from_str::<serde_json::Map<String, Value>>(&plain(e.call_part)[1]).is_ok());
                    let blank = e.result.text.trim().is_empty();
                    prop_assert!(blank || plain(e.result_part).contains(&e.result.text));
                },
            }
        }
    }
}

/// What the API demands of every request.
fn api_takes(sent: &Value) -> Result<(), TestCaseError> {
    let messages = sent["messages"].as_array().unwrap();
    for (index, message) in messages.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        prop_assert_eq!(&message["role"], role, "roles alternate and the user begins");
        let blocks = message["content"].as_array().unwrap();
        let last = blocks.last().map(|block| block["type"].clone());
        prop_assert_ne!(last, Some(json!("thinking")), "thinking leads to something");
        let calls = || blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| &block["id"]);
        let next = messages.get(index + 1).map(|next| next["content"].as_array().unwrap().as_slice());
        for (answered, call) in next.unwrap_or_default().iter().zip(calls()) {
            prop_assert_eq!(&answered["tool_use_id"], call, "results open the next message, in order");
        }
        for block in blocks.iter().filter(|block| block["type"] == "text") {
            prop_assert!(!block["text"].as_str().unwrap().trim().is_empty(), "no text is empty");
        }
    }
    Ok(())
}
