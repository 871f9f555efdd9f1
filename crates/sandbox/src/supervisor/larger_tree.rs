//! The rest of a repository around a root (spec: security §1): what git has of it, to be read.
//!
//! Without the rest git takes it for deleted, and `commit -a` would delete it. What git has of it can be read from the git
//! folder anyhow. Whatever else lies there is not the command's to see: a folder without any file of git's is
//! covered as a whole, and a folder with a file that git does not have is mounted anew without it.
//!
//! The index is the command's to write, so that it could name a file to see it. Which files git has is therefore kept out of
//! its reach ([`TrackedRecords`]); one that comes later is seen as long as what lies there is what git has of it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use workspace::GitWorkingTree;

use super::conversation::Deadline;
use super::git_index::{self, EntryKind, GitIndex, TrackedFile};
use super::git_query::{GitQuery, QueryPlace};
use super::tracked_record::{GitFolderLock, TrackedRecord, TrackedRecords};
use super::{Sandbox, blob_comparison};
use crate::git_folder::{is_sparse, working_trees};
use crate::outcome::Notice;
use crate::protected_paths::ProtectedPaths;
use crate::request::{HelperRequest, VeiledFolder};
use crate::small_file::read_small;
use crate::walls::{RootAccess, WallRoot, Walls};

/// Variable of the environment that has git look for a repository above another file system.
const ACROSS: &str = "GIT_DISCOVERY_ACROSS_FILESYSTEM";

/// Entries that are covered or mounted one by one, at most.
const MOST_MOUNTS: usize = 5_000;

/// Records what git has in the working trees whose index a command may write, before it may; the locks are held until it is
/// over. None when its time is over before.
///
/// # Errors
/// When there can be no record.
pub(super) fn record(
    sandbox: &Sandbox,
    request: &HelperRequest,
    paths: &ProtectedPaths,
    until: Deadline<'_>,
) -> io::Result<Option<Vec<GitFolderLock>>> {
    let Some(folder) = &request.walls.tracked_records else { return Ok(Some(Vec::new())) };
    let mut locks = Vec::new();
    for (git_folder, trees) in writable_trees(paths, &request.walls) {
        let records = TrackedRecords::open(folder)?;
        let empty = records.empty_folder()?;
        let index = |tree: &GitWorkingTree| {
            let place = QueryPlace::GitFolder { working: tree, empty: &empty };
            index_of(GitQuery { sandbox, request, place, until }, tree)
                .inspect_err(|problem| tracing::debug!(%problem, tree = %tree.tree.display(), "git could not be asked"))
                .ok()
        };
        match records.begin(&git_folder, &trees, until, index)? {
            Some(lock) => locks.push(lock),
            None => return Ok(None),
        }
    }
    Ok(Some(locks))
}

/// Shows a command what git has around its roots. What cannot be shown as it must be is not shown, which is told.
pub(super) fn show(
    sandbox: &Sandbox,
    request: &mut HelperRequest,
    paths: &ProtectedPaths,
    until: Deadline<'_>,
) -> Option<Notice> {
    let mut lacks = Vec::new();
    let folder = request.walls.tracked_records.clone()?;
    for working in larger_trees(paths, &request.walls) {
        let rest = rest_of(sandbox, request, until, &folder, &working);
        match rest {
            Ok(TrackedRest { covered, veiled, .. }) => {
                request.hidden.extend(covered);
                if !veiled.is_empty() {
                    // A folder that is mounted anew is of another file system than what stands in it.
                    request.walls.environment.insert(ACROSS.to_owned(), "1".to_owned());
                    request.veiled.extend(veiled);
                }
                request.walls.roots.push(WallRoot { path: working.tree, access: RootAccess::ReadOnly });
            }
            Err(problem) => {
                lacks.push(format!("git finds no repository: around the workspace {problem}"));
            }
        }
    }
    (!lacks.is_empty()).then(|| Notice::Lacks(lacks.join("; ")))
}

/// Working trees that a command may write the index of, by the git folder that all of them belong to: those of git folders
/// outside of the roots, and those that a root is, or lies in.
fn writable_trees(paths: &ProtectedPaths, walls: &Walls) -> Vec<(PathBuf, Vec<GitWorkingTree>)> {
    let mut found: Vec<(PathBuf, Vec<GitWorkingTree>)> = Vec::new();
    for folder in &paths.git_folders {
        let is_outside = walls.git_folders.iter().any(|outside| folder.starts_with(outside));
        let mut trees = known_trees(folder);
        trees.retain(|working| {
            is_outside || walls.writable_roots().any(|root| root.starts_with(&working.tree))
        });
        // That of a submodule lies in the one of the repository that it belongs to.
        let owner = folder.ancestors().filter(|above| above.ends_with(".git")).last().unwrap_or(folder);
        match found.iter_mut().find(|(known, _)| known == owner) {
            Some((_, known)) => known.append(&mut trees),
            None if trees.is_empty() && !is_outside => {}
            None => found.push((owner.to_owned(), trees)),
        }
    }
    found
}

