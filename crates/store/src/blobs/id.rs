//! A blob's name: the SHA-256 of its bytes.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// SHA-256 of a blob, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId([u8; 32]);

/// A text that names no blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a blob is named by 64 lower-case hexadecimal digits: check where the name was copied from")]
pub struct BadBlobId;

impl BlobId {
    /// The name of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) const fn first(self) -> u8 {
        self.0[0]
    }

    pub(super) fn shard_name(self) -> String {
        shard_name(self.first())
    }

    pub(super) fn file_name(self) -> String {
        HEXLOWER.encode(self.0.get(1..).unwrap_or_default())
    }
}

/// The folder of the blobs whose hash begins with this byte.
pub(super) fn shard_name(first: u8) -> String {
    HEXLOWER.encode(&[first])
}

impl From<[u8; 32]> for BlobId {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

impl FromStr for BlobId {
    type Err = BadBlobId;

    fn from_str(text: &str) -> Result<Self, BadBlobId> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| BadBlobId)?;
        Ok(Self(bytes.try_into().map_err(|_| BadBlobId)?))
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}
