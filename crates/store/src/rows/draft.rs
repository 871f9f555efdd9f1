//! A draft as a row, and back.

use crate::engine::{Row, params};
use loom::{Draft, Slot, ViewName};

use super::cell::view_name;
use super::trees::{json, to_json};
use crate::db::{Db, TreeKey, get, signed, unsigned};
use crate::error::StoreError;

const COLUMNS: &str = "slot, base, revision, text, base_text, splices, undone";

/// The number of a slot: 0 is the working buffer, else the position of the pending edit. None: no such position.
fn slot_number(db: &Db<'_>, tree: TreeKey, slot: Slot) -> Result<Option<i64>, StoreError> {
    match slot {
        Slot::Buffer => Ok(Some(0)),
        Slot::Edit(position) => db.node_number(tree, position.original()),
    }
}

fn names(db: &Db<'_>, tree: TreeKey, view: &ViewName, slot: Slot) -> Result<Option<(i64, i64)>, StoreError> {
    Ok(db.name_number(tree, view.as_str())?.zip(slot_number(db, tree, slot)?))
}

pub(crate) fn one(
    db: &Db<'_>,
    tree: TreeKey,
    view: &ViewName,
    slot: Slot,
) -> Result<Option<Draft>, StoreError> {
    let Some((view, slot)) = names(db, tree, view, slot)? else { return Ok(None) };
    let sql = format!("SELECT {COLUMNS} FROM drafts WHERE tree = ?1 AND view = ?2 AND slot = ?3");
    db.one(&sql, (tree.0, view, slot), |row| read(db, tree, row).map(|(_, draft)| draft))
}

/// The drafts of a view.
pub(crate) fn all(db: &Db<'_>, tree: TreeKey, view: &ViewName) -> Result<Vec<(Slot, Draft)>, StoreError> {
    let Some(view) = db.name_number(tree, view.as_str())? else { return Ok(Vec::new()) };
    let sql = format!("SELECT {COLUMNS} FROM drafts WHERE tree = ?1 AND view = ?2");
    let mut found = db.all(&sql, (tree.0, view), |row| read(db, tree, row))?;
    found.sort_by_key(|(slot, _)| *slot);
    Ok(found)
}

/// The drafts of every view of a tree, each with its columns: of one that cannot be read they are what is left.
pub(crate) fn each_of_tree(
    db: &Db<'_>,
    tree: TreeKey,
    mut visit: impl FnMut(Result<(ViewName, Slot, Draft), StoreError>, &Row<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = format!("SELECT {COLUMNS}, view FROM drafts WHERE tree = ?1");
    db.scan(&sql, [tree.0], |row| {
        let draft = read(db, tree, row)
            .and_then(|(slot, draft)| Ok((view_name(db, tree, get(row, 7)?)?, slot, draft)));
        visit(draft, row).map(|()| true)
    })
}

fn read(db: &Db<'_>, tree: TreeKey, row: &Row<'_>) -> Result<(Slot, Draft), StoreError> {
    let slot = match get::<i64>(row, 0)? {
        0 => Slot::Buffer,
        number => Slot::Edit(db.node_id(tree, number)?.as_position()),
    };
    let base = match get::<Option<i64>>(row, 1)? {
        None => None,
        Some(number) => Some(db.node_id(tree, number)?),
    };
    let draft = Draft {
        base,
        revision: unsigned(row, 2)?,
        text: get(row, 3)?,
        base_text: get(row, 4)?,
        splices: json(&get::<String>(row, 5)?)?,
        undone: json(&get::<String>(row, 6)?)?,
    };
    Ok((slot, draft))
}

/// Writes or removes a draft.
pub(crate) fn set(
    db: &Db<'_>,
    tree: TreeKey,
    view: &ViewName,
    slot: Slot,
    draft: Option<&Draft>,
) -> Result<(), StoreError> {
    let Some(draft) = draft else {
        if let Some((view, slot)) = names(db, tree, view, slot)? {
            db.run("DELETE FROM drafts WHERE tree = ?1 AND view = ?2 AND slot = ?3", (tree.0, view, slot))?;
        }
        return Ok(());
    };
    db.intern(tree, view.as_str())?;
    let unknown = || StoreError::NotFound("position");
    let (view, slot) = names(db, tree, view, slot)?.ok_or_else(unknown)?;
    let base = match draft.base {
        None => None,
        Some(base) => Some(db.node_number(tree, base)?.ok_or_else(unknown)?),
    };
    db.run(
        "INSERT INTO drafts (tree, view, slot, base, revision, text, base_text, splices, undone)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (tree, view, slot) DO UPDATE SET base = excluded.base, revision = excluded.revision,
            text = excluded.text, base_text = excluded.base_text, splices = excluded.splices,
            undone = excluded.undone",
        params![
            tree.0,
            view,
            slot,
            base,
            signed(draft.revision)?,
            &draft.text,
            &draft.base_text,
            to_json(&draft.splices)?,
            to_json(&draft.undone)?,
        ],
    )?;
    Ok(())
}
