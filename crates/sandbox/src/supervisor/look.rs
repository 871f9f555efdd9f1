//! Look at the protected set before a command, and after it, however it ended.

use std::path::Path;

use super::{Sandbox, index_check};
use crate::level::Level;
use crate::outcome::Notice;
use crate::protected_paths::ProtectedPaths;
use crate::quarantine::Quarantine;
use crate::request::HelperRequest;
use crate::root_folders::RootFolders;
use crate::snapshot::Snapshot;
use crate::walls::Walls;
use index_check::IndexStamps;

/// Protected set as it stood before a command.
pub(super) struct LookBefore {
    pub(super) paths: ProtectedPaths,
    roots: RootFolders,
    snapshot: Snapshot,
    indexes: IndexStamps,
}

impl LookBefore {
    pub(super) fn new(level: Level, walls: &Walls) -> Self {
        let roots = RootFolders::open(walls);
        let paths = ProtectedPaths::of(walls);
        let snapshot = match level {
            // No mount holds a file that has another name.
            Level::Full => Snapshot::take(&paths.with_other_names(), walls, &roots),
            Level::Partial | Level::None => Snapshot::take(&paths, walls, &roots),
        };
        let indexes = IndexStamps::of(&paths, walls);
        Self { paths, roots, snapshot, indexes }
    }

    /// Gives back what was changed, moves away what is new, and says so.
    pub(super) fn after(self, sandbox: &Sandbox, request: &HelperRequest, quarantine: &Path) -> Vec<Notice> {
        let walls = &request.walls;
        let mut quarantine = Quarantine::new(quarantine);
        let mut notices = self.snapshot.restore(walls, &self.roots, &mut quarantine);
        let differing = index_check::differing(sandbox, request, &self.indexes);
        if !differing.is_empty() {
            notices.push(Notice::DiffersFromIndex(differing));
        }
        let after = ProtectedPaths::of(walls);
        // Where not all was seen before, what is seen now need not be new.
        if self.paths.cut_at.is_none() {
            quarantine.take_new(&self.paths, &after, walls, &self.roots);
        }
        notices.extend(quarantine.into_notices());
        notices.extend(after.cut_at.or(self.paths.cut_at).map(Notice::NotAllScanned));
        notices
    }
}
