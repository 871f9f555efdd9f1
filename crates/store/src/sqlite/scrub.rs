//! Taking what was deleted out of the file, while others write.
//!
//! Cells and pages are overwritten as they are deleted (`secure_delete`), entries of the search index too. Left are
//! the unused parts of pages ([`super::pages`]), words that stand in the index as borders of its pages, and the log.
//! Each is taken in small transactions, through the queue of writes; then the log is copied back and emptied.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _};

use super::connection::failure;
use super::database::Database;
use super::open::{self, BUSY, Found};
use super::pages;
use crate::db::{Db, bytes_of, get};
use crate::engine::Time;
use crate::error::StoreError;
use crate::rows::forget::TAKE_BACK;

/// How long one transaction cleans pages before it is committed.
const SLICE: Duration = Duration::from_millis(10);

/// Pages of the search index that one transaction merges.
const MERGED: i32 = 256;

/// Between two transactions, for writers of other processes.
const PAUSE: Duration = Duration::from_millis(2);

/// Between two tries to empty the log.
const BETWEEN: Duration = Duration::from_millis(5);

/// How often pages are looked through, where others go on writing.
const ROUNDS: usize = 3;

/// The key in `meta` that says that a word stands in the index as the border of a page.
pub(super) const BORDERS: &str = "scrub_index";

impl Database {
    /// Removes what a forget or purge left in the file.
    pub(crate) async fn scrub(&self) -> Result<(), StoreError> {
        let Some(found) = self.file() else { return Ok(()) };
        let mut patience = true;
        self.merge_borders(&mut patience).await?;
        for _ in 0..ROUNDS {
            let dirty = self.read(Time::Unbounded, find_remains).await?;
            if dirty.is_empty() {
                break;
            }
            let (dirty, mut next): (Arc<[i64]>, usize) = (dirty.into(), 0);
            while next < dirty.len() {
                let pages = Arc::clone(&dirty);
                next +=
                    self.run_alone(move |conn| clean(conn, pages.get(next..).unwrap_or_default())).await?;
                self.pause(&mut patience).await?;
            }
        }
        self.empty_log(found).await
    }

    /// Merges the whole search index, a little at a time, where a word that is gone stands as a border.
    async fn merge_borders(&self, patience: &mut bool) -> Result<(), StoreError> {
        let Some(noted) = self.run_alone(noted_borders).await? else { return Ok(()) };
        // A negative number begins to merge everything into one; positive ones go on with it.
        let mut pages = -MERGED;
        while self.run_alone(move |conn| merge(conn, pages)).await? {
            pages = MERGED;
            self.pause(patience).await?;
        }
        self.run_alone(move |conn| end_borders(conn, &noted)).await
    }

    /// Leaves writers of other processes a moment, and the log as long as it takes to begin anew: a longer one takes
    /// longer to empty. Where somebody holds it, once for as long as [`BUSY`].
    async fn pause(&self, patience: &mut bool) -> Result<(), StoreError> {
        tokio::time::sleep(PAUSE).await;
        let began = Instant::now();
        while *patience && self.has_long_log() {
            // What has the writer to itself wakes the thread that copies the log back.
            self.run_alone(|_| Ok(())).await?;
            tokio::time::sleep(BETWEEN).await;
            *patience = began.elapsed() < BUSY;
        }
        Ok(())
    }

