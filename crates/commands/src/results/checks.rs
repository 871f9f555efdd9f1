//! What checks of texts found (`skills check`, `handoff check`).

use serde::Serialize;
use text::finding::{Finding, Severity};
use text::mask::Masker;

/// Something that the author of a text should look at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextProblem {
    pub file: String,
    /// From 1; none where it is about the whole file.
    pub line: Option<usize>,
    pub code: String,
    pub severity: Severity,
    pub why: String,
}

impl TextProblem {
    /// What was found in a file, as it is shown.
    pub(crate) fn new(file: &str, finding: &Finding, masker: &Masker) -> Self {
        Self {
            file: file.to_owned(),
            line: finding.line,
            code: finding.code.to_owned(),
            severity: finding.severity,
            why: masker.mask(&finding.why).text.into_owned(),
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
