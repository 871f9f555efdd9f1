//! What became of a root between two records of it.

use std::path::Path;

use loom::Digest;
use workspace::RelativePath;

use super::pack::Place;
use super::{Checkpoint, Entry, EntryKind};

/// What stood at a path; its bytes lie in the record it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoodState {
    Absent,
    File { mode: u32, digest: Digest, place: Place },
    Folder { mode: u32 },
    Link { target: Vec<u8> },
}

/// A path that is another than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandChange {
    pub(crate) path: RelativePath,
    pub(crate) before: StoodState,
    pub(crate) after: StoodState,
}

/// All that is another than before.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) changes: Vec<CommandChange>,
    /// Paths that changed and cannot be given back: too large, too many, or unreadable.
    pub(crate) not_kept: Vec<RelativePath>,
    /// Whether there was more than is looked at.
    pub(crate) is_cut: bool,
}

impl StoodState {
    /// The state of an entry; none of a file whose bytes are not kept.
    fn of(entry: Option<&Entry>) -> Option<Self> {
        let Some(entry) = entry else { return Some(Self::Absent) };
        let mode = entry.stamp.mode;
        match &entry.kind {
            EntryKind::Folder => Some(Self::Folder { mode }),
            EntryKind::File { digest, place } => Some(Self::File { mode, digest: *digest, place: *place }),
            EntryKind::Link { target } => Some(Self::Link { target: target.clone() }),
            EntryKind::NotKept(_) => None,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { mode, digest, .. }, Self::File { mode: other_mode, digest: other, .. }) => {
                (mode, digest) == (other_mode, other)
            }
            (one, other) => one == other,
        }
    }

    /// Bytes of a file.
    pub(crate) const fn len(&self) -> u64 {
        match self {
            Self::File { place, .. } => place.bytes,
            Self::Absent | Self::Folder { .. } | Self::Link { .. } => 0,
        }
    }
}

impl Differences {
    /// What became of what a record holds, as a later one says.
    pub(crate) fn between(before: &Checkpoint, after: &Checkpoint) -> Self {
        let (old, new) = (before.entries(), after.entries());
        let mut found = Self { is_cut: before.index.is_cut || after.index.is_cut, ..Self::default() };
        let is_new = |path: &&std::path::PathBuf| !old.contains_key(*path);
        for path in old.keys().chain(new.keys().filter(is_new)) {
            let (was, is) = (old.get(path), new.get(path));
            // What was not recorded before is not known to be new.
            let is_unknown = was.is_none() && (before.index.is_cut || before.passes_over(path));
            if was == is || is_unknown {
                continue;
            }
            let Ok(path) = path.iter().try_fold(RelativePath::root(), |at, name| at.join(name)) else {
                continue;
            };
            match (StoodState::of(was), StoodState::of(is)) {
                (Some(before), Some(after)) if before.is_same(&after) => {}
                (Some(before), Some(after)) => found.changes.push(CommandChange { path, before, after }),
                _ if was.map(|was| was.stamp) == is.map(|is| is.stamp) => {}
                _ => found.not_kept.push(path),
            }
        }
        found
    }
}

impl Checkpoint {
    /// Whether a path was there and not recorded, or lies below one.
    fn passes_over(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.passed_over().contains(path))
    }

    /// The bytes of what stood at a path.
    pub(crate) fn bytes(&self, state: &StoodState) -> Result<Vec<u8>, String> {
        match state {
            StoodState::File { digest, place, .. } => self.pack.read(*place, *digest),
            StoodState::Link { target } => Ok(target.clone()),
            StoodState::Absent | StoodState::Folder { .. } => Ok(Vec::new()),
        }
    }
}
