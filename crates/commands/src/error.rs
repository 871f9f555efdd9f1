//! One error for every command: a code, what and why, what to do, and the exit code (spec: cli §1).

use std::borrow::Cow;

use agent::{AgentError, Failure};
use context::ContextError;
use loom::{Refusal, RowError};
use model::{EncodeError, ModelError};
use serde::Serialize;
use store::StoreError;
use store::blobs::BlobError;
use workspace::{FileError, FileProblem};

use crate::settings::size;

/// A command that was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    pub code: &'static str,
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
    /// The exit code of a program that ends with it.
    #[serde(skip)]
    pub exit: u8,
}

impl CommandError {
    /// An error with everything named.
    pub fn new(code: &'static str, exit: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into(), exit }
    }

    /// Usage, unreadable or malformed input: exit 2.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("usage", 2, message, hint)
    }

    /// Nothing by that name: exit 3.
    pub fn not_found(what: &str, name: &str, hint: impl Into<String>) -> Self {
        Self::new("not_found", 3, format!("no {what} {}", text::terminal::one_line(name)), hint)
    }

    /// Refused by policy, trust or safety: exit 4.
    pub fn refused(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(code, 4, message, hint)
    }

    /// A file that could not be read or written.
    pub fn file(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let missing = (error.kind() == std::io::ErrorKind::NotFound).then(|| missing(what, path));
        let path = text::terminal::one_line(&path.to_string_lossy()).into_owned();
        let (code, exit, hint) = match error.kind() {
            std::io::ErrorKind::NotFound => ("not_found", 3, "check the path"),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                ("disk_full", 6, "free some space and try again; nothing was lost")
            }
            std::io::ErrorKind::FileTooLarge => {
                ("file_limit", 6, "raise the limit on the size of files (`ulimit -f`) and try again")
            }
            std::io::ErrorKind::ReadOnlyFilesystem => ("read_only", 6, "choose a place that can be written"),
            std::io::ErrorKind::TimedOut => {
                ("silent", 2, "check why its writer sends nothing, or raise limits.input_wait")
            }
            _ => ("file", 2, "check the path and its permissions"),
        };
        Self::new(code, exit, missing.unwrap_or_else(|| format!("{what} {path}: {error}")), hint)
    }

    /// A file argument that was not opened.
    pub fn file_argument(error: &FileError) -> Self {
        let path = text::terminal::one_line(&error.path.to_string_lossy()).into_owned();
        match &error.problem {
            FileProblem::NotRegular(kind) => Self::usage(
                format!("{path} is a {kind}, not a plain file"),
                "name a file, or `-` for standard input",
            ),
            FileProblem::StoreFile => Self::refused(
                "store_file",
                format!("{path} belongs to the store, and only the store may open it"),
                "`drawloom tree export` and `drawloom backup` write what is in it",
            ),
            FileProblem::NotFound => {
                Self::file("cannot read", &error.path, &std::io::ErrorKind::NotFound.into())
            }
            problem => Self::new(
                "file",
                2,
                format!("cannot read {path}: {problem}"),
                "check the path and its permissions",
            ),
        }
    }
}

/// What is not there, in a word: a file to be read, or the folder of one to be written.
fn missing(what: &str, path: &std::path::Path) -> String {
    let shown = |path: &std::path::Path| text::terminal::one_line(&path.to_string_lossy()).into_owned();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    match (what, folder) {
        ("cannot write" | "cannot make", Some(folder)) => {
            format!("the folder {} does not exist", shown(folder))
        }
        ("cannot read" | "cannot use", _) => format!("there is no file {}", shown(path)),
        _ => format!("{what} {}: there is no such file or folder", shown(path)),
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        Self::from(&refusal)
    }
}

