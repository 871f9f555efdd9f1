//! A hub on this machine that answers as a test tells it.

#![allow(dead_code, reason = "not every suite needs everything")]

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};

/// How one request is answered. The last way is kept for all that follow.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// The file, or the range of it that was asked for.
    File { bytes: Vec<u8>, etag: Option<&'static str> },
    /// The same, cut off behind so many bytes of the body.
    CutAfter { bytes: Vec<u8>, etag: Option<&'static str>, at: usize },
    /// The same, but nothing more comes behind so many bytes.
    HangAfter { bytes: Vec<u8>, etag: Option<&'static str>, at: usize },
    /// The whole file without saying its length.
    Unmeasured(Vec<u8>),
    /// A part of the file that nobody asked for.
    WrongRange { bytes: Vec<u8>, etag: &'static str },
    /// A redirect.
    Redirect(String),
    /// No file.
    Status(u16),
}

/// A running server.
pub(crate) struct HubServer {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    ranges: Mutex<Vec<Option<String>>>,
}

impl HubServer {
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { replies: Mutex::new(replies.into()), ranges: Mutex::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared }
    }

    /// The `Range` of each request so far.
    pub(crate) fn ranges(&self) -> Vec<Option<String>> {
        self.shared.ranges.lock().unwrap().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    shared.ranges.lock().unwrap().push(header(header::RANGE));
    let reply = {
        let mut replies = shared.replies.lock().unwrap();
        if replies.len() > 1 { replies.pop_front().unwrap() } else { replies.front().unwrap().clone() }
    };
    let wanted = Wanted { range: header(header::RANGE), if_range: header(header::IF_RANGE) };
    match reply {
        Reply::File { bytes, etag } => wanted.send(&bytes, etag, usize::MAX, false),
        Reply::CutAfter { bytes, etag, at } => wanted.send(&bytes, etag, at, false),
        Reply::HangAfter { bytes, etag, at } => wanted.send(&bytes, etag, at, true),
        Reply::Unmeasured(bytes) => Response::new(body(&bytes, false, false)),
        Reply::WrongRange { bytes, etag } => Response::builder()
            .status(StatusCode::PARTIAL_CONTENT)
            .header(header::ETAG, etag)
            .header(header::CONTENT_RANGE, format!("bytes 0-{}/{}", bytes.len() - 1, bytes.len()))
            .body(Body::from(bytes))
            .unwrap(),
        Reply::Redirect(to) => {
            Response::builder().status(302).header(header::LOCATION, to).body(Body::empty()).unwrap()
        }
        Reply::Status(status) => Response::builder().status(status).body(Body::empty()).unwrap(),
    }
}

struct Wanted {
    range: Option<String>,
    if_range: Option<String>,
}

impl Wanted {
    fn send(&self, file: &[u8], etag: Option<&str>, at: usize, hang: bool) -> Response<Body> {
        let range = self.range.as_deref().filter(|_| self.if_range.as_deref() == etag);
        let from = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        let mut response = Response::builder();
        if let Some(etag) = etag {
            response = response.header(header::ETAG, etag);
        }
        let from: usize = from.unwrap_or(0);
        if range.is_some() {
            let about = format!("bytes {from}-{}/{}", file.len() - 1, file.len());
            response = response.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_RANGE, about);
        }
        let rest = &file[from..];
        let sent = &rest[..rest.len().min(at)];
        let cut = sent.len() < rest.len();
        let response = response.header(header::CONTENT_LENGTH, rest.len());
        response.body(body(sent, cut && !hang, cut && hang)).unwrap()
    }
}

/// A body that may break off or stand still at its end.
fn body(bytes: &[u8], cut: bool, hang: bool) -> Body {
    let pieces: VecDeque<Bytes> = bytes.chunks(8192).map(Bytes::copy_from_slice).collect();
    Body::from_stream(futures_util::stream::unfold(pieces, move |mut pieces| async move {
        match pieces.pop_front() {
            // An error ends the connection at once: what was handed over before has to be out by then.
            Some(piece) => Some((Ok(piece), pieces)),
            None if hang => std::future::pending::<Option<(Result<Bytes, io::Error>, _)>>().await,
            None if cut => {
                for _ in 0..64 {
                    tokio::task::yield_now().await;
                }
                Some((Err(io::Error::other("cut")), pieces))
            }
            None => None,
        }
    }))
}
