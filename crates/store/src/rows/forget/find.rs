//! Where something stands that is to be forgotten.

mod nodes;
mod outside;
mod sent;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loom::content::plain_text;
use loom::{Block, GenerationId, NodeId, NodeRow, Seq, TreeId};
use text::title::title as title_of;

use self::nodes::{NodeToRemove, nodes_to_remove};
use super::super::bytes::unpack;
use super::super::reader::StoredTree;
use super::super::trees::{self, TreeRef};
use super::super::{cell, draft, events, operation};
pub(super) use outside::{find as outside_trees, names};

use super::Removal;
use crate::db::{Db, TreeKey, bytes_of, get, id16};
use crate::engine::{Row, ValueRef};
use crate::error::StoreError;
use crate::event::{Cursor, EventKind};
use crate::forget::{ForgottenPlace, QuotedAs, Target};
use crate::principal::Principal;

/// Events read at once; more of them, and trees are looked through as a whole.
const EVENTS: usize = 4096;

/// What is to be removed, as of one moment.
pub(super) struct Found {
    /// The newest event of that moment.
    pub(super) cursor: Cursor,
    /// In the order in which it is removed.
    pub(super) removals: Vec<(TreeKey, Removal)>,
    /// Places that could not be looked at.
    pub(super) damaged: Vec<ForgottenPlace>,
}

/// How much of a tree is looked through.
#[derive(Debug, Clone)]
struct Part {
    /// Operations after this one, with their nodes.
    after: Seq,
    /// Generations that are looked through; none for all.
    generations: Option<BTreeSet<GenerationId>>,
}

impl Part {
    const fn whole() -> Self {
        Self { after: Seq(0), generations: None }
    }
}

pub(super) fn everywhere(
    db: &Db<'_>,
    target: &mut Target,
    nodes: &mut BTreeSet<(TreeId, NodeId)>,
) -> Result<Found, StoreError> {
    let parts: Vec<_> = trees::all(db)?.into_iter().map(|tree| (tree, Part::whole())).collect();
    let mut found = within(db, target, nodes, &parts)?;
    // First, while there still is what has somebody ask again where this is ended before.
    let bodies = sent::uncited_bodies(db)?.into_iter();
    found.removals.splice(0..0, bodies.map(|body| (TreeKey(0), Removal::UncitedBody(body))));
    Ok(found)
}

/// Looks where something was written since an event.
pub(super) fn since(
    db: &Db<'_>,
    target: &mut Target,
    nodes: &mut BTreeSet<(TreeId, NodeId)>,
    cursor: Cursor,
) -> Result<Found, StoreError> {
    let written = events::after(db, &Principal::Owner, cursor, EVENTS)?;
    // Events that are no longer kept may have been of any tree.
    if written.missed || written.events.len() >= EVENTS {
        return everywhere(db, target, nodes);
    }
    let mut parts: BTreeMap<TreeId, Part> = BTreeMap::new();
    for event in written.events {
        let none = || Part { after: Seq(u64::MAX), generations: Some(BTreeSet::new()) };
        let part = parts.entry(event.tree).or_insert_with(none);
        match event.what {
            EventKind::Operation { seq, .. } => part.after = part.after.min(Seq(seq.0.saturating_sub(1))),
            EventKind::Generation { id } => {
                part.generations.get_or_insert_default().insert(id);
            }
            EventKind::Draft { .. } | EventKind::Question { .. } | EventKind::Removed => {}
        }
    }
    let parts = trees::all(db)?.into_iter().filter_map(|tree| Some((tree, parts.remove(&tree.id)?)));
    let parts: Vec<_> = parts.collect();
    within(db, target, nodes, &parts)
}

fn within(
    db: &Db<'_>,
    target: &mut Target,
    nodes: &mut BTreeSet<(TreeId, NodeId)>,
    parts: &[(TreeRef, Part)],
) -> Result<Found, StoreError> {
    let cursor = events::last(db)?;
    let (mut removals, mut damaged) = (Vec::new(), Vec::new());
    // First every node: what was sent and received is searched for all of them.
    let mut made_by = BTreeSet::new();
    let mut parts = parts.to_vec();
    for (tree, part) in &mut parts {
        let going = nodes_to_remove(db, target, nodes, *tree, part, &mut damaged)?;
        // A title may stand there since before the text that gave it.
        if add_titles(db, target, *tree, &going)? {
            part.after = Seq(0);
        }
        for (row, quotes) in going {
            nodes.insert((tree.id, row.id));
            made_by.extend(row.generation);
            if row.has_content {
                let (node, key, bytes) = (row.id, row.key, row.bytes);
                removals.push((tree.key, Removal::Node { tree: tree.id, node, key, bytes, quotes }));
            }
        }
    }
    for (tree, part) in &parts {
        let (found, made_by) = (Vec::new(), &made_by);
        let mut finder = Finder { db, target, nodes, made_by, tree: *tree, part, found, damaged: Vec::new() };
        finder.find()?;
        damaged.extend(finder.damaged);
        removals.extend(finder.found.into_iter().map(|removal| (tree.key, removal)));
    }
    removals.extend(outside_trees(db, target, nodes)?);
    removals.sort_by_key(|(_, removal)| order(removal, target.quoted.is_some()));
    Ok(Found { cursor, removals, damaged })
}

