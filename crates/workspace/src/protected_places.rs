//! What is protected beneath a root though the table of names does not say so.
//!
//! Git takes any folder of a certain shape for its own, runs the hooks and reads the files that a configuration names, and
//! a protected name may be a link to a file of another name. Commands find all of these read-only (`sandbox`); file tools
//! ask here. Tools write through no link, so that a path below a root is the place that it names.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::argument::read_beginning;
use crate::git_configuration::{GIT_FILE_BYTES, git_working_trees, named_by_git, reached};
use crate::git_shape::GitShape;
use crate::path::RelativePath;
use crate::protected::{self, DEPENDENCY_FOLDERS, Protection, ProtectionMatch, folded, touches};
use crate::root::Root;

/// Entries below a root that are looked at. Where there are more, each path is asked about.
const MOST_ENTRIES: usize = 1_000_000;

/// Names as they are compared.
type Names = Vec<String>;

/// Places beneath a root that run, steer or remember something by what leads to them.
#[derive(Debug, Default)]
pub struct ProtectedPlaces {
    top: PathBuf,
    places: Vec<(Names, Protection)>,
    /// Other roots that may be written, and places beneath these, by absolute names.
    others: Vec<PathBuf>,
    elsewhere: Vec<(Names, Protection)>,
    /// Where links of protected names lead, and the links.
    linked: Vec<(Names, RelativePath)>,
    /// Whether the root is itself a git folder.
    is_git_folder: bool,
    /// Entries that may still be looked at.
    room: usize,
    /// Whether there were too many entries to look at all, or a folder could not be listed.
    is_cut: bool,
    /// Git folders that were looked into, with the working tree that led there.
    seen: HashSet<(PathBuf, Option<PathBuf>)>,
    /// Folders that were searched for links.
    searched: HashSet<PathBuf>,
    /// Paths that are to be there, and the folders above them.
    coming: BTreeSet<Names>,
}

impl ProtectedPlaces {
    /// Looks for them beneath a root where something is to come to these paths: git may take a folder for its own because of
    /// that. It blocks, as long as it takes to list the folders of the root.
    ///
    /// What leads from there into one of the `others`, roots that may be written as well, is found, too.
    pub fn beneath(root: &Root, coming: &[&RelativePath], others: &[&Root]) -> Self {
        Self::within(root, coming, others, MOST_ENTRIES)
    }

    fn within(root: &Root, coming: &[&RelativePath], others: &[&Root], most: usize) -> Self {
        let top = root.path().to_owned();
        let ways: BTreeSet<&Path> = coming.iter().flat_map(|path| path.as_path().ancestors()).collect();
        let mut found = Self {
            coming: ways.iter().map(|way| names(way)).collect(),
            top,
            others: others.iter().map(|other| other.path().to_owned()).collect(),
            room: most,
            ..Self::default()
        };
        // The one of a larger repository around the root.
        if let Some(around) = found.top.ancestors().skip(1).find(|folder| exists(&folder.join(".git"))) {
            found.named_git(&around.join(".git"));
        }
        // These lie in folders of packages, too.
        for way in ways {
            found.folder(way);
        }
        if found.top != Path::new("/") {
            found.look_below();
        }
        found
    }

    /// Judges a path by what leads to it; the table of names is not asked.
    pub fn protection(&self, path: &RelativePath) -> ProtectionMatch {
        let names = names(path.as_path());
        let (mut below, mut above) = (None, None);
        for (place, protection) in &self.places {
            if names.starts_with(place) {
                below = below.max(Some(*protection));
            } else if place.starts_with(&names) {
                above = above.max(Some(*protection));
            }
        }
        for (target, link) in &self.linked {
            let rest = names.strip_prefix(target.as_slice());
            let by_link =
                rest.and_then(|rest| rest.iter().try_fold(link.clone(), |way, name| way.join(name).ok()));
            match (by_link.as_ref().map(touches), touches(link)) {
                (Some(ProtectionMatch::Protected(protection)), _) => below = below.max(Some(protection)),
                (Some(ProtectionMatch::OnTheWay(protection)), _) => above = above.max(Some(protection)),
                (_, ProtectionMatch::Protected(protection) | ProtectionMatch::OnTheWay(protection))
                    if target.starts_with(&names) =>
                {
                    above = above.max(Some(protection));
                }
                _ => {}
            }
        }
        if self.is_git_folder && names.first().is_some_and(|name| protected::runs_in_git_folder(name)) {
            below = Some(Protection::Never);
        }
        if self.is_cut {
            below = below.max(Some(Protection::Ask));
        }
        match (below, above) {
            (Some(protection), _) => ProtectionMatch::Protected(protection),
            (None, Some(protection)) => ProtectionMatch::OnTheWay(protection),
            (None, None) => ProtectionMatch::Nothing,
        }
    }

