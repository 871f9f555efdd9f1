//! Levels of the sandbox.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Level of the sandbox that commands run in (spec: security §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    None,
    Partial,
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        })
    }
}

/// Level that this machine allows, as a child found out that tried the escapes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelReport {
    pub level: Level,
    /// What each higher level lacks, in words for a person.
    pub missing: Vec<String>,
    /// Version of Landlock's interface that the kernel has; 0 without Landlock.
    pub landlock: u32,
}
