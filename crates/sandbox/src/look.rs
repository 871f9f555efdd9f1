//! Look at the protected set before a command, and after it, however it ended.
//!
//! The supervisor looks. Where nothing but the look protects (below level *full*) the helper keeps one of its own, for a
//! supervisor that is killed while the command runs.

use std::path::Path;

use crate::level::Level;
use crate::made_git_folders::MadeGitFolders;
use crate::outcome::{Notice, SandboxError};
use crate::protected_paths::ProtectedPaths;
use crate::quarantine::Quarantine;
use crate::root_folders::RootFolders;
use crate::snapshot::Snapshot;
use crate::walls::Walls;

/// Protected set as it stood before a command.
pub(crate) struct LookBefore {
    pub(crate) paths: ProtectedPaths,
    /// Of these what the command may not change.
    pub(crate) held: ProtectedPaths,
    made: MadeGitFolders,
    roots: RootFolders,
    snapshot: Snapshot,
}

impl LookBefore {
    /// # Errors
    /// If not all can be looked at: what is not looked at is not protected.
    pub(crate) fn new(level: Level, walls: &Walls) -> Result<Self, SandboxError> {
        let roots = RootFolders::open(walls);
        let paths = ProtectedPaths::before(walls)?;
        let made = MadeGitFolders::open(level, walls);
        let held = made.without_them(&paths);
        let snapshot = match level {
            // No mount holds a file that has another name.
            Level::Full => Snapshot::take(&held.with_other_names(), walls, &roots),
            Level::Partial | Level::None => Snapshot::take(&held, walls, &roots),
        };
        Ok(Self { paths, held, made, roots, snapshot })
    }

    /// Gives back what was changed, moves away what is new, and says so; `between` is asked for more between the two.
    pub(crate) fn after(
        self,
        walls: &Walls,
        quarantine: &Path,
        between: impl FnOnce() -> Option<Notice>,
    ) -> Vec<Notice> {
        let mut quarantine = Quarantine::new(quarantine);
        let mut notices = self.snapshot.restore(walls, &self.roots, &mut quarantine);
        let after = ProtectedPaths::of(walls);
        // Before git is asked, which would wait at a pipe in place of its index.
        notices.extend(self.paths.foreign.take_new(&after.foreign, &self.roots, &mut quarantine));
        self.paths.rebases.take_new(&after.rebases, &self.roots, &mut quarantine);
        notices.extend(between());
        quarantine.take_new(&self.held, &after, walls, &self.roots);
        if let Err(error) = self.made.keep(&self.paths, &after) {
            tracing::debug!(%error, "git folders that commands made could not be recorded");
        }
        notices.extend(quarantine.into_notices());
        notices.extend(after.cut_at(walls.limits.entries).map(Notice::NotAllScanned));
        notices.extend(after.too_many(walls).map(Notice::TooManyProtected));
        notices
    }
}