    /// Judges an absolute path beneath one of the other roots by what leads there from this one.
    pub fn protection_elsewhere(&self, path: &Path) -> ProtectionMatch {
        let names = names(path);
        let matches = self.elsewhere.iter().filter_map(|(place, protection)| {
            if names.starts_with(place) {
                Some(ProtectionMatch::Protected(*protection))
            } else {
                place.starts_with(&names).then_some(ProtectionMatch::OnTheWay(*protection))
            }
        });
        let strength = |found: &ProtectionMatch| match found {
            ProtectionMatch::Nothing => (0, None),
            ProtectionMatch::OnTheWay(protection) => (1, Some(*protection)),
            ProtectionMatch::Protected(protection) => (2, Some(*protection)),
        };
        matches.max_by_key(strength).unwrap_or(ProtectionMatch::Nothing)
    }

    /// Notes a place, and says whether it lies beneath one of the roots.
    fn place(&mut self, path: &Path, protection: Protection) -> bool {
        if let Some(place) = self.below(path) {
            self.places.push((place, protection));
        } else if self.others.iter().any(|other| path.starts_with(other) && path != other) {
            self.elsewhere.push((names(path), protection));
        } else {
            return false;
        }
        true
    }

    fn look_below(&mut self) {
        // What lies higher first. Packages are not walked: there are more of them than of all else.
        let mut folders = VecDeque::from([PathBuf::new()]);
        while let Some(folder) = folders.pop_front() {
            self.folder(&folder);
            for entry in self.entries(&self.top.join(&folder)) {
                let Ok(kind) = entry.file_type() else { continue };
                if !kind.is_dir() && !kind.is_symlink() {
                    continue;
                }
                let (path, name) = (folder.join(entry.file_name()), entry.file_name());
                let name = name.to_string_lossy();
                if kind.is_symlink() {
                    self.link(&path);
                } else if !protected::is_git_folder(&name) && !DEPENDENCY_FOLDERS.contains(&&*name) {
                    folders.push_back(path);
                }
            }
        }
    }

    /// What a folder is to git: one with a `.git`, or of the shape of one.
    fn folder(&mut self, folder: &Path) {
        let here = self.top.join(folder);
        if exists(&here.join(".git")) {
            self.named_git(&here.join(".git"));
        }
        let comes = names(folder);
        let coming = |name: &str| [comes.as_slice(), &[folded(name)]].concat();
        let has = |name: &str| exists(&here.join(name)) || self.coming.contains(&coming(name));
        let has_file = |name: &str| {
            let coming = coming(name);
            let mut further = self.coming.range(coming.clone()..).take_while(|way| way.starts_with(&coming));
            has(name) && further.nth(1).is_none() && !here.join(name).is_dir()
        };
        if GitShape::of(has, has_file) != GitShape::Other {
            self.git_folder(&here, None);
        }
    }

    /// Where a link leads whose name is protected, or on the way to one.
    fn link(&mut self, path: &Path) {
        let Ok(link) = RelativePath::from_components(path) else { return };
        if touches(&link) == ProtectionMatch::Nothing {
            return;
        }
        // Of one that leads to the root or above it, the names in the root say enough.
        if matches!(touches(&link), ProtectionMatch::Protected(_)) {
            self.behind_links(&self.top.join(path));
        }
        if let Some(target) = self.below(&reached(&self.top.join(path))) {
            self.linked.push((target, link));
        }
    }

