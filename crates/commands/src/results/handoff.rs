//! Results of `handoff`.

use serde::Serialize;

use super::checks::TextProblem;

/// `handoff check`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandoffChecked {
    /// Whether there is no error.
    pub ok: bool,
    /// Size of the file.
    pub bytes: usize,
    pub problems: Vec<TextProblem>,
}
