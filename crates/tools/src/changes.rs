//! Changes of files: what a session read of them, what is about to be changed, and the change itself.
//!
//! A call says what it will do before it does any of it, so that all of it can be given back whatever ends the program.
//! Then it changes files one after the other, and where one of them is refused it gives back those before.

mod difference;
mod edit;
mod missing_folders;
mod path;
mod recovery;
mod seen_files;
mod subtree;
mod subtree_change;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loom::Digest;
use workspace::{FileId, RelativePath, Stamp};

pub(crate) use difference::line_name;
pub use difference::{lines_between, unified_diff};
pub(crate) use edit::{FileEdit, FoundFile, apply, difference, found, told_miss};
pub(crate) use missing_folders::MissingFolders;
pub use path::{give_back, remove_unkept, unkept_digest};
pub use recovery::{LeftFile, recover_files};
pub use seen_files::{SeenFiles, WrittenFile};
pub(crate) use seen_files::{changed_since, first_lines};
pub(crate) use subtree::{EntryKind, Subtree, path_at, paths_below};
pub(crate) use subtree_change::SubtreeChange;

/// How long another process may write in the same workspace before a call is refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// What stands at a path, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContent<'a> {
    Absent,
    /// A file with its permission bits; none of a new one, to which the system gives them.
    File {
        mode: Option<u32>,
        bytes: &'a [u8],
    },
    /// A folder with its permission bits, if they are known.
    Folder {
        mode: Option<u32>,
    },
    /// A symbolic link and the path it leads to.
    Link {
        target: &'a [u8],
    },
    /// A file that is not known to be what a command left.
    Unknown,
    /// A file that is too large to be kept: its size in bytes, and [`unkept_digest`] of its stamp.
    Large {
        bytes: u64,
        stamp: Digest,
    },
    /// A pipe or socket.
    Special(FileId),
}

/// A change that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct PlannedChange<'a> {
    /// Canonical path of the folder it is made beneath.
    pub root: &'a Path,
    pub path: &'a RelativePath,
    pub before: FileContent<'a>,
    pub after: FileContent<'a>,
    pub origin: BytesOrigin,
}

/// Bytes below which a file says nothing that could mislead a model, and is found by the same hash in many places: an empty
/// one, `{}`.
pub const SAYS_NOTHING: usize = 16;

/// Where the bytes come from that a change leaves (spec: security §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesOrigin {
    /// From files that stand there: they were moved, copied, or got another mode.
    Files,
    /// From the call, and from what stood at the paths it changes.
    Call,
    /// From outside, as something was read that is.
    Outside,
}

/// Paths, each behind the canonical one of the folder that it is beneath.
pub type OwnPaths = HashSet<(PathBuf, PathBuf)>;

/// Where a call writes down what it is about to change. Nothing of it has a default: a recorder that forgets one would be
/// believed to be without anything from outside, or to have taken back what it did not.
pub trait ChangeRecorder: Send + Sync {
    /// Begins a call that changes these paths, whose names do not say that they are protected.
    fn begin(&self, protected: Vec<PathBuf>);

    /// Says that what was recorded was made, or taken back: what a file tool wrote is not what a command did that runs
    /// beside it.
    fn finish(&self);

    /// Makes changes durable before they are made: those of many files come a batch at a time, all before the first is
    /// made. It blocks.
    ///
    /// # Errors
    /// Why nothing may be changed now.
    fn record(&self, changes: &[PlannedChange<'_>]) -> Result<(), String>;

    /// [`Self::record`] of what a command is found to have changed.
    ///
    /// # Errors
    /// Why it cannot be written down.
    fn record_found(&self, changes: &[PlannedChange<'_>]) -> Result<(), String>;

    /// Whether a person who saw what the call would do said yes to it.
    fn is_approved(&self) -> bool;

    /// Name of the call, unlike that of any other, fit for a file.
    fn name(&self) -> String;

    /// Says that none of them was made, or all were taken back. It blocks.
    fn take_back(&self);

    /// Says that what a command of the call changed could not be written down: the call is left without a result, so that
    /// whoever finds it writes it down.
    fn leave(&self, why: &str);

    /// Whether it is left so.
    fn is_left(&self) -> bool;

    /// Records what is not changed by the call itself: [`Self::take_back`] leaves it.
    fn beside(&self, work: &mut dyn FnMut());

    /// Shows a person, and not the model, the difference that the call made where it wrote no text itself.
    fn show(&self, difference: &str);

    /// Paths that the call changed itself.
    fn own_paths(&self) -> OwnPaths;

    /// Whether the call was made in sight of something from outside.
    fn is_tainted(&self) -> bool;

    /// Whether any file is known that comes from outside (spec: security §3). It blocks.
    fn knows_outside(&self) -> bool;

    /// Whether a running command made or changed the file at a path, which holds a text of this digest. It blocks.
    fn is_of_running_command(&self, path: &Path, digest: Digest) -> bool;

    /// Digests among these, of the bytes of files, that come from outside. It blocks.
    fn outside(&self, digests: Vec<Digest>) -> Vec<Digest>;
}

/// Recorder of calls that only look: it refuses every change, and what they read may be from outside.
pub struct NoChanges;

impl ChangeRecorder for NoChanges {
    fn begin(&self, _: Vec<PathBuf>) {}

    fn finish(&self) {}

    fn record(&self, _: &[PlannedChange<'_>]) -> Result<(), String> {
        Err("nothing is changed here".to_owned())
    }

    fn record_found(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        self.record(changes)
    }

    fn is_approved(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        "no-changes".to_owned()
    }

    fn take_back(&self) {}

    fn leave(&self, _: &str) {}

    fn is_left(&self) -> bool {
        false
    }

    fn beside(&self, work: &mut dyn FnMut()) {
        work();
    }

    fn show(&self, _: &str) {}

    fn own_paths(&self) -> OwnPaths {
        OwnPaths::new()
    }

    fn is_tainted(&self) -> bool {
        true
    }

    fn knows_outside(&self) -> bool {
        true
    }

    fn is_of_running_command(&self, _: &Path, _: Digest) -> bool {
        true
    }

    fn outside(&self, digests: Vec<Digest>) -> Vec<Digest> {
        digests
    }
}

/// The time, for the name of a text that is kept beside another: seconds since 1970.
fn stamp() -> Stamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp::new(&now.as_secs().to_string()).unwrap_or_else(|| unreachable!("digits are fit for a name"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_recorder_says_everything_itself() {
        let (_, from) = include_str!("changes.rs").split_once("pub trait ChangeRecorder").unwrap();
        let (methods, _) = from.split_once("\n}\n").unwrap();
        let code: Vec<&str> =
            methods.lines().skip(1).map(str::trim).filter(|line| !line.starts_with("//")).collect();
        assert!(code.iter().filter(|line| line.starts_with("fn ")).count() > 10, "{code:?}");
        assert!(code.iter().all(|line| line.is_empty() || line.ends_with(';')), "{code:?}");
    }
}
