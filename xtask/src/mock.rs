//! A server of models that answers everything with the same text, in the forms of chat completions and of messages.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;
use serde_json::{Value, json};

const ANSWER: &str = "A heddle guides the warp.\n\n```python\nprint(1)\n```\n";
/// The answer where a schema is asked for.
const OF_SCHEMA: &str = r#"{"name": "Ada"}"#;
const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Starts the server, which ends with this process. Returns its address with the version of the API.
pub(crate) fn start() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Who hangs up was answered, or says so itself.
            std::thread::spawn(move || answer(stream).ok());
        }
    });
    Ok(format!("http://{address}/v1"))
}

fn answer(mut stream: TcpStream) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut size = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                size = value.trim().parse()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body)?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_asked = first.starts_with("POST");
    let (kind, said) = if first.starts_with("GET") && first.contains("/models") {
        ("application/json", models())
    } else if is_asked && first.contains("/chat/completions") {
        completion(&asked)
    } else if is_asked && first.contains("/messages") {
        ("text/event-stream", message(&asked))
    } else {
        stream.write_all(NOT_FOUND)?;
        return Ok(());
    };
    let size = said.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n{said}"
    )?;
    Ok(())
}

fn models() -> String {
    let model = |name| json!({"id": name, "object": "model", "max_model_len": 8192});
    json!({"object": "list", "data": [model("one"), model("two")]}).to_string()
}

fn completion(asked: &Value) -> (&'static str, String) {
    let text = if asked["response_format"].is_null() { ANSWER } else { OF_SCHEMA };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20});
    let head = |kind: &str| json!({"id": "1", "object": kind, "created": 1, "model": asked["model"]});
    if asked["stream"] != true {
        let mut whole = head("chat.completion");
        let message = json!({"role": "assistant", "content": text});
        whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        whole["usage"] = usage;
        return ("application/json", whole.to_string());
    }
    let event = |choices: Value, usage: Value| {
        let mut event = head("chat.completion.chunk");
        (event["choices"], event["usage"]) = (choices, usage);
        format!("data: {event}\n\n")
    };
    let delta = json!([{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": null}]);
    let stop = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
    let events = [event(delta, Value::Null), event(stop, Value::Null), event(json!([]), usage)];
    ("text/event-stream", events.concat() + "data: [DONE]\n\n")
}

fn message(asked: &Value) -> String {
    let begun = json!({"id": "1", "type": "message", "role": "assistant", "model": asked["model"], "content": [],
        "usage": {"input_tokens": 10, "output_tokens": 1}});
    let events = [
        json!({"type": "message_start", "message": begun}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ];
    let named =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(named).collect()
}
