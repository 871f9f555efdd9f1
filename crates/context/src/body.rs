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
    /// Size of the whole body, in bytes.
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

/// Puts a body together again from its middle and those of the bodies it rests on, the full copy last.
///
/// # Errors
/// [`BodyMismatch`] when the result does not have the digest it should: what lies between is not hashed.
pub fn rebuild(parts: &[(&StoredBody, Vec<u8>)]) -> Result<Vec<u8>, BodyMismatch> {
    let mut body = Vec::new();
    for (stored, middle) in parts.iter().rev() {
        body = match &stored.delta {
            None => middle.clone(),
            Some(delta) => {
                let prefix = usize::try_from(delta.prefix).ok().and_then(|len| body.get(..len));
                let from = body.len().checked_sub(usize::try_from(delta.suffix).unwrap_or(usize::MAX));
                let suffix = from.and_then(|from| body.get(from..));
                let parts = prefix.zip(suffix).ok_or(BodyMismatch { expected: stored.sha256 })?;
                [parts.0, middle, parts.1].concat()
            }
        };
    }
    match parts.first() {
        Some((stored, _)) if Digest::of(&body) != stored.sha256 => {
            Err(BodyMismatch { expected: stored.sha256 })
        }
        _ => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_body_comes_back_byte_for_byte(bodies in prop::collection::vec("[ab]{0,40}", 1..60)) {
            // The newest first.
            let mut chain: Vec<(StoredBody, Vec<u8>)> = Vec::new();
            let mut last = None;
            for (turn, body) in bodies.iter().enumerate() {
                let base = last.zip(chain.first());
                let base = base.map(|((manifest, body), (stored, _))| EarlierRequest { manifest, stored, body });
                let (stored, middle) = store(body.as_bytes(), base);
                let middle = middle.to_vec();
                if stored.delta.is_none() {
                    chain.clear();
                }
                chain.insert(0, (stored, middle));
                let parts: Vec<_> = chain.iter().map(|(stored, middle)| (stored, middle.clone())).collect();
                prop_assert_eq!(&rebuild(&parts).unwrap(), body.as_bytes());
                prop_assert!(chain.len() <= MAX_HOPS as usize);
                last = Some((Digest::of(&turn.to_be_bytes()), body.as_bytes()));
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
        let first = b"{\"prompt\":\"once upon a time\"}";
        let (full, whole) = store(first, None);
        let base = EarlierRequest { manifest: Digest::ZERO, stored: &full, body: first };
        let (delta, middle) = store(b"{\"prompt\":\"once upon a time it rained\"}", Some(base));
        let parts = [(&delta, middle.to_vec()), (&full, whole.to_vec())];
        assert!(rebuild(&parts).is_ok(), "the control");
        for part in 0..parts.len() {
            let mut wrong = parts.clone();
            wrong[part].1[0] ^= 1;
            assert!(rebuild(&wrong).is_err(), "{part}");
        }
        assert!(rebuild(&parts[..1]).is_err(), "without what it rests on");
    }
}
