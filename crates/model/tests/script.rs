//! The script model, line by line of its contract.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;

use std::time::Duration;

use drawloom_model::Timeouts;
use drawloom_model::retry::RetryPolicy;
use drawloom_model::script::ScriptOptions;
use drawloom_model::{
    CallOrigin, Cancel, Chat, ChatPart, Choice, DialectName, Exchange, FinishReason, Model, ModelError,
    ModelEvent, Params, PartId, Prompt, Purpose, RawResponse, ScriptModel, SiblingSlot, SourceKind, TextPart,
    TokenUsage, reparse,
};
use folded::folded;
use tokio::time::Instant;

fn script(lines: &str) -> ScriptModel {
    let options = ScriptOptions { retry: RetryPolicy::never(), ..ScriptOptions::default() };
    ScriptModel::from_text("test.jsonl", lines, options).unwrap()
}

fn chat(texts: &[&str]) -> Prompt {
    let messages = texts
        .iter()
        .enumerate()
        .map(|(at, text)| ChatPart::User(TextPart::new(PartId(u32::try_from(at).unwrap()), *text)));
    Prompt::Chat(Chat { messages: messages.collect(), ..Chat::default() })
}

fn raw(text: &str) -> Prompt {
    Prompt::Raw(vec![TextPart::new(PartId(1), text)])
}

struct Run {
    result: Result<RawResponse, ModelError>,
    events: Vec<ModelEvent>,
    spool: Vec<u8>,
}

impl Run {
    fn choice(&self) -> Choice {
        folded(&self.events).choices.into_iter().next().unwrap_or_default()
    }

    fn code(&self) -> &'static str {
        self.result.as_ref().map_or_else(ModelError::code, |_| "ok")
    }
}

async fn send(model: &ScriptModel, prompt: &Prompt, params: &Params, call: &CallOrigin) -> Run {
    let request = model.encode(prompt, params).unwrap();
    let (mut spool, mut events) = (Vec::new(), Vec::new());
    let mut listener = |event| events.push(event);
    let exchange =
        Exchange { spool: &mut spool, listener: &mut listener, cancel: Cancel::never(), permit: None };
    let result = model.send(&request, call, exchange).await;
    Run { result, events, spool }
}

async fn say(model: &ScriptModel, call: &CallOrigin) -> Run {
    send(model, &chat(&["Hi"]), &Params::default(), call).await
}

async fn text(model: &ScriptModel, call: &CallOrigin) -> String {
    let run = say(model, call).await;
    if run.result.is_ok() { run.choice().text().into_owned() } else { run.code().to_owned() }
}

fn turn() -> CallOrigin {
    CallOrigin::new("main", Purpose::Turn)
}

