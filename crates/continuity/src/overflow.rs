//! What a handoff does not hold, in the file of the day (`memory/YYYY-MM-DD.md`, spec: continuity §4).

use std::fmt::Write as _;

use crate::deterministic::OverflowEntry;

/// The text of the file of the day with the overflow of a wrap behind it, under `<!-- wrap:ID -->`. A text that has this
/// line already, or an overflow without entries, leaves it as it is: what a wrap adds is added once.
#[must_use]
pub fn with_overflow(text: &str, wrap: &str, overflow: &[OverflowEntry]) -> String {
    let id: String = wrap.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
    let mark = format!("<!-- wrap:{id} -->");
    if overflow.is_empty() || text.lines().any(|line| line.trim() == mark) {
        return text.to_owned();
    }
    let mut out = text.to_owned();
    if !out.is_empty() {
        out += if out.ends_with('\n') { "\n" } else { "\n\n" };
    }
    out += &mark;
    out.push('\n');
    for OverflowEntry { label, text, source } in overflow {
        let _ = write!(out, "- {label}: {text}");
        if !source.is_empty() {
            let _ = write!(out, " ({source})");
        }
        out.push('\n');
    }
    out
}
