//! Arguments of `files` and `tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde::{Deserialize, Serialize};

use crate::args::chat::SessionArg;

/// `files`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum FilesCommand {
    /// Show what tools changed in files in a session, and nobody gave back.
    #[command(after_help = "Example: drawloom files diff --session work")]
    Diff(DiffArgs),
    /// List what a file was before the turns that changed it, newest first.
    #[command(after_help = "Example: drawloom files history notes.md")]
    History(HistoryArgs),
    /// Make a file or folder what it was before the last change by a tool. The difference is shown first.
    #[command(after_help = "Example: drawloom files restore notes.md --yes")]
    Restore(RestoreFileArgs),
}

/// `files diff`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct DiffArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub session: SessionArg,
    /// Only the changes of the turn of this node.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub turn: Option<String>,
}

/// `files history`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct HistoryArgs {
    /// The file: from the working directory, where that is in the workspace, else from the workspace.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    #[serde(flatten)]
    pub session: SessionArg,
}

/// `files restore`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct RestoreFileArgs {
    /// The file or folder: from the working directory, where that is in the workspace, else from the workspace.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: PathBuf,
    /// Make it what it was before the turn of this node [default: before the last change].
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub at: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub session: SessionArg,
    /// Do not ask.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

/// `tools`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ToolsCommand {
    /// List the tools that the model of a session may call, and what is decided on their calls.
    #[command(after_help = "Example: drawloom tools list")]
    List(SessionArg),
}
