//! Entries of session ledgers as rows. A forgotten one leaves a row without its text: what it corrected stays struck.

use std::collections::BTreeSet;

use loom::{Millis, NodeId, TreeId, Trust};

use super::codes::Code as _;
use super::leases::check_guards;
use super::reader::limit_of;
use super::trees;
use crate::db::{Db, TreeKey, get, id16, optional_id16};
use crate::engine::{Lock, NONE, Row, params};
use crate::error::StoreError;
use crate::forget::Target;
use crate::outcome::{NewOutcome, OUTCOME_CHARS, Outcome, OutcomeError, OutcomeId, OutcomeKind};
use crate::principal::Principal;
use crate::session::SessionId;

/// As [`crate::Store::note_outcome`].
pub(crate) fn append(db: &Db<'_>, who: &Principal, new: &NewOutcome) -> Result<OutcomeId, StoreError> {
    if new.text.trim().is_empty() {
        return Err(OutcomeError::Empty.into());
    }
    let chars = new.text.chars().count();
    if chars > OUTCOME_CHARS {
        return Err(OutcomeError::TooLong { chars }.into());
    }
    // Numbers are given in the order of commits.
    db.engine().lock(Lock::Sessions)?;
    check_seen(db, who, &new.session)?;
    if !who.may_write() {
        return Err(StoreError::Denied("write"));
    }
    check_guards(db, who, &new.guards)?;
    let tree = trees::find(db, who, new.tree)?.key;
    let of_session = "SELECT 1 FROM trees WHERE pk = ?1 AND session = ?2 AND purged = 0";
    if db.one(of_session, (tree.0, &new.session.0), |_| Ok(()))?.is_none() {
        return Err(StoreError::NotFound("tree of the session"));
    }
    let node = match new.node {
        Some(node) => Some(db.node_number(tree, node)?.ok_or(StoreError::NotFound("node"))?),
        None => None,
    };
    if let Some(corrected) = new.corrects {
        check_corrected(db, new, corrected)?;
    }
    let pk = db.insert(
        "INSERT INTO outcomes (session, tree, node, kind, trust, text, corrects, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING pk",
        params![
            &new.session.0,
            tree.0,
            node,
            new.kind.code(),
            new.trust.code(),
            &new.text,
            new.corrects.map(|corrected| corrected.0),
            db.now()?.0,
        ],
    )?;
    Ok(OutcomeId(pk))
}

fn check_corrected(db: &Db<'_>, new: &NewOutcome, corrected: OutcomeId) -> Result<(), StoreError> {
    let sql = "SELECT trust FROM outcomes WHERE pk = ?1 AND session = ?2 AND text <> ''";
    let trust = db.one(sql, (corrected.0, &new.session.0), |row| Trust::from_code(get(row, 0)?))?;
    match trust {
        None => Err(OutcomeError::Unknown(corrected).into()),
        Some(trust) if new.trust == Trust::Outside && trust != Trust::Outside => {
            Err(OutcomeError::Outranked(corrected).into())
        }
        Some(_) => Ok(()),
    }
}

/// Refuses whoever does not see the session, and a session that is not there.
fn check_seen(db: &Db<'_>, who: &Principal, session: &SessionId) -> Result<(), StoreError> {
    let is_seen = who.sees_all() || who.session() == Some(session.0.as_str());
    let there = db.one("SELECT 1 FROM sessions WHERE id = ?1", [&session.0], |_| Ok(()))?;
    there.filter(|()| is_seen).ok_or(StoreError::NotFound("session"))
}

/// As [`crate::Store::outcomes`].
pub(crate) fn list(
    db: &Db<'_>,
    who: &Principal,
    session: &SessionId,
    after: Option<OutcomeId>,
    limit: usize,
) -> Result<Vec<Outcome>, StoreError> {
    check_seen(db, who, session)?;
    let sql = "SELECT o.pk, t.id, o.node, n.id, o.kind, o.trust, o.text, o.corrects, o.at,
            CASE WHEN EXISTS (SELECT 1 FROM outcomes c WHERE c.corrects = o.pk) THEN 1 ELSE 0 END
        FROM outcomes o LEFT JOIN trees t ON t.pk = o.tree LEFT JOIN nodes n ON n.pk = (o.tree << 32) + o.node
        WHERE o.session = ?1 AND o.text <> '' AND o.pk > ?2 ORDER BY o.pk LIMIT ?3";
    let after = after.map_or(i64::MIN, |after| after.0);
    db.all(sql, (&session.0, after, limit_of(limit)), read)
}

fn read(row: &Row<'_>) -> Result<Outcome, StoreError> {
    let id = OutcomeId(get(row, 0)?);
    let (number, node) = (get::<Option<i64>>(row, 2)?, optional_id16(row, 3)?);
    if number.is_some() && node.is_none() {
        return Err(StoreError::Damaged(format!("note {id} names a node that is missing")));
    }
    Ok(Outcome {
        id,
        tree: TreeId::from_bytes(id16(row, 1)?),
        node: node.map(NodeId::from_bytes),
        kind: OutcomeKind::from_code(get(row, 4)?)?,
        trust: Trust::from_code(get(row, 5)?)?,
        text: get(row, 6)?,
        corrects: get::<Option<i64>>(row, 7)?.map(OutcomeId),
        at: Millis(get(row, 8)?),
        is_struck: get(row, 9)?,
    })
}

/// Entries that are to be forgotten: that hold what is searched for, or were said in a node or tree that goes.
pub(super) fn going(
    db: &Db<'_>,
    target: &Target,
    nodes: &BTreeSet<(TreeId, NodeId)>,
) -> Result<Vec<(SessionId, OutcomeId)>, StoreError> {
    let sql = "SELECT o.pk, o.session, t.id, n.id, o.text FROM outcomes o LEFT JOIN trees t ON t.pk = o.tree
        LEFT JOIN nodes n ON n.pk = (o.tree << 32) + o.node WHERE o.text <> ''";
    let mut found = Vec::new();
    db.scan(sql, NONE, |row| {
        let tree = optional_id16(row, 2)?.map(TreeId::from_bytes);
        let node = optional_id16(row, 3)?.map(NodeId::from_bytes);
        let goes = tree.is_some() && tree == target.tree
            || tree.zip(node).is_some_and(|said_in| nodes.contains(&said_in))
            || target.is_in_noted(&get::<String>(row, 4)?);
        if goes {
            found.push((SessionId(get(row, 1)?), OutcomeId(get(row, 0)?)));
        }
        Ok(true)
    })?;
    Ok(found)
}

/// Takes the text of an entry away.
pub(super) fn forget(db: &Db<'_>, id: OutcomeId) -> Result<(), StoreError> {
    db.run("UPDATE outcomes SET text = '', node = NULL WHERE pk = ?1", [id.0]).map(drop)
}

/// [`forget`] of all that were noted in a tree.
pub(super) fn forget_tree(db: &Db<'_>, tree: TreeKey) -> Result<(), StoreError> {
    db.run("UPDATE outcomes SET text = '', node = NULL WHERE tree = ?1 AND text <> ''", [tree.0]).map(drop)
}

/// Removes the rows of a session that goes.
pub(super) fn drop_all(db: &Db<'_>, session: &SessionId) -> Result<(), StoreError> {
    db.run("DELETE FROM outcomes WHERE session = ?1", [&session.0]).map(drop)
}
