//! Arguments of `handoff`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde::{Deserialize, Serialize};

/// `handoff`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum HandoffCommand {
    /// Check a handoff: its sections, its size, and what its author should look at.
    #[command(after_help = "Example: drawloom handoff check HANDOFF.md")]
    Check(HandoffCheckArgs),
    /// List earlier handoffs of this workspace: the last 20 of each session.
    #[command(after_help = "Example: drawloom handoff history --json")]
    History,
}

/// `handoff check`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct HandoffCheckArgs {
    /// The file; - reads standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}
