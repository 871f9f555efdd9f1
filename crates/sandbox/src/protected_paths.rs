//! Protected paths that exist below a root.

mod links;
mod other_names;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::FileType;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use workspace::protected::{self, DEPENDENCY_FOLDERS};
use workspace::{GitShape, named_by_git, reached};

use crate::folder_list::{is_closed, list};
use crate::foreign_entries::ForeignEntries;
use crate::git_folder;
use crate::outcome::SandboxError;
use crate::rebase_plans::{self, RebasePlans};
use crate::small_file::read_small;
use crate::walls::Walls;

/// Bytes of a folder's path beyond which it is not looked into: it is protected as a whole. The kernel takes no longer path
/// than of 4,096, from wherever it begins, and git may begin in the workspace.
const LONGEST_PATH: usize = 3_800;
/// What is told of a folder or file that nobody may open.
const CLOSED: &str = "nobody may open it (mode 000), as where it could not be moved to quarantine, and no command begins \
    beside it: `chmod u+rwx` on it at a terminal opens it, `delete` removes it, `/undo --files` takes back a turn that closed it";
/// What is told of a writable root that nobody may open.
const CLOSED_ROOT: &str = "nobody may open it (mode 000): `chmod u+rwx` on it at a terminal opens it";
/// Folders that git makes in its own.
const FOLDERS_OF_GIT: [&str; 16] = [
    "annex",
    "branches",
    "hooks",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "sequencer",
    "worktrees",
];

/// Protected paths below the writable roots and git folders of some walls.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ProtectedPaths {
    /// Absolute; nothing below one of them.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Git folders, `.git` or bare: absolute.
    pub(crate) git_folders: BTreeSet<PathBuf>,
    /// Folders that git takes for its own by their shape.
    complete: BTreeSet<PathBuf>,
    /// What in git folders git does not make.
    pub(crate) foreign: ForeignEntries,
    /// Rebases in git folders that wait to go on.
    pub(crate) rebases: RebasePlans,
    /// Folders that git folders have of linked working trees.
    pub(crate) worktrees: BTreeSet<PathBuf>,
    /// Folders that could not be looked into.
    pub(crate) unlisted: Vec<UnlistedFolder>,
    /// Links of protected names, or on the way to some, with what they lead to.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Links by which alone a path, or a git folder, is protected.
    by_links: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Git folder that a protected path is a part of.
    owners: BTreeMap<PathBuf, PathBuf>,
    /// Entries that were looked at, by the root or git folder they lie below.
    entries: Vec<(PathBuf, u64)>,
    /// Entries that may be looked at; none of a look after a command.
    most: Option<u64>,
}

/// Folder that could not be looked into, whose owner's git may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnlistedFolder {
    pub(crate) path: PathBuf,
    pub(crate) kind: io::ErrorKind,
    pub(crate) problem: String,
}

impl ProtectedPaths {
    /// All protected paths, however many entries there are: what a command made is bounded by its time.
    pub(crate) fn of(walls: &Walls) -> Self {
        Self::look(walls, None)
    }

    /// Protected paths before a command.
    ///
    /// # Errors
    /// The root or git folder at which there were more entries than may be looked at, the folder that cannot be looked into,
    /// and what was closed as it could not be moved away.
    pub(crate) fn before(walls: &Walls) -> Result<Self, SandboxError> {
        let refused = |path: &Path, problem| Err(SandboxError::Path { path: path.to_owned(), problem });
        let most = walls.limits.entries;
        let found = Self::look(walls, Some(most));
        if let Some(top) = found.cut_at(most) {
            let problem = format!(
                "it has more than {most} files and folders, so that what is protected among them cannot be found: remove \
                some, or choose a smaller folder"
            );
            return refused(&top, problem);
        }
        if let Some(UnlistedFolder { path, problem, .. }) = found.unlisted.first() {
            let problem = format!("what is protected in it cannot be found: {problem}");
            let root = walls.writable_roots().find(|root| root == path && is_closed(path));
            return refused(path, root.map_or(problem, |_| CLOSED_ROOT.to_owned()));
        }
        if let Some(path) = found.paths.iter().find(|path| is_closed(path)) {
            return refused(path, CLOSED.to_owned());
        }
        if let Some(top) = found.too_many(walls) {
            let problem = format!(
                "it has more protected files and git folders than can be kept from a command ({} with the folders above \
                them): remove some, or choose a smaller folder",
                walls.limits.protected
            );
            return refused(&top, problem);
        }
        Ok(found)
    }

