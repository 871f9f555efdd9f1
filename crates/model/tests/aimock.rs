//! Every HTTP dialect against a mock server that others wrote (npm `@copilotkit/aimock`), faults included.
//!
//! `DRAWLOOM_AIMOCK` names its command-line script, as `…/node_modules/@copilotkit/aimock/dist/cli.js`; Node runs
//! it. These tests are ignored where it is not there; CI installs it and runs them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use drawloom_model::dialect::FailureKind;
use drawloom_model::http_model::HttpModel;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::retry::RetryPolicy;
use drawloom_model::{
    ApiKey, CallOrigin, Cancel, Chat, ChatPart, Choice, Connection, DialectName, Exchange, FinishReason,
    Model, ModelError, ModelEvent, ModelInfo, Params, PartId, Prompt, Purpose, Quirks, Reply, TextPart,
    ToolExchange, ToolResult, ToolSchema,
};
use folded::folded;

const DIALECTS: [DialectName; 4] = [
    DialectName::OpenAiChat,
    DialectName::OpenAiResponses,
    DialectName::AnthropicMessages,
    DialectName::Gemini,
];

/// The mock, for as long as it lives.
struct Mock {
    process: Child,
    url: String,
}

impl Mock {
    fn start() -> Self {
        let script =
            std::env::var_os("DRAWLOOM_AIMOCK").unwrap_or_else(|| panic!("DRAWLOOM_AIMOCK names no script"));
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/aimock.json");
        let mut process = Command::new("node")
            .arg(script)
            .args(["--port", "0", "--strict", "--log-level", "info", "--fixtures", fixtures])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url =
            lines.map(Result::unwrap).find_map(|line| Some(line.split_once("listening on ")?.1.to_owned()));
        Self { process, url: url.unwrap_or_else(|| panic!("it ended before it listened")) }
    }

    fn model(&self, dialect: DialectName) -> HttpModel {
        let (name, base) = match dialect {
            DialectName::AnthropicMessages => ("claude-sonnet-4-5", format!("{}/v1", self.url)),
            DialectName::Gemini => ("gemini-2.5-flash", format!("{}/v1beta", self.url)),
            _ => ("gpt-5-mini", format!("{}/v1", self.url)),
        };
        let local = ModelInfo::local("mock", name, 32_768, 4_096);
        let info = ModelInfo { dialect, tools: true, ..local };
        let connection = Connection {
            key: Some(ApiKey::new("test-key")),
            retry: RetryPolicy::never(),
            ..Connection::new(base)
        };
        HttpModel::new(info, Quirks::default(), connection).unwrap()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn text(id: u32, text: &str) -> TextPart {
    TextPart::new(PartId(id), text)
}

fn weather_tool() -> ToolSchema {
    ToolSchema {
        id: PartId(100),
        name: "get_weather".to_owned(),
        description: "Tells the weather of a city.".to_owned(),
        parameters: serde_json::json!({
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]
        }),
    }
}

fn asking(question: &str) -> Chat {
    Chat {
        messages: vec![ChatPart::System(text(1, "Be brief.")), ChatPart::User(text(2, question))],
        stable: 1,
        ..Chat::default()
    }
}

async fn send(
    mock: &Mock,
    dialect: DialectName,
    chat: Chat,
    stream: bool,
) -> (Reply, Result<(), ModelError>) {
    let model = mock.model(dialect);
    let params = Params { stream, max_tokens: Some(256), ..Params::default() };
    let request = model.encode(&Prompt::Chat(chat), &params).unwrap();
    let (mut spool, mut events) = (Vec::new(), Vec::new());
    let mut listener = |event: ModelEvent| events.push(event);
    let exchange =
        Exchange { spool: &mut spool, listener: &mut listener, cancel: Cancel::never(), permit: None };
    let sent = model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await;
    if let Ok(response) = &sent {
        assert_eq!(response.body.as_ref(), spool.as_slice(), "every byte is in the spool");
    }
    (folded(&events), sent.map(drop))
}

async fn answer(mock: &Mock, dialect: DialectName, chat: Chat, stream: bool) -> Choice {
    let (mut reply, end) = send(mock, dialect, chat, stream).await;
    end.unwrap_or_else(|error| panic!("{dialect}, streamed {stream}: {error}"));
    assert_eq!(reply.choices.len(), 1, "{dialect}");
    reply.choices.remove(0)
}

#[tokio::test]
#[ignore = "needs aimock: DRAWLOOM_AIMOCK"]
async fn text_comes_in_every_dialect_streamed_and_whole() {
    let mock = Mock::start();
    for dialect in DIALECTS {
        for stream in [true, false] {
            let choice = answer(&mock, dialect, asking("hello"), stream).await;
            assert_eq!(choice.text(), "Guten Tag, 中文 😀!", "{dialect}, streamed {stream}");
            assert_eq!(choice.finish, Some(FinishReason::Stop), "{dialect}, streamed {stream}");
        }
    }
}

#[tokio::test]
#[ignore = "needs aimock: DRAWLOOM_AIMOCK"]
async fn parallel_tool_calls_and_their_results_make_a_round() {
    let mock = Mock::start();
    for dialect in DIALECTS {
        for stream in [true, false] {
            let asked = Chat { tools: vec![weather_tool()], ..asking("weather in Oslo and Rome") };
            let choice = answer(&mock, dialect, asked.clone(), stream).await;
            let calls = choice.tool_calls();
            let arguments: Vec<serde_json::Value> =
                calls.iter().map(|call| serde_json::from_str(&call.arguments).unwrap()).collect();
            assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["get_weather"; 2]);
            assert_eq!(arguments, [serde_json::json!({"city": "Oslo"}), serde_json::json!({"city": "Rome"})]);
            assert_eq!(choice.finish, Some(FinishReason::ToolUse), "{dialect}, streamed {stream}");
            let round = calls.into_iter().zip(10..).map(|(call, id)| ToolExchange {
                before: Vec::new(),
                call_part: PartId(id * 2),
                call,
                result_part: PartId(id * 2 + 1),
                result: ToolResult { status: ToolStatus::Ok, text: "rain".to_owned(), media: Vec::new() },
            });
            let mut answered = asked;
            answered.messages.push(ChatPart::Assistant(text(3, &choice.text())));
            answered.messages.push(ChatPart::ToolRound(round.collect()));
            let choice = answer(&mock, dialect, answered, stream).await;
            assert_eq!(choice.text(), "Rain in both.", "{dialect}, streamed {stream}");
        }
    }
}

