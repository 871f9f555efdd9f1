//! The name of one run of one process.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::disk;

/// An instance: a ULID, so that ids sort by start and never repeat.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(Ulid);

/// A text that is no instance id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an instance id is 26 characters of Crockford base 32, in capitals: check where it was copied from")]
pub struct BadInstanceId;

impl InstanceId {
    /// A new id for a process that starts at `now_ms`, milliseconds since 1970.
    ///
    /// # Errors
    /// The system's random source failed.
    pub fn generate(now_ms: u64) -> std::io::Result<Self> {
        let mut random = [0; 16];
        disk::random(&mut random)?;
        Ok(Self(Ulid::from_parts(now_ms, u128::from_ne_bytes(random))))
    }

    /// The file whose lock says that it lives.
    pub(super) fn lock_name(self) -> String {
        format!("{self}.lock")
    }

    /// The second name of that file, in another folder.
    pub(super) fn twin_name(self) -> String {
        format!("{self}.instance")
    }

    /// Name of the instance's socket in `run`, over which others hand it messages.
    pub fn socket_name(self) -> String {
        format!("{self}.sock")
    }

    /// The instance to whom a lock file of either name belongs.
    pub(super) fn from_file_name(name: &str) -> Option<Self> {
        name.strip_suffix(".lock").or_else(|| name.strip_suffix(".instance"))?.parse().ok()
    }
}

impl FromStr for InstanceId {
    type Err = BadInstanceId;

    /// Only the canonical form: an id is a file name, and two spellings of one id would be two files.
    fn from_str(text: &str) -> Result<Self, BadInstanceId> {
        let id = Ulid::from_string(text).map_err(|_| BadInstanceId)?;
        if id.to_string() == text { Ok(Self(id)) } else { Err(BadInstanceId) }
    }
}

impl TryFrom<String> for InstanceId {
    type Error = BadInstanceId;

    fn try_from(text: String) -> Result<Self, BadInstanceId> {
        text.parse()
    }
}

impl From<InstanceId> for String {
    fn from(id: InstanceId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceId({self})")
    }
}
