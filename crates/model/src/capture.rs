//! What came back, byte for byte.
//!
//! Every byte of an answer goes to the spool before anything looks at it, so that a crash, a cut
//! line or a defect of a parser never costs what was already paid for. The record of a response
//! holds all that is needed to read it again: body, dialect and the parser's version.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::dialect::DialectName;
use crate::model::SourceKind;
use crate::parsed_response::ParsedResponse;

/// Keeps the bytes of an answer while they arrive.
pub trait ResponseSink: Send {
    /// Appends the next bytes. Called before they are parsed.
    ///
    /// # Errors
    /// A failed write ends the request: an answer that cannot be kept is not used.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// An attempt that gave nothing is repeated: what was appended so far is void.
    ///
    /// # Errors
    /// As [`ResponseSink::append`].
    fn restart(&mut self) -> io::Result<()>;
}

impl ResponseSink for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn restart(&mut self) -> io::Result<()> {
        self.clear();
        Ok(())
    }
}

/// A response as received (spec: loom §6), and what was parsed from it while it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct RawResponse {
    pub status: u16,
    /// Headers, names in lower case, those of [`RawResponse::removed_headers`] taken out.
    pub headers: Vec<(String, String)>,
    /// Names of the headers taken out because they carry credentials or cookies.
    pub removed_headers: Vec<String>,
    /// The body as received; of a stream the wire bytes in order. Whole or as far as it came.
    pub body: Bytes,
    /// Whether the body is a stream of events.
    pub streamed: bool,
    pub timings: Timings,
    /// The attempt that gave this response: 1, or more after retries.
    pub attempt: u32,
    /// The dialect of the body.
    pub dialect: DialectName,
    /// Version of the parser that read it first.
    pub parser_version: u32,
    /// What the body says; equal to what [`crate::reparse()`] makes of it.
    pub parsed: ParsedResponse,
    /// What kind of source it came from.
    pub source: SourceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// When the request was sent: milliseconds since the Unix epoch.
    pub started_at: i64,
    /// Milliseconds from then to the head of the response.
    pub head_ms: u64,
    /// Milliseconds from then to the first byte of the body, if one came.
    pub first_byte_ms: Option<u64>,
    /// Milliseconds from then to the end.
    pub total_ms: u64,
}

/// The wall clock, handed in so that tests decide what time it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// A clock that gives milliseconds since the Unix epoch.
    pub fn new(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn system() -> Self {
        Self::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }

    /// Milliseconds since the Unix epoch.
    pub fn now(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
