//! Why work was not done.

use context::ContextError;
use loom::content::NotCanonical;
use loom::{Refusal, RowError};
use model::EncodeError;
use store::StoreError;
use store::instance::InstanceId;

use crate::spend::Limit;

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
        /// Whether another model may answer where this one did not.
        elsewhere: bool,
    },
    /// What may be spent is spent, or the request does not fit in what is left. Nothing was sent.
    #[error("{message}")]
    Budget {
        /// Which limit.
        limit: Limit,
        /// How much was spent and asked for.
        message: String,
    },
    /// The answer was empty. It is kept.
    #[error("the model gave an empty answer; it is kept")]
    Empty,
    /// The disk that holds the home is nearly full (spec: scale §4 `free_space`).
    #[error("there is too little free space for a new turn")]
    DiskFull {
        /// Free bytes.
        free: u64,
        /// The fewest bytes a turn begins with.
        minimum: u64,
    },
    /// A received answer could not be kept aside; nothing was sent.
    #[error("{0}")]
    Spool(String),
    /// A picture or a sound could not be kept, read or removed.
    #[error(transparent)]
    Blobs(#[from] store::blobs::BlobError),
    /// The home cannot be used.
    #[error("the home cannot be used: {0}")]
    Home(String),
    /// What a process that died left cannot be read.
    #[error("{0}")]
    Recovery(String),
    /// A turn of the session is under way in another process, or elsewhere in this one.
    #[error("the session is busy: {by} has it")]
    Busy {
        /// The process, if it is one.
        instance: Option<InstanceId>,
        /// Process and command, for people.
        by: String,
    },
    /// Another process took the session over, as this one had not been heard of for too long.
    #[error("{by} took the session over: this result is refused, what was received is kept aside")]
    TakenOver {
        /// Process and command, for people.
        by: String,
    },
    /// No socket could be made for other processes.
    #[error("other processes cannot reach this one: {0}")]
    Socket(String),
    /// The process that holds the session did not take what was said.
    #[error("the process that holds the session did not take it: {0}")]
    Refused(String),
    /// A name no session can have.
    #[error("{0} cannot be the name of a session")]
    Name(String),
    /// Something has no canonical form: a defect.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
}

impl AgentError {
    pub(crate) fn socket(error: &std::io::Error) -> Self {
        Self::Socket(error.to_string())
    }
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
            elsewhere: error.is_of_the_model(),
        }
    }
}
