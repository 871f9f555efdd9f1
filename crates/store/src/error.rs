//! What can go wrong in a store, and what to do about it.

use std::borrow::Cow;

use loom::read_set::ReadKey;
use loom::{CellKey, Refusal, RowError, Slot, ViewName};

use crate::fence::LeaseOwner;
use crate::home::NoRoom;
use crate::outcome::OutcomeError;

/// A failure of a store. Nothing of a failed write is kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such thing, or this principal may not know of it: the two are one answer
    /// (spec: security §17).
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The principal sees the thing and may not do this with it.
    #[error("this token may not {0}")]
    Denied(&'static str),
    /// A name fits several things.
    #[error("the name fits {}", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// What is to be made exists.
    #[error("this {0} exists already")]
    Exists(&'static str),
    /// Something changed since it was read. Read again, plan again.
    #[error("changed meanwhile: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Conflict(Vec<StaleRead>),
    /// A change of a tree is refused, whoever asks.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A draft did not take a splice.
    #[error(transparent)]
    Splice(#[from] loom::draft::SpliceError),
    /// The work was taken over by another holder meanwhile: its result is refused.
    #[error("{what} was taken over by another process")]
    Fenced {
        /// The lease, generation or job.
        what: String,
    },
    #[error("{name} is held by {holder}")]
    Held { name: String, holder: LeaseOwner },
    /// A question cannot be answered with this word.
    #[error("{word} is no answer to this question")]
    NotAnAnswer { word: String, answers: Vec<String> },
    /// As many questions of a session stand as may (spec: security §14). This one was not asked.
    #[error("{limit} questions of this session wait for an answer already")]
    TooManyQuestions { limit: u64 },
    /// An entry of a session's ledger is refused.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
    /// A request does not fit in what may be spent. It was not begun.
    #[error("a request does not fit in what may be spent")]
    OverBudget,
    /// A plan or row that no planner makes.
    #[error("this change does not fit the tree: {0}")]
    Malformed(String),
    /// Rows of the tree do not fit together, or a reader failed.
    #[error(transparent)]
    Rows(RowError),
    /// Another process writes and does not end.
    #[error("the store is busy")]
    Busy,
    /// A read took longer than a read may.
    #[error("the read took longer than {0} s and was ended")]
    TooLong(u64),
    /// No space left. The transaction was rolled back; nothing that was acknowledged is lost.
    #[error("no space left for the store")]
    DiskFull,
    /// A copy through which alone the store can be read finds no room.
    #[error("the store cannot be read where it lies: {0}")]
    NoRoom(#[from] NoRoom),
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The file belongs to another program.
    #[error("{0} is not a Drawloom store")]
    Foreign(String),
    /// A newer program wrote the file.
    #[error("the store has version {found}, this program knows {known}")]
    SchemaTooNew {
        found: u32,
        /// The newest this program knows.
        known: u32,
        /// The backup made before the file was brought to that version.
        backup: String,
    },
    /// An older file has to be brought up to date, and other processes may have it open.
    #[error("the store has version {found} and must be brought to {known}")]
    MigrationNeeded { found: u32, known: u32 },
    /// The store is open for reading only.
    #[error("the store is open for reading only")]
    ReadOnly,
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the file's name.
        what: String,
        source: std::io::Error,
    },
    /// SQLite failed in a way that has no name of its own here.
    #[error("the store failed: {0}")]
    Sqlite(#[source] rusqlite::Error),
    /// The database server, or the way to it.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The store was closed, or its thread ended.
    #[error("the store is closed")]
    Closed,
    /// A function that was to write panicked; nothing of it is written, and others go on.
    #[error("a write broke off by an error of the program")]
    Panicked,
}

/// A failure of a database server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The program cannot speak to servers.
    #[error("this drawloom was built without PostgreSQL")]
    NotBuilt,
    /// `store.url` cannot be read.
    #[error("store.url: {0}")]
    Url(String),
    /// Nobody answers, or not as a server does.
    #[error("cannot reach the database {server}: {why}")]
    Absent {
        /// Where it was looked for.
        server: String,
        why: String,
    },
    /// The server does not let us in.
    #[error("the database {server} does not let us in: {why}")]
    Login { server: String, why: String },
    /// The server is too old.
    #[error("the database {server} runs PostgreSQL {found}")]
    TooOld { server: String, found: String },
    /// The database holds the store of another home.
    #[error("the database {server} belongs to another home (store {found}, this home has {own})")]
    OtherHome {
        server: String,
        /// The id of the store in it.
        found: String,
        /// The id this home has.
        own: String,
    },
    /// The database holds no store, and none was to be made.
    #[error("the database {server} holds no store")]
    NoTables { server: String },
    /// The tables in the database are an older program's.
    #[error("the database {server} has tables of version {found}, this program needs {known}")]
    OldTables { server: String, found: u32, known: u32 },
    /// The connection ended within a transaction, of which nothing is written.
    #[error("the connection to the database was lost: {0}")]
    Lost(String),
    /// The connection ended while a transaction was being committed: it is written whole or not at all.
    #[error("the connection to the database was lost during a commit: {0}")]
    Unacknowledged(String),
    /// What only a store in a file can do.
    #[error("a store on PostgreSQL cannot {0}")]
    Unsupported(&'static str),
    /// The server failed in a way that has no name of its own here.
    #[error("the database failed: {0}")]
    Failed(String),
}

impl ServerError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotBuilt => "build it with `--features postgres`, or remove store.url",
            Self::Url(_) => "write it as postgres://USER@HOST:PORT/DATABASE",
            Self::Absent { .. } => "start the server, or correct store.url",
            Self::Login { .. } => "put the password into DRAWLOOM_STORE_PASSWORD or keys.toml",
            Self::TooOld { .. } => "version 15 or newer is needed",
            Self::OtherHome { .. } => "name another database in store.url",
            Self::NoTables { .. } => "any command that uses the store makes one in it",
            Self::OldTables { .. } => {
                "export its trees with the program that made them, and import them into an empty database"
            }
            Self::Lost(_) => "nothing was written; try again",
            Self::Unacknowledged(_) => "look whether it was written before trying again",
            Self::Unsupported(_) => "use pg_dump and pg_restore, and copy the home's folder beside them",
            Self::Failed(_) => "the server's log says more; nothing was written",
        }
    }
}

