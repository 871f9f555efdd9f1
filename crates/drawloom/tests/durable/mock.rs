//! A model's server that answers any number of conversations at once, and remembers what it was asked and what it
//! sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Home;

/// What it was asked, and what it sent of the answer.
#[derive(Default, Clone)]
pub(crate) struct Exchange {
    /// The request.
    pub(crate) asked: Value,
    /// The body of the answer so far: noted before it is sent.
    pub(crate) sent: Vec<u8>,
}

/// The server. It says the last thing it was told again, word by word, behind `You said:`.
pub(crate) struct Mock {
    port: u16,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl Mock {
    /// One that waits this long before each word; before the last one it calls `pause`.
    pub(crate) fn start(delay: Duration, pause: impl Fn() + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let exchanges = Arc::<Mutex<Vec<Exchange>>>::default();
        let (all, pause) = (Arc::clone(&exchanges), Arc::new(pause));
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (all, pause) = (Arc::clone(&all), Arc::clone(&pause));
                // A client that is killed breaks the connection: that is no failure here.
                std::thread::spawn(move || serve(stream.unwrap(), &all, delay, &*pause));
            }
        });
        Self { port, exchanges }
    }

    /// The model in a home.
    pub(crate) fn model(&self, home: &Home) -> &'static str {
        home.ok(&["config", "set", "providers.mock.base_url", &format!("http://127.0.0.1:{}/v1", self.port)]);
        "mock/m"
    }

    /// Everything so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }
}

/// What the server answers to a text.
pub(crate) fn answer_to(text: &str) -> String {
    format!("You said: {text}")
}

fn serve(stream: TcpStream, all: &Mutex<Vec<Exchange>>, delay: Duration, pause: &dyn Fn()) -> Option<()> {
    let asked: Value = serde_json::from_slice(&request(&stream)?).ok()?;
    let last = asked["messages"].as_array()?.iter().rfind(|message| message["role"] == "user")?;
    // What was said before and not answered stands above it, a notice of the program below.
    let mut told = last["content"].as_str()?.rsplit("\n\n");
    let text = answer_to(told.find(|text| !text.starts_with('['))?);
    let at = {
        let mut all = all.lock().unwrap();
        all.push(Exchange { asked, sent: Vec::new() });
        all.len() - 1
    };
    let mut stream = stream;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let mut send = |bytes: String| {
        all.lock().unwrap()[at].sent.extend_from_slice(bytes.as_bytes());
        stream.write_all(bytes.as_bytes()).and_then(|()| stream.flush()).ok()
    };
    let event = |delta: Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        format!("data: {}\n\n", json!({"id": "m", "choices": choices}))
    };
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    for (number, word) in words.iter().enumerate() {
        std::thread::sleep(delay);
        if number + 1 == words.len() {
            pause();
        }
        send(event(json!({"content": word}), Value::Null))?;
    }
    send(event(json!({}), json!("stop")))?;
    send("data: [DONE]\n\n".to_owned())
}

/// The body of a request.
fn request(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
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
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            return Some(body);
        }
    }
}

/// The text that whole events of a stream say, and whether the last one was there.
pub(crate) fn text_of(stream: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(stream);
    let (mut said, mut finished) = (String::new(), false);
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    for event in whole.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(event) = serde_json::from_str::<Value>(event) else { continue };
        let choice = &event["choices"][0];
        said += choice["delta"]["content"].as_str().unwrap_or_default();
        finished |= choice["finish_reason"].is_string();
    }
    (said, finished)
}
