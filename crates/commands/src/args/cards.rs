//! Arguments of `cards`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde::{Deserialize, Serialize};

/// `cards`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum CardsCommand {
    /// List the cards within reach: which can be selected, and why others cannot.
    #[command(after_help = "Example: drawloom cards list")]
    List,
    /// Check cards: whether they can be read, and what their authors should look at.
    #[command(after_help = "Example: drawloom cards check docs/capabilities")]
    Check(CardsCheckArgs),
    /// Begin a card: a file to be filled, in docs/capabilities of the repository.
    #[command(
        after_help = "Example: drawloom cards new deploy-preview --description 'Builds a branch for a look at it.'"
    )]
    New(NewCardArgs),
    /// Explain which cards a message would select, and why not the others.
    #[command(after_help = "Example: drawloom cards select --message \"How do I deploy a preview?\"")]
    Select(SelectCardsArgs),
}

/// `cards check`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct CardsCheckArgs {
    /// A card, or a folder of cards [default: all within reach, also of a workspace that is not trusted].
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[serde(default)]
    pub path: Option<PathBuf>,
}

/// `cards new`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct NewCardArgs {
    /// The id: small letters a-z, digits and hyphens.
    #[arg(value_name = "ID")]
    pub id: String,
    /// What it lets the agent do, in one line.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub description: Option<String>,
}

/// `cards select`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct SelectCardsArgs {
    /// The message.
    #[arg(long, short, value_name = "TEXT")]
    pub message: String,
    /// Kind of the session in which it would be said.
    #[arg(long, value_name = "KIND", value_enum, default_value_t)]
    #[serde(default)]
    pub session_type: SessionTypeArg,
}

/// Kind of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionTypeArg {
    /// Your conversation.
    #[default]
    Main,
    /// One that works apart from it, such as that of a subagent.
    Isolated,
}
