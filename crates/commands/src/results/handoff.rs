//! Results of `handoff` and of `/wrap`.

use std::path::PathBuf;

use loom::{Millis, TreeId};
use serde::Serialize;

use super::checks::TextProblem;

/// `handoff check`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandoffChecked {
    /// Whether there is no error.
    pub ok: bool,
    /// Size of the file.
    pub bytes: usize,
    pub problems: Vec<TextProblem>,
}

/// `handoff history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandoffHistory {
    /// Earlier handoffs of the workspace, the newest first.
    pub handoffs: Vec<EarlierHandoff>,
}

/// A handoff that a wrap replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierHandoff {
    /// The wrap that replaced it.
    pub wrap: String,
    pub session: String,
    /// When it was replaced.
    pub at: Millis,
    pub bytes: u64,
    /// Where it is.
    pub path: PathBuf,
}

/// `/wrap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrapShown {
    pub wrap: String,
    pub session: String,
    /// The tree that the session goes on in.
    pub tree: TreeId,
    /// The tree that was handed over.
    pub from: TreeId,
    /// The handoff, below the workspace.
    pub path: PathBuf,
    pub bytes: usize,
    /// Where the text before is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<PathBuf>,
    /// Where the handoff is instead, because another text stood in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmerged: Option<PathBuf>,
    /// From that text to the handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// Where the rest is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<PathBuf>,
    /// Entries of the rest.
    pub overflowed: usize,
}

/// `/wrap undo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrapUndone {
    pub wrap: String,
    pub session: String,
    /// The tree that the session goes on in again.
    pub tree: TreeId,
    /// The tree that it was in.
    pub from: TreeId,
    /// The handoff, below the workspace.
    pub path: PathBuf,
    pub file: HandoffFile,
    /// From the text that stands there to the one before the wrap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// What became of a handoff when its wrap was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffFile {
    Restored,
    /// There was none before.
    Removed,
    /// A text that was changed since stays.
    Left,
}