    /// What a link leads to, and those in a folder, however many of them in a row.
    fn behind_links(&mut self, path: &Path) {
        let mut rest = vec![path.to_owned()];
        while let Some(path) = rest.pop() {
            if path.is_symlink() {
                let target = reached(&path);
                if self.place(&target, Protection::Ask) {
                    rest.push(target);
                }
            } else if path.is_dir() && self.searched.insert(path.clone()) {
                let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
                rest.extend(self.entries(&path).iter().filter(|entry| !is_file(entry)).map(DirEntry::path));
            }
        }
    }

    /// A `.git`: a folder, a link to one, or a file that names one.
    fn named_git(&mut self, path: &Path) {
        let tree = path.parent().map(Path::to_owned);
        let there = reached(path);
        if there.is_dir() {
            self.git_folder(&there, tree);
        } else if let Some(named) = small_text(&there).and_then(|text| {
            text.trim_end().strip_prefix("gitdir:").map(|named| there.with_file_name(named.trim_start()))
        }) {
            self.git_folder(&reached(&named), tree);
        }
    }

    /// A folder that git takes for its own, and what its configuration names.
    fn git_folder(&mut self, folder: &Path, tree: Option<PathBuf>) {
        if !self.seen.insert((folder.to_owned(), tree.clone())) {
            return;
        }
        self.is_git_folder |= folder == self.top;
        self.place(folder, Protection::Never);
        let mut trees: Vec<PathBuf> =
            git_working_trees(folder).into_iter().map(|working| working.tree).collect();
        trees.extend(tree.clone());
        // Hooks of a push always run there (githooks(5)).
        trees.push(folder.to_owned());
        let home = std::env::home_dir();
        for entry in self.entries(folder) {
            if protected::runs_in_git_folder(&entry.file_name().to_string_lossy()) {
                self.behind_links(&entry.path());
            }
        }
        let linked = self.entries(&folder.join("worktrees"));
        let linked = linked.iter().map(|worktree| worktree.path().join("config.worktree"));
        for config in [folder.join("config"), folder.join("config.worktree")].into_iter().chain(linked) {
            for (named, _) in named_by_git(&config, &trees, home.as_deref()) {
                if self.place(&named, Protection::Ask) {
                    self.behind_links(&named);
                }
            }
        }
        if let Some(common) = small_text(&folder.join("commondir")) {
            self.git_folder(&reached(&folder.join(common.trim_end())), tree);
        }
        self.modules(&folder.join("modules"));
    }

    /// Submodules' names may have several parts, so that a folder here is a git folder or on the way to one.
    fn modules(&mut self, folder: &Path) {
        for module in self.entries(folder) {
            if !module.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let module = module.path();
            let has_file =
                |name: &str| module.join(name).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir());
            if GitShape::is_submodule(has_file) {
                self.git_folder(&module, None);
            } else {
                self.modules(&module);
            }
        }
    }

    /// Entries of a folder, while there are not too many in all.
    fn entries(&mut self, folder: &Path) -> Vec<DirEntry> {
        let listed = fs::read_dir(folder).and_then(|entries| entries.take(self.room + 1).collect());
        let mut entries: Vec<DirEntry> = listed.unwrap_or_else(|error| {
            self.is_cut |= may_hide(folder, &error);
            Vec::new()
        });
        self.is_cut |= entries.len() > self.room;
        entries.truncate(self.room);
        self.room -= entries.len();
        entries
    }

    /// The names of a path below the root; none of one that lies elsewhere, or is the root.
    fn below(&self, path: &Path) -> Option<Names> {
        path.strip_prefix(&self.top).ok().map(names).filter(|names| !names.is_empty())
    }
}

fn names(path: &Path) -> Names {
    path.iter().map(|name| folded(&name.to_string_lossy())).collect()
}

/// Whether a folder that cannot be listed may hold something. One of another user in which nothing can be written does not
/// count.
fn may_hide(folder: &Path, error: &io::Error) -> bool {
    let is_own = || folder.metadata().is_ok_and(|metadata| metadata.uid() == geteuid().as_raw());
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => false,
        io::ErrorKind::PermissionDenied => {
            is_own() || access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
        }
        _ => true,
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn small_text(path: &Path) -> Option<String> {
    let bytes = read_beginning(path, GIT_FILE_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
