//! All that tools did to one path, as one change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use agent::file_states::is_same;
use store::{FileChange, FileChangeId, FileState};

/// All that was done to one path, as one change.
#[derive(Debug, Clone)]
pub(super) struct PathChange {
    pub(super) root: PathBuf,
    pub(super) path: PathBuf,
    pub(super) before: FileState,
    /// What stood there before the last of them, which may have failed.
    pub(super) before_last: FileState,
    pub(super) after: FileState,
    pub(super) interruption: Option<Interruption>,
    pub(super) ids: Vec<FileChangeId>,
}

impl PathChange {
    /// Whether what tools found there, or left, is not kept.
    pub(super) const fn is_unkept(&self) -> bool {
        matches!((self.before, self.after), (FileState::Large { .. }, _) | (_, FileState::Unknown))
    }

    /// Whether nothing but the permission bits of a folder is another than before.
    pub(super) fn is_folder_mode(&self) -> bool {
        match (self.before, self.after) {
            (FileState::Folder { mode: Some(old) }, FileState::Folder { mode: Some(new) }) => old != new,
            _ => false,
        }
    }
}

/// Somebody changed the path between two changes of tools: the changes since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interruption {
    /// What stood there before the first of them.
    pub(super) before: FileState,
    /// Which of all changes that is.
    pub(super) first: usize,
}

/// Changes by path, in the order of the first change of each. One that left what it found is none.
pub(super) fn by_path(changes: Vec<FileChange>) -> Vec<PathChange> {
    let mut paths: Vec<PathChange> = Vec::new();
    let mut known: BTreeMap<(PathBuf, PathBuf), usize> = BTreeMap::new();
    for change in changes.into_iter().filter(|change| change.before != change.after) {
        let key = (change.root.clone(), change.path.clone());
        match known.get(&key).map(|at| &mut paths[*at]) {
            Some(path) => {
                // What was left unkept is not known, so nothing tells that somebody changed it.
                let is_unkept = (path.after, change.before);
                let is_unkept = matches!(is_unkept, (FileState::Unknown, FileState::Large { .. }));
                let is_same = |left| is_same(left, change.before);
                if !is_unkept && !is_same(path.after) && !is_same(path.before_last) {
                    path.interruption = Some(Interruption { before: change.before, first: path.ids.len() });
                }
                (path.before_last, path.after) = (change.before, change.after);
                path.ids.push(change.id);
            }
            None => {
                known.insert(key, paths.len());
                let FileChange { id, root, path, before, after, .. } = change;
                paths.push(PathChange {
                    root,
                    path,
                    before,
                    before_last: before,
                    after,
                    interruption: None,
                    ids: vec![id],
                });
            }
        }
    }
    paths
}

/// A path beneath a root.
pub(super) type PathPlace = (PathBuf, PathBuf);

/// The paths at which tools left a link: a folder that was there, also one that they made, stands there no more, whatever
/// the link leads to.
pub(super) fn links_over_folders(paths: &[PathChange]) -> BTreeSet<PathPlace> {
    let is_link = |path: &&PathChange| matches!(path.after, FileState::Link { .. });
    paths.iter().filter(is_link).map(|path| (path.root.clone(), path.path.clone())).collect()
}

#[cfg(test)]
mod tests {
    use loom::{Digest, NodeId};
    use store::{CallId, ChangeStanding};

    use super::*;

    fn file(text: &str) -> FileState {
        FileState::File { mode: Some(0o644), blob: Digest::of(text.as_bytes()) }
    }

    fn is_whole(states: &[(FileState, FileState)]) -> bool {
        let answer = NodeId::from_bytes([1; 16]);
        let changes = (0..).zip(states).map(|(number, (before, after))| FileChange {
            id: FileChangeId { call: CallId { answer, number }, number: 0 },
            root: "/w".into(),
            path: "a".into(),
            before: *before,
            after: *after,
            at: loom::Millis(1),
            standing: ChangeStanding::Made,
        });
        let [path] = by_path(changes.collect()).try_into().ok().unwrap();
        path.interruption.is_none()
    }

    #[test]
    fn changes_that_follow_each_other_are_one_also_where_one_failed() {
        let (a, b, c, d) = (file("a"), file("b"), file("c"), file("d"));
        let new = FileState::File { mode: None, blob: Digest::of(b"b") };
        assert!(is_whole(&[(a, b), (b, c)]));
        assert!(is_whole(&[(FileState::Absent, new), (b, c)]), "the mode of a new file is the system's");
        assert!(is_whole(&[(a, b), (a, c), (c, d)]), "the first failed");
        assert!(!is_whole(&[(a, b), (d, c)]), "somebody wrote in between");
        assert!(is_whole(&[(a, b), (d, d)]), "what was written over with itself was not touched");
    }
}
