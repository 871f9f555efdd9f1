//! Arguments of conversations.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agent::session::SessionSampling;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::allow::AllowArgs;
use super::think::Think;
use super::tree::{InvalidNumber, number, whole};
use crate::app::naming::nearest;
use crate::error::CommandError;
use crate::rights::Right;
use crate::slash::{self, Input};

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
    /// Hand the session over behind the answer: the next message begins a new conversation from its handoff.
    #[arg(long, requires = "message", conflicts_with = "private")]
    #[serde(default)]
    pub wrap: bool,
    /// Forget the conversation when it is closed.
    #[arg(long, conflicts_with_all = ["session", "new"])]
    #[serde(default)]
    pub private: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub turn: TurnArgs,
    /// Earlier name of `--private`.
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub temp: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub request: RequestArgs,
}

/// What tools may do in the turns of a call, and who hears of it.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct TurnArgs {
    /// Let tools change nothing in this call: they look, and the model says what it would do.
    #[arg(long)]
    #[serde(default)]
    pub plan: bool,
    /// Let questions of the turn wait this long for `drawloom approve` in another process; without it they are denied.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=600))]
    #[serde(default)]
    pub wait: Option<u32>,
    /// Print each event of the turn as it comes, one JSON object a line, and the result as the last.
    #[arg(long)]
    #[serde(default)]
    pub events: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub allow: AllowArgs,
    /// Let tools reach every file that you can, but Drawloom's own, and commands run without a sandbox. Each command is asked.
    #[arg(long)]
    #[serde(default)]
    pub no_restrict: bool,
}

impl TurnArgs {
    /// Flags given here that are about tools alone.
    pub(crate) fn for_tools(&self) -> Vec<&'static str> {
        let named = [
            (self.plan, "--plan"),
            (!self.allow.folders.is_empty(), "--allow"),
            (self.no_restrict, "--no-restrict"),
        ];
        named.into_iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| flag).collect()
    }
}

/// How a model is asked in a conversation.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct RequestArgs {
    /// Attach a file: a text, a picture or a sound. Can be repeated.
    #[arg(long = "file", value_name = "FILE")]
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// The agent of the configuration that answers in the session from now on [default: assistant].
    #[arg(long, value_name = "AGENT")]
    #[serde(default)]
    pub agent: Option<String>,
    /// Use this preset of the configuration.
    #[arg(long, value_name = "PRESET")]
    #[serde(default)]
    pub preset: Option<String>,
    /// System prompt of the session from now on, in place of the built-in one. An empty text brings that one back.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub system: Option<String>,
    /// Sampling temperature, from 0 to 5.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = number::<0, 5>)]
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Length limit of an answer, in tokens.
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true, value_parser = whole::<1, { u32::MAX }>)]
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Seed of the sampling.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    #[serde(default)]
    pub seed: Option<i64>,
    /// How much the model thinks before it answers.
    #[arg(long, value_name = "off|low|high", hide_possible_values = true)]
    #[serde(default)]
    pub think: Option<Think>,
}

/// `ask`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct AskArgs {
    /// The question. `-` reads standard input, as no text does where something is piped; with another text, what is
    /// piped goes along as a file.
    #[arg(value_name = "TEXT")]
    #[serde(default)]
    pub text: Option<String>,
    /// The question, as `chat` takes it.
    #[arg(short, long, value_name = "TEXT", hide = true, conflicts_with = "text")]
    #[serde(default)]
    pub message: Option<String>,
    /// Go on with the last question of this workspace.
    #[arg(short, long = "continue")]
    #[serde(default)]
    pub continues: bool,
    /// Print only the first code block of the answer.
    #[arg(short = 'x', long)]
    #[serde(default)]
    pub extract: bool,
    /// Ask for an answer that fits this JSON schema, and check it.
    #[arg(long, value_name = "FILE", conflicts_with = "extract")]
    #[serde(default)]
    pub schema: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub turn: TurnArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub request: RequestArgs,
}

impl ChatArgs {
    /// Refuses the earlier name of a flag, and standard input for more than one argument: only one of them could read
    /// it.
    ///
    /// # Errors
    /// `usage`.
    pub fn check(&self) -> Result<(), CommandError> {
        if self.temp {
            let hint = "a conversation that is forgotten when it is closed: `drawloom chat --private`";
            return Err(CommandError::usage("--temp is called --private", hint));
        }
        let named = [(self.turn.wait.is_some(), "--wait"), (self.turn.events, "--events")];
        if let Some((_, flag)) = named.into_iter().find(|(is_named, _)| *is_named && self.message.is_none()) {
            let message = format!("{flag} is for one message, which is not named");
            return Err(CommandError::usage(message, "name it with -m; in a conversation you are asked"));
        }
        if self.inputs() > 1 {
            let hint = "name `-` once, and files for the rest";
            return Err(CommandError::usage("standard input is named more than once", hint));
        }
        Ok(())
    }

