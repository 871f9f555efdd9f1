//! Anthropic messages: `messages` of Anthropic and of every server that speaks like it.
//!
//! What the API demands beyond its form is met here, so that no caller has to know it: roles alternate, the user
//! comes first, the results of a round of tools open the user's next message, no text is empty, thinking goes
//! back whole and never ends a message, and there is always a limit of output.
//!
//! Instructions stand above the conversation, in `system`. Those that come later have a role of their own where
//! the model takes one ([`Quirks::instructions_inside`]) and they stand behind what the user said; else they are
//! sent in the user's place: text that loses a right on its way does no harm.
//!
//! What a part holds that is nothing but white space is left out, because the API takes no such text.

use crate::anthropic_request::Request;
use crate::dialect::{Dialect, DialectName, Parse, ServerFailure};
use crate::encoded::{EncodeError, EncodedRequest};
use crate::parts::Parts;
use crate::prompt::{Params, Prompt};
use crate::quirks::Quirks;
use crate::{anthropic_error, anthropic_parse};

/// The limit of output that is sent where the caller gives none, in tokens: the API demands one. Every model
/// that is still served can write as much; many can write far more, so a caller that knows the model's limit
/// should give it. A budget of thinking is added to it.
pub const DEFAULT_MAX_TOKENS: u32 = 8192;

/// The messages dialect with what differs between servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anthropic {
    pub quirks: Quirks,
}

impl Dialect for Anthropic {
    fn name(&self) -> DialectName {
        DialectName::AnthropicMessages
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<EncodedRequest, EncodeError> {
        let Prompt::Chat(chat) = prompt else {
            return Err(EncodeError::Unsupported { what: "raw document text in a chat request" });
        };
        let mut parts = Parts::new()?;
        let request = Request::new(&mut parts, model, params, &self.quirks, chat)?;
        parts.request(DialectName::AnthropicMessages, "messages", params.stream, &request)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(streamed)
    }
}

/// A parser for one answer.
pub(crate) fn parser(streamed: bool) -> Box<dyn Parse> {
    anthropic_parse::parser(streamed)
}

/// What an error response says.
pub(crate) fn failure(status: u16, body: &[u8]) -> ServerFailure {
    anthropic_error::from_response(status, body)
}
