//! The store: trees and what belongs to them, in the tables of an engine.
//!
//! Several processes may use it at once. Each write is one transaction in which numbers are given and cells
//! compared, so that the order of a tree is one for all of them. A commit is durable before it is acknowledged.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use loom::{RowError, TreeId, TreeReader};

use crate::db::Db;
use crate::engine::{Answer, StatementCounts, Time};
use crate::error::StoreError;
use crate::event::Cursor;
use crate::home::Scratch;
use crate::limits::StoreLimits;
use crate::principal::Principal;
use crate::rows::{events, reader};
use crate::server::ServerOptions;
use crate::shared_events::{SharedEvents, SharedPage};
use crate::sqlite;
use crate::sqlite::Options;

/// Methods of [`Store`] that are one rule of the store (`rows`), in a transaction (`write`) or a snapshot (`read`) of
/// its own: `fn method(arguments) -> answer = rule(arguments)`. A rule has the transaction and the principal first.
macro_rules! forward {
    ($($(#[$doc:meta])* $how:ident fn $method:ident($($name:ident: $of:ty),*) -> $answer:ty
        = $($rule:ident)::+($($given:expr),*);)*) => {
        impl Store {$(
            $(#[$doc])*
            pub async fn $method(&self, who: &Principal, $($name: $of),*) -> Result<$answer, StoreError> {
                let (who, $($name,)*) = (who.clone(), $($name.to_owned(),)*);
                self.$how(move |db| $($rule)::+(db, &who, $($given),*)).await
            }
        )*}
    };
}

mod content;
mod upkeep;
mod work;

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

    /// Opens a file that need not be writable, nor its folder, in order to read it: where it lies, if SQLite can do so
    /// without making a file, else as a copy in a private folder, which shows all that was acknowledged and is brought
    /// up to date if it is older.
    ///
    /// # Errors
    /// As [`Store::open_with`]; [`StoreError::NoRoom`] when the copy finds none; [`StoreError::Busy`] when the file is
    /// written so often that no copy of one moment can be made.
    pub fn open_for_reading(path: &Path, scratch: &Scratch, limits: StoreLimits) -> Result<Self, StoreError> {
        let options = Options { limits, ..Options::default() };
        let database = sqlite::Database::open_for_reading(path, scratch, &options)?;
        Ok(Self::new(Engine::Sqlite(Box::new(database)), limits))
    }

    /// Whether what is read is a private copy of the file.
    pub fn is_copy(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(database) => database.is_copy(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => false,
        }
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
/// What the function returns; [`StoreError::TooLong`] after [`StoreLimits::read`].
pub async fn read<T, F>(store: &Store, who: &Principal, tree: TreeId, f: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
{
    let who = who.clone();
    store.read(move |db| reader::run(db, &who, tree, f)).await
}

#[cfg(test)]
mod tests;
