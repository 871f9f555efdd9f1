//! What receiving a long answer costs: alone in its process, because the peak is that of the process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use drawloom_model::{
    CallOrigin, Cancel, Chat, ChatPart, Connection, DialectName, Exchange, HttpModel, Model, ModelEvent,
    ModelInfo, ModelPlace, Params, PartId, Prompt, Purpose, Quirks, ResponseSink, TextPart,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Bytes of thinking in one event, and how many of them come.
const EVENT: usize = 32 * 1024;
const EVENTS: usize = 1_024;

/// A spool on a disk.
struct Elsewhere(usize);

impl ResponseSink for Elsewhere {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0 += bytes.len();
        Ok(())
    }

    fn restart(&mut self) -> std::io::Result<()> {
        self.0 = 0;
        Ok(())
    }
}

/// The most memory this process ever had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1_024
}

async fn thinking_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 64 * 1024];
        let _ = socket.read(&mut request).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let begin = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
            data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n";
        socket.write_all(format!("{head}{begin}").as_bytes()).await.unwrap();
        let delta = format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"thinking_delta\",\"thinking\":\"{}\"}}}}\n\n",
            "x".repeat(EVENT)
        );
        for _ in 0..EVENTS {
            socket.write_all(delta.as_bytes()).await.unwrap();
        }
        let end = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}\n\n\
            data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
            data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
            data: {\"type\":\"message_stop\"}\n\n";
        socket.write_all(end.as_bytes()).await.unwrap();
    });
    url
}

#[tokio::test]
async fn a_long_answer_takes_no_more_memory_than_twice_its_bytes() {
    let url = thinking_server().await;
    let info = ModelInfo {
        dialect: DialectName::AnthropicMessages,
        place: ModelPlace::Local,
        ..ModelInfo::local("mine", "m", 200_000, 8_192)
    };
    let model = HttpModel::new(info, Quirks::default(), Connection::new(url)).unwrap();
    let messages = vec![ChatPart::User(TextPart::new(PartId(0), "Think."))];
    let prompt = Prompt::Chat(Chat { messages, ..Chat::default() });
    let request = model.encode(&prompt, &Params::default()).unwrap();
    let before = peak();
    let (mut spool, mut listener) = (Elsewhere(0), |event: ModelEvent| drop(event));
    let exchange =
        Exchange { spool: &mut spool, listener: &mut listener, cancel: Cancel::never(), permit: None };
    let response = model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await.unwrap();
    let (grown, bytes) = (peak() - before, response.body.len());
    assert_eq!(response.parsed.choices[0].thinking().len(), EVENT * EVENTS);
    assert_eq!(spool.0, bytes);
    // Buffers of the connection and of one event come on top.
    assert!(grown < 2 * bytes + 8 * 1024 * 1024, "{grown} bytes of memory for {bytes} bytes");
}
