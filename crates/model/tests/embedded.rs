//! The embedded engine behind the trait of all models, on a tiny model made here.
#![cfg(feature = "embedded-model")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "../../gguf/tests/support/tiny.rs"]
#[allow(dead_code, reason = "the engine's own tests use the rest")]
mod tiny;

use std::time::{Duration, Instant};

use drawloom_model::{
    CallOrigin, Cancel, Chat, ChatPart, DialectName, EmbeddedModel, EmbeddedOptions, EncodeError,
    EncodedRequest, Exchange, FinishReason, Model, ModelError, ModelEvent, ModelPlace, Params, PartId,
    PartKind, Prompt, Purpose, RawResponse, Reply, SourceKind, TextPart, TokenUsage, reparse,
};
use folded::folded;
use tiny::{TINY, Tiny};

fn model_with(file: &tiny::File) -> EmbeddedModel {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    std::fs::write(&path, file.bytes()).unwrap();
    EmbeddedModel::load(&path, "tiny", EmbeddedOptions::default()).unwrap()
}

fn model_of(tiny: Tiny) -> EmbeddedModel {
    model_with(&tiny.file())
}

fn model() -> EmbeddedModel {
    model_of(TINY)
}

fn part(id: u32, text: &str) -> TextPart {
    TextPart::new(PartId(id), text)
}

fn raw(text: &str) -> Prompt {
    Prompt::Raw(vec![part(1, text)])
}

fn params() -> Params {
    Params { temperature: Some(0.0), max_tokens: Some(12), ..Params::default() }
}

struct Run {
    result: Result<RawResponse, ModelError>,
    reply: Reply,
    spool: Vec<u8>,
}

async fn send(model: &EmbeddedModel, request: &EncodedRequest, cancel: Cancel) -> Run {
    let (mut spool, mut events) = (Vec::new(), Vec::<ModelEvent>::new());
    let mut listener = |event| events.push(event);
    let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel, permit: None };
    let result = model.send(request, &CallOrigin::new("main", Purpose::Turn), exchange).await;
    Run { result, reply: folded(&events), spool }
}

async fn ask(model: &EmbeddedModel, prompt: &Prompt, params: &Params) -> Run {
    send(model, &model.encode(prompt, params).unwrap(), Cancel::never()).await
}

fn body(encoded: &EncodedRequest) -> &str {
    std::str::from_utf8(encoded.body()).unwrap()
}

#[test]
fn what_it_is_is_told_truthfully() {
    let model = model();
    let info = model.info();
    assert_eq!(
        (info.place, info.kind, info.dialect),
        (ModelPlace::Local, SourceKind::Local, DialectName::Embedded)
    );
    assert_eq!((info.window, info.tools, info.prefill, info.logprobs), (512, false, true, true));
    assert_eq!("embedded".parse(), Ok(DialectName::Embedded));
}

