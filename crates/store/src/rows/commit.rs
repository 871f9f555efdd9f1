//! Applying a plan and the rows that go with it, within one transaction.

use std::collections::{HashMap, HashSet};

use loom::{CellKey, Digest, Node, NodeId, OpRecord, Operation, Plan, Position, Seq, ViewName, short_id};

use super::node::NodePlace;
use super::reader::StoredTree;
use super::trees::{TreeRef, find_mut};
use super::{
    calls, cell, draft, events, generations, injections, jobs, leases, node, operation, position, sessions,
    trees, workspaces,
};
use crate::apply::{
    Applied, AppliedDraft, AttachedWrites, check_shape, fresh_timeline, is_stored, make_fresh, new_views,
};
use crate::db::{Db, digest, get, unsigned};
use crate::draft::{DraftEdit, DraftName, after_keystroke, edited, planned};
use crate::engine::params;
use crate::error::{StaleRead, StoreError};
use crate::event::EventKind;
use crate::import_tree::Import;
use crate::job::EndedJob;
use crate::principal::{Principal, only_owner};

/// As [`crate::Store::apply`].
pub(crate) fn apply(
    db: &Db<'_>,
    who: &Principal,
    id: loom::TreeId,
    plan: &Plan,
    with: &AttachedWrites,
) -> Result<Applied, StoreError> {
    check_shape(id, plan)?;
    let tree = match &plan.tree {
        Some(row) if who.may_write() => {
            if let Some(new) = &with.begins {
                sessions::begin(db, who, new)?;
            }
            let named = with.begins.as_ref().map(|new| new.id.0.as_str()).or(with.session.as_deref());
            let session = who.session().or(named);
            let tree = trees::insert(db, row, session)?;
            if let Some(session) = session.filter(|_| with.begins.is_none()) {
                sessions::go_on_in(db, session, tree.key)?;
            }
            if trees::find(db, who, id).is_err() {
                return Err(StoreError::NotFound("tree"));
            }
            tree
        }
        Some(_) => return Err(StoreError::Denied("write")),
        None => find_mut(db, who, id)?,
    };
    leases::check_guards(db, who, &with.guards)?;
    if let Some(preconditions) = &with.preconditions {
        let changed = preconditions.changed(&StoredTree::new(db, tree, who))?;
        if !changed.is_empty() {
            return Err(StoreError::Conflict(changed));
        }
    }
    let read_at = with.preconditions.as_ref().and_then(|preconditions| preconditions.read_at);
    if let Some(cursor) = with.prepared_at.into_iter().chain(read_at).min()
        && events::removed_since(db, Some(tree.key), cursor)?
    {
        return Err(StoreError::Conflict(vec![StaleRead::Forgotten]));
    }
    check(db, tree, plan)?;
    // Before the nodes, which name them.
    for generation in &with.generations {
        generations::start(db, tree, generation)?;
    }
    let mut applied = Applied::default();
    for change in &plan.drafts {
        let (view, slot) = (change.view.clone(), change.slot);
        let before = trees::timeline(db, tree.key, &view)?;
        let (new, timeline) = planned(change, before);
        if timeline != before {
            trees::set_timeline(db, tree.key, &view, timeline)?;
        }
        let revision = new.as_ref().map(|draft| draft.revision);
        draft::set(db, tree.key, &view, slot, new.as_ref())?;
        events::append(db, tree.key, &EventKind::Draft { view: view.clone(), slot, revision })?;
        applied.drafts.push(AppliedDraft { view, slot, revision });
    }
    if let Some(op) = &plan.op {
        append_planned(db, (who, tree), plan, op, &with.absent, &mut applied)?;
    }
    for shown in &with.injections {
        injections::keep(db, tree, shown)?;
    }
    for outcome in &with.outcomes {
        generations::end(db, tree, outcome)?;
    }
    for ended in &with.calls {
        calls::end(db, tree, ended)?;
    }
    for EndedJob { id, claim, end } in &with.jobs {
        jobs::finish(db, who, *id, claim, end)?;
    }
    with.accepted.iter().try_for_each(|inventory| workspaces::accept(db, who, inventory))?;
    if let (Some(note), Some(seq)) = (with.imported, applied.seq) {
        trees::keep_import(db, tree.key, &Import { note, from: seq, to: seq })?;
    }
    applied.cursor = events::number(db)?;
    Ok(applied)
}

