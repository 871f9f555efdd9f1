//! How the bytes of a request are kept: what is new in them (spec: context §1 *Body*).
//!
//! Requests of one session share a long beginning and a short end. A body is stored as the difference to the
//! one before it, with a full copy every [`MAX_HOPS`], so that a turn costs what is new in it and reading one
//! back touches a bounded number of rows.

use loom::Digest;
use serde::{Deserialize, Serialize};

/// Deltas that may follow one another before a full copy is kept.
pub const MAX_HOPS: u32 = 32;

/// How a body is stored; part of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBody {
    /// SHA-256 of the whole body.
    pub sha256: Digest,
    /// Its size in bytes.
    pub len: u64,
    /// The middle, or all of it, under this digest in the store.
    pub middle: Digest,
    /// What it shares with an earlier body; none for a full copy.
    pub delta: Option<BodyDelta>,
}

/// What a body shares with an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyDelta {
    /// The manifest of the request whose body is the base.
    pub base: Digest,
    /// Bytes shared at the beginning.
    pub prefix: u64,
    /// Bytes shared at the end.
    pub suffix: u64,
    /// Deltas between this body and a full copy.
    pub hops: u32,
}

/// An earlier request of the session.
#[derive(Debug, Clone, Copy)]
pub struct EarlierRequest<'a> {
    pub manifest: Digest,
    /// How its body is stored.
    pub stored: &'a StoredBody,
    pub body: &'a [u8],
}

/// A body that does not fit together from its parts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored request body does not fit its digest {expected}: run `drawloom store check`")]
pub struct BodyMismatch {
    /// The digest it should have.
    pub expected: Digest,
}

/// Stores a body against an earlier one, if that saves anything. Returns the description and the bytes to be
/// stored under [`StoredBody::middle`].
pub fn store<'b>(body: &'b [u8], base: Option<EarlierRequest<'_>>) -> (StoredBody, &'b [u8]) {
    let delta = base.and_then(|base| {
        let hops = base.stored.delta.as_ref().map_or(0, |delta| delta.hops) + 1;
        let prefix = body.iter().zip(base.body).take_while(|(a, b)| a == b).count();
        let rest = body.len().min(base.body.len()) - prefix;
        let suffix =
            body.iter().rev().zip(base.body.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        let shares = prefix + suffix > body.len() / 4;
        (hops < MAX_HOPS && shares).then_some(BodyDelta {
            base: base.manifest,
            prefix: prefix as u64,
            suffix: suffix as u64,
            hops,
        })
    });
    let middle = match &delta {
        None => body,
        Some(delta) => &body[delta.prefix as usize..body.len() - delta.suffix as usize],
    };
    let stored =
        StoredBody { sha256: Digest::of(body), len: body.len() as u64, middle: Digest::of(middle), delta };
    (stored, middle)
}

/// Puts a body together again. `base` is the body its delta names.
///
/// # Errors
/// [`BodyMismatch`] when the result does not have the digest it should.
pub fn rebuild(stored: &StoredBody, middle: &[u8], base: Option<&[u8]>) -> Result<Vec<u8>, BodyMismatch> {
    let mismatch = BodyMismatch { expected: stored.sha256 };
    let body = match (&stored.delta, base) {
        (None, _) => middle.to_vec(),
        (Some(delta), Some(base)) => {
            let prefix = usize::try_from(delta.prefix).ok().and_then(|len| base.get(..len));
            let from = base.len().checked_sub(usize::try_from(delta.suffix).unwrap_or(usize::MAX));
            let suffix = from.and_then(|from| base.get(from..));
            let (Some(prefix), Some(suffix)) = (prefix, suffix) else { return Err(mismatch) };
            [prefix, middle, suffix].concat()
        }
        (Some(_), None) => return Err(mismatch),
    };
    if Digest::of(&body) == stored.sha256 { Ok(body) } else { Err(mismatch) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_body_comes_back_byte_for_byte(bodies in prop::collection::vec("[ab]{0,40}", 1..60)) {
            let mut last: Option<(Digest, StoredBody, Vec<u8>)> = None;
            for (turn, body) in bodies.iter().enumerate() {
                let base = last.as_ref().map(|(manifest, stored, body)| EarlierRequest { manifest: *manifest, stored, body });
                let (stored, middle) = store(body.as_bytes(), base);
                let rebuilt = rebuild(&stored, middle, last.as_ref().map(|(_, _, body)| body.as_slice())).unwrap();
                prop_assert_eq!(&rebuilt, body.as_bytes());
                prop_assert!(stored.delta.as_ref().is_none_or(|delta| delta.hops < MAX_HOPS));
                last = Some((Digest::of(&turn.to_be_bytes()), stored, rebuilt));
            }
        }
    }

    #[test]
    fn a_turn_costs_what_is_new_in_it() {
        let first = b"{\"prompt\":\"once upon a time\"}";
        let (stored, _) = store(first, None);
        let base = EarlierRequest { manifest: Digest::ZERO, stored: &stored, body: first };
        let (_, middle) = store(b"{\"prompt\":\"once upon a time it rained\"}", Some(base));
        assert_eq!(middle, b" it rained");
    }

    #[test]
    fn a_wrong_middle_is_found() {
        let (stored, middle) = store(b"abcdef", None);
        let mut wrong = middle.to_vec();
        wrong[0] ^= 1;
        assert!(rebuild(&stored, &wrong, None).is_err());
    }
}
