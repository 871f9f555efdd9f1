//! How a key is sent: a fact of the dialect, always in a header.
//!
//! Never in the address, where logs of every machine on the way would keep it.

use egress::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::connection::{ApiKey, SetupError};
use crate::dialect::DialectName;

/// The version of Anthropic's API that is spoken; it is sent with or without a key.
const ANTHROPIC_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

/// What lets a request say what becomes of thinking that does not belong to its conversation
/// ([`crate::quirks::Quirks::thinking_bound`]).
const ANTHROPIC_BINDING: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-beta"),
    HeaderValue::from_static("thinking-binding-controls-2026-08-01"),
);

/// Headers of every request, in lower case.
const ALWAYS: [&str; 5] = ["accept", "content-length", "content-type", "host", "user-agent"];

/// The headers by which a client names itself to a server of one dialect.
#[derive(Debug)]
pub(crate) struct Credential {
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Credential {
    /// The headers for a key.
    ///
    /// # Errors
    /// [`SetupError::Key`] when the key cannot stand in a header.
    pub(crate) fn new(dialect: DialectName, key: Option<&ApiKey>) -> Result<Self, SetupError> {
        let (header, before) = match dialect {
            DialectName::AnthropicMessages => (HeaderName::from_static("x-api-key"), ""),
            DialectName::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
            DialectName::OpenAiChat
            | DialectName::OpenAiCompletions
            | DialectName::OpenAiResponses
            | DialectName::Embedded => (AUTHORIZATION, "Bearer "),
        };
        let mut headers = Vec::new();
        if dialect == DialectName::AnthropicMessages {
            headers.push(ANTHROPIC_VERSION);
        }
        if let Some(key) = key {
            let mut value =
                HeaderValue::try_from(format!("{before}{}", key.0)).map_err(|_| SetupError::Key)?;
            value.set_sensitive(true);
            headers.push((header, value));
        }
        Ok(Self { headers })
    }

    /// Names of all headers of a request, in lower case and order.
    pub(crate) fn header_names(&self) -> Vec<&str> {
        let own = self.headers.iter().map(|(name, _)| name.as_str());
        let mut names: Vec<&str> = own.chain(ALWAYS).collect();
        names.sort_unstable();
        names
    }

    /// With the header that goes with thinking bound to its conversation, where the dialect has one.
    pub(crate) fn binding(mut self, dialect: DialectName, bound: bool) -> Self {
        if bound && dialect == DialectName::AnthropicMessages {
            self.headers.push(ANTHROPIC_BINDING);
        }
        self
    }

    pub(crate) fn put_on(&self, mut request: egress::RequestBuilder) -> egress::RequestBuilder {
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
    }
}