#[tokio::test]
#[ignore = "needs aimock: DRAWLOOM_AIMOCK"]
async fn thinking_is_kept_apart_from_the_answer() {
    let mock = Mock::start();
    for dialect in DIALECTS {
        let choice = answer(&mock, dialect, asking("please think"), true).await;
        assert_eq!((&*choice.thinking(), &*choice.text()), ("Two and two.", "Four."), "{dialect}");
    }
}

#[tokio::test]
#[ignore = "needs aimock: DRAWLOOM_AIMOCK"]
async fn failures_have_their_kinds() {
    let mock = Mock::start();
    for dialect in DIALECTS {
        for (question, kind) in
            [("slow down", FailureKind::RateLimited), ("overloaded", FailureKind::Unavailable)]
        {
            let (_, end) = send(&mock, dialect, asking(question), true).await;
            let Err(ModelError::Server { failure, .. }) = end else {
                panic!("{dialect}, {question}: {end:?}")
            };
            assert_eq!(failure.kind, kind, "{dialect}, {question}");
        }
    }
}

#[tokio::test]
#[ignore = "needs aimock: DRAWLOOM_AIMOCK"]
async fn an_answer_that_breaks_off_keeps_what_came() {
    let mock = Mock::start();
    for dialect in DIALECTS {
        let (reply, end) = send(&mock, dialect, asking("broken"), true).await;
        assert!(matches!(end, Err(ModelError::Cut { .. })), "{dialect}: {end:?}");
        let came = reply.choices.first().map(Choice::text).unwrap_or_default();
        assert!("This is cut in the middle, long before".starts_with(&*came), "{dialect}: {came}");
    }
}

#[tokio::test]
#[ignore = "needs aimock: DRAWLOOM_AIMOCK"]
async fn garbage_and_hung_up_connections_are_named() {
    let mock = Mock::start();
    for dialect in DIALECTS {
        let (_, end) = send(&mock, dialect, asking("garbage"), true).await;
        assert!(
            matches!(end, Err(ModelError::Garbage { .. } | ModelError::Cut { .. })),
            "{dialect}: {end:?}"
        );
        let (_, end) = send(&mock, dialect, asking("hang up"), true).await;
        assert!(matches!(end, Err(ModelError::Cut { .. })), "{dialect}: {end:?}");
    }
}
