//! Seam only: to be written.

use crate::dialect::{DialectName, Parse};

/// A parser for one answer.
pub(crate) fn parser(streamed: bool) -> Box<dyn Parse> {
    crate::openai_parse::parser(DialectName::OpenAiResponses, streamed)
}
