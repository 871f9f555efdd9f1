//! Forgetting in rows: what is to go is found in a snapshot, however long that takes, and removed in one short
//! transaction, which looks again only where something was written in between.

use std::collections::{BTreeMap, BTreeSet};

use loom::{
    Block, CellKey, CellValue, Digest, Draft, GenerationId, Millis, NodeId, Seq, Slot, TreeId, ViewName,
};

use super::bytes::unpack;
use super::trees::{TreeRef, find};
use super::{cell, commit, draft, events, node, operation, questions};
use crate::db::{Db, TreeKey, bytes_of, digest, get, id16};
use crate::engine::{Lock, NONE, params};
use crate::error::StoreError;
use crate::event::{Cursor, Happening};
use crate::forget::{Forget, Forgotten, Place, Target, operation};
use crate::job::JobId;
use crate::principal::{Principal, only_owner};

/// Rows read at a time when every one is looked at.
const PAGE: usize = 1024;

/// What is to be removed, as of one moment.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    target: Target,
    /// The newest event of that moment.
    cursor: Cursor,
    of_trees: BTreeMap<TreeKey, Vec<Removal>>,
    of_jobs: Vec<JobId>,
}

impl Found {
    pub(crate) fn places(&self) -> Vec<Place> {
        let removals = self.of_trees.values().flatten().filter_map(Removal::place);
        let places: BTreeSet<Place> =
            removals.chain(self.of_jobs.iter().map(|job| Place::Job { job: *job })).collect();
        places.into_iter().collect()
    }
}

/// One removal.
#[derive(Debug, Clone)]
enum Removal {
    Node {
        tree: TreeId,
        node: NodeId,
        key: i64,
    },
    /// With what is left of it, if anything.
    Draft {
        tree: TreeId,
        view: ViewName,
        slot: Slot,
        left: Option<Draft>,
    },
    Label {
        tree: TreeId,
        key: CellKey,
        left: CellValue,
        seq: Seq,
    },
    Operation {
        tree: TreeId,
        seq: Seq,
    },
    Injection {
        tree: TreeId,
        node: NodeId,
        number: i64,
        ordinal: i64,
    },
    Response(GenerationId),
    Manifest(Digest),
    Body(Digest),
}

impl Removal {
    fn place(&self) -> Option<Place> {
        Some(match self {
            Self::Node { tree, node, .. } => Place::Node { tree: *tree, node: *node },
            Self::Draft { tree, view, slot, .. } => {
                Place::Draft { tree: *tree, view: view.clone(), slot: *slot }
            }
            Self::Label { tree, .. } => Place::Label { tree: *tree },
            Self::Operation { tree, seq } => Place::Operation { tree: *tree, seq: *seq },
            Self::Injection { tree, node, .. } => Place::Shown { tree: *tree, node: *node },
            Self::Response(generation) => Place::Response { generation: *generation },
            Self::Manifest(digest) => Place::Manifest { digest: *digest },
            Self::Body(digest) => Place::Body { digest: *digest },
        })
    }
}

/// Finds what [`crate::Store::forget`] removes.
pub(crate) fn find_forgotten(db: &Db<'_>, who: &Principal, what: &Forget) -> Result<Found, StoreError> {
    only_owner(who, "forget")?;
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
        Forget::Text(text) => Target::text(text)?,
    };
    find_all(db, target)
}

/// Finds what [`crate::Store::purge`] removes.
pub(crate) fn find_purged(db: &Db<'_>, who: &Principal, id: TreeId) -> Result<Found, StoreError> {
    only_owner(who, "purge")?;
    let tree = find(db, who, id)?;
    let mut target = Target::new(Some(id));
    each_node(db, tree, |node, content| {
        target.add_node(id, node, content);
        Ok(())
    })?;
    find_all(db, target)
}

fn find_all(db: &Db<'_>, target: Target) -> Result<Found, StoreError> {
    let cursor = events::last(db)?;
    let mut of_trees = BTreeMap::new();
    for tree in all_trees(db)? {
        of_trees.insert(tree.key, Finder::new(db, &target, tree).find()?);
    }
    let of_jobs = jobs(db, &target)?;
    Ok(Found { target, cursor, of_trees, of_jobs })
}

