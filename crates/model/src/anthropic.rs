//! Seam only: to be written.

use crate::dialect::{DialectName, Parse, ServerFailure};

/// A parser for one answer.
pub(crate) fn parser(streamed: bool) -> Box<dyn Parse> {
    crate::openai_parse::parser(DialectName::AnthropicMessages, streamed)
}

/// What an error response says.
pub(crate) fn failure(status: u16, body: &[u8]) -> ServerFailure {
    crate::openai_error::from_response(status, body)
}
