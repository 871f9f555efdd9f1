//! Opening the file: whose it is, which version it has, and connections to it.
//!
//! No other code opens it: any `close` of the file elsewhere in the process would drop SQLite's locks (spec:
//! security §8).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::connection::failure;
use super::faults::Faults;
use super::log::UNCUT;
use super::migrate::{bring_up, copy_to, version};
use super::reading::Fingerprint;
use super::versions::{APPLICATION_ID, STEPS};
use crate::engine::StatementCounter;
use crate::error::StoreError;
use crate::home::{
    JOURNAL, UnfinishedFile, beside, made_with_store, migration_copy, rename_new, sign_of_store, store_log,
};
use crate::limits::StoreLimits;
use crate::schema::VERSION;

/// Bytes of the header of a file.
pub(super) const HEADER: u64 = 100;

/// How a store is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether nothing may be written. A file a newer program lets this one only read is opened so by itself.
    pub read_only: bool,
    /// Whether an older file may be brought up to date: no process of an older program
    /// has it open ([`crate::instance::Instances::older`]).
    pub may_migrate: bool,
    /// Threads that read; 0: as many as there are processors, at most 4.
    pub readers: usize,
    /// Largest size of the file in pages of 4 KiB; 0: none. A full disk, for tests.
    pub max_pages: u32,
    /// What is refused, cut short or reported.
    pub limits: StoreLimits,
    /// Faults of writes, for tests.
    pub faults: Faults,
}

/// How long a write waits for another process (spec: security §7).
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Statements kept prepared on each connection.
const STATEMENTS: usize = 160;

/// A file that was looked at, and may be opened.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    /// What a file looked like that nobody may write while it is read.
    pub(crate) frozen: Option<Fingerprint>,
    #[expect(dead_code, reason = "held open, not used")]
    /// A connection that keeps the log of a file that is read in place from being removed by who closes it last.
    pub(crate) held: Option<Arc<Mutex<Connection>>>,
    /// Whether it is a private copy, made to be read.
    pub(crate) is_copy: bool,
    /// The older version that it was brought up to date from, just now and here.
    pub(crate) updated_from: Option<u32>,
    /// What all its connections were asked.
    pub(crate) counter: Arc<StatementCounter>,
}

/// How connections open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    /// As others that write it do: SQLite may make its log and the index of that.
    Read,
    /// Beside its log and the index of that, which are there: nothing is made or written.
    InPlace,
    /// A file that has no log and is not written meanwhile: nothing is made, written or locked.
    Frozen,
}

impl Access {
    /// What SQLite is told of it in the name of the file.
    const fn query(self) -> Option<&'static str> {
        match self {
            Self::Write | Self::Read => None,
            Self::InPlace => Some("?mode=ro&readonly_shm=1"),
            Self::Frozen => Some("?mode=ro&immutable=1"),
        }
    }
}

impl Found {
    pub(crate) fn new(path: &Path, access: Access) -> Self {
        let counter = Arc::default();
        let path = path.to_owned();
        Self { path, access, frozen: None, held: None, is_copy: false, updated_from: None, counter }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.access != Access::Write
    }

    /// Whether a file that nobody was to write is not what it was: what was read of it counts for nothing.
    pub(crate) fn is_changed(&self) -> bool {
        self.frozen.as_ref().is_some_and(|frozen| Fingerprint::of(&self.path).ok().as_ref() != Some(frozen))
    }

    /// The file of its write-ahead log.
    pub(crate) fn log(&self) -> PathBuf {
        store_log(&self.path)
    }

    /// A store in memory, which [`writer`] makes.
    pub(crate) fn memory() -> Self {
        Self::new(Path::new(MEMORY), Access::Write)
    }

    /// Whether the store is in memory: one connection, seen by nobody else.
    pub(crate) fn is_memory(&self) -> bool {
        self.path.as_os_str() == MEMORY
    }
}

/// SQLite's name of a database in memory.
const MEMORY: &str = ":memory:";

