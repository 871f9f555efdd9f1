//! Servers that refuse, hang, die, lie and shout: one clear error each, and what was received is kept.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::support::{Before, Home, Ran};

/// A server that answers each request with whatever it pleases.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(head) = read_request(&stream) else { continue };
                if head.contains("/tokenize ") {
                    // It counts no tokens.
                    let _ = stream.write_all(&response("404 Not Found", "application/json", "{}"));
                } else {
                    count.fetch_add(1, Ordering::SeqCst);
                    answer(&mut stream);
                    let _ = stream.shutdown(Shutdown::Both);
                }
            }
        });
        Self { port, asked }
    }

    /// A server that answers with these bytes and closes.
    fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |stream| {
            let _ = stream.write_all(&bytes);
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// The first line of a request that came whole.
fn read_request(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            return reader.read_exact(&mut vec![0; length]).is_ok().then_some(head);
        }
    }
}

fn response(status: &str, kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The head and the first events of a stream that is not finished.
pub(crate) fn beginning(texts: &[&str]) -> Vec<u8> {
    let events =
        texts.iter().map(|text| format!("data: {}\n\n", json!({"choices": [{"index": 0, "text": text}]})));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    (head.to_owned() + &events.collect::<String>()).into_bytes()
}

/// Asks the server on this port, which may take a second over anything. Its window is said, so that it is asked for
/// nothing else.
fn ask(home: &Home, port: u16) -> Ran {
    let config = format!(
        "[providers.test]\nbase_url = \"http://127.0.0.1:{port}/v1\"\nconnect_timeout = 1\nfirst_byte_timeout = 1\n\
         idle_timeout = 1\nwindow = 8192\n"
    );
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    home.run(&["--model", "test/m", "tree", "generate", "Tale"])
}

/// Asserts that nothing at all comes of asking this server, but this error.
#[track_caller]
fn gives_nothing(port: u16, words: &[&str]) {
    let home = Home::with_tale("It rained");
    let before = Before::of(&home);
    ask(&home, port).refused(5, words);
    before.unharmed(&home);
}

/// Asserts that the server's answer is cut off after ` all day`, and kept.
#[track_caller]
fn is_cut(server: &Server, words: &[&str]) {
    let home = Home::with_tale("It rained");
    ask(&home, server.port).refused(5, &[&["the part received is kept as"], words].concat());
    let answers = home.answers();
    let [(text, finish)] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(text, " all day");
    assert!(finish["interrupted"].is_string(), "{finish}");
    assert_eq!(home.text(), "It rained all day");
    assert!(home.spools().is_empty());
    home.is_sound();
    assert_eq!(server.asked(), 1, "what was shown is never asked for again");
}

/// The last events of a stream.
pub(crate) const END: &str =
    "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn a_server_that_answers_is_heard() {
    let server = Server::saying([beginning(&[" all", " day"]), END.as_bytes().to_vec()].concat());
    let home = Home::with_tale("It rained");
    let ran = ask(&home, server.port);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(home.answers(), [(" all day".to_owned(), json!("stop"))]);
}

#[test]
fn a_server_that_is_not_there() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    gives_nothing(port, &["cannot reach 127.0.0.1", "start the server"]);
}

#[test]
fn a_server_that_never_answers() {
    let server = Server::start(|stream| {
        // Until the client has enough.
        let _ = stream.read(&mut [0]);
    });
    gives_nothing(server.port, &["no answer within 1 s"]);
}

#[test]
fn a_server_that_falls_silent() {
    let server = Server::start(|stream| {
        let _ = stream.write_all(&beginning(&[" all", " day"]));
        let _ = stream.read(&mut [0]);
    });
    is_cut(&server, &["paused for 1 s"]);
}

/// A server that says these words, and then shows this sign of life ten times a second. It gives up first, and ends its
/// answer, if the client waits for half a minute.
fn lingering(words: &'static [&'static str], sign: &'static str) -> Server {
    Server::start(move |stream| {
        let _ = stream.write_all(&beginning(words));
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let left = |stream: &mut TcpStream| {
            stream.write_all(sign.as_bytes()).is_err() || matches!(stream.read(&mut [0]), Ok(0))
        };
        if !(0..300).any(|_| left(stream)) {
            let _ = stream.write_all(format!("\n\n{END}").as_bytes());
        }
    })
}