/// Refuses a plan whose cells and drafts are not as it expects.
fn check(db: &Db<'_>, tree: TreeRef, plan: &Plan) -> Result<(), StoreError> {
    let mut changed = Vec::new();
    let cells = plan.op.iter().flat_map(|op| &op.cells);
    for change in cells.filter(|change| is_stored(&change.key)) {
        if cell::one(db, tree.key, &change.key)?.value != change.old {
            changed.push(StaleRead::Cell(change.key.clone()));
        }
    }
    for draft in &plan.drafts {
        let now = draft::one(db, tree.key, &draft.view, draft.slot)?;
        let revision = now.map(|draft| draft.revision);
        if revision != draft.expected {
            changed.push(StaleRead::Draft { view: draft.view.clone(), slot: draft.slot, revision });
        }
    }
    if changed.is_empty() { Ok(()) } else { Err(StoreError::Conflict(changed)) }
}

/// Inserts the rows of a plan and its operation.
fn append_planned(
    db: &Db<'_>,
    (who, tree): (&Principal, TreeRef),
    plan: &Plan,
    op: &Operation,
    absent: &[NodeId],
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let head = Head::read(db, tree)?;
    let seq = Seq(head.seq.0 + 1);
    for change in &op.cells {
        if let CellKey::Trusted { node } = change.key {
            only_owner(who, "trust")?;
            node::answer_for(db, tree.key, node, change.new.is_set())?;
        }
    }
    let absent: HashSet<NodeId> = absent.iter().copied().collect();
    let mut positions: HashMap<NodeId, _> =
        plan.positions.iter().map(|position| (position.id.original(), position)).collect();
    for (place, node) in (0..).zip(&plan.nodes) {
        let short = free_short_id(db, tree, node.id)?;
        let (number, purged) = (head.first + i64::from(place), absent.contains(&node.id));
        let place = NodePlace { number, seq, place, short: &short, purged };
        insert_node(db, tree, node, place, positions.remove(&node.id))?;
        applied.nodes.push((node.id, short));
    }
    if !positions.is_empty() {
        return Err(StoreError::Malformed("a position without its original".to_owned()));
    }
    let mut op = op.clone();
    for view in new_views(&op) {
        freshen(db, tree, &view, &mut op, applied)?;
    }
    append(db, tree, head, &op, plan.nodes.len())?;
    applied.seq = Some(seq);
    applied.skipped.clone_from(&op.skipped);
    Ok(())
}

/// Makes a view new, whatever one of its name left behind.
fn freshen(
    db: &Db<'_>,
    tree: TreeRef,
    view: &ViewName,
    op: &mut Operation,
    applied: &mut Applied,
) -> Result<(), StoreError> {
    let Some(number) = db.name_number(tree.key, view.as_str())? else { return Ok(()) };
    make_fresh(op, cell::of_view(db, tree.key, number)?);
    let left = trees::timeline(db, tree.key, view)?;
    trees::set_timeline(db, tree.key, view, fresh_timeline(left))?;
    for (slot, _) in draft::all(db, tree.key, view)? {
        draft::set(db, tree.key, view, slot, None)?;
        events::append(db, tree.key, &EventKind::Draft { view: view.clone(), slot, revision: None })?;
        applied.drafts.push(AppliedDraft { view: view.clone(), slot, revision: None });
    }
    Ok(())
}

/// The first short id that is free in the tree.
fn free_short_id(db: &Db<'_>, tree: TreeRef, id: NodeId) -> Result<String, StoreError> {
    for candidate in short_id::candidates(id.to_bytes()) {
        let sql = "SELECT 1 FROM nodes WHERE short = ?1 AND pk BETWEEN ?2 AND ?3";
        let keys = (candidate.as_str(), tree.key.first(), tree.key.last());
        if db.one(sql, keys, |_| Ok(()))?.is_none() {
            return Ok(candidate);
        }
    }
    Err(StoreError::Exists("short id"))
}

/// Inserts a node, with its position if it is an original, its place in the search index and the blobs that it shows.
pub(crate) fn insert_node(
    db: &Db<'_>,
    tree: TreeRef,
    node: &Node,
    place: NodePlace<'_>,
    position: Option<&Position>,
) -> Result<(), StoreError> {
    if db.one("SELECT 1 FROM nodes WHERE id = ?1", [node.id.to_bytes()], |_| Ok(()))?.is_some() {
        return Err(StoreError::Exists("node"));
    }
    let (number, purged) = (place.number, place.purged);
    let key = tree.key.node(number);
    node::insert(db, tree.key, node, place)?;
    match position {
        Some(position) => position::insert(db, tree.key, number, position)?,
        None if node.is_original() => {
            return Err(StoreError::Malformed(format!("node {} has no position", node.id)));
        }
        None => {}
    }
    if purged {
        node::purge(db, key)?;
    }
    db.engine().index(key, &crate::search::searched_text(&node.content))?;
    for blob in crate::blobs::shown_in(&node.content) {
        db.run("INSERT INTO blobs (digest, node) VALUES (?1, ?2)", (blob.0, key))?;
    }
    Ok(())
}

