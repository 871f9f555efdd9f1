//! What tools changed in files, as rows. Paths are bytes: not every one is text.

use std::collections::HashMap;
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
use crate::file_change::{
    ChangeStanding, FileChange, FileChangeId, FileState, GivingBack, NewFileChange, NewFileChanges,
};
use crate::principal::Principal;

/// Values of `taken_back`: of a change that stands, of one that was given back by no giving-back that is written down, of one
/// that was to be given back and could not, and of a giving-back. Any other value is the time of the giving-back, in ms; of a giving-back that was taken again, less than 0,
/// that of the taking.
const MADE: i64 = 0;
const TAKEN_BACK: i64 = 1;
const LEFT: i64 = 2;
const GIVING_BACK: i64 = -1;

/// As [`crate::Store::keep_file_changes`].
pub(crate) fn keep(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    new: &NewFileChanges,
) -> Result<Vec<FileChangeId>, StoreError> {
    let tree = find_mut(db, who, tree)?;
    leases::check_guards(db, who, &new.guards)?;
    if let Some(claim) = &new.claim {
        is_running(db, tree, new.call, claim)?;
    }
    let (key, now) = (key_of(db, tree, new.call)?, db.now()?);
    let sql = "SELECT COUNT(*) FROM file_changes WHERE node = ?1 AND call = ?2";
    let before = db.one(sql, params![key, new.call.number], |row| unsigned(row, 0))?.unwrap_or(0);
    let keep = |(number, change): (u64, &NewFileChange)| {
        let number = u32::try_from(number)
            .map_err(|_| StoreError::Damaged("a call has too many changes of files".to_owned()))?;
        keep_one(db, (key, now), (new.call.number, number, MADE), change)?;
        Ok(FileChangeId { call: new.call, number })
    };
    let ids = (before..).zip(&new.changes).map(keep).collect::<Result<Vec<_>, StoreError>>()?;
    new.accepted.iter().try_for_each(|inventory| workspaces::accept(db, who, inventory))?;
    Ok(ids)
}

