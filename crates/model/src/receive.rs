//! Takes one response in: spool first, then parser, then listener.
//!
//! The one path on which answers arrive, whether from a socket or from the script. It knows the
//! four ways an answer may fail to end: cut, standing still, garbage, stopped from outside.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use crate::cancel::Cancel;
use crate::capture::{RawResponse, ResponseSink, Timings};
use crate::dialect::{DialectName, Parse, ParseError};
use crate::error::ModelError;
use crate::event::{EventListener, ModelEvent};
use crate::headers::KeptHeaders;
use crate::model::{Exchange, SendPermit, SourceKind};
use crate::parsed_response::{PARSER_VERSION, ParsedResponse};
use crate::reply::Reply;
use crate::retry_hint::retry_hint;

/// The largest body that is taken in, in bytes. Far above any answer; it bounds the memory.
const MAX_BODY_BYTES: usize = 128 * 1024 * 1024;
/// The largest error body that is taken in, in bytes.
const MAX_ERROR_BYTES: usize = 1024 * 1024;
/// After the answer has said that it is complete, its tail is waited for this long.
const TAIL: Duration = Duration::from_millis(250);

/// Bytes that count as progress where nothing of an answer can be read from them yet.
const PROGRESS_BYTES: usize = 64 * 1024;

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// From the request to the first byte of the body: a model may read a long prompt first.
    pub first_byte: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
}

impl Timeouts {
    /// From the request to the first content of the answer, while the server sends signs of life: comments, pings, a
    /// byte now and then.
    fn first_content(&self) -> Duration {
        self.first_byte.saturating_mul(2)
    }

    /// Between two contents of the answer, while the server sends signs of life: a model may think unseen.
    fn stall(&self) -> Duration {
        self.idle.saturating_mul(5)
    }
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
    pub(crate) spool: &'a mut dyn ResponseSink,
    pub(crate) listener: &'a mut dyn EventListener,
    pub(crate) cancel: Cancel,
    pub(crate) permit: Option<&'a dyn SendPermit>,
    /// Whether anything of the answer itself has reached the listener.
    pub(crate) used: bool,
}

impl<'a> Io<'a> {
    pub(crate) fn new(exchange: Exchange<'a>) -> Self {
        let Exchange { spool, listener, cancel, permit } = exchange;
        Self { spool, listener, cancel, permit, used: false }
    }

    /// Hands events to the listener. Whether the answer goes on by them: there was content, anything but a beginning
    /// and counts, or the server has read more of the prompt.
    fn pass_on(&mut self, events: Vec<ModelEvent>, reply: &mut Reply) -> bool {
        let mut goes_on = false;
        for event in events {
            let reads = matches!(event, ModelEvent::PromptRead { .. });
            let counts = matches!(event, ModelEvent::Usage(_) | ModelEvent::InterimUsage(_));
            let content = !(reads || counts || matches!(event, ModelEvent::Start { .. }));
            self.used |= content;
            goes_on |= reads || content;
            reply.apply(&event);
            self.listener.event(event);
        }
        goes_on
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
    let mut incoming = ResponseReader {
        record: ResponseRecord { head, sent, streamed, head_ms: elapsed(sent.since), first_byte_ms: None },
        body: Vec::new(),
        parser: (!failed).then(|| sent.dialect.parser(streamed)),
        reply: Reply::default(),
        problem: None,
        progress: None,
        complete_at: None,
    };
    let end = incoming.read(wire, timeouts, io).await;
    let end = incoming.end(end, io);
    let parsed = ParsedResponse::new(incoming.reply, incoming.problem);
    let mut response = incoming.record.response(incoming.body, parsed);
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
        End::Cancelled => Err(ModelError::Cancelled { response: Some(response.into()), refused: false }),
        End::NoContent(after) => Err(ModelError::FirstByteTimeout { after, response: Some(response.into()) }),
        End::StoodStill(after) => Err(ModelError::IdleTimeout { after, response: response.into() }),
        End::Broken(why) => Err(ModelError::Cut { why, response: Some(response.into()) }),
        End::Spool(cause) => Err(ModelError::Spool { cause, response: response.into() }),
        End::TooLarge => Err(ModelError::Garbage {
            problem: format!("the answer is longer than {MAX_BODY_BYTES} bytes"),
            response: response.into(),
        }),
        End::Parse(problem) => Err(ModelError::from_parse(problem, response.into())),
    }
}

