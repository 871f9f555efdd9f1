//! The arguments of every command. Doc comments are the help a person reads.

pub mod allow;
pub mod approvals;
pub mod cards;
pub mod chat;
pub mod context;
pub mod cost;
pub mod files;
pub mod handoff;
pub mod maintenance;
pub mod mcp;
pub mod model;
pub mod policy;
pub mod skills;
pub mod think;
pub mod tree;
pub mod workspace;

use clap::Args;
use serde::{Deserialize, Serialize};

/// Which view of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct ViewArg {
    /// The view to read or change [default: main].
    #[arg(long, value_name = "VIEW")]
    #[serde(default)]
    pub view: Option<String>,
}

/// A tree.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct TreeArg {
    /// The tree: its id, short id or exact title.
    #[arg(value_name = "TREE")]
    pub tree: String,
    /// The view.
    #[command(flatten)]
    #[serde(flatten)]
    pub view: ViewArg,
}

/// A tree as a whole, whatever its views show.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct WholeTreeArg {
    /// The tree: its id, short id or exact title.
    #[arg(value_name = "TREE")]
    pub tree: String,
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct NodeArg {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The node: its id or short id.
    #[arg(value_name = "NODE")]
    pub node: String,
}