/// Looks again where something was written since.
fn catch_up(db: &Db<'_>, found: &Found) -> Result<Found, StoreError> {
    let last = events::last(db)?;
    let mut now = Found { cursor: last, of_jobs: jobs(db, &found.target)?, ..found.clone() };
    let first = db.one("SELECT min(pk) FROM events", NONE, |row| get::<Option<i64>>(row, 0))?.flatten();
    let cursor = i64::try_from(found.cursor.0).unwrap_or(i64::MAX);
    // Events that are no longer kept may have been of any tree.
    let is_known = first.is_none_or(|first| first <= cursor + 1);
    let sql = "SELECT DISTINCT tree FROM events WHERE pk > ?1";
    let changed: BTreeSet<i64> = db.all(sql, [cursor], |row| get(row, 0))?.into_iter().collect();
    for tree in all_trees(db)? {
        if !is_known || changed.contains(&tree.key.0) {
            if found.target.tree == Some(tree.id) {
                each_node(db, tree, |node, content| {
                    now.target.add_node(tree.id, node, content);
                    Ok(())
                })?;
            }
            now.of_trees.insert(tree.key, Finder::new(db, &now.target, tree).find()?);
        }
    }
    Ok(now)
}

/// Removes what was found, and what came since.
pub(crate) fn remove(db: &Db<'_>, found: &Found, now: Millis) -> Result<Forgotten, StoreError> {
    db.engine().lock(Lock::Everything)?;
    let found = catch_up(db, found)?;
    let mut touched: BTreeSet<TreeId> = found.target.tree.into_iter().collect();
    if let Some(tree) = found.target.tree {
        let tree = find(db, &Principal::Owner, tree)?;
        db.run("UPDATE trees SET purged = 1 WHERE pk = ?1", [tree.key.0])?;
    }
    let mut blobs = BTreeSet::new();
    for (tree, removals) in &found.of_trees {
        for removal in removals {
            touched.extend(removal.place().and_then(|place| place.tree()));
            apply(db, *tree, &found.target, removal, &mut blobs)?;
        }
    }
    for job in &found.of_jobs {
        db.run("UPDATE jobs SET payload = '', result = '' WHERE pk = ?1", [job.0])?;
    }
    questions::forget(db, found.target.tree, |text| found.target.needles.occur_in(text.as_bytes()))?;
    for id in touched {
        let tree = find(db, &Principal::Owner, id)?;
        let head = commit::Head::read(db, tree)?;
        commit::append(db, tree, head, &operation(id, now), 0)?;
        events::append(db, tree.key, &Happening::Removed)?;
    }
    let mut unused = Vec::new();
    for blob in blobs {
        if db.one("SELECT 1 FROM blobs WHERE digest = ?1", [blob.0], |_| Ok(()))?.is_none() {
            unused.push(blob);
        }
    }
    Ok(Forgotten { places: found.places(), blobs: unused })
}

fn apply(
    db: &Db<'_>,
    tree: TreeKey,
    target: &Target,
    removal: &Removal,
    blobs: &mut BTreeSet<Digest>,
) -> Result<(), StoreError> {
    match removal {
        Removal::Node { key, .. } => {
            let sql = "SELECT content, flags FROM nodes WHERE pk = ?1";
            let content = db.one(sql, [*key], |row| node::read_content(row, 0, get(row, 1)?))?;
            let content = content.unwrap_or_default();
            db.engine().unindex(*key, &crate::search::searched_text(&content))?;
            blobs.extend(crate::blobs::shown_in(&content));
            db.run("DELETE FROM blobs WHERE node = ?1", [*key])?;
            node::purge(db, *key)
        }
        Removal::Draft { view, slot, left, .. } => draft::set(db, tree, view, *slot, left.as_ref()),
        Removal::Label { key: CellKey::Tag { tag, .. }, .. } => {
            // What is left of a tag is no tag.
            db.run("DELETE FROM cells WHERE tree = ?1 AND tag = ?2", (tree.0, tag)).map(drop)
        }
        Removal::Label { key, left, seq, .. } => cell::set(db, tree, key, left, *seq),
        Removal::Operation { tree: id, seq } => {
            let tree = TreeRef { key: tree, id: *id };
            let before = Seq(seq.0.saturating_sub(1));
            for mut record in operation::after(db, tree, before, 1)? {
                target.words_of(*id).remove_from_changes(&mut record.op.cells, &mut record.op.skipped);
                operation::rewrite(db, tree.key, &record)?;
            }
            Ok(())
        }
        Removal::Injection { number, ordinal, .. } => {
            let sql = "DELETE FROM injections WHERE tree = ?1 AND node = ?2 AND ordinal = ?3";
            db.run(sql, (tree.0, *number, *ordinal)).map(drop)
        }
        Removal::Response(generation) => {
            let sql = "UPDATE responses SET purged = 1, bytes = ?2, metadata = '' WHERE generation = ?1";
            db.run(sql, (generation.to_bytes(), Vec::new())).map(drop)
        }
        Removal::Manifest(digest) => {
            db.run("DELETE FROM citations WHERE manifest = ?1", [digest.0])?;
            db.run("DELETE FROM manifests WHERE digest = ?1", [digest.0]).map(drop)
        }
        Removal::Body(digest) => {
            db.run("DELETE FROM citations WHERE body = ?1", [digest.0])?;
            db.run("DELETE FROM bodies WHERE digest = ?1", [digest.0]).map(drop)
        }
    }
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
    let sql = "SELECT pk, id, content, flags FROM nodes
        WHERE pk > ?1 AND pk <= ?2 AND content IS NOT NULL ORDER BY pk LIMIT ?3";
    let mut after = tree.key.first();
    loop {
        let page = db.all(sql, (after, tree.key.last(), PAGE as i64), |row| {
            visit(NodeId::from_bytes(id16(row, 1)?), &node::read_content(row, 2, get(row, 3)?)?)?;
            get::<i64>(row, 0)
        })?;
        match page.last() {
            Some(last) => after = *last,
            None => return Ok(()),
        }
    }
}

