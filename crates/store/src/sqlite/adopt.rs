//! Taking in a tree as it is, within one transaction.

use std::collections::{BTreeSet, HashMap};

use loom::{Digest, NodeId, PositionId, Seq, TreeId, Trust};
use rusqlite::params;

use super::bytes::pack;
use super::codes::Code;
use super::db::{Db, digest, get, unsigned};
use super::tree_row::{TreeRef, find_mut, to_json};
use super::{apply, cell_row, events, node_row, op_row, position_row, sent, shown, tree_row};
use crate::adopt::{Adopted, AdoptedGeneration, Import, ImportNote, check_imported};
use crate::error::StoreError;
use crate::event::Happening;
use crate::generation::GenerationState;
use crate::principal::{Principal, only_owner};

/// As [`crate::Store::adopt`].
pub(crate) fn adopt(db: &Db<'_>, who: &Principal, adopted: &Adopted) -> Result<(), StoreError> {
    only_owner(who, "import")?;
    adopted.check()?;
    let tree = tree_row::insert(db, &adopted.tree, None)?;
    // Before the nodes, which name them.
    adopt_sent(db, tree, adopted)?;
    let firsts = nodes(db, tree, adopted)?;
    for shown in &adopted.injections {
        shown::keep(db, tree, shown)?;
    }
    // Behind all nodes: a record may name any of them.
    for record in &adopted.operations {
        let (first, count) = firsts.get(&record.seq).copied().unwrap_or_default();
        op_row::insert(db, tree.pk, record, first, count)?;
    }
    for (key, (value, seq)) in adopted.cells() {
        cell_row::set(db, tree.pk, key, value, seq)?;
    }
    for seal in &adopted.seals {
        db.run("INSERT INTO seals (tree, seal) VALUES (?1, ?2)", (tree.pk, to_json(seal)?))?;
    }
    let last = adopted.operations.last().ok_or_else(|| StoreError::Malformed("an empty log".to_owned()))?;
    db.run(
        "UPDATE trees SET seq = ?2, head = ?3, nodes = ?4, updated = ?5 WHERE pk = ?1",
        params![tree.pk, last.seq.0 as i64, last.hash.0, adopted.nodes.len() as i64, last.op.at.0],
    )?;
    remember(db, tree, &Import { note: adopted.imported, from: Seq(1), to: last.seq })?;
    let (seq, kind, view) = (last.seq, last.op.kind, last.op.view.clone());
    events::append(db, tree.pk, &Happening::Operation { seq, kind, view })
}

/// Inserts the nodes with their positions. Returns the number of each operation's first node, or what that would
/// be, and how many it made.
fn nodes(db: &Db<'_>, tree: TreeRef, adopted: &Adopted) -> Result<HashMap<Seq, (i64, usize)>, StoreError> {
    let positions: HashMap<PositionId, _> =
        adopted.positions.iter().map(|position| (position.id, position)).collect();
    let last: Option<i64> = db.one("SELECT max(pk) FROM nodes", [], |row| get(row, 0))?.flatten();
    let mut next = last.unwrap_or(0) + 1;
    let mut rows = adopted.nodes.iter().peekable();
    let mut firsts = HashMap::new();
    for record in &adopted.operations {
        let first = next;
        while let Some(row) = rows.next_if(|row| row.seq == record.seq) {
            let node = &row.node;
            if db.one("SELECT 1 FROM nodes WHERE id = ?1", [node.id.to_bytes()], |_| Ok(()))?.is_some() {
                return Err(StoreError::Exists("node"));
            }
            let pk = node_row::insert(db, tree.pk, node, row.seq, row.place, &row.short_id)?;
            if pk != next {
                return Err(StoreError::Damaged("nodes are not numbered in their order".to_owned()));
            }
            if row.purged {
                node_row::purge(db, pk)?;
            }
            if node.is_original()
                && let Some(position) = positions.get(&node.position)
            {
                position_row::insert(db, tree.pk, pk, position)?;
            }
            apply::index(db, pk, node)?;
            next += 1;
        }
        firsts.insert(record.seq, (first, (next - first) as usize));
    }
    Ok(firsts)
}

