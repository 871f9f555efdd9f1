//! Forgetting in rows, within one transaction; scrubbing the file's pages follows it.

use std::collections::BTreeSet;

use loom::{Block, Digest, GenerationId, Millis, NodeId, OpRecord, Seq, TreeId};

use super::bytes::unpack;
use super::trees::{TreeRef, find};
use super::{cell, commit, draft, events, node, operation};
use crate::db::{Db, TreeKey, bytes_of, digest, get, id16};
use crate::engine::{Lock, NONE};
use crate::error::StoreError;
use crate::event::Happening;
use crate::forget::{Forget, Forgotten, Place, Target, operation};
use crate::job::JobId;
use crate::principal::{Principal, only_owner};

/// Rows read at a time when every one is looked at.
const PAGE: usize = 1024;

/// As [`crate::Store::forget`], without scrubbing.
pub(crate) fn forget(
    db: &Db<'_>,
    who: &Principal,
    what: &Forget,
    now: Millis,
) -> Result<Forgotten, StoreError> {
    only_owner(who, "forget")?;
    db.engine().lock(Lock::Everything)?;
    let target = match what {
        Forget::Node { tree, node } => {
            let found = find(db, who, *tree)?;
            let rows = super::reader::StoredTree::new(db, found, who);
            let row = loom::Rows::node(&rows, *node).map_err(StoreError::from_row_error)?;
            let row = row.ok_or(StoreError::NotFound("node"))?;
            let mut target = Target::new(None);
            target.add_node(*tree, *node, &row.node.content);
            target
        }
        Forget::Text(text) => {
            let mut target = Target::text(text)?;
            for tree in all_trees(db)? {
                let mut found = Vec::new();
                each_node(db, tree, |node, content| {
                    if target.is_in(content) {
                        found.push((tree.id, node));
                    }
                    Ok(())
                })?;
                target.nodes.extend(found);
            }
            target
        }
    };
    Removal::new(db, &target).remove(now)
}

/// As [`crate::Store::purge`], without scrubbing.
pub(crate) fn purge(db: &Db<'_>, who: &Principal, id: TreeId, now: Millis) -> Result<Forgotten, StoreError> {
    only_owner(who, "purge")?;
    db.engine().lock(Lock::Everything)?;
    let tree = find(db, who, id)?;
    let mut target = Target::new(Some(id));
    each_node(db, tree, |node, content| {
        target.add_node(id, node, content);
        Ok(())
    })?;
    db.run("UPDATE trees SET purged = 1 WHERE pk = ?1", [tree.key.0])?;
    Removal::new(db, &target).remove(now)
}

fn all_trees(db: &Db<'_>) -> Result<Vec<TreeRef>, StoreError> {
    db.all("SELECT pk, id FROM trees ORDER BY pk", NONE, |row| {
        Ok(TreeRef { key: TreeKey(get(row, 0)?), id: TreeId::from_bytes(id16(row, 1)?) })
    })
}

/// Calls `visit` with the content of every node of a tree.
fn each_node(
    db: &Db<'_>,
    tree: TreeRef,
    mut visit: impl FnMut(NodeId, &[Block]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let rows = super::reader::StoredTree::new(db, tree, &Principal::Owner);
    let mut after = None;
    loop {
        let page = loom::Rows::nodes_in_order(&rows, after, PAGE).map_err(StoreError::from_row_error)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.seq, last.place));
        for row in &page {
            visit(row.node.id, &row.node.content)?;
        }
    }
}

/// One removal under way.
struct Removal<'a, 'c> {
    db: &'a Db<'c>,
    target: &'a Target,
    places: BTreeSet<Place>,
    blobs: BTreeSet<Digest>,
    /// Generations whose responses go.
    made_by: BTreeSet<GenerationId>,
}

impl<'a, 'c> Removal<'a, 'c> {
    const fn new(db: &'a Db<'c>, target: &'a Target) -> Self {
        Self { db, target, places: BTreeSet::new(), blobs: BTreeSet::new(), made_by: BTreeSet::new() }
    }

