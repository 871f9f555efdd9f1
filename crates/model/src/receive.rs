//! Takes one response in: spool first, then parser, then listener.
//!
//! The one path on which answers arrive, whether from a socket or from the script. It knows the
//! four ways an answer may fail to end: cut, standing still, garbage, stopped from outside.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use crate::cancel::Cancel;
use crate::capture::{RawResponse, Spool, Timings};
use crate::dialect::{DialectName, Parse, ParseError};
use crate::error::ModelError;
use crate::event::{Event, Listen};
use crate::headers::KeptHeaders;
use crate::model::{Exchange, SourceKind};
use crate::reparse::PARSER_VERSION;
use crate::retry_hint::retry_hint;

/// The largest body that is taken in, in bytes. Far above any answer; it bounds the memory.
const MAX_BODY_BYTES: usize = 128 * 1024 * 1024;
/// The largest error body that is taken in, in bytes.
const MAX_ERROR_BYTES: usize = 1024 * 1024;
/// After the answer has said that it is complete, its tail is waited for this long.
const TAIL: Duration = Duration::from_millis(250);

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// From the request to the first byte of the body: a model may read a long prompt first.
    pub first_byte: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
        }
    }
}

/// Where bytes and events go, for all attempts of one request.
pub(crate) struct Io<'a> {
    pub(crate) spool: &'a mut dyn Spool,
    pub(crate) listener: &'a mut dyn Listen,
    pub(crate) cancel: Cancel,
    /// Whether anything of the answer itself has reached the listener.
    pub(crate) used: bool,
}

impl<'a> Io<'a> {
    pub(crate) fn new(exchange: Exchange<'a>) -> Self {
        Self { spool: exchange.spool, listener: exchange.listener, cancel: exchange.cancel, used: false }
    }

    fn pass_on(&mut self, events: Vec<Event>) {
        for event in events {
            self.used |= !matches!(event, Event::Start { .. } | Event::Usage(_));
            self.listener.event(event);
        }
    }
}

/// The body of a response, piece by piece.
#[async_trait]
pub(crate) trait Wire: Send {
    /// The next piece, `None` at the end. Must be cancel-safe.
    ///
    /// The error says in words how the connection broke.
    async fn next(&mut self) -> Result<Option<Bytes>, String>;
}

/// The head of a response.
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: KeptHeaders,
    /// Whether a stream was asked for; the content type of the response decides.
    pub(crate) stream: bool,
    pub(crate) retry_after: Option<Duration>,
}

/// The moment a request was sent, and by whom.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) started_at: i64,
    pub(crate) since: Instant,
    pub(crate) attempt: u32,
    pub(crate) dialect: DialectName,
    pub(crate) source: SourceKind,
}

/// Takes the response in to its end.
pub(crate) async fn receive(
    head: Head,
    wire: &mut dyn Wire,
    sent: Sent,
    timeouts: Timeouts,
    io: &mut Io<'_>,
) -> Result<RawResponse, ModelError> {
    let streamed = is_streamed(&head);
    let failed = !(200..300).contains(&head.status);
    let mut incoming = Incoming {
        record: Record { head, sent, streamed, head_ms: elapsed(sent.since), first_byte_ms: None },
        body: Vec::new(),
        parser: (!failed).then(|| sent.dialect.parser(streamed)),
    };
    let end = incoming.read(wire, timeouts, io).await;
    let end = incoming.settle(end, io);
    let mut response = incoming.record.response(incoming.body);
    match end {
        End::Complete if failed => {
            response.streamed = false;
            let failure = sent.dialect.failure(response.status, &response.body);
            let retry_after = incoming.record.head.retry_after.or_else(|| retry_hint(&response.body));
            Err(ModelError::Server {
                status: response.status,
                failure,
                retry_after,
                response: response.into(),
            })
        }
        End::Eof | End::Complete => Ok(response),
        End::Cancelled => Err(ModelError::Cancelled { response: Some(response.into()) }),
        End::Timeout if response.body.is_empty() => {
            Err(ModelError::FirstByteTimeout { after: timeouts.first_byte, response: Some(response.into()) })
        }
        End::Timeout => Err(ModelError::IdleTimeout { after: timeouts.idle, response: response.into() }),
        End::Broken(why) => Err(ModelError::Cut { why, response: Some(response.into()) }),
        End::Spool(cause) => Err(ModelError::Spool { cause, response: response.into() }),
        End::TooLarge => Err(ModelError::Garbage {
            problem: format!("the answer is longer than {MAX_BODY_BYTES} bytes"),
            response: response.into(),
        }),
        End::Parse(problem) => Err(ModelError::from_parse(problem, response.into())),
    }
}

