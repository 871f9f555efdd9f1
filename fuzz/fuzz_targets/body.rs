//! Stored request bodies: each comes back byte for byte, and a description that lies is refused.
#![no_main]

use arbitrary::Arbitrary;
use context::body::{BodyDelta, EarlierRequest, MAX_HOPS, StoredBody, rebuild, store};
use libfuzzer_sys::fuzz_target;
use loom::Digest;

#[derive(Arbitrary, Debug)]
struct Input {
    bodies: Vec<Body>,
    lie: (u64, u64, u32),
    middle: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Body {
    New(Vec<u8>),
    /// The last one with a piece put in at its end, or a byte changed.
    Grown(Vec<u8>),
    Changed(u16, u8),
}

fuzz_target!(|input: Input| {
    let mut last: Option<(Digest, StoredBody, Vec<u8>)> = None;
    // Those that a body rests on, the newest first, with their middles.
    let mut chain: Vec<(StoredBody, Vec<u8>)> = Vec::new();
    for (turn, body) in input.bodies.into_iter().take(80).enumerate() {
        let before = last.as_ref().map(|(_, _, body)| body.clone()).unwrap_or_default();
        let body = match body {
            Body::New(mut bytes) => {
                bytes.truncate(400);
                bytes
            }
            Body::Grown(bytes) => [before.as_slice(), &bytes[..bytes.len().min(40)]].concat(),
            Body::Changed(at, byte) => {
                let mut body = before.clone();
                let length = body.len().max(1);
                if let Some(place) = body.get_mut(usize::from(at) % length) {
                    *place = byte;
                }
                body
            }
        };
        let base = last.as_ref().map(|(manifest, stored, body)| EarlierRequest {
            manifest: *manifest,
            stored,
            body,
        });
        let (stored, middle) = store(&body, base);
        assert!(stored.delta.as_ref().is_none_or(|delta| delta.hops < MAX_HOPS));
        assert_eq!((stored.len, stored.middle), (body.len() as u64, Digest::of(middle)));
        if stored.delta.is_none() {
            chain.clear();
        }
        chain.insert(0, (stored.clone(), middle.to_vec()));
        let parts: Vec<_> = chain.iter().map(|(stored, middle)| (stored, middle.clone())).collect();
        assert_eq!(rebuild(&parts).expect("what was stored"), body);
        let lie = StoredBody {
            delta: Some(BodyDelta {
                base: Digest::ZERO,
                prefix: input.lie.0,
                suffix: input.lie.1,
                hops: input.lie.2,
            }),
            ..stored.clone()
        };
        let whole = StoredBody { delta: None, ..stored.clone() };
        if let Ok(told) = rebuild(&[(&lie, input.middle.clone()), (&whole, before)]) {
            assert_eq!(told, body, "only the body itself has its digest");
        }
        last = Some((Digest::of(&turn.to_be_bytes()), stored, body));
    }
});
