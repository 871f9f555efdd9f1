//! How a model call fails.
//!
//! The caller decides by type, never by text: a full window is trimmed, a cut stream keeps its
//! partial answer, a spent script falls back. What was received is in the error.

use std::io;
use std::time::Duration;

use crate::capture::RawResponse;
use crate::dialect::{DialectName, FailureKind, ParseError, ServerFailure};
use crate::encoded::EncodeError;

/// Why a model call gave no complete answer.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No connection could be made.
    #[error("cannot reach {host}: {why}")]
    Connect {
        host: String,
        why: String,
        /// Whether the host is there and nothing listens.
        refused: bool,
    },
    /// No byte of an answer came in time.
    #[error("no answer within {} s", .after.as_secs_f64())]
    FirstByteTimeout {
        /// How long it was waited.
        after: Duration,
        /// The head of the response, if that came.
        response: Option<Box<RawResponse>>,
    },
    #[error("the answer paused for {} s", .after.as_secs_f64())]
    IdleTimeout {
        /// How long it was waited.
        after: Duration,
        response: Box<RawResponse>,
    },
    /// The connection broke before the answer was complete.
    #[error("the answer broke off: {why}")]
    Cut {
        /// What is known of the reason.
        why: String,
        /// What came until then; `None` if nothing did.
        response: Option<Box<RawResponse>>,
    },
    /// What came is no answer of the dialect.
    #[error("{problem}")]
    Garbage {
        /// What is wrong with it.
        problem: String,
        response: Box<RawResponse>,
    },
    /// The server refused or failed.
    #[error("the server answered {status}: {failure}")]
    Server {
        /// HTTP status; 200 when the failure came in mid-stream.
        status: u16,
        failure: ServerFailure,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        response: Box<RawResponse>,
    },
    /// The request was stopped from outside.
    #[error("stopped")]
    Cancelled {
        response: Option<Box<RawResponse>>,
        /// Whether every attempt was turned away, and the next one waited: no answer was begun.
        refused: bool,
    },
    /// What the request holds was withdrawn while it waited: it was not sent, or not repeated.
    #[error("the request was not sent: a text of it was withdrawn while it waited")]
    Withdrawn {
        /// What came of the attempt before.
        response: Option<Box<RawResponse>>,
    },
    /// The answer could not be kept.
    #[error("the answer could not be kept: {cause}")]
    Spool { cause: io::Error, response: Box<RawResponse> },
    /// The request cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The script has no line left for this call.
    #[error("the script {file} has no line left for a call of kind `{purpose}`")]
    ScriptExhausted {
        file: String,
        /// What the call was for.
        purpose: &'static str,
    },
    /// The request does not hold what the script expects.
    #[error("{file}:{line}: the request does not hold what is expected: {difference}")]
    ExpectFailed {
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is missing and what stands in its place.
        difference: String,
    },
}

