//! Protected files that differ from what git has of them after a command (spec: security §1).
//!
//! `git checkout` over a file that cannot be written ends well: the index then has the new text and the folder the old
//! one, which the next `commit -a` would commit as if somebody had wanted it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use workspace::GitWorkingTree;

use super::Sandbox;
use super::conversation::Deadline;
use super::git_query::{AT_MOST, GitQuery, QueryPlace};
use crate::git_folder::working_trees;
use crate::protected_paths::ProtectedPaths;
use crate::request::HelperRequest;
use crate::walls::Walls;

/// The question which files differ from the index; of a larger repository only what the folder has.
const DIFFERING: [&str; 5] = ["diff-files", "--ignore-submodules", "--name-only", "--relative", "-z"];

/// Indexes of git as they were, to see which ones a command changed, with the folders to ask git in.
pub(super) struct IndexStamps(Vec<IndexStamp>);

struct IndexStamp {
    index: PathBuf,
    before: Option<Stamp>,
    /// The working tree, or roots in it where it is larger than they.
    folders: Vec<PathBuf>,
}

/// Inode, time of change in ns, size.
pub(super) type Stamp = (u64, i64, i64, u64);

impl IndexStamps {
    /// Of the working trees of all git folders that a command may write: their own, linked ones, of submodules.
    pub(super) fn of(paths: &ProtectedPaths, walls: &Walls) -> Self {
        let trees = paths.git_folders.iter().flat_map(|folder| working_trees(folder));
        let stamps = trees.filter_map(|GitWorkingTree { tree, index, .. }| {
            let folders: Vec<PathBuf> = match walls.writable_roots().any(|root| tree.starts_with(root)) {
                true => vec![tree],
                false => walls
                    .writable_roots()
                    .filter(|root| root.starts_with(&tree))
                    .map(Path::to_owned)
                    .collect(),
            };
            let before = stamp(&index);
            (!folders.is_empty()).then_some(IndexStamp { index, before, folders })
        });
        Self(stamps.collect())
    }

    /// Folders of which git has another index now.
    fn changed(&self) -> impl Iterator<Item = &Path> {
        let changed = self.0.iter().filter(|stamped| stamp(&stamped.index) != stamped.before);
        changed.flat_map(|stamped| stamped.folders.iter().map(PathBuf::as_path))
    }
}

/// Stamp of an index; none where there is none.
pub(super) fn stamp(index: &Path) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(index).ok()?;
    Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec(), metadata.len()))
}

/// Protected files that git has another text of than the folder, where the command changed what git has. Git itself is
/// asked, behind the same walls, in roots that can only be read.
pub(super) fn differing(sandbox: &Sandbox, request: &HelperRequest, before: &IndexStamps) -> Vec<PathBuf> {
    let mut differing = Vec::new();
    for tree in before.changed() {
        // Asked also of a command whose time was over, or that was cancelled.
        let until = Deadline { deadline: Instant::now() + AT_MOST, cancelled: &[] };
        let git = GitQuery { sandbox, request, place: QueryPlace::Root(tree), until };
        match git.answer(&DIFFERING.map(OsStr::new), &[]) {
            Ok(names) => {
                let names = names.split(|byte| *byte == 0).map(|name| Path::new(OsStr::from_bytes(name)));
                differing.extend(names.filter(|name| is_protected(name)).map(|name| tree.join(name)));
            }
            Err(error) => {
                tracing::debug!(%error, tree = %tree.display(), "git could not be asked what differs");
            }
        }
    }
    differing
}

fn is_protected(name: &Path) -> bool {
    let mut above = name.ancestors();
    above.any(workspace::protected::is_mounted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_is_asked_in_a_root_below_a_repository_and_in_every_tree_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["r/.git/worktrees/t", "r/.git/modules/s", "r/part", "r/s", "elsewhere"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("r/.git/worktrees/t/gitdir"), path("elsewhere/.git").to_str().unwrap()).unwrap();
        fs::write(path("r/.git/modules/s/config"), "[core]\n\tworktree = ../../../s\n").unwrap();
        let asked = |root: &str, git: &str| {
            let mut walls = Walls::around(&path(root), &path(root));
            walls.git_folders = vec![path(git)];
            let stamps = IndexStamps::of(&ProtectedPaths::of(&walls), &walls);
            let asked = stamps.0.into_iter().map(|stamped| (stamped.index, stamped.folders));
            asked.collect::<Vec<_>>()
        };
        assert_eq!(asked("r/part", "r/.git"), [(path("r/.git/index"), vec![path("r/part")])]);
        assert_eq!(
            asked("elsewhere", "r/.git"),
            [(path("r/.git/worktrees/t/index"), vec![path("elsewhere")])]
        );
        assert_eq!(asked("r/s", "r/.git/modules/s"), [(path("r/.git/modules/s/index"), vec![path("r/s")])]);
    }
}
