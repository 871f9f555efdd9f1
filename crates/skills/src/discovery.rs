//! Finding skills: folders with a `SKILL.md` below the folders they may stand in.

use std::path::{Path, PathBuf};

use serde::Serialize;
use workspace::{
    Content, DirEntry, FileError, FileKind, FileProblem, ReadRules, RelativePath, Root, StoreGuard, canonical,
};

use crate::file::MAX_BYTES;

/// Most folders of a source that are looked through.
pub const MAX_FOLDERS: usize = 2_000;

/// Deepest level of a skill's file, the folder of the source being the first.
const DEPTH: usize = 6;

/// Most entries of one folder.
const MAX_ENTRIES: usize = 10_000;

/// Folders that hold no skills.
const SKIPPED: [&str; 2] = [".git", "node_modules"];

/// Kind of a folder that skills stand in, from the one that goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillSourceKind {
    /// `skills/` of the workspace.
    Workspace,
    /// `.agents/skills/` of the workspace.
    WorkspaceAgents,
    /// `.agents/skills/` of the user's home folder.
    UserAgents,
    /// `skills/` of Drawloom's home.
    Home,
    /// A folder there of the name of a built-in skill.
    BuiltIn,
}

impl SkillSourceKind {
    /// Whether the skills are those of a workspace.
    pub fn is_of_workspace(self) -> bool {
        matches!(self, Self::Workspace | Self::WorkspaceAgents)
    }

    /// The folder below the root of a source.
    const fn folder(self) -> &'static str {
        match self {
            Self::Workspace | Self::Home | Self::BuiltIn => "skills",
            Self::WorkspaceAgents | Self::UserAgents => ".agents/skills",
        }
    }
}

/// A folder that skills stand in.
#[derive(Clone, Copy, Debug)]
pub struct SkillSource<'a> {
    pub kind: SkillSourceKind,
    /// The folder above: of a workspace, of the user, or Drawloom's home.
    pub root: &'a Root,
}

/// A place that was not looked at, or not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedPlace {
    pub path: PathBuf,
    pub why: String,
}

/// A file that was found.
#[derive(Debug)]
pub struct FoundFile {
    /// The folder of the skill, by its whole path.
    pub folder: PathBuf,
    /// The file as it is named to a model: below a workspace its path there, else the whole one.
    pub path: PathBuf,
    /// Whether a link to a folder that the owner named led to it.
    pub is_linked: bool,
    pub content: Result<Content, FileError>,
}

/// Files of skills in a folder, which may be that of a skill itself, and what was not looked at.
pub fn files_below(
    root: &Root,
    allowed: &[PathBuf],
    guard: &StoreGuard,
) -> (Vec<FoundFile>, Vec<RefusedPlace>) {
    let mut found = Discovery::default();
    let place = Place { root, is_relative: false, is_linked: false, is_source: false, allowed, guard };
    found.walk(&place, &RelativePath::root(), 1);
    (found.files, found.refused)
}

/// Everything found in some sources, in their order.
#[derive(Default)]
pub(crate) struct Discovery {
    files: Vec<FoundFile>,
    pub(crate) refused: Vec<RefusedPlace>,
    /// Folders of the source that were looked at.
    folders: usize,
}

/// A root with how its paths are shown.
struct Place<'a> {
    root: &'a Root,
    /// Whether paths are those below it.
    is_relative: bool,
    is_linked: bool,
    /// Whether skills stand in folders of its folder, which is none itself.
    is_source: bool,
    allowed: &'a [PathBuf],
    guard: &'a StoreGuard,
}

impl Discovery {
    /// Files of a source. Links lead only to folders in `allowed`, or below one.
    pub(crate) fn look(
        &mut self,
        source: SkillSource<'_>,
        allowed: &[PathBuf],
        guard: &StoreGuard,
    ) -> Vec<FoundFile> {
        let SkillSource { kind, root } = source;
        let is_relative = kind.is_of_workspace();
        let place = Place { root, is_relative, is_linked: false, is_source: true, allowed, guard };
        self.folders = 0;
        match RelativePath::parse(kind.folder()) {
            Ok(path) => self.walk(&place, &path, 1),
            Err(problem) => self.refuse(&place, Path::new(kind.folder()), problem.to_string()),
        }
        std::mem::take(&mut self.files)
    }