#[tokio::test]
async fn a_line_is_answered_over_real_wire_bytes() {
    let line = r#"{"thinking":"hm","deltas":["Let me ","look."],"tool_calls":[{"name":"read","arguments":{"path":"ä"}},{"name":"ls","arguments":"{}"}],"usage":{"input":7,"cached":100,"output":5}}"#;
    for stream in [true, false] {
        let params = Params { stream, ..Params::default() };
        let run = send(&script(line), &chat(&["Hi"]), &params, &turn()).await;
        let response = run.result.as_ref().unwrap();
        assert_eq!((response.source, response.streamed), (SourceKind::Script, stream));
        assert_eq!(response.body, run.spool);
        let choice = run.choice();
        assert_eq!((&*choice.thinking(), &*choice.text()), ("hm", "Let me look."));
        assert_eq!(choice.finish, Some(FinishReason::ToolUse));
        let asked = choice.tool_calls();
        let calls: Vec<_> = asked.iter().map(|c| (c.name.as_str(), c.arguments.as_str())).collect();
        assert_eq!(calls, [("read", r#"{"path":"ä"}"#), ("ls", "{}")]);
        assert_ne!(choice.tool_calls()[0].id, choice.tool_calls()[1].id);
        let usage =
            TokenUsage { input_uncached: 7, cache_read: 100, cache_write: 0, output: 5, reasoning: 0 };
        assert_eq!(folded(&run.events).usage, Some(usage));
        let read = reparse(DialectName::OpenAiChat, &response.body, stream);
        assert_eq!((read.choices, read.problem), (vec![choice], None));
    }
}

#[tokio::test]
async fn a_document_is_continued_in_the_form_of_completions() {
    let model = script(r#"{"text":" upon a time","finish":"length"}"#);
    let run = send(&model, &raw("Once"), &Params::default(), &turn()).await;
    assert_eq!(run.result.as_ref().unwrap().dialect, DialectName::OpenAiCompletions);
    let choice = run.choice();
    assert_eq!((&*choice.text(), choice.finish.clone()), (" upon a time", Some(FinishReason::Length)));
}

#[tokio::test]
async fn each_kind_of_call_takes_the_next_line_of_its_own() {
    let model = script(
        "{\"text\":\"t1\"}\n\n{\"for\":\"observe\",\"text\":\"o1\"}\n{\"for\":\"turn\",\"text\":\"t2\"}\n{\"for\":\"wrap\",\"text\":\"w1\"}\n",
    );
    let observe = CallOrigin::new("main", Purpose::Observe);
    assert_eq!(text(&model, &turn()).await, "t1");
    assert_eq!(text(&model, &turn()).await, "t2");
    assert_eq!(text(&model, &observe).await, "o1");
    assert_eq!(text(&model, &observe).await, "script_exhausted");
    assert_eq!(text(&model, &turn()).await, "script_exhausted");
    assert_eq!(text(&model, &CallOrigin::new("main", Purpose::Route)).await, "script_exhausted");
    assert_eq!(text(&model, &CallOrigin::new("main", Purpose::Wrap)).await, "w1");
}

#[tokio::test]
async fn counting_runs_per_session_and_starts_anew_with_every_model() {
    let lines = "{\"text\":\"1\"}\n{\"text\":\"2\"}";
    let model = script(lines);
    assert_eq!(text(&model, &turn()).await, "1");
    assert_eq!(text(&model, &CallOrigin::new("other", Purpose::Turn)).await, "1");
    assert_eq!(text(&model, &turn()).await, "2");
    assert_eq!(text(&script(lines), &turn()).await, "1");
}

#[tokio::test]
async fn a_subagent_takes_the_lines_of_its_label_else_those_without_one() {
    let lines = [
        r#"{"text":"turn"}"#,
        r#"{"for":"subagent","text":"any 1"}"#,
        r#"{"for":"subagent","label":"tests","text":"tests 1"}"#,
        r#"{"for":"subagent","text":"any 2"}"#,
        r#"{"for":"subagent","label":"tests","text":"tests 2"}"#,
    ];
    let model = script(&lines.join("\n"));
    let of = |session: &str, label: &str| CallOrigin {
        label: Some(label.to_owned()),
        ..CallOrigin::new(session, Purpose::Subagent)
    };
    for said in ["tests 1", "tests 2", "script_exhausted"] {
        assert_eq!(text(&model, &of("a", "tests")).await, said);
    }
    for said in ["any 1", "any 2"] {
        assert_eq!(text(&model, &of("b", "docs")).await, said);
    }
    assert_eq!(text(&model, &of("c", "tests")).await, "tests 1", "each session counts for itself");
    assert_eq!(text(&model, &turn()).await, "turn");
    let wrong = ScriptModel::from_text("x", r#"{"label":"tests","text":"1"}"#, ScriptOptions::default());
    assert!(wrong.unwrap_err().to_string().contains("names a subagent"));
}

#[tokio::test]
async fn a_looping_script_begins_again_after_its_last_line() {
    let model =
        script("{\"text\":\"1\"}\n{\"for\":\"observe\",\"text\":\"o\"}\n{\"text\":\"2\",\"loop\":true}");
    let mut said = Vec::new();
    for _ in 0..5 {
        said.push(text(&model, &turn()).await);
    }
    assert_eq!(said, ["1", "2", "1", "2", "1"]);
}

#[tokio::test]
async fn siblings_take_lines_in_their_order_however_they_are_run() {
    let model =
        script("{\"text\":\"0\"}\n{\"text\":\"1\"}\n{\"text\":\"2\"}\n{\"text\":\"3\"}\n{\"text\":\"4\"}");
    let sibling = |of: &str, index, count| CallOrigin {
        sibling: Some(SiblingSlot { turn: of.to_owned(), index, count }),
        ..turn()
    };
    assert_eq!(text(&model, &turn()).await, "0");
    assert_eq!(text(&model, &sibling("g", 2, 3)).await, "3");
    assert_eq!(text(&model, &turn()).await, "4");
    assert_eq!(text(&model, &sibling("g", 0, 3)).await, "1");
    assert_eq!(text(&model, &sibling("g", 1, 3)).await, "2");
    assert_eq!(text(&model, &sibling("h", 0, 2)).await, "script_exhausted");
}

#[tokio::test]
async fn expected_texts_must_stand_in_the_plain_text_of_the_parts() {
    let lines = r#"{"text":"ok","expect":["say \"hi\"\nto me","二"],"loop":true}"#;
    let model = script(lines);
    let run = send(&model, &chat(&["Please say \"hi\"\nto me", "二つ"]), &Params::default(), &turn()).await;
    assert_eq!(run.code(), "ok");
    let run = send(&model, &chat(&["Please say \"ho\"", "二つ"]), &Params::default(), &turn()).await;
    let error = run.result.unwrap_err();
    assert_eq!(error.code(), "expect_failed");
    assert_eq!(
        error.to_string(),
        "test.jsonl:1: the request does not hold what is expected: \
         after `say \"h` comes `o\"\n二つ`, not `i\"\nto me`"
    );
    let json = script(r#"{"text":"ok","expect":"\"role\":\"user\""}"#);
    assert_eq!(text(&json, &turn()).await, "expect_failed", "the JSON around the parts does not count");
}

#[tokio::test]
async fn every_fault_fails_in_its_own_way_and_keeps_the_text_before_it() {
    for (fault, code, kept) in [
        ("cut", "stream_cut", "Some text"),
        ("garbage", "garbage", "Some text"),
        ("429", "rate_limited", ""),
        ("500", "server_unavailable", ""),
        ("context_too_long", "context_too_long", ""),
    ] {
        let model = script(&format!("{{\"deltas\":[\"Some \",\"text\"],\"fault\":\"{fault}\"}}"));
        let run = say(&model, &turn()).await;
        assert_eq!((run.code(), &*run.choice().text()), (code, kept), "{fault}");
        let response = run.result.as_ref().unwrap_err().response().unwrap();
        assert_eq!(response.body, run.spool, "{fault}");
    }
}

#[tokio::test]
async fn faults_in_a_whole_body_fail_alike() {
    for (fault, code) in [("cut", "stream_cut"), ("garbage", "garbage"), ("429", "rate_limited")] {
        let model = script(&format!("{{\"text\":\"Some text\",\"fault\":\"{fault}\"}}"));
        let params = Params { stream: false, ..Params::default() };
        assert_eq!(send(&model, &chat(&["Hi"]), &params, &turn()).await.code(), code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_answer_meets_the_idle_timeout() {
    let started = Instant::now();
    let run = say(&script(r#"{"text":"Some text","fault":"hang"}"#), &turn()).await;
    assert_eq!((run.code(), &*run.choice().text()), ("idle_timeout", "Some text"));
    assert_eq!(started.elapsed().as_secs(), Timeouts::default().idle.as_secs());
}

#[tokio::test(start_paused = true)]
async fn delays_come_before_the_answer_and_between_its_deltas() {
    let run = say(&script(r#"{"deltas":["a","b","c"],"delay_ms":500,"delta_delay_ms":20}"#), &turn()).await;
    let timings = run.result.unwrap().timings;
    assert!((500..510).contains(&timings.first_byte_ms.unwrap()), "{timings:?}");
    assert!((560..580).contains(&timings.total_ms), "{timings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_can_be_cancelled_at_any_time_without_delay() {
    let model = script(r#"{"deltas":["a","b"],"delta_delay_ms":40000}"#);
    let request = model.encode(&chat(&["Hi"]), &Params::default()).unwrap();
    let (handle, cancel) = Cancel::new();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(50)).await;
        handle.cancel();
    });
    let (mut spool, mut listener) = (Vec::new(), |_| {});
    let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel, permit: None };
    let started = Instant::now();
    let error = model.send(&request, &turn(), exchange).await.unwrap_err();
    assert_eq!(error.code(), "cancelled");
    assert!(started.elapsed() < Duration::from_secs(50) + Duration::from_millis(100));
    let read = reparse(DialectName::OpenAiChat, &error.response().unwrap().body, true);
    assert_eq!(read.choices[0].text(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_call_takes_the_next_line_and_a_spent_script_gives_its_last_fault() {
    let with_retries =
        |lines: &str| ScriptModel::from_text("test.jsonl", lines, ScriptOptions::default()).unwrap();
    let model = with_retries("{\"fault\":\"429\"}\n{\"fault\":\"cut\"}\n{\"text\":\"at last\"}");
    let run = say(&model, &turn()).await;
    assert_eq!((&*run.choice().text(), run.result.as_ref().unwrap().attempt), ("at last", 3));
    let model = with_retries("{\"fault\":\"429\"}");
    assert_eq!(text(&model, &turn()).await, "rate_limited");
    let model = with_retries("{\"text\":\"used\",\"fault\":\"cut\"}\n{\"text\":\"next\"}");
    assert_eq!(text(&model, &turn()).await, "stream_cut", "text was used: nothing is repeated");
    assert_eq!(text(&model, &turn()).await, "next");
}

#[tokio::test]
async fn an_empty_answer_is_complete_and_without_text() {
    let run = say(&script("{}"), &turn()).await;
    assert_eq!((run.code(), &*run.choice().text()), ("ok", ""));
    assert_eq!(run.choice().finish, Some(FinishReason::Stop));
    assert_eq!(folded(&run.events).usage, None, "unknown, not 0");
}

#[tokio::test]
async fn the_echo_says_the_last_user_text_and_counts_after_a_document() {
    let model = ScriptModel::open("echo", ScriptOptions::default()).unwrap();
    let messages = vec![
        ChatPart::User(TextPart::new(PartId(1), "first")),
        ChatPart::Assistant(TextPart::new(PartId(2), "answer")),
        ChatPart::User(TextPart::new(PartId(3), "second \"two\"")),
        ChatPart::Injected(TextPart::new(PartId(4), "a card")),
    ];
    let prompt = Prompt::Chat(Chat { messages, ..Chat::default() });
    let run = send(&model, &prompt, &Params::default(), &turn()).await;
    assert_eq!(run.choice().text(), "second \"two\"");
    for index in 0..3 {
        let sibling = Some(SiblingSlot { turn: "g".to_owned(), index, count: 3 });
        let run = send(&model, &raw("Once"), &Params::default(), &CallOrigin { sibling, ..turn() }).await;
        assert_eq!(run.choice().text(), format!(" echo {}", index + 1));
    }
    let background = say(&model, &CallOrigin::new("main", Purpose::Observe)).await;
    assert_eq!(background.code(), "script_exhausted");
}

#[tokio::test]
async fn tool_call_ids_differ_as_a_conversation_grows_and_repeat_when_it_is_played_again() {
    let lines = r#"{"tool_calls":[{"name":"ls","arguments":{}}],"loop":true}"#;
    let id = async |model: &ScriptModel, texts: &[&str]| {
        let run = send(model, &chat(texts), &Params::default(), &turn()).await;
        run.choice().tool_calls()[0].id.clone()
    };
    let model = script(lines);
    let (first, second) = (id(&model, &["a"]).await, id(&model, &["a", "b"]).await);
    assert_ne!(first, second);
    assert_eq!(id(&script(lines), &["a"]).await, first);
}

#[test]
fn a_malformed_line_is_named_by_file_and_number() {
    for line in [
        "not json",
        r#"{"txt":"typo"}"#,
        r#"{"for":"dream"}"#,
        r#"{"fault":"flood"}"#,
        r#"{"finish":"bored"}"#,
        r#"{"text":"a","deltas":["b"]}"#,
        r#"{"tool_calls":[{"arguments":{}}]}"#,
        r#"{"delay_ms":-1}"#,
        "[]",
    ] {
        let lines = format!("{{\"text\":\"fine\"}}\n\n{line}\n");
        let error = ScriptModel::from_text("test.jsonl", &lines, ScriptOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with("test.jsonl:3: "), "{error}");
        assert_eq!(error.code(), "script_malformed");
    }
}

#[test]
fn a_script_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let open = || ScriptModel::open(path.to_str().unwrap(), ScriptOptions::default());
    assert_eq!(open().unwrap_err().code(), "script_unreadable");
    std::fs::write(&path, "\n").unwrap();
    assert_eq!(open().unwrap_err().code(), "script_empty");
    std::fs::write(&path, "{\"text\":\"hello\"}\r\n").unwrap();
    let model = open().unwrap();
    assert_eq!((model.info().provider.as_str(), model.info().name.as_str()), ("script", "talk.jsonl"));
}