/// Where a tree's log ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    seq: Seq,
    hash: Digest,
    /// The number the next node of the tree has.
    first: i64,
}

impl Head {
    pub(crate) fn read(db: &Db<'_>, tree: TreeRef) -> Result<Self, StoreError> {
        let found = db.one("SELECT seq, head, nodes FROM trees WHERE pk = ?1", [tree.key.0], |row| {
            let seq = Seq(unsigned(row, 0)?);
            let hash = if seq.0 == 0 { Digest::ZERO } else { digest(row, 1)? };
            Ok(Self { seq, hash, first: get::<i64>(row, 2)? + 1 })
        })?;
        found.ok_or(StoreError::NotFound("tree"))
    }
}

/// Appends an operation whose `count` nodes stand from the head's number on, with what it does to cells and
/// timeline.
pub(crate) fn append(
    db: &Db<'_>,
    tree: TreeRef,
    head: Head,
    op: &Operation,
    count: usize,
) -> Result<(), StoreError> {
    let seq = Seq(head.seq.0 + 1);
    let timeline = |view: &ViewName| trees::timeline(db, tree.key, view);
    let before = op.view.as_ref().map(timeline).transpose()?.unwrap_or_default();
    for change in op.cells.iter().filter(|change| is_stored(&change.key)) {
        cell::set(db, tree.key, &change.key, &change.new, seq)?;
    }
    if let Some(view) = &op.view {
        trees::set_timeline(db, tree.key, view, before.after(&op.timeline, seq))?;
    }
    let record = OpRecord::bind(op.clone(), seq, head.hash, before).map_err(loom::Refusal::from)?;
    operation::insert(db, tree.key, &record, head.first, count)?;
    db.run(
        "UPDATE trees SET seq = ?2, head = ?3, nodes = nodes + ?4, updated = ?5 WHERE pk = ?1",
        params![tree.key.0, seq.0 as i64, record.hash.0, count as i64, op.at.0],
    )?;
    events::append(db, tree.key, &EventKind::Operation { seq, kind: op.kind, view: op.view.clone() })
}

/// As [`crate::Store::edit_draft`].
pub(crate) fn edit_draft(
    db: &Db<'_>,
    who: &Principal,
    name: &DraftName,
    expected: Option<u64>,
    edit: &DraftEdit,
) -> Result<loom::Draft, StoreError> {
    let tree = find_mut(db, who, name.tree)?;
    let rows = StoredTree::new(db, tree, who);
    let base = match edit {
        DraftEdit::Set { base: Some(base), .. } => {
            let row = loom::TreeReader::node(&rows, *base)?;
            Some((*base, row.ok_or(StoreError::NotFound("node"))?.node.text().into_owned()))
        }
        _ => None,
    };
    let now = draft::one(db, tree.key, &name.view, name.slot)?;
    let timeline = trees::timeline(db, tree.key, &name.view)?;
    match edited(name, now.clone(), expected, base, edit.clone(), timeline)? {
        None => now.ok_or(StoreError::NotFound("draft")),
        Some(draft) => {
            keystroke(db, tree, name, Some(&draft))?;
            Ok(draft)
        }
    }
}

/// As [`crate::Store::discard_draft`].
pub(crate) fn discard_draft(
    db: &Db<'_>,
    who: &Principal,
    name: &DraftName,
    expected: u64,
) -> Result<(), StoreError> {
    let tree = find_mut(db, who, name.tree)?;
    let revision = draft::one(db, tree.key, &name.view, name.slot)?.map(|draft| draft.revision);
    if revision != Some(expected) {
        let changed = StaleRead::Draft { view: name.view.clone(), slot: name.slot, revision };
        return Err(StoreError::Conflict(vec![changed]));
    }
    keystroke(db, tree, name, None)
}

/// Writes a draft, counts a keystroke, tells followers.
fn keystroke(
    db: &Db<'_>,
    tree: TreeRef,
    name: &DraftName,
    draft: Option<&loom::Draft>,
) -> Result<(), StoreError> {
    draft::set(db, tree.key, &name.view, name.slot, draft)?;
    for (slot, mut other) in draft::all(db, tree.key, &name.view)? {
        if slot != name.slot && other.forget_undone() {
            draft::set(db, tree.key, &name.view, slot, Some(&other))?;
        }
    }
    let timeline = trees::timeline(db, tree.key, &name.view)?;
    trees::set_timeline(db, tree.key, &name.view, after_keystroke(timeline, draft))?;
    let revision = draft.map(|draft| draft.revision);
    events::append(db, tree.key, &EventKind::Draft { view: name.view.clone(), slot: name.slot, revision })
}
