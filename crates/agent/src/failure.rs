//! Errors as a person or a program is told of them: the one mapping from what went wrong to a code, an exit code and a
//! hint (spec: cli §1), whichever process it went wrong in.

use std::borrow::Cow;
use std::fmt;

use context::ContextError;
use loom::{OpTarget, Refusal, RowError};
use model::{EncodeError, ModelError};
use serde::{Deserialize, Serialize};
use store::{OutcomeError, StoreError};

/// An error as a person or a program is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub code: Cow<'static, str>,
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
    /// Exit code of a program that ends with it.
    pub exit: u8,
}

impl Failure {
    /// An error whose text may hold names and words of others.
    pub(crate) fn of(
        (code, exit): (&'static str, u8),
        error: &dyn std::error::Error,
        hint: impl Into<String>,
    ) -> Self {
        let message = text::terminal::visible(&error.to_string()).into_owned();
        Self { code: code.into(), message, hint: hint.into(), exit }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&Refusal> for Failure {
    fn from(refusal: &Refusal) -> Self {
        let told = match refusal {
            Refusal::NoPosition(_) | Refusal::NoNode(_) | Refusal::NoView(_) => ("not_found", 3),
            Refusal::NothingToUndo => ("nothing_to_undo", 3),
            Refusal::NothingToRedo => ("nothing_to_redo", 3),
            Refusal::TooLarge { .. } => ("too_large", 2),
            Refusal::Draft(_) => ("damaged", 6),
            _ => ("refused", 2),
        };
        let hint = match refusal {
            Refusal::Pruned(OpTarget::Position(pruned)) | Refusal::BelowPruned { pruned, .. } => {
                format!("`drawloom tree restore TREE {pruned}` shows it again")
            }
            Refusal::Pruned(OpTarget::Version(pruned)) => {
                format!("`drawloom tree restore TREE {pruned} --version` shows it again")
            }
            refusal => refusal.hint().to_owned(),
        };
        Self::of(told, refusal, hint)
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Self {
        let told = match error {
            StoreError::Refused(refusal) => return refusal.into(),
            StoreError::NotFound(_)
            | StoreError::Rows(RowError::Missing { what: "view", .. })
            | StoreError::Outcome(OutcomeError::Unknown(_)) => ("not_found", 3),
            StoreError::Denied(_) => ("denied", 4),
            StoreError::Ambiguous(_) => ("ambiguous", 2),
            StoreError::Exists(_) => ("exists", 2),
            StoreError::Outcome(OutcomeError::Outranked(_)) => ("outranked", 4),
            StoreError::NotAnAnswer { .. }
            | StoreError::Outcome(OutcomeError::Empty | OutcomeError::TooLong { .. }) => ("usage", 2),
            StoreError::TooManyQuestions { .. } => ("too_many_questions", 4),
            StoreError::OverBudget => ("budget_spent", 4),
            StoreError::Malformed(_) | StoreError::Splice(_) => ("malformed", 2),
            StoreError::Conflict(_) | StoreError::Held { .. } | StoreError::Busy => ("busy", 6),
            StoreError::Fenced { .. } => ("fenced", 6),
            StoreError::Rows(_) | StoreError::Damaged(_) => ("damaged", 6),
            StoreError::TooLong(_) => ("too_long", 6),
            StoreError::DiskFull | StoreError::NoRoom(_) => ("disk_full", 6),
            StoreError::Foreign(_) => ("foreign", 6),
            StoreError::SchemaTooNew { .. } => ("schema_too_new", 6),
            StoreError::MigrationNeeded { .. } => ("migration_needed", 6),
            StoreError::ReadOnly => ("read_only", 6),
            StoreError::Server(_) => ("server", 6),
            StoreError::Io { .. } | StoreError::Sqlite(_) | StoreError::Closed | StoreError::Panicked => {
                ("store", 6)
            }
        };
        Self::of(told, error, error.hint())
    }
}

impl From<RowError> for Failure {
    fn from(error: RowError) -> Self {
        StoreError::Rows(error).into()
    }
}

impl From<&ContextError> for Failure {
    fn from(error: &ContextError) -> Self {
        let exit = match error {
            ContextError::TooLong { .. } => 5,
            ContextError::Empty | ContextError::Changed => 2,
            ContextError::Rows(_) | ContextError::Uncovered { .. } => 6,
        };
        Self::of((error.code(), exit), error, error.hint())
    }
}

impl From<&EncodeError> for Failure {
    fn from(error: &EncodeError) -> Self {
        Self::of((error.code(), 5), error, error.hint())
    }
}

impl From<&ModelError> for Failure {
    fn from(error: &ModelError) -> Self {
        Self::of((error.code(), exit_of_model(error.code())), error, error.hint())
    }
}

macro_rules! from_owned {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                (&error).into()
            }
        }
    )*};
}
from_owned!(Refusal, StoreError, ContextError, EncodeError);

/// Exit code of a call that failed, by the code of [`ModelError`]: 5, or 6 where the disk of the home failed it.
pub(crate) fn exit_of_model(code: &str) -> u8 {
    if code == "spool_failed" { 6 } else { 5 }
}
