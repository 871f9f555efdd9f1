//! The rest of a repository around a root (spec: security §1): what git has of it, to be read.
//!
//! Without the rest git takes it for deleted, and `commit -a` would delete it. What git has of it can be read from the git
//! folder anyhow. Whatever else lies there is not the command's to see: each entry that git does not have is covered,
//! a folder without any file of git's as a whole.
//!
//! The index is the command's to write, so that it could name a file to see it. Which files git has is therefore kept out of
//! its reach ([`TrackedRecord`]); one that comes later is seen once what lies there is what git has of it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::tracked_record::{self, TrackedRecord};
use super::{Sandbox, git_query};
use crate::git_folder::working_trees;
use crate::outcome::Notice;
use crate::protected_paths::ProtectedPaths;
use crate::request::HelperRequest;
use crate::walls::{RootAccess, WallRoot, Walls};

/// Entries that are covered, at most.
const MOST_COVERED: usize = 5_000;

/// Shows a command what git has around its roots. What cannot be shown as it must be is not shown, which is told.
pub(super) fn show(sandbox: &Sandbox, request: &mut HelperRequest, paths: &ProtectedPaths) -> Option<Notice> {
    let mut lacks = Vec::new();
    let record = request.walls.tracked_record.clone()?;
    for tree in larger_trees(paths, &request.walls) {
        match entries_to_cover(sandbox, request, &tree, &record) {
            Ok(covered) => {
                request.hidden.extend(covered);
                request.walls.roots.push(WallRoot { path: tree, access: RootAccess::ReadOnly });
            }
            Err(problem) => {
                lacks.push(format!("git finds no repository: around the workspace {problem}"));
            }
        }
    }
    (!lacks.is_empty()).then(|| Notice::Lacks(lacks.join("; ")))
}

/// Working trees that are larger than a root in them, as git finds them: the innermost around each root.
fn larger_trees(paths: &ProtectedPaths, walls: &Walls) -> Vec<PathBuf> {
    let trees: Vec<PathBuf> = paths
        .git_folders
        .iter()
        .flat_map(|folder| working_trees(folder))
        .map(|working| working.tree)
        .collect();
    let around = |root: &Path| {
        let around = trees.iter().filter(|tree| root.starts_with(tree));
        around.max_by_key(|tree| tree.components().count()).filter(|tree| *tree != root).cloned()
    };
    let mut larger: Vec<PathBuf> = walls.writable_roots().filter_map(around).collect();
    larger.sort();
    larger.dedup();
    larger
}

fn entries_to_cover(
    sandbox: &Sandbox,
    request: &HelperRequest,
    tree: &Path,
    record: &Path,
) -> Result<Vec<PathBuf>, String> {
    let of_git = |question: &[&OsStr]| {
        git_query::answer(sandbox, request, tree, question).map_err(|error| error.to_string())
    };
    let indexed = tracked_record::entries(&of_git(&["ls-files", "-s", "-z"].map(OsStr::new))?);
    let roots: Vec<&Path> = request.walls.writable_roots().collect();
    let files = TrackedRecord::at(record).vouched(tree, &roots, indexed, |names| {
        let question = ["hash-object", "--"].map(OsStr::new);
        let names = names.iter().map(|name| name.as_os_str());
        of_git(&question.into_iter().chain(names).collect::<Vec<_>>())
    })?;
    let folders = files.iter().flat_map(|file| file.ancestors().skip(1)).map(Path::to_owned).collect();
    let mut rest = TrackedRest { tree, files, folders, roots, covered: Vec::new() };
    rest.look_into(tree).map_err(|error| error.to_string())?;
    Ok(rest.covered)
}

struct TrackedRest<'a> {
    tree: &'a Path,
    /// What git has, relative to the tree.
    files: HashSet<PathBuf>,
    /// Folders of those.
    folders: HashSet<PathBuf>,
    roots: Vec<&'a Path>,
    covered: Vec<PathBuf>,
}

impl TrackedRest<'_> {
    fn look_into(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let (entry, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            let name = entry.strip_prefix(self.tree).unwrap_or(&entry);
            if name == Path::new(".git") || self.roots.iter().any(|root| entry == *root) {
                continue;
            }
            let is_ours = entry.file_name().is_some_and(|name| name == ".drawloom");
            let leads_to_root = self.roots.iter().any(|root| root.starts_with(&entry));
            if leads_to_root || kind.is_dir() && !is_ours && self.folders.contains(name) {
                self.look_into(&entry)?;
            } else if is_ours || kind.is_dir() || !self.files.contains(name) {
                if self.covered.len() == MOST_COVERED {
                    return Err(io::Error::other(format!("more than {MOST_COVERED} entries are not git's")));
                }
                self.covered.push(entry);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_does_not_have_is_covered_as_high_as_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().canonicalize().unwrap();
        for file in [
            ".git/HEAD",
            ".env",
            "README.md",
            "part/src/main.rs",
            "part/.env",
            "other/a.rs",
            "other/.env",
            "other/target/debug/x",
            "other/.drawloom/config",
            "sub/.git",
            "sub/x",
            "notes/todo",
        ] {
            let path = tree.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let root = tree.join("part");
        let has = ["README.md", "part/src/main.rs", "other/a.rs", "other/.drawloom/config", "sub"];
        let files: HashSet<PathBuf> = has.map(PathBuf::from).into();
        let folders = files.iter().flat_map(|file| file.ancestors().skip(1)).map(Path::to_owned).collect();
        let mut rest = TrackedRest { tree: &tree, files, folders, roots: vec![&root], covered: Vec::new() };
        rest.look_into(&tree).unwrap();
        rest.covered.sort();
        let covered = [".env", "notes", "other/.drawloom", "other/.env", "other/target", "sub"];
        assert_eq!(rest.covered, covered.map(|name| tree.join(name)));
    }

    #[test]
    fn the_innermost_tree_around_a_root_is_the_one_that_git_finds() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["main/.git/worktrees/t", "main/part", "main/trees/t/part"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let pointer = path("main/trees/t/.git");
        fs::write(path("main/.git/worktrees/t/gitdir"), pointer.to_str().unwrap()).unwrap();
        for (root, larger) in [
            ("main", None),
            ("main/part", Some("main")),
            ("main/trees/t", None),
            ("main/trees/t/part", Some("main/trees/t")),
        ] {
            let mut walls = Walls::around(&path(root), &path(root));
            walls.git_folders = vec![path("main/.git")];
            let found = larger_trees(&ProtectedPaths::of(&walls), &walls);
            assert_eq!(found, larger.map(path).into_iter().collect::<Vec<_>>(), "{root}");
        }
    }
}
