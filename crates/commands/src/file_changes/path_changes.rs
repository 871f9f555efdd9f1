//! All that tools did to one path, as one change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

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
                if !is_same(path.after, change.before) && !is_same(path.before_last, change.before) {
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

/// Right of an owner to read a file.
pub(super) const READABLE: u32 = 0o400;
/// Permission bits of a file that its owner may not read, before it gets its own.
pub(super) const PRIVATE: u32 = 0o600;

/// Whether what stands there is what a change left.
pub(super) fn is_same(left: FileState, found: FileState) -> bool {
    match (left, found) {
        (FileState::File { blob, mode }, FileState::File { blob: other, mode: found }) if blob == other => {
            // A process that died in between had not closed it yet.
            let is_unclosed = |mode: u32| mode & READABLE == 0 && found == Some(PRIVATE);
            mode == found || mode.is_none_or(is_unclosed)
        }
        // What a folder holds is told path by path.
        (FileState::Folder { .. }, FileState::Folder { .. }) => true,
        (left, found) => left == found,
    }
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
    fn permission_bits_that_somebody_set_since_are_no_tools() {
        let (a, blob) = (file("a"), Digest::of(b"a"));
        let with = |mode: u32| FileState::File { mode: Some(mode), blob };
        assert!(!is_same(a, with(0o600)) && !is_same(a, with(0o755)));
        assert!(is_same(with(0o200), with(PRIVATE)), "it died before it closed it");
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