/// Looks at the file, makes it if there is none, brings it up to date.
pub(crate) fn prepare(path: &Path, options: &Options) -> Result<Found, StoreError> {
    let found = |access, updated_from| Ok(Found { updated_from, ..Found::new(path, access) });
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !options.read_only => 0,
        Err(error) => return Err(StoreError::io(format!("open {}", path.display()), error)),
    };
    if size >= HEADER {
        let look = || match inspect(path, Access::Read) {
            // Power was lost while the file was being made. What was begun is taken back, which only a connection
            // that writes can do.
            Err(StoreError::ReadOnly) if !options.read_only && beside(path, JOURNAL).exists() => {
                version(&raw(path, Access::Write)?)?;
                inspect(path, Access::Read)
            }
            state => state,
        };
        match unless_lost(path, look)? {
            State::Newer { readable: true, .. } => {
                tracing::warn!(path = %path.display(), "a newer program wrote this store: it is opened for reading");
                return found(Access::Read, None);
            }
            State::Newer { version: newer, readable: false } => {
                let backup = migration_copy(path, VERSION).display().to_string();
                return Err(StoreError::SchemaTooNew { found: newer, known: VERSION, backup });
            }
            State::Current if options.read_only => return found(Access::Read, None),
            State::Empty if options.read_only => return Err(StoreError::Foreign(path.display().to_string())),
            State::Older(older) if !options.may_migrate || options.read_only => {
                return Err(StoreError::MigrationNeeded { found: older, known: VERSION });
            }
            State::Empty | State::Older(_) | State::Current => {}
        }
    } else if size > 0 {
        return Err(StoreError::Foreign(path.display().to_string()));
    } else if let Some(sign) = sign_of_store(path) {
        let what = match path.read_link() {
            _ if path.exists() => "is empty".to_owned(),
            Ok(target) => format!("leads to {}, which is not there", target.display()),
            Err(_) => "is missing".to_owned(),
        };
        return Err(lost(path, &what, &sign));
    } else if options.read_only {
        return Err(StoreError::Foreign(path.display().to_string()));
    } else if !path.exists() {
        make(path)?;
    }
    let mut conn = raw(path, Access::Write)?;
    conn.execute_batch("PRAGMA secure_delete = ON").map_err(failure)?;
    let pages: i64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(failure)?;
    if pages == 0 {
        // As in [`make`].
        conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL").map_err(failure)?;
    }
    use_log(&conn)?;
    let updated_from = bring_up(&mut conn, Some(path), STEPS)?;
    found(Access::Write, updated_from)
}

/// Makes a store, if no other process was first: whole under a hidden name, and then renamed, so that nobody
/// meets half of one.
fn make(path: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::io(format!("create {}", path.display()), error);
    let mut empty = Connection::open_in_memory().map_err(failure)?;
    // A file that has tables does not take it any more, and would be waited for.
    empty.execute_batch("PRAGMA auto_vacuum = INCREMENTAL").map_err(failure)?;
    bring_up(&mut empty, None, STEPS)?;
    let hidden = hidden_name(path)?;
    let made = copy_to(&empty, &hidden).and_then(|()| {
        // Who opens it need not change it, which all others would wait for.
        let conn = raw(&hidden, Access::Write)?;
        use_log(&conn)?;
        conn.close().map_err(|(_, error)| failure(error))
    });
    let renamed = made.and_then(|()| rename_new(&hidden, path).map_err(failed));
    if !matches!(renamed, Ok(true)) {
        std::fs::remove_file(&hidden).ok();
    }
    // Another process may have been first, and have swept this one's.
    if path.exists() { Ok(()) } else { renamed.map(drop) }
}

/// The name of a store that is being made and is to be called `path`.
fn hidden_name(path: &Path) -> Result<PathBuf, StoreError> {
    Ok(path.with_file_name(UnfinishedFile::Store.new_name()?))
}

/// What a look at a file finds, unless the file is empty and the home was used.
fn unless_lost(path: &Path, look: impl Fn() -> Result<State, StoreError>) -> Result<State, StoreError> {
    let state = look()?;
    let sign = if state == State::Empty { made_with_store(path) } else { None };
    let Some(sign) = sign else { return Ok(state) };
    // Another process may have made the store meanwhile.
    match look()? {
        State::Empty => Err(lost(path, "is empty", &sign)),
        state => Ok(state),
    }
}

fn lost(path: &Path, what: &str, sign: &Path) -> StoreError {
    StoreError::Damaged(format!("{} {what}, although {} is there", path.display(), sign.display()))
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Empty,
    Current,
    Older(u32),
    Newer { version: u32, readable: bool },
}

/// Looks at a file without changing a byte of it.
fn inspect(path: &Path, access: Access) -> Result<State, StoreError> {
    state(&raw(path, access)?, path)
}

/// What the file of a connection is, which is called `path`. It leaves a transaction open.
pub(super) fn state(conn: &Connection, path: &Path) -> Result<State, StoreError> {
    let foreign = || StoreError::Foreign(path.display().to_string());
    // As of one moment: another process may be making it.
    conn.execute_batch("BEGIN").map_err(failure)?;
    let owner = conn.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0));
    let owner = owner.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => foreign(),
        _ => failure(error),
    })?;
    let version = version(conn)?;
    let has_tables = || {
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)";
        conn.query_row(sql, [], |row| row.get::<_, bool>(0)).map_err(failure)
    };
    if owner != APPLICATION_ID {
        let empty = owner == 0 && version == 0 && !has_tables()?;
        return if empty { Ok(State::Empty) } else { Err(foreign()) };
    }
    Ok(match version {
        0 if has_tables()? => {
            return Err(StoreError::Damaged(format!(
                "{} does not say of which version it is",
                path.display()
            )));
        }
        0 => State::Empty,
        VERSION => State::Current,
        older if older < VERSION => State::Older(older),
        newer => {
            let sql = "SELECT value FROM meta WHERE key = 'min_reader'";
            let min_reader: u32 = conn.query_row(sql, [], |row| row.get(0)).map_err(failure)?;
            State::Newer { version: newer, readable: min_reader <= VERSION }
        }
    })
}

