//! The engine PostgreSQL: a database of a server, reached by a few connections with a thread each.
//!
//! The rules of the store are synchronous, so each connection lives on a thread of its own with a runtime that is
//! driven while a statement waits. A statement is one round trip, the first one included: it is prepared for the
//! next time in the same flight that runs it, and a transaction begins with its first statement.
//!
//! A write is a transaction that reads what others committed, after the locks its rules name ([`crate::engine::Lock`]);
//! one that lost a race for a unique name is done again. Events are numbered under one lock, taken right before the
//! commit: `NOTIFY` makes commits wait for each other there anyhow, and a number that is seen has none below it to come.

mod connection;
mod listener;
mod pool;
mod search;
mod session;
mod statement;
mod tables;
mod tls;
mod value;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::db::Db;
use crate::engine::{Answer, Time};
use crate::error::StoreError;
use crate::event::Cursor;
use crate::server::ServerOptions;
use listener::Listener;
use pool::Pool;
use session::Link;

pub(crate) use tls::check_url;
pub(crate) use value::column;

/// What may hold a forgotten text after its rows were vacuumed.
pub(crate) const BEYOND_REACH: &str =
    "the database server's write-ahead log, archives, replicas, dumps and free space of its files";

/// A database that is in use.
pub(crate) struct Database {
    link: Arc<Link>,
    pool: Pool,
    newest: watch::Sender<Cursor>,
    /// From the first follower on.
    listener: Mutex<Option<Listener>>,
}

impl Database {
    /// As [`crate::Store::connect`].
    pub(crate) fn connect(options: &ServerOptions) -> Result<Self, StoreError> {
        let link = Arc::new(Link::new(options)?);
        let pool = Pool::new(Arc::clone(&link), options.pool);
        let (store, makes_tables) = (options.store, options.makes_tables);
        pool.run_blocking(move |worker| worker.prepare_tables(store, makes_tables))?;
        Ok(Self { link, pool, newest: watch::Sender::new(Cursor::default()), listener: Mutex::new(None) })
    }

    /// The server, as errors name it.
    pub(crate) fn server(&self) -> &str {
        self.link.server()
    }

    pub(crate) fn round_trips(&self) -> u64 {
        self.link.round_trips()
    }

    /// Runs a read in a snapshot of its own.
    pub(crate) fn read<T, F>(&self, time: Time, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        Box::pin(self.pool.run(time, move |worker| worker.read(time, work)))
    }

    /// Runs a write in a transaction of its own.
    pub(crate) fn write<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        Box::pin(self.pool.run(Time::Bounded, move |worker| worker.write(work)))
    }

    /// Takes rows that were removed out of tables and indexes.
    pub(crate) async fn vacuum(&self) -> Result<(), StoreError> {
        self.pool.run(Time::Unbounded, |worker| worker.batch(&tables::vacuum())).await
    }

    /// As [`crate::Store::newest`].
    pub(crate) fn newest(&self) -> Result<watch::Receiver<Cursor>, StoreError> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            *listener = Some(Listener::start(Arc::clone(&self.link), self.newest.clone())?);
        }
        Ok(self.newest.subscribe())
    }
}
