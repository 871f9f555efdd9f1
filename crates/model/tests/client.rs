//! The client against servers on real sockets: good ones, slow ones and broken ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/folded.rs"]
mod folded;
#[path = "support/server.rs"]
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use drawloom_model::retry::RetryPolicy;
use drawloom_model::{
    ApiKey, CallOrigin, Cancel, Chat, ChatPart, Clock, Connection, DialectName, Exchange, HttpModel, Model,
    ModelError, ModelEvent, ModelInfo, Params, PartId, Prompt, Purpose, Quirks, RawResponse, ResponseSink,
    SendPermit, SourceKind, TextPart, Timeouts, reparse,
};
use folded::folded;
use server::{Reply, Server, response, stream, whole_stream};

const HELLO: &str = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n";
const WORLD: &str = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" world\"},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const BUSY: &str = "{\"error\":{\"message\":\"busy\",\"type\":\"overloaded\"}}";

fn info() -> ModelInfo {
    ModelInfo {
        honours_n: true,
        logprobs: true,
        tools: true,
        structured: true,
        ..ModelInfo::local("test", "m", 8192, 1024)
    }
}

fn connection(url: &str) -> Connection {
    Connection {
        key: Some(ApiKey::new("sk-canary")),
        retry: RetryPolicy { jitter: Arc::new(|| 1.0), ..RetryPolicy::quick() },
        clock: Clock::new(|| 1_784_111_777_000),
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(20),
            idle: Duration::from_secs(20),
        },
        ..Connection::new(url)
    }
}

/// What one request left behind.
struct Run {
    result: Result<RawResponse, ModelError>,
    events: Vec<ModelEvent>,
    spool: Vec<u8>,
}

impl Run {
    fn text(&self) -> String {
        folded(&self.events).choices.first().map(|choice| choice.text().into_owned()).unwrap_or_default()
    }

    fn error(&self) -> &ModelError {
        self.result.as_ref().unwrap_err()
    }
}

async fn ask(connection: Connection, stream: bool) -> Run {
    let model = HttpModel::new(info(), Quirks::default(), connection).unwrap();
    let messages = vec![ChatPart::User(TextPart::new(PartId(1), "Hi"))];
    let prompt = Prompt::Chat(Chat { messages, ..Chat::default() });
    let request = model.encode(&prompt, &Params { stream, ..Params::default() }).unwrap();
    let (mut spool, mut events) = (Vec::new(), Vec::new());
    let mut listener = |event| events.push(event);
    let exchange =
        Exchange { spool: &mut spool, listener: &mut listener, cancel: Cancel::never(), permit: None };
    let result = model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await;
    Run { result, events, spool }
}

async fn ask_server(replies: Vec<Reply>) -> (Run, Server) {
    let server = Server::start(replies).await;
    (ask(connection(&server.url), true).await, server)
}

#[tokio::test]
async fn a_stream_is_kept_as_received() {
    let (run, server) = ask_server(vec![Reply::Send(whole_stream(&[HELLO, WORLD, DONE]))]).await;
    assert_eq!(run.text(), "Hello world");
    let wire = [HELLO, WORLD, DONE].concat();
    let response = run.result.unwrap();
    assert_eq!(response.body, wire.as_bytes());
    assert_eq!(run.spool, wire.as_bytes());
    assert!(response.streamed);
    assert_eq!((response.status, response.attempt, response.source), (200, 1, SourceKind::Local));
    assert_eq!(response.timings.started_at, 1_784_111_777_000);
    assert!(response.timings.first_byte_ms.unwrap() <= response.timings.total_ms);
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer sk-canary\r\n"), "{request}");
    assert_eq!(request.matches("canary").count(), 1, "the key is in one header only");
}

#[tokio::test]
async fn a_whole_body_is_read_although_a_stream_was_asked_for() {
    let body = r#"{"id":"1","choices":[{"index":0,"message":{"content":"Hi."},"finish_reason":"stop"}]}"#;
    let reply = response("200 OK", "Content-Type: application/json\r\nSet-Cookie: a=canary\r\n", body);
    let (run, _server) = ask_server(vec![Reply::Send(reply)]).await;
    assert_eq!(run.text(), "Hi.");
    let response = run.result.unwrap();
    assert!(!response.streamed);
    assert_eq!(response.removed_headers, ["set-cookie"]);
    assert!(response.headers.contains(&("content-type".to_owned(), "application/json".to_owned())));
    assert!(!format!("{response:?}").contains("canary"));
}

