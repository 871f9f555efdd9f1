//! Arguments of `workspace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// `workspace`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum WorkspaceCommand {
    /// List this workspace and those you decided about, with what each would load.
    List,
    /// Trust a workspace: load its instructions, skills and memory, as they are now.
    Trust(FolderArg),
    /// Load nothing from a workspace.
    Untrust(FolderArg),
    /// Trust files as the workspace's own that a model wrote in sight of text from outside.
    Accept(FilesArg),
}

/// Files.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct FilesArg {
    /// Files you read: it holds for what they say now, wherever it stands.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct FolderArg {
    /// The workspace [default: this one].
    #[arg(value_name = "DIR")]
    #[serde(default)]
    pub folder: Option<PathBuf>,
}