/// Working trees of a git folder in which git finds that folder: a command may plant the one that it writes.
fn known_trees(folder: &Path) -> Vec<GitWorkingTree> {
    let mut trees = working_trees(folder);
    trees.retain(|working| {
        let named = working.tree.join(".git");
        let found = match fs::metadata(&named) {
            Ok(metadata) if metadata.is_dir() => named.canonicalize().ok(),
            _ => read_small(&named)
                .ok()
                .and_then(|text| working.tree.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()),
        };
        let own = working.index.parent().and_then(|folder| folder.canonicalize().ok());
        found.is_some() && found == own
    });
    trees
}

/// Working trees that are larger than a root in them, as git finds them: the innermost around each root.
fn larger_trees(paths: &ProtectedPaths, walls: &Walls) -> Vec<GitWorkingTree> {
    let trees: Vec<GitWorkingTree> =
        paths.git_folders.iter().flat_map(|folder| known_trees(folder)).collect();
    let around = |root: &Path| {
        let around = trees.iter().filter(|working| root.starts_with(&working.tree));
        let innermost = around.max_by_key(|working| working.tree.components().count());
        innermost.filter(|working| working.tree != root).map(|working| working.tree.clone())
    };
    let larger: HashSet<PathBuf> = walls.writable_roots().filter_map(around).collect();
    let mut larger: Vec<GitWorkingTree> =
        trees.into_iter().filter(|working| larger.contains(&working.tree)).collect();
    larger.sort_by(|a, b| a.tree.cmp(&b.tree));
    larger.dedup_by(|a, b| a.tree == b.tree);
    larger
}

fn index_of(git: GitQuery<'_>, working: &GitWorkingTree) -> Result<GitIndex, String> {
    let listed = git.answer(&git_index::LIST.map(OsStr::new), &[]).map_err(|error| error.to_string())?;
    Ok(GitIndex::parse(&listed, is_sparse(working)))
}

/// What a command sees of a tree, and what it does not.
fn rest_of<'t>(
    sandbox: &Sandbox,
    request: &HelperRequest,
    until: Deadline<'_>,
    records: &Path,
    working: &'t GitWorkingTree,
) -> Result<TrackedRest<'t>, String> {
    let (tree, walls) = (working.tree.as_path(), &request.walls);
    if walls.owner_home.as_ref().is_some_and(|home| home.starts_with(tree)) {
        return Err(format!("{} holds your home folder, of which commands see nothing", tree.display()));
    }
    let records = TrackedRecords::open(records).map_err(|error| error.to_string())?;
    let empty = records.empty_folder().map_err(|error| error.to_string())?;
    let place = QueryPlace::GitFolder { working, empty: &empty };
    let git = GitQuery { sandbox, request, place, until };
    let index = index_of(git, working)?;
    let files = vouched(git, tree, &index, &records.of(working))?;
    let mut rest = TrackedRest {
        folders: git_index::folders_of(files.keys()),
        files: files.into_keys().collect(),
        names: index.names().map(Path::to_owned).collect(),
        shown: walls.shown_on_purpose(),
        ..TrackedRest::of(tree)
    };
    rest.look_into(tree).map_err(|error| error.to_string())?;
    Ok(rest)
}

/// What of an index may be seen: what the record has, and what is what git has of it.
fn vouched(
    git: GitQuery<'_>,
    tree: &Path,
    index: &GitIndex,
    record: &TrackedRecord<'_>,
) -> Result<HashMap<PathBuf, EntryKind>, String> {
    let believed = record.believed(index).map_err(|error| error.to_string())?;
    // What a command may write is seen anyhow.
    let roots: Vec<&Path> = git.request.walls.writable_roots().collect();
    let standing = index.standing(tree, &roots);
    // Of a link its name and aim alone are seen.
    let unknown =
        standing.iter().filter(|(name, kind)| **kind == EntryKind::File && !believed.contains_key(*name));
    let unknown: Vec<TrackedFile> = unknown.map(|(name, kind)| index.tracked(name, *kind)).collect();
    match blob_comparison::differing(git, tree, unknown, 1)?.pop() {
        None => Ok(standing),
        Some(TrackedFile { name, .. }) => Err(format!(
            "{} is new to git and not what git has of it: its owner commits it as it is, takes it out of the \
             index (git update-index --force-remove), or, while no command runs there, removes {}, upon which the whole index is believed as it stands",
            name.display(),
            record.file().display()
        )),
    }
}