#[tokio::test]
async fn an_answer_is_done_when_it_says_so_even_if_the_connection_stays_open() {
    let (run, _server) = ask_server(vec![Reply::SendAndHang(stream(&[HELLO, WORLD, DONE]))]).await;
    assert_eq!(run.text(), "Hello world");
    assert!(run.result.is_ok());
}

#[tokio::test]
async fn a_refused_connection_is_told_as_such_and_repeated() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let run = ask(connection(&url), true).await;
    assert_eq!(run.error().code(), "connection_refused");
    assert!(run.error().is_transient());
}

#[tokio::test]
async fn a_server_that_never_answers_meets_the_first_byte_timeout() {
    for head in [Vec::new(), stream(&[])] {
        let server = Server::start(vec![Reply::SendAndHang(head)]).await;
        let mut connection = connection(&server.url);
        connection.timeouts.first_byte = Duration::from_millis(50);
        let run = ask(connection, true).await;
        assert_eq!(run.error().code(), "first_byte_timeout");
        assert_eq!(server.requests().len(), 1, "slowness is not repeated");
    }
}

#[tokio::test]
async fn a_stream_that_stands_still_keeps_what_came() {
    let server = Server::start(vec![Reply::SendAndHang(stream(&[HELLO]))]).await;
    let mut connection = connection(&server.url);
    connection.timeouts.idle = Duration::from_millis(50);
    let run = ask(connection, true).await;
    assert_eq!(run.error().code(), "idle_timeout");
    assert_eq!(run.text(), "Hello");
    assert_eq!(run.error().response().unwrap().body, HELLO.as_bytes());
}

