//! Arguments of `skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde::{Deserialize, Serialize};

/// `skills`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum SkillsCommand {
    /// List the skills within reach: which are offered, and why others are not.
    #[command(after_help = "Example: drawloom skills list")]
    List,
    /// Check skills: whether they can be read, and what their authors should look at.
    #[command(after_help = "Example: drawloom skills check --strict skills/pdf")]
    Check(SkillsCheckArgs),
    /// Show a skill with its text.
    #[command(after_help = "Example: drawloom skills show pdf")]
    Show(SkillArg),
}

/// `skills check`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct SkillsCheckArgs {
    /// A SKILL.md, the folder of a skill, or a folder of skills [default: all within reach, also of a workspace that is
    /// not trusted].
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Check by the letter of the open specification.
    #[arg(long)]
    #[serde(default)]
    pub strict: bool,
}

/// `skills show`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct SkillArg {
    /// The name of the skill.
    #[arg(value_name = "NAME")]
    pub name: String,
}
