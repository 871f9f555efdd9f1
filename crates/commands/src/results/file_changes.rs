//! Results of `/diff`, `/undo --files`, `/restore` and `/redo --files`.

use std::path::PathBuf;

use serde::Serialize;

/// `/diff`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FilesChanged {
    /// The files, in the order of their first change.
    pub files: Vec<FileDifference>,
    /// Paths that the last giving-back changed and `/redo --files` would change again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_back: Vec<PathBuf>,
}

/// What tools made of a file, all changes as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDifference {
    /// The folder it lies beneath.
    pub root: PathBuf,
    /// The path below it.
    pub path: PathBuf,
    /// Whether it was made.
    pub is_new: bool,
    /// Whether it was deleted.
    pub is_gone: bool,
    /// The path below its folder that it had before, where nothing but that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<PathBuf>,
    /// As a unified diff, with secrets masked.
    pub diff: String,
}

/// `/undo --files`, `/restore`, `/redo --files`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FilesGivenBack {
    /// Paths that are what they were.
    pub given: Vec<PathBuf>,
    /// Paths that are left as they are.
    pub left: Vec<LeftFile>,
    /// Whether they are what they were before they were given back.
    #[serde(skip)]
    pub is_redone: bool,
}

/// A path that was not given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftFile {
    /// The path below its folder.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}