/// How reading ended.
enum End {
    /// The body has ended.
    Eof,
    /// The answer is complete.
    Complete,
    Cancelled,
    Timeout,
    Broken(String),
    Spool(std::io::Error),
    TooLarge,
    Parse(ParseError),
}

struct Incoming {
    record: Record,
    body: Vec<u8>,
    /// `None` for an error response, which is read as a whole.
    parser: Option<Box<dyn Parse>>,
}

impl Incoming {
    async fn read(&mut self, wire: &mut dyn Wire, timeouts: Timeouts, io: &mut Io<'_>) -> End {
        let limit = if self.parser.is_some() { MAX_BODY_BYTES } else { MAX_ERROR_BYTES };
        loop {
            let complete = self.parser.as_ref().is_some_and(|parser| parser.is_complete());
            let deadline = self.deadline(complete, timeouts);
            let piece = tokio::select! {
                biased;
                () = io.cancel.cancelled() => return End::Cancelled,
                piece = tokio::time::timeout_at(deadline, wire.next()) => piece,
            };
            let piece = match piece {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => return End::Eof,
                Ok(Err(why)) => return End::Broken(why),
                Err(_) => return End::Timeout,
            };
            if self.body.len() + piece.len() > limit {
                return End::TooLarge;
            }
            if let Err(cause) = io.spool.append(&piece) {
                return End::Spool(cause);
            }
            self.record.first_byte_ms.get_or_insert_with(|| elapsed(self.record.sent.since));
            self.body.extend_from_slice(&piece);
            if let Some(parser) = &mut self.parser {
                let mut events = Vec::new();
                let fed = parser.feed(&piece, &mut events);
                io.pass_on(events);
                if let Err(problem) = fed {
                    return End::Parse(problem);
                }
            }
        }
    }

    /// Lets the parser end, however reading ended: so the listener has heard exactly what reading
    /// the stored body again gives. An answer that turns out complete stays so, whatever its
    /// connection did afterwards.
    fn settle(&mut self, end: End, io: &mut Io<'_>) -> End {
        let Some(parser) = &mut self.parser else {
            return if matches!(end, End::Eof | End::TooLarge) { End::Complete } else { end };
        };
        let mut events = Vec::new();
        let finished = parser.finish(&mut events);
        io.pass_on(events);
        match (end, finished) {
            (end @ (End::Parse(_) | End::Spool(_) | End::TooLarge), _) => end,
            (_, Ok(())) => End::Complete,
            (End::Eof, Err(problem)) => End::Parse(problem),
            (end, Err(_)) => end,
        }
    }

    fn deadline(&self, complete: bool, timeouts: Timeouts) -> Instant {
        if complete {
            Instant::now() + TAIL
        } else if self.body.is_empty() {
            self.record.sent.since + timeouts.first_byte
        } else {
            Instant::now() + timeouts.idle
        }
    }
}

struct Record {
    head: Head,
    sent: Sent,
    streamed: bool,
    head_ms: u64,
    first_byte_ms: Option<u64>,
}

impl Record {
    fn response(&mut self, body: Vec<u8>) -> RawResponse {
        let headers = std::mem::take(&mut self.head.headers);
        RawResponse {
            status: self.head.status,
            headers: headers.kept,
            removed_headers: headers.removed,
            body: Bytes::from(body),
            streamed: self.streamed,
            timings: Timings {
                started_at: self.sent.started_at,
                head_ms: self.head_ms,
                first_byte_ms: self.first_byte_ms,
                total_ms: elapsed(self.sent.since),
            },
            attempt: self.sent.attempt,
            dialect: self.sent.dialect,
            parser_version: PARSER_VERSION,
            source: self.sent.source,
        }
    }
}

/// A server may answer a request for a stream with one JSON body; it says so in the content type.
fn is_streamed(head: &Head) -> bool {
    match head.headers.get("content-type") {
        Some(kind) if kind.starts_with("text/event-stream") => true,
        Some(kind) if kind.starts_with("application/json") => false,
        _ => head.stream,
    }
}

fn elapsed(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
