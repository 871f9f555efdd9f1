//! Answers about workspaces as rows. Paths are bytes: not every one is text.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::engine::{NONE, Row, params};
use loom::Millis;

use super::reader::limit_of;
use crate::db::{Db, get};
use crate::error::StoreError;
use crate::file_change::AcceptedInventory;
use crate::principal::{Principal, only_owner};
use crate::workspace::WorkspaceRecord;

/// As [`crate::Store::workspaces`].
pub(crate) fn list(
    db: &Db<'_>,
    who: &Principal,
    after: Option<&Path>,
    limit: usize,
) -> Result<Vec<WorkspaceRecord>, StoreError> {
    if !who.sees_all() {
        return Err(StoreError::Denied("workspaces"));
    }
    let sql = format!("{RECORDS} WHERE path > ?1 ORDER BY path LIMIT ?2");
    let after = after.map_or_else(Vec::new, |after| after.as_os_str().as_bytes().to_vec());
    db.all(&sql, (after, limit_of(limit)), record)
}

/// As [`crate::Store::workspace`].
pub(crate) fn at(db: &Db<'_>, who: &Principal, path: &Path) -> Result<Option<WorkspaceRecord>, StoreError> {
    if !who.sees_all() {
        return Err(StoreError::Denied("workspaces"));
    }
    db.one(&format!("{RECORDS} WHERE path = ?1"), [path.as_os_str().as_bytes()], record)
}

/// As [`crate::Store::workspaces_about`].
pub(crate) fn about(
    db: &Db<'_>,
    who: &Principal,
    path: &Path,
    device: u64,
    inode: u64,
) -> Result<Vec<WorkspaceRecord>, StoreError> {
    if !who.sees_all() {
        return Err(StoreError::Denied("workspaces"));
    }
    let sql = format!("{RECORDS} WHERE path = ?1 OR (device = ?2 AND inode = ?3) ORDER BY path");
    let path = path.as_os_str().as_bytes();
    db.all(&sql, (path, device.cast_signed(), inode.cast_signed()), record)
}

const RECORDS: &str = "SELECT path, device, inode, trusted, inventory, at FROM workspaces";

fn record(row: &Row<'_>) -> Result<WorkspaceRecord, StoreError> {
    Ok(WorkspaceRecord {
        path: PathBuf::from(OsString::from_vec(get(row, 0)?)),
        device: get::<i64>(row, 1)?.cast_unsigned(),
        inode: get::<i64>(row, 2)?.cast_unsigned(),
        trusted: get(row, 3)?,
        inventory: get(row, 4)?,
        at: Millis(get(row, 5)?),
    })
}

/// As [`crate::Store::keep_workspace`].
pub(crate) fn keep(db: &Db<'_>, who: &Principal, record: &WorkspaceRecord) -> Result<(), StoreError> {
    if !who.sees_all() {
        return Err(StoreError::Denied("workspaces"));
    }
    db.run(
        "INSERT INTO workspaces (path, device, inode, trusted, inventory, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (path) DO UPDATE SET device = excluded.device, inode = excluded.inode,
            trusted = excluded.trusted, inventory = excluded.inventory, at = excluded.at",
        params![
            record.path.as_os_str().as_bytes(),
            record.device.cast_signed(),
            record.inode.cast_signed(),
            record.trusted,
            &record.inventory,
            record.at.0
        ],
    )?;
    Ok(())
}

/// As [`crate::Store::distrusts_workspace`].
pub(crate) fn distrusts(db: &Db<'_>, who: &Principal, name: &str) -> Result<bool, StoreError> {
    if !who.sees_all() {
        return Err(StoreError::Denied("workspaces"));
    }
    let paths: Vec<Vec<u8>> = db.all("SELECT path FROM workspaces", NONE, |row| get(row, 0))?;
    // Of two answers the later counts, in one millisecond the no. Times stand behind inventories: read last.
    let no = "SELECT 1 FROM workspaces AS named JOIN workspaces AS said
              ON said.device = named.device AND said.inode = named.inode
         WHERE named.path = ?1 AND said.trusted = 0 AND (named.trusted = 0 OR said.at >= named.at)";
    // What is not UTF-8 in a path is replaced in the names of sessions.
    for path in paths.iter().filter(|path| String::from_utf8_lossy(path) == name) {
        if db.one(no, [path.as_slice()], |_| Ok(()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lists an accepted text in the record of its workspace.
pub(super) fn accept(db: &Db<'_>, who: &Principal, accepted: &AcceptedInventory) -> Result<(), StoreError> {
    only_owner(who, "workspaces")?;
    let sql = "UPDATE workspaces SET inventory = ?1 WHERE path = ?2 AND trusted <> 0 AND inventory = ?3";
    let path = accepted.workspace.as_os_str().as_bytes();
    db.run(sql, params![&accepted.after, path, &accepted.before]).map(drop)
}
