//! Requests to Gemini as they are sent, and which of their bytes come from where.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/gemini.rs"]
mod support;

use drawloom_model::encoded::CoveredRange;
use drawloom_model::gemini::Gemini;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::quirks::{SchemaForm, ThinkingForm};
use drawloom_model::{
    Chat, ChatPart, Choice, Dialect, DialectName, EncodeError, EncodedRequest, Media, MediaPart,
    OutputSchema, Params, PartId, PartKind, Prompt, Quirks, ReplyPiece, TextPart, Thinking, ToolChoice,
    reparse, tool_arguments,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{
    body, conversation, encode, exchange, marked, media, opaque, said, signature, text, tool, with,
};

#[test]
fn a_conversation_is_encoded_with_every_part_marked() {
    let encoded = encode(conversation(), &Params::default());
    assert_eq!(encoded.path(), "models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!((encoded.dialect(), encoded.stream()), (DialectName::Gemini, true));
    insta::assert_snapshot!(marked(&encoded), @r#"
{"tools":[{"functionDeclarations":[⟨0:{"name":"read","description":"Reads a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":["string","null"]}},"additionalProperties":false}}⟩]}],"systemInstruction":{"parts":[{"text":"⟨1:Be \"kind\".⟩"},{"text":"\n\n⟨2:AGENTS\n⟩"}]},
"contents":[{"role":"user","parts":[{"text":"⟨3:Read a and b — 中⟩"},{"text":"\n\n⟨4:Card: files⟩"}]}
,{"role":"model","parts":[{"text":"⟨5:Both.⟩"},{"functionCall":{"id":"call_6","name":"⟨6:read⟩","args":⟨6:{ "path": "a", "n": 1.50 }⟩}},{"functionCall":{"id":"call_8","name":"⟨8:read⟩","args":⟨8:{}⟩}}]}
,{"role":"user","parts":[{"functionResponse":{"id":"call_6","name":"read","response":{"result":"⟨7:A\t1⟩"}}},{"functionResponse":{"id":"call_8","name":"read","response":{"result":"⟨9:⟩"}}}]}
,{"role":"model","parts":[{"functionCall":{"id":"call_10","name":"⟨10:read⟩","args":{"arguments":"⟨10:not JSON⟩"}}}]}
,{"role":"user","parts":[{"functionResponse":{"id":"call_10","name":"read","response":{"result":"⟨11:C⟩"}}}]}
,{"role":"user","parts":[{"text":"⟨12:Thanks⟩"},{"text":"\n\n⟨13:It is late.⟩"}]}]}
"#);
}

#[test]
fn a_path_names_the_model_and_no_name_leaves_its_segment_of_it() {
    let path = |model: &str, stream| {
        let prompt = Prompt::Chat(said(vec![ChatPart::User(text(1, "Hi"))]));
        let params = Params { stream, ..Params::default() };
        Gemini::default().encode(&prompt, &params, model).unwrap().path().to_owned()
    };
    assert_eq!(path("gemini-2.5-flash", false), "models/gemini-2.5-flash:generateContent");
    assert_eq!(path("models/gemini-2.5-flash", false), "models/gemini-2.5-flash:generateContent");
    assert_eq!(path("tunedModels/my-tale", false), "tunedModels/my-tale:generateContent");
    for name in [
        "..",
        "../../files",
        "a/b",
        "models/../x",
        "models/..",
        "tunedModels/a/../..",
        "a?key=b",
        "a#b",
        "a:countTokens",
        "a\\..\\b",
        "%2e%2e/x",
        "a b\n",
        "",
        "ä中",
    ] {
        let root = egress::Url::parse("https://host/v1beta/").unwrap();
        let url = root.join(&path(name, true)).unwrap();
        assert_eq!((url.query(), url.fragment()), (Some("alt=sse"), None), "{name}");
        let segments: Vec<&str> = url.path_segments().unwrap().collect();
        assert_eq!(segments.len(), 3, "{name}: {url}");
        assert!(matches!(segments[..2], ["v1beta", "models" | "tunedModels"]), "{name}: {url}");
        let model = segments[2].strip_suffix(":streamGenerateContent").unwrap();
        assert!(!model.contains(':'), "{url}");
    }
}

