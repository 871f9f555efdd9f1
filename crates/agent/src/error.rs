//! Why work was not done.

use context::ContextError;
use loom::content::NotCanonical;
use loom::{Millis, NodeId, Refusal, RowError};
use model::EncodeError;
use store::blobs::BlobError;
use store::instance::InstanceId;
use store::{Decision, StoreError};
use text::bytes::size;
use text::mask::Masker;

use crate::budget::Limit;
use crate::failure::{Failure, exit_of_model};

/// What to do about a turn that ended behind calls of tools.
pub const GO_ON: &str = "what was done is kept; say how to go on";

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
    #[error("{message}")]
    Model {
        code: &'static str,
        message: String,
        hint: String,
        /// Whether another model may answer where this one did not.
        elsewhere: bool,
    },
    /// What may be spent is spent, or the request does not fit in what is left. Nothing was sent.
    #[error("{message}")]
    Budget {
        limit: Limit,
        /// How much was spent and asked for.
        message: String,
    },
    /// A turn met one of its limits, and nobody said that it goes on. What was done is kept.
    #[error("the turn ended at a limit: {0}")]
    Limit(String),
    /// The turn was stopped while tools ran.
    #[error("the turn was stopped")]
    Stopped,
    /// The answer was empty. It is kept.
    #[error("the model gave an empty answer; it is kept")]
    Empty,
    /// The disk that holds the home is nearly full (spec: scale §4 `free_space`).
    #[error("there is too little free space for a turn or an import")]
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
    Blobs(#[from] BlobError),
    /// The home cannot be used.
    #[error("the home cannot be used: {0}")]
    Home(String),
    /// What a process that died left cannot be read.
    #[error("{0}")]
    Recovery(String),
    /// What an answer was asked with was forgotten while it came.
    #[error("the answer was stopped: a text of its request was forgotten meanwhile")]
    Forgotten,
    /// A turn of the session is under way in another process, or elsewhere in this one.
    #[error("the session is busy: {by} has it")]
    Busy {
        /// The process, if it is one.
        instance: Option<InstanceId>,
        /// Process and command, for people.
        by: String,
    },
    /// A turn of the session is under way, and what was asked has to wait until it is done.
    #[error("the session is busy: {by} works in it")]
    Answers {
        /// Process and command, for people.
        by: String,
    },
    /// Another process took the session over, as this one had not been heard of for too long.
    #[error("{by} took the session over: this result is refused, and the part received is kept")]
    TakenOver {
        /// Process and command, for people.
        by: String,
    },
    /// No socket could be made for other processes.
    #[error("other processes cannot reach this one: {0}")]
    Socket(String),
    /// The settings of a session are damaged.
    #[error("the settings of this session cannot be read: {0}")]
    Settings(#[from] serde_json::Error),
    /// The process that holds the session did not take what was said.
    #[error("the process that has the session refused the message: {0}")]
    Refused(String),
    /// Something came twice under one key.
    #[error("this message was taken in before, and is said once")]
    SaidBefore,
    /// The turn under way in another process is of another tree, asks another model, or asks it otherwise.
    #[error("the session is busy: {by} has it, with another model or other settings")]
    Differs {
        /// Process and command, for people.
        by: String,
    },
    /// The process that holds the session was not waited for any longer.
    #[error("{by} has the session and was not waited for")]
    NotWaitedFor {
        /// Process and command, for people.
        by: String,
    },
    /// What waited for another process was withdrawn: nothing of it was written.
    #[error("what you said was not sent: {by} has the session")]
    Withdrawn {
        /// Process and command, for people.
        by: String,
    },
    /// What another process had taken in could not be withdrawn any more.
    #[error("your message was sent already: it is kept as node {said}, and {by} answers it")]
    LeftThere {
        /// Process and command, for people.
        by: String,
        /// Node of what was said.
        said: NodeId,
    },
    /// The process that had taken what was said ended before it gave an answer.
    #[error("the process that answered ended; your message is kept as node {said}")]
    Cut {
        /// Node of what was said.
        said: NodeId,
    },
    /// What another process did not do, as it says it.
    #[error("{0}")]
    Remote(Failure),
    /// The session takes nothing any more: it is being closed.
    #[error("the session is being closed")]
    Closed,
    /// A question that does not stand, or not any more.
    #[error("no question {0}")]
    NoQuestion(String),
    #[error("the answer does not fit: {0}")]
    Form(String),
    /// A question that was answered before.
    #[error("it was {} by {by} at {}", if *decision == Decision::Approved { "approved" } else { "denied" }, time(*at))]
    Answered { decision: Decision, by: String, at: Millis },
    /// A name no session can have.
    #[error("{0} cannot be the name of a session")]
    Name(String),
    /// A session that hands nothing over, and why.
    #[error("this session hands nothing over: {0}")]
    NoHandoff(&'static str),
    #[error("the session was not handed over, and goes on where it was: {0}")]
    Wrap(String),
    /// No wrap led to where a session is.
    #[error("no wrap led here that could be undone")]
    NoWrap,
    /// Something has no canonical form: a defect.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
}

/// A moment as people write it, by UTC.
fn time(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| format!("{} ms", at.0), |at| format!("{at:.0}"))
}

impl From<&AgentError> for Failure {
    fn from(error: &AgentError) -> Self {
        let (code, exit, hint) = match error {
            AgentError::Remote(failure) => return failure.clone(),
            AgentError::Store(error) => return error.into(),
            AgentError::Context(error) => return error.into(),
            AgentError::Encode(error) => return error.into(),
            AgentError::Model { code, hint, .. } => {
                return Self::of((code, exit_of_model(code)), error, hint);
            }
            AgentError::Budget { limit, .. } => {
                let hint =
                    format!("nothing was sent; raise {} in config.toml, or ask a local model", limit.key());
                return Self::of(("budget_spent", 4), error, hint);
            }
            AgentError::DiskFull { free, minimum } => {
                let hint = format!(
                    "free some; {} are left, limits.free_space is {}, and what was written is safe",
                    size(*free),
                    size(*minimum)
                );
                return Self::of(("disk_full", 6), error, hint);
            }
            AgentError::Limit(_) => ("limit", 1, GO_ON),
            AgentError::Stopped => ("cancelled", 130, GO_ON),
            AgentError::Empty => ("empty_completion", 5, "ask again, or change the end of the text"),
            AgentError::Spool(_) => ("spool", 6, "check the disk of the home; nothing was sent"),
            AgentError::Blobs(BlobError::Full { .. }) => {
                ("disk_full", 6, "free some space and send it again; nothing was sent")
            }
            AgentError::Blobs(error) => ("blobs", 6, error.hint()),
            AgentError::Home(_) => ("home", 6, "run `drawloom doctor`"),
            AgentError::Recovery(_) => ("recovery", 6, "run `drawloom doctor`; what was received is kept"),
            AgentError::Forgotten => ("forgotten", 5, "ask again; the answer was not kept"),
            AgentError::Busy { .. } => ("busy", 6, "wait for it, or stop it; nothing was sent"),
            AgentError::Answers { .. } => {
                ("busy", 6, "wait until it is done, or stop it with /stop in that session")
            }
            AgentError::Differs { .. } => {
                ("busy", 6, "wait for it, or use the same model and settings; nothing was sent")
            }
            AgentError::NotWaitedFor { .. } => (
                "cancelled",
                130,
                "your message may still be answered there; `drawloom tree show` shows it then",
            ),
            AgentError::Withdrawn { .. } => ("cancelled", 130, "say it again once it is done there"),
            AgentError::LeftThere { .. } => ("cancelled", 130, "`drawloom tree show` shows the answer"),
            AgentError::Cut { .. } => {
                ("interrupted", 5, "send it again, or continue: the part of the answer that came is kept too")
            }
            AgentError::TakenOver { .. } => {
                ("fenced", 6, "the next command keeps it as a node; send it again, or continue")
            }
            AgentError::SaidBefore => ("exists", 2, "`drawloom tree show` shows it and its answer"),
            AgentError::Settings(_) => {
                ("damaged", 6, "choose its model and its files again: /model NAME, /file PATH")
            }
            AgentError::Refused(_) => ("busy", 6, "try again in a moment"),
            AgentError::Closed => ("busy", 6, "say it again"),
            AgentError::Socket(_) => ("home", 6, "check the home's folder"),
            AgentError::Name(_) => {
                ("usage", 2, "use 1 to 64 letters, digits, `-`, `_` and `.`, not beginning with a dot")
            }
            AgentError::NoQuestion(_) => ("not_found", 3, "`drawloom approvals list` shows the open ones"),
            AgentError::Form(_) => {
                ("usage", 2, "`drawloom approvals list` shows its fields; `--field NAME=VALUE` answers one")
            }
            AgentError::Answered { .. } => ("answered", 2, "the first answer counts"),
            AgentError::NoHandoff(_) => {
                ("no_handoff", 4, "sessions of `drawloom chat` do, in a workspace that is loaded")
            }
            AgentError::Wrap(_) => ("wrap", 6, "see to it, and give /wrap again; the text before is kept"),
            AgentError::NoWrap => ("not_found", 3, "`drawloom handoff history` lists earlier handoffs"),
            AgentError::NotCanonical(_) => ("refused", 2, "this is a defect, please report it"),
        };
        Self::of((code, exit), error, hint)
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        (&error).into()
    }
}

impl AgentError {
    /// The error as a person or a program is told of it.
    pub fn failure(&self) -> Failure {
        self.into()
    }

    pub(crate) fn socket(error: &std::io::Error) -> Self {
        Self::Socket(error.to_string())
    }
}

impl AgentError {
    /// The error with secrets masked in what a server said.
    pub(crate) fn masked(self, masker: &Masker) -> Self {
        match self {
            Self::Model { code, message, hint, elsewhere } => {
                let message = masker.mask_entering(&message).text.into_owned();
                Self::Model { code, message, hint, elsewhere }
            }
            other => other,
        }
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