impl From<&Refusal> for CommandError {
    fn from(refusal: &Refusal) -> Self {
        let (code, exit) = match refusal {
            Refusal::NoPosition(_) | Refusal::NoNode(_) | Refusal::NoView(_) => ("not_found", 3),
            Refusal::NothingToUndo => ("nothing_to_undo", 3),
            Refusal::NothingToRedo => ("nothing_to_redo", 3),
            Refusal::TooLarge { .. } => ("too_large", 2),
            _ => ("refused", 2),
        };
        said(code, exit, refusal, refusal.hint())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for CommandError {
    fn from(error: &StoreError) -> Self {
        let (code, exit) = match error {
            StoreError::Refused(refusal) => return refusal.into(),
            StoreError::NotFound(_) | StoreError::Rows(RowError::Missing { what: "view", .. }) => {
                ("not_found", 3)
            }
            StoreError::Denied(_) => ("denied", 4),
            StoreError::Ambiguous(_) => ("ambiguous", 2),
            StoreError::Exists(_) => ("exists", 2),
            StoreError::NotAnAnswer { .. } => ("usage", 2),
            StoreError::TooManyQuestions { .. } => ("too_many_questions", 4),
            StoreError::OverBudget => ("budget_spent", 4),
            StoreError::Malformed(_) | StoreError::Splice(_) => ("malformed", 2),
            StoreError::Conflict(_) | StoreError::Held { .. } | StoreError::Busy => ("busy", 6),
            StoreError::Fenced { .. } => ("fenced", 6),
            StoreError::Rows(_) | StoreError::Damaged(_) => ("damaged", 6),
            StoreError::TooLong(_) => ("too_long", 6),
            StoreError::DiskFull => ("disk_full", 6),
            StoreError::Foreign(_) => ("foreign", 6),
            StoreError::SchemaTooNew { .. } => ("schema_too_new", 6),
            StoreError::MigrationNeeded { .. } => ("migration_needed", 6),
            StoreError::ReadOnly => ("read_only", 6),
            StoreError::Server(_) => ("server", 6),
            StoreError::Io { .. } | StoreError::Sqlite(_) | StoreError::Closed | StoreError::Panicked => {
                ("store", 6)
            }
        };
        said(code, exit, error, error.hint())
    }
}

impl From<AgentError> for CommandError {
    fn from(error: AgentError) -> Self {
        Self::from(&error)
    }
}

impl From<&AgentError> for CommandError {
    fn from(error: &AgentError) -> Self {
        match error {
            AgentError::Store(error) => error.into(),
            AgentError::Context(error) => error.into(),
            AgentError::Encode(error) => error.into(),
            AgentError::DiskFull { free, minimum } => {
                let (free, minimum) = (size(*free), size(*minimum));
                let hint = format!(
                    "free some; {free} are left, limits.free_space is {minimum}, and what was written is safe"
                );
                Self::new("disk_full", 6, error.to_string(), hint)
            }
            AgentError::Blobs(blobs) if !matches!(blobs, BlobError::Full { .. }) => {
                said("blobs", 6, error, blobs.hint())
            }
            other => other.failure().into(),
        }
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        let Failure { code, message, hint, exit } = failure;
        let code = match code {
            Cow::Borrowed(code) => code,
            Cow::Owned(code) => CODES.into_iter().find(|known| *known == code).unwrap_or("elsewhere"),
        };
        Self::new(code, exit, message, hint)
    }
}

/// Codes that a turn of another process may end with.
const CODES: [&str; 21] = [
    "budget_spent",
    "busy",
    "cancelled",
    "connection_failed",
    "connection_refused",
    "context_too_long",
    "disk_full",
    "empty_completion",
    "fenced",
    "first_byte_timeout",
    "garbage",
    "idle_timeout",
    "model_not_found",
    "quota_exceeded",
    "rate_limited",
    "request_rejected",
    "script_exhausted",
    "server_unavailable",
    "spool_failed",
    "stream_cut",
    "unauthorized",
];

impl From<RowError> for CommandError {
    fn from(error: RowError) -> Self {
        StoreError::Rows(error).into()
    }
}

impl From<ContextError> for CommandError {
    fn from(error: ContextError) -> Self {
        Self::from(&error)
    }
}

impl From<&ContextError> for CommandError {
    fn from(error: &ContextError) -> Self {
        let exit = match error {
            ContextError::TooLong { .. } => 5,
            ContextError::Empty | ContextError::Changed => 2,
            ContextError::Rows(_) | ContextError::Uncovered { .. } => 6,
        };
        said(error.code(), exit, error, error.hint())
    }
}

impl From<EncodeError> for CommandError {
    fn from(error: EncodeError) -> Self {
        Self::from(&error)
    }
}

impl From<&EncodeError> for CommandError {
    fn from(error: &EncodeError) -> Self {
        Self::new(error.code(), 5, error.to_string(), error.hint())
    }
}

impl From<&ModelError> for CommandError {
    fn from(error: &ModelError) -> Self {
        let message = text::terminal::visible(&error.to_string()).into_owned();
        Self::new(error.code(), agent::exit_of_model(error.code()), message, error.hint())
    }
}

/// An error whose text may hold names and words of others.
fn said(
    code: &'static str,
    exit: u8,
    error: &dyn std::error::Error,
    hint: impl Into<String>,
) -> CommandError {
    CommandError::new(code, exit, text::terminal::visible(&error.to_string()), hint)
}
