//! Arguments of `skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde::{Deserialize, Serialize};

use super::chat::{ChatArgs, SessionArg, TurnArgs};

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
    /// Have the model follow a skill: as `chat -m "/skills run NAME TEXT"`.
    #[command(after_help = "Example: drawloom skills run release-notes for version 1.2")]
    Run(RunSkillArgs),
    /// Begin a skill of yours: a SKILL.md to be filled, in the home's skills/.
    #[command(
        after_help = "Example: drawloom skills new release-notes --description 'Write release notes. Use before a release.'"
    )]
    New(NewSkillArgs),
    /// Add a skill to yours: shows what it brings, asks, and copies it.
    #[command(after_help = "Example: drawloom skills add ~/Downloads/pdf")]
    Add(AddSkillArgs),
    /// Remove a skill of yours from the home's skills/: shows its files, and asks.
    #[command(after_help = "Example: drawloom skills remove pdf")]
    Remove(RemoveSkillArgs),
    /// Write Drawloom's own skills as folders for other programs.
    #[command(after_help = "Example: drawloom skills export ~/.claude/skills")]
    Export(ExportSkillsArgs),
    /// Offer a skill again that was switched off.
    #[command(after_help = "Example: drawloom skills enable pdf")]
    Enable(SkillArg),
    /// Switch a skill off: it is offered to no model.
    #[command(after_help = "Example: drawloom skills disable pdf")]
    Disable(SkillArg),
}

/// `skills run`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct RunSkillArgs {
    /// The name of the skill.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What it is to be followed for, in one word or several.
    #[arg(value_name = "TEXT")]
    #[serde(default)]
    pub text: Vec<String>,
    /// Which session.
    #[command(flatten)]
    #[serde(flatten)]
    pub session: SessionArg,
    #[command(flatten)]
    #[serde(flatten)]
    pub turn: TurnArgs,
}

impl From<RunSkillArgs> for ChatArgs {
    fn from(RunSkillArgs { name, text, session, turn }: RunSkillArgs) -> Self {
        let message = format!("/skills run {name} {}", text.join(" "));
        Self { message: Some(message), session, turn, ..Self::default() }
    }
}

/// `skills new`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct NewSkillArgs {
    /// The name: lowercase letters, digits and single hyphens.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What it does, and when it is of use.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub description: Option<String>,
}

/// `skills add`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct AddSkillArgs {
    /// The folder of the skill, or its SKILL.md.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Add it without asking.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

/// `skills remove`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct RemoveSkillArgs {
    /// The name of the skill.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Remove it without asking.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

/// `skills export`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct ExportSkillsArgs {
    /// The folder that gets a folder for each; it is made where it is missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[serde(rename = "dir")]
    pub folder: PathBuf,
    /// Replace files that differ.
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
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