/// The rest of a tree around the roots.
#[derive(Debug)]
struct TrackedRest<'a> {
    tree: &'a Path,
    /// What git has and may be seen, relative to the tree.
    files: HashSet<PathBuf>,
    /// Folders of those.
    folders: HashSet<PathBuf>,
    /// All names of the index: of a link under one of them the name and aim are seen.
    names: HashSet<PathBuf>,
    /// What the walls show, or cover themselves.
    shown: Vec<PathBuf>,
    /// Folders that an empty one covers, which git passes over.
    covered: Vec<PathBuf>,
    /// Folders with a file that is not seen: git would take a cover for a new file, so that it is not there at all.
    veiled: Vec<VeiledFolder>,
    /// Entries that are covered, or mounted one by one.
    mounts: usize,
}

impl<'a> TrackedRest<'a> {
    fn of(tree: &'a Path) -> Self {
        Self {
            tree,
            files: HashSet::new(),
            folders: HashSet::new(),
            names: HashSet::new(),
            shown: Vec::new(),
            covered: Vec::new(),
            veiled: Vec::new(),
            mounts: 0,
        }
    }

    /// Looks through a folder, those in it first.
    fn look_into(&mut self, folder: &Path) -> io::Result<()> {
        let (mut seen, mut covered, mut hides_a_file) = (Vec::new(), Vec::new(), false);
        for entry in fs::read_dir(folder)? {
            let (entry, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            let name = entry.strip_prefix(self.tree).unwrap_or(&entry);
            let is_ours = entry.file_name().is_some_and(|name| name == ".drawloom");
            let leads_to_shown = self.shown.iter().any(|shown| shown.starts_with(&entry) && *shown != entry);
            let is_seen = if name == Path::new(".git") || self.shown.contains(&entry) {
                true
            } else if leads_to_shown || kind.is_dir() && !is_ours && self.folders.contains(name) {
                self.look_into(&entry)?;
                true
            } else if kind.is_symlink() {
                !is_ours && self.names.contains(name)
            } else {
                !is_ours && !kind.is_dir() && self.files.contains(name)
            };
            match (is_seen, kind.is_dir()) {
                (true, _) => seen.extend(entry.file_name().map(PathBuf::from)),
                (false, true) => covered.push(entry),
                (false, false) => hides_a_file = true,
            }
        }
        self.mounts += if hides_a_file { seen.len() } else { covered.len() };
        if self.mounts > MOST_MOUNTS {
            return Err(io::Error::other(format!(
                "more than {MOST_MOUNTS} entries are not git's, or lie beside one that is not"
            )));
        }
        if hides_a_file {
            self.veiled.push(VeiledFolder { folder: folder.to_owned(), names: seen });
        } else {
            self.covered.extend(covered);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What is not seen in a tree of some files of which git has these: covered folders, and what is seen in veiled ones.
    fn unseen(
        tree: &Path,
        has: &[&str],
        shown: Vec<PathBuf>,
    ) -> (Vec<PathBuf>, Vec<(PathBuf, Vec<PathBuf>)>) {
        let files: HashSet<PathBuf> = has.iter().map(PathBuf::from).collect();
        let folders = git_index::folders_of(&files);
        let names = files.iter().cloned().chain(["gone".into()]).collect();
        let mut rest = TrackedRest { files, folders, names, shown, ..TrackedRest::of(tree) };
        rest.look_into(tree).unwrap();
        rest.covered.sort();
        let below = |path: &Path| path.strip_prefix(tree).unwrap().to_owned();
        let veiled = rest.veiled.into_iter().map(|veiled| {
            let mut names = veiled.names;
            names.sort();
            (below(&veiled.folder), names)
        });
        (rest.covered.iter().map(|path| below(path)).collect(), veiled.collect())
    }

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn what_git_does_not_have_is_not_there_and_folders_are_covered_as_high_as_they_can_be() {
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
            "clean/a.rs",
            "clean/target/x",
            "sub/.git",
            "sub/x",
            "notes/todo",
        ] {
            write(&tree.join(file), "x");
        }
        std::os::unix::fs::symlink("notes", tree.join("mine")).unwrap();
        std::os::unix::fs::symlink("notes", tree.join("gone")).unwrap();
        let has =
            ["README.md", "part/src/main.rs", "other/a.rs", "other/.drawloom/config", "clean/a.rs", "sub"];
        let (covered, veiled) = unseen(&tree, &has, vec![tree.join("part")]);
        assert_eq!(covered, paths(&["clean/target"]));
        let top = [".git", "README.md", "clean", "gone", "other", "part"];
        let expected = [(PathBuf::from("other"), paths(&["a.rs"])), (PathBuf::new(), paths(&top))];
        assert_eq!(veiled, expected, "the inner one first");
    }

    #[test]
    fn what_the_walls_show_on_purpose_is_not_covered_nor_what_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().canonicalize().unwrap();
        for file in [
            ".git/HEAD",
            "part/a",
            ".venv/bin/mytool",
            "tools/deep/bin/x",
            "tools/deep/key",
            "tools/key",
            "data/drawloom/loom.db",
            "data/drawloom/sandbox/part/.cache",
        ] {
            write(&tree.join(file), "x");
        }
        std::os::unix::fs::symlink(".venv", tree.join("venv")).unwrap();
        let mut walls = Walls::around(&tree.join("part"), &tree.join("data/drawloom/sandbox/part"));
        walls.readable.extend([tree.join("venv"), tree.join("tools/deep/bin"), tree.join("missing")]);
        walls.private = vec![tree.join("data/drawloom")];
        let (covered, veiled) = unseen(&tree, &[], walls.shown_on_purpose());
        assert_eq!(covered, [""; 0].map(PathBuf::from));
        let top = paths(&[".git", ".venv", "data", "part", "tools"]);
        let expected = [("tools/deep", paths(&["bin"])), ("tools", paths(&["deep"])), ("", top)];
        assert_eq!(veiled, expected.map(|(folder, names)| (PathBuf::from(folder), names)));
    }

    #[test]
    fn the_innermost_tree_around_a_root_is_the_one_that_git_finds() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["main/.git/worktrees/t", "main/.git/worktrees/planted", "main/part", "main/trees/t/part"]
        {
            fs::create_dir_all(path(name)).unwrap();
        }
        let pointer = path("main/trees/t/.git");
        fs::write(path("main/.git/worktrees/t/gitdir"), pointer.to_str().unwrap()).unwrap();
        fs::write(&pointer, format!("gitdir: {}\n", path("main/.git/worktrees/t").display())).unwrap();
        // By who writes the git folder, and nothing around the root.
        let planted = path("main/trees/.git");
        fs::write(path("main/.git/worktrees/planted/gitdir"), planted.to_str().unwrap()).unwrap();
        for (root, larger) in [
            ("main", None),
            ("main/part", Some("main")),
            ("main/trees", Some("main")),
            ("main/trees/t", None),
            ("main/trees/t/part", Some("main/trees/t")),
        ] {
            let mut walls = Walls::around(&path(root), &path(root));
            walls.git_folders = vec![path("main/.git")];
            let found = larger_trees(&ProtectedPaths::of(&walls), &walls);
            let found: Vec<PathBuf> = found.into_iter().map(|working| working.tree).collect();
            assert_eq!(found, larger.map(path).into_iter().collect::<Vec<_>>(), "{root}");
        }
    }

