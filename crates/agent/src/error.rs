//! Why work was not done.

use context::ContextError;
use loom::content::NotCanonical;
use loom::{Refusal, RowError};
use model::EncodeError;
use store::StoreError;

/// Work that was not done. What had been received or written until then is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The store failed, or the change is not allowed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request could not be put together.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The model cannot take it.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The model failed.
    #[error("{message}")]
    Model {
        /// A stable code.
        code: &'static str,
        /// What and why.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The answer was empty. It is kept.
    #[error("the model gave an empty answer; it is kept")]
    Empty,
    /// The disk that holds the home is nearly full (spec: scale §4 `free_space`).
    #[error("there is too little free space for a new turn")]
    DiskFull,
    /// A received answer could not be kept aside; nothing was sent.
    #[error("{0}")]
    Spool(String),
    /// What a process that died left cannot be read.
    #[error("{0}")]
    Recovery(String),
    /// Something has no canonical form: a defect.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
}

impl From<RowError> for AgentError {
    fn from(error: RowError) -> Self {
        Self::Store(StoreError::Rows(error))
    }
}

impl From<Refusal> for AgentError {
    fn from(refusal: Refusal) -> Self {
        Self::Store(StoreError::Refused(refusal))
    }
}

impl From<&model::ModelError> for AgentError {
    fn from(error: &model::ModelError) -> Self {
        Self::Model {
            code: error.code(),
            message: text::terminal::visible(&error.to_string()).into_owned(),
            hint: error.hint().to_owned(),
        }
    }
}
