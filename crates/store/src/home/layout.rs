//! Where every file of the home lies (spec: cli §4): the only place that spells their names.

use std::path::{Path, PathBuf};

use super::Home;
use crate::error::StoreError;
use crate::identity::random;

/// A folder of the home. Each is created when it is first needed, by [`Home::dir`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HomeDir {
    /// Large bodies by their SHA-256.
    Blobs,
    /// What streams in now, one file a generation.
    Spool,
    Models,
    /// What can be missed: the history of input lines, and the folders below it.
    Cache,
    /// Embedding vectors: derived.
    VectorCache,
    /// Answers of MCP servers: derived.
    McpCache,
    /// What stood in workspaces before commands ran: made anew where it is missing.
    CheckpointCache,
    /// Tools of MCP servers as the owner accepted them.
    AcceptedTools,
    /// Logins at MCP servers, which are secrets.
    Logins,
    /// Capability cards of the owner.
    Capabilities,
    /// What Drawloom keeps about each workspace, by its id.
    Workspaces,
    /// Private folders of sandboxed programs.
    Sandbox,
    /// Protected files that sandboxed programs made.
    Quarantine,
    /// The workspace used where none is found.
    DefaultWorkspace,
    /// Locks on documents, and the second names of instance locks.
    Locks,
    /// Locks and sockets of running processes.
    Run,
    Logs,
    /// Texts an editor has open, and those that could not be taken in.
    Edits,
}

impl HomeDir {
    pub const ALL: [Self; 18] = [
        Self::Blobs,
        Self::Spool,
        Self::Models,
        Self::Cache,
        Self::VectorCache,
        Self::McpCache,
        Self::CheckpointCache,
        Self::AcceptedTools,
        Self::Logins,
        Self::Capabilities,
        Self::Workspaces,
        Self::Sandbox,
        Self::Quarantine,
        Self::DefaultWorkspace,
        Self::Locks,
        Self::Run,
        Self::Logs,
        Self::Edits,
    ];

    /// Whether what only reads a home writes there: locks, and what can be missed.
    pub(super) const fn is_written_by_readers(self) -> bool {
        matches!(self, Self::Cache | Self::VectorCache | Self::McpCache | Self::Locks | Self::Run)
    }

    /// Path of the folder below the home.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Spool => "spool",
            Self::Models => "models",
            Self::Cache => "cache",
            Self::VectorCache => "cache/vectors",
            Self::McpCache => "cache/mcp",
            Self::CheckpointCache => "cache/checkpoints",
            Self::AcceptedTools => "mcp",
            Self::Logins => "oauth",
            Self::Capabilities => "capabilities",
            Self::Workspaces => "workspaces",
            Self::Sandbox => "sandbox",
            Self::Quarantine => "quarantine",
            Self::DefaultWorkspace => "workspace",
            Self::Locks => "locks",
            Self::Run => "run",
            Self::Logs => "logs",
            Self::Edits => "edits",
        }
    }
}

pub const CONFIG: &str = "config.toml";
/// Beginning of the names under which a configuration file is written; [`RANDOM_CHARS`] random characters follow.
pub const UNFINISHED_CONFIG: &str = ".config.";
/// Random characters of such a name.
pub const RANDOM_CHARS: usize = 6;
pub const KEYS: &str = "keys.toml";
const SEAL_KEY: &str = "seal.key";
const TRUSTED_KEYS: &str = "trusted_keys";
pub const DATABASE: &str = "loom.db";
const APPROVALS: &str = "approvals.json";
const LOGIN: &str = "login";
const RESERVE: &str = "reserve";
/// The id of the home's store on a server.
pub const STORE_ID: &str = "store.id";
/// The list of backups that were made of the home.
pub const BACKUPS: &str = "backups.json";

/// Files by which a home is known: no other program's folder holds one of these.
const OURS_ALONE: [&str; 6] = [DATABASE, STORE_ID, CONFIG, KEYS, SEAL_KEY, TRUSTED_KEYS];

/// What left this machine, and what is put aside of it.
pub const EGRESS: &str = "egress.jsonl";
pub const OLDER_EGRESS: &str = "egress.1.jsonl";

const OTHER_FILES: [&str; 9] = [
    APPROVALS,
    LOGIN,
    RESERVE,
    BACKUPS,
    EGRESS,
    OLDER_EGRESS,
    "loom.db-wal",
    "loom.db-shm",
    "loom.db-journal",
];

/// Folders that an owner makes by hand, also before there is a home. Their modes are the owner's.
const BY_HAND: [&str; 3] = ["agents", "commands", "skills"];