impl StoreError {
    /// Whether rows cannot be read, as opposed to the store that holds them.
    pub(crate) const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::Rows(RowError::Damaged { .. }))
    }

    /// What to do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match self {
            Self::Refused(refusal) => refusal.hint(),
            Self::Splice(error) => error.hint(),
            Self::Server(error) => error.hint(),
            Self::NotAnAnswer { answers, .. } => return format!("it takes {}", answers.join(", ")).into(),
            Self::SchemaTooNew { backup, .. } => return format!("update it, or open {backup}").into(),
            Self::NotFound(_) => {
                "check the name; `drawloom tree list` and `drawloom sessions list` show what there is"
            }
            Self::Denied(_) => "use one with a wider scope",
            Self::Ambiguous(_) => "use one of them",
            Self::Exists(_) => "choose another name",
            Self::Conflict(_) => "read it again",
            Self::Fenced { .. } => "this result is refused",
            Self::Held { .. } => "wait, or ask it to let go",
            Self::TooManyQuestions { .. } => "answer them: `drawloom approvals list` lists them",
            Self::Outcome(refused) => refused.hint(),
            Self::OverBudget => "raise the budget in config.toml, or ask a local model",
            Self::Malformed(_) => "this is a defect, please report it",
            Self::Rows(_) => "run `drawloom store check`",
            Self::Busy => "another process writes to it; try again when it is done",
            Self::TooLong(_) => "ask for less",
            Self::DiskFull => "free some and try again; nothing was lost",
            Self::NoRoom(_) => "free some, or set TMPDIR to a folder that has it; nothing was lost",
            Self::Damaged(_) => "restore a backup, or run `drawloom store check`",
            Self::Foreign(_) => "name another --home",
            Self::MigrationNeeded { .. } => "close every other drawloom first",
            Self::ReadOnly => {
                "check that its disk and file may be written; if a newer Drawloom wrote it, update this one"
            }
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "check who may read and write the file; what was acknowledged is kept"
            }
            Self::Io { .. } | Self::Sqlite(_) => {
                "check the disk that holds the home; what was acknowledged is kept"
            }
            Self::Closed => "open it again",
            Self::Panicked => "nothing of it was written; please report it",
        };
        hint.into()
    }

    /// An error of the operating system, with what was being done.
    pub(crate) fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        if source.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error()) {
            return Self::DiskFull;
        }
        Self::Io { what: what.into(), source }
    }
}

/// As a failure of a reader.
impl From<StoreError> for RowError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Rows(error) => error,
            other => Self::Store(Box::new(other)),
        }
    }
}

/// A failure of a reader, unwrapped again if it was one of ours.
impl From<RowError> for StoreError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Store(source) => match source.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Rows(RowError::Store(other)),
            },
            other => Self::Rows(other),
        }
    }
}

/// One thing that is no longer as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StaleRead {
    Cell(CellKey),
    /// A draft, with its revision now, if it exists.
    Draft {
        view: ViewName,
        slot: Slot,
        revision: Option<u64>,
    },
    /// Something else a plan rests on.
    Read(ReadKey),
    /// Something of the tree was forgotten.
    Forgotten,
}

impl StaleRead {
    /// That a question is answered differently.
    pub(crate) fn of(key: ReadKey) -> Self {
        if let ReadKey::Cell(cell) = key { Self::Cell(cell) } else { Self::Read(key) }
    }
}

impl std::fmt::Display for StaleRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cell(key) => key.fmt(f),
            Self::Draft { view, slot, .. } => CellKey::Draft { view: view.clone(), slot: *slot }.fmt(f),
            Self::Forgotten => f.write_str("a text that was forgotten"),
            Self::Read(key) => match key {
                ReadKey::Views => f.write_str("the views"),
                ReadKey::Selections(view) => write!(f, "what {view} shows"),
                ReadKey::Timeline(view) => write!(f, "what {view} can undo"),
                ReadKey::NewestVisible(at) | ReadKey::OtherVisible(at, _) => {
                    write!(f, "what is visible of {at}")
                }
                ReadKey::Hidden { at, .. } => write!(f, "what is hidden above {at}"),
                ReadKey::NewestLeaf(at) => write!(f, "what stands below {at}"),
                _ => f.write_str("the tree"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_may_not_be_read_is_no_matter_of_the_disk() {
        let hint = |kind: io::ErrorKind| StoreError::io("read", io::Error::from(kind)).hint().into_owned();
        assert!(hint(io::ErrorKind::PermissionDenied).starts_with("check who may read"));
        assert!(hint(io::ErrorKind::Other).starts_with("check the disk"));
    }
}