fn keep_one(
    db: &Db<'_>,
    (key, now): (i64, Millis),
    (call, number, standing): (u32, u32, i64),
    change: &NewFileChange,
) -> Result<(), StoreError> {
    db.run(
        "INSERT INTO file_changes (node, call, n, root, path, before, after, at, taken_back)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            key,
            call,
            number,
            change.root.as_os_str().as_bytes(),
            change.path.as_os_str().as_bytes(),
            written(change.before)?,
            written(change.after)?,
            now.0,
            standing
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
    let given = files_by_standing(db, tree.key, "taken_back = ?3", GIVING_BACK)?;
    for change in changes {
        let place = (key_of(db, tree, change.call)?, change.call.number, change.number);
        let file = file_of(db, place, None)?.ok_or(StoreError::NotFound("change of a file"))?;
        let later = given.get(&file.path).into_iter().flatten().filter(|back| back.place > place);
        let at = later.map(|back| back.at).max().unwrap_or(TAKEN_BACK);
        set_standing(db, place, at)?;
    }
    Ok(())
}

/// Key of the answer, number of the call, and number of a change in that.
type ChangePlace = (i64, u32, u32);

/// A root and a path below it, as bytes.
type FilePath = (Vec<u8>, Vec<u8>);

/// A change of a file, as far as its standing needs it.
struct ChangedFile {
    place: ChangePlace,
    path: FilePath,
    at: i64,
    standing: i64,
}

const CHANGED_FILE: &str = "SELECT node, call, n, root, path, at, taken_back FROM file_changes";

fn changed_file(row: &Row<'_>) -> Result<ChangedFile, StoreError> {
    Ok(ChangedFile {
        place: (get(row, 0)?, number(row, 1)?, number(row, 2)?),
        path: (get(row, 3)?, get(row, 4)?),
        at: get(row, 5)?,
        standing: get(row, 6)?,
    })
}

/// A change at its place, if it is there; with a standing only one that has it.
fn file_of(
    db: &Db<'_>,
    (node, call, n): ChangePlace,
    standing: Option<i64>,
) -> Result<Option<ChangedFile>, StoreError> {
    let sql = format!("{CHANGED_FILE} WHERE node = ?1 AND call = ?2 AND n = ?3");
    let found = db.one(&sql, params![node, call, n], changed_file)?;
    Ok(found.filter(|found| standing.is_none_or(|standing| found.standing == standing)))
}

/// The changes of a tree by their paths whose standing meets a condition on `?3`: read once, as there may be many.
fn files_by_standing(
    db: &Db<'_>,
    tree: TreeKey,
    condition: &str,
    standing: i64,
) -> Result<HashMap<FilePath, Vec<ChangedFile>>, StoreError> {
    let sql = format!("{CHANGED_FILE} WHERE node BETWEEN ?1 AND ?2 AND {condition}");
    let mut by_path: HashMap<_, Vec<_>> = HashMap::new();
    for file in db.all(&sql, params![tree.first(), tree.last(), standing], changed_file)? {
        by_path.entry(file.path.clone()).or_default().push(file);
    }
    Ok(by_path)
}

fn set_standing(db: &Db<'_>, (node, call, n): ChangePlace, standing: i64) -> Result<(), StoreError> {
    let sql = "UPDATE file_changes SET taken_back = ?4 WHERE node = ?1 AND call = ?2 AND n = ?3";
    db.run(sql, params![node, call, n, standing]).map(drop)
}

/// As [`crate::Store::leave_file_changes`].
pub(crate) fn leave(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    changes: &[FileChangeId],
) -> Result<(), StoreError> {
    let tree = find_mut(db, who, tree)?;
    for change in changes {
        let place = (key_of(db, tree, change.call)?, change.call.number, change.number);
        if file_of(db, place, Some(MADE))?.is_some() {
            set_standing(db, place, LEFT)?;
        }
    }
    Ok(())
}

/// As [`crate::Store::keep_giving_back`].
pub(crate) fn keep_giving_back(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    changes: &[NewFileChange],
) -> Result<Vec<FileChangeId>, StoreError> {
    let tree = find_mut(db, who, tree)?;
    let now = db.now()?;
    // Behind all others: changes are in the order they were made.
    let sql = "SELECT c.node, c.call, c.n, n.id FROM file_changes c JOIN nodes n ON n.pk = c.node
         WHERE c.node BETWEEN ?1 AND ?2 ORDER BY c.node DESC, c.call DESC, c.n DESC LIMIT 1";
    let place = |row: &Row<'_>| {
        let call = CallId { answer: NodeId::from_bytes(id16(row, 3)?), number: number(row, 1)? };
        Ok((get::<i64>(row, 0)?, FileChangeId { call, number: number(row, 2)? }))
    };
    let last = db.one(sql, (tree.key.first(), tree.key.last()), place)?;
    let (key, last) = last.ok_or(StoreError::NotFound("change of a file"))?;
    let keep = |(number, change): (u32, &NewFileChange)| {
        keep_one(db, (key, now), (last.call.number, number, GIVING_BACK), change)?;
        Ok(FileChangeId { call: last.call, number })
    };
    (last.number.saturating_add(1)..).zip(changes).map(keep).collect()
}

