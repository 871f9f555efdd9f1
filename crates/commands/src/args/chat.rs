//! Arguments of conversations.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::think::Think;
use crate::error::CommandError;

/// `chat`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct ChatArgs {
    /// Send this message, print the answer and exit. `-` reads standard input.
    #[arg(short, long, value_name = "TEXT")]
    #[serde(default)]
    pub message: Option<String>,
    /// Which session.
    #[command(flatten)]
    #[serde(flatten)]
    pub session: SessionArg,
    /// Start a new conversation in the session. The earlier one is kept as a tree.
    #[arg(long)]
    #[serde(default)]
    pub new: bool,
    /// Forget the conversation when it is closed.
    #[arg(long, conflicts_with_all = ["session", "new"])]
    #[serde(default)]
    pub temp: bool,
    /// Attach a file: a text, a picture or a sound. Can be repeated.
    #[arg(long = "file", value_name = "FILE")]
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Use this preset of the configuration.
    #[arg(long, value_name = "PRESET")]
    #[serde(default)]
    pub preset: Option<String>,
    /// How much the model thinks before it answers.
    #[arg(long, value_name = "off|low|high", hide_possible_values = true)]
    #[serde(default)]
    pub think: Option<Think>,
}

impl ChatArgs {
    /// Refuses standard input for more than one argument: only one of them could read it.
    ///
    /// # Errors
    /// `usage`.
    pub fn check(&self) -> Result<(), CommandError> {
        let message = self.message.iter().filter(|message| *message == "-").count();
        let files = self.files.iter().filter(|file| is_standard_input(file)).count();
        if message + files > 1 {
            let hint = "name `-` once, and files for the rest";
            return Err(CommandError::usage("standard input is named more than once", hint));
        }
        Ok(())
    }
}

/// Whether a file argument is standard input: `-`, or a path such as `/dev/stdin`. A plain file is not: each path to it
/// reads it from its beginning.
fn is_standard_input(file: &Path) -> bool {
    let is_its_path = || {
        let ours = File::from(std::io::stdin().as_fd().try_clone_to_owned()?).metadata()?;
        let named = file.metadata()?;
        Ok::<_, std::io::Error>(!named.is_file() && (named.dev(), named.ino()) == (ours.dev(), ours.ino()))
    };
    file == Path::new("-") || is_its_path().unwrap_or(false)
}

/// Which session.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct SessionArg {
    /// A session of this workspace, or SESSION:FORK [default: main].
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
        /// Include archived sessions.
        #[arg(long)]
        #[serde(default)]
        archived: bool,
        /// List the sessions of every workspace.
        #[arg(long)]
        #[serde(default)]
        all: bool,
    },
    /// Show a session: its trees, and how full its window is.
    Show {
        /// Name of the session.
        name: String,
    },
    /// Give a session another name.
    Rename {
        /// Name of the session.
        name: String,
        /// The new name.
        to: String,
    },
    /// Archive a session. Its name can be used again.
    Archive {
        /// Name of the session.
        name: String,
        /// Restore the session from the archive.
        #[arg(long)]
        #[serde(default)]
        undo: bool,
    },
}