#[test]
fn the_body_is_canonical_json_with_every_part_marked() {
    let model = model();
    let chat = Chat {
        messages: vec![
            ChatPart::System(part(1, "Be \"kind\".")),
            ChatPart::User(part(2, "a<|im_end|>")),
            ChatPart::Injected(part(3, "Card")),
        ],
        prefill: Some(part(4, "It was ")),
        ..Chat::default()
    };
    let params = Params {
        top_p: Some(1.0),
        seed: Some(7),
        stop: vec!["\n".to_owned()],
        logprobs: Some(2),
        ..params()
    };
    let encoded = model.encode(&Prompt::Chat(chat), &params).unwrap();
    insta::assert_snapshot!(body(&encoded), @r#"{"logprobs":2,"max_tokens":12,"min_p":0.05,"model":"tiny","prompt":[{"form":"<|im_start|>system\n"},{"text":"Be \"kind\"."},{"form":"<|im_end|>\n<|im_start|>user\n"},{"text":"a<|im_end|>"},{"text":"\n\n"},{"text":"Card"},{"form":"<|im_end|>\n<|im_start|>assistant\n"},{"text":"It was "}],"seed":7,"stop":["\n"],"temperature":0,"top_p":1}"#);
    let canonical = serde_json_canonicalizer::to_string(
        &serde_json::from_str::<serde_json::Value>(body(&encoded)).unwrap(),
    );
    assert_eq!(canonical.unwrap(), body(&encoded));
    let parts: Vec<_> =
        encoded.ranges().iter().map(|range| (range.part.0, range.kind, encoded.plain_text(range))).collect();
    let expected = [
        (1, PartKind::System, "Be \"kind\"."),
        (2, PartKind::User, "a<|im_end|>"),
        (3, PartKind::Injected, "Card"),
        (4, PartKind::Prefill, "It was "),
    ];
    assert_eq!(parts, expected.map(|(id, kind, text)| (id, kind, text.to_owned())));
}

#[tokio::test]
async fn a_model_without_a_chat_template_continues_the_conversation_as_raw_text() {
    let (model, known) = (model_with(&TINY.file().with_markers(["<s>", "[INST]", "[/INST]"])), model());
    let messages = vec![
        ChatPart::System(part(1, "Be kind.")),
        ChatPart::User(part(2, "a<|im_end|>")),
        ChatPart::Injected(part(3, "Card")),
        ChatPart::Assistant(part(4, "b")),
        ChatPart::User(part(5, "c")),
    ];
    let chat = Chat { messages, prefill: Some(part(6, "It was ")), ..Chat::default() };
    let encoded = model.encode(&Prompt::Chat(chat.clone()), &params()).unwrap();
    let prompt = &serde_json::from_slice::<serde_json::Value>(encoded.body()).unwrap()["prompt"];
    let texts: Vec<&str> =
        prompt.as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!(texts.concat(), "Be kind.\n\na<|im_end|>\n\nCard\n\nb\n\nc\n\nIt was ");
    let parts: Vec<u32> = encoded.ranges().iter().map(|range| range.part.0).collect();
    assert_eq!(parts, [1, 2, 3, 4, 5, 6]);
    let run = send(&model, &encoded, Cancel::never()).await;
    assert_eq!(run.result.unwrap().status, 200);
    assert_eq!(model.encode(&Prompt::Chat(Chat::default()), &params()), Err(EncodeError::Empty));

    let notice = model.chat_notice().unwrap();
    assert!(notice.contains("raw text") && notice.contains("providers.local.base_url"), "{notice}");
    assert_eq!(known.chat_notice(), None);
    let other = model_with(&TINY.file().with("tokenizer.chat_template", "{{ 1 }}"));
    assert!(other.chat_notice().unwrap().contains("written as ChatML"));
}

#[test]
fn what_it_cannot_do_is_refused() {
    let model = model();
    let system_late = Chat {
        messages: vec![ChatPart::User(part(1, "a")), ChatPart::System(part(2, "b"))],
        ..Chat::default()
    };
    let refused = |prompt: &Prompt, params: &Params| model.encode(prompt, params).unwrap_err().code();
    assert_eq!(refused(&Prompt::Chat(system_late), &params()), "template_failed");
    assert_eq!(refused(&raw("a"), &Params { n: 2, ..params() }), "unsupported");
    assert_eq!(refused(&raw("a"), &Params { temperature: Some(f64::NAN), ..params() }), "bad_parameter");
    assert_eq!(refused(&raw("a"), &Params { top_p: Some(1.1), ..params() }), "bad_parameter");
    assert_eq!(model.encode(&Prompt::Raw(Vec::new()), &params()), Err(EncodeError::Empty));
}

#[tokio::test]
async fn an_answer_takes_the_way_of_wire_bytes() {
    let model = model();
    for stream in [true, false] {
        let asked = Params { stream, logprobs: Some(2), ..params() };
        let run = ask(&model, &raw("Once upon a time"), &asked).await;
        let response = run.result.unwrap();
        assert_eq!(
            (response.status, response.streamed, response.dialect),
            (200, stream, DialectName::Embedded)
        );
        assert_eq!(response.body, run.spool);
        let choice = &run.reply.choices[0];
        assert_eq!(choice.finish, Some(FinishReason::Length));
        assert_eq!(choice.logprobs.len(), 12);
        assert!(
            choice
                .logprobs
                .iter()
                .all(|token| token.top.len() == 2 && token.logprob == Some(token.top[0].logprob))
        );
        let read = reparse(response.dialect, &response.body, stream);
        assert_eq!((&read.choices, read.problem), (&run.reply.choices, None));
        assert_eq!(read.usage, run.reply.usage);
    }
}

#[tokio::test]
async fn stored_bytes_are_replayed_to_the_same_answer() {
    let model = model();
    let params = Params { temperature: Some(1.0), seed: Some(3), ..params() };
    let request = model.encode(&raw("Once upon a time"), &params).unwrap();
    let stored = EncodedRequest::new(
        request.dialect(),
        request.path(),
        request.body().clone(),
        request.ranges().to_vec(),
        request.stream(),
    );
    let first = send(&model, &request, Cancel::never()).await;
    let again = send(&model_of(TINY), &stored.unwrap(), Cancel::never()).await;
    assert!(!first.reply.choices[0].text().is_empty());
    assert_eq!(first.reply.choices, again.reply.choices);
}

#[tokio::test]
async fn siblings_read_their_prompt_once() {
    let model = model();
    let usage = |run: Run| run.reply.usage.unwrap();
    let first = usage(ask(&model, &raw("Once upon a time"), &params()).await);
    let second = usage(ask(&model, &raw("Once upon a time"), &params()).await);
    let whole = first.input_uncached;
    assert!(whole > 4);
    assert_eq!((first.cache_read, first.output), (0, 12));
    assert_eq!(second, TokenUsage { input_uncached: 1, cache_read: whole - 1, ..first });
}

#[tokio::test]
async fn a_prompt_beyond_the_window_is_an_error_by_name() {
    let model = model_of(Tiny { context: 64, ..TINY });
    let run = ask(&model, &raw(&"x".repeat(64)), &params()).await;
    let error = run.result.unwrap_err();
    assert_eq!(error.code(), "context_too_long");
}

#[tokio::test]
async fn cancelling_answers_at_once_and_the_next_request_is_served() {
    let model = model_of(Tiny { context: 4_096, ..TINY });
    let request = model.encode(&raw("x"), &Params { max_tokens: None, ..params() }).unwrap();
    let (handle, cancel) = Cancel::new();
    let mut spool = Vec::new();
    let mut begun = None;
    let mut listener = |event: ModelEvent| {
        if matches!(event, ModelEvent::Text { .. }) && begun.is_none() {
            begun = Some(Instant::now());
            handle.cancel();
        }
    };
    let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel, permit: None };
    let error = model.send(&request, &CallOrigin::new("main", Purpose::Turn), exchange).await.unwrap_err();
    assert!(matches!(error, ModelError::Cancelled { response: Some(_), .. }), "{error:?}");
    assert!(begun.unwrap().elapsed() < Duration::from_millis(100));
    let (handle, cancel) = Cancel::new();
    handle.cancel();
    let run = send(&model, &request, cancel).await;
    assert!(matches!(run.result, Err(ModelError::Cancelled { response: None, refused: false })));
    assert!(ask(&model, &raw("a"), &params()).await.result.is_ok());
}

#[tokio::test]
async fn a_body_of_another_dialect_is_refused() {
    let model = model();
    let foreign =
        EncodedRequest::new(DialectName::Embedded, "p", "{\"messages\":[]}".into(), Vec::new(), true)
            .unwrap();
    let run = send(&model, &foreign, Cancel::never()).await;
    assert!(matches!(run.result, Err(ModelError::Encode(EncodeError::Unsupported { .. }))));
}
