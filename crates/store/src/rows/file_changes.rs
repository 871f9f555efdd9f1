//! What tools changed in files, as rows. Paths are bytes: not every one is text.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use loom::{Millis, NodeId, TreeId};

use super::calls::{is_running, key_of};
use super::leases;
use super::outside_files;
use super::reader::limit_of;
use super::trees::{find, find_mut};
use super::workspaces;
use crate::call::CallId;
use crate::db::{Db, TreeKey, get, id16, unsigned};
use crate::engine::{Row, params};
use crate::error::StoreError;
use crate::file_change::{FileChange, FileChangeId, FileState, NewFileChange, NewFileChanges};
use crate::principal::Principal;

/// As [`crate::Store::keep_file_changes`].
pub(crate) fn keep(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    new: &NewFileChanges,
) -> Result<Vec<FileChangeId>, StoreError> {
    let tree = find_mut(db, who, tree)?;
    leases::check_guards(db, who, &new.guards)?;
    is_running(db, tree, new.call, &new.claim)?;
    let (key, now) = (key_of(db, tree, new.call)?, db.now()?);
    let sql = "SELECT COUNT(*) FROM file_changes WHERE node = ?1 AND call = ?2";
    let before = db.one(sql, params![key, new.call.number], |row| unsigned(row, 0))?.unwrap_or(0);
    let keep = |(number, change): (u64, &NewFileChange)| {
        let number = u32::try_from(number)
            .map_err(|_| StoreError::Damaged("a call has too many changes of files".to_owned()))?;
        keep_one(db, (key, now), (new.call, number), change)?;
        Ok(FileChangeId { call: new.call, number })
    };
    let ids = (before..).zip(&new.changes).map(keep).collect::<Result<Vec<_>, StoreError>>()?;
    new.accepted.iter().try_for_each(|inventory| workspaces::accept(db, who, inventory))?;
    Ok(ids)
}

fn keep_one(
    db: &Db<'_>,
    (key, now): (i64, Millis),
    (call, number): (CallId, u32),
    change: &NewFileChange,
) -> Result<(), StoreError> {
    db.run(
        "INSERT INTO file_changes (node, call, n, root, path, before, after, at, taken_back)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
        params![
            key,
            call.number,
            number,
            change.root.as_os_str().as_bytes(),
            change.path.as_os_str().as_bytes(),
            written(change.before)?,
            written(change.after)?,
            now.0
        ],
    )?;
    if let Some(blob) = change.after.blob().filter(|_| change.is_outside) {
        outside_files::keep(db, blob, now)?;
    }
    for blob in [change.before.blob(), change.after.blob()].into_iter().flatten() {
        db.run("INSERT INTO blobs (digest, node) VALUES (?1, ?2) ON CONFLICT DO NOTHING", (blob.0, key))?;
    }
    Ok(())
}

/// As [`crate::Store::file_changes`].
pub(crate) fn list(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    after: Option<FileChangeId>,
    limit: usize,
) -> Result<Vec<FileChange>, StoreError> {
    let tree = find(db, who, tree)?;
    let key = after.map(|after| key_of(db, tree, after.call)).transpose()?;
    let (call, n) = after.map_or((0, 0), |after| (after.call.number, after.number));
    let sql = "SELECT n.id, c.call, c.n, c.root, c.path, c.before, c.after, c.at, c.taken_back
         FROM file_changes c JOIN nodes n ON n.pk = c.node
         WHERE c.node BETWEEN ?1 AND ?2 AND ((c.node, c.call, c.n) > (?3, ?4, ?5) OR ?3 IS NULL)
         ORDER BY c.node, c.call, c.n LIMIT ?6";
    db.all(sql, params![tree.key.first(), tree.key.last(), key, call, n, limit_of(limit)], read)
}

/// As [`crate::Store::take_back_file_changes`].
pub(crate) fn take_back(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    changes: &[FileChangeId],
) -> Result<(), StoreError> {
    let tree = find_mut(db, who, tree)?;
    for change in changes {
        let key = key_of(db, tree, change.call)?;
        let sql = "UPDATE file_changes SET taken_back = 1 WHERE node = ?1 AND call = ?2 AND n = ?3";
        if db.run(sql, params![key, change.call.number, change.number])? == 0 {
            return Err(StoreError::NotFound("change of a file"));
        }
    }
    Ok(())
}

/// Drops those of an answer: what they kept goes with its blobs.
pub(crate) fn drop_of(db: &Db<'_>, node: i64) -> Result<(), StoreError> {
    db.run("DELETE FROM file_changes WHERE node = ?1", [node]).map(drop)
}

/// Drops those of a tree.
pub(crate) fn drop_all(db: &Db<'_>, tree: TreeKey) -> Result<(), StoreError> {
    db.run("DELETE FROM file_changes WHERE node BETWEEN ?1 AND ?2", (tree.first(), tree.last())).map(drop)
}

fn read(row: &Row<'_>) -> Result<FileChange, StoreError> {
    let number = |index| {
        u32::try_from(unsigned(row, index)?)
            .map_err(|_| StoreError::Damaged("the number of a change of a file is none".to_owned()))
    };
    let path = |index| Ok::<_, StoreError>(PathBuf::from(OsString::from_vec(get(row, index)?)));
    let call = CallId { answer: NodeId::from_bytes(id16(row, 0)?), number: number(1)? };
    Ok(FileChange {
        id: FileChangeId { call, number: number(2)? },
        root: path(3)?,
        path: path(4)?,
        before: state(&get::<String>(row, 5)?)?,
        after: state(&get::<String>(row, 6)?)?,
        at: Millis(get(row, 7)?),
        taken_back: get(row, 8)?,
    })
}

fn written(state: FileState) -> Result<String, StoreError> {
    serde_json::to_string(&state).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn state(text: &str) -> Result<FileState, StoreError> {
    let damaged = |error| StoreError::Damaged(format!("the state of a file is none: {error}"));
    serde_json::from_str(text).map_err(damaged)
}
