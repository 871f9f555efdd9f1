//! Taking in a tree as it is, within one transaction.

use std::collections::{BTreeSet, HashMap};

use crate::engine::params;
use loom::{Digest, NodeId, PositionId, Seq, TreeId, Trust};

use super::bytes::pack;
use super::generations::Sent;
use super::node::NodePlace;
use super::trees::{TreeRef, find_mut, to_json};
use super::{cell, commit, events, generations, injections, node, operation, trees};
use crate::apply::ImportNote;
use crate::db::{Db, digest, get, number_of, unsigned};
use crate::error::StoreError;
use crate::event::EventKind;
use crate::generation::GenerationState;
use crate::import_tree::{Import, ImportedGeneration, ImportedTree, check_imported};
use crate::principal::{Principal, only_owner};

/// As [`crate::Store::import_tree`].
pub(crate) fn import_tree(db: &Db<'_>, who: &Principal, imported: &ImportedTree) -> Result<(), StoreError> {
    only_owner(who, "import")?;
    let tree = trees::insert(db, &imported.tree, None)?;
    // Before the nodes, which name them.
    import_sent(db, tree, imported)?;
    let firsts = nodes(db, tree, imported)?;
    for shown in &imported.injections {
        injections::keep(db, tree, shown)?;
    }
    // Behind all nodes: a record may name any of them.
    for record in &imported.operations {
        let (first, count) = firsts.get(&record.seq).copied().unwrap_or_default();
        operation::insert(db, tree.key, record, first, count)?;
    }
    for (key, (value, seq)) in imported.cells() {
        cell::set(db, tree.key, key, value, seq)?;
    }
    for seal in &imported.seals {
        trees::keep_seal(db, tree.key, seal)?;
    }
    let last = imported.operations.last().ok_or_else(|| StoreError::Malformed("an empty log".to_owned()))?;
    db.run(
        "UPDATE trees SET seq = ?2, head = ?3, nodes = ?4, updated = ?5 WHERE pk = ?1",
        params![tree.key.0, last.seq.0 as i64, last.hash.0, imported.nodes.len() as i64, last.op.at.0],
    )?;
    trees::keep_import(db, tree.key, &Import { note: imported.imported, from: Seq(1), to: last.seq })?;
    let (seq, kind, view) = (last.seq, last.op.kind, last.op.view.clone());
    events::append(db, tree.key, &EventKind::Operation { seq, kind, view })
}

/// Inserts the nodes with their positions. Returns the number of each operation's first node, or what that would
/// be, and how many it made.
fn nodes(
    db: &Db<'_>,
    tree: TreeRef,
    imported: &ImportedTree,
) -> Result<HashMap<Seq, (i64, usize)>, StoreError> {
    let positions: HashMap<PositionId, _> =
        imported.positions.iter().map(|position| (position.id, position)).collect();
    let mut next = 1;
    let mut rows = imported.nodes.iter().peekable();
    let mut firsts = HashMap::new();
    for record in &imported.operations {
        let first = next;
        while let Some(row) = rows.next_if(|row| row.seq == record.seq) {
            let node = &row.node;
            let (seq, place, short) = (row.seq, row.place, row.short_id.as_str());
            let place = NodePlace { number: next, seq, place, short, purged: row.purged };
            let position = positions.get(&node.position).filter(|_| node.is_original());
            commit::insert_node(db, tree, node, place, position.copied())?;
            next += 1;
        }
        firsts.insert(record.seq, (first, (next - first) as usize));
    }
    Ok(firsts)
}

fn import_sent(db: &Db<'_>, tree: TreeRef, imported: &ImportedTree) -> Result<(), StoreError> {
    let came: BTreeSet<Digest> = imported.manifests.iter().map(|sent| sent.manifest.digest).collect();
    for generation in &imported.generations {
        let manifest = generation.row.manifest;
        // A file that names a manifest without bringing it gets no part of the one another tree sent.
        if came.contains(&manifest) || !generations::is_kept(db, Sent::Manifest, manifest)? {
            import_generation(db, tree, generation)?;
        }
    }
    for body in &imported.bodies {
        generations::keep(db, Sent::Body, body.digest, &body.bytes)?;
    }
    let bodies: BTreeSet<Digest> = imported.bodies.iter().map(|body| body.digest).collect();
    for sent in &imported.manifests {
        generations::keep(db, Sent::Manifest, sent.manifest.digest, &sent.manifest.bytes)?;
        for body in sent.bodies.iter().filter(|body| bodies.contains(body)) {
            generations::cite(db, sent.manifest.digest, *body)?;
        }
    }
    Ok(())
}

/// A generation as history: ended, owned by nobody.
fn import_generation(db: &Db<'_>, tree: TreeRef, generation: &ImportedGeneration) -> Result<(), StoreError> {
    let row = &generation.row;
    let id = row.id.to_bytes();
    if db.one("SELECT 1 FROM generations WHERE id = ?1", [id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Exists("generation"));
    }
    let done = generations::state_code(GenerationState::Done);
    db.run(
        "INSERT INTO generations (id, tree, manifest, state, owner, fence, row) VALUES (?1, ?2, ?3, ?4, '', 0, ?5)",
        params![id, tree.key.0, row.manifest.0, done, to_json(row)?],
    )?;
    if let Some(response) = &generation.response {
        let dictionary = generations::dictionary(&response.metadata);
        let bytes = if response.purged { Vec::new() } else { pack(&response.bytes, dictionary)? };
        db.run(
            "INSERT INTO responses (generation, digest, purged, metadata, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
            (id, response.digest.0, response.purged, &response.metadata, bytes),
        )?;
    }
    Ok(())
}

/// As [`crate::Store::imports`].
pub(crate) fn imports(db: &Db<'_>, tree: TreeRef) -> Result<Vec<Import>, StoreError> {
    let sql = "SELECT file, at, first, last FROM imports WHERE tree = ?1 ORDER BY n";
    db.all(sql, [tree.key.0], |row| {
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
    for (id, trust) in nodes {
        let sql = "SELECT pk, seq FROM nodes WHERE id = ?1 AND pk BETWEEN ?2 AND ?3";
        let keys = (id.to_bytes(), tree.key.first(), tree.key.last());
        let found = db.one(sql, keys, |row| Ok((get::<i64>(row, 0)?, unsigned(row, 1)?)))?;
        let (key, seq) = found.ok_or(StoreError::NotFound("node"))?;
        check_imported(&imports, *id, Seq(seq))?;
        changed += node::set_trust(db, key, Trust::Outside, *trust)?;
        // What was shown with it is nobody's word.
        injections::set_trust(db, tree.key, number_of(key), Trust::Outside, (*trust).min(Trust::Workspace))?;
    }
    Ok(changed)
}
