//! Findings of a check: what the author of a text should look at.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A rule is broken: the check fails.
    Error,
    /// Advice.
    Warning,
}

/// Something the author of a text should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Line in the text, from 1; none where it is about the whole text, or no line is known.
    pub line: Option<usize>,
    /// Short name of the rule.
    pub code: &'static str,
    pub severity: Severity,
    pub why: String,
}

impl Finding {
    pub fn error(code: &'static str, why: impl Into<String>) -> Self {
        Self { line: None, code, severity: Severity::Error, why: why.into() }
    }

    pub fn warning(code: &'static str, why: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, why) }
    }

    #[must_use]
    pub fn at(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