#[test]
fn every_parameter_has_its_field() {
    let params = Params {
        temperature: Some(0.7),
        top_p: Some(0.9),
        max_tokens: Some(64),
        stop: vec!["\n\n".to_owned()],
        seed: Some(-3),
        logprobs: Some(4),
        n: 3,
        stream: false,
        tool_choice: ToolChoice::Tool("read".to_owned()),
        schema: Some(OutputSchema { name: "tale".to_owned(), schema: json!({"type": "string"}) }),
        cache_key: Some("k".to_owned()),
        ..Params::default()
    };
    let chat = Chat { tools: vec![tool(2, "read")], ..said(vec![ChatPart::User(text(1, "Hi"))]) };
    let encoded = encode(chat, &params);
    assert_eq!(encoded.path(), "models/gemini-2.5-flash:generateContent");
    insta::assert_snapshot!(marked(&encoded), @r#"
{"generationConfig":{"temperature":0.7,"topP":0.9,"maxOutputTokens":64,"stopSequences":["\n\n"],"seed":-3,"candidateCount":3,"responseLogprobs":true,"logprobs":4,"responseMimeType":"application/json","responseJsonSchema":{"type":"string"}},"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["read"]}},"tools":[{"functionDeclarations":[⟨2:{"name":"read","description":"Reads a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":["string","null"]}},"additionalProperties":false}}⟩]}],
"contents":[{"role":"user","parts":[{"text":"⟨1:Hi⟩"}]}]}
"#);
}

#[test]
fn tools_may_be_left_to_the_model_forbidden_or_demanded() {
    let config = |tool_choice| {
        let chat = Chat { tools: vec![tool(2, "read")], ..said(vec![ChatPart::User(text(1, "Hi"))]) };
        body(&encode(chat, &Params { tool_choice, ..Params::default() }))["toolConfig"].clone()
    };
    assert_eq!(config(ToolChoice::Auto), Value::Null);
    assert_eq!(config(ToolChoice::None), json!({"functionCallingConfig": {"mode": "NONE"}}));
    assert_eq!(config(ToolChoice::Required), json!({"functionCallingConfig": {"mode": "ANY"}}));
    let none = encode(
        said(vec![ChatPart::User(text(1, "Hi"))]),
        &Params { tool_choice: ToolChoice::Required, ..Params::default() },
    );
    assert_eq!(body(&none), json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}), "no tools");
}

#[test]
fn thinking_is_asked_for_in_the_models_own_measure() {
    let config = |thinking, quirks, max_tokens| {
        let params = Params { thinking: Some(thinking), max_tokens, ..Params::default() };
        let encoded = with(quirks, said(vec![ChatPart::User(text(1, "Hi"))]), &params);
        body(&encoded)["generationConfig"]["thinkingConfig"].clone()
    };
    let budget = Quirks { thinking: ThinkingForm::Budget, ..Quirks::default() };
    let level = Quirks { thinking: ThinkingForm::Level, ..Quirks::default() };
    let always = |quirks| Quirks { thinking_always: true, ..quirks };
    let tokens = |tokens: u32, shown: bool| json!({"thinkingBudget": tokens, "includeThoughts": shown});
    let called = |level: &str, shown: bool| json!({"thinkingLevel": level, "includeThoughts": shown});
    assert_eq!(config(Thinking::Off, budget, None), tokens(0, false));
    assert_eq!(config(Thinking::Low, budget, None), tokens(1_024, true));
    assert_eq!(config(Thinking::High, budget, None), tokens(24_576, true));
    assert_eq!(config(Thinking::High, budget, Some(4_000)), tokens(2_000, true), "half is left to speak");
    assert_eq!(config(Thinking::Off, always(budget), None), tokens(128, false));
    assert_eq!(config(Thinking::Low, always(budget), Some(96)), tokens(128, true));
    assert_eq!(config(Thinking::Off, level, None), called("MINIMAL", false));
    assert_eq!(config(Thinking::Low, level, None), called("LOW", true));
    assert_eq!(config(Thinking::High, level, None), called("HIGH", true));
    assert_eq!(config(Thinking::Off, always(level), None), called("LOW", false));
    assert_eq!(config(Thinking::High, Quirks::default(), None), Value::Null, "it cannot be told");
}

#[test]
fn what_a_server_does_not_take_is_not_sent() {
    let quirks = Quirks {
        min_p: false,
        seed: false,
        sampling: false,
        schema: SchemaForm::Object,
        ..Quirks::default()
    };
    let params = Params {
        temperature: Some(1.0),
        top_p: Some(1.0),
        min_p: Some(0.1),
        seed: Some(i64::MAX),
        schema: Some(OutputSchema { name: "x".to_owned(), schema: json!({}) }),
        ..Params::default()
    };
    let encoded = with(quirks, said(vec![ChatPart::User(text(1, "Hi"))]), &params);
    assert_eq!(body(&encoded)["generationConfig"], json!({"responseMimeType": "application/json"}));
}