impl ModelError {
    /// A stable name of the error, as the command line shows it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Connect { refused: true, .. } => "connection_refused",
            Self::Connect { .. } => "connection_failed",
            Self::FirstByteTimeout { .. } => "first_byte_timeout",
            Self::IdleTimeout { .. } => "idle_timeout",
            Self::Cut { .. } => "stream_cut",
            Self::Garbage { .. } => "garbage",
            Self::Server { failure, .. } => match failure.kind {
                FailureKind::ContextTooLong => "context_too_long",
                FailureKind::RateLimited => "rate_limited",
                FailureKind::QuotaExceeded => "quota_exceeded",
                FailureKind::Unavailable => "server_unavailable",
                FailureKind::Unauthorized => "unauthorized",
                FailureKind::NotFound => "model_not_found",
                FailureKind::Rejected => "request_rejected",
            },
            Self::Cancelled { .. } => "cancelled",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Spool { .. } => "spool_failed",
            Self::Encode(error) => error.code(),
            Self::ScriptExhausted { .. } => "script_exhausted",
            Self::ExpectFailed { .. } => "expect_failed",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Connect { refused: true, .. } => "start the server, or correct its base URL",
            Self::Connect { .. } => "check the base URL and the network",
            Self::FirstByteTimeout { .. } => "try again, or raise the provider's first_byte_timeout",
            Self::IdleTimeout { .. } => "ask again to retry, or raise the provider's idle_timeout",
            Self::Cut { .. } | Self::Cancelled { .. } => "ask again to retry",
            Self::Withdrawn { .. } => "ask again: it is put together anew, without that text",
            Self::Garbage { .. } => "check that the base URL is that of the provider's API",
            Self::Server { failure, response, .. } => match failure.kind {
                FailureKind::ContextTooLong => "shorten the request, or choose a model with a larger window",
                FailureKind::RateLimited | FailureKind::Unavailable => "wait a while and try again",
                FailureKind::QuotaExceeded => "check the account at the provider",
                FailureKind::Unauthorized => {
                    "check the provider's API key: its variable of the environment, or keys.toml in the home"
                }
                FailureKind::NotFound if response.dialect == DialectName::OpenAiCompletions => {
                    "a document is continued at /v1/completions: if the server only chats, `drawloom config set \
                     providers.NAME.completion_endpoint false`; else check the model's name and the base URL"
                }
                FailureKind::NotFound => "check the model's name and the base URL",
                FailureKind::Rejected => "read the server's message; the request is kept in its manifest",
            },
            Self::Spool { .. } => "free some space, or check that the home is writable",
            Self::Encode(error) => error.hint(),
            Self::ScriptExhausted { .. } => "add lines to the script, or set \"loop\": true in its last line",
            Self::ExpectFailed { .. } => "compare the line's `expect` with the request",
        }
    }

    /// Takes the response out, as far as it came. Of one that always has a response an empty one stays.
    pub fn take_response(&mut self) -> Option<RawResponse> {
        match self {
            Self::FirstByteTimeout { response, .. }
            | Self::Cut { response, .. }
            | Self::Withdrawn { response }
            | Self::Cancelled { response, .. } => response.take().map(|response| *response),
            Self::IdleTimeout { response, .. }
            | Self::Garbage { response, .. }
            | Self::Server { response, .. }
            | Self::Spool { response, .. } => {
                let rest = RawResponse {
                    headers: response.headers.clone(),
                    removed_headers: response.removed_headers.clone(),
                    body: bytes::Bytes::new(),
                    parsed: crate::ParsedResponse::default(),
                    ..**response
                };
                Some(std::mem::replace(response, rest))
            }
            Self::Connect { .. }
            | Self::Encode(_)
            | Self::ScriptExhausted { .. }
            | Self::ExpectFailed { .. } => None,
        }
    }

    /// The response as far as it came.
    pub fn response(&self) -> Option<&RawResponse> {
        match self {
            Self::FirstByteTimeout { response, .. }
            | Self::Cut { response, .. }
            | Self::Withdrawn { response }
            | Self::Cancelled { response, .. } => response.as_deref(),
            Self::IdleTimeout { response, .. }
            | Self::Garbage { response, .. }
            | Self::Server { response, .. }
            | Self::Spool { response, .. } => Some(response),
            Self::Connect { .. }
            | Self::Encode(_)
            | Self::ScriptExhausted { .. }
            | Self::ExpectFailed { .. } => None,
        }
    }

    /// Whether the same request may succeed when it is sent again (spec: agent §2), as long as
    /// nothing of the answer was used.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Cut { .. } => true,
            Self::Server { failure, .. } => {
                matches!(failure.kind, FailureKind::RateLimited | FailureKind::Unavailable)
            }
            _ => false,
        }
    }

    /// Whether the reason lies with the model or the way to it, so that another one may answer the same request: not
    /// there, overloaded, turning us away, out of quota. What is wrong with the request is wrong everywhere.
    pub fn is_of_the_model(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::FirstByteTimeout { .. }
            | Self::IdleTimeout { .. }
            | Self::Cut { .. } => true,
            Self::Server { failure, .. } => matches!(
                failure.kind,
                FailureKind::RateLimited | FailureKind::Unavailable | FailureKind::QuotaExceeded
            ),
            _ => false,
        }
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Server { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(crate) fn from_parse(problem: ParseError, response: Box<RawResponse>) -> Self {
        match problem {
            ParseError::Cut => {
                Self::Cut { why: "it ended before it was complete".to_owned(), response: Some(response) }
            }
            ParseError::Server(failure) => {
                Self::Server { status: response.status, failure, retry_after: None, response }
            }
            garbage @ (ParseError::Garbage { .. } | ParseError::TooLong { .. }) => {
                Self::Garbage { problem: garbage.to_string(), response }
            }
        }
    }
}