enum End {
    Eof,
    Complete,
    Cancelled,
    /// Nothing of the answer came in this time.
    NoContent(Duration),
    /// The answer did not go on in this time.
    StoodStill(Duration),
    Broken(String),
    Spool(std::io::Error),
    TooLarge,
    Parse(ParseError),
}

struct ResponseReader {
    record: ResponseRecord,
    body: Vec<u8>,
    /// `None` for an error response, which is read as a whole.
    parser: Option<Box<dyn Parse>>,
    /// What the parser has made of the body.
    reply: Reply,
    problem: Option<ParseError>,
    /// When the answer last went on, and how many bytes there were then.
    progress: Option<(Instant, usize)>,
    /// When the answer said that it is complete.
    complete_at: Option<Instant>,
}

impl ResponseReader {
    async fn read(&mut self, wire: &mut dyn Wire, timeouts: Timeouts, io: &mut Io<'_>) -> End {
        let limit = if self.parser.is_some() { MAX_BODY_BYTES } else { MAX_ERROR_BYTES };
        loop {
            if self.complete_at.is_none() && self.parser.as_ref().is_some_and(|parser| parser.is_complete()) {
                self.complete_at = Some(Instant::now());
            }
            let (deadline, late) = self.deadline(timeouts);
            let piece = tokio::select! {
                biased;
                () = io.cancel.cancelled() => return End::Cancelled,
                piece = tokio::time::timeout_at(deadline, wire.next()) => piece,
            };
            let piece = match piece {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => return End::Eof,
                Ok(Err(why)) => return End::Broken(why),
                Err(_) => return late,
            };
            if self.body.len() + piece.len() > limit {
                return End::TooLarge;
            }
            if let Err(cause) = io.spool.append(&piece) {
                return End::Spool(cause);
            }
            self.record.first_byte_ms.get_or_insert_with(|| elapsed(self.record.sent.since));
            self.body.extend_from_slice(&piece);
            let mut goes_on = !self.record.streamed && self.progress.is_none();
            if let Some(parser) = &mut self.parser {
                let mut events = Vec::new();
                let fed = parser.feed(&piece, &mut events);
                goes_on |= io.pass_on(events, &mut self.reply);
                if let Err(problem) = fed {
                    return End::Parse(problem);
                }
            }
            let before = self.progress.map_or(0, |(_, bytes)| bytes);
            if goes_on || self.body.len() - before >= PROGRESS_BYTES {
                self.progress = Some((Instant::now(), self.body.len()));
            }
        }
    }

    /// Lets the parser end, however reading ended: so the listener has heard exactly what reading
    /// the stored body again gives. An answer that turns out complete stays so, whatever its
    /// connection did afterwards.
    fn end(&mut self, end: End, io: &mut Io<'_>) -> End {
        let Some(parser) = &mut self.parser else {
            return if matches!(end, End::Eof | End::TooLarge) { End::Complete } else { end };
        };
        let mut events = Vec::new();
        let finished = parser.finish(&mut events);
        io.pass_on(events, &mut self.reply);
        self.problem = finished.as_ref().err().cloned();
        match (end, finished) {
            (end @ (End::Parse(_) | End::Spool(_) | End::TooLarge), _) => end,
            (_, Ok(())) => End::Complete,
            (End::Eof, Err(problem)) => End::Parse(problem),
            (end, Err(_)) => end,
        }
    }

    /// Until when the next piece is waited for, and what it is if none comes.
    fn deadline(&self, timeouts: Timeouts) -> (Instant, End) {
        let since = self.record.sent.since;
        if let Some(at) = self.complete_at {
            return (at + TAIL, End::Complete);
        }
        if self.body.is_empty() {
            return (since + timeouts.first_byte, End::NoContent(timeouts.first_byte));
        }
        let silent = (Instant::now() + timeouts.idle, End::StoodStill(timeouts.idle));
        let (limit, after) = match self.progress {
            Some((at, _)) => (at + timeouts.stall(), timeouts.stall()),
            None => (since + timeouts.first_content(), timeouts.first_content()),
        };
        if silent.0 <= limit { silent } else { (limit, End::StoodStill(after)) }
    }
}

struct ResponseRecord {
    head: Head,
    sent: Sent,
    streamed: bool,
    head_ms: u64,
    first_byte_ms: Option<u64>,
}

impl ResponseRecord {
    fn response(&mut self, body: Vec<u8>, parsed: ParsedResponse) -> RawResponse {
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
            parsed,
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

#[cfg(test)]
mod tests;
