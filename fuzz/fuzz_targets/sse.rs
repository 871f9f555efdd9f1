//! Server-sent events: the same frames under any chunking, and never more kept than the limit.
//! The first byte says how the rest is cut.
#![no_main]

use drawloom_fuzz::pieces::pieces;
use libfuzzer_sys::fuzz_target;
use model::sse::{Frame, SseReader, TooLong};

const LIMIT: usize = 64;

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first() else { return };
    for limit in [usize::MAX / 2, LIMIT] {
        let (whole, whole_end) = frames(&[bytes], limit);
        let (cut, cut_end) = frames(&pieces(bytes, seed.saturating_add(1)), limit);
        assert_eq!(cut, whole);
        assert_eq!(cut_end, whole_end);
        for frame in whole {
            let (Frame::Data(bytes) | Frame::Stray(bytes)) = frame;
            assert!(bytes.len() <= limit);
        }
    }
});

fn frames(pieces: &[&[u8]], limit: usize) -> (Vec<Frame>, Result<(), TooLong>) {
    let (mut reader, mut frames) = (SseReader::with_limit(limit), Vec::new());
    for piece in pieces {
        if let Err(error) = reader.feed(piece, &mut frames) {
            return (frames, Err(error));
        }
    }
    let end = reader.finish(&mut frames);
    (frames, end)
}