#[tokio::test]
async fn a_stream_that_dies_keeps_what_came_and_is_not_repeated() {
    let (run, server) = ask_server(vec![Reply::Send(stream(&[HELLO]))]).await;
    assert_eq!(run.error().code(), "stream_cut");
    assert_eq!(run.text(), "Hello");
    assert_eq!(run.error().response().unwrap().body, HELLO.as_bytes());
    assert_eq!(run.spool, HELLO.as_bytes());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn wherever_a_stream_dies_its_events_are_those_of_the_stored_body() {
    let wire = [HELLO, WORLD, DONE].concat();
    for cut in (1..wire.len()).step_by(7).chain([HELLO.len() - 1, HELLO.len() - 2, wire.len()]) {
        let server = Server::start(vec![Reply::Send(stream(&[&wire[..cut]]))]).await;
        let run = ask(Connection { retry: RetryPolicy::never(), ..connection(&server.url) }, true).await;
        let body = match &run.result {
            Ok(response) => response.body.clone(),
            Err(error) => error.response().unwrap().body.clone(),
        };
        assert_eq!(body, &wire.as_bytes()[..cut]);
        let read = reparse(DialectName::OpenAiChat, &body, true);
        assert_eq!(read.choices, folded(&run.events).choices, "cut at {cut}");
        assert_eq!(read.problem.is_none(), run.result.is_ok(), "cut at {cut}");
    }
}

#[tokio::test]
async fn a_stream_that_dies_before_any_output_is_repeated_and_the_spool_starts_over() {
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let good = whole_stream(&[HELLO, WORLD, DONE]);
    let (run, server) = ask_server(vec![Reply::Send(stream(&[role])), Reply::Send(good)]).await;
    assert_eq!(run.text(), "Hello world");
    assert_eq!(run.spool, [HELLO, WORLD, DONE].concat().as_bytes());
    assert_eq!(run.result.unwrap().attempt, 2);
    assert_eq!(server.requests()[0], server.requests()[1]);
}

#[tokio::test]
async fn garbage_is_an_error_with_the_bytes() {
    let page = response("200 OK", "content-type: text/html\r\n", "<html>hotel wifi</html>");
    let (run, server) = ask_server(vec![Reply::Send(page)]).await;
    assert_eq!(run.error().code(), "garbage");
    assert!(run.error().to_string().contains("hotel wifi"));
    assert_eq!(run.error().response().unwrap().body, "<html>hotel wifi</html>");
    assert_eq!(server.requests().len(), 1, "garbage is not repeated");
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let busy = |status: &str| Reply::Send(response(status, "retry-after: 0\r\n", BUSY));
    let good = Reply::Send(whole_stream(&[HELLO, WORLD, DONE]));
    let (run, server) =
        ask_server(vec![busy("429 Too Many Requests"), busy("503 Service Unavailable"), good]).await;
    assert_eq!(run.text(), "Hello world");
    assert_eq!(run.result.unwrap().attempt, 3);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn patience_ends_after_two_repetitions_and_the_servers_words_remain() {
    let busy = Reply::Send(response("500 Oops", "", BUSY));
    let (run, server) = ask_server(vec![busy; 4]).await;
    assert_eq!(run.error().code(), "server_unavailable");
    assert_eq!(run.error().to_string(), "the server answered 500: busy");
    assert_eq!(run.error().response().unwrap().body, BUSY);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_server_that_asks_for_an_hour_is_believed() {
    let headers = ["retry-after: 3600\r\n", "retry-after: Thu, 15 Jul 2027 10:00:00 GMT\r\n"];
    for headers in headers {
        let (run, server) = ask_server(vec![Reply::Send(response("429 Slow", headers, BUSY))]).await;
        assert_eq!(run.error().code(), "rate_limited");
        assert!(run.error().retry_after().unwrap() >= Duration::from_secs(3600), "{headers}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_wrong_key_is_not_repeated_in_any_message() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-canary.","code":"invalid_api_key"}}"#;
    let (run, server) = ask_server(vec![Reply::Send(response("401 No", "", body))]).await;
    assert_eq!(run.error().code(), "unauthorized");
    assert_eq!(
        run.error().to_string(),
        "the server answered 401: Incorrect API key provided: ⟦secret:api_key⟧."
    );
    assert_eq!(server.requests().len(), 1);
    assert!(!format!("{:?}", connection("http://localhost")).contains("canary"));
}

#[tokio::test]
async fn a_full_window_is_recognised() {
    let body = r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#;
    let (run, _server) = ask_server(vec![Reply::Send(response("400 Bad", "", body))]).await;
    assert_eq!(run.error().code(), "context_too_long");
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let elsewhere = Server::start(vec![Reply::Send(whole_stream(&[HELLO, WORLD, DONE]))]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.url);
    let (run, _server) = ask_server(vec![Reply::Send(response("307 Moved", &location, ""))]).await;
    assert_eq!(run.error().code(), "request_rejected");
    assert!(elsewhere.requests().is_empty(), "neither text nor key went there");
}

#[tokio::test]
async fn a_redirect_on_the_same_host_is_followed() {
    let moved = response("307 Moved", "location: /v1/other\r\n", "");
    let good = Reply::Send(whole_stream(&[HELLO, WORLD, DONE]));
    let (run, server) = ask_server(vec![Reply::Send(moved), good]).await;
    assert_eq!(run.text(), "Hello world");
    assert!(server.requests()[1].starts_with("POST /v1/other "));
}

/// A permit that is what it says.
struct Permit(bool);

#[async_trait::async_trait]
impl SendPermit for Permit {
    async fn is_granted(&self) -> bool {
        self.0
    }
}

#[tokio::test]
async fn what_may_not_be_sent_any_more_is_not_repeated() {
    for is_granted in [true, false] {
        let busy = Reply::Send(response("503 Busy", "retry-after: 0\r\n", BUSY));
        let server = Server::start(vec![busy, Reply::Send(whole_stream(&[HELLO, WORLD, DONE]))]).await;
        let model = HttpModel::new(info(), Quirks::default(), connection(&server.url)).unwrap();
        let prompt = Prompt::Raw(vec![TextPart::new(PartId(1), "Once")]);
        let request = model.encode(&prompt, &Params { stream: true, ..Params::default() }).unwrap();
        let (mut spool, mut listener, permit) = (Vec::new(), |_| {}, Permit(is_granted));
        let (cancel, permit) = (Cancel::never(), Some(&permit as &dyn SendPermit));
        let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel, permit };
        let sent = model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await;
        assert_eq!(server.requests().len(), if is_granted { 2 } else { 1 }, "{sent:?}");
        match sent {
            Ok(_) => assert!(is_granted),
            Err(error) => {
                assert_eq!((is_granted, error.code()), (false, "withdrawn"));
                assert_eq!(error.response().unwrap().body, BUSY, "what came is kept");
            }
        }
    }
}

#[tokio::test]
async fn cancelling_returns_at_once_with_what_came() {
    let server = Server::start(vec![Reply::SendAndHang(stream(&[HELLO]))]).await;
    let model = HttpModel::new(info(), Quirks::default(), connection(&server.url)).unwrap();
    let prompt = Prompt::Raw(vec![TextPart::new(PartId(1), "Once")]);
    let request = model.encode(&prompt, &Params::default()).unwrap();
    let (handle, cancel) = Cancel::new();
    let mut spool = Vec::new();
    let mut cancelled_at = None;
    let mut listener = |event| {
        if matches!(event, ModelEvent::Start { .. }) {
            handle.cancel();
            cancelled_at = Some(Instant::now());
        }
    };
    let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel, permit: None };
    let error = model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await.unwrap_err();
    assert!(cancelled_at.unwrap().elapsed() < Duration::from_millis(100));
    assert_eq!(error.code(), "cancelled");
    assert_eq!(error.response().unwrap().body, HELLO.as_bytes());
    assert!(server.requests()[0].starts_with("POST /v1/completions "), "raw text goes there");
}

#[tokio::test]
async fn a_request_cancelled_before_it_began_is_not_sent() {
    let server = Server::start(vec![]).await;
    let model = HttpModel::new(info(), Quirks::default(), connection(&server.url)).unwrap();
    let prompt = Prompt::Raw(vec![TextPart::new(PartId(1), "Once")]);
    let request = model.encode(&prompt, &Params::default()).unwrap();
    let (handle, cancel) = Cancel::new();
    handle.cancel();
    let (mut spool, mut listener) = (Vec::new(), |_| {});
    let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel, permit: None };
    let error = model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await.unwrap_err();
    assert!(matches!(error, ModelError::Cancelled { response: None, refused: false }), "{error:?}");
    assert!(server.requests().is_empty());
}

