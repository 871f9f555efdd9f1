//! Arguments of `policy`.

use clap::{Args, Subcommand, ValueEnum};
use policy::SessionType;
use serde::{Deserialize, Serialize};

use crate::args::allow::AllowArgs;

/// `policy`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum PolicyCommand {
    /// List your rules, with the numbers that messages name them by.
    List(ListArgs),
    /// Let calls run that would be asked about.
    #[command(after_help = "Example: drawloom policy allow \"exec cargo test *\"")]
    Allow(RuleArgs),
    /// Have calls asked about that would run.
    #[command(after_help = "Example: drawloom policy ask \"write path=docs/**\"")]
    Ask(RuleArgs),
    /// Refuse calls, whatever other rules say.
    #[command(after_help = "Example: drawloom policy deny effect:write --session isolated")]
    Deny(RuleArgs),
    /// Remove a pattern from your rules.
    #[command(after_help = "Example: drawloom policy remove \"write path=docs/**\"")]
    Remove(PatternArg),
    /// Show what would be decided on a call, and why. Nothing is run.
    #[command(
        after_help = r#"Example: drawloom policy test write '{"path":"AGENTS.md","content":"Be brief."}'"#
    )]
    Test(TestArgs),
}

/// `policy list`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct ListArgs {
    /// The rules that hold for this agent alone, besides the general ones [default: those of all agents].
    #[arg(long, value_name = "AGENT")]
    #[serde(default)]
    pub agent: Option<String>,
}

/// A rule to be added.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct RuleArgs {
    #[arg(help = format!("The calls it is about: {}", policy::PATTERN_FORMS))]
    pub pattern: String,
    /// Calls it is not about. Can be repeated.
    #[arg(long, value_name = "PATTERN")]
    #[serde(default)]
    pub unless: Vec<String>,
    /// The reason, which the model reads too.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
    /// The type of sessions it holds in [default: all]. Can be repeated.
    #[arg(long = "session", value_name = "TYPE", value_enum)]
    #[serde(default)]
    pub sessions: Vec<SessionArg>,
    /// The agent for which alone it holds [default: all agents].
    #[arg(long, value_name = "AGENT")]
    #[serde(default)]
    pub agent: Option<String>,
}

/// A pattern that rules have.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct PatternArg {
    /// The pattern, as `policy list` shows it.
    pub pattern: String,
    /// Remove it from the rules of this agent [default: from the general ones].
    #[arg(long, value_name = "AGENT")]
    #[serde(default)]
    pub agent: Option<String>,
}

/// `policy test`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct TestArgs {
    /// The tool.
    pub tool: String,
    /// Arguments of the call, as a JSON object.
    #[arg(value_name = "ARGS", default_value = "{}")]
    pub arguments: String,
    /// The type of the session [default: main].
    #[arg(long, value_name = "TYPE", value_enum)]
    #[serde(default)]
    pub session: Option<SessionArg>,
    /// The agent that calls it [default: assistant].
    #[arg(long, value_name = "AGENT")]
    #[serde(default)]
    pub agent: Option<String>,
    /// As if nobody were there to answer a question.
    #[arg(long)]
    #[serde(default)]
    pub unattended: bool,
    /// As if text from outside were in view.
    #[arg(long)]
    #[serde(default)]
    pub tainted: bool,
    /// As if plan mode were on.
    #[arg(long)]
    #[serde(default)]
    pub plan: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub allow: AllowArgs,
}

/// A type of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionArg {
    Main,
    Private,
    Isolated,
    Document,
}

impl From<SessionArg> for SessionType {
    fn from(named: SessionArg) -> Self {
        match named {
            SessionArg::Main => Self::Main,
            SessionArg::Private => Self::Private,
            SessionArg::Isolated => Self::Isolated,
            SessionArg::Document => Self::Document,
        }
    }
}