/// Jobs hold texts of any tree.
fn jobs(db: &Db<'_>, target: &Target) -> Result<Vec<JobId>, StoreError> {
    let tree = target.tree.map(TreeId::to_bytes);
    let sql = "SELECT j.pk, j.payload, j.result, CASE WHEN t.id = ?1 THEN 1 ELSE 0 END FROM jobs j
        LEFT JOIN trees t ON t.pk = j.tree";
    let found = db.all(sql, [tree], |row| {
        let whole: bool = get(row, 3)?;
        let texts = [get::<String>(row, 1)?, get::<String>(row, 2)?];
        let holds = |text: &String| !text.is_empty() && (whole || target.needles.occur_in(text.as_bytes()));
        Ok(if texts.iter().any(holds) { Some(JobId(get(row, 0)?)) } else { None })
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// Looks for what is to go in one tree.
struct Finder<'a, 'c> {
    db: &'a Db<'c>,
    target: &'a Target,
    tree: TreeRef,
    /// Whether the whole tree goes.
    is_whole: bool,
    /// Generations whose responses go.
    made_by: BTreeSet<GenerationId>,
    nodes: BTreeSet<NodeId>,
    found: Vec<Removal>,
}

impl<'a, 'c> Finder<'a, 'c> {
    fn new(db: &'a Db<'c>, target: &'a Target, tree: TreeRef) -> Self {
        let is_whole = target.tree == Some(tree.id);
        let (made_by, nodes, found) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        Self { db, target, tree, is_whole, made_by, nodes, found }
    }

    fn find(mut self) -> Result<Vec<Removal>, StoreError> {
        self.nodes()?;
        self.drafts()?;
        self.labels()?;
        self.operations()?;
        self.injections()?;
        self.responses()?;
        self.sent()?;
        Ok(self.found)
    }

    fn nodes(&mut self) -> Result<(), StoreError> {
        let (id, target) = (self.tree.id, self.target);
        self.nodes = target.nodes.iter().filter(|(tree, _)| *tree == id).map(|(_, node)| *node).collect();
        if target.searches_nodes() {
            let mut holding = Vec::new();
            each_node(self.db, self.tree, |node, content| {
                if target.is_in(content) {
                    holding.push(node);
                }
                Ok(())
            })?;
            self.nodes.extend(holding);
        }
        let sql =
            "SELECT pk, generation, CASE WHEN content IS NULL THEN 0 ELSE 1 END FROM nodes WHERE id = ?1";
        for node in &self.nodes {
            let row = self.db.one(sql, [node.to_bytes()], |row| {
                let generation = crate::db::optional_id16(row, 1)?.map(GenerationId::from_bytes);
                Ok((get::<i64>(row, 0)?, generation, get::<bool>(row, 2)?))
            })?;
            let Some((key, generation, has_content)) = row else { continue };
            self.made_by.extend(generation);
            if has_content {
                self.found.push(Removal::Node { tree: id, node: *node, key });
            }
        }
        Ok(())
    }

    fn drafts(&mut self) -> Result<(), StoreError> {
        for (view, slot, draft) in draft::of_tree(self.db, self.tree.key)? {
            let gone = self.is_whole || draft.base.is_some_and(|base| self.nodes.contains(&base));
            let clean = self.target.words.without(&draft);
            if gone || clean.is_some() {
                let left = clean.filter(|_| !gone);
                self.found.push(Removal::Draft { tree: self.tree.id, view, slot, left });
            }
        }
        Ok(())
    }

    /// Words in the cells of a tree.
    fn labels(&mut self) -> Result<(), StoreError> {
        let words = self.target.words_of(self.tree.id);
        let sql = format!("{} WHERE c.tree = ?1 AND (c.text IS NOT NULL OR c.tag <> '')", cell::PAIRS);
        let key = self.tree.key;
        for (key, cell) in self.db.all(&sql, [key.0], |row| cell::read_pair(self.db, key, row))? {
            let (mut new_key, mut left) = (key.clone(), cell.value.clone());
            if words.remove_from_cell(&mut new_key, &mut [&mut left]) {
                self.found.push(Removal::Label { tree: self.tree.id, key, left, seq: cell.seq });
            }
        }
        Ok(())
    }

    /// Words in the records of a tree.
    fn operations(&mut self) -> Result<(), StoreError> {
        let words = self.target.words_of(self.tree.id);
        let mut after = Seq(0);
        loop {
            let page = operation::after(self.db, self.tree, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            for mut record in page {
                if words.remove_from_changes(&mut record.op.cells, &mut record.op.skipped) {
                    self.found.push(Removal::Operation { tree: self.tree.id, seq: record.seq });
                }
            }
        }
    }

    /// What was shown with nodes: with those that go, and what holds what is searched for.
    fn injections(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT n.id, i.node, i.ordinal, i.text FROM injections i
            JOIN nodes n ON n.pk = ?2 + i.node WHERE i.tree = ?1";
        let (id, target) = (self.tree.id, self.target);
        let found = self.db.all(sql, (self.tree.key.0, self.tree.key.first()), |row| {
            let node = NodeId::from_bytes(id16(row, 0)?);
            let gone = self.is_whole
                || self.nodes.contains(&node)
                || target.needles.occur_in(&unpack(bytes_of(row, 3)?)?);
            let (number, ordinal) = (get(row, 1)?, get(row, 2)?);
            Ok(gone.then_some(Removal::Injection { tree: id, node, number, ordinal }))
        })?;
        self.found.extend(found.into_iter().flatten());
        Ok(())
    }

    fn responses(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT r.generation, r.bytes, r.metadata FROM responses r
            JOIN generations g ON g.id = r.generation WHERE g.tree = ?1 AND r.purged = 0";
        let needles = &self.target.needles;
        let found = self.db.all(sql, [self.tree.key.0], |row| {
            let generation = GenerationId::from_bytes(id16(row, 0)?);
            let holds = self.is_whole
                || self.made_by.contains(&generation)
                || needles.occur_in(&unpack(bytes_of(row, 1)?)?)
                || needles.occur_in(get::<String>(row, 2)?.as_bytes());
            Ok(holds.then_some(Removal::Response(generation)))
        })?;
        self.found.extend(found.into_iter().flatten());
        Ok(())
    }

    /// Manifests and bodies of the tree: those that hold what is searched for, and those of a purged tree that no
    /// other tree sent.
    fn sent(&mut self) -> Result<(), StoreError> {
        let tree = self.tree.key.0;
        let of_tree = "SELECT DISTINCT manifest FROM generations WHERE tree = ?1";
        let manifests = format!(
            "SELECT m.digest, m.bytes, CASE WHEN EXISTS (
                SELECT 1 FROM generations g WHERE g.manifest = m.digest AND g.tree <> ?1) THEN 1 ELSE 0 END
             FROM manifests m WHERE m.digest IN ({of_tree})"
        );
        let bodies = format!(
            "SELECT b.digest, b.bytes, CASE WHEN EXISTS (
                SELECT 1 FROM citations c JOIN generations g ON g.manifest = c.manifest
                WHERE c.body = b.digest AND g.tree <> ?1) THEN 1 ELSE 0 END
             FROM bodies b WHERE b.digest IN (
                SELECT c.body FROM citations c WHERE c.manifest IN ({of_tree}))"
        );
        for (sql, removal) in
            [(manifests, Removal::Manifest as fn(Digest) -> Removal), (bodies, Removal::Body)]
        {
            let found = self.db.all(&sql, params![tree], |row| {
                let is_elsewhere: bool = get(row, 2)?;
                let gone = self.is_whole && !is_elsewhere
                    || self.target.needles.occur_in(&unpack(bytes_of(row, 1)?)?);
                Ok(if gone { Some(removal(digest(row, 0)?)) } else { None })
            })?;
            self.found.extend(found.into_iter().flatten());
        }
        Ok(())
    }
}
