//! Results of `workspace`.

use loom::Millis;
use serde::Serialize;
use workspace::trust::{InventoryChange, InventoryItem, Unread};

/// `workspace list`, `trust`, `untrust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workspaces {
    /// The workspaces, ordered by path.
    pub workspaces: Vec<WorkspaceShown>,
}

/// `workspace accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilesAccepted {
    /// The files, in the order they were named.
    pub files: Vec<FileAccepted>,
}

/// A file whose text counts as its workspace's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileAccepted {
    /// As it was named.
    pub path: String,
    /// Whether it was known to come from outside.
    pub was_outside: bool,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkspaceShown {
    /// Canonical path of the folder.
    pub path: String,
    /// Whether it is loaded.
    pub state: TrustState,
    /// Why that.
    pub why: String,
    /// Whether it is the one of this call.
    pub current: bool,
    /// When you said so, ms since 1970; none if you did not.
    pub answered: Option<Millis>,
    /// What it brings to load, with sizes in bytes.
    pub items: Vec<InventoryItem>,
    /// What stands where such a thing would, and could not be read.
    pub unread: Vec<Unread>,
    /// Whether it brings more than is listed.
    pub incomplete: bool,
    /// What came, changed or went since you answered.
    pub changes: Vec<InventoryChange>,
}

/// Whether a workspace is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// Yes; what changed since you answered is not.
    Trusted,
    /// No.
    Untrusted,
    /// There is nothing to load.
    NothingToLoad,
    /// The folder is not there.
    Missing,
}
