//! Findings about a skill.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The skill is not offered, or breaks the specification it is checked by.
    Error,
    Warning,
}

/// Something the author of a skill should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Line in the file, from 1, where one is known.
    pub line: Option<usize>,
    /// Short name of the rule.
    pub code: &'static str,
    pub severity: Severity,
    pub why: String,
}

impl Finding {
    pub(crate) fn error(code: &'static str, why: impl Into<String>) -> Self {
        Self { line: None, code, severity: Severity::Error, why: why.into() }
    }

    pub(crate) fn warning(code: &'static str, why: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, why) }
    }

    pub(crate) fn at(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }
}
