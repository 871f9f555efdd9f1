//! Rules of policy, and what they decide.

use std::fmt::Write as _;

use commands::results::policy::{PolicyRules, PolicyTested};

use super::OutputStyle;
use super::columns::{word, wrapped};

/// What stands before the further lines of a rule.
const INDENT: &str = "    ";

/// The rules with their numbers; of a change what was done.
pub(super) fn rules(found: &PolicyRules, to: OutputStyle) -> String {
    if let Some(said) = &found.said {
        return wrapped(&to.line(said), "", to);
    }
    let (mut out, mut of) = (String::new(), None);
    for shown in &found.rules {
        let rule = &shown.rule;
        if shown.agent.is_some() && shown.agent != of {
            of.clone_from(&shown.agent);
            out += &wrapped(&to.line(&format!("agent {}:", of.as_deref().unwrap_or_default())), "", to);
        }
        let _ = write!(
            out,
            "{:>2}  {}",
            shown.number,
            wrapped(&to.line(&rule.to_string()), INDENT, to).trim_start()
        );
        let mut more = Vec::new();
        if !rule.unless.is_empty() {
            let patterns: Vec<String> = rule.unless.iter().map(ToString::to_string).collect();
            more.push(format!("unless {}", patterns.join(", ")));
        }
        if !rule.sessions.is_empty() {
            let kinds: Vec<String> = rule.sessions.iter().map(word).collect();
            more.push(format!("in sessions of type {}", kinds.join(", ")));
        }
        more.extend(rule.reason.clone());
        for line in more {
            out += &wrapped(&to.dim(&to.line(&line)), INDENT, to);
        }
    }
    for permission in &found.allowed {
        out += &wrapped(&to.line(&format!("in this session: allow {permission}")), INDENT, to);
    }
    out
}

/// What is decided on a call, and why.
pub(super) fn tested(found: &PolicyTested, to: OutputStyle) -> String {
    wrapped(&to.line(&format!("{}: {}", word(&found.decision), found.why)), "", to)
}
