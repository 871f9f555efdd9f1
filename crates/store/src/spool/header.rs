//! The first line of a spool: whose bytes these are and how to read them.

use std::fmt;
use std::io::BufRead;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SpoolError;
use crate::instance::InstanceId;

/// The version this program writes and reads.
const VERSION: u32 = 1;
/// A longer first line is no header, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// A generation's id in its role as a file name: ids belong to the tree, here they must only be safe.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GenerationName(String);

/// A text that cannot name a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a generation's name is 1 to 64 letters, digits, - or _: use its id")]
pub struct BadGenerationName;

impl GenerationName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for GenerationName {
    type Error = BadGenerationName;

    fn try_from(name: String) -> Result<Self, BadGenerationName> {
        let safe = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if safe && (1..=64).contains(&name.len()) { Ok(Self(name)) } else { Err(BadGenerationName) }
    }
}

impl From<GenerationName> for String {
    fn from(name: GenerationName) -> Self {
        name.0
    }
}

impl fmt::Display for GenerationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What recovery must know before it can read the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpoolHeader {
    version: u32,
    /// The generation, which is the file's name too.
    pub generation: GenerationName,
    pub instance: InstanceId,
    /// The writer's fencing number: a result is refused unless it still matches.
    pub fence: u64,
    /// The dialect in which the bytes are to be parsed.
    pub dialect: String,
    /// When it began, milliseconds since 1970.
    pub started: i64,
    /// Whatever else the caller needs, and keys of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SpoolHeader {
    /// A header of the present version.
    #[must_use]
    pub fn new(
        generation: GenerationName,
        instance: InstanceId,
        fence: u64,
        dialect: &str,
        started: i64,
    ) -> Self {
        let dialect = dialect.to_owned();
        Self { version: VERSION, generation, instance, fence, dialect, started, extra: Map::new() }
    }

    /// One line, ending in a line feed. JSON has none inside.
    pub(super) fn to_line(&self) -> Result<Vec<u8>, SpoolError> {
        let mut line =
            serde_json::to_vec(self).map_err(|error| SpoolError::Header { reason: error.to_string() })?;
        line.push(b'\n');
        if line.len() > MAX_HEADER_BYTES {
            let reason = format!("it has {} bytes, {MAX_HEADER_BYTES} are allowed", line.len());
            return Err(SpoolError::Header { reason });
        }
        Ok(line)
    }

    /// Reads the header of the file `name`. Returns it with its length in bytes.
    pub(super) fn read(reader: impl BufRead, name: &str) -> std::io::Result<Result<(Self, u64), TornHeader>> {
        let mut line = Vec::new();
        reader.take(MAX_HEADER_BYTES as u64).read_until(b'\n', &mut line)?;
        Ok(Self::parse(&line, name).map(|header| (header, line.len() as u64)))
    }

    fn parse(line: &[u8], name: &str) -> Result<Self, TornHeader> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let json = line.strip_suffix(b"\n").ok_or(TornHeader::Cut)?;
        let Version { version } = serde_json::from_slice(json).map_err(|_| TornHeader::Unreadable)?;
        if version > VERSION {
            return Err(TornHeader::Newer { version });
        }
        let header: Self = serde_json::from_slice(json).map_err(|_| TornHeader::Unreadable)?;
        if header.generation.as_str() != name {
            return Err(TornHeader::OtherName { generation: header.generation });
        }
        Ok(header)
    }
}

/// Why a spool's first line cannot be used. Its bytes are still there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TornHeader {
    /// The line does not end: power was lost while it was written.
    #[error("its first line is cut off: nothing of the stream can be recovered from it; discard it")]
    Cut,
    /// The line is not the JSON of a header.
    #[error("its first line is damaged: look at the file, then discard it")]
    Unreadable,
    /// A later version of Drawloom wrote it.
    #[error("it was written by a later version ({version}): run that version once to recover it")]
    Newer { version: u32 },
    /// The file of another generation, under this name.
    #[error("it holds generation {generation}: rename the file to that, or discard it")]
    OtherName {
        /// The generation in the header.
        generation: GenerationName,
    },
}