pub(crate) fn raw(path: &Path, access: Access) -> Result<Connection, StoreError> {
    let flags = match access {
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Access::Read | Access::InPlace | Access::Frozen => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match access.query() {
        None => Connection::open_with_flags(path, flags),
        Some(query) => Connection::open_with_flags(uri(path) + query, flags | OpenFlags::SQLITE_OPEN_URI),
    };
    let conn = conn.map_err(failure)?;
    conn.busy_timeout(BUSY).map_err(failure)?;
    // A plan that depends on bound values is made anew whenever they change: for statements that are kept and
    // bound again and again, preparing them cost more than running them.
    conn.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failure)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// A path as SQLite's name of a file.
fn uri(path: &Path) -> String {
    let mut name = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                name.push(char::from(*byte));
            }
            other => name += &format!("%{other:02X}"),
        }
    }
    name
}

/// Turns the write-ahead log on, which stays with the file.
fn use_log(conn: &Connection) -> Result<(), StoreError> {
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failure)?;
    if mode == "wal" { Ok(()) } else { Err(StoreError::Damaged(format!("it stays in journal mode {mode}"))) }
}

pub(crate) fn reader(found: &Found) -> Result<Connection, StoreError> {
    let conn = raw(&found.path, found.access)?;
    conn.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY;")
        .map_err(failure)?;
    Ok(conn)
}

/// The connection that writes. What it deletes is overwritten at once; checkpoints are another thread's work.
pub(crate) fn writer(found: &Found, options: &Options) -> Result<Connection, StoreError> {
    let mut conn = raw(&found.path, Access::Write)?;
    if found.is_memory() {
        bring_up(&mut conn, None, STEPS)?;
    }
    conn.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 0;
         PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = {UNCUT};"
    ))
    .map_err(failure)?;
    if options.max_pages > 0 {
        conn.pragma_update(None, "max_page_count", options.max_pages).map_err(failure)?;
    }
    Ok(conn)
}

/// The connection that copies the log back into the file. It brings all to the device, as SQLite does unless it is
/// told otherwise; to say so would read the whole schema while the store is opened.
pub(crate) fn checkpointer(found: &Found) -> Result<Connection, StoreError> {
    raw(&found.path, Access::Write)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::home::{Home, HomeDir, HomeOptions};

    #[test]
    fn a_store_that_another_process_makes_meanwhile_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        let looks = Cell::new(0);
        let empty_at_first = || {
            looks.set(looks.get() + 1);
            if looks.get() == 2 {
                return Ok(State::Current);
            }
            // What the other process makes once its store is whole.
            std::fs::create_dir_all(folder.path().join(HomeDir::Spool.name())).unwrap();
            Ok(State::Empty)
        };
        assert_eq!(unless_lost(&path, empty_at_first).unwrap(), State::Current);
        let stays_empty = unless_lost(&path, || Ok(State::Empty));
        assert!(matches!(stays_empty, Err(StoreError::Damaged(_))), "{stays_empty:?}");
        std::fs::remove_dir(folder.path().join(HomeDir::Spool.name())).unwrap();
        assert_eq!(unless_lost(&path, || Ok(State::Empty)).unwrap(), State::Empty);
    }

    #[test]
    fn a_look_makes_no_tables_in_an_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        use_log(&Connection::open(&path).unwrap()).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(before.len() as u64 >= HEADER);
        let looked = prepare(&path, &Options { read_only: true, ..Options::default() });
        assert!(matches!(looked, Err(StoreError::Foreign(_))), "{looked:?}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        prepare(&path, &Options::default()).unwrap();
        assert_eq!(
            inspect(&path, Access::Read).unwrap(),
            State::Current,
            "the control: who writes makes them"
        );
    }

    #[test]
    fn a_store_that_is_being_made_is_part_of_a_home() {
        let folder = tempfile::tempdir().unwrap();
        let hidden = hidden_name(&folder.path().join("loom.db")).unwrap();
        std::fs::write(&hidden, "").unwrap();
        std::fs::write(beside(&hidden, JOURNAL), "").unwrap();
        Home::open(folder.path(), HomeOptions::default()).unwrap();
        assert_ne!(hidden_name(&folder.path().join("loom.db")).unwrap(), hidden);
    }

    /// What the connection that copies the log back relies on.
    #[test]
    fn all_is_brought_to_the_device_unless_sqlite_is_told_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        drop(Connection::open(&path).unwrap());
        let conn = raw(&path, Access::Write).unwrap();
        use_log(&conn).unwrap();
        let level: i64 = conn.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap();
        assert_eq!(level, 2, "FULL");
    }
}