    /// Root or git folder at which there are more entries than a number.
    pub(crate) fn cut_at(&self, most: u64) -> Option<PathBuf> {
        let mut so_far = 0;
        let cut = self.entries.iter().find(|(_, entries)| {
            so_far += entries;
            so_far > most
        });
        cut.map(|(top, _)| top.clone())
    }

    /// Root or git folder with which there are more protected paths and folders above them than a command begins with.
    pub(crate) fn too_many(&self, walls: &Walls) -> Option<PathBuf> {
        let tops: Vec<&PathBuf> = self.entries.iter().map(|(top, _)| top).collect();
        let mut mounted = BTreeSet::new();
        for path in &self.paths {
            let top = tops.iter().find(|top| path.starts_with(top));
            let below = path.ancestors().take_while(|above| top.is_none_or(|top| above != top));
            // Of one that is there, what is above is, too.
            for place in below {
                if !mounted.insert(place) {
                    break;
                }
            }
            if mounted.len() as u64 > walls.limits.protected {
                return top.map(|top| (*top).clone());
            }
        }
        None
    }

    fn look(walls: &Walls, most: Option<u64>) -> Self {
        let mut found = Self { most, ..Self::default() };
        for root in walls.writable_roots() {
            found.entries.push((root.to_owned(), 0));
            found.look_below(root, walls);
        }
        for folder in &walls.git_folders {
            found.entries.push((folder.clone(), 0));
            found.git_folder(folder, walls);
        }
        found.look_into_git_folders(walls);
        found.look_behind_links(walls);
        found
    }