fn adopt_sent(db: &Db<'_>, tree: TreeRef, adopted: &Adopted) -> Result<(), StoreError> {
    let came: BTreeSet<Digest> = adopted.manifests.iter().map(|sent| sent.manifest.digest).collect();
    for generation in &adopted.generations {
        let manifest = generation.row.manifest;
        // A file that names a manifest without bringing it gets no part of the one another tree sent.
        let is_here = || {
            db.one("SELECT 1 FROM manifests WHERE digest = ?1", [manifest.0], |_| Ok(()))
                .map(|row| row.is_some())
        };
        if came.contains(&manifest) || !is_here()? {
            adopt_generation(db, tree, generation)?;
        }
    }
    let mut bodies = HashMap::new();
    for body in &adopted.bodies {
        bodies.insert(body.digest, sent::keep(db, "bodies", body.digest, &body.bytes)?);
    }
    for sent in &adopted.manifests {
        let manifest = sent::keep(db, "manifests", sent.manifest.digest, &sent.manifest.bytes)?;
        for body in adopted.bodies_of(sent) {
            if let Some(body) = bodies.get(&body) {
                sent::cite(db, manifest, *body)?;
            }
        }
    }
    Ok(())
}

/// A generation as history: ended, owned by nobody.
fn adopt_generation(db: &Db<'_>, tree: TreeRef, generation: &AdoptedGeneration) -> Result<(), StoreError> {
    let row = &generation.row;
    let id = row.id.to_bytes();
    if db.one("SELECT 1 FROM generations WHERE id = ?1", [id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Exists("generation"));
    }
    let done = sent::state_code(GenerationState::Done);
    db.run(
        "INSERT INTO generations (id, tree, manifest, state, owner, fence, row) VALUES (?1, ?2, ?3, ?4, '', 0, ?5)",
        params![id, tree.pk, row.manifest.0, done, to_json(row)?],
    )?;
    let pk = db.inserted();
    if let Some(response) = &generation.response {
        let dictionary = sent::dictionary(&response.metadata);
        let bytes = if response.purged { Vec::new() } else { pack(&response.bytes, dictionary)? };
        db.run(
            "INSERT INTO responses (generation, digest, purged, metadata, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
            (pk, response.digest.0, response.purged, &response.metadata, bytes),
        )?;
    }
    Ok(())
}

/// Remembers an import beside its tree.
pub(crate) fn remember(db: &Db<'_>, tree: TreeRef, import: &Import) -> Result<(), StoreError> {
    db.run(
        "INSERT INTO imports (tree, file, at, first, last) VALUES (?1, ?2, ?3, ?4, ?5)",
        (tree.pk, import.note.file.0, import.note.at.0, import.from.0 as i64, import.to.0 as i64),
    )?;
    Ok(())
}

/// As [`crate::Store::imports`].
pub(crate) fn imports(db: &Db<'_>, tree: TreeRef) -> Result<Vec<Import>, StoreError> {
    let sql = "SELECT file, at, first, last FROM imports WHERE tree = ?1 ORDER BY pk";
    db.all(sql, [tree.pk], |row| {
        let note = ImportNote { file: digest(row, 0)?, at: loom::Millis(get(row, 1)?) };
        Ok(Import { note, from: Seq(unsigned(row, 2)?), to: Seq(unsigned(row, 3)?) })
    })
}

/// As [`crate::Store::set_trust`].
pub(crate) fn set_trust(
    db: &Db<'_>,
    who: &Principal,
    id: TreeId,
    nodes: &[(NodeId, Trust)],
) -> Result<u64, StoreError> {
    only_owner(who, "trust")?;
    let tree = find_mut(db, who, id)?;
    let imports = imports(db, tree)?;
    let mut changed = 0;
    for (node, trust) in nodes {
        let sql = "SELECT pk, seq FROM nodes WHERE id = ?1 AND tree = ?2";
        let found =
            db.one(sql, (node.to_bytes(), tree.pk), |row| Ok((get::<i64>(row, 0)?, unsigned(row, 1)?)))?;
        let (pk, seq) = found.ok_or(StoreError::NotFound("node"))?;
        check_imported(&imports, *node, Seq(seq))?;
        changed += db.run(
            "UPDATE nodes SET flags = (flags & 63) | (?2 << 6) WHERE pk = ?1 AND flags >> 6 = ?3 AND ?2 <> ?3",
            (pk, trust.code(), Trust::Outside.code()),
        )?;
        // What was shown with it is nobody's word.
        db.run(
            "UPDATE injections SET trust = ?3 WHERE tree = ?1 AND node = ?2 AND trust = ?4",
            (tree.pk, pk, (*trust).min(Trust::Workspace).code(), Trust::Outside.code()),
        )?;
    }
    Ok(changed as u64)
}
