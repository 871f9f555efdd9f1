//! Lanes: which stretches a path is made of, so that what was chosen on it is found without walking it.
//!
//! One child of a position goes on with its lane, every other begins one, named by its number. A path is some lanes
//! down to where it leaves each; in a lane one position stands at a depth. A choice names the lane and the depth of its
//! position, and those on a path are asked for lane by lane ([`super::cell::choices`]), whatever was chosen elsewhere.
//! A position that was first to be continued takes the lane of a sibling that nobody continued, so that who goes on
//! from the third of three answers, turn by turn, stays in one lane. Lanes are derived, no hash binds them.

use crate::db::{Db, TreeKey, get, number_of};
use crate::error::StoreError;

/// The lane that a new child of a position goes on with; none if it begins its own.
pub(super) fn below(db: &Db<'_>, tree: TreeKey, parent: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT lane, coalesce(parent, 0), depth FROM positions WHERE pk = ?1";
    let found = db.one(sql, [tree.node(parent)], |row| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?)))?;
    let (lane, up, depth): (i64, i64, i64) =
        found.ok_or_else(|| StoreError::Damaged(format!("position {parent} is missing")))?;
    if continued(db, tree, parent, lane)?.is_some() {
        return Ok(None);
    }
    if lane != parent || up == 0 {
        return Ok(Some(lane));
    }
    // The first child of what began a lane: the lane above is free if nobody went on from its end.
    let above =
        db.one("SELECT lane FROM positions WHERE pk = ?1", [tree.node(up)], |row| get::<i64>(row, 0))?;
    let above = above.ok_or_else(|| StoreError::Damaged(format!("position {up} is missing")))?;
    match continued(db, tree, up, above)? {
        Some(sibling) if continued(db, tree, sibling, above)?.is_none() => {
            change(db, tree, sibling, (above, depth), sibling)?;
            change(db, tree, parent, (lane, depth), above)?;
            Ok(Some(above))
        }
        _ => Ok(Some(lane)),
    }
}

/// The child of a position that goes on with a lane.
fn continued(db: &Db<'_>, tree: TreeKey, parent: i64, lane: i64) -> Result<Option<i64>, StoreError> {
    let next = "SELECT pk FROM positions WHERE pk = ?1 AND parent = ?2 AND lane = ?3";
    let next = db.one(next, (tree.node(parent + 1), parent, lane), |row| get::<i64>(row, 0))?;
    let found = match next {
        Some(next) => Some(next),
        None => {
            let sql = "SELECT pk FROM positions WHERE parent = ?1 AND parent <> (pk & 4294967295) - 1
                AND pk > ?2 AND pk < ?3 AND lane = ?4 LIMIT 1";
            db.one(sql, (parent, tree.first(), tree.last(), lane), |row| get::<i64>(row, 0))?
        }
    };
    Ok(found.map(number_of))
}

/// Gives a position another lane, with what was chosen there.
fn change(
    db: &Db<'_>,
    tree: TreeKey,
    position: i64,
    (from, depth): (i64, i64),
    to: i64,
) -> Result<(), StoreError> {
    db.run("UPDATE positions SET lane = ?2 WHERE pk = ?1", (tree.node(position), to))?;
    let sql = "UPDATE cells SET lane = ?4 WHERE tree = ?1 AND lane = ?2 AND depth = ?3";
    db.run(sql, (tree.0, from, depth, to))?;
    Ok(())
}