    fn remove(mut self, now: Millis) -> Result<Forgotten, StoreError> {
        for (tree, node) in &self.target.nodes {
            self.node(*tree, *node)?;
        }
        for tree in all_trees(self.db)? {
            self.drafts(tree)?;
            self.labels(tree)?;
            self.operations(tree)?;
            if self.target.tree == Some(tree.id) {
                let sql = "SELECT id FROM generations WHERE tree = ?1";
                let of_tree =
                    self.db.all(sql, [tree.key.0], |row| Ok(GenerationId::from_bytes(id16(row, 0)?)))?;
                self.made_by.extend(of_tree);
            }
        }
        self.shown()?;
        self.responses()?;
        self.sent()?;
        self.jobs()?;
        let touched: BTreeSet<TreeId> =
            self.places.iter().filter_map(Place::tree).chain(self.target.tree).collect();
        for id in touched {
            let tree = find(self.db, &Principal::Owner, id)?;
            let head = commit::Head::read(self.db, tree)?;
            commit::append(self.db, tree, head, &operation(id, now), 0)?;
            events::append(self.db, tree.key, &Happening::Removed)?;
        }
        let mut blobs = Vec::new();
        for blob in self.blobs {
            if self.db.one("SELECT 1 FROM blobs WHERE digest = ?1", [blob.0], |_| Ok(()))?.is_none() {
                blobs.push(blob);
            }
        }
        Ok(Forgotten { places: self.places.into_iter().collect(), blobs })
    }

    fn node(&mut self, tree: TreeId, id: NodeId) -> Result<(), StoreError> {
        let tree_ref = find(self.db, &Principal::Owner, tree)?;
        let rows = super::reader::StoredTree::new(self.db, tree_ref, &Principal::Owner);
        let row = loom::Rows::node(&rows, id).map_err(StoreError::from_row_error)?;
        let row = row.ok_or(StoreError::NotFound("node"))?;
        let key = self.db.one("SELECT pk FROM nodes WHERE id = ?1", [id.to_bytes()], |row| get(row, 0))?;
        let Some(key) = key else { return Ok(()) };
        self.made_by.extend(row.node.generation);
        if row.node.content.is_empty() {
            return Ok(());
        }
        self.db.engine().unindex(key, &crate::search::searched_text(&row.node.content))?;
        self.blobs.extend(crate::blobs::shown_in(&row.node.content));
        self.db.run("DELETE FROM blobs WHERE node = ?1", [key])?;
        node::purge(self.db, key)?;
        self.places.insert(Place::Node { tree, node: id });
        Ok(())
    }

    fn drafts(&mut self, tree: TreeRef) -> Result<(), StoreError> {
        for (view, slot, draft) in draft::of_tree(self.db, tree.key)? {
            let of_node = draft.base.is_some_and(|base| self.target.nodes.contains(&(tree.id, base)));
            let gone = of_node || self.target.tree == Some(tree.id);
            let clean = self.target.words.without(&draft);
            if gone || clean.is_some() {
                draft::set(self.db, tree.key, &view, slot, clean.as_ref().filter(|_| !gone))?;
                self.places.insert(Place::Draft { tree: tree.id, view, slot });
            }
        }
        Ok(())
    }

    /// Words in the cells of a tree.
    fn labels(&mut self, tree: TreeRef) -> Result<(), StoreError> {
        let words = self.target.words_of(tree.id);
        let sql = format!("{} WHERE c.tree = ?1 AND (c.text IS NOT NULL OR c.tag <> '')", cell::PAIRS);
        for (key, cell) in self.db.all(&sql, [tree.key.0], |row| cell::read_pair(self.db, tree.key, row))? {
            let (mut new_key, mut value) = (key.clone(), cell.value.clone());
            if !words.remove_from_cell(&mut new_key, &mut [&mut value]) {
                continue;
            }
            self.places.insert(Place::Label { tree: tree.id });
            if let loom::CellKey::Tag { tag, .. } = &key {
                // What is left of a tag is no tag.
                self.db.run("DELETE FROM cells WHERE tree = ?1 AND tag = ?2", (tree.key.0, tag))?;
            } else {
                cell::set(self.db, tree.key, &key, &value, cell.seq)?;
            }
        }
        Ok(())
    }

