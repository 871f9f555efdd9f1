//! What tools changed in files (spec: agent §3 *Checkpoints*): written down before it happens, so that it can be shown
//! and given back whatever ends the program.

use std::path::PathBuf;

use loom::{Digest, Millis, NodeId};
use serde::{Deserialize, Serialize};

use crate::call::CallId;
use crate::fence::{Claim, Guard};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FileState {
    Absent,
    /// A file: its permission bits, which are not known of one that is about to be made, and the blob that holds its
    /// bytes.
    File {
        mode: Option<u32>,
        blob: Digest,
    },
    /// A folder: its permission bits, if they are known.
    Folder {
        mode: Option<u32>,
    },
    /// A symbolic link: the blob that holds the path it leads to.
    Link {
        target: Digest,
    },
    /// A file that is not known to be what a command left: nothing is given back over it.
    Unknown,
    /// A file that is too large to be kept: its size in bytes, and the digest of the stamp by which it is known.
    Large {
        bytes: u64,
        stamp: Digest,
    },
    /// A pipe or socket, by its device and inode: it can go, and is not made again.
    Special {
        device: u64,
        inode: u64,
    },
}

impl FileState {
    /// The blob of what stands there.
    pub const fn blob(self) -> Option<Digest> {
        match self {
            Self::File { blob, .. } | Self::Link { target: blob } => Some(blob),
            Self::Absent
            | Self::Folder { .. }
            | Self::Unknown
            | Self::Large { .. }
            | Self::Special { .. } => None,
        }
    }

    pub const fn is_folder(self) -> bool {
        matches!(self, Self::Folder { .. })
    }
}

/// Changes that a running call is about to make, or that a command made which it left running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFileChanges {
    pub call: CallId,
    /// Who runs the call; refused unless it still is theirs. None of one that has ended, whose command runs on.
    pub claim: Option<Claim>,
    /// Leases that must still be held.
    pub guards: Vec<Guard>,
    pub changes: Vec<NewFileChange>,
    /// Texts of instructions among them that count from now on: the owner approved them with their difference (spec:
    /// security §4).
    pub accepted: Vec<AcceptedInventory>,
}

/// What a trusted workspace holds, with a text that was accepted. It stays as it is where the owner said something else
/// of the workspace meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedInventory {
    /// Canonical path of the workspace.
    pub workspace: PathBuf,
    /// Inventory as the workspace's record has it.
    pub before: String,
    pub after: String,
}

/// A change of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFileChange {
    /// The folder its path lies beneath, as a canonical path.
    pub root: PathBuf,
    /// The path below it.
    pub path: PathBuf,
    pub before: FileState,
    pub after: FileState,
    /// Whether something from outside went into what it becomes: it is outside from then on, wherever its bytes are
    /// found (spec: security §3).
    pub is_outside: bool,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub id: FileChangeId,
    pub root: PathBuf,
    pub path: PathBuf,
    pub before: FileState,
    pub after: FileState,
    /// When it was written down.
    pub at: Millis,
    pub standing: ChangeStanding,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeStanding {
    /// A tool made it, and nobody gave it back.
    Made,
    /// A tool made it, and it was to be given back, which it cannot be.
    Left,
    /// A tool made it, and it was given back.
    TakenBack,
    /// The owner made it by giving changes of tools back.
    GivingBack,
    /// The owner took a giving-back again, or it was not made.
    Redone,
}

impl ChangeStanding {
    /// Whether a tool made it, and nobody gave it back.
    pub const fn stands(self) -> bool {
        matches!(self, Self::Made | Self::Left)
    }
}

/// Bytes that changes of files keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFiles {
    /// When they were listed, by the store's clock.
    pub now: Millis,
    pub roots: Vec<PathBuf>,
    /// Each blob once a root, where its newest change is; the newest first.
    pub files: Vec<KeptFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptFile {
    /// Index of its root.
    pub root: usize,
    pub at: Millis,
    pub blob: Digest,
}

/// Files that the owner gave back at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivingBack {
    pub at: Millis,
    /// When the owner took it again, or it was not made.
    pub redone: Option<Millis>,
    /// The roots and paths of the first of the files.
    pub paths: Vec<(PathBuf, PathBuf)>,
    pub count: u64,
    /// Answers whose calls had changed them; none of what was taken again.
    pub answers: Vec<NodeId>,
}

/// Which change it is: those of a tree are in the order they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileChangeId {
    pub call: CallId,
    /// Which of its call's, from 0.
    pub number: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_read_as_it_was_written_and_a_folder_also_without_its_mode() {
        let read = |text: &str| serde_json::from_str::<FileState>(text).unwrap();
        assert_eq!(read(r#"{"is":"folder"}"#), FileState::Folder { mode: None });
        let link = FileState::Link { target: Digest::of(b"elsewhere") };
        let large = FileState::Large { bytes: 11 << 20, stamp: Digest::of(b"its stamp") };
        let folder = FileState::Folder { mode: Some(0o750) };
        let special = FileState::Special { device: 1, inode: 2 };
        for state in [FileState::Absent, folder, link, FileState::Unknown, large, special] {
            assert_eq!(read(&serde_json::to_string(&state).unwrap()), state);
        }
    }
}
