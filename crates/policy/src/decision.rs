//! Decisions, and the reason of each, which the model and the owner read.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lasting::Permission;
use crate::table::Row;

/// Decision on a call, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}

impl Decision {
    /// Name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// How long the answer to a question may hold, from the longest to the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repeat {
    /// As the person chooses: once, this session, always.
    AsAnswered,
    /// Once for all tools of the server that the owner marked `read`.
    OncePerServer,
    /// Once a session; no rule answers it for good.
    OncePerSession,
    /// This call alone.
    EachTime,
}

/// Decision on a call with what decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: Reason,
    /// For a question: how long its answer may hold at most.
    pub repeat: Repeat,
    /// Whether a question must show the difference it makes to a file.
    pub shows_diff: bool,
    /// The first part of a command with network that no rule allows, where its row of the table decided.
    pub uncovered: Option<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        self.uncovered.as_ref().map_or(Ok(()), |part| write!(f, " (none allows {part})"))
    }
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A row of the table.
    Row(&'static Row),
    /// A rule of the owner's.
    Rule(RuleReason),
    /// A rule that denies or asks and may match, as part of the command is known only once it runs.
    Unread(RuleReason),
    /// A rule that asks, with nobody there to answer.
    Unanswered(RuleReason),
    /// A person allowed such calls before.
    Permitted(Permission),
    /// The rules were changed since the session began, and cannot be read: why.
    Unreadable(String),
    /// A skill is followed that allows other calls.
    Skill { skill: String, allowed: String },
}

/// Rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReason {
    /// Place among the general rules or those of the agent, from 0.
    pub index: usize,
    /// The agent for which alone it holds; none of a general rule.
    pub agent: Option<String>,
    /// Decision and pattern, as they are written.
    pub rule: String,
    /// The owner's own reason.
    pub reason: Option<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => f.write_str(row.reason),
            Self::Rule(rule) => rule.fmt(f),
            Self::Unread(rule) => {
                write!(
                    f,
                    "part of this command is known only once it runs, so it may be what {rule} is about"
                )
            }
            Self::Permitted(given) => write!(f, "the owner allowed this before: {given}"),
            Self::Unreadable(why) => write!(f, "the rules as they stand now cannot be read: {why}"),
            Self::Skill { skill, allowed } => write!(
                f,
                "the skill {skill} is followed until this turn ends, and it allows no such call: its allowed-tools are {allowed}"
            ),
            Self::Unanswered(rule) => write!(f, "nobody is here to answer the question of {rule}"),
        }
    }
}

impl fmt::Display for RuleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.index + 1)?;
        self.agent.as_ref().map_or(Ok(()), |agent| write!(f, " of agent {agent}"))?;
        write!(f, " ({})", self.rule)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
