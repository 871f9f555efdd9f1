//! What became of a root between two records of it.

use std::path::Path;

use loom::Digest;
use workspace::{FileId, FileStamp, RelativePath};

use super::index::Index;
use super::pack::Place;
use super::{Checkpoint, Entry, EntryKind, NotKept};

/// What stood at a path; its bytes lie in the record it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoodState {
    Absent,
    File {
        mode: u32,
        digest: Digest,
        place: Place,
    },
    Folder {
        mode: u32,
    },
    Link {
        target: Vec<u8>,
    },
    /// A file that stands there after a command, and whose bytes are not kept or not known to be the command's.
    Unknown,
    /// A file whose bytes are not kept: where a command made it, it can go, and it never comes back.
    Large {
        stamp: FileStamp,
    },
    /// A pipe or socket.
    Special(FileId),
}

/// A path that is another than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandChange {
    pub(crate) path: RelativePath,
    pub(crate) before: StoodState,
    pub(crate) after: StoodState,
}

impl CommandChange {
    /// Whether nothing is known that could be given back.
    const fn is_unkept(&self) -> bool {
        matches!(
            (&self.before, &self.after),
            (StoodState::Large { .. }, _) | (StoodState::Absent, StoodState::Unknown)
        )
    }
}

/// Changes that are named of which nothing can be given back: where files are too many, a command may change most of them.
const UNKEPT: usize = 500;

/// All that is another than before, in order of paths.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) changes: Vec<CommandChange>,
    /// How many more changed of which no bytes are kept.
    pub(crate) unnamed: usize,
    /// Whether there was more than is looked at.
    pub(crate) is_cut: bool,
}

impl StoodState {
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// The state of an entry; none of a file whose bytes are not kept.
    fn of(entry: Option<&Entry>) -> Option<Self> {
        let Some(entry) = entry else { return Some(Self::Absent) };
        let mode = entry.stamp.mode;
        match &entry.kind {
            EntryKind::Folder => Some(Self::Folder { mode }),
            EntryKind::File { digest, place } => Some(Self::File { mode, digest: *digest, place: *place }),
            EntryKind::Link { target } => Some(Self::Link { target: target.clone() }),
            EntryKind::Special => Some(Self::Special(entry.stamp.id)),
            EntryKind::NotKept(_) => None,
        }
    }

    /// What stood there, also a file whose bytes are not kept.
    fn before(entry: Option<&Entry>) -> Self {
        match (Self::of(entry), entry) {
            (Some(state), _) => state,
            (None, Some(entry)) => Self::Large { stamp: entry.stamp },
            (None, None) => Self::Absent,
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
            Self::Absent
            | Self::Folder { .. }
            | Self::Link { .. }
            | Self::Unknown
            | Self::Large { .. }
            | Self::Special(_) => 0,
        }
    }
}

impl Differences {
    /// What became of what a record holds, as a later one says. What was changed later than `until`, in ns since 1970, is
    /// somebody else's: what is new then is left out, and of the rest only what stood there is known.
    pub(crate) fn between(before: &Checkpoint, after: &Checkpoint, until: Option<i64>) -> Self {
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
            let (stood, stands) = (StoodState::of(was), StoodState::of(is));
            let is_same = match (&stood, &stands) {
                (Some(stood), Some(stands)) => stood.is_same(stands),
                _ => was.map(|was| was.stamp) == is.map(|is| is.stamp),
            };
            let is_later = is.is_some_and(|is| until.is_some_and(|until| is.stamp.changed > until));
            let is_folder = matches!(stands, Some(StoodState::Folder { .. }));
            if is_same || (is_later && (was.is_none() || is_folder)) {
                continue;
            }
            let after = match (stands, is) {
                _ if is_later => StoodState::Unknown,
                (Some(stands), _) => stands,
                (None, Some(Entry { stamp, kind: EntryKind::NotKept(NotKept::TooLarge), .. }))
                    if stood.is_some() && is_made(stamp, &before.index) =>
                {
                    StoodState::Large { stamp: *stamp }
                }
                (None, _) => StoodState::Unknown,
            };
            found.changes.push(CommandChange { path, before: StoodState::before(was), after });
        }
        if found.loses_unkept(before, after) {
            found.leave_large();
        }
        found.changes.sort_by(|one, other| one.path.as_path().cmp(other.path.as_path()));
        let mut unkept = 0;
        let is_over = |change: &mut CommandChange| {
            unkept += usize::from(change.is_unkept());
            change.is_unkept() && unkept > UNKEPT
        };
        found.unnamed = found.changes.extract_if(.., is_over).count();
        found
    }
}

impl Differences {
    /// Whether something that is not kept stood there and is not any more, or is another one: what is large and new by now
    /// may be made of it.
    fn loses_unkept(&self, before: &Checkpoint, after: &Checkpoint) -> bool {
        let (old, new) = (before.entries(), after.entries());
        let is_lost = |(path, was): (&std::path::PathBuf, &Entry)| {
            matches!(was.kind, EntryKind::NotKept(_)) && new.get(path).map(|is| is.stamp) != Some(was.stamp)
        };
        old.iter().any(is_lost) || !before.passed_over().is_subset(after.passed_over())
    }

    /// Leaves large files as they are: nothing keeps the bytes of what they may be made of.
    fn leave_large(&mut self) {
        for change in &mut self.changes {
            if matches!(change.after, StoodState::Large { .. }) {
                change.after = StoodState::Unknown;
            }
        }
    }
}

/// How much later than its content the metadata of a file may have changed that a command made, in ns: it may write one
/// under another name, and set its bits. One that was moved there is somebody else's, and nothing keeps its bytes.
const MADE_WITHIN: i64 = 60_000_000_000;

/// Whether what is in a file that is not kept was written since a record, and not moved there.
fn is_made(stamp: &FileStamp, before: &Index) -> bool {
    let is_kept = |entry: &Entry| matches!(entry.kind, EntryKind::File { .. });
    stamp.changed.saturating_sub(stamp.modified) < MADE_WITHIN
        && before.entries.values().all(|entry| entry.stamp.id != stamp.id || is_kept(entry))
}

impl Checkpoint {
    /// Whether a path was there and not recorded, or lies below one.
    pub(super) fn passes_over(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.passed_over().contains(path.as_os_str()))
    }

    /// The bytes of what stood at a path.
    pub(crate) fn bytes(&self, state: &StoodState) -> Result<Vec<u8>, String> {
        match state {
            StoodState::File { digest, place, .. } => self.pack.read(*place, *digest),
            StoodState::Link { target } => Ok(target.clone()),
            StoodState::Absent
            | StoodState::Folder { .. }
            | StoodState::Unknown
            | StoodState::Large { .. }
            | StoodState::Special(_) => Ok(Vec::new()),
        }
    }
}
