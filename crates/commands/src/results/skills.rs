//! Results of `skills`.

use serde::Serialize;
use skills::{RefusedPlace, SkillSourceKind};

use super::checks::TextProblem;

/// What is said where models are told of no skill, as there are too many.
pub const NO_ROOM: &str = "there is no room even for the names: models are told of no skill, and find one by the tool list_skills \
                           alone";

/// `skills list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillsShown {
    /// The skills, by precedence.
    pub skills: Vec<SkillShown>,
    /// Folders and links that were not looked at.
    pub refused: Vec<RefusedPlace>,
    /// Characters that descriptions are shortened to even where a window has room; none where all are sent whole, 0 where
    /// names alone are.
    pub shortened_to: Option<usize>,
    /// Whether models are told of none, as there is no room even for the names.
    pub left_out: bool,
}

/// A skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillShown {
    pub name: String,
    /// The file, as a model is told of it.
    pub path: String,
    pub source: SkillSourceKind,
    /// Whether it is offered.
    pub eligible: bool,
    /// What it needs and this machine does not have.
    pub missing: Vec<String>,
    /// The file of the workspace that has another text by now, in whose place the accepted one stands.
    pub stands_in_for: Option<String>,
    /// What is said of that.
    #[serde(skip)]
    pub notice: Option<String>,
    /// The file of the skill of its name that goes before it.
    pub shadowed_by: Option<String>,
    /// Why it is not offered, apart from these.
    pub why: Option<String>,
    /// Whether models are told of it.
    pub for_model: bool,
    pub description: String,
}

/// `skills show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillTextShown {
    #[serde(flatten)]
    pub skill: SkillShown,
    pub text: String,
    /// How the file that it stands in for differs, as a unified diff.
    pub difference: Option<String>,
}

/// `skills remove`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillRemoved {
    pub name: String,
    /// The folder that it stood in.
    pub path: String,
}

/// `skills export`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SkillsExported {
    pub folder: String,
    /// Files that were written.
    pub written: Vec<String>,
    /// Files that were there with the same text.
    pub unchanged: Vec<String>,
}

/// `skills check`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillsChecked {
    /// Whether there is no error.
    pub ok: bool,
    /// How many were checked.
    pub skills: usize,
    pub problems: Vec<TextProblem>,
}
