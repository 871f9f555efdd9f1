//! Questions that wait for an answer: two lines each.

use std::fmt::Write as _;

use commands::results::approvals::Approvals;

use super::OutputStyle;
use super::columns::moment;

pub(super) fn list(found: &Approvals, to: OutputStyle) -> String {
    let mut out = String::new();
    for one in &found.approvals {
        let session = one.session.as_ref().map_or_else(String::new, |name| format!("session {name}, "));
        let about = format!("{session}{}, until {}", one.asker, moment(one.expires.0));
        let _ = writeln!(out, "{}  {}", one.short_id, to.line(&one.text));
        let _ = writeln!(out, "          {}", to.dim(&to.line(&about)));
        if one.answers.len() > 1 {
            let answers = format!("--answer {}", one.answers.join("|"));
            let _ = writeln!(out, "          {}", to.dim(&to.line(&answers)));
        }
    }
    out
}
