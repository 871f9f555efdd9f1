//! A model's server that answers as a test says, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A request: its path with the query, and its body; null for none.
pub(crate) type Asked = (String, Value);

/// The server. It ends with the test's process.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// The answer of a server that is still loading.
pub(crate) const BUSY: &str = "busy";

impl Server {
    /// One that answers with what `answer` makes of path and body; what has no answer is not found.
    pub(crate) fn start(answer: impl Fn(&str, &Value) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (all, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream.unwrap(), &all, &*answer));
            }
        });
        Self { port, asked }
    }

    /// Its address with the version of the API.
    pub(crate) fn base(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The bodies of the requests that had one.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.asked().into_iter().map(|(_, body)| body).filter(|body| !body.is_null()).collect()
    }
}

fn serve(
    mut stream: &TcpStream,
    all: &Mutex<Vec<Asked>>,
    answer: &dyn Fn(&str, &Value) -> Option<String>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    // Whether it counts tokens is looked at before a request, and is none.
    if !path.ends_with("/tokenize") && !path.ends_with("/apply-template") {
        all.lock().unwrap().push((path.clone(), body.clone()));
    }
    let (status, text) = match answer(&path, &body) {
        None => ("404 Not Found", "{}".to_owned()),
        Some(text) if text == BUSY => ("503 Service Unavailable", "{}".to_owned()),
        Some(text) => ("200 OK", text),
    };
    let kind = if text.starts_with('{') { "application/json" } else { "text/event-stream" };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}",
        text.len()
    );
    stream.write_all(format!("{head}\r\n\r\n{text}").as_bytes()).ok()
}

fn events<'a>(events: impl IntoIterator<Item = &'a Value>) -> String {
    events.into_iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// An answer in chat completions, with what was thought before it, and its tokens unless they are none.
pub(crate) fn chat(thought: &str, said: &str, tokens: u64) -> String {
    let delta = |delta: Value, finish: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let usage = json!({"id": "c", "choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 5}});
    let mut all = Vec::new();
    if !thought.is_empty() {
        all.push(delta(json!({"reasoning_content": thought}), Value::Null));
    }
    all.extend([delta(json!({"content": said}), Value::Null), delta(json!({}), json!("stop"))]);
    if tokens > 0 {
        all.push(usage);
    }
    events(&all) + "data: [DONE]\n\n"
}

/// A Chat Completions stream that says something and calls a tool.
pub(crate) fn call(id: &str, said: &str, name: &str, arguments: &Value) -> String {
    let call = json!({"index": 0, "id": id, "type": "function",
        "function": {"name": name, "arguments": arguments.to_string()}});
    let choice =
        json!({"index": 0, "delta": {"content": said, "tool_calls": [call]}, "finish_reason": "tool_calls"});
    let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 5});
    let [first, last] =
        [json!({"id": "c", "choices": [choice]}), json!({"id": "c", "choices": [], "usage": usage})];
    format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")
}

/// An answer in messages, with what was thought before it.
pub(crate) fn messages(thought: &str, said: &str, tokens: u64) -> String {
    let all = [
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m",
            "content": [], "usage": {"input_tokens": tokens, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": thought}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": said}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ];
    let named = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    all.iter().map(named).collect()
}
