//! A provider's way of writing requests and answers.
//!
//! A dialect is two pure functions, encode and parse; it opens no connection. Parsing is
//! incremental and never depends on how the bytes were cut into chunks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::encoded::{EncodeError, EncodedRequest};
use crate::event::ModelEvent;
use crate::openai_chat::OpenAiChat;
use crate::openai_completions::OpenAiCompletions;
use crate::prompt::{Params, Prompt};
use crate::{anthropic, gemini, openai_error, openai_parse, openai_responses};

/// The dialects this version speaks. The name is stored with every response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum DialectName {
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    #[serde(rename = "openai_completions")]
    #[schemars(skip)]
    OpenAiCompletions,
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    #[serde(rename = "anthropic_messages")]
    AnthropicMessages,
    /// Gemini's `generateContent`.
    #[serde(rename = "gemini")]
    Gemini,
    /// The embedded engine: a prompt as a list of form and text; answers as those of completions.
    #[serde(rename = "embedded")]
    #[schemars(skip)]
    Embedded,
}

impl DialectName {
    pub const ALL: [Self; 6] = [
        Self::OpenAiChat,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::Embedded,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiCompletions => "openai_completions",
            Self::OpenAiResponses => "openai_responses",
            Self::AnthropicMessages => "anthropic_messages",
            Self::Gemini => "gemini",
            Self::Embedded => "embedded",
        }
    }

    /// Whether servers that speak it may continue raw text as well.
    pub const fn has_completions(self) -> bool {
        !matches!(self, Self::AnthropicMessages | Self::Gemini)
    }

    /// Whether it has a place for sounds.
    pub fn has_sounds(self) -> bool {
        matches!(self, Self::OpenAiChat | Self::Gemini)
    }

    /// A parser for a body in this dialect; `streamed` bodies are server-sent events.
    pub fn parser(self, streamed: bool) -> Box<dyn Parse> {
        match self {
            Self::OpenAiChat => OpenAiChat::default().parser(streamed),
            Self::OpenAiCompletions => OpenAiCompletions::default().parser(streamed),
            Self::OpenAiResponses => openai_responses::parser(streamed),
            Self::AnthropicMessages => anthropic::parser(streamed),
            Self::Gemini => gemini::parser(streamed),
            Self::Embedded => openai_parse::parser(Self::Embedded, streamed),
        }
    }

    /// What an error response of a server in this dialect says.
    pub fn failure(self, status: u16, body: &[u8]) -> ServerFailure {
        match self {
            Self::OpenAiChat | Self::OpenAiCompletions | Self::OpenAiResponses | Self::Embedded => {
                openai_error::from_response(status, body)
            }
            Self::AnthropicMessages => anthropic::failure(status, body),
            Self::Gemini => gemini::failure(status, body),
        }
    }
}

impl fmt::Display for DialectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A dialect this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no dialect is called `{0}`")]
pub struct UnknownDialect(pub String);

impl FromStr for DialectName {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == name)
            .ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

/// Writes requests and reads answers.
pub trait Dialect: Send + Sync {
    fn name(&self) -> DialectName;

    /// The request for `model`, with the range of every part.
    ///
    /// # Errors
    /// When the dialect has no form for something in the prompt, or a parameter is no number.
    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<EncodedRequest, EncodeError>;

    /// A fresh parser for one answer.
    fn parser(&self, streamed: bool) -> Box<dyn Parse>;
}

/// Reads one answer as it arrives.
///
/// The events of a body are the same however it is cut into chunks. After an error, the events
/// already given stay true and every further call gives the same error.
pub trait Parse: Send {
    /// Takes the next bytes and appends what they complete to `events`.
    ///
    /// # Errors
    /// When the bytes are no answer of this dialect, or report a failure of the server.
    fn feed(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError>;

    /// The body has ended.
    ///
    /// # Errors
    /// [`ParseError::Cut`] when it ended too early, and what [`Parse::feed`] may give.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ParseError>;

    /// Whether the answer said that it is complete, so that what follows does not matter.
    fn is_complete(&self) -> bool;
}

/// Why a body could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The bytes are not what the dialect allows.
    #[error("the answer is no {dialect}: {why}")]
    Garbage {
        dialect: DialectName,
        /// What is wrong, with a short excerpt.
        why: String,
    },
    /// A line or event is longer than any server needs ([`crate::sse::MAX_EVENT_BYTES`]).
    #[error("an event of the stream is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The body ended before the answer did.
    #[error("the answer broke off")]
    Cut,
    /// The server reported a failure in the body.
    #[error("{0}")]
    Server(ServerFailure),
}

/// A failure as a server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFailure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The server's message: control characters made visible, at most 2 KB.
    pub message: String,
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The kinds of failure that are answered differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The request is larger than the model's window.
    ContextTooLong,
    /// Too many requests; it may work later.
    RateLimited,
    /// The account is spent; it will not work later.
    QuotaExceeded,
    /// The server has trouble of its own; it may work later.
    Unavailable,
    /// The key is missing, wrong or may not do this.
    Unauthorized,
    /// The model or path does not exist there.
    NotFound,
    Rejected,
}
