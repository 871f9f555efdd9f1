//! Arguments of conversations.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::think::Think;

/// `chat`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct ChatArgs {
    /// Say this, print the answer and end. `-` reads standard input.
    #[arg(short, long, value_name = "TEXT")]
    #[serde(default)]
    pub message: Option<String>,
    /// Which session.
    #[command(flatten)]
    #[serde(flatten)]
    pub session: SessionArg,
    /// Begin the session anew; what was said before stays in its earlier tree.
    #[arg(long)]
    #[serde(default)]
    pub new: bool,
    /// A conversation that is forgotten when it is closed.
    #[arg(long, conflicts_with_all = ["session", "new"])]
    #[serde(default)]
    pub temp: bool,
    /// Send a file along: a text, a picture or a sound. May be given several times.
    #[arg(long = "file", value_name = "FILE")]
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// How the model is asked: one of the presets in the configuration.
    #[arg(long, value_name = "PRESET")]
    #[serde(default)]
    pub preset: Option<String>,
    /// How much the model thinks before it answers.
    #[arg(long, value_name = "off|low|high", hide_possible_values = true)]
    #[serde(default)]
    pub think: Option<Think>,
}

/// Which session.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct SessionArg {
    /// The session of this workspace, SESSION:FORK for a fork [default: main].
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub session: Option<String>,
}

/// `sessions`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum SessionsCommand {
    /// List the sessions of this workspace.
    List {
        /// Archived ones too.
        #[arg(long)]
        #[serde(default)]
        archived: bool,
        /// Of every workspace.
        #[arg(long)]
        #[serde(default)]
        all: bool,
    },
    /// Show a session: its trees, and how full it is.
    Show {
        /// Its name.
        name: String,
    },
    /// Give a session another name.
    Rename {
        /// Its name.
        name: String,
        /// The new one.
        to: String,
    },
    /// Put a session away; its name is free again.
    Archive {
        /// Its name.
        name: String,
        /// Take it out of the archive.
        #[arg(long)]
        #[serde(default)]
        undo: bool,
    },
}
