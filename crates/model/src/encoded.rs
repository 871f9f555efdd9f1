//! A request as it will be sent: bytes, and which bytes come from which part.
//!
//! The context layer promises that every byte of a request has a source (spec: context §1): where each part lies is
//! known from writing the body, and whatever lies between parts is framing. The check runs before anything is sent.

use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::dialect::DialectName;
use crate::prompt::PartId;

/// Why a prompt cannot be encoded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EncodeError {
    /// The prompt has nothing to answer to.
    #[error("the prompt is empty")]
    Empty,
    /// The dialect or model cannot express something the prompt asks for.
    #[error("{what} is not supported here")]
    Unsupported { what: &'static str },
    /// The model's chat template has no place for the conversation, or fails.
    #[error("the conversation does not fit the model's chat template: {why}")]
    Template { why: String },
    /// A sampling parameter is no number a server could take.
    #[error("{name} is out of range")]
    Parameter { name: &'static str },
    /// A parameter of the provider that the request has itself.
    #[error("the request says {name} itself, so provider_parameters cannot")]
    Member { name: String },
    /// The path it would be sent to leads out of the server's API.
    #[error("the model's name does not fit into an address")]
    Path,
    /// The system gives no random numbers, which the marks of a request are made of.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// Ranges overlap, lie outside the body or cut a character; a defect, caught before sending.
    #[error("part {part} of the request does not lie in its body as it should")]
    Coverage { part: u32 },
}

impl EncodeError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty_prompt",
            Self::Unsupported { .. } => "unsupported",
            Self::Template { .. } => "template_failed",
            Self::Parameter { .. } | Self::Member { .. } => "bad_parameter",
            Self::Path => "bad_path",
            Self::NoRandomness => "no_randomness",
            Self::Coverage { .. } => "coverage",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "write something first",
            Self::Unsupported { .. } => "choose another model, or leave it out",
            Self::Template { .. } => "continue it as raw text, or choose another model",
            Self::Parameter { .. } => "choose a finite number in its range; n is at least 1",
            Self::Member { .. } => "set it by the key of the agent or preset that there is for it",
            Self::Path => "check the model's name",
            Self::NoRandomness => "check /dev/urandom and the limits this program runs in",
            Self::Coverage { .. } => "this is a defect of drawloom: please report it",
        }
    }
}

/// What a range of the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A tool schema: a JSON value.
    Schema,
    System,
    User,
    /// Text sent in the user's place.
    Injected,
    Assistant,
    /// A tool call's name or arguments. Where a dialect writes arguments as a JSON object, the range is that
    /// object, which is its own plain text.
    ToolCall,
    ToolResult,
    /// Document text to be continued.
    Document,
    Prefill,
    /// A picture or a sound: base64.
    Media,
    /// What a provider wants back unchanged: a JSON value or the members of one.
    Opaque,
}

impl PartKind {
    /// Whether its bytes stand inside a JSON string.
    fn in_string(self) -> bool {
        !matches!(self, Self::Schema | Self::Opaque)
    }
}

/// The bytes of one part. A part may have several (a call's name and its arguments).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRange {
    pub part: PartId,
    pub kind: PartKind,
    /// Where it lies in the body, in bytes. Inside a JSON string without its quotes, except for
    /// [`PartKind::Schema`], [`PartKind::Opaque`] and arguments written as an object, which are JSON themselves.
    pub bytes: Range<usize>,
}

/// One piece of a body: a part's, or the framing between parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoveredRange<'a> {
    Part(&'a PartRange),
    /// Bytes of the form around the parts.
    Framing(Range<usize>),
}

/// A request ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRequest {
    dialect: DialectName,
    path: String,
    body: Bytes,
    ranges: Vec<PartRange>,
    stream: bool,
}

impl EncodedRequest {
    /// A request from its bytes: just encoded, or read back from a manifest to be sent again.
    ///
    /// # Errors
    /// [`EncodeError::Coverage`] if a range does not lie in the body, overlaps the one before it,
    /// or does not hold text.
    pub fn new(
        dialect: DialectName,
        path: impl Into<String>,
        body: Bytes,
        ranges: Vec<PartRange>,
        stream: bool,
    ) -> Result<Self, EncodeError> {
        let mut at = 0;
        for range in &ranges {
            let ordered = range.bytes.start >= at && range.bytes.start <= range.bytes.end;
            let text = body.get(range.bytes.clone()).is_some_and(|b| std::str::from_utf8(b).is_ok());
            if !ordered || !text {
                return Err(EncodeError::Coverage { part: range.part.0 });
            }
            at = range.bytes.end;
        }
        Ok(Self { dialect, path: path.into(), body, ranges, stream })
    }

    /// The dialect the body is written in.
    pub fn dialect(&self) -> DialectName {
        self.dialect
    }

    /// Where it is sent, below the version root of the API: `chat/completions`.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The ranges of the parts, in order of the body.
    pub fn ranges(&self) -> &[PartRange] {
        &self.ranges
    }

    /// Whether a streamed answer is asked for.
    pub fn stream(&self) -> bool {
        self.stream
    }

    /// Parts and framing from the first byte to the last, without gap or overlap.
    pub fn cover(&self) -> Vec<CoveredRange<'_>> {
        let mut cover = Vec::with_capacity(self.ranges.len() * 2 + 1);
        let mut at = 0;
        for range in &self.ranges {
            if range.bytes.start > at {
                cover.push(CoveredRange::Framing(at..range.bytes.start));
            }
            cover.push(CoveredRange::Part(range));
            at = range.bytes.end;
        }
        if at < self.body.len() {
            cover.push(CoveredRange::Framing(at..self.body.len()));
        }
        cover
    }

    /// The plain text of a range: what the model reads, without the escapes of JSON.
    pub fn plain_text(&self, range: &PartRange) -> String {
        let Some(bytes) = self.body.get(range.bytes.clone()) else { return String::new() };
        if range.kind.in_string() {
            let mut quoted = Vec::with_capacity(bytes.len() + 2);
            quoted.push(b'"');
            quoted.extend_from_slice(bytes);
            quoted.push(b'"');
            if let Ok(text) = serde_json::from_slice(&quoted) {
                return text;
            }
        }
        String::from_utf8_lossy(bytes).into_owned()
    }
}