    #[test]
    fn the_index_of_every_tree_that_a_command_may_write_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["main/part", "main/sub", "tree", "main/.git/worktrees/t", "main/.git/modules/sub"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        write(&path("main/.git/worktrees/t/gitdir"), path("tree/.git").to_str().unwrap());
        write(&path("tree/.git"), &format!("gitdir: {}\n", path("main/.git/worktrees/t").display()));
        write(&path("main/.git/modules/sub/config"), "[core]\n\tworktree = ../../../sub\n");
        write(&path("main/.git/modules/sub/HEAD"), "x");
        write(&path("main/sub/.git"), "gitdir: ../.git/modules/sub\n");
        let recorded = |root: &str, outside: &[&str]| {
            let mut walls = Walls::around(&path(root), &path(root));
            walls.git_folders = outside.iter().map(|name| path(name)).collect();
            let trees = writable_trees(&ProtectedPaths::of(&walls), &walls);
            let trees = trees.into_iter().map(|(git, trees)| {
                assert_eq!(git, path("main/.git"), "one lock for all");
                trees.into_iter().map(|working| working.tree).collect::<Vec<_>>()
            });
            trees.collect::<Vec<_>>().concat()
        };
        assert_eq!(recorded("tree", &["main/.git"]), ["main", "tree", "main/sub"].map(path));
        assert_eq!(recorded("main/part", &["main/.git"]), ["main", "tree", "main/sub"].map(path));
        assert_eq!(recorded("main/sub", &["main/.git/modules/sub"]), [path("main/sub")]);
        assert_eq!(recorded("main", &[]), [path("main")]);
    }
}
