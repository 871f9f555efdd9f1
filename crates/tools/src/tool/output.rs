//! What a call said.

use loom::{ToolStatus, Trust};
use media::Picture;

use super::typed::bounded;

/// What a call said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    pub status: ToolStatus,
    pub text: String,
    /// What others say behind it, such as hooks; its tool answers for the text alone.
    pub beside: String,
    /// What a person reads of it while the turn goes on, beside the first line of the text.
    pub brief: Vec<String>,
    /// Pictures that belong to it, for models that take them.
    pub pictures: Vec<Picture>,
    /// The lowest trust of what it read.
    pub trust: Trust,
}

impl ToolOutput {
    /// A text alone.
    pub(crate) fn said(status: ToolStatus, text: impl Into<String>, trust: Trust) -> Self {
        let (beside, brief, pictures) = (String::new(), Vec::new(), Vec::new());
        Self { status, text: text.into(), beside, brief, pictures, trust }
    }

    /// Adds what others than its tool say behind it.
    pub(crate) fn add_beside(&mut self, told: &str) {
        self.beside = bounded(format!("{}\n{told}", self.beside));
    }

    /// Why a call failed, as the model is told. It says nothing that was read.
    pub fn error(text: impl Into<String>) -> Self {
        Self::said(ToolStatus::Error, text, Trust::Agent)
    }

    /// The output with the least trust, as something from outside went into it.
    #[must_use]
    pub fn from_outside(self) -> Self {
        Self { trust: Trust::Outside, ..self }
    }

    /// Why a call was not run.
    pub fn denied(text: impl Into<String>) -> Self {
        Self::said(ToolStatus::Denied, text, Trust::Agent)
    }
}
