//! Questions that wait for an answer: two lines each.

use std::fmt::Write as _;

use agent::questions::{Decision, ONCE};
use commands::results::approvals::{Approvals, Decided};

use text::terminal::explicit;

use super::OutputStyle;
use super::columns::{hanging, moment, wrapped};

/// What stands before the lines of a question.
const INDENT: &str = "          ";

/// What was done, to which question of whom.
pub(super) fn decided(done: &Decided, to: OutputStyle) -> String {
    let word = if done.decision == Decision::Approved { "approved" } else { "denied" };
    format!("{word} ({}): {}", to.line(&done.asker), to.line(&done.text))
}

pub(super) fn list(found: &Approvals, to: OutputStyle) -> String {
    let mut out = String::new();
    for one in &found.approvals {
        let place = match (&one.session, one.title.as_str()) {
            (Some(name), _) => format!("session {name}"),
            (None, "") => format!("tree {}", one.tree_short),
            (None, title) => format!("document {title}"),
        };
        let about = format!("{place}, {}, until {}", one.asker, moment(one.expires.0));
        let text = wrapped(&to.line(&one.text), INDENT, to);
        let _ = write!(out, "{:<10}{}", one.short_id, text.trim_start());
        out += &wrapped(&to.dim(&to.line(&about)), INDENT, to);
        for line in one.about.iter().flat_map(|about| about.lines()) {
            out += &hanging(&to.line(&explicit(line)), INDENT, to);
        }
        if one.answers.len() > 1 {
            let flag = if one.answers[0] == ONCE { "--for" } else { "--answer" };
            let answers = format!("{flag} {}", one.answers.join("|"));
            out += &wrapped(&to.dim(&to.line(&answers)), INDENT, to);
        }
    }
    out
}
