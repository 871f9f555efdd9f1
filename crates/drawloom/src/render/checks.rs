//! Checks of texts: what is wrong with them.

use std::fmt::Write as _;

use commands::results::checks::TextProblem;

use super::OutputStyle;
use super::columns::{count, word, wrapped};

/// The problems, and behind them how much was checked and how many are errors.
pub(super) fn checked(problems: &[TextProblem], amount: &str, to: OutputStyle) -> String {
    let mut out = String::new();
    for TextProblem { file, line, code, severity, why } in problems {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let severity = word(severity);
        out += &wrapped(&to.line(&format!("{file}{line}: {severity}: {why} ({code})")), "    ", to);
    }
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    let _ = writeln!(out, "{amount}, {}", count(errors as u64, "error", "errors"));
    out
}
