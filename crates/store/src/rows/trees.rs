//! Trees as rows, who may see them, and where their views stand in their timelines.

use crate::engine::{Lock, NONE, Row, Value, params};
use loom::seal::Seal;
use loom::{Mode, PositionId, Seq, Timeline, TreeId, TreeRow, ViewName, short_id};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codes::Code;
use crate::db::{Db, TreeKey, get, id16, unsigned};
use crate::error::StoreError;
use crate::import_tree::{Import, check_seal};
use crate::listing::TreeEntry;
use crate::principal::{Principal, Scope};

/// A tree that was looked up for someone who may see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeRef {
    pub(crate) key: TreeKey,
    pub(crate) id: TreeId,
}

/// Whether a principal sees a tree, as SQL over `trees t` with one parameter.
pub(crate) fn seen(who: &Principal) -> (&'static str, Value<'static>) {
    match who {
        Principal::Owner | Principal::Token { scope: Scope::Full, .. } => ("?1 = 0", Value::Integer(0)),
        Principal::Token { scope: Scope::ChatSession(own), .. } => ("t.session = ?1", own.clone().into()),
        Principal::Token { scope: Scope::ReadTree { tree, .. }, .. } => {
            ("t.id = ?1", tree.to_bytes().to_vec().into())
        }
    }
}

/// Every tree, in the order of their numbers.
pub(crate) fn all(db: &Db<'_>) -> Result<Vec<TreeRef>, StoreError> {
    db.all("SELECT pk, id FROM trees ORDER BY pk", NONE, |row| {
        Ok(TreeRef { key: TreeKey(get(row, 0)?), id: TreeId::from_bytes(id16(row, 1)?) })
    })
}

/// A tree the principal sees.
pub(crate) fn find(db: &Db<'_>, who: &Principal, id: TreeId) -> Result<TreeRef, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!("SELECT t.pk FROM trees t WHERE t.id = ?2 AND {seen}");
    let pk = db.one(&sql, (param, id.to_bytes()), |row| get(row, 0))?;
    pk.map(|pk| TreeRef { key: TreeKey(pk), id }).ok_or(StoreError::NotFound("tree"))
}

/// A tree the principal may change.
pub(crate) fn find_mut(db: &Db<'_>, who: &Principal, id: TreeId) -> Result<TreeRef, StoreError> {
    let tree = find(db, who, id)?;
    if !who.may_write() {
        return Err(StoreError::Denied("write"));
    }
    db.engine().lock(Lock::Tree(tree.key.0))?;
    Ok(tree)
}

pub(crate) fn insert(db: &Db<'_>, row: &TreeRow, session: Option<&str>) -> Result<TreeRef, StoreError> {
    if session.is_some() {
        db.engine().lock(Lock::Sessions)?;
    }
    let id = row.id.to_bytes();
    if db.one("SELECT 1 FROM trees WHERE id = ?1", [id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Exists("tree"));
    }
    let mut short = String::new();
    for candidate in short_id::candidates(id) {
        short = candidate;
        if db.one("SELECT 1 FROM trees WHERE short = ?1", [&short], |_| Ok(()))?.is_none() {
            break;
        }
    }
    let key = db.insert(
        "INSERT INTO trees (id, short, mode, root, created, origin, session, updated, tables)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?5, ?8) RETURNING pk",
        params![
            id,
            short,
            row.mode.code(),
            row.root.to_bytes(),
            row.created_at.0,
            row.origin.as_ref().map(to_json).transpose()?,
            session,
            text::grapheme::TABLES,
        ],
    )?;
    Ok(TreeRef { key: TreeKey(key), id: row.id })
}

/// As [`crate::Store::add_seal`].
pub(crate) fn add_seal(db: &Db<'_>, who: &Principal, id: TreeId, seal: &Seal) -> Result<(), StoreError> {
    let tree = find_mut(db, who, id)?;
    let last = db.one("SELECT seq FROM trees WHERE pk = ?1", [tree.key.0], |row| unsigned(row, 0))?;
    check_seal(id, Seq(last.unwrap_or_default()), seal)?;
    keep_seal(db, tree.key, seal)
}

/// Stores a seal behind those there are.
pub(crate) fn keep_seal(db: &Db<'_>, tree: TreeKey, seal: &Seal) -> Result<(), StoreError> {
    db.run(
        "INSERT INTO seals (tree, n, seal)
         VALUES (?1, 1 + (SELECT coalesce(max(n), 0) FROM seals WHERE tree = ?1), ?2)",
        (tree.0, to_json(seal)?),
    )?;
    Ok(())
}

