//! The store: trees and what belongs to them, in the tables of an engine.
//!
//! Several processes may use it at once. Each write is one transaction in which numbers are given and cells
//! compared, so that the order of a tree is one for all of them. A commit is durable before it is acknowledged.

mod content;
mod upkeep;
mod work;

use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use loom::seal::Seal;
use loom::{RowError, Seq, TreeId, TreeReader};

use crate::db::Db;
use crate::engine::StatementCounts;
use crate::error::StoreError;
use crate::event::Cursor;
use crate::follow::{SharedEvents, SharedPage};
use crate::limits::StoreLimits;
use crate::principal::Principal;
use crate::rows::events;
use crate::server::ServerOptions;
use crate::sqlite;
use crate::sqlite::Options;

/// A store in one SQLite file, in memory, or in a PostgreSQL database.
///
/// Every method takes the principal that asks. What it may not see is [`StoreError::NotFound`], as if it were not
/// there. Writes are durable (power loss included) when they return, drafts excepted, which survive the death of
/// the process. Dropping a future abandons the answer, never half of the work: a write that was queued is done
/// whole or not at all.
pub struct Store {
    engine: Engine,
    limits: StoreLimits,
    /// How far the store's clock goes ahead of the engine's, in ms: not at all, but in tests.
    ahead: AtomicI64,
    events: SharedEvents,
}

enum Engine {
    Sqlite(Box<sqlite::Database>),
    #[cfg(feature = "postgres")]
    Postgres(crate::postgres::Database),
}