struct FullDisk;

impl ResponseSink for FullDisk {
    fn append(&mut self, _bytes: &[u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn restart(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn bytes_that_cannot_be_kept_are_not_used() {
    let server = Server::start(vec![Reply::Send(whole_stream(&[HELLO, WORLD, DONE]))]).await;
    let model = HttpModel::new(info(), Quirks::default(), connection(&server.url)).unwrap();
    let prompt = Prompt::Raw(vec![TextPart::new(PartId(1), "Once")]);
    let request = model.encode(&prompt, &Params::default()).unwrap();
    let mut events = Vec::new();
    let mut listener = |event| events.push(event);
    let exchange =
        Exchange { spool: &mut FullDisk, listener: &mut listener, cancel: Cancel::never(), permit: None };
    let error = model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await.unwrap_err();
    assert_eq!(error.code(), "spool_failed");
    assert!(events.is_empty(), "no event comes before its bytes are kept");
}

#[tokio::test]
async fn plain_http_to_a_public_host_is_refused_by_name() {
    let refused = HttpModel::new(info(), Quirks::default(), connection("http://example.com"));
    assert_eq!(refused.unwrap_err().code(), "insecure_http");
    let asked = Connection { insecure_http: true, ..connection("http://example.com") };
    assert!(HttpModel::new(info(), Quirks::default(), asked).is_ok());
}

#[tokio::test]
async fn what_a_model_does_not_take_is_refused_before_it_is_sent() {
    let narrow = ModelInfo { honours_n: false, completion_endpoint: false, logprobs: false, ..info() };
    let model = HttpModel::new(narrow, Quirks::default(), connection("http://localhost")).unwrap();
    let chat = Prompt::Chat(Chat {
        messages: vec![ChatPart::User(TextPart::new(PartId(1), "Hi"))],
        ..Chat::default()
    });
    let raw = Prompt::Raw(vec![TextPart::new(PartId(1), "Once")]);
    let several = Params { n: 2, ..Params::default() };
    let probable = Params { logprobs: Some(1), ..Params::default() };
    assert!(model.encode(&chat, &Params::default()).is_ok());
    for (prompt, params) in [(&raw, &Params::default()), (&chat, &several), (&chat, &probable)] {
        assert_eq!(model.encode(prompt, params).unwrap_err().code(), "unsupported");
    }
}
