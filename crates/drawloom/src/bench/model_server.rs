//! A model server on this machine that answers at once, in the form of OpenAI's chat completions, and remembers what
//! it was asked and when.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

/// A request and when it was answered.
pub(super) struct Exchange {
    /// Body of the request.
    pub(super) request: String,
    /// When its last byte was read.
    pub(super) asked: Instant,
    /// When the last byte of the answer was written.
    pub(super) answered: Instant,
}

/// A server on a port of its own, to the end of this process.
pub(super) struct ModelServer {
    port: u16,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl ModelServer {
    /// Starts one that answers a request by its body.
    pub(super) fn start(mut answer: impl FnMut(&str) -> String + Send + 'static) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let exchanges = Arc::<Mutex<Vec<Exchange>>>::default();
        let kept = Arc::clone(&exchanges);
        std::thread::Builder::new().name("bench-server".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away is told of by its own end.
                if let Ok(Some(exchange)) = exchange(&stream, &mut answer) {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
                }
            }
        })?;
        Ok(Self { port, exchanges })
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// What was asked since it was last taken.
    pub(super) fn taken(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.exchanges.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Events of an answer that is a text.
pub(super) fn says(text: &str) -> String {
    streamed(&json!({"content": text}), "stop")
}

/// Events of an answer that calls a tool.
pub(super) fn calls(id: &str, tool: &str, arguments: &Value) -> String {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let call = json!({"index": 0, "id": id, "type": "function", "function": function});
    streamed(&json!({"tool_calls": [call]}), "tool_calls")
}

fn streamed(delta: &Value, finish: &str) -> String {
    let said = json!({"id": "b", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let ended = json!({"id": "b", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    format!("data: {said}\n\ndata: {ended}\n\ndata: [DONE]\n\n")
}

/// Reads a request and answers it; none where nothing was asked of the model.
fn exchange(
    mut stream: &TcpStream,
    answer: &mut impl FnMut(&str) -> String,
) -> std::io::Result<Option<Exchange>> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line, mut is_asked) = (0, String::new(), false);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        is_asked |= line.starts_with("POST") && line.contains("/chat/completions ");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            break;
        }
    }
    if !is_asked {
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
        return Ok(None);
    }
    let mut request = String::new();
    reader.by_ref().take(length).read_to_string(&mut request)?;
    let asked = Instant::now();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{head}{}", answer(&request)).as_bytes())?;
    Ok(Some(Exchange { request, asked, answered: Instant::now() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_answers_whoever_asks_and_remembers_it() {
        let mut number = 0;
        let server = ModelServer::start(move |request| {
            number += 1;
            says(&format!("{number}: {request}"))
        })
        .unwrap();
        for number in 1..=2 {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            stream.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            let mut heard = String::new();
            stream.read_to_string(&mut heard).unwrap();
            assert!(heard.starts_with("HTTP/1.1 200 OK") && heard.ends_with("[DONE]\n\n"), "{heard}");
            assert!(heard.contains(&format!("{number}: {{}}")), "{heard}");
        }
        // The one whose connection was read to its end may not be kept yet.
        let kept = server.taken();
        assert!(!kept.is_empty() && kept.iter().all(|exchange| exchange.request == "{}"));
        assert!(kept.iter().all(|exchange| exchange.asked <= exchange.answered));
    }
}
