use std::pin::Pin;
use std::sync::Mutex as StdMutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll};

use context::ToolSpec;
use futures_util::FutureExt as _;
use model::Cancel;
use rmcp::model::{EmptyResult, ServerResult};
use serde_json::{Map, json};
use tokio::io::{AsyncReadExt as _, DuplexStream, Lines, ReadBuf, duplex};

use super::*;
use crate::{ServedTools, ToolContent, ToolReply};

fn ping(id: u64) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string() + "\n"
}

/// The other end of what is read, with everything written that it is to read.
async fn sends(lines: &str) -> (DuplexStream, DuplexStream) {
    let (mut client, server) = duplex(1 << 20);
    client.write_all(lines.as_bytes()).await.unwrap();
    (client, server)
}

#[tokio::test]
async fn a_client_is_not_read_from_while_many_of_its_requests_have_no_answer() {
    let most = UNANSWERED as u64;
    let lines: String = (0..most + 2).map(ping).collect();
    let (_client, input) = sends(&lines).await;
    let (mut answers, output) = duplex(64 << 10);
    let mut transport = LineTransport::new(input, output);
    for _ in 0..most {
        assert!(transport.receive().await.is_some());
    }
    assert!(transport.receive().now_or_never().is_none());
    let answer =
        ServerJsonRpcMessage::response(ServerResult::EmptyResult(EmptyResult {}), RequestId::Number(1));
    let sent = transport.send(answer);
    assert!(transport.receive().now_or_never().is_none(), "not before the answer is written");
    sent.await.unwrap();
    assert!(transport.receive().await.is_some());
    assert!(transport.receive().now_or_never().is_none());
    let mut read = [0; 1];
    answers.read_exact(&mut read).await.unwrap();
}

#[tokio::test]
async fn a_client_that_reads_no_refusal_is_not_read_from_and_one_that_went_away_is_left() {
    let lines = "nonsense\n".repeat(10 * UNANSWERED) + &ping(1);
    let (_client, input) = sends(&lines).await;
    let (answers, output) = duplex(1);
    let mut transport = LineTransport::new(input, output);
    let mut waits = Box::pin(transport.receive());
    for _ in 0..100 {
        assert!((&mut waits).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(waits);
    assert_eq!(transport.room.available_permits(), 0);
    drop(answers);
    assert!(transport.receive().await.is_none());
}

#[tokio::test]
async fn a_request_that_is_cancelled_leaves_room_and_an_id_is_used_once_at_a_time() {
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let (_client, input) = sends(&format!("{}{}{cancelled}\n{}", ping(1), ping(1), ping(1))).await;
    let (answers, output) = duplex(64 << 10);
    let mut transport = LineTransport::new(input, output);
    assert!(matches!(transport.receive().await, Some(JsonRpcMessage::Request(_))));
    assert!(matches!(transport.receive().await, Some(JsonRpcMessage::Notification(_))));
    assert_eq!(transport.unanswered.len(), 0);
    assert!(matches!(transport.receive().await, Some(JsonRpcMessage::Request(_))));
    let mut answers = BufReader::new(answers).lines();
    let refused = answers.next_line().await.unwrap().unwrap();
    assert!(refused.contains("waits for its answer"), "{refused}");
    // That of the one that was cancelled comes late, and is none to the other one.
    let cancelled = ErrorData::internal_error("the call was cancelled", None);
    transport.send(ServerJsonRpcMessage::error(cancelled, Some(RequestId::Number(1)))).await.unwrap();
    let pinged = ServerResult::EmptyResult(EmptyResult {});
    transport.send(ServerJsonRpcMessage::response(pinged, RequestId::Number(2))).await.unwrap();
    drop(transport);
    let answer: Value = serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &json!({})), "{answer}");
    assert_eq!(answers.next_line().await.unwrap(), None);
}

/// What is cancelled is named by the id that the client gave it, and by nothing that stands for another one.
#[tokio::test]
async fn a_request_is_cancelled_by_its_own_id_alone() {
    let cancels = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let one = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let named = json!({"jsonrpc": "2.0", "id": "a", "method": "ping"});
    let (_client, input) = sends(&format!("{named}\n{one}\n{}\n", cancels("a"))).await;
    let mut transport = LineTransport::new(input, duplex(64 << 10).1);
    assert!(matches!(transport.receive().await, Some(JsonRpcMessage::Request(_))));
    for cancelled in [None, Some(RequestId::Number(1))] {
        let Some(JsonRpcMessage::Notification(told)) = transport.receive().await else { panic!() };
        let ClientNotification::CancelledNotification(told) = told.notification else { panic!() };
        assert_eq!(told.params.request_id, cancelled);
        assert_eq!(transport.unanswered.is_empty(), cancelled.is_some());
    }
}