    /// Keeps what is said to be kept, by its kind, its path, and what is told of it.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str, &Path, &[u8]) -> bool) {
        self.paths.retain(|path| keep("path", path, b""));
        self.git_folders.retain(|folder| keep("git folder", folder, b""));
        self.complete.retain(|folder| keep("complete", folder, b""));
        self.worktrees.retain(|folder| keep("working tree", folder, b""));
        self.links.retain(|link, target| keep("link", link, target.as_os_str().as_bytes()));
        self.foreign.retain(|path, entry| keep("foreign", path, entry));
        self.rebases.retain(|path, program| keep("rebase", path, program));
    }

    /// All but some git folders and their parts.
    pub(crate) fn without_git_folders(&self, made: &BTreeSet<PathBuf>) -> Self {
        let mut rest = self.clone();
        rest.paths.retain(|path| self.owners.get(path).is_none_or(|owner| !made.contains(owner)));
        rest.git_folders.retain(|folder| !made.contains(folder));
        rest
    }

    fn look_below(&mut self, root: &Path, walls: &Walls) {
        let mut folders = VecDeque::from([(PathBuf::new(), NamesThatCount::All)]);
        while let Some((folder, names)) = folders.pop_front() {
            let here = root.join(&folder);
            let entries = self.entries_of(&here);
            let named = |name: &str| entries.iter().find(|entry| entry.text.eq_ignore_ascii_case(name));
            let is_file = |name: &str| named(name).is_some_and(|entry| !entry.is_folder);
            // All else in it counts as ever.
            let shape = GitShape::of(|name| named(name).is_some(), is_file);
            if shape != GitShape::Other {
                self.by_links.remove(&here);
                self.git_folder(&here, walls);
            }
            if shape == GitShape::Complete {
                self.complete.insert(here);
            }
            for entry in entries {
                let path = folder.join(&entry.name);
                if entry.is_link && names.counts(&entry.text) {
                    self.link(root, &path, walls);
                }
                if protected::is_git_folder(&entry.text) {
                    let path = root.join(path);
                    self.by_links.remove(&path);
                    match entry.is_folder {
                        true => self.git_folder(&path, walls),
                        // It names the folder that git reads configuration from.
                        false => self.protect(path),
                    }
                } else if names == NamesThatCount::All && protected::is_mounted(&path) {
                    self.protect(root.join(path));
                } else if entry.is_folder {
                    let names = match is_dependency_folder(&entry.text, walls) {
                        true => NamesThatCount::GitFolders,
                        false => names,
                    };
                    folders.push_back((path, names));
                }
            }
        }
    }

    /// Adds a path that is protected whatever links lead to it.
    fn protect(&mut self, path: PathBuf) {
        self.by_links.remove(&path);
        self.paths.insert(path);
    }

    /// Whether a path is a link that led to the same place at an earlier look.
    pub(crate) fn is_same_link(&self, path: &Path, before: &Self) -> bool {
        self.links.get(path).is_some_and(|target| before.links.get(path) == Some(target))
    }

    /// Whether a protected path is a part of a git folder that another look did not find.
    pub(crate) fn is_part_of_new(&self, path: &Path, before: &Self) -> bool {
        self.owners.get(path).is_some_and(|owner| self.is_new(owner, before))
    }

    /// Whether a folder is a git folder, and was none at an earlier look, or none yet: what it holds may have been there, for
    /// nothing that git would read.
    fn is_new(&self, folder: &Path, before: &Self) -> bool {
        self.git_folders.contains(folder)
            && (!before.git_folders.contains(folder)
                || (self.complete.contains(folder) && !before.complete.contains(folder)))
    }

    /// Protected paths that another look did not find, or not as those of a git folder.
    pub(crate) fn new_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        let is_new = |path: &&PathBuf| !before.paths.contains(*path) || self.is_part_of_new(path, before);
        self.paths.iter().filter(is_new)
    }

    /// The parts of a git folder that run programs, and those of its submodules and of worktrees elsewhere.
    fn git_folder(&mut self, folder: &Path, walls: &Walls) {
        if !self.git_folders.insert(folder.to_owned()) {
            return;
        }
        let entries = self.entries_of(folder);
        // Listed before it is read for the working trees.
        if entries.iter().any(|entry| entry.text == "worktrees" && entry.is_folder) {
            self.worktrees(&folder.join("worktrees"), walls);
        }
        let mut places: Vec<PathBuf> =
            git_folder::working_trees(folder).into_iter().map(|tree| tree.tree).collect();
        // Hooks of a push always run there (githooks(5)).
        places.push(folder.to_owned());
        for entry in entries {
            let path = folder.join(&entry.name);
            if protected::runs_in_git_folder(&entry.text) {
                self.configuration(&entry.text, &path, &places, walls);
                self.owners.insert(path.clone(), folder.to_owned());
                self.paths.insert(path);
            } else if entry.text == "modules" && entry.is_folder {
                self.modules(&path, walls);
            }
        }
    }

    /// Looks for what git does not make in its folders, and for what it goes on with.
    fn look_into_git_folders(&mut self, walls: &Walls) {
        let mut outermost: Option<PathBuf> = None;
        // In the order of paths a folder stands before what it holds.
        for top in self.git_folders.clone() {
            if outermost.as_ref().is_some_and(|outermost| top.starts_with(outermost)) {
                continue;
            }
            // A bare one may be any folder by the names in it.
            let is_git_alone = top.ends_with(".git") || walls.git_folders.contains(&top);
            let mut folders = vec![top.clone()];
            while let Some(folder) = folders.pop() {
                for entry in self.entries_of(&folder) {
                    let path = folder.join(&entry.name);
                    if !entry.is_folder && !entry.is_file {
                        self.foreign.add(path);
                    } else if RebasePlans::is_one(&path) {
                        self.rebases.add(path);
                    } else if entry.is_folder
                        && (is_git_alone || folder != top || FOLDERS_OF_GIT.contains(&entry.text.as_str()))
                    {
                        folders.push(path);
                    }
                }
            }
            if is_git_alone {
                outermost = Some(top);
            }
        }
    }

    /// What a configuration of git names in the roots.
    fn configuration(&mut self, name: &str, path: &Path, places: &[PathBuf], walls: &Walls) {
        if !name.get(..6).is_some_and(|name| name.eq_ignore_ascii_case("config")) {
            return;
        }
        let named = named_by_git(path, places, walls.owner_home.as_deref());
        let within_roots =
            |path: &PathBuf| walls.writable_roots().any(|root| path.starts_with(root) && path != root);
        let within = |path: &PathBuf| path.exists() && within_roots(path);
        for (path, mut links) in named.into_iter().filter(|(path, _)| within(path)) {
            // A command that has a link lead elsewhere does not make what stands there its own.
            links.retain(within_roots);
            if links.is_empty() {
                self.protect(path);
                continue;
            }
            for link in links {
                self.protect_behind(&path, &link);
                self.links.insert(link.clone(), reached(&link));
            }
        }
    }

    /// Submodules' names may have several parts and be any, so that a folder here is a git folder or on the way to one. One
    /// without a head is a git folder as long as it has a configuration, which no command takes away.
    fn modules(&mut self, folder: &Path, walls: &Walls) {
        for entry in self.entries_of(folder).into_iter().filter(|entry| entry.is_folder) {
            let path = folder.join(&entry.name);
            let has_file =
                |name: &str| path.join(name).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir());
            if GitShape::is_submodule(has_file) {
                self.git_folder(&path, walls);
            } else {
                self.modules(&path, walls);
            }
        }
    }

    fn worktrees(&mut self, folder: &Path, walls: &Walls) {
        for entry in self.entries_of(folder) {
            let path = folder.join(&entry.name);
            let place = read_small(&path.join("gitdir")).unwrap_or_default();
            // Absolute, or from the folder that it lies in.
            let place = Some(place.trim_end()).filter(|place| !place.is_empty());
            let place = place.map(|place| reached(&path.join(place)));
            let is_ours = |place: &PathBuf| walls.writable_roots().any(|root| place.starts_with(root));
            if let Some(place) = place.filter(is_ours) {
                let names = self.entries_of(&path);
                let places: Vec<PathBuf> = place.parent().map(Path::to_owned).into_iter().collect();
                // By `gitdir` it is told whose a folder is.
                let counts =
                    |entry: &NamedEntry| protected::runs_in_git_folder(&entry.text) || entry.text == "gitdir";
                for entry in names.into_iter().filter(counts) {
                    let file = path.join(&entry.name);
                    self.configuration(&entry.text, &file, &places, walls);
                    self.protect(file);
                }
            } else {
                self.protect(path.clone());
            }
            self.worktrees.insert(path);
        }
    }

    /// Entries of a folder that count: folders, links and the like, and files of certain names.
    fn entries_of(&mut self, folder: &Path) -> Vec<NamedEntry> {
        if folder.as_os_str().len() > LONGEST_PATH {
            self.protect(folder.to_owned());
            return Vec::new();
        }
        let so_far: u64 = self.entries.iter().map(|(_, entries)| entries).sum();
        let mut room = self.most.map_or(u64::MAX, |most| most.saturating_sub(so_far));
        let mut entries = Vec::new();
        let mut number = 0;
        let listed = match self.most.is_some() && is_closed(folder) {
            true => Err(io::Error::new(io::ErrorKind::PermissionDenied, CLOSED)),
            false => list(folder),
        };
        let listed = listed.unwrap_or_else(|error| {
            self.add_unlisted(folder, &error);
            None
        });
        for entry in listed.into_iter().flatten() {
            number += 1;
            if room == 0 {
                break;
            }
            room -= 1;
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.add_unlisted(folder, &error);
                    break;
                }
            };
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let kind = entry.file_type();
            let is = |of: fn(&FileType) -> bool| kind.as_ref().is_ok_and(of);
            if is(FileType::is_file) && !may_count(&text) {
                continue;
            }
            entries.push(NamedEntry {
                text: text.into_owned(),
                is_folder: is(FileType::is_dir),
                is_file: is(FileType::is_file),
                is_link: is(FileType::is_symlink),
                name,
            });
        }
        if let Some((_, entries)) = self.entries.last_mut() {
            *entries += number;
        }
        entries
    }

    fn add_unlisted(&mut self, folder: &Path, error: &io::Error) {
        let (path, kind) = (folder.to_owned(), error.kind());
        self.unlisted.push(UnlistedFolder { path, kind, problem: error.to_string() });
    }
}

/// Whether a file may be protected, or tell of a git folder, by its name.
fn may_count(name: &str) -> bool {
    GitShape::NAMES.iter().any(|counted| name.eq_ignore_ascii_case(counted))
        || name == "gitdir"
        || rebase_plans::FILES.contains(&name)
        || protected::is_git_folder(name)
        || protected::ends_mounted(name)
}

/// Names that are protected in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamesThatCount {
    All,
    /// Below a folder of packages: those of git alone, which goes into each folder that its index names.
    GitFolders,
}

impl NamesThatCount {
    fn counts(self, name: &str) -> bool {
        self == Self::All || protected::is_git_folder(name)
    }
}

/// Entry of a folder.
struct NamedEntry {
    name: OsString,
    /// The name to compare. One that is no text is none that is protected; it is only walked through.
    text: String,
    is_folder: bool,
    is_file: bool,
    is_link: bool,
}

pub(crate) fn is_dependency_folder(name: &str, walls: &Walls) -> bool {
    DEPENDENCY_FOLDERS.contains(&name) || walls.dependency_folders.iter().any(|folder| folder == name)
}