#[test]
fn what_the_dialect_cannot_say_is_refused() {
    let encode =
        |prompt: &Prompt, params: &Params| Gemini::default().encode(prompt, params, "m").unwrap_err();
    let hi = Prompt::Chat(said(vec![ChatPart::User(text(1, "Hi"))]));
    let plain = Params::default();
    let code = |params: Params| encode(&hi, &params).code();
    assert_eq!(encode(&Prompt::Raw(vec![text(1, "a")]), &plain).code(), "unsupported");
    assert_eq!(code(Params { min_p: Some(0.1), ..Params::default() }), "unsupported");
    for params in [
        Params { temperature: Some(f64::NAN), ..Params::default() },
        Params { top_p: Some(-1.0), ..Params::default() },
        Params { n: 0, ..Params::default() },
        Params { stop: vec!["a".to_owned(); 6], ..Params::default() },
        Params { seed: Some(i64::from(i32::MAX) + 1), ..Params::default() },
    ] {
        assert_eq!(code(params), "bad_parameter");
    }
    let instructions = said(vec![ChatPart::System(text(1, "Be kind."))]);
    for chat in [Chat::default(), instructions] {
        assert_eq!(encode(&Prompt::Chat(chat), &plain), EncodeError::Empty, "nothing to answer to");
    }
    let foreign = said(vec![ChatPart::Opaque(opaque(1, None, json!([1])))]);
    assert_eq!(encode(&Prompt::Chat(foreign), &plain).code(), "unsupported");
}

