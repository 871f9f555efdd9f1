//! Handoffs: what is wrong with one.

use std::fmt::Write as _;

use commands::results::handoff::{HandoffChecked, HandoffProblem};

use super::OutputStyle;
use super::columns::{count, word, wrapped};

pub(super) fn checked(found: &HandoffChecked, to: OutputStyle) -> String {
    let mut out = String::new();
    for HandoffProblem { line, code, severity, why } in &found.problems {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let told = format!("{}{line}: {}: {why} ({code})", found.file, word(severity));
        out += &wrapped(&to.line(&told), "    ", to);
    }
    let errors = found.problems.iter().filter(|problem| problem.severity == skills::Severity::Error).count();
    let bytes = count(found.bytes as u64, "byte", "bytes");
    let _ = writeln!(out, "{bytes}, {}", count(errors as u64, "error", "errors"));
    out
}
