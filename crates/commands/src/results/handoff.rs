//! Results of `handoff`.

use serde::Serialize;
use skills::Severity;

/// `handoff check`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandoffChecked {
    /// Whether there is no error.
    pub ok: bool,
    /// Size of the file.
    pub bytes: usize,
    pub problems: Vec<HandoffProblem>,
    /// The file, as it was named.
    #[serde(skip)]
    pub file: String,
}

/// Something that the author of a handoff should look at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandoffProblem {
    /// From 1; none where it is about the whole file.
    pub line: Option<usize>,
    pub code: String,
    pub severity: Severity,
    pub why: String,
}
