//! Copies of the file.

use std::path::Path;

use rusqlite::Connection;

use super::connection::{SqliteTransaction, failure};
use super::migrate::copy_to;
use super::open::{Found, reader};
use crate::db::{Caches, Db};
use crate::error::StoreError;
use crate::identity::Backup;
use crate::rows::maintenance::identity;

/// Writes a copy, of the moment it is written in: one file, without a log beside it.
pub(crate) fn copy(found: &Found, to: &Path) -> Result<Backup, StoreError> {
    if found.is_memory() {
        return Err(StoreError::Denied("back up a store in memory"));
    }
    copy_to(&reader(found)?, to)?;
    let conn = Connection::open(to).map_err(failure)?;
    conn.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(failure)?;
    let identity =
        identity(&Db::new(&SqliteTransaction::reading(&conn, &found.counter), &Caches::default()))?;
    conn.close().map_err(|(_, error)| failure(error))?;
    let size =
        std::fs::metadata(to).map_err(|error| StoreError::io(format!("write {}", to.display()), error))?;
    Ok(Backup { identity, bytes: size.len() })
}
