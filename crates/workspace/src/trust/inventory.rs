//! Inventory of a workspace: files it would load if it were trusted.
//!
//! Everything is read as data: no file is interpreted, nothing started, no link followed out of it. What
//! cannot be read is listed as such, because "I could not look" is not "there is nothing".

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loom::Digest;
use serde::{Deserialize, Serialize};

use crate::error::{FileError, FileKind, FileProblem};
use crate::path::RelativePath;
use crate::root::{ReadRules, Root};

/// Largest file that is hashed, in bytes; larger ones are listed unread.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Largest text of instructions or of a skill that is kept to show what changes in it, in bytes.
pub const KEPT_BYTES: usize = 64 * 1024;

/// Bytes of all texts of skills that are kept.
const KEPT_OF_SKILLS: usize = 1024 * 1024;

/// Most items, and most entries looked at in one folder.
const MAX_ITEMS: usize = 5_000;
const MAX_ENTRIES: usize = 10_000;

/// Deepest level of a skill below its folder (as OpenClaw looks for them).
const SKILL_DEPTH: usize = 6;

/// Files at the top whose text would reach the model as instructions or memory.
const INSTRUCTIONS: &[&str] = &[
    "AGENTS.md",
    "CLAUDE.md",
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "TOOLS.md",
    "HEARTBEAT.md",
    "BOOT.md",
    "BOOTSTRAP.md",
    "MEMORY.md",
    "HANDOFF.md",
];

/// Whether a path below a workspace is one of standing instructions.
pub fn is_instructions(path: &Path) -> bool {
    INSTRUCTIONS.iter().any(|name| path == Path::new(name))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A file of standing instructions.
    Instructions,
    /// A daily note, a fact file or a handoff.
    Memory,
    Skill,
    Command,
    Card,
    /// Reminders, which are imported and never run from here.
    Reminders,
    /// Server definitions, which start only after acceptance by hash.
    Servers,
    /// A hook of an OpenClaw workspace, which is never run.
    Hook,
    /// `.drawloom/workspace.toml`.
    Settings,
}

/// One thing a workspace would load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InventoryItem {
    pub path: PathBuf,
    pub kind: ItemKind,
    /// Size in bytes.
    pub bytes: u64,
    /// The hash of its bytes, hexadecimal where it is kept.
    pub sha256: Digest,
}

/// Something that stands where an item would, and was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unread {
    /// Path below the workspace; what is not UTF-8 in it is replaced.
    pub path: PathBuf,
    /// Why, in words: a link, a folder, too large, no permission.
    pub why: String,
}

/// All of it, ordered by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    pub items: Vec<InventoryItem>,
    /// Files that could not be read.
    pub unread: Vec<Unread>,
    /// There is more than is listed.
    pub incomplete: bool,
    /// Texts of instructions and skills by path, as far as they are kept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<PathBuf, String>,
}

/// Difference of an item from an earlier inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InventoryChange {
    Added(PathBuf),
    Changed(PathBuf),
    Removed(PathBuf),
}

impl InventoryChange {
    pub fn path(&self) -> &Path {
        match self {
            Self::Added(path) | Self::Changed(path) | Self::Removed(path) => path,
        }
    }
}

impl Inventory {
    /// Looks through a workspace. Cards lie below the repository, which may be a larger folder:
    /// those are taken with the root that holds them.
    pub fn take(workspace: &Root) -> Self {
        let mut taking = Taking { root: workspace, found: Self::default(), kept_of_skills: 0 };
        // These are read through links that stay below the workspace, as they are when they are loaded.
        for name in INSTRUCTIONS {
            taking.read(name, ItemKind::Instructions, &ReadRules::at_most(MAX_BYTES).follow_links());
        }
        taking.file("reminders.json", ItemKind::Reminders);
        taking.file(".mcp.json", ItemKind::Servers);
        taking.file(crate::settings::SETTINGS_PATH, ItemKind::Settings);
        for (folder, kind) in [
            ("memory", ItemKind::Memory),
            ("handoffs", ItemKind::Memory),
            ("commands", ItemKind::Command),
            ("docs/capabilities", ItemKind::Card),
        ] {
            taking.folder(folder, 1, &|_| Some(kind));
        }
        let skill = |name: &str| name.eq_ignore_ascii_case("SKILL.md").then_some(ItemKind::Skill);
        for folder in ["skills", ".agents/skills"] {
            taking.folder(folder, SKILL_DEPTH, &skill);
        }
        taking.folder("hooks", 2, &|_| Some(ItemKind::Hook));
        let mut found = taking.found;
        found.items.sort();
        found.unread.sort();
        found
    }