    fn walk(&mut self, place: &Place<'_>, folder: &RelativePath, level: usize) {
        if self.folders == MAX_FOLDERS {
            self.folders += 1;
            let why =
                format!("there are more than {MAX_FOLDERS} folders: it and what follows is not looked at");
            self.refuse(place, folder.as_path(), why);
        }
        if self.folders > MAX_FOLDERS {
            return;
        }
        self.folders += 1;
        let listing = match place.root.list(folder, MAX_ENTRIES) {
            Ok(listing) => listing,
            Err(FileError { problem: FileProblem::NotFound, .. }) => return,
            Err(FileError { problem: FileProblem::Symlink, .. }) => return self.follow(place, folder, level),
            Err(error) => return self.refuse(place, folder.as_path(), error.problem.to_string()),
        };
        if listing.incomplete {
            self.refuse(place, folder.as_path(), format!("it has more than {MAX_ENTRIES} entries"));
        }
        let is_file =
            |entry: &&DirEntry| entry.kind != FileKind::Folder && entry.name.eq_ignore_ascii_case("SKILL.md");
        let own = listing.entries.iter().find(is_file);
        match own.map(|entry| folder.join(&entry.name)) {
            // What lies in the folder of a skill belongs to it.
            Some(Ok(file)) if level > 1 || !place.is_source => return self.take(place, folder, &file),
            Some(Ok(file)) => {
                self.refuse(place, file.as_path(), "a skill stands in a folder of its own".to_owned());
            }
            _ => {}
        }
        for entry in &listing.entries {
            let Ok(path) = folder.join(&entry.name) else { continue };
            match entry.kind {
                _ if SKIPPED.iter().any(|name| entry.name == *name) || is_file(&entry) => {}
                FileKind::Folder if level < DEPTH => self.walk(place, &path, level + 1),
                FileKind::Symlink if level < DEPTH => self.follow(place, &path, level + 1),
                _ => {}
            }
        }
    }

    /// Looks through the folder that a link leads to, where the owner named it.
    fn follow(&mut self, place: &Place<'_>, link: &RelativePath, level: usize) {
        let path = place.root.path().join(link.as_path());
        let target = match path.canonicalize() {
            Ok(target) if target.is_dir() => target,
            // A link to a file is no skill, nor is one that leads nowhere.
            _ => return,
        };
        let is_allowed = |allowed: &PathBuf| target.starts_with(canonical(allowed));
        if !place.allowed.iter().any(is_allowed) {
            let target = target.display();
            let why = format!("it is a link to {target}, which skills.link_targets does not name");
            return self.refuse(place, link.as_path(), why);
        }
        match Root::open(&target, place.guard) {
            Ok(root) => {
                // A link in there would lead on without end.
                let place =
                    Place { root: &root, is_relative: false, is_linked: true, allowed: &[], ..*place };
                self.walk(&place, &RelativePath::root(), level);
            }
            Err(error) => self.refuse(place, link.as_path(), error.problem.to_string()),
        }
    }

    fn take(&mut self, place: &Place<'_>, folder: &RelativePath, file: &RelativePath) {
        let whole = place.root.path().join(folder.as_path());
        let content = place.root.read(file, &ReadRules::at_most(MAX_BYTES));
        let path = place.shown(file.as_path());
        let is_linked = place.is_linked;
        self.files.push(FoundFile { folder: whole, path, is_linked, content });
    }

    fn refuse(&mut self, place: &Place<'_>, path: &Path, why: String) {
        self.refused.push(RefusedPlace { path: place.shown(path), why });
    }
}

impl Place<'_> {
    /// A path below the root as it is named to a model.
    fn shown(&self, path: &Path) -> PathBuf {
        if self.is_relative { path.to_owned() } else { self.root.path().join(path) }
    }
}
