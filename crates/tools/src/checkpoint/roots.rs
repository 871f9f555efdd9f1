//! The records of all roots of a session, those of each in a folder of their own.

use std::path::PathBuf;

use workspace::{AllowedRoots, Root};

use super::Checkpoints;

/// Records of the roots of a session, by the canonical paths of these.
#[derive(Debug, Default)]
pub struct RootCheckpoints(Vec<(PathBuf, Checkpoints)>);

/// A root and the records of what stands beneath it.
#[derive(Debug, Clone, Copy)]
pub struct RootRecords<'r> {
    pub root: &'r Root,
    pub checkpoints: &'r Checkpoints,
}

impl RootCheckpoints {
    /// The records with those of one root more.
    #[must_use]
    pub fn with(mut self, root: PathBuf, checkpoints: Checkpoints) -> Self {
        self.0.push((root, checkpoints));
        self
    }

    /// Roots, among these, that have records, with the records.
    pub fn of_roots<'r>(&'r self, roots: &'r AllowedRoots) -> Vec<RootRecords<'r>> {
        let of = |root: &'r Root| {
            let (_, checkpoints) = self.0.iter().find(|(path, _)| path == root.path())?;
            Some(RootRecords { root, checkpoints })
        };
        roots.all().filter_map(of).collect()
    }
}
