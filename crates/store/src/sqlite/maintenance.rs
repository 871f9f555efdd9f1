//! What the files of SQLite need: copies, and pages without what was forgotten.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::connection::{SqliteTransaction, failure};
use super::migrate::copy_to;
use super::open::{BUSY, Found, reader};
use crate::db::{Caches, Db};
use crate::error::StoreError;
use crate::rows::maintenance::identity;
use crate::store::Backup;

/// Writes a copy, of the moment it is written in: one file, without a log beside it.
pub(crate) fn copy(found: &Found, to: &Path) -> Result<Backup, StoreError> {
    if found.is_memory() {
        return Err(StoreError::Denied("back up a store in memory"));
    }
    copy_to(&reader(found)?, to)?;
    let conn = Connection::open(to).map_err(failure)?;
    conn.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(failure)?;
    let identity = identity(&Db::new(&SqliteTransaction::reading(&conn), &Caches::default()))?;
    conn.close().map_err(|(_, error)| failure(error))?;
    let size =
        std::fs::metadata(to).map_err(|error| StoreError::io(format!("write {}", to.display()), error))?;
    Ok(Backup { identity, bytes: size.len() })
}

/// Takes what was deleted out of the file: merges the index, rewrites every page, empties the log. Readers of
/// other processes can hold the log for as long as a read lasts; the busy timeout waits for them.
pub(crate) fn scrub(conn: &Connection) -> Result<(), StoreError> {
    conn.execute("INSERT INTO search (search) VALUES ('optimize')", params![]).map_err(failure)?;
    conn.execute_batch("VACUUM").map_err(failure)?;
    // The thread that copies the log back may be at it: that is not waited for by SQLite's own patience.
    let patience = Instant::now() + BUSY;
    loop {
        let busy: i64 =
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(failure)?;
        match busy {
            0 => return Ok(()),
            _ if Instant::now() >= patience => return Err(StoreError::Busy),
            _ => std::thread::sleep(BETWEEN),
        }
    }
}

/// Between two tries to empty the log.
const BETWEEN: Duration = Duration::from_millis(5);
