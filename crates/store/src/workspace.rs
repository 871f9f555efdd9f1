//! What the owner said about workspaces (spec: security §4).
//!
//! The answer is kept in the home, never in the folder it is about: a folder cannot vouch for itself. It is for one
//! folder by path, device and inode; what a folder held when it was looked at is kept beside the answer, so that
//! later changes can be shown. What that text means is the caller's affair.

use std::path::PathBuf;

use loom::Millis;

/// An answer about one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// Canonical path of the folder, by which a later answer replaces an earlier one.
    pub path: PathBuf,
    /// The device it is on.
    pub device: u64,
    pub inode: u64,
    /// Whether what it brings may be loaded.
    pub trusted: bool,
    /// What it held then, as the caller writes it.
    pub inventory: String,
    pub at: Millis,
}
