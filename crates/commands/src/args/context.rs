//! Arguments of the `context` commands.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::ViewArg;

/// See what was sent to a model, compare it, send it again.
#[derive(Debug, Clone, Subcommand, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum ContextCommand {
    /// What was sent for a node, or what would be sent next.
    Show(ShowContext),
    /// What differs between two requests.
    Diff(Diff),
    /// Read the bytes of a request back, and send them again as a new sibling.
    Replay(Replay),
}

/// `context show`.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub struct ShowContext {
    /// The node: its id, or TREE:SHORT.
    #[arg(required_unless_present = "next")]
    #[serde(default)]
    pub node: Option<String>,
    /// What would be sent for the next continuation of this tree.
    #[arg(long, value_name = "TREE", conflicts_with = "node")]
    #[serde(default)]
    pub next: Option<String>,
    /// The view.
    #[command(flatten)]
    #[serde(flatten)]
    pub view: ViewArg,
    /// The text of each segment, too.
    #[arg(long)]
    #[serde(default)]
    pub text: bool,
}

/// `context diff`.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub struct Diff {
    /// One node.
    pub a: String,
    /// Another.
    pub b: String,
}

/// `context replay`.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub struct Replay {
    /// The node: its id, or TREE:SHORT.
    pub node: String,
    /// Only read the bytes back and compare their hash.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
}
