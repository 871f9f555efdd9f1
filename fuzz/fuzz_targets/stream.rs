//! Answers of servers in every dialect, streamed and whole: the same events and the same end under any chunking,
//! and a stored body reads as it read when it came. The first byte says the dialect, the second how the rest is cut.
#![no_main]

use drawloom_fuzz::pieces::pieces;
use libfuzzer_sys::fuzz_target;
use model::{DialectName, ModelEvent, ParseError, Reply, reparse};

fuzz_target!(|input: &[u8]| {
    let [kind, seed, body @ ..] = input else { return };
    let dialect = match (kind >> 2 & 3, kind & 1) {
        (0, 0) => DialectName::OpenAiChat,
        (0, _) => DialectName::OpenAiCompletions,
        (1, _) => DialectName::AnthropicMessages,
        (2, _) => DialectName::Gemini,
        _ => DialectName::OpenAiResponses,
    };
    let streamed = kind & 2 == 0;
    let (whole, end) = events(dialect, streamed, &[body]);
    let (cut, cut_end) = events(dialect, streamed, &pieces(body, seed.saturating_add(1)));
    assert_eq!(cut, whole);
    assert_eq!(cut_end, end);
    if let Some(second) = whole.iter().skip(1).find(|event| matches!(event, ModelEvent::Start { .. })) {
        panic!("a second beginning: {second:?}");
    }
    let mut reply = Reply::default();
    whole.iter().for_each(|event| reply.apply(event));
    let stored = reparse(dialect, body, streamed);
    assert_eq!((stored.choices, stored.usage, stored.problem), (reply.choices, reply.usage, end.err()));
    // What an error response says is shown to people.
    let failure = dialect.failure(u16::from(*seed) + 400, body);
    assert!(!failure.message.contains(text::terminal::is_unsafe));
    assert!(failure.message.len() <= 4096);
});

fn events(
    dialect: DialectName,
    streamed: bool,
    pieces: &[&[u8]],
) -> (Vec<ModelEvent>, Result<(), ParseError>) {
    let (mut parser, mut events) = (dialect.parser(streamed), Vec::new());
    for piece in pieces {
        if let Err(error) = parser.feed(piece, &mut events) {
            let before = events.len();
            assert_eq!(parser.feed(b"data: {}\n\n", &mut events), Err(error.clone()), "an error stays");
            assert_eq!(events.len(), before, "nothing follows an error");
            return (events, Err(error));
        }
    }
    let end = parser.finish(&mut events);
    (events, end)
}
