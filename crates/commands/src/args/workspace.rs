//! Arguments of `workspace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// `workspace`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum WorkspaceCommand {
    /// List the workspaces you were asked about, and this one, with what each would load.
    List,
    /// Load what a workspace brings, as it is now: instructions, skills, memory.
    Trust(FolderArg),
    /// Load nothing of a workspace.
    Untrust(FolderArg),
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct FolderArg {
    /// The workspace [default: the one you are in].
    #[arg(value_name = "DIR")]
    #[serde(default)]
    pub folder: Option<PathBuf>,
}
