//! Rules of the owner, as they stand in configuration.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::SessionType;
use crate::decision::Decision;
use crate::exec_match::is_futile;
use crate::pattern::Pattern;

/// One `[[policy.rules]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    pub decision: Decision,
    /// Patterns of calls that the rule is about.
    pub tool: Vec<Pattern>,
    /// Patterns of calls that it is not about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<Pattern>,
    /// Types of sessions in which it holds; none for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionType>,
    /// Reason that the model and the owner read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PolicyRule {
    /// Whether the rule holds in sessions of a type.
    pub fn holds_in(&self, kind: SessionType) -> bool {
        self.sessions.is_empty() || self.sessions.iter().any(|other| kind.falls_under(*other))
    }

    /// Pattern by which it is about nothing: why. It limits calls that say neither path nor host, or allows a program that runs
    /// whatever its arguments say.
    pub fn futile(&self) -> Option<String> {
        let is_of_server =
            |pattern: &&Pattern| matches!(pattern, Pattern::Tool { server: Some(_), limit: Some(_), .. });
        if let Some(pattern) = self.tool.iter().find(is_of_server) {
            return Some(format!(
                "`{pattern}` is about nothing, as no call of a server's tool says a path or a host; write the tool alone"
            ));
        }
        let is_futile =
            |pattern: &&Pattern| matches!(pattern, Pattern::Exec { words, more: true } if is_futile(words));
        let pattern = self.tool.iter().find(is_futile).filter(|_| self.decision == Decision::Allow)?;
        Some(format!(
            "`{pattern}` allows nothing, as this program runs whatever its arguments say; write the whole command, \
             without `*`"
        ))
    }

    /// Decision, patterns and types of sessions, for whoever decides whether it is written.
    pub fn in_full(&self) -> String {
        let kinds: Vec<&str> = self.sessions.iter().map(|kind| kind.name()).collect();
        if kinds.is_empty() {
            self.to_string()
        } else {
            format!("{self}, in {} sessions", kinds.join(" and "))
        }
    }
}

impl fmt::Display for PolicyRule {
    /// Decision and patterns, as a person says them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<String> = self.tool.iter().map(Pattern::to_string).collect();
        write!(f, "{} {}", self.decision.name(), patterns.join(", "))
    }
}
