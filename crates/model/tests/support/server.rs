//! A server on a real socket that answers each connection as told.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a connection does after it has read a request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Sends these bytes and closes.
    Send(Vec<u8>),
    /// Sends these bytes and keeps the connection open without another byte.
    SendAndHang(Vec<u8>),
}

/// A running server.
pub(crate) struct Server {
    /// Its base URL.
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers the first connections with these replies, in order; further ones are closed.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut open = Vec::new();
            for reply in replies {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read_request(&mut socket).await;
                seen.lock().unwrap().push(request);
                match reply {
                    Reply::Send(bytes) => {
                        socket.write_all(&bytes).await.unwrap();
                        let _ = socket.shutdown().await;
                    }
                    Reply::SendAndHang(bytes) => {
                        socket.write_all(&bytes).await.unwrap();
                        open.push(socket);
                    }
                }
            }
            std::future::pending::<()>().await;
        });
        Self { url, requests }
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        let mut piece = [0; 4096];
        let read = socket.read(&mut piece).await.unwrap();
        assert!(read > 0, "the client closed in the middle of its request");
        bytes.extend_from_slice(&piece[..read]);
    }
}

/// A whole response with a length.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// The head of a stream and its first pieces, as chunks without the last one.
pub(crate) fn stream(pieces: &[&str]) -> Vec<u8> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for piece in pieces {
        bytes.extend_from_slice(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes());
    }
    bytes
}

/// A stream with its end.
pub(crate) fn whole_stream(pieces: &[&str]) -> Vec<u8> {
    [stream(pieces), b"0\r\n\r\n".to_vec()].concat()
}
