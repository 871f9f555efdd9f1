//! Requirements on a file to be read, and its metadata.

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::error::FileKind;
use crate::identity::FileId;

/// What may be done in a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootAccess {
    ReadOnly,
    ReadWrite,
}

/// Whether symbolic links may be part of the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkPolicy {
    /// None, not even inside the root: cards, skills, and whatever is written.
    #[default]
    Refuse,
    /// Links that stay inside the root, for a file a person or a tool named. `/proc`'s links to
    /// descriptors never.
    Follow,
}

/// Requirements on a file to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRules {
    /// Longest file in bytes; a file that grows past it while it is read is refused too.
    pub max_bytes: u64,
    /// Symbolic links on the way.
    pub links: LinkPolicy,
    /// Refuse a file that has more than one name.
    pub single_name: bool,
    /// Refuse to cross a mount point below the root.
    pub one_device: bool,
}

impl ReadRules {
    /// At most `max_bytes`, no links, any number of names, any device.
    pub fn at_most(max_bytes: u64) -> Self {
        Self { max_bytes, links: LinkPolicy::Refuse, single_name: false, one_device: false }
    }

    /// Follows links that stay inside the root.
    #[must_use]
    pub fn follow_links(self) -> Self {
        Self { links: LinkPolicy::Follow, ..self }
    }

    /// Refuses files with further hard links.
    #[must_use]
    pub fn single_name(self) -> Self {
        Self { single_name: true, ..self }
    }

    /// Refuses to cross mount points.
    #[must_use]
    pub fn one_device(self) -> Self {
        Self { one_device: true, ..self }
    }
}

/// Facts about an open file, for rules that differ by caller (a card's owner, its mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub id: FileId,
    pub kind: FileKind,
    /// Size in bytes.
    pub bytes: u64,
    pub links: u64,
    /// User id of its owner.
    pub owner: u32,
    pub mode: u32,
    /// Last change of content: seconds since 1970, as the file system says. Never a reason to
    /// believe a text unchanged.
    pub modified: i64,
}

impl Metadata {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            id: FileId::of(stat),
            kind: FileKind::of(FileType::from_raw_mode(stat.st_mode)),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            #[allow(clippy::useless_conversion, reason = "the width differs by architecture")]
            links: u64::from(stat.st_nlink),
            owner: stat.st_uid,
            mode: stat.st_mode & 0o7777,
            modified: stat.st_mtime,
        }
    }

    /// Whether anybody on the machine may write it.
    pub fn world_writable(&self) -> bool {
        self.mode & 0o002 != 0
    }
}
