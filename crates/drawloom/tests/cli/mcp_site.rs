//! A server of tools at an address, within the test's process: ordinary, streaming, and one that fails in each way there is.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// A request: its first line, its other lines in lower-case names, and its body, as JSON (null for none) and as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    form: String,
}

impl Asked {
    /// A field of a form.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        fields(&self.form).find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    /// Path with the query.
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// Fields of a form or a query.
pub(crate) fn fields(form: &str) -> impl Iterator<Item = (String, String)> {
    let plain = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => byte,
            });
        }
        String::from_utf8(bytes).unwrap()
    };
    form.split('&')
        .filter_map(move |field| field.split_once('=').map(|(key, value)| (plain(key), plain(value))))
}

/// What a request is answered with.
pub(crate) enum Reply {
    /// These bytes, after which the connection is closed.
    Bytes(Vec<u8>),
    /// Nothing more, for as long as the client waits.
    Hang,
    /// More than anybody reads, behind this head.
    Flood(&'static str),
}

/// The server. It ends with the test's process.
pub(crate) struct McpSite {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    sessions: Arc<AtomicUsize>,
    stops: Arc<AtomicBool>,
    listens: JoinHandle<()>,
}

/// A whole answer.
pub(crate) fn whole(status: &str, kind: &str, more: &str, body: &str) -> Reply {
    let length = body.len();
    let bytes = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n{body}"
    );
    Reply::Bytes(bytes.into_bytes())
}

pub(crate) fn events(events: &[Value]) -> Reply {
    let body: String =
        events.iter().map(|event| format!("event: message\r\ndata: {event}\r\n\r\n")).collect();
    whole("200 OK", "text/event-stream", "", &body)
}

/// The result of a tool.
pub(crate) fn said(asked: &Asked, text: &str) -> Value {
    let result = json!({"content": [{"type": "text", "text": text}]});
    json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result})
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

impl McpSite {
    /// One with these tools, whose calls are answered so; what has no answer is answered by its name.
    pub(crate) fn start(
        tools: impl Fn(usize) -> Value + Send + Sync + 'static,
        answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let sessions = Arc::<AtomicUsize>::default();
        let (all, made) = (Arc::clone(&asked), Arc::clone(&sessions));
        let answer =
            Arc::new(move |asked: &Asked| answer(asked).unwrap_or_else(|| ordinary(asked, &made, &tools)));
        let stops = Arc::<AtomicBool>::default();
        let is_stopped = Arc::clone(&stops);
        let listens = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream.unwrap(), &all, &*answer));
            }
        });
        Self { port, asked, sessions, stops, listens }
    }

    /// Ends it: nothing is at its address any more.
    pub(crate) fn stop(self) {
        self.stops.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)).unwrap());
        self.listens.join().unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often a session was begun.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::SeqCst)
    }

    /// How often a tool was called.
    pub(crate) fn calls(&self, tool: &str) -> usize {
        self.asked().iter().filter(|asked| asked.tool() == tool).count()
    }
}

/// What a server answers that does as it should: it knows its newest session alone.
fn ordinary(asked: &Asked, sessions: &AtomicUsize, tools: &dyn Fn(usize) -> Value) -> Reply {
    let answered = |result: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result});
        whole("200 OK", "application/json", "", &answer.to_string())
    };
    if asked.line.starts_with("GET") {
        return whole("405 Method Not Allowed", "text/plain", "", "");
    }
    if asked.method() == "initialize" {
        let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {
            "protocolVersion": asked.body["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "site", "version": "1.0"},
        }});
        let session = format!("mcp-session-id: session-{number}\r\n");
        return whole("200 OK", "application/json", &session, &answer.to_string());
    }
    let newest = sessions.load(Ordering::SeqCst);
    if asked.header("mcp-session-id") != Some(&format!("session-{newest}")) {
        return whole("404 Not Found", "text/plain", "", "no such session");
    }
    match (asked.method(), asked.tool()) {
        ("tools/list", _) => answered(json!({"tools": tools(newest)})),
        ("ping", _) => answered(json!({})),
        ("tools/call", name) => {
            whole("200 OK", "application/json", "", &said(asked, &format!("this is {name}")).to_string())
        }
        _ => whole("202 Accepted", "text/plain", "", ""),
    }
}

fn serve(mut stream: &TcpStream, all: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Reply) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        // A program that ends may leave a connection without a whole request.
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let form = String::from_utf8(body).unwrap();
    let body = serde_json::from_str(&form).unwrap_or(Value::Null);
    let asked = Asked { line: line.trim_end().to_owned(), headers, body, form };
    all.lock().unwrap().push(asked.clone());
    match answer(&asked) {
        Reply::Bytes(bytes) => stream.write_all(&bytes).ok(),
        // Until the client is gone.
        Reply::Hang => reader.read(&mut [0]).ok().map(drop),
        Reply::Flood(head) => {
            stream.write_all(head.as_bytes()).ok()?;
            loop {
                stream.write_all(&[b'x'; 64 << 10]).ok()?;
            }
        }
    }
}
