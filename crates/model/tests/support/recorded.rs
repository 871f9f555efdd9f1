//! Recorded answers of servers, and how they are read.
#![allow(dead_code, reason = "each of those that read them needs a part of it")]

use crate::folded::folded;
use drawloom_model::{Choice, DialectName, ModelEvent, ParseError, Reply, ToolCall};

pub(crate) type Outcome = (Vec<ModelEvent>, Result<(), ParseError>);

/// The bytes of a recorded answer.
pub(crate) fn wire(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/wire/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The dialect an answer was recorded in, by its name.
pub(crate) fn dialect(name: &str) -> DialectName {
    match name.split('_').next() {
        Some("completion") => DialectName::OpenAiCompletions,
        Some("responses") => DialectName::OpenAiResponses,
        Some("anthropic") => DialectName::AnthropicMessages,
        Some("gemini") => DialectName::Gemini,
        _ => DialectName::OpenAiChat,
    }
}

/// What is heard of an answer that comes in pieces. After an error nothing is.
pub(crate) fn parse_pieces<'a>(name: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut parser = dialect(name).parser(name.ends_with(".sse"));
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = parser.feed(piece, &mut events) {
            let heard = events.len();
            assert_eq!(parser.feed(b"data: [DONE]\n\n", &mut events), Err(error.clone()), "{name}");
            assert_eq!(events.len(), heard, "{name}: nothing follows an error");
            return (events, Err(error));
        }
    }
    let end = parser.finish(&mut events);
    (events, end)
}

/// What is heard of a recorded answer.
pub(crate) fn parse(name: &str) -> Outcome {
    parse_pieces(name, [wire(name).as_slice()])
}

/// A recorded answer that is whole.
pub(crate) fn reply(name: &str) -> Reply {
    let (events, end) = parse(name);
    assert_eq!(end, Ok(()), "{name}");
    folded(&events)
}

/// The one choice of a recorded answer.
pub(crate) fn choice(name: &str) -> Choice {
    let mut choices = reply(name).choices;
    assert_eq!(choices.len(), 1, "{name}");
    choices.remove(0)
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}