/// The order in which rows are removed. What runs is stopped first. By whatever others are found goes after them, so that
/// they are found again where this is ended before: by manifests their bodies, by the first records of a tree the title
/// it took, by nodes all of that, by a version those edited from it, by the node that is named what quotes it.
const fn order(removal: &Removal, quotes: bool) -> (u8, Reverse<i64>) {
    match removal {
        Removal::Running(_) => (0, Reverse(0)),
        Removal::Operation { seq, .. } => (2, Reverse(seq.0 as i64)),
        Removal::Manifest(_) => (2, Reverse(0)),
        Removal::Node { quotes: None, key, .. } if quotes => (4, Reverse(*key)),
        Removal::Node { key, .. } => (3, Reverse(*key)),
        _ => (1, Reverse(0)),
    }
}

/// The content of a node, if the tree has it.
pub(super) fn content_of(
    db: &Db<'_>,
    tree: TreeRef,
    node: NodeId,
) -> Result<Option<Arc<Vec<Block>>>, StoreError> {
    Ok(whole(db, tree, node)?.map(|row| row.node.content))
}

fn whole(db: &Db<'_>, tree: TreeRef, node: NodeId) -> Result<Option<NodeRow>, StoreError> {
    let rows = StoredTree::new(db, tree, &Principal::Owner);
    Ok(loom::TreeReader::node(&rows, node)?)
}

/// As [`content_of`]; none where it cannot be read.
fn readable_content(db: &Db<'_>, tree: TreeRef, node: NodeId) -> Result<Option<Arc<Vec<Block>>>, StoreError> {
    content_of(db, tree, node).or_else(none_if_damaged)
}

fn none_if_damaged<T>(error: StoreError) -> Result<Option<T>, StoreError> {
    if error.is_damage() { Ok(None) } else { Err(error) }
}

/// The id of a node; where it cannot be read, the node is called by a number.
fn id_or_number(row: &Row<'_>, column: usize, number: i64) -> Result<NodeId, StoreError> {
    let id = id16(row, column).map(Some).or_else(none_if_damaged)?;
    Ok(NodeId::from_bytes(id.unwrap_or_else(|| u128::from(number.unsigned_abs()).to_be_bytes())))
}

/// The bytes of columns, of whatever kind they are.
fn raw_of<'r>(row: &'r Row<'_>, columns: std::ops::RangeInclusive<usize>) -> impl Iterator<Item = &'r [u8]> {
    columns.filter_map(|column| match row.value(column) {
        Ok(ValueRef::Text(text)) => Some(text.as_bytes()),
        Ok(ValueRef::Blob(bytes)) => Some(bytes),
        _ => None,
    })
}

/// Adds the title that a tree took from a text that goes; whether there is a new one. A session calls its trees after
/// what is said first, which is not always what is written first; a tree that was imported may have been called so.
fn add_titles(
    db: &Db<'_>,
    target: &mut Target,
    tree: TreeRef,
    going: &[(NodeToRemove, Option<QuotedAs>)],
) -> Result<bool, StoreError> {
    if going.is_empty() || target.tree == Some(tree.id) {
        return Ok(false);
    }
    let sql = "SELECT title FROM trees t WHERE pk = ?1
        AND (session IS NOT NULL OR EXISTS (SELECT 1 FROM imports i WHERE i.tree = t.pk))";
    let Some(title) = db.one(sql, [tree.key.0], |row| get::<String>(row, 0))? else { return Ok(false) };
    let first = operation::first_titles(db, tree, &title)?;
    let mut is_new = false;
    for (row, _) in going.iter().filter(|(row, _)| row.has_content && !first.is_empty()) {
        let Some(content) = readable_content(db, tree, row.id)? else { continue };
        let of_text = title_of(&plain_text(&content));
        if first.contains(&of_text) {
            is_new |= target.add_title(tree.id, of_text);
        }
    }
    Ok(is_new)
}

/// Looks for what is to go in one tree, besides its nodes.
struct Finder<'a, 'c> {
    db: &'a Db<'c>,
    target: &'a Target,
    nodes: &'a BTreeSet<(TreeId, NodeId)>,
    made_by: &'a BTreeSet<GenerationId>,
    tree: TreeRef,
    part: &'a Part,
    found: Vec<Removal>,
    damaged: Vec<ForgottenPlace>,
}

impl Finder<'_, '_> {
    fn find(&mut self) -> Result<(), StoreError> {
        self.drafts()?;
        if self.part.after.0 < u64::MAX {
            self.labels()?;
            self.operations()?;
        }
        self.injections()?;
        self.responses()?;
        self.sent()
    }

