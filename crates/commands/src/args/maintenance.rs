//! Arguments of everything about the home as a whole.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use serde::{Deserialize, Serialize};

use super::allow::AllowArgs;

/// `import`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct ImportArgs {
    /// The file to import.
    pub path: PathBuf,
    /// Format of the file [default: found from its content].
    #[arg(long = "as", alias = "format", value_name = "FORMAT")]
    #[serde(default)]
    pub format: Option<String>,
    /// Only show what would be imported.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Import as a copy with new ids, even if this home has the tree.
    #[arg(long)]
    #[serde(default)]
    pub copy: bool,
}

/// `search`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Search {
    /// Words, "phrases" and beginnings*.
    pub query: String,
    /// Search only this tree.
    #[arg(long, value_name = "TREE")]
    #[serde(default)]
    pub tree: Option<String>,
    /// How many hits to show at most.
    #[arg(long, default_value_t = 20)]
    #[serde(default = "hits")]
    pub limit: usize,
}

const fn hits() -> usize {
    20
}

/// `forget`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(group(ArgGroup::new("what").required(true).args(["node", "text"])))]
pub struct ForgetArgs {
    /// The node: its id, or TREE:SHORT.
    #[serde(default)]
    pub node: Option<String>,
    /// Remove every node and record that holds this text, in every tree: the whole text of each, not only these words.
    #[arg(long)]
    #[serde(default)]
    pub text: Option<String>,
    /// Only list what would be removed.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Do not ask. Both questions need one: `--yes --yes`.
    #[arg(long, action = clap::ArgAction::Count)]
    #[serde(default)]
    pub yes: u8,
}

/// `backup`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct BackupArgs {
    /// The file to write [default: drawloom-DATE.backup in the current folder].
    #[arg(short, long, value_name = "FILE")]
    #[serde(default)]
    pub output: Option<PathBuf>,
    /// Repeat at this interval. Refused so far: let cron or a systemd timer call `drawloom backup`.
    #[arg(long, value_name = "TIME")]
    #[serde(default)]
    pub every: Option<String>,
    /// How many repeated backups to keep. Refused so far, as --every.
    #[arg(long, value_name = "N", requires = "every")]
    #[serde(default)]
    pub keep: Option<u32>,
}

/// `restore`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Restore {
    /// The backup.
    pub file: PathBuf,
    /// The new home: an empty or missing folder [default: the home, if it is empty].
    #[arg(long, value_name = "DIR")]
    #[serde(default)]
    pub to: Option<PathBuf>,
}

/// Check and repair the store.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreCommand {
    /// Check that the store is complete and undamaged.
    Check {
        /// First recompute what was counted with other Unicode tables.
        #[arg(long)]
        #[serde(default)]
        repair: bool,
    },
}

/// Read and change the configuration.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigCommand {
    /// Show the value of a key and where it comes from.
    Get {
        /// The key, such as `model.default`.
        key: String,
    },
    /// Set a key. Comments and order of the file are kept.
    Set {
        /// The key.
        key: String,
        /// The value, as TOML or plain text. `-` reads it from standard input. A secret is asked for at a terminal
        /// where it is left out.
        #[serde(default)]
        value: Option<String>,
    },
    /// Take a key out of the file, so that its default holds.
    Unset {
        /// The key.
        key: String,
    },
    /// Find unknown keys and wrong values.
    Check,
    /// Show the configuration. Of a secret it shows only whether it is set.
    Show {
        /// Show every key with its default and meaning.
        #[arg(long)]
        #[serde(default)]
        defaults: bool,
    },
    /// Show where files are, and which workspace was chosen and why.
    Path,
}

/// `doctor`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Doctor {
    /// Only the quick checks. No connection is opened.
    #[arg(long)]
    #[serde(default)]
    pub quick: bool,
}

/// `bench`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Bench {
    /// What to measure.
    #[arg(value_enum, default_value = "loom")]
    pub what: BenchArg,
    /// The largest tree, in nodes.
    #[arg(long, default_value_t = 1_000_000)]
    #[serde(default = "million")]
    pub nodes: u64,
    /// Files of the largest workspace.
    #[arg(long, default_value_t = 100_000)]
    #[serde(default = "hundred_thousand")]
    pub files: u64,
    /// Folder of the labelled requests of `routing`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[serde(default)]
    pub data: Option<PathBuf>,
}

const fn hundred_thousand() -> u64 {
    100_000
}

const fn million() -> u64 {
    1_000_000
}

/// `sandbox`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct SandboxArgs {
    /// A protected file or folder of the workspace that this command may write; several times for several.
    #[arg(long, value_name = "PATH")]
    #[serde(default)]
    pub touches: Vec<PathBuf>,
    /// A host that it may reach: HOST, or HOST:PORT beside ports 443 and 80, or hosts=HOST,HOST; several times for several.
    /// `open` for any, the local network and this machine included; `off`, the default, for none.
    #[arg(long, value_name = "HOST")]
    #[serde(default)]
    pub net: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub allow: AllowArgs,
    /// End the command after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = DAY)]
    #[serde(default = "day")]
    pub timeout: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

const fn day() -> u64 {
    DAY
}

/// What there is to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchArg {
    /// Everything below.
    All,
    /// The tree and its store.
    Loom,
    /// A message to a model that answers at once.
    Turn,
    /// Searches and commands of an agent in a large workspace, beside ripgrep where it is installed.
    Tools,
    /// Cards that labelled requests need, and how many of them are found. No part of `all`, as it needs --data.
    Routing,
}
