//! Protected files that differ from what git has of them after a command (spec: security §1).
//!
//! `git checkout` over a file that cannot be written ends well: the index then has the new text and the folder the old
//! one, which the next `commit -a` would commit as if somebody had wanted it. And whoever writes the index or a commit
//! without git's help has the owner's next `reset --hard`, `checkout` or `push` bring it where the walls held it back.
//!
//! Files are compared by what they say, and so is the index with what it was: git writes new times into it whenever it
//! looks. Whether git is to look at a file (`--skip-worktree`, `--assume-unchanged`) is the command's to decide.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use workspace::protected::is_held;
use workspace::{GitWorkingTree, read_beginning};

use super::Sandbox;
use super::blob_comparison;
use super::conversation::Deadline;
use super::git_head::GitHead;
use super::git_index::{self, EntryKind, GitIndex, TrackedFile};
use super::git_query::{AT_MOST, GitQuery, QueryPlace};
use super::index_file;
use crate::git_folder::working_trees;
use crate::protected_paths::ProtectedPaths;
use crate::request::HelperRequest;
use crate::walls::Walls;

/// Questions what a commit has otherwise than an earlier one, and the index; of a larger repository only what the folder has.
const COMMITTED: [&str; 7] =
    ["diff-tree", "-r", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules", "--relative"];
const STAGED: [&str; 7] =
    ["diff-index", "--cached", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules", "--relative"];
/// The tree without files, which every repository has, by the digits of its hashes.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// What git had, to see what of it a command changed, with the folders to ask git in.
pub(super) struct IndexStamps(Vec<IndexStamp>);

struct IndexStamp {
    working: GitWorkingTree,
    index: Option<Stamp>,
    /// The index itself; nothing where there is none, or it cannot be read.
    bytes: Vec<u8>,
    head: GitHead,
    /// The working tree, or roots in it where it is larger than they.
    folders: Vec<PathBuf>,
}

/// Inode, time of change in ns, size.
pub(super) type Stamp = (u64, i64, i64, u64);

impl IndexStamps {
    /// Of the working trees of all git folders that a command may write: their own, linked ones, of submodules.
    pub(super) fn of(paths: &ProtectedPaths, walls: &Walls) -> Self {
        let trees = paths.git_folders.iter().flat_map(|folder| working_trees(folder));
        let stamps = trees.filter_map(|working| {
            let tree = &working.tree;
            let folders: Vec<PathBuf> = match walls.writable_roots().any(|root| tree.starts_with(root)) {
                true => vec![tree.clone()],
                false => {
                    walls.writable_roots().filter(|root| root.starts_with(tree)).map(Path::to_owned).collect()
                }
            };
            if folders.is_empty() {
                return None;
            }
            let (index, head) = (stamp(&working.index), GitHead::of(&working));
            let bytes = read_beginning(&working.index, index_file::LARGEST).unwrap_or_default();
            Some(IndexStamp { working, index, bytes, head, folders })
        });
        Self(stamps.collect())
    }
}

impl IndexStamp {
    /// What the index had below a folder of the working tree; none where that cannot be told.
    fn index_below(&self, folder: &Path) -> Option<GitIndex> {
        if self.index.is_none() {
            return Some(GitIndex::default());
        }
        let is_sha256 = self.head.commit.as_ref().is_some_and(|commit| commit.len() == 64);
        let listed = index_file::listing(&self.bytes, if is_sha256 { 32 } else { 20 })?;
        let index = GitIndex::parse(&listed, false);
        Some(index.below(folder.strip_prefix(&self.working.tree).ok()?))
    }
}

/// Stamp of an index; none where there is none.
pub(super) fn stamp(index: &Path) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(index).ok()?;
    Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec(), metadata.len()))
}

/// Protected files that git has another text of than the folder, where the command changed what git has of them; but those
/// that it, or a tool beside it, was let write, as is `written`. Git is asked, behind the same walls, in roots that can only be read.
pub(super) fn differing(
    sandbox: &Sandbox,
    request: &HelperRequest,
    before: &IndexStamps,
    written: &[PathBuf],
) -> Vec<PathBuf> {
    let mut differing = Vec::new();
    for stamped in &before.0 {
        let head = GitHead::of(&stamped.working);
        let is_moved = head != stamped.head;
        if !is_moved && stamp(&stamped.working.index) == stamped.index {
            continue;
        }
        for folder in &stamped.folders {
            // Asked also of a command whose time was over, or that was cancelled.
            let until = Deadline { deadline: Instant::now() + AT_MOST, cancelled: &[] };
            let git = GitQuery { sandbox, request, place: QueryPlace::Root(folder), until };
            let (earlier, index) = (stamped.head.commit.as_deref(), stamped.index_below(folder));
            let asked = Comparison { git, folder, earlier, index };
            match asked.differing(is_moved && head.is_born()) {
                Ok(names) => differing.extend(names.into_iter().map(|name| folder.join(name))),
                Err(error) => {
                    tracing::debug!(%error, folder = %folder.display(), "git could not be asked what differs");
                }
            }
        }
    }
    differing.retain(|path| !written.iter().any(|written| path.starts_with(written)));
    differing
}

