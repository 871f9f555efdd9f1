//! Bodies of a server at an address: read up to a limit, as a whole or as events.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use egress::{FetchError, Response, SendError};
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _, try_unfold};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

use text::bytes::size;

use crate::request_params::as_read;
use crate::streams::LONGEST_MESSAGE;

/// Bytes of all events of one stream; one that says more is ended.
const LONGEST_STREAM: usize = 64 << 20;

fn too_long(what: &str, limit: usize) -> String {
    format!("it said more than {} in {what}, and was ended", size(limit as u64))
}

/// What a message is called that is too long.
const MESSAGE: &str = "one message";

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
            return Err(too_long(MESSAGE, LONGEST_MESSAGE));
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
                Ok(Some(piece)) => length.count(&piece).map(|()| Some(piece)),
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
    SseStream::from_bytes_stream(pieces).map_ok(answerable).boxed()
}

/// An event whose request can be answered.
fn answerable(event: Sse) -> Sse {
    let readable = event.data.as_ref().and_then(|data| as_read(data.as_bytes()));
    Sse { data: readable.or(event.data), ..event }
}

/// How much an event has, and all of them.
#[derive(Default)]
struct EventLength {
    event: usize,
    line: usize,
    all: usize,
}

impl EventLength {
    /// Counts a piece.
    ///
    /// # Errors
    /// An event is too long, or all of them are together.
    fn count(&mut self, piece: &[u8]) -> Result<(), String> {
        self.all = self.all.saturating_add(piece.len());
        for byte in piece {
            self.event += 1;
            if self.event > LONGEST_MESSAGE {
                return Err(too_long(MESSAGE, LONGEST_MESSAGE));
            }
            match byte {
                // Before a line end: both belong together.
                b'\r' => {}
                b'\n' if self.line == 0 => self.event = 0,
                b'\n' => self.line = 0,
                _ => self.line += 1,
            }
        }
        if self.all > LONGEST_STREAM { Err(too_long("its events", LONGEST_STREAM)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_is_bounded_in_however_many_lines_and_so_are_all_events_of_a_stream() {
        let line = [b"data: ", &[b'x'; 64 << 10][..], b"\r\n"].concat();
        let mut length = EventLength::default();
        let counted = |length: &mut EventLength, end: &[u8]| {
            (0..2048).find_map(|_| length.count(&[&line, end].concat()).err())
        };
        assert!(counted(&mut length, b"").unwrap().contains("8 MiB in one message"));
        let mut length = EventLength::default();
        assert!(counted(&mut length, b"\r\n").unwrap().contains("64 MiB in its events"));
        assert!(length.all > LONGEST_STREAM && length.all < LONGEST_STREAM + (128 << 10));
        let mut length = EventLength::default();
        assert_eq!(length.count(b"data: {}\n\ndata: {}\r\n\r"), Ok(()));
        assert_eq!((length.event, length.count(b"\n"), length.event), (11, Ok(()), 0));
    }
}