    /// Whether it is one slash command that needs the right to read alone, and sets nothing.
    pub fn only_reads(&self) -> bool {
        let message = self.message.as_deref().filter(|message| *message != "-");
        let sets =
            self.new || self.wrap || self.private || self.turn.plan || self.request != RequestArgs::default();
        let command = message.filter(|_| !sets).map(slash::parse);
        matches!(command, Some(Input::Command(command)) if command.row().right == Right::Read)
    }

    /// Whether an argument is standard input.
    pub(crate) fn reads_input(&self) -> bool {
        self.inputs() > 0
    }

    /// How many arguments are standard input.
    fn inputs(&self) -> usize {
        let message = self.message.iter().filter(|message| *message == "-").count();
        message + self.request.files.iter().filter(|file| is_standard_input(file)).count()
    }
}

/// Whether a file argument is standard input: `-`, or a path such as `/dev/stdin`. A plain file is not: each path to it
/// reads it from its beginning.
pub(crate) fn is_standard_input(file: &Path) -> bool {
    let is_its_path = || {
        let ours = File::from(std::io::stdin().as_fd().try_clone_to_owned()?).metadata()?;
        let named = file.metadata()?;
        Ok::<_, std::io::Error>(!named.is_file() && (named.dev(), named.ino()) == (ours.dev(), ours.ino()))
    };
    file == Path::new("-") || is_its_path().unwrap_or(false)
}

/// A setting of a session's sampling, as `/set` takes it; without a value it is left to preset and configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// From 0 to 5.
    Temperature(Option<f64>),
    /// In tokens.
    MaxTokens(Option<u32>),
    Seed(Option<i64>),
    Preset(Option<String>),
}

impl Setting {
    /// What `/set` completes.
    pub const WORDS: [&str; 4] = ["temperature=", "max_tokens=", "seed=", "preset="];

    /// Reads `KEY=VALUE`; without a value the setting is taken back.
    ///
    /// # Errors
    /// What it takes.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const KEYS: &str = "it takes temperature=NUMBER, max_tokens=TOKENS, seed=NUMBER or preset=NAME";
        let (key, value) = text.split_once('=').ok_or(KEYS)?;
        let value = Some(value).filter(|value| !value.is_empty());
        match key {
            "temperature" => {
                let read = value.map(number::<0, 5>).transpose();
                read.map(Self::Temperature).map_err(|_| "temperature takes a number from 0 to 5")
            }
            "max_tokens" => {
                let read = value.map(whole::<1, { u32::MAX }>).transpose();
                read.map(Self::MaxTokens).map_err(|_| "max_tokens takes a whole number from 1")
            }
            "seed" => {
                let read = value.map(str::parse).transpose();
                read.map(Self::Seed).map_err(|_| "seed takes a whole number")
            }
            "preset" => Ok(Self::Preset(value.map(str::to_owned))),
            key => Err(Self::nearest(key).unwrap_or(KEYS)),
        }
    }

    /// The setting that someone may have meant.
    fn nearest(key: &str) -> Option<&'static str> {
        let meant = nearest(Self::WORDS.map(|word| word.trim_end_matches('=').to_owned()).into_iter(), key);
        let begins = || Self::WORDS.iter().find(|word| key.len() > 1 && word.starts_with(key));
        match meant.as_deref().or_else(|| Some(begins()?.trim_end_matches('=')))? {
            "temperature" => Some("did you mean temperature=NUMBER?"),
            "max_tokens" => Some("did you mean max_tokens=TOKENS?"),
            "seed" => Some("did you mean seed=NUMBER?"),
            _ => Some("did you mean preset=NAME?"),
        }
    }

    /// Puts it into a sampling.
    pub(crate) fn put(self, into: &mut SessionSampling) {
        match self {
            Self::Temperature(value) => into.temperature = value,
            Self::MaxTokens(value) => into.max_tokens = value,
            Self::Seed(value) => into.seed = value,
            Self::Preset(value) => into.preset = value,
        }
    }

    /// The setting without its value, which takes it back.
    pub(crate) fn unset(self) -> Self {
        match self {
            Self::Temperature(_) => Self::Temperature(None),
            Self::MaxTokens(_) => Self::MaxTokens(None),
            Self::Seed(_) => Self::Seed(None),
            Self::Preset(_) => Self::Preset(None),
        }
    }
}

/// Which session.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct SessionArg {
    /// A session of this workspace, or SESSION:FORK [default: main].
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub session: Option<String>,
}

/// `log`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct LogArgs {
    /// How many exchanges.
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = exchanges)]
    #[serde(default = "log_length")]
    pub number: usize,
    /// Which session [default: all of this workspace].
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub session: Option<String>,
}

fn exchanges(text: &str) -> Result<usize, InvalidNumber> {
    whole::<1, { u32::MAX }>(text).map(|number| number as usize)
}

const fn log_length() -> usize {
    3
}

/// `sessions`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum SessionsCommand {
    /// List the sessions of this workspace.
    List {
        /// List archived sessions only.
        #[arg(long)]
        #[serde(default)]
        archived: bool,
        /// List the sessions of every workspace, and those of `ask`.
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
    },
    /// Restore a session from the archive.
    Restore {
        /// Name of the session.
        name: String,
    },
}