struct Comparison<'a> {
    git: GitQuery<'a>,
    folder: &'a Path,
    /// Commit before the command.
    earlier: Option<&'a str>,
    /// What the index had before the command.
    index: Option<GitIndex>,
}

impl Comparison<'_> {
    fn differing(&self, is_committed: bool) -> Result<BTreeSet<PathBuf>, String> {
        let listed = self.answer(&git_index::LIST)?;
        let index = GitIndex::parse(&listed, false);
        let empty = match index
            .entries()
            .next()
            .is_some_and(|(_, entry)| entry.hashes.iter().any(|it| it.len() == 64))
        {
            true => EMPTY_TREE_SHA256,
            false => EMPTY_TREE,
        };
        // Where it is not known what the index had: what it has otherwise than the commit.
        let staged: BTreeSet<PathBuf> = match &self.index {
            Some(_) => BTreeSet::new(),
            None => self.changes(&STAGED, &[], empty)?.into_iter().map(|file| file.name).collect(),
        };
        let is_news = |name: &PathBuf| match &self.index {
            Some(earlier) => !index.has_as(name, earlier),
            None => staged.contains(name),
        };
        let mut differing = BTreeSet::new();
        let mut files = Vec::new();
        for (name, entry) in index.entries().filter(|(name, _)| is_held(name)) {
            match entry.kind {
                Some(kind) if entry.hashes.len() == 1 && is_news(name) => {
                    files.push(index.tracked(name, kind));
                }
                // Of a submodule there is nothing to compare.
                _ if entry.hashes.len() == 1 => {}
                _ if self.index.is_none() || is_news(name) => _ = differing.insert(name.clone()),
                _ => {}
            }
        }
        differing.extend(self.compare(files)?);
        if is_committed {
            differing.extend(self.compare(self.changes(&COMMITTED, &["HEAD"], empty)?)?);
        }
        Ok(differing)
    }

    fn compare(&self, files: Vec<TrackedFile>) -> Result<Vec<PathBuf>, String> {
        let differing = blob_comparison::differing(self.git, self.folder, files, usize::MAX)?;
        Ok(differing.into_iter().map(|file| file.name).collect())
    }

    /// Protected files that are there and were not so in the earlier commit; all of them where that cannot be told.
    fn changes(&self, question: &[&str], of: &[&str], empty: &str) -> Result<Vec<TrackedFile>, String> {
        let ask = |tree: &str| self.answer(&[question, &[tree], of].concat());
        let answer = match self.earlier.map(ask) {
            Some(Ok(answer)) => answer,
            // The command may have removed it.
            Some(Err(_)) | None => ask(empty)?,
        };
        Ok(changed_files(&answer).into_iter().filter(|file| is_held(&file.name)).collect())
    }

    fn answer(&self, question: &[&str]) -> Result<Vec<u8>, String> {
        let question: Vec<&OsStr> = question.iter().map(OsStr::new).collect();
        self.git.answer(&question, &[]).map_err(|error| error.to_string())
    }
}

/// Reads `:MODE MODE HASH HASH STATUS` and names, each ended by a zero, of which the second mode and hash count.
fn changed_files(answer: &[u8]) -> Vec<TrackedFile> {
    let mut parts = answer.split(|byte| *byte == 0);
    let mut files = Vec::new();
    while let (Some(head), Some(name)) = (parts.next(), parts.next()) {
        let words: Vec<&[u8]> = head.split(|byte| *byte == b' ').collect();
        if let [_, mode, _, hash, _] = words.as_slice()
            && let Some(kind) = EntryKind::of_mode(mode)
        {
            files.push(TrackedFile {
                name: PathBuf::from(OsStr::from_bytes(name)),
                kind,
                hashes: vec![hash.to_vec()],
            });
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_commit_has_otherwise_is_read() {
        let answer =
            b":100644 100755 11 22 M\0a b\0:100644 000000 11 00 D\0gone\0:000000 120000 00 33 A\0l\0";
        let file = |name: &str, kind, hash: &[u8]| TrackedFile {
            name: name.into(),
            kind,
            hashes: vec![hash.to_vec()],
        };
        assert_eq!(
            changed_files(answer),
            [file("a b", EntryKind::File, b"22"), file("l", EntryKind::Link, b"33")]
        );
        assert_eq!(changed_files(b""), []);
    }

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
            let asked = stamps.0.into_iter().map(|stamped| (stamped.working.index, stamped.folders));
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
