//! What a response says.
//!
//! It is parsed once, while it arrives. A stored response is parsed again when it is read: `verify` compares what a node
//! says with what its stored response says (spec: loom §6). It uses the very parser that made the node; the version
//! tells a difference of parsers from a forgery.

use crate::dialect::{DialectName, ParseError};
use crate::event::TokenUsage;
use crate::reply::{Choice, Reply};

/// Version of all parsers; raised whenever the same bytes give another text, tool call or finish.
pub const PARSER_VERSION: u32 = 2;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedResponse {
    /// The choices, by index; of an interrupted response as far as it came.
    pub choices: Vec<Choice>,
    /// Token counts, where the server gave them.
    pub usage: Option<TokenUsage>,
    /// Why the body does not reach its end, if it does not.
    pub problem: Option<ParseError>,
}

impl ParsedResponse {
    pub(crate) fn new(reply: Reply, problem: Option<ParseError>) -> Self {
        Self { choices: reply.choices, usage: reply.usage, problem }
    }
}

/// Parses a stored body in its dialect. `streamed` as recorded with the response.
pub fn reparse(dialect: DialectName, body: &[u8], streamed: bool) -> ParsedResponse {
    let mut parser = dialect.parser(streamed);
    let mut events = Vec::new();
    let problem = parser.feed(body, &mut events).and_then(|()| parser.finish(&mut events)).err();
    ParsedResponse::new(Reply::from_events(&events), problem)
}