/// End of the name of a database's write-ahead log.
pub(crate) const LOG: &str = "-wal";
/// End of the name of the journal of a database that is being made.
pub(crate) const JOURNAL: &str = "-journal";

/// End of the name of the index of a write-ahead log.
pub(crate) const SHARED: &str = "-shm";

/// The write-ahead log of a database.
pub fn store_log(database: &Path) -> PathBuf {
    beside(database, LOG)
}

/// A file that SQLite keeps beside a database.
pub(crate) fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Whether this name alone makes a folder a home.
pub(super) fn is_ours_alone(name: &str) -> bool {
    OURS_ALONE.contains(&name)
}

/// A file at the top of a home that one process makes, and renames or removes when it is done.
#[derive(Debug, Clone, Copy)]
pub enum UnfinishedFile {
    Store,
    /// The id of the home's store on a server.
    StoreId,
    /// The list of backups.
    Backups,
    /// The copy of the store that goes into a backup.
    BackupCopy,
}

/// Beginning of the names of the copies that a migration makes; the version that was copied follows.
const MIGRATION_COPY: &str = "loom.db.v";
/// End of the name of a copy that is whole.
const WHOLE_COPY: &str = ".bak";
/// End of the name of one that is being made.
const UNFINISHED_COPY: &str = ".bak.part";

/// The copy that a migration makes of a database at a version.
pub(crate) fn migration_copy(database: &Path, version: u32) -> PathBuf {
    beside(database, &format!(".v{version}{WHOLE_COPY}"))
}

/// As [`migration_copy`], while it is being made.
pub(crate) fn unfinished_migration_copy(database: &Path, version: u32) -> PathBuf {
    beside(database, &format!(".v{version}{UNFINISHED_COPY}"))
}

/// Beginnings of the names of copies of the store.
pub const STORE_COPIES: [&str; 3] =
    [MIGRATION_COPY, UnfinishedFile::Store.beginning(), UnfinishedFile::BackupCopy.beginning()];

impl UnfinishedFile {
    const ALL: [Self; 4] = [Self::Store, Self::StoreId, Self::Backups, Self::BackupCopy];

    /// What its name begins with; 32 hexadecimal digits follow.
    const fn beginning(self) -> &'static str {
        match self {
            Self::Store => ".loom.db.",
            Self::StoreId => "store.id.",
            Self::Backups => ".backups.json.",
            Self::BackupCopy => ".backup-",
        }
    }

    /// A name that no other process gives.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new_name(self) -> Result<String, StoreError> {
        Ok(format!("{}{:032x}", self.beginning(), u128::from_be_bytes(random()?)))
    }
}

/// Whether this is exactly the name of an unfinished file, of a copy that a migration has not finished, or of what
/// SQLite keeps beside one: whatever else lies in a home is its owner's.
pub fn is_unfinished(name: &str) -> bool {
    let name = [LOG, JOURNAL, SHARED].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let number = UnfinishedFile::ALL.iter().find_map(|kind| name.strip_prefix(kind.beginning()));
    if let Some(number) = number {
        return number.len() == 32 && number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    }
    let version = name.strip_prefix(MIGRATION_COPY).and_then(|rest| rest.strip_suffix(UNFINISHED_COPY));
    version.is_some_and(|version| !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a home has an entry of this name.
pub(super) fn is_known(name: &str) -> bool {
    let random = name.strip_prefix(UNFINISHED_CONFIG);
    random.is_some_and(|random| {
        random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }) || is_unfinished(name)
        || known_names().chain(BY_HAND).any(|known| known == name)
}

/// The names at the top of a home.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    let dirs = HomeDir::ALL.into_iter().map(|dir| dir.name().split('/').next().unwrap_or(dir.name()));
    OURS_ALONE.into_iter().chain(OTHER_FILES).chain(dirs)
}

/// Paths. None of these touches the disk.
impl Home {
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.root.join(CONFIG)
    }

    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.root.join(KEYS)
    }

    /// The Ed25519 key that seals trees.
    #[must_use]
    pub fn seal_key(&self) -> PathBuf {
        self.root.join(SEAL_KEY)
    }

    /// Public keys whose cards are taken.
    #[must_use]
    pub fn trusted_keys(&self) -> PathBuf {
        self.root.join(TRUSTED_KEYS)
    }

    /// The SQLite file. Only the store opens it (spec: security §8).
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root.join(DATABASE)
    }

    #[must_use]
    pub fn approvals(&self) -> PathBuf {
        self.root.join(APPROVALS)
    }

    /// The bytes held back for a full disk.
    #[must_use]
    pub fn reserve_file(&self) -> PathBuf {
        self.root.join(RESERVE)
    }
}