/// A stream that cannot be read.
struct Unreadable;

impl AsyncRead for Unreadable {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::IsADirectory.into()))
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_read_is_no_end_of_one() {
    struct NoTools;
    impl ServedTools for NoTools {
        fn list(&self) -> Vec<ToolSpec> {
            Vec::new()
        }

        fn call(&self, _: &str, _: Map<String, Value>, _: &Cancel) -> Result<ToolReply, String> {
            Err("there is none".to_owned())
        }
    }
    let server = ToolServer::new(Arc::new(NoTools), "");
    let failed = serve(server.clone(), Unreadable, tokio::io::sink()).await.unwrap_err();
    assert!(failed.to_string().contains("could not be read: is a directory"), "{failed}");
    assert!(serve(server, tokio::io::empty(), tokio::io::sink()).await.is_ok(), "the control");
}

/// Tools whose calls wait.
struct Waiting {
    began: Sender<()>,
    go_on: StdMutex<Receiver<()>>,
    cancelled: Sender<()>,
}

impl ServedTools for Waiting {
    fn list(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn call(&self, tool: &str, _: Map<String, Value>, cancel: &Cancel) -> Result<ToolReply, String> {
        if tool == "panic" {
            panic!("a defect");
        }
        self.began.send(()).unwrap();
        if tool == "until cancelled" {
            tokio::runtime::Handle::current().block_on(cancel.clone().cancelled());
            self.cancelled.send(()).unwrap();
        } else {
            self.go_on.lock().unwrap().recv().unwrap();
        }
        Ok(ToolReply { content: vec![ToolContent::Text("done".to_owned())], is_error: false })
    }
}

/// A client that was greeted.
struct Client {
    input: DuplexStream,
    answers: Lines<BufReader<DuplexStream>>,
}

impl Client {
    async fn greeted(server: ToolServer) -> Self {
        let ((input, read), (written, answers)) = (duplex(1 << 20), duplex(1 << 20));
        tokio::spawn(serve(server, read, written));
        let mut client = Self { input, answers: BufReader::new(answers).lines() };
        let greeting = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        client.send(&greeting).await;
        assert_eq!(client.next().await["id"], 0);
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: u64, tool: &str) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}});
        self.send(&call).await;
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.answers.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn pinged(&mut self) {
        self.input.write_all(ping(100).as_bytes()).await.unwrap();
        assert_eq!(self.next().await["id"], 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn few_calls_run_at_a_time_and_others_wait() {
    let ((began, begins), (goes, go_on), (cancelled, _cancels)) = (channel(), channel(), channel());
    let tools = Waiting { began, go_on: StdMutex::new(go_on), cancelled };
    let mut client = Client::greeted(ToolServer::new(Arc::new(tools), "")).await;
    for id in 1..=10 {
        client.call(id, "wait").await;
    }
    let begins = tokio::task::spawn_blocking(move || {
        (0..4).for_each(|_| begins.recv().unwrap());
        begins
    });
    let begins = begins.await.unwrap();
    // Each of the calls was taken by then.
    client.pinged().await;
    assert!(begins.try_recv().is_err());
    (0..10).for_each(|_| goes.send(()).unwrap());
    let mut answered = Vec::new();
    for _ in 0..10 {
        answered.push(client.next().await["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, (1..=10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_is_stopped_and_one_that_panics_is_an_error() {
    let ((began, begins), (_goes, go_on), (cancelled, cancels)) = (channel(), channel(), channel());
    let tools = Waiting { began, go_on: StdMutex::new(go_on), cancelled };
    let mut client = Client::greeted(ToolServer::new(Arc::new(tools), "")).await;
    client.call(1, "until cancelled").await;
    tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    client.send(&told).await;
    tokio::task::spawn_blocking(move || cancels.recv().unwrap()).await.unwrap();
    client.call(2, "panic").await;
    let failed = client.next().await;
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(2), &json!(-32603)), "{failed}");
    client.pinged().await;
}