    fn drafts(&mut self) -> Result<(), StoreError> {
        let words = self.target.words_of(self.tree.id);
        draft::each_of_tree(self.db, self.tree.key, |draft, row| {
            let (view, slot, draft) = match draft {
                Ok(draft) => draft,
                Err(error) => return self.unread(error, "a draft".to_owned(), raw_of(row, 3..=6)),
            };
            let gone = draft.base.is_some_and(|base| self.nodes.contains(&(self.tree.id, base)));
            if self.is_whole() || gone || words.without(&draft).is_some() {
                self.found.push(Removal::Draft { tree: self.tree.id, view, slot });
            }
            Ok(())
        })
    }

    /// Words in the cells of a tree.
    fn labels(&mut self) -> Result<(), StoreError> {
        let words = self.target.words_of(self.tree.id);
        let sql = format!(
            "{} WHERE c.tree = ?1 AND c.kind IN ({}) AND c.seq > ?2 AND (c.text IS NOT NULL OR c.tag <> '')",
            cell::PAIRS,
            cell::kind::texts!()
        );
        let (key, after) = (self.tree.key, i64::try_from(self.part.after.0).unwrap_or(i64::MAX));
        self.db.scan(&sql, (key.0, after), |row| {
            let (key, cell) = match cell::read_pair(self.db, key, row) {
                Ok(pair) => pair,
                Err(error) => {
                    let what = "a title, bookmark or tag".to_owned();
                    return self.unread(error, what, raw_of(row, 3..=7)).map(|()| true);
                }
            };
            let (mut new_key, mut left) = (key.clone(), cell.value);
            if words.remove_from_cell(&mut new_key, &mut [&mut left]) {
                self.found.push(Removal::Label { tree: self.tree.id, key });
            }
            Ok(true)
        })
    }

    /// Notes that a row cannot be read, which keeps nothing else from being forgotten, unless its bytes hold what is
    /// searched for. Where the whole tree goes, it goes too ([`super::end`]).
    fn unread<'b>(
        &mut self,
        error: StoreError,
        row: String,
        mut raw: impl Iterator<Item = &'b [u8]>,
    ) -> Result<(), StoreError> {
        let words = self.target.words_of(self.tree.id);
        if !error.is_damage() || (!self.is_whole() && raw.any(|bytes| words.are_in(bytes))) {
            return Err(error);
        }
        if !self.is_whole() {
            self.damaged.push(ForgottenPlace::Damaged { tree: self.tree.id, row });
        }
        Ok(())
    }

    /// Whether stored bytes hold what is searched for. Those that cannot be unpacked are searched as they are, and named
    /// where they hold nothing.
    fn is_in_packed(&mut self, packed: &[u8], row: impl FnOnce() -> String) -> Result<bool, StoreError> {
        if let Some(bytes) = unpack(packed).map(Some).or_else(none_if_damaged)? {
            return Ok(self.target.is_in_bytes(&bytes));
        }
        let holds = self.target.is_in_bytes(packed);
        if !holds {
            self.damaged.push(ForgottenPlace::Damaged { tree: self.tree.id, row: row() });
        }
        Ok(holds)
    }

    /// Words in the records of a tree. One that cannot be read keeps nothing from being forgotten, unless its bytes hold
    /// them; where the whole tree goes, it is emptied.
    fn operations(&mut self) -> Result<(), StoreError> {
        let (tree, words, is_whole) = (self.tree.id, self.target.words_of(self.tree.id), self.is_whole());
        operation::each_without_nodes(self.db, self.tree, self.part.after, |seq, op, bytes| {
            match op {
                Ok(mut op) => {
                    if words.remove_from_changes(&mut op.cells, &mut op.skipped) {
                        self.found.push(Removal::Operation { tree, seq });
                    }
                }
                Err(error) if error.is_damage() && is_whole => {
                    if !bytes.is_empty() {
                        self.found.push(Removal::Operation { tree, seq });
                    }
                }
                Err(error) if !error.is_damage() || words.are_in(bytes) => return Err(error),
                Err(_) => {
                    let row = format!("operation {}", seq.0);
                    self.damaged.push(ForgottenPlace::Damaged { tree, row });
                }
            }
            Ok(())
        })
    }

    /// What was shown with nodes: with those that go, and what holds what is searched for.
    fn injections(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT n.id, i.node, i.ordinal, i.text, i.source FROM injections i
            JOIN nodes n ON n.pk = ?2 + i.node WHERE i.tree = ?1";
        let (id, target, is_whole) = (self.tree.id, self.target, self.is_whole());
        self.db.scan(sql, (self.tree.key.0, self.tree.key.first()), |row| {
            let node = id_or_number(row, 0, get(row, 1)?)?;
            let gone = is_whole
                || self.nodes.contains(&(id, node))
                || target.is_in_bytes(get::<String>(row, 4)?.as_bytes())
                || self.is_in_packed(bytes_of(row, 3)?, || format!("what was shown with node {node}"))?;
            if gone {
                let (number, ordinal) = (get(row, 1)?, get(row, 2)?);
                self.found.push(Removal::Injection { tree: id, node, number, ordinal });
            }
            Ok(true)
        })
    }
}
