//! A model's server that is shown pictures, remembers the requests, and answers as it is told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::world::World;

/// The server, as the model `seer/m` of a world.
pub(crate) struct Seer {
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Seer {
    /// One that says "I see." each time.
    pub(crate) fn of(world: &World, settings: &str) -> Self {
        Self::saying(world, settings, json!({"role": "assistant", "content": "I see."}))
    }

    /// One that says this each time. `settings` are those of the model.
    pub(crate) fn saying(world: &World, settings: &str, message: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        world.write(
            "config.toml",
            &format!(
                "[model]\ndefault = \"seer/m\"\n[providers.seer]\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
                 [models.\"seer/m\"]\nwindow = 64000\n{settings}\n"
            ),
        );
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let all = Arc::clone(&asked);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(&stream.unwrap(), &all, &message);
            }
        });
        Self { asked }
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// The blocks of what the user said in the last request: texts, and media as their type and bytes.
    pub(crate) fn shown(&self) -> Vec<(String, Vec<u8>)> {
        let asked = self.asked();
        let messages = asked.last().unwrap()["messages"].as_array().unwrap().clone();
        let blocks = messages.iter().filter(|message| message["role"] == "user").flat_map(|message| {
            match &message["content"] {
                Value::Array(blocks) => blocks.clone(),
                text => vec![json!({"type": "text", "text": text})],
            }
        });
        blocks.map(|block| seen(&block)).collect()
    }
}

fn seen(block: &Value) -> (String, Vec<u8>) {
    match block["type"].as_str().unwrap() {
        "text" => (block["text"].as_str().unwrap().trim().to_owned(), Vec::new()),
        "image_url" => {
            let url = block["image_url"]["url"].as_str().unwrap();
            let (mime, data) = url.strip_prefix("data:").unwrap().split_once(";base64,").unwrap();
            (mime.to_owned(), BASE64.decode(data.as_bytes()).unwrap())
        }
        "input_audio" => {
            let sound = &block["input_audio"];
            let data = sound["data"].as_str().unwrap();
            (sound["format"].as_str().unwrap().to_owned(), BASE64.decode(data.as_bytes()).unwrap())
        }
        other => panic!("{other}"),
    }
}

fn serve(stream: &TcpStream, all: &Mutex<Vec<Value>>, message: &Value) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut stream = stream;
    if head.contains("/tokenize ") {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").ok();
    }
    all.lock().unwrap().push(serde_json::from_slice(&body).ok()?);
    let event = |delta: &Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        format!("data: {}\n\n", json!({"id": "m", "choices": choices}))
    };
    let body = event(message, Value::Null) + &event(&json!({}), json!("stop")) + "data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}