    /// Copies the log back while others write, then empties it in the moment when little is left of it. Readers of
    /// other processes can hold the log for as long as a read lasts.
    async fn empty_log(&self, found: &Found) -> Result<(), StoreError> {
        let patience = Instant::now() + BUSY;
        while self.has_long_log_file() && Instant::now() < patience {
            // A transaction cuts a piece of it.
            let sql = "UPDATE meta SET value = value WHERE key = 'scrub'";
            self.run_alone(move |conn| conn.execute(sql, []).map(drop).map_err(failure)).await?;
            tokio::time::sleep(BETWEEN).await;
        }
        loop {
            let found = found.clone();
            let copy_back = move |_: &Db<'_>| {
                let conn = open::checkpointer(&found)?;
                conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(failure)
            };
            self.read(Time::Unbounded, copy_back).await?;
            match self.run_alone(truncate).await {
                Ok(true) => return Ok(()),
                Ok(false) | Err(StoreError::Busy) if Instant::now() < patience => {
                    tokio::time::sleep(BETWEEN).await;
                }
                Ok(false) => return Err(StoreError::Busy),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The newest note of a word that stands as a border.
fn noted_borders(conn: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    conn.query_row(sql, [BORDERS], |row| row.get(0)).optional().map_err(failure)
}

/// Takes a note back, unless there is a newer one.
fn end_borders(conn: &Connection, noted: &[u8]) -> Result<(), StoreError> {
    conn.execute(TAKE_BACK, (BORDERS, noted)).map(drop).map_err(failure)
}

/// The pages on which something stands where nothing is used.
fn find_remains(db: &Db<'_>) -> Result<Vec<i64>, StoreError> {
    let (mut dirty, mut has_map) = (Vec::new(), false);
    db.engine().query("SELECT pgno, data FROM sqlite_dbpage", &[], &mut |row| {
        let (page, bytes) = (get::<i64>(row, 0)?, bytes_of(row, 1)?);
        has_map |= page == 1 && pages::has_map(bytes);
        if !(has_map && pages::is_map(page, bytes.len())) && pages::has_remains(page, bytes) {
            dirty.push(page);
        }
        Ok(true)
    })?;
    Ok(dirty)
}

/// Runs something in a transaction of its own.
fn within<T>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    conn.execute_batch("BEGIN IMMEDIATE").map_err(failure)?;
    let done = work(conn);
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    conn.execute_batch(end).map_err(failure)?;
    done
}

/// Empties the unused parts of pages, as they are now, for as long as a [`SLICE`]. Returns how many it looked at.
fn clean(conn: &Connection, dirty: &[i64]) -> Result<usize, StoreError> {
    within(conn, |conn| {
        let began = Instant::now();
        let mut read =
            conn.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1").map_err(failure)?;
        let mut write =
            conn.prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1").map_err(failure)?;
        let page_of = |read: &mut rusqlite::CachedStatement<'_>, page: i64| {
            read.query_row([page], |row| row.get::<_, Vec<u8>>(0)).optional().map_err(failure)
        };
        let has_map = page_of(&mut read, 1)?.is_some_and(|first| pages::has_map(&first));
        for (done, page) in (1..).zip(dirty) {
            let Some(bytes) = page_of(&mut read, *page)? else { continue };
            let is_map = has_map && pages::is_map(*page, bytes.len());
            if !is_map && pages::has_remains(*page, &bytes) {
                write.execute((page, pages::cleaned(*page, bytes))).map_err(failure)?;
            }
            if began.elapsed() >= SLICE {
                return Ok(done);
            }
        }
        Ok(dirty.len())
    })
}

/// Merges pages of the search index; whether there was anything to merge.
fn merge(conn: &Connection, pages: i32) -> Result<bool, StoreError> {
    within(conn, |conn| {
        let before = conn.total_changes();
        conn.execute("INSERT INTO search (search, rank) VALUES ('merge', ?1)", [pages]).map_err(failure)?;
        // The command itself counts as one change.
        Ok(conn.total_changes() - before > 1)
    })
}

/// Empties the log, if nobody is at it.
fn truncate(conn: &Connection) -> Result<bool, StoreError> {
    conn.busy_timeout(Duration::ZERO).map_err(failure)?;
    let done = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    conn.busy_timeout(BUSY).map_err(failure)?;
    done.map(|busy| busy == 0).map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::StoreLimits;
    use crate::rows::forget::NOTE;
    use crate::sqlite::Options;

    #[tokio::test]
    async fn what_has_the_store_alone_and_panics_ends_itself_and_its_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let store = Database::open(&folder.path().join("loom.db"), &Options::default()).unwrap();
        let broken = store.run_alone(|conn| -> Result<(), StoreError> {
            conn.execute_batch("BEGIN IMMEDIATE").map_err(failure)?;
            panic!("as a test wants it")
        });
        assert!(matches!(broken.await, Err(StoreError::Panicked)));
        store.run_alone(|conn| within(conn, |_| Ok(()))).await.unwrap();
    }

    #[tokio::test]
    async fn the_log_begins_anew_before_what_can_wait_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        let limits = StoreLimits { wal: 1 << 20, ..StoreLimits::default() };
        let store = Database::open(&path, &Options { limits, ..Options::default() }).unwrap();
        let mut patience = true;
        for _ in 0..200 {
            let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('test', randomblob(32768))";
            store
                .run_alone(move |conn| within(conn, |conn| conn.execute_batch(sql).map_err(failure)))
                .await
                .unwrap();
            store.pause(&mut patience).await.unwrap();
        }
        assert!(patience, "it began anew each time");
        let log = std::fs::metadata(folder.path().join("loom.db-wal")).unwrap().len();
        assert!(log <= 1 << 20, "{log} bytes for 6 MiB");
    }

    /// To cut gigabytes takes a second, for which whoever writes next would wait.
    #[tokio::test]
    async fn a_log_that_one_transaction_made_long_is_cut_a_piece_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        let limits = StoreLimits { wal: 1 << 20, ..StoreLimits::default() };
        let store = Database::open(&path, &Options { limits, ..Options::default() }).unwrap();
        let bytes = || std::fs::metadata(folder.path().join("loom.db-wal")).unwrap().len();
        let write = async |count: i64| {
            let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('test', randomblob(1024 * ?1))";
            let done = store.run_alone(move |conn| {
                within(conn, |conn| conn.execute(sql, [count]).map(drop).map_err(failure))
            });
            done.await.unwrap();
        };
        write(8 * 1024).await;
        let mut before = bytes();
        assert!(before > 8 << 20, "{before}");
        for _ in 0..10_000 {
            write(1).await;
            let now = bytes();
            assert!(now + (1 << 20) >= before, "{before} bytes were cut to {now} at once");
            before = now;
            if !store.has_long_log_file() && now <= 1 << 20 {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(before <= 1 << 20, "{before} bytes are left");
    }

    #[test]
    fn a_note_that_another_process_made_while_pages_were_merged_stays() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL)").unwrap();
        let note = || conn.execute(NOTE, (BORDERS, crate::identity::random().unwrap())).unwrap();
        note();
        let noted = noted_borders(&conn).unwrap().unwrap();
        note();
        end_borders(&conn, &noted).unwrap();
        let newer = noted_borders(&conn).unwrap().unwrap();
        end_borders(&conn, &newer).unwrap();
        assert!(noted_borders(&conn).unwrap().is_none());
    }
}
