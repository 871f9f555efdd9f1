//! Results of `files`, `/diff`, `/restore`, and of undo and redo with `--files`.

use std::path::PathBuf;

use loom::NodeId;
use serde::Serialize;
use store::FileState;

/// `files diff`, `/diff`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FilesChanged {
    /// The files, in the order of their first change.
    pub changes: Vec<FileDifference>,
    /// Paths that the last giving-back changed and `/redo --files` would change again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_back: Vec<PathBuf>,
    /// The command of the command line that does; none in a conversation.
    #[serde(skip)]
    pub redo_with: Option<String>,
}

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    New,
    Changed,
    Deleted,
    /// Moved to another path, as it was.
    Moved,
}

/// What tools made of a file, all changes as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDifference {
    /// The folder it lies beneath.
    pub root: PathBuf,
    /// The path: below the workspace, or absolute.
    pub path: PathBuf,
    pub kind: ChangeKind,
    /// Lines that came; none of what is no text.
    pub added: Option<usize>,
    /// Lines that went.
    pub removed: Option<usize>,
    /// The answers whose calls changed it.
    pub by: Vec<NodeId>,
    /// Whether what was there before is kept, so that it can be given back.
    pub kept: bool,
    /// The path that it had before, where nothing but that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<PathBuf>,
    /// As a unified diff, with secrets masked.
    pub diff: String,
}

/// `files history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileHistory {
    /// What stood there before each turn that changed it and was not given back, the newest first.
    pub versions: Vec<FileVersion>,
    /// The command that brings one back, without its node.
    #[serde(skip)]
    pub restore: String,
}

/// What a path was before a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileVersion {
    /// The path: below the workspace, or absolute.
    pub path: PathBuf,
    /// The answer whose call changed it in that turn: what `files restore --at` takes.
    pub node: NodeId,
    pub short_id: String,
    /// When it was changed, in ms since 1970.
    pub at: i64,
    pub was: VersionKind,
    /// Bytes of the file, or of where the link leads; none of anything else, and of what is not kept.
    pub bytes: Option<u64>,
    /// Whether it can be brought back.
    pub kept: bool,
}

/// What stood at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionKind {
    Nothing,
    File,
    Folder,
    Link,
    /// A pipe or socket.
    Special,
}

impl VersionKind {
    pub(crate) const fn of(state: FileState) -> Self {
        match state {
            FileState::Absent => Self::Nothing,
            FileState::File { .. } | FileState::Unknown | FileState::Large { .. } => Self::File,
            FileState::Folder { .. } => Self::Folder,
            FileState::Link { .. } => Self::Link,
            FileState::Special { .. } => Self::Special,
        }
    }
}

/// `files restore`, `tree undo --files`, `tree redo --files`, `/undo --files`, `/restore`, `/redo --files`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FilesGivenBack {
    /// Paths that are what they were.
    pub given: Vec<PathBuf>,
    /// Paths that are left as they are.
    pub left: Vec<LeftFile>,
    /// Whether they are what they were before they were given back.
    #[serde(skip)]
    pub is_redone: bool,
    /// The command of the command line that takes it again; none in a conversation.
    #[serde(skip)]
    pub redo_with: Option<String>,
    /// The command of the command line that gives back what another tree changed, where nothing of this one stands.
    #[serde(skip)]
    pub elsewhere: Option<String>,
    /// Whether an earlier turn changed files, and is given back when it is asked for again.
    #[serde(skip)]
    pub is_more: bool,
    /// Where git's history went meanwhile, in words, which is not given back.
    #[serde(skip)]
    pub history: Option<String>,
}

/// A path that was not given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftFile {
    /// The path below its folder.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

impl LeftFile {
    /// A path, with a reason that may name it, as the error of a file does.
    pub(crate) fn new(path: PathBuf, why: String) -> Self {
        let named = format!("{}: ", path.display());
        let why = why.strip_prefix(&named).map(str::to_owned).unwrap_or(why);
        Self { path, why }
    }
}