#[test]
fn a_beginning_of_the_answer_comes_last_and_takes_no_signature() {
    let chat = Chat {
        prefill: Some(text(3, "It was ")),
        ..said(vec![ChatPart::User(text(1, "Go on.")), ChatPart::Opaque(signature(2, "s"))])
    };
    insta::assert_snapshot!(marked(&encode(chat, &Params::default())), @r#"
{
"contents":[{"role":"user","parts":[{"text":"⟨1:Go on.⟩"}]}
,{"role":"model","parts":[{"thoughtSignature":⟨2:"s"⟩,"text":""},{"text":"⟨3:It was ⟩"}]}]}
"#);
}

#[test]
fn pictures_and_sounds_are_the_users() {
    let chat = said(vec![
        ChatPart::User(text(1, "What is")),
        ChatPart::Media(MediaPart { id: PartId(2), media: media("image/png", b"\x89PNG") }),
        ChatPart::Media(MediaPart { id: PartId(3), media: media("audio/wav", b"RIFF") }),
        ChatPart::Media(MediaPart { id: PartId(5), media: media("audio/mpeg", b"ID3") }),
        ChatPart::User(text(4, "this?")),
    ]);
    insta::assert_snapshot!(marked(&encode(chat, &Params::default())), @r#"
{
"contents":[{"role":"user","parts":[{"text":"⟨1:What is⟩"},{"inlineData":{"mimeType":"image/png","data":"⟨2:iVBORw==⟩"}},{"inlineData":{"mimeType":"audio/wav","data":"⟨3:UklGRg==⟩"}},{"inlineData":{"mimeType":"audio/mp3","data":"⟨5:SUQz⟩"}},{"text":"⟨4:this?⟩"}]}]}
"#);
}

#[test]
fn results_say_how_they_ended_and_pictures_stand_behind_or_inside_them() {
    let mut round =
        vec![exchange(2, "a", "{}", "seen"), exchange(4, "b", "{}", "no"), exchange(6, "c", "{}", "?")];
    round[0].result.media = vec![media("image/png", b"1"), media("image/gif", b"2")];
    round[1].result.status = ToolStatus::Denied;
    round[2].result.status = ToolStatus::Error;
    round[2].call.id = String::new();
    let chat = said(vec![ChatPart::User(text(1, "Go")), ChatPart::ToolRound(round)]);
    insta::assert_snapshot!(marked(&encode(chat.clone(), &Params::default())), @r#"
{
"contents":[{"role":"user","parts":[{"text":"⟨1:Go⟩"}]}
,{"role":"model","parts":[{"functionCall":{"id":"call_2","name":"⟨2:a⟩","args":⟨2:{}⟩}},{"functionCall":{"id":"call_4","name":"⟨4:b⟩","args":⟨4:{}⟩}},{"functionCall":{"name":"⟨6:c⟩","args":⟨6:{}⟩}}]}
,{"role":"user","parts":[{"functionResponse":{"id":"call_2","name":"a","response":{"result":"⟨3:seen⟩"}}},{"inlineData":{"mimeType":"image/png","data":"⟨3:MQ==⟩"}},{"inlineData":{"mimeType":"image/gif","data":"⟨3:Mg==⟩"}},{"functionResponse":{"id":"call_4","name":"b","response":{"error":"⟨5:no⟩"}}},{"functionResponse":{"name":"c","response":{"error":"⟨7:?⟩"}}}]}]}
"#);
    let quirks = Quirks { media_in_results: true, ..Quirks::default() };
    let results = body(&with(quirks, chat, &Params::default()))["contents"][2]["parts"].clone();
    assert_eq!(results.as_array().unwrap().len(), 3);
    assert_eq!(
        results[0]["functionResponse"]["parts"],
        json!([
            {"inlineData": {"mimeType": "image/png", "data": "MQ=="}},
            {"inlineData": {"mimeType": "image/gif", "data": "Mg=="}},
        ])
    );
}

#[test]
fn signatures_stand_on_the_part_behind_them_or_on_an_empty_one() {
    let mut signed = exchange(8, "a", "{}", "1");
    signed.before = vec![opaque(6, Some("Why"), json!({"thoughtSignature": "t"})), signature(7, "call")];
    let chat = said(vec![
        ChatPart::User(text(1, "Go")),
        ChatPart::Assistant(text(2, "One ")),
        ChatPart::Opaque(signature(3, "text")),
        ChatPart::Assistant(text(4, "two")),
        ChatPart::Opaque(opaque(5, None, json!({"executableCode": {"code": "1"}}))),
        ChatPart::ToolRound(vec![signed, exchange(10, "b", "{}", "2")]),
        ChatPart::Opaque(signature(12, "last")),
        ChatPart::User(text(13, "Next")),
        ChatPart::Assistant(text(14, "A")),
        ChatPart::Assistant(text(15, "B")),
        ChatPart::Opaque(signature(16, "x")),
        ChatPart::Opaque(signature(17, "y")),
    ]);
    insta::assert_snapshot!(marked(&encode(chat, &Params::default())), @r#"
{
"contents":[{"role":"user","parts":[{"text":"⟨1:Go⟩"}]}
,{"role":"model","parts":[{"text":"⟨2:One ⟩"},{"thoughtSignature":⟨3:"text"⟩,"text":"⟨4:two⟩"},⟨5:{"executableCode":{"code":"1"}}⟩,⟨6:{"text":"Why","thought":true,"thoughtSignature":"t"}⟩,{"thoughtSignature":⟨7:"call"⟩,"functionCall":{"id":"call_8","name":"⟨8:a⟩","args":⟨8:{}⟩}},{"functionCall":{"id":"call_10","name":"⟨10:b⟩","args":⟨10:{}⟩}}]}
,{"role":"user","parts":[{"functionResponse":{"id":"call_8","name":"a","response":{"result":"⟨9:1⟩"}}},{"functionResponse":{"id":"call_10","name":"b","response":{"result":"⟨11:2⟩"}}}]}
,{"role":"model","parts":[{"thoughtSignature":⟨12:"last"⟩,"text":""}]}
,{"role":"user","parts":[{"text":"⟨13:Next⟩"}]}
,{"role":"model","parts":[{"text":"⟨14:A⟩"},{"text":"\n\n⟨15:B⟩"},{"thoughtSignature":⟨16:"x"⟩,"text":""},{"thoughtSignature":⟨17:"y"⟩,"text":""}]}]}
"#);
}

#[test]
fn calls_without_a_signature_get_the_stand_in_only_where_the_server_demands_one() {
    let mut signed = exchange(4, "b", "{}", "2");
    signed.before = vec![signature(8, "own")];
    let chat = said(vec![
        ChatPart::User(text(1, "Go")),
        ChatPart::ToolRound(vec![exchange(2, "a", "{}", "1"), exchange(9, "c", "{}", "3")]),
        ChatPart::ToolRound(vec![signed]),
    ]);
    let signatures = |encoded: EncodedRequest| -> Vec<Value> {
        let body = body(&encoded);
        [1, 3]
            .iter()
            .flat_map(|&at| body["contents"][at]["parts"].as_array().unwrap().clone())
            .map(|part| part["thoughtSignature"].clone())
            .collect()
    };
    let quirks = Quirks { signature_stand_in: true, ..Quirks::default() };
    let stand_in = json!("skip_thought_signature_validator");
    let own = json!("own");
    assert_eq!(
        signatures(with(quirks, chat.clone(), &Params::default())),
        [stand_in, Value::Null, own.clone()]
    );
    assert_eq!(signatures(encode(chat, &Params::default())), [Value::Null, Value::Null, own]);
}

/// What a caller makes of an answer that is part of the conversation from now on.
fn remembered(choice: &Choice) -> Vec<ChatPart> {
    let (mut parts, mut before, mut round, mut id) = (Vec::new(), Vec::new(), Vec::new(), 100);
    for piece in &choice.pieces {
        id += 2;
        match piece {
            ReplyPiece::Thinking { text, opaque: Some(json) } => {
                before.push(opaque(id, Some(text), json.clone()));
            }
            ReplyPiece::Opaque(json) => before.push(opaque(id, None, json.clone())),
            ReplyPiece::Text(said) => {
                parts.extend(before.drain(..).map(ChatPart::Opaque));
                parts.push(ChatPart::Assistant(text(id, said)));
            }
            ReplyPiece::Call(call) => {
                let mut exchange = exchange(id, &call.name, &call.arguments, "done");
                exchange.call = call.clone();
                exchange.before = std::mem::take(&mut before);
                round.push(exchange);
            }
            ReplyPiece::Thinking { .. } | ReplyPiece::Refusal(_) | ReplyPiece::Media(_) => {}
        }
    }
    if !round.is_empty() {
        parts.push(ChatPart::ToolRound(round));
    }
    parts.extend(before.into_iter().map(ChatPart::Opaque));
    parts
}

/// The contents behind the user's first, after the answer in a fixture became part of the conversation.
fn sent_back(name: &str) -> Value {
    let bytes = std::fs::read(format!("{}/tests/wire/gemini_{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let choice = reparse(DialectName::Gemini, &bytes, name.ends_with(".sse")).choices.remove(0);
    let mut messages = vec![ChatPart::User(text(1, "Go"))];
    messages.extend(remembered(&choice));
    let mut body = body(&encode(said(messages), &Params::default()));
    body["contents"].as_array_mut().unwrap().remove(0);
    body["contents"].take()
}

#[test]
fn answers_that_were_read_go_back_as_they_came() {
    for form in ["sse", "json"] {
        let thinking = json!([{"role": "model", "parts": [
            {"text": "It is 4."},
            {"text": "", "thoughtSignature": "EpwECpkEAXLI2nwTHo=="},
        ]}]);
        assert_eq!(
            sent_back(&format!("thinking.{form}")),
            thinking,
            "summaries of thoughts need not go back"
        );
        let signed = json!([{"role": "model", "parts": [
            {"text": "Hm.", "thought": true, "thoughtSignature": "CiQB0e2Kb1=="},
            {"text": "Well, "},
            {"text": "four.", "thoughtSignature": "CvIBAXLI2nyd=="},
        ]}]);
        assert_eq!(sent_back(&format!("signed_text.{form}")), signed);
        let id = "call_t4QhaZ-8LqGWvdIPx4mj-AQ_0_0";
        let arguments =
            json!({"path": "notes.md", "lines": [1, 20], "deep": {"ratio": 0.5, "all": true, "none": null}});
        let one = json!([
            {"role": "model", "parts": [
                {"text": "Let me look."},
                {"functionCall": {"id": id, "name": "read_file", "args": arguments}, "thoughtSignature": "CoIDAeHbji0fGsQ=="},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": id, "name": "read_file", "response": {"result": "done"}}},
            ]},
        ]);
        assert_eq!(sent_back(&format!("tool_call.{form}")), one);
        let result = |id: &str, name: &str| json!({"functionResponse": {"id": id, "name": name, "response": {"result": "done"}}});
        let derived = "call_v4QhabPPNoK6vdIPy5ed0AE_0_2";
        let three = json!([
            {"role": "model", "parts": [
                {"functionCall": {"id": "ugwn3nvw", "name": "weather", "args": {"city": "Bern"}}, "thoughtSignature": "EsUDCsIDAXLI2nxo=="},
                {"functionCall": {"id": "xq1s7b1k", "name": "weather", "args": {"city": "Köln"}}},
                {"functionCall": {"id": derived, "name": "now", "args": {}}},
            ]},
            {"role": "user", "parts": [result("ugwn3nvw", "weather"), result("xq1s7b1k", "weather"), result(derived, "now")]},
        ]);
        assert_eq!(sent_back(&format!("parallel_calls.{form}")), three);
        let code = json!([{"role": "model", "parts": [
            {"executableCode": {"language": "PYTHON", "code": "print(2+2)\n"}, "thoughtSignature": "CgEBc0=="},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4\n"}},
            {"text": "Four."},
        ]}]);
        assert_eq!(sent_back(&format!("code.{form}")), code);
    }
}

#[test]
fn whatever_was_read_can_be_sent_back() {
    let folder = format!("{}/tests/wire", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_prefix("gemini_") else { continue };
        let bytes =
            std::fs::read(format!("{}/tests/wire/gemini_{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        for choice in reparse(DialectName::Gemini, &bytes, name.ends_with(".sse")).choices {
            let messages = [vec![ChatPart::User(text(1, "Go"))], remembered(&choice)].concat();
            encode(said(messages), &Params::default());
        }
    }
}

fn any_part(kind: u8, id: u32, a: &str, b: &str) -> ChatPart {
    let part = TextPart::new(PartId(id), a);
    match kind % 9 {
        0 => ChatPart::System(part),
        1 => ChatPart::User(part),
        2 => ChatPart::Injected(part),
        3 => ChatPart::Assistant(part),
        4 => ChatPart::Media(MediaPart {
            id: PartId(id),
            media: Media { mime: b.to_owned(), data: a.as_bytes().to_vec().into() },
        }),
        5 => ChatPart::Opaque(signature(id, a)),
        6 => ChatPart::Opaque(opaque(id, Some(b), json!({"thoughtSignature": a}))),
        7 => ChatPart::Opaque(opaque(id, None, json!({"text": "", "thoughtSignature": a}))),
        _ => {
            let mut first = exchange(id, a, &json!({a: b}).to_string(), a);
            first.before = vec![signature(id + 4, b)];
            ChatPart::ToolRound(vec![first, exchange(id + 2, b, a, b)])
        }
    }
}

proptest! {
    #[test]
    fn parts_and_framing_cover_the_body_and_give_every_text_back(
        parts in proptest::collection::vec((any::<u8>(), any::<String>(), any::<String>()), 1..8),
        quirks in any::<(bool, bool)>(),
    ) {
        let mut messages = vec![ChatPart::User(text(1, "Go"))];
        let given = parts.into_iter().enumerate();
        messages.extend(given.map(|(at, (kind, a, b))| any_part(kind, (u32::try_from(at).unwrap() + 1) * 8, &a, &b)));
        let chat = Chat { tools: vec![tool(0, "read")], ..said(messages.clone()) };
        let quirks = Quirks { signature_stand_in: quirks.0, media_in_results: quirks.1, ..Quirks::default() };
        let encoded = with(quirks, chat, &Params::default());
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
        let body = body(&encoded);
        for content in body["contents"].as_array().unwrap() {
            prop_assert!(!content["parts"].as_array().unwrap().is_empty());
        }
        let plain = |id: u32| -> Vec<String> {
            let own = encoded.ranges().iter().filter(|r| r.part == PartId(id) && r.kind != PartKind::Schema);
            own.map(|range| encoded.plain_text(range)).collect()
        };
        for message in &messages {
            match message {
                ChatPart::System(t) | ChatPart::User(t) | ChatPart::Injected(t) | ChatPart::Assistant(t) => {
                    prop_assert_eq!(plain(t.id.0), vec![t.text.clone()]);
                }
                ChatPart::Media(part) => {
                    let data = data_encoding::BASE64.encode(&part.media.data);
                    prop_assert_eq!(plain(part.id.0), vec![data]);
                }
                ChatPart::Opaque(part) => {
                    let signature = serde_json::to_string(&part.json["thoughtSignature"]).unwrap();
                    let sent = plain(part.id.0);
                    prop_assert!(sent.len() == 1 && sent[0].contains(&signature), "{:?}", sent);
                }
                ChatPart::ToolRound(round) => for e in round {
                    let sent = plain(e.call_part.0);
                    prop_assert_eq!(&sent[0], &e.call.name);
                    let meant = |raw: &str| tool_arguments::parse(raw, true);
                    prop_assert!(sent[1] == e.call.arguments || meant(&sent[1]) == meant(&e.call.arguments));
                    prop_assert!(plain(e.result_part.0).contains(&e.result.text));
                },
            }
        }
    }
}
