//! Kept authors of nodes: lengths of stretches, and the nodes that brought them. They are derived: whatever is removed
//! of a tree takes them all along, and another version of them is as good as none.

use std::collections::{BTreeMap, BTreeSet};

use loom::attribution::VERSION;
use loom::reader::{Attribution, AuthorSpan};
use loom::{Author, Digest, NodeId};

use super::bytes::{In, Out};
use super::events;
use super::trees::{TreeRef, find_mut};
use crate::db::{Db, TreeKey, bytes_of, digest, get, id16, number_of};
use crate::engine::{NONE, params};
use crate::error::StoreError;
use crate::event::Cursor;
use crate::principal::Principal;

/// What is kept of nodes of a tree, of this program's version.
pub(crate) fn read(db: &Db<'_>, tree: TreeRef, nodes: &[NodeId]) -> Result<Vec<Attribution>, StoreError> {
    let sql =
        "SELECT n.id, a.node, a.version, a.spans, a.digest FROM nodes n JOIN attributions a ON a.node = n.pk
        WHERE n.id = ?1 AND n.pk BETWEEN ?2 AND ?3 AND a.version = ?4";
    let (key, version) = (tree.key, version());
    let sets = nodes.iter().map(|id| params![id.to_bytes(), key.first(), key.last(), version]);
    let found = db.all_of(sql, sets, |row| {
        let id = NodeId::from_bytes(id16(row, 0)?);
        let bytes = bytes_of(row, 3)?;
        if digest(row, 4)? != digest_of(get(row, 1)?, get(row, 2)?, bytes) {
            return Err(damaged(id));
        }
        Ok((id, stretches(bytes, id)?))
    })?;
    let numbers: BTreeSet<i64> =
        found.iter().flat_map(|(_, stretches)| stretches).map(|(_, number)| *number).collect();
    let authors = authors(db, tree.key, &numbers)?;
    let whole = found.into_iter().map(|(node, stretches)| {
        let mut at = 0;
        let spans = stretches.into_iter().map(|(length, number)| {
            let (id, author) = authors.get(&number).ok_or_else(|| damaged(node))?;
            let (from, kind) = (at, author.kind);
            at += length;
            Ok(AuthorSpan { from, to: at, node: *id, author: author.id.clone(), kind })
        });
        Ok(Attribution { node, spans: spans.collect::<Result<_, StoreError>>()? })
    });
    whole.collect()
}

/// As [`crate::Store::keep_attributions`].
pub(crate) fn keep(
    db: &Db<'_>,
    who: &Principal,
    tree: loom::TreeId,
    found: &[Attribution],
    told: Cursor,
) -> Result<(), StoreError> {
    let tree = find_mut(db, who, tree)?;
    // Of what was read before something was removed nothing is kept.
    if events::removed_since(db, Some(tree.key), told)? {
        return Ok(());
    }
    let named: BTreeSet<NodeId> =
        found.iter().flat_map(|one| one.spans.iter().map(|span| span.node).chain([one.node])).collect();
    let sets = named.iter().map(|id| params![id.to_bytes()]);
    let keys: BTreeMap<NodeId, i64> = db
        .all_of("SELECT id, pk FROM nodes WHERE id = ?1", sets, |row| {
            Ok((NodeId::from_bytes(id16(row, 0)?), get(row, 1)?))
        })?
        .into_iter()
        .filter(|(_, key)| TreeKey::of(*key) == tree.key)
        .collect();
    let key = |id: &NodeId| keys.get(id).copied().ok_or(StoreError::NotFound("node"));
    let mut rows = Vec::with_capacity(found.len());
    for one in found {
        let (mut out, node) = (Out::default(), key(&one.node)?);
        for span in &one.spans {
            out.number((span.to - span.from) as u64);
            out.number(number_of(key(&span.node)?).unsigned_abs());
        }
        let digest = digest_of(node, version(), &out.0);
        rows.push(params![node, version(), out.0, digest.0]);
    }
    let sql = "INSERT INTO attributions (node, version, spans, digest) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (node) DO UPDATE SET version = excluded.version, spans = excluded.spans, digest = excluded.digest";
    db.all_of(sql, rows, |_| Ok(())).map(drop)
}

/// Drops what is kept of a tree.
pub(crate) fn drop_all(db: &Db<'_>, tree: TreeKey) -> Result<(), StoreError> {
    let sql = "DELETE FROM attributions WHERE node BETWEEN ?1 AND ?2";
    db.run(sql, (tree.first(), tree.last())).map(drop)
}

/// Drops what other versions of the tables told, and what is damaged.
pub(crate) fn repair(db: &Db<'_>) -> Result<(), StoreError> {
    db.run("DELETE FROM attributions WHERE version <> ?1", [version()])?;
    for key in faulty(db)? {
        db.run("DELETE FROM attributions WHERE node = ?1", [key])?;
    }
    Ok(())
}

/// Keys of nodes whose kept authors are not as they were written.
pub(crate) fn faulty(db: &Db<'_>) -> Result<Vec<i64>, StoreError> {
    let sql = "SELECT a.node, a.version, a.spans, a.digest, n.pk FROM attributions a
        LEFT JOIN nodes n ON n.pk = a.node ORDER BY a.node";
    let mut faulty = Vec::new();
    db.each(sql, NONE, |row| {
        let (key, spans) = (get(row, 0)?, bytes_of(row, 2)?);
        let is_whole = digest(row, 3)
            .is_ok_and(|kept| get(row, 1).is_ok_and(|told| kept == digest_of(key, told, spans)));
        if !is_whole || get::<Option<i64>>(row, 4)?.is_none() {
            faulty.push(key);
        }
        Ok(true)
    })?;
    Ok(faulty)
}

/// The version as a column.
const fn version() -> i64 {
    VERSION.cast_signed()
}

/// Binds the columns of a row to one another.
fn digest_of(node: i64, version: i64, spans: &[u8]) -> Digest {
    Digest::of(&[&node.to_be_bytes(), &version.to_be_bytes(), spans].concat())
}

fn damaged(node: NodeId) -> StoreError {
    StoreError::Damaged(format!("the kept authors of node {node} are not as they were written"))
}

/// Lengths in bytes, and the numbers of the nodes that brought them.
fn stretches(bytes: &[u8], node: NodeId) -> Result<Vec<(usize, i64)>, StoreError> {
    let (mut read, mut found) = (In::new(bytes, "the kept authors of a node"), Vec::new());
    while !read.is_empty() {
        let (length, number) = (read.number()?, read.number()?);
        found.push((usize::try_from(length).map_err(|_| damaged(node))?, number as i64));
    }
    Ok(found)
}

/// The ids and authors of nodes, by their numbers.
fn authors(
    db: &Db<'_>,
    tree: TreeKey,
    numbers: &BTreeSet<i64>,
) -> Result<BTreeMap<i64, (NodeId, Author)>, StoreError> {
    let sets = numbers.iter().map(|number| params![tree.node(*number)]);
    let found = db.all_of("SELECT pk, id, author FROM nodes WHERE pk = ?1", sets, |row| {
        let author = db.author(tree, get(row, 2)?)?;
        Ok((number_of(get(row, 0)?), (NodeId::from_bytes(id16(row, 1)?), author)))
    })?;
    Ok(found.into_iter().collect())
}
