//! Arguments of the `context` commands.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::ViewArg;

/// See what was sent to a model, compare it, send it again.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum ContextCommand {
    /// What was sent for a node, or what would be sent next.
    Show(ShowContext),
    /// What differs between two requests.
    Diff(Diff),
    /// Read the bytes of a request back, and send them again as a new sibling; to another model, encoded anew.
    Replay(Replay),
}

/// `context show`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct ShowContext {
    /// The node: its id, or TREE:SHORT. The id of a request that made none is taken, too.
    #[arg(required_unless_present = "next")]
    #[serde(default)]
    pub node: Option<String>,
    /// What would be sent next: for this tree, else for the session.
    #[arg(long, value_name = "TREE", num_args = 0..=1, default_missing_value = "", conflicts_with = "node")]
    #[serde(default)]
    pub next: Option<String>,
    /// The session that `--next` is about where it names no tree [default: main].
    #[arg(long, value_name = "NAME", requires = "next")]
    #[serde(default)]
    pub session: Option<String>,
    /// As if this were said next; `-` reads standard input. Nothing is said and nothing is written.
    #[arg(short, long, value_name = "TEXT", requires = "next")]
    #[serde(default)]
    pub message: Option<String>,
    /// The view.
    #[command(flatten)]
    #[serde(flatten)]
    pub view: ViewArg,
    /// The text of each segment, too.
    #[arg(long)]
    #[serde(default)]
    pub text: bool,
    /// Bars for each kind of segment instead of a line for each segment.
    #[arg(long, conflicts_with = "text")]
    #[serde(default)]
    pub map: bool,
}

/// `context diff`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Diff {
    /// One node.
    pub a: String,
    /// Another.
    pub b: String,
}

/// `context replay`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Replay {
    /// The node: its id, or TREE:SHORT.
    pub node: String,
    /// Only read the bytes back and compare their hash; with --model only encode them anew.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Send many tokens without asking.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}