#[test]
fn a_server_that_only_shows_signs_of_life_is_not_waited_for_without_end() {
    std::thread::scope(|scope| {
        for sign in [": still here\n\n", "data: {\"choices\":[]}\n\n", "d"] {
            scope.spawn(move || is_cut(&lingering(&[" all", " day"], sign), &["paused for 5 s"]));
            scope.spawn(move || gives_nothing(lingering(&[], sign).port, &["paused for 2 s"]));
        }
    });
}

#[test]
fn a_server_that_dies_in_the_middle() {
    let server = Server::saying(beginning(&[" all", " day"]));
    is_cut(&server, &["broke off"]);
}

#[test]
fn a_server_that_dies_in_the_middle_of_an_event() {
    let server =
        Server::saying([beginning(&[" all", " day"]), b"data: {\"choices\":[{\"te".to_vec()].concat());
    is_cut(&server, &["broke off"]);
}

#[test]
fn a_server_that_talks_nonsense_in_the_middle() {
    let server = Server::saying([beginning(&[" all", " day"]), b"data: {nonsense\n\n".to_vec()].concat());
    is_cut(&server, &[]);
}

#[test]
fn a_server_that_is_none() {
    gives_nothing(Server::saying(*b"SSH-2.0-OpenSSH_9.9\r\n").port, &[]);
    gives_nothing(Server::saying(response("200 OK", "text/html", "<h1>It works!</h1>")).port, &["base URL"]);
}

#[test]
fn a_server_that_limits_the_rate_or_fails_is_asked_three_times() {
    for (status, word) in [("429 Too Many Requests", "429"), ("500 Internal Server Error", "500")] {
        let server = Server::saying(response(status, "application/json", r#"{"error":{"message":"no"}}"#));
        gives_nothing(server.port, &[word, "try again"]);
        assert_eq!(server.asked(), 3, "{status}");
    }
}

#[test]
fn a_server_whose_window_is_too_small_is_asked_once() {
    let body =
        r#"{"error":{"message":"too long","code":"context_length_exceeded","type":"invalid_request_error"}}"#;
    let server = Server::saying(response("400 Bad Request", "application/json", body));
    let home = Home::with_tale("It rained");
    let before = Before::of(&home);
    ask(&home, server.port).refused(5, &["400", "shorten the request"]);
    let json = home.run(&["--json", "--model", "test/m", "tree", "generate", "Tale"]);
    assert_eq!(json.status.code(), Some(5));
    assert!(json.stdout.starts_with(r#"{"error":{"code":"context_too_long""#), "{json:?}");
    before.unharmed(&home);
    assert_eq!(server.asked(), 2);
}

#[test]
fn an_error_that_speaks_to_the_terminal_does_not_reach_it() {
    let body =
        json!({"error": {"message": "\u{1b}]0;evil\u{7}\u{1b}[31mred\nerror: a second line"}}).to_string();
    let server = Server::saying(response("400 Bad Request", "application/json", body));
    let home = Home::with_tale("It rained");
    let ran = ask(&home, server.port);
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(5), ""), "{ran:?}");
    // Its second line is no error of Drawloom's.
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("error:")).collect();
    let first = "error: the server answered 400: \\u{1b}]0;evil\\u{7}\\u{1b}[31mred";
    assert_eq!(lines, [first, "  error: a second line"], "{ran:?}");
    assert!(!ran.stderr.contains(['\u{1b}', '\u{7}']), "{ran:?}");
}

#[test]
fn bytes_that_are_no_utf8_break_nothing() {
    let mut bytes = beginning(&[" all", " day"]);
    bytes.extend_from_slice(b"data: {\"choices\":[{\"index\":0,\"text\":\" \xff\xfe\"}]}\n\n");
    let home = Home::with_tale("It rained");
    let ran = ask(&home, Server::saying(bytes).port);
    ran.refused(5, &["the part received is kept as"]);
    let answers = home.answers();
    let [(text, _)] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(text.starts_with(" all day"), "{text:?}");
    home.is_sound();
}

#[test]
fn a_server_that_never_ends_a_line_is_not_listened_to_forever() {
    let server = Server::start(|stream| {
        let _ = stream.write_all(&beginning(&[" all", " day"]));
        let _ = stream.write_all(b"data: ");
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    });
    is_cut(&server, &[]);
}