    /// Whether there is nothing to load, for certain.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.unread.is_empty() && !self.incomplete
    }

    /// Lists a text of instructions besides those that are there: the owner saw it. Others of its path stay accepted.
    pub fn accept_instructions(&mut self, path: &Path, bytes: &[u8]) {
        let item = InventoryItem {
            path: path.to_owned(),
            kind: ItemKind::Instructions,
            bytes: bytes.len() as u64,
            sha256: Digest::of(bytes),
        };
        if !self.holds(&item.path, item.sha256) {
            self.items.push(item);
        }
        self.keep_text(path, bytes);
    }

    /// Keeps a text in place of the one before.
    fn keep_text(&mut self, path: &Path, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= KEPT_BYTES);
        match text {
            Some(text) => self.texts.insert(path.to_owned(), text.to_owned()),
            None => self.texts.remove(path),
        };
    }

    /// The inventory with its texts as `mask` gives them.
    #[must_use]
    pub fn with_texts_masked(self, mask: impl Fn(&str) -> String) -> Self {
        let masked = |(path, kept): (PathBuf, String)| (path, mask(&kept));
        Self { texts: self.texts.into_iter().map(masked).collect(), ..self }
    }

    /// Whether this text stood at this path.
    pub fn holds(&self, path: &Path, sha256: Digest) -> bool {
        self.items.iter().any(|item| item.path == path && item.sha256 == sha256)
    }

    /// What changed since an earlier inventory, ordered by path: shown before the workspace is
    /// loaded again.
    pub fn changes_since(&self, earlier: &Self) -> Vec<InventoryChange> {
        let by_path = |inventory: &Self| -> BTreeMap<PathBuf, Digest> {
            inventory.items.iter().map(|item| (item.path.clone(), item.sha256)).collect()
        };
        let (before, now) = (by_path(earlier), by_path(self));
        let paths: BTreeSet<&PathBuf> = before.keys().chain(now.keys()).collect();
        paths
            .into_iter()
            .filter_map(|path| match (before.get(path), now.get(path)) {
                (None, _) => Some(InventoryChange::Added(path.clone())),
                (_, None) => Some(InventoryChange::Removed(path.clone())),
                (Some(_), Some(new)) => {
                    (!earlier.holds(path, *new)).then(|| InventoryChange::Changed(path.clone()))
                }
            })
            .collect()
    }
}

struct Taking<'a> {
    root: &'a Root,
    found: Inventory,
    /// Bytes of texts of skills that are kept by now.
    kept_of_skills: usize,
}

impl Taking<'_> {
    fn file(&mut self, path: &str, kind: ItemKind) {
        self.read(path, kind, &ReadRules::at_most(MAX_BYTES));
    }

    fn read(&mut self, path: &str, kind: ItemKind, rules: &ReadRules) {
        match RelativePath::parse(path) {
            Ok(path) => self.take_file(&path, kind, rules),
            Err(problem) => self.unread(Path::new(path), &problem.to_string()),
        }
    }

    fn take_file(&mut self, path: &RelativePath, kind: ItemKind, rules: &ReadRules) {
        if self.found.items.len() >= MAX_ITEMS {
            self.found.incomplete = true;
            return;
        }
        if path.as_path().to_str().is_none() {
            return self.unread(path.as_path(), "its name is not UTF-8 text");
        }
        match self.root.read(path, rules) {
            Ok(content) => {
                self.found.items.push(InventoryItem {
                    path: path.as_path().to_path_buf(),
                    kind,
                    bytes: content.metadata.bytes,
                    sha256: content.digest(),
                });
                if kind == ItemKind::Skill {
                    self.kept_of_skills = self.kept_of_skills.saturating_add(content.bytes.len());
                }
                let has_room = self.kept_of_skills <= KEPT_OF_SKILLS;
                if kind == ItemKind::Instructions || (kind == ItemKind::Skill && has_room) {
                    self.found.keep_text(path.as_path(), &content.bytes);
                }
            }
            Err(FileError { problem: FileProblem::NotFound, .. }) => {}
            Err(error) => self.unread(path.as_path(), &error.problem.to_string()),
        }
    }

    /// Takes the files of a folder, down to `depth` levels, that `kind_of` has a kind for.
    fn folder(&mut self, path: &str, depth: usize, kind_of: &dyn Fn(&str) -> Option<ItemKind>) {
        match RelativePath::parse(path) {
            Ok(path) => self.walk(&path, depth, kind_of),
            Err(problem) => self.unread(Path::new(path), &problem.to_string()),
        }
    }

    fn walk(&mut self, folder: &RelativePath, depth: usize, kind_of: &dyn Fn(&str) -> Option<ItemKind>) {
        let listing = match self.root.list(folder, MAX_ENTRIES) {
            Ok(listing) => listing,
            Err(FileError { problem: FileProblem::NotFound, .. }) => return,
            Err(error) => return self.unread(folder.as_path(), &error.problem.to_string()),
        };
        self.found.incomplete |= listing.incomplete;
        for entry in listing.entries {
            let Ok(path) = folder.join(&entry.name) else { continue };
            if self.found.items.len() >= MAX_ITEMS {
                self.found.incomplete = true;
                return;
            }
            match entry.kind {
                FileKind::Folder if depth > 1 => self.walk(&path, depth - 1, kind_of),
                FileKind::Folder => {}
                // A link may stand for a file or a folder; either way it is named, not followed.
                FileKind::Symlink => self.unread(path.as_path(), &FileProblem::Symlink.to_string()),
                _ => {
                    if let Some(kind) = kind_of(&entry.name.to_string_lossy()) {
                        self.take_file(&path, kind, &ReadRules::at_most(MAX_BYTES));
                    }
                }
            }
        }
    }

    fn unread(&mut self, path: &Path, why: &str) {
        if self.found.unread.len() >= MAX_ITEMS {
            self.found.incomplete = true;
        } else {
            let path = PathBuf::from(path.to_string_lossy().into_owned());
            self.found.unread.push(Unread { path, why: why.to_owned() });
        }
    }
}
