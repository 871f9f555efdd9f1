//! One error for every command: a code, what and why, what to do, and the exit code (spec: cli §1).

use std::borrow::Cow;

use agent::Failure;
use serde::Serialize;
use workspace::{FileError, FileProblem};

use crate::results::chat::UnfinishedTurn;

/// A command that was not done.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    pub code: Cow<'static, str>,
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
    /// The exit code of a program that ends with it.
    #[serde(skip)]
    pub exit: u8,
    /// What its turn came to until then; none where there was no turn.
    #[serde(skip)]
    pub turn: Option<Box<UnfinishedTurn>>,
}

impl CommandError {
    /// An error with everything named.
    pub fn new(code: &'static str, exit: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), hint: hint.into(), exit, turn: None }
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

/// The one mapping from errors to codes is [`agent::Failure`]'s.
impl<E> From<E> for CommandError
where
    Failure: From<E>,
{
    fn from(error: E) -> Self {
        let Failure { code, message, hint, exit } = error.into();
        Self { code, message, hint, exit, turn: None }
    }
}

#[cfg(test)]
mod tests {
    use agent::AgentError;
    use agent::event::TurnError;
    use context::ContextError;
    use loom::{Refusal, RowError, ViewName};
    use store::StoreError;

    use super::*;

    /// As an error arrives from another process.
    fn over_the_socket(error: AgentError) -> CommandError {
        let line = serde_json::to_string(&TurnError::from(error)).unwrap();
        serde_json::from_str::<TurnError>(&line).unwrap().0.as_ref().into()
    }

    #[test]
    fn an_error_of_another_process_has_the_code_the_exit_code_and_the_hint_of_this_one() {
        let too_long = || ContextError::TooLong { what: "it".to_owned(), needed: 2, budget: 1 };
        let errors: [fn() -> AgentError; 10] = [
            || StoreError::Denied("sessions").into(),
            || StoreError::NotFound("tree").into(),
            || StoreError::Refused(Refusal::NoView(ViewName::default())).into(),
            || StoreError::Rows(RowError::damaged("view", "main")).into(),
            || StoreError::TooLong(1).into(),
            || ContextError::Changed.into(),
            || AgentError::Forgotten,
            || AgentError::DiskFull { free: 1, minimum: 2 },
            || AgentError::Name("a\u{1b}b".to_owned()),
            || AgentError::Recovery("a spool".to_owned()),
        ];
        for error in errors {
            let here = CommandError::from(error());
            assert_eq!(over_the_socket(error()), here);
            assert!(!here.message.contains('\u{1b}'), "{here:?}");
        }
        assert_eq!(over_the_socket(too_long().into()), CommandError::from(too_long()));
        let codes = errors.map(|error| (CommandError::from(error()).code, CommandError::from(error()).exit));
        let codes: Vec<_> = codes.iter().map(|(code, exit)| (code.as_ref(), *exit)).collect();
        let expected = [
            ("denied", 4),
            ("not_found", 3),
            ("not_found", 3),
            ("damaged", 6),
            ("too_long", 6),
            ("changed", 2),
            ("forgotten", 5),
            ("disk_full", 6),
            ("usage", 2),
            ("recovery", 6),
        ];
        assert_eq!(codes, expected);
    }
}