/// Stores where operations of a tree were imported from, behind what there is.
pub(crate) fn keep_import(db: &Db<'_>, tree: TreeKey, import: &Import) -> Result<(), StoreError> {
    db.run(
        "INSERT INTO imports (tree, n, file, at, first, last)
         VALUES (?1, 1 + (SELECT coalesce(max(n), 0) FROM imports WHERE tree = ?1), ?2, ?3, ?4, ?5)",
        (tree.0, import.note.file.0, import.note.at.0, import.from.0 as i64, import.to.0 as i64),
    )?;
    Ok(())
}

/// The row of a tree.
pub(crate) fn read(db: &Db<'_>, tree: TreeKey) -> Result<TreeRow, StoreError> {
    let found =
        db.one("SELECT id, mode, root, created, origin FROM trees WHERE pk = ?1", [tree.0], |row| {
            let origin: Option<String> = get(row, 4)?;
            Ok(TreeRow {
                id: TreeId::from_bytes(id16(row, 0)?),
                mode: Mode::from_code(get(row, 1)?)?,
                root: PositionId::from_bytes(id16(row, 2)?),
                created_at: loom::Millis(get(row, 3)?),
                origin: origin.map(|origin| json(&origin)).transpose()?,
            })
        })?;
    found.ok_or(StoreError::NotFound("tree"))
}

/// The columns of [`read_entry`], of `trees t`.
pub(crate) const ENTRY: &str =
    "t.id, t.short, t.mode, t.title, t.archived, t.purged, t.session, t.nodes, t.seq, t.created, t.updated";

/// Reads the columns of [`ENTRY`].
pub(crate) fn read_entry(row: &Row<'_>) -> Result<TreeEntry, StoreError> {
    Ok(TreeEntry {
        id: TreeId::from_bytes(id16(row, 0)?),
        short_id: get(row, 1)?,
        mode: Mode::from_code(get(row, 2)?)?,
        title: get(row, 3)?,
        archived: get(row, 4)?,
        purged: get(row, 5)?,
        session: get(row, 6)?,
        nodes: unsigned(row, 7)?,
        seq: Seq(unsigned(row, 8)?),
        created_at: loom::Millis(get(row, 9)?),
        updated_at: loom::Millis(get(row, 10)?),
    })
}

/// The line of a tree in lists.
pub(crate) fn entry(db: &Db<'_>, tree: TreeKey) -> Result<Option<TreeEntry>, StoreError> {
    db.one(&format!("SELECT {ENTRY} FROM trees t WHERE t.pk = ?1"), [tree.0], read_entry)
}

/// Where a view stands in its timeline.
pub(crate) fn timeline(db: &Db<'_>, tree: TreeKey, view: &ViewName) -> Result<Timeline, StoreError> {
    let Some(view) = db.name_number(tree, view.as_str())? else { return Ok(Timeline::default()) };
    let sql = "SELECT undo, redo, depth, tick FROM timelines WHERE tree = ?1 AND view = ?2";
    let found = db.one(sql, (tree.0, view), |row| {
        let seq = |index| Ok::<_, StoreError>(get::<Option<i64>>(row, index)?.map(|seq| Seq(seq as u64)));
        Ok(Timeline { undo: seq(0)?, redo: seq(1)?, depth: get(row, 2)?, tick: unsigned(row, 3)? })
    })?;
    Ok(found.unwrap_or_default())
}

/// Moves a view's place in its timeline.
pub(crate) fn set_timeline(
    db: &Db<'_>,
    tree: TreeKey,
    view: &ViewName,
    to: Timeline,
) -> Result<(), StoreError> {
    let view = db.intern(tree, view.as_str())?;
    db.run(
        "INSERT INTO timelines (tree, view, undo, redo, depth, tick) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (tree, view) DO UPDATE SET undo = excluded.undo, redo = excluded.redo,
            depth = excluded.depth, tick = excluded.tick",
        params![
            tree.0,
            view,
            to.undo.map(|seq| seq.0 as i64),
            to.redo.map(|seq| seq.0 as i64),
            to.depth,
            to.tick as i64,
        ],
    )?;
    Ok(())
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Malformed(error.to_string()))
}

/// A value out of JSON.
pub(crate) fn json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(format!("a row cannot be read: {error}")))
}