/// An answer of the store to come, on the heap: plans and imports are large, and futures hold futures.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Whether a read may take as long as it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// It ends within [`StoreLimits::read`].
    Bounded,
    /// An integrity check or a copy of everything: where others are not waited for.
    Unbounded,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match &self.engine {
            Engine::Sqlite(database) => database.path().display().to_string(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.server().to_owned(),
        };
        f.debug_struct("Store").field("at", &name).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// As [`Store::open_with`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, &Options::default())
    }

    /// Opens a file, or makes it. Opening takes the same time however large the file is.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] for another program's file, [`StoreError::SchemaTooNew`] for a newer program's,
    /// [`StoreError::MigrationNeeded`] for an older one's unless `may_migrate` is set, [`StoreError::Damaged`].
    pub fn open_with(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let engine = Engine::Sqlite(Box::new(sqlite::Database::open(path, options)?));
        Ok(Self::new(engine, options.limits))
    }

    /// An empty store in memory, for previews and tests. It ends with the value, has no threads, and does its work on
    /// the thread that asks.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] when it cannot be made.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::in_memory_with(StoreLimits::default())
    }

    /// As [`Store::in_memory`], with limits.
    ///
    /// # Errors
    /// As [`Store::in_memory`].
    pub fn in_memory_with(limits: StoreLimits) -> Result<Self, StoreError> {
        let options = Options { limits, ..Options::default() };
        let engine = Engine::Sqlite(Box::new(sqlite::Database::in_memory(&options)?));
        Ok(Self::new(engine, limits))
    }

    /// Connects to a PostgreSQL database, and makes the tables in one that has none.
    ///
    /// # Errors
    /// [`StoreError::Server`] names a server that is absent, too old or does not let us in, another home's database,
    /// and a program built without the feature `postgres`; [`StoreError::Foreign`] another program's tables.
    pub fn connect(options: &ServerOptions) -> Result<Self, StoreError> {
        #[cfg(feature = "postgres")]
        {
            let engine = Engine::Postgres(crate::postgres::Database::connect(options)?);
            Ok(Self::new(engine, options.limits))
        }
        #[cfg(not(feature = "postgres"))]
        {
            let _ = options;
            Err(crate::error::ServerError::NotBuilt.into())
        }
    }

    fn new(engine: Engine, limits: StoreLimits) -> Self {
        Self { engine, limits, ahead: AtomicI64::new(0), events: SharedEvents::new() }
    }

    /// Sets the clock that leases and jobs go by ahead of the engine's own, for tests.
    pub fn advance_clock(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead.fetch_add(by, Ordering::Relaxed);
    }

    /// The bytes of the write-ahead log, if they are more than [`StoreLimits::wal`]: a read that does not end holds it.
    /// A server looks after its own.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the log cannot be looked at.
    pub fn long_log(&self) -> Result<Option<u64>, StoreError> {
        match &self.engine {
            Engine::Sqlite(database) => database.long_log(self.limits.wal),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Ok(None),
        }
    }

    /// The older version of the file, where opening this store brought it up to date: of processes that open it at
    /// once, one does.
    pub fn updated_from(&self) -> Option<u32> {
        match &self.engine {
            Engine::Sqlite(database) => database.updated_from(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => None,
        }
    }

    pub fn is_read_only(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(database) => database.is_read_only(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => false,
        }
    }

    /// What may still hold what was forgotten, and is beyond the reach of this program.
    pub const fn beyond_reach(&self) -> Option<&'static str> {
        match &self.engine {
            Engine::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Some(crate::postgres::BEYOND_REACH),
        }
    }

    /// Round trips to a server since the store was opened; none where there is no server.
    pub fn round_trips(&self) -> Option<u64> {
        match &self.engine {
            Engine::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => Some(database.round_trips()),
        }
    }

    /// What the engine was asked since the store was opened.
    pub fn statement_counts(&self) -> StatementCounts {
        match &self.engine {
            Engine::Sqlite(database) => database.statement_counts(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => StatementCounts { statements: database.round_trips(), steps: 0 },
        }
    }

    /// Events that were read for all followers of the process.
    pub(crate) const fn shared_events(&self) -> &SharedEvents {
        &self.events
    }

    /// Events behind a cursor with the sessions of their trees, whoever may see them; none: only how far they go.
    pub(crate) fn read_events(&self, after: Option<Cursor>, limit: usize) -> Answer<'_, SharedPage> {
        self.read(move |db| events::shared(db, after, limit))
    }

    pub(crate) fn read<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.read_within(Time::Bounded, work)
    }

    /// Runs a read in a snapshot of its own.
    fn read_within<T, F>(&self, time: Time, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let work = move |db: &Db<'_>| {
            db.set_ahead(ahead);
            work(db)
        };
        match &self.engine {
            Engine::Sqlite(database) => database.read(time, work),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.read(time, work),
        }
    }

    /// Runs a write in a transaction of its own, whose events are numbered last. It may be done again.
    pub(crate) fn write<T, F>(&self, mut work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let work = move |db: &Db<'_>| {
            db.set_ahead(ahead);
            let done = work(db)?;
            events::number(db)?;
            Ok(done)
        };
        match &self.engine {
            Engine::Sqlite(database) => database.write(work),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.write(work),
        }
    }

    /// Removes what a forget or purge left behind its rows.
    async fn scrub(&self) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(database) => database.scrub().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.vacuum().await,
        }
    }
}

/// Runs a function over the rows of a tree, within one snapshot, on a thread of the store.
///
/// # Errors
/// As [`Store::read_rows`].
pub async fn read<T, F>(store: &Store, who: &Principal, tree: TreeId, f: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
{
    store.read_rows(who, tree, f).await
}

/// The id of a store: another one after each restore.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub [u8; 16]);

impl StoreId {
    /// A new one, at random.
    pub(crate) fn random() -> Result<Self, StoreError> {
        random().map(Self)
    }
}

impl std::fmt::Display for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl std::fmt::Debug for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// Which store this is, and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub store: StoreId,
    /// The version of its schema.
    pub version: u32,
    pub cursor: Cursor,
}

/// A backup that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub identity: Identity,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Refuses a seal that does not fit its tree, whose newest operation is `last`.
pub(crate) fn check_seal(tree: TreeId, last: Seq, seal: &Seal) -> Result<(), StoreError> {
    if seal.seq > last || !loom::seal::is_signed(seal, tree) {
        return Err(StoreError::Malformed(
            "a seal of other operations or without its key's signature".to_owned(),
        ));
    }
    Ok(())
}

/// 16 random bytes.
pub(crate) fn random() -> Result<[u8; 16], StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::io("random bytes", std::io::Error::other(error.to_string())))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