    /// Words in the records of a tree.
    fn operations(&mut self, tree: TreeRef) -> Result<(), StoreError> {
        let words = self.target.words_of(tree.id);
        let mut after = Seq(0);
        loop {
            let page: Vec<OpRecord> = operation::after(self.db, tree, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            for mut record in page {
                if words.remove_from_changes(&mut record.op.cells, &mut record.op.skipped) {
                    operation::rewrite(self.db, tree.key, &record)?;
                    self.places.insert(Place::Operation { tree: tree.id, seq: record.seq });
                }
            }
        }
    }

    /// What was shown with nodes: with those that go, and what holds what is searched for.
    fn shown(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT t.id, n.id, i.tree, i.node, i.ordinal, i.text FROM injections i
            JOIN trees t ON t.pk = i.tree JOIN nodes n ON n.pk = (t.pk << 32) + i.node";
        let target = self.target;
        let found = self.db.all(sql, NONE, |row| {
            let tree = TreeId::from_bytes(id16(row, 0)?);
            let node = NodeId::from_bytes(id16(row, 1)?);
            let gone = target.takes_shown(tree, node, &unpack(bytes_of(row, 5)?)?);
            let key: (i64, i64, i64) = (get(row, 2)?, get(row, 3)?, get(row, 4)?);
            Ok(gone.then_some((tree, node, key)))
        })?;
        for (tree, node, key) in found.into_iter().flatten() {
            self.db.run("DELETE FROM injections WHERE tree = ?1 AND node = ?2 AND ordinal = ?3", key)?;
            self.places.insert(Place::Shown { tree, node });
        }
        Ok(())
    }

    fn responses(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT r.generation, r.bytes, r.metadata FROM responses r WHERE r.purged = 0";
        let needles = &self.target.needles;
        let found = self.db.all(sql, NONE, |row| {
            let generation = GenerationId::from_bytes(id16(row, 0)?);
            let holds = self.made_by.contains(&generation)
                || needles.occur_in(&unpack(bytes_of(row, 1)?)?)
                || needles.occur_in(get::<String>(row, 2)?.as_bytes());
            Ok(holds.then_some(generation))
        })?;
        for generation in found.into_iter().flatten() {
            let sql = "UPDATE responses SET purged = 1, bytes = ?2, metadata = '' WHERE generation = ?1";
            self.db.run(sql, (generation.to_bytes(), Vec::new()))?;
            self.places.insert(Place::Response { generation });
        }
        Ok(())
    }

    /// Manifests and bodies: those that hold what is searched for, and those of the purged tree alone.
    fn sent(&mut self) -> Result<(), StoreError> {
        let needles = &self.target.needles;
        let tree = self.target.tree.map(TreeId::to_bytes);
        let sql = "SELECT m.digest, m.bytes, CASE WHEN EXISTS (
                SELECT 1 FROM generations g JOIN trees t ON t.pk = g.tree
                WHERE g.manifest = m.digest AND (t.id <> ?1 OR ?1 IS NULL)) THEN 1 ELSE 0 END
            FROM manifests m";
        let manifests = self.db.all(sql, [tree], |row| {
            let gone = !get::<bool>(row, 2)? || needles.occur_in(&unpack(bytes_of(row, 1)?)?);
            Ok(if gone { Some(digest(row, 0)?) } else { None })
        })?;
        for digest in manifests.into_iter().flatten() {
            self.db.run("DELETE FROM citations WHERE manifest = ?1", [digest.0])?;
            self.db.run("DELETE FROM manifests WHERE digest = ?1", [digest.0])?;
            self.places.insert(Place::Manifest { digest });
        }
        let sql = "SELECT b.digest, b.bytes, CASE WHEN EXISTS (
                SELECT 1 FROM citations c WHERE c.body = b.digest) THEN 1 ELSE 0 END
            FROM bodies b";
        let bodies = self.db.all(sql, NONE, |row| {
            let gone = !get::<bool>(row, 2)? || needles.occur_in(&unpack(bytes_of(row, 1)?)?);
            Ok(if gone { Some(digest(row, 0)?) } else { None })
        })?;
        for digest in bodies.into_iter().flatten() {
            self.db.run("DELETE FROM citations WHERE body = ?1", [digest.0])?;
            self.db.run("DELETE FROM bodies WHERE digest = ?1", [digest.0])?;
            self.places.insert(Place::Body { digest });
        }
        Ok(())
    }

    fn jobs(&mut self) -> Result<(), StoreError> {
        let tree = self.target.tree.map(TreeId::to_bytes);
        let sql = "SELECT j.pk, j.payload, j.result, CASE WHEN t.id = ?1 THEN 1 ELSE 0 END FROM jobs j
            LEFT JOIN trees t ON t.pk = j.tree";
        let found = self.db.all(sql, [tree], |row| {
            let whole: bool = get(row, 3)?;
            let texts = [get::<String>(row, 1)?, get::<String>(row, 2)?];
            let holds =
                |text: &String| !text.is_empty() && (whole || self.target.needles.occur_in(text.as_bytes()));
            Ok(if texts.iter().any(holds) { Some(get::<i64>(row, 0)?) } else { None })
        })?;
        for pk in found.into_iter().flatten() {
            self.db.run("UPDATE jobs SET payload = '', result = '' WHERE pk = ?1", [pk])?;
            self.places.insert(Place::Job { job: JobId(pk) });
        }
        Ok(())
    }
}
