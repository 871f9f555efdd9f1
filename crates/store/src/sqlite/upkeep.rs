//! Integrity, copies, identity.

use std::path::Path;

use rusqlite::Connection;

use super::db::{Caches, Db, bytes_of, failure, get};
use super::events;
use super::migrate::copy_to;
use super::open::{Found, reader};
use super::schema::VERSION;
use super::work::fence_everything;
use crate::error::StoreError;
use crate::store::{Backup, Identity, StoreId};

/// Problems listed at most.
const PROBLEMS: usize = 100;

/// As [`crate::Store::check`].
pub(crate) fn check(db: &Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut problems = db.all("PRAGMA integrity_check", [], |row| get::<String>(row, 0))?;
    problems.retain(|line| line != "ok");
    let questions = [
        (
            "operations are missing in tree",
            "SELECT hex(t.id) FROM trees t WHERE t.seq <> (SELECT count(*) FROM operations o WHERE o.tree = t.pk)
                OR t.seq <> coalesce((SELECT max(seq) FROM operations o WHERE o.tree = t.pk), 0)",
        ),
        (
            "nodes are missing in tree",
            "SELECT hex(t.id) FROM trees t WHERE t.nodes <> (SELECT count(*) FROM nodes n WHERE n.tree = t.pk)",
        ),
        (
            "the last operation is another one than was written in tree",
            "SELECT hex(t.id) FROM trees t JOIN operations o ON o.tree = t.pk AND o.seq = t.seq WHERE o.hash <> t.head",
        ),
        (
            "the position is missing of node",
            "SELECT hex(n.id) FROM nodes n WHERE n.position IS NULL
                AND NOT EXISTS (SELECT 1 FROM positions p WHERE p.pk = n.pk)",
        ),
        (
            "the parent is missing of position",
            "SELECT hex(n.id) FROM positions p JOIN nodes n ON n.pk = p.pk WHERE p.parent IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM positions up WHERE up.pk = p.parent)",
        ),
    ];
    for (problem, sql) in questions {
        problems.extend(db.all(sql, [], |row| Ok(format!("{problem} {}", get::<String>(row, 0)?)))?);
    }
    problems.truncate(PROBLEMS);
    Ok(problems)
}

/// Writes a copy, of the moment it is written in: one file, without a log beside it.
pub(crate) fn copy(found: &Found, to: &Path) -> Result<Backup, StoreError> {
    if found.is_memory() {
        return Err(StoreError::Denied("back up a store in memory"));
    }
    copy_to(&reader(found)?, to)?;
    let conn = Connection::open(to).map_err(failure)?;
    conn.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(failure)?;
    let identity = identity(&Db::reading(&conn, &Caches::default()))?;
    conn.close().map_err(|(_, error)| failure(error))?;
    let size =
        std::fs::metadata(to).map_err(|error| StoreError::io(format!("write {}", to.display()), error))?;
    Ok(Backup { identity, bytes: size.len() })
}

/// As [`crate::Store::identity`].
pub(crate) fn identity(db: &Db<'_>) -> Result<Identity, StoreError> {
    let store = db.one("SELECT value FROM meta WHERE key = 'store'", [], |row| {
        let bytes = bytes_of(row, 0)?.try_into();
        bytes.map(StoreId).map_err(|_| StoreError::Damaged("the store's id cannot be read".to_owned()))
    })?;
    let store = store.ok_or_else(|| StoreError::Damaged("the store has no id".to_owned()))?;
    Ok(Identity { store, version: VERSION, cursor: events::last(db)? })
}

/// As [`crate::Store::renew_identity`].
pub(crate) fn renew(db: &Db<'_>, id: StoreId) -> Result<(), StoreError> {
    db.run("UPDATE meta SET value = ?1 WHERE key = 'store'", [id.0])?;
    fence_everything(db)
}
