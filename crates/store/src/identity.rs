//! Which store this is: its id, its version, how far it has come.

use crate::error::StoreError;
use crate::event::Cursor;

/// The id of a store: another one after each restore.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub [u8; 16]);

impl StoreId {
    /// A new one, at random.
    pub(crate) fn random() -> Result<Self, StoreError> {
        random().map(Self)
    }
}

impl std::fmt::Display for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl std::fmt::Debug for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// Which store this is, and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub store: StoreId,
    /// The version of its schema.
    pub version: u32,
    pub cursor: Cursor,
}

/// A backup that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub identity: Identity,
    pub bytes: u64,
}

/// 16 random bytes.
pub(crate) fn random() -> Result<[u8; 16], StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::io("random bytes", std::io::Error::other(error.to_string())))?;
    Ok(bytes)
}
