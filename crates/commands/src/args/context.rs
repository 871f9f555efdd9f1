//! Arguments of the `context` commands.

use clap::{ArgGroup, Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::ViewArg;

/// Show, compare and resend what was sent to a model.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum ContextCommand {
    /// Show what was sent for a node, or what would be sent next.
    Show(ShowContext),
    /// Show what differs between two requests.
    Diff(Diff),
    /// Send a stored request again, with --model to another model. The answer is a new sibling.
    Replay(Replay),
}

/// `context show`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(group(ArgGroup::new("request").required(true).args(["node", "next"])))]
pub struct ShowContext {
    /// The node: its id, or TREE:SHORT. The id of a request that made no node works, too.
    #[serde(default)]
    pub node: Option<String>,
    /// Show what would be sent next: for TREE, or else for the session.
    #[arg(long, value_name = "TREE", num_args = 0..=1, default_missing_value = "")]
    #[serde(default)]
    pub next: Option<String>,
    /// With --next and no TREE: the session [default: main].
    #[arg(long, value_name = "NAME", requires = "next")]
    #[serde(default)]
    pub session: Option<String>,
    /// With --next: assume that this is the next message. Nothing is sent or written. `-` reads standard input.
    #[arg(short, long, value_name = "TEXT", requires = "next")]
    #[serde(default)]
    pub message: Option<String>,
    /// The view.
    #[command(flatten)]
    #[serde(flatten)]
    pub view: ViewArg,
    /// Show the text of each segment.
    #[arg(long)]
    #[serde(default)]
    pub text: bool,
    /// Show a bar for each kind of segment, instead of a line for each segment.
    #[arg(long, conflicts_with = "text")]
    #[serde(default)]
    pub map: bool,
}

/// `context diff`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Diff {
    /// The first node: its id, or TREE:SHORT.
    pub a: String,
    /// The second node.
    pub b: String,
}

/// `context replay`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Replay {
    /// The node: its id, or TREE:SHORT.
    pub node: String,
    /// Send nothing: read the bytes back and compare their hash, or encode them for --model.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Send more than 50,000 tokens without asking.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}
