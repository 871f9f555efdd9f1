//! Arguments of everything about the home as a whole.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

/// `import`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct ImportArgs {
    /// The file.
    pub path: PathBuf,
    /// Its format; found by its content without it.
    #[arg(long = "as", alias = "format", value_name = "FORMAT")]
    #[serde(default)]
    pub format: Option<String>,
    /// Only say what would come in.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// As a copy with new ids, even if the tree is known here.
    #[arg(long)]
    #[serde(default)]
    pub copy: bool,
}

/// `search`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Search {
    /// Words, "phrases", beginnings*.
    pub query: String,
    /// Only this tree.
    #[arg(long, value_name = "TREE")]
    #[serde(default)]
    pub tree: Option<String>,
    /// Hits at most.
    #[arg(long, default_value_t = 20)]
    #[serde(default = "hits")]
    pub limit: usize,
}

const fn hits() -> usize {
    20
}

/// `forget`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct ForgetArgs {
    /// The node: its id, or TREE:SHORT.
    #[arg(required_unless_present = "text")]
    #[serde(default)]
    pub node: Option<String>,
    /// Every occurrence of this text, in every tree.
    #[arg(long, conflicts_with = "node")]
    #[serde(default)]
    pub text: Option<String>,
    /// Only show what would be removed.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Do not ask. Give it twice: `--yes --yes`.
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
    /// Again each time this has passed, as `1d`: needs a program that keeps running.
    #[arg(long, value_name = "TIME")]
    #[serde(default)]
    pub every: Option<String>,
    /// Of repeated backups, how many are kept.
    #[arg(long, value_name = "N", requires = "every")]
    #[serde(default)]
    pub keep: Option<u32>,
}

/// `restore`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Restore {
    /// A backup.
    pub file: PathBuf,
    /// The new home: an empty or missing folder [default: the home, if it is empty].
    #[arg(long, value_name = "DIR")]
    #[serde(default)]
    pub to: Option<PathBuf>,
}

/// Look after the store.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreCommand {
    /// Test the integrity of the store.
    Check {
        /// Count anew what was counted by other Unicode tables, first.
        #[arg(long)]
        #[serde(default)]
        repair: bool,
    },
}

/// Read and change the configuration.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigCommand {
    /// The value of a key, and where it comes from.
    Get {
        /// The key, as `model.default`.
        key: String,
    },
    /// Set a key. Comments and order of the file stay.
    Set {
        /// The key.
        key: String,
        /// Its value, as TOML or plain text.
        value: String,
    },
    /// Find unknown keys and wrong values.
    Check,
    /// The whole configuration. Secrets are shown as present or not.
    Show {
        /// Every key with its default and meaning.
        #[arg(long)]
        #[serde(default)]
        defaults: bool,
    },
    /// Where files lie, and which workspace was chosen and why.
    Path,
}

/// `doctor`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Doctor {
    /// Only what takes no time.
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
}

const fn million() -> u64 {
    1_000_000
}

/// What there is to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchArg {
    /// Everything there is to measure.
    All,
    /// The tree and its store.
    Loom,
    /// Saying something to a model that answers at once.
    Turn,
}
