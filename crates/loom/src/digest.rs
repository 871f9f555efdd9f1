//! SHA-256 digests, and the additive digest of a path.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::id::PositionId;

/// A SHA-256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// All zero: the `prev` of the first operation record.
    pub const ZERO: Self = Self([0; 32]);

    /// SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::taken(&digest(&SHA256, bytes))
    }

    /// SHA-256 over length-prefixed parts behind a domain, so that no two lists of parts share an input.
    pub(crate) fn of_parts(domain: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = DigestWriter::default();
        for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.digest()
    }

    fn taken(taken: &ring::digest::Digest) -> Self {
        let mut digest = Self::ZERO;
        digest.0.copy_from_slice(taken.as_ref());
        digest
    }
}

/// SHA-256 of parts that come one after another.
pub(crate) struct DigestWriter(Context);

impl Default for DigestWriter {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl DigestWriter {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn digest(self) -> Digest {
        Digest::taken(&self.0.finish())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 digest: it has 64 hexadecimal digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;
    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| NotADigest)?;
        bytes.try_into().map(Self).map_err(|_| NotADigest)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What stands on a stretch of a path, as a sum modulo 2¹²⁸ (spec: loom §3 *Drift*).
///
/// A sum, not a chain: one edit moves it by one difference, and the digest of a stretch is the difference of
/// two sums. It finds drift; the proof is the chain hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PathDigest(pub u128);

impl PathDigest {
    /// The term of one text at one position: the first 16 bytes of SHA-256(position ‖ folded text).
    pub fn term(position: PositionId, text: &str) -> Self {
        let mut hasher = DigestWriter::default();
        hasher.update(&position.to_bytes());
        hasher.update(text::fold::folded(text).as_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.digest().0[..16]);
        Self(u128::from_be_bytes(first))
    }

    /// `self + other`, modulo 2¹²⁸.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// `self - other`, modulo 2¹²⁸.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl fmt::Display for PathDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for PathDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathDigest({self})")
    }
}

impl Serialize for PathDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PathDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_apart_by_their_lengths() {
        assert_ne!(Digest::of_parts("d", &[b"ab", b"c"]), Digest::of_parts("d", &[b"a", b"bc"]));
        assert_ne!(Digest::of_parts("d", &[b"ab"]), Digest::of_parts("e", &[b"ab"]));
    }

    #[test]
    fn only_full_lower_case_digits_are_read() {
        let good = Digest::of(b"").to_string();
        assert_eq!(good.parse(), Ok(Digest::of(b"")));
        for bad in ["", "ab", &good[1..], &good.to_uppercase(), &format!("{good}00"), "../../../etc/passwd"] {
            assert_eq!(bad.parse::<Digest>(), Err(NotADigest), "{bad}");
        }
    }

    #[test]
    fn the_path_digest_ignores_white_space_and_case_but_not_the_place() {
        let here = PositionId::from_bytes([1; 16]);
        let there = PositionId::from_bytes([2; 16]);
        assert_eq!(PathDigest::term(here, "The  Rain\n"), PathDigest::term(here, "the rain"));
        assert_ne!(PathDigest::term(here, "rain"), PathDigest::term(here, "ruin"));
        assert_ne!(PathDigest::term(here, "rain"), PathDigest::term(there, "rain"));
    }
}
