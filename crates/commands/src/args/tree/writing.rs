//! Commands that write and change text.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::TreeArg;

/// `tree append`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Append {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The text. `-` reads standard input, as no text does where something is piped.
    #[serde(default)]
    pub text: Option<String>,
}

/// `tree draft`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct DraftArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The whole text of the draft. `-` reads standard input. Without it, the draft is printed.
    #[serde(default)]
    pub text: Option<String>,
    /// The node to edit [default: the draft after the last node].
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub at: Option<String>,
    /// Commit at once.
    #[arg(long, requires = "text")]
    #[serde(default)]
    pub commit: bool,
}

/// Version or branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditAsArg {
    /// A version at the same place. Everything below it stays.
    Version,
    /// A new sibling. What was below stays with the old one.
    Branch,
}

/// `tree edit`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(after_help = "Example: drawloom tree edit Rain\nExample: drawloom tree edit Rain --file rain.md")]
pub struct Edit {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The node: its id or short id. Without one the text of the path is edited, each passage where it stands.
    #[arg(value_name = "NODE")]
    #[serde(default)]
    pub node: Option<String>,
    /// The first passage that is edited [default: the first of the path].
    #[arg(long, value_name = "NODE", conflicts_with = "node")]
    #[serde(default)]
    pub from: Option<String>,
    /// The last passage that is edited [default: the end of the path].
    #[arg(long, value_name = "NODE", conflicts_with = "node")]
    #[serde(default)]
    pub to: Option<String>,
    /// The new text of the node. `-` reads standard input.
    #[arg(long, requires = "node", conflicts_with_all = ["from", "to"])]
    #[serde(default)]
    pub text: Option<String>,
    /// File with the new text. Without a text, file or words your editor opens ($VISUAL, $EDITOR).
    #[arg(long, conflicts_with = "text")]
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Replace these words of the text by others.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["text", "file"])]
    #[serde(default)]
    pub replace: Vec<String>,
    /// Replace them wherever they stand in it.
    #[arg(long, requires = "replace")]
    #[serde(default)]
    pub all: bool,
    /// What the edit makes [default: a version in documents, a branch in conversations].
    #[arg(long = "as", value_enum, requires = "node")]
    #[serde(default)]
    pub edit_as: Option<EditAsArg>,
}

/// `tree split`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(
    after_help = "Example: drawloom tree split Rain 9c3d --after 'until noon.'",
    group(ArgGroup::new("place").required(true).args(["after", "at"]))
)]
pub struct Split {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The node: its id or short id.
    #[arg(value_name = "NODE")]
    pub node: String,
    /// The place in its text, in characters (grapheme clusters).
    #[arg(long, value_name = "OFFSET", allow_negative_numbers = true)]
    #[serde(default)]
    pub at: Option<u64>,
    /// The place behind these words of its text.
    #[arg(long, value_name = "WORDS", conflicts_with = "at")]
    #[serde(default)]
    pub after: Option<String>,
}

/// `tree branch`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(group(ArgGroup::new("place").required(true).args(["after", "at"])))]
pub struct Branch {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The node: its id or short id. Without one the words of --after are looked for in the text of the path.
    #[arg(value_name = "NODE")]
    #[serde(default)]
    pub node: Option<String>,
    /// The place in its text, in characters (grapheme clusters).
    #[arg(long, value_name = "OFFSET", allow_negative_numbers = true, requires = "node")]
    #[serde(default)]
    pub at: Option<u64>,
    /// The place behind these words of its text.
    #[arg(long, value_name = "WORDS", conflicts_with = "at")]
    #[serde(default)]
    pub after: Option<String>,
    /// Continue with the alternative token of this rank, from the stored probabilities. 0 is the likeliest.
    #[arg(long, value_name = "RANK")]
    #[serde(default)]
    pub token: Option<u32>,
}
