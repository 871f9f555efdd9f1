//! Bodies of a server at an address: read up to a limit, as a whole or as events.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use egress::{FetchError, Response, SendError};
use futures_util::stream::{BoxStream, StreamExt as _, try_unfold};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

use crate::streams::LONGEST_MESSAGE;

/// Bytes of all events of one stream; one that says more is ended.
const LONGEST_STREAM: usize = 64 << 20;

fn too_long() -> String {
    format!("it said more than {} MiB in one message, and was ended", LONGEST_MESSAGE >> 20)
}

fn broken(error: egress::Error) -> String {
    format!("its answer broke off: {}", FetchError::from(SendError::from(error)))
}

/// A whole body.
///
/// # Errors
/// It is longer than that, or breaks off.
pub(crate) async fn bounded(mut response: Response, limit: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        if body.len() + piece.len() > limit {
            return Err(too_long());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The events of a body. Why they end before its end is kept.
pub(crate) fn events(
    response: Response,
    failure: Arc<Mutex<Option<String>>>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces = try_unfold((response, EventLength::default()), move |(mut response, mut length)| {
        let failure = Arc::clone(&failure);
        async move {
            let piece = match response.chunk().await {
                Ok(Some(piece)) if length.admits(&piece) => Ok(Some(piece)),
                Ok(Some(_)) => Err(too_long()),
                Ok(None) => Ok(None),
                Err(error) => Err(broken(error)),
            };
            match piece {
                Ok(piece) => Ok(piece.map(|piece| (piece, (response, length)))),
                Err(why) => {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
                    Err(io::Error::other(why))
                }
            }
        }
    });
    SseStream::from_bytes_stream(pieces).boxed()
}

/// How much an event has, and all of them.
#[derive(Default)]
struct EventLength {
    event: usize,
    line: usize,
    all: usize,
}

impl EventLength {
    /// Counts a piece. Whether no event is too long yet, nor all together.
    fn admits(&mut self, piece: &Bytes) -> bool {
        self.all = self.all.saturating_add(piece.len());
        let mut longest = self.event;
        for byte in piece {
            self.event += 1;
            longest = longest.max(self.event);
            match byte {
                // Before a line end: both belong together.
                b'\r' => {}
                b'\n' if self.line == 0 => self.event = 0,
                b'\n' => self.line = 0,
                _ => self.line += 1,
            }
        }
        longest <= LONGEST_MESSAGE && self.all <= LONGEST_STREAM
    }
}
