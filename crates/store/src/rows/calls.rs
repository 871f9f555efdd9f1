//! Calls of tools that were started, as rows.

use loom::{NodeId, TreeId};

use super::leases;
use super::trees::{TreeRef, find_mut};
use crate::call::{CallEnd, CallId, NewCall, RunningCall};
use crate::db::{Db, TreeKey, get, id16, signed, unsigned};
use crate::engine::{Row, params};
use crate::error::StoreError;
use crate::fence::{Claim, Fence, LeaseOwner};
use crate::principal::Principal;

/// As [`crate::Store::start_call`].
pub(crate) fn start(db: &Db<'_>, who: &Principal, tree: TreeId, new: &NewCall) -> Result<(), StoreError> {
    let tree = find_mut(db, who, tree)?;
    leases::check_guards(db, who, &new.guards)?;
    let key = key_of(db, tree, new.id)?;
    let sql =
        "INSERT INTO calls (node, n, state, owner, fence) VALUES (?1, ?2, 0, ?3, ?4) ON CONFLICT DO NOTHING";
    let claim = &new.claim;
    match db.run(sql, params![key, new.id.number, &claim.owner.0, signed(claim.fence.0)?])? {
        0 => Err(StoreError::Exists("call")),
        _ => Ok(()),
    }
}

/// Stores that a call has its result, if it still is its reporter's.
pub(crate) fn end(db: &Db<'_>, tree: TreeRef, end: &CallEnd) -> Result<(), StoreError> {
    let key = key_of(db, tree, end.id)?;
    let sql =
        "UPDATE calls SET state = 1 WHERE node = ?1 AND n = ?2 AND state = 0 AND owner = ?3 AND fence = ?4";
    let claim = &end.claim;
    match db.run(sql, params![key, end.id.number, &claim.owner.0, signed(claim.fence.0)?])? {
        0 => Err(fenced(end.id)),
        _ => Ok(()),
    }
}

/// As [`crate::Store::running_calls`].
pub(crate) fn running(
    db: &Db<'_>,
    who: &Principal,
    after: Option<CallId>,
    limit: usize,
) -> Result<Vec<RunningCall>, StoreError> {
    let (seen, param) = super::trees::seen(who);
    let place = match after {
        Some(after) => {
            db.one("SELECT pk FROM nodes WHERE id = ?1", [after.answer.to_bytes()], |row| get::<i64>(row, 0))?
        }
        None => None,
    };
    let sql = format!(
        "SELECT t.id, n.id, c.n, c.owner, c.fence FROM calls c JOIN nodes n ON n.pk = c.node
             JOIN trees t ON t.pk = c.node >> 32
         WHERE {seen} AND c.state = 0 AND ((c.node, c.n) > (?2, ?3) OR ?2 IS NULL) ORDER BY c.node, c.n LIMIT ?4"
    );
    let limit = super::reader::limit_of(limit);
    db.all(&sql, (param, place, after.map_or(0, |after| after.number), limit), read)
}

fn read(row: &Row<'_>) -> Result<RunningCall, StoreError> {
    Ok(RunningCall {
        tree: TreeId::from_bytes(id16(row, 0)?),
        id: CallId { answer: NodeId::from_bytes(id16(row, 1)?), number: number(row, 2)? },
        claim: Claim { owner: LeaseOwner(get(row, 3)?), fence: Fence(unsigned(row, 4)?) },
    })
}

fn number(row: &Row<'_>, index: usize) -> Result<u32, StoreError> {
    u32::try_from(unsigned(row, index)?)
        .map_err(|_| StoreError::Damaged("the number of a call is none".to_owned()))
}

/// As [`crate::Store::take_over_call`].
pub(crate) fn take_over(
    db: &Db<'_>,
    who: &Principal,
    call: &RunningCall,
    to: &LeaseOwner,
) -> Result<Claim, StoreError> {
    let tree = find_mut(db, who, call.tree)?;
    let key = key_of(db, tree, call.id)?;
    let (from, fence) = (&call.claim, call.claim.fence.next());
    let sql = "UPDATE calls SET owner = ?3, fence = ?4
        WHERE node = ?1 AND n = ?2 AND state = 0 AND owner = ?5 AND fence = ?6";
    let params = params![key, call.id.number, &to.0, signed(fence.0)?, &from.owner.0, signed(from.fence.0)?];
    match db.run(sql, params)? {
        0 => Err(fenced(call.id)),
        _ => Ok(Claim { owner: to.clone(), fence }),
    }
}

/// As [`loom::TreeReader::started_calls`].
pub(crate) fn started(db: &Db<'_>, tree: TreeRef, answer: NodeId) -> Result<Vec<u32>, StoreError> {
    let Some(node) = db.node_number(tree.key, answer)? else { return Ok(Vec::new()) };
    db.all("SELECT n FROM calls WHERE node = ?1 ORDER BY n", [tree.key.node(node)], |row| number(row, 0))
}

/// Drops those of a tree, so that what still runs is refused.
pub(crate) fn drop_all(db: &Db<'_>, tree: TreeKey) -> Result<(), StoreError> {
    db.run("DELETE FROM calls WHERE node BETWEEN ?1 AND ?2", (tree.first(), tree.last())).map(drop)
}

/// Refuses what is reported of a call that does not run, or is not its reporter's.
pub(super) fn is_running(db: &Db<'_>, tree: TreeRef, call: CallId, claim: &Claim) -> Result<(), StoreError> {
    let key = key_of(db, tree, call)?;
    let sql = "SELECT 1 FROM calls WHERE node = ?1 AND n = ?2 AND state = 0 AND owner = ?3 AND fence = ?4";
    let params = params![key, call.number, &claim.owner.0, signed(claim.fence.0)?];
    db.one(sql, params, |_| Ok(()))?.ok_or_else(|| fenced(call))
}

pub(super) fn key_of(db: &Db<'_>, tree: TreeRef, call: CallId) -> Result<i64, StoreError> {
    let number = db.node_number(tree.key, call.answer)?.ok_or(StoreError::NotFound("node"))?;
    Ok(tree.key.node(number))
}

fn fenced(call: CallId) -> StoreError {
    StoreError::Fenced { what: format!("call {} of {}", call.number + 1, call.answer) }
}