/// As [`crate::Store::givings_back`].
pub(crate) fn givings_back(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    paths: usize,
) -> Result<Vec<GivingBack>, StoreError> {
    let tree = find(db, who, tree)?;
    let (first, last) = (tree.key.first(), tree.key.last());
    let sql = "SELECT at, taken_back, root, path, number, total FROM (
             SELECT at, taken_back, root, path, COUNT(*) OVER (PARTITION BY at, taken_back) AS total,
                 ROW_NUMBER() OVER (PARTITION BY at, taken_back ORDER BY node, call, n) AS number
             FROM file_changes WHERE node BETWEEN ?1 AND ?2 AND taken_back < ?3) AS files
         WHERE number <= ?4 ORDER BY at, taken_back, number";
    let mut all: Vec<GivingBack> = Vec::new();
    db.each(sql, params![first, last, MADE, limit_of(paths)], |row| {
        let (at, taken_back) = (Millis(get(row, 0)?), get::<i64>(row, 1)?);
        let redone = (taken_back != GIVING_BACK).then_some(Millis(-taken_back));
        if unsigned(row, 4)? == 1 {
            let (count, paths, answers) = (unsigned(row, 5)?, Vec::new(), Vec::new());
            all.push(GivingBack { at, redone, paths, count, answers });
        }
        let file = (path(row, 2)?, path(row, 3)?);
        if let Some(of) = all.last_mut() {
            of.paths.push(file);
        }
        Ok(true)
    })?;
    if all.is_empty() {
        return Ok(all);
    }
    let sql = "SELECT DISTINCT c.taken_back, n.id FROM file_changes c JOIN nodes n ON n.pk = c.node
         WHERE c.node BETWEEN ?1 AND ?2 AND c.taken_back > ?3";
    db.each(sql, params![first, last, LEFT], |row| {
        let (at, answer) = (Millis(get(row, 0)?), NodeId::from_bytes(id16(row, 1)?));
        let of_it = all.iter_mut().filter(|of| of.at == at && of.redone.is_none());
        of_it.for_each(|of| of.answers.push(answer));
        Ok(true)
    })?;
    Ok(all)
}

/// As [`crate::Store::redo_file_changes`].
pub(crate) fn redo(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    changes: &[FileChangeId],
) -> Result<(), StoreError> {
    let (tree, now) = (find_mut(db, who, tree)?, db.now()?);
    let taken = files_by_standing(db, tree.key, "taken_back > ?3", LEFT)?;
    for change in changes {
        let place = (key_of(db, tree, change.call)?, change.call.number, change.number);
        let back = file_of(db, place, Some(GIVING_BACK))?;
        let back = back.ok_or(StoreError::NotFound("giving-back of a file"))?;
        let of_it = taken.get(&back.path).into_iter().flatten().filter(|file| file.standing == back.at);
        of_it.map(|file| file.place).try_for_each(|file| set_standing(db, file, MADE))?;
        set_standing(db, place, -now.0)?;
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
    let call = CallId { answer: NodeId::from_bytes(id16(row, 0)?), number: number(row, 1)? };
    Ok(FileChange {
        id: FileChangeId { call, number: number(row, 2)? },
        root: path(row, 3)?,
        path: path(row, 4)?,
        before: state(&get::<String>(row, 5)?)?,
        after: state(&get::<String>(row, 6)?)?,
        at: Millis(get(row, 7)?),
        standing: match get(row, 8)? {
            MADE => ChangeStanding::Made,
            LEFT => ChangeStanding::Left,
            GIVING_BACK => ChangeStanding::GivingBack,
            ..MADE => ChangeStanding::Redone,
            _ => ChangeStanding::TakenBack,
        },
    })
}

pub(super) fn path(row: &Row<'_>, index: usize) -> Result<PathBuf, StoreError> {
    Ok(PathBuf::from(OsString::from_vec(get(row, index)?)))
}

fn number(row: &Row<'_>, index: usize) -> Result<u32, StoreError> {
    u32::try_from(unsigned(row, index)?)
        .map_err(|_| StoreError::Damaged("the number of a change of a file is none".to_owned()))
}

fn written(state: FileState) -> Result<String, StoreError> {
    serde_json::to_string(&state).map_err(|error| StoreError::Damaged(error.to_string()))
}

pub(super) fn state(text: &str) -> Result<FileState, StoreError> {
    let damaged = |error| StoreError::Damaged(format!("the state of a file is none: {error}"));
    serde_json::from_str(text).map_err(damaged)
}
