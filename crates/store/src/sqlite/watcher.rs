//! The thread that notices what other processes write.
//!
//! It asks `PRAGMA data_version`, which reads a counter in shared memory and no page of the file, and looks for the
//! newest event when it has moved. It runs from the first follower on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;

use super::connection::{SqliteTransaction, failure};
use super::open::{self, Found};
use crate::db::{Caches, Db};
use crate::engine::StatementCounter;
use crate::error::StoreError;
use crate::event::Cursor;
use crate::rows::events;
use crate::shared_events::tell;

/// How often it looks: twice within the 200 ms that a follower may be behind (spec: security §7).
const EVERY: Duration = Duration::from_millis(80);

/// The thread, which ends when this is stopped.
pub(crate) struct Watcher {
    /// Never sent on: closing it ends the thread at once (channel `store.watch`).
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Watcher {
    pub(crate) fn start(found: &Found, newest: watch::Sender<Cursor>) -> Result<Self, StoreError> {
        let conn = open::reader(found)?;
        let (stop, stopped) = sync_channel(0);
        let counter = Arc::clone(&found.counter);
        let run = move || look(&conn, &counter, &newest, &stopped);
        let thread = std::thread::Builder::new().name("store-watch".to_owned()).spawn(run);
        let thread = thread.map_err(|error| StoreError::io("start a thread", error))?;
        Ok(Self { stop, thread })
    }

    pub(crate) fn stop(self) -> JoinHandle<()> {
        drop(self.stop);
        self.thread
    }
}

fn look(
    conn: &Connection,
    counter: &StatementCounter,
    newest: &watch::Sender<Cursor>,
    stopped: &Receiver<()>,
) {
    let mut seen = None;
    loop {
        match version(conn) {
            Ok(version) if seen == Some(version) => {}
            Ok(version) => {
                match events::last(&Db::new(&SqliteTransaction::reading(conn, counter), &Caches::default())) {
                    Ok(last) => {
                        tell(newest, last);
                        seen = Some(version);
                    }
                    Err(error) => tracing::warn!(%error, "what other processes wrote could not be read"),
                }
            }
            Err(error) => tracing::warn!(%error, "what other processes write is not noticed"),
        }
        match stopped.recv_timeout(EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// Counts the commits of all other connections, as this one sees them.
fn version(conn: &Connection) -> Result<i64, StoreError> {
    conn.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(failure)
}
