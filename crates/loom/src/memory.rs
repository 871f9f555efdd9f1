//! A tree in memory: plain maps, as simple as can be.
//!
//! The naive model the stores are tested against, and what a file is read into before it is verified or
//! imported. It holds everything, so it is not for large trees that live on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::cell::{Cell, CellChange, CellKey, CellScope, CellValue, OpTarget};
use crate::content::NotCanonical;
use crate::digest::Digest;
use crate::draft::{Draft, Slot};
use crate::generation::{GenerationId, GenerationRow};
use crate::id::{NodeId, PositionId, Seq, ViewName};
use crate::node::{Node, NodeRow};
use crate::operation::{OpRecord, Operation, Timeline};
use crate::plan::{DraftChange, Plan};
use crate::position::{Position, PositionKind};
use crate::reader::{Injection, Order, RowError, StoredResponse, TreeReader};
use crate::seal::Seal;
use crate::short_id;
use crate::tree::TreeRow;

/// One tree, in maps.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    tree: Option<TreeRow>,
    positions: BTreeMap<PositionId, Position>,
    nodes: BTreeMap<NodeId, NodeRow>,
    order: BTreeMap<Order, NodeId>,
    cells: BTreeMap<CellKey, Cell>,
    operations: Vec<OpRecord>,
    timelines: BTreeMap<ViewName, Timeline>,
    drafts: BTreeMap<(ViewName, Slot), Draft>,
    generations: BTreeMap<GenerationId, GenerationRow>,
    seals: Vec<Seal>,
    short_ids: BTreeSet<String>,
    injections: BTreeMap<(Order, u32), Injection>,
}

/// Why a plan was not applied. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// A cell or draft changed since the plan was made.
    #[error("{0} changed meanwhile: plan again")]
    Conflict(String),
    /// A row that is to be inserted exists.
    #[error("{0} exists")]
    Exists(String),
    /// The operation has no canonical form.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
}

impl MemoryTree {
    /// Applies a plan: all of it, or nothing. Returns the operation's number, if it made one.
    ///
    /// # Errors
    /// [`ApplyError`]; the tree is as it was.
    pub fn apply(&mut self, plan: Plan) -> Result<Option<Seq>, ApplyError> {
        self.check(&plan)?;
        let record = match plan.op {
            None => None,
            Some(mut op) => {
                self.renew_views(&mut op);
                let seq = Seq(self.operations.len() as u64 + 1);
                let prev = self.operations.last().map_or(Digest::ZERO, |last| last.hash);
                let before = op.view.as_ref().map(|view| self.timeline_of(view)).unwrap_or_default();
                Some(OpRecord::bind(op, seq, prev, before)?)
            }
        };
        if let Some(tree) = plan.tree {
            self.tree = Some(tree);
        }
        self.positions.extend(plan.positions.into_iter().map(|position| (position.id, position)));
        for change in plan.drafts {
            self.replace_draft(change);
        }
        let Some(record) = record else { return Ok(None) };
        let seq = record.seq;
        for (place, node) in plan.nodes.into_iter().enumerate() {
            self.insert(node, seq, place as u32);
        }
        for change in &record.op.cells {
            if !matches!(change.key, CellKey::Draft { .. }) {
                self.cells.insert(change.key.clone(), Cell { value: change.new.clone(), seq });
            }
        }
        if let Some(view) = &record.op.view {
            let after = self.timeline_of(view).after(&record.op.timeline, seq);
            self.timelines.insert(view.clone(), after);
        }
        self.operations.push(record);
        Ok(Some(seq))
    }

    /// Empties what earlier views of the same names left where an operation makes views: their cells as part of the
    /// operation, their drafts and timelines beside it.
    fn renew_views(&mut self, op: &mut Operation) {
        let made = |change: &&CellChange| change.old.is_none() && !change.new.is_none();
        let views: BTreeSet<ViewName> =
            op.cells.iter().filter(made).filter_map(|change| made_view(&change.key).cloned()).collect();
        for view in views {
            for (key, cell) in &self.cells {
                let set = op.cells.iter().any(|change| change.key == *key);
                if view_of(key) == Some(&view) && !cell.value.is_none() && !set {
                    let old = cell.value.clone();
                    op.cells.push(CellChange { key: key.clone(), old, new: CellValue::None });
                }
            }
            self.drafts.retain(|(of, _), _| *of != view);
            if let Some(timeline) = self.timelines.get_mut(&view) {
                *timeline = Timeline { tick: timeline.tick, ..Timeline::default() };
            }
        }
    }

    fn check(&self, plan: &Plan) -> Result<(), ApplyError> {
        for change in plan.op.iter().flat_map(|op| &op.cells) {
            let held = self.cells.get(&change.key).map(|cell| &cell.value);
            let fits = held.map_or(change.old.is_none(), |held| *held == change.old);
            if !fits && !matches!(change.key, CellKey::Draft { .. }) {
                return Err(ApplyError::Conflict(change.key.to_string()));
            }
        }
        for DraftChange { view, slot, expected, .. } in &plan.drafts {
            let held = self.drafts.get(&(view.clone(), *slot)).map(|draft| draft.revision);
            if held != *expected {
                return Err(ApplyError::Conflict(
                    CellKey::Draft { view: view.clone(), slot: *slot }.to_string(),
                ));
            }
        }
        match plan.nodes.iter().find(|node| self.nodes.contains_key(&node.id)) {
            Some(node) => Err(ApplyError::Exists(node.id.to_string())),
            None => Ok(()),
        }
    }

    fn insert(&mut self, node: Node, seq: Seq, place: u32) {
        let free = short_id::candidates(node.id.to_bytes()).find(|short| !self.short_ids.contains(short));
        let short_id = free.unwrap_or_default();
        self.short_ids.insert(short_id.clone());
        self.restore_node(NodeRow { node, seq, place, short_id, purged: false });
    }

    /// Puts a draft in the place of another. No revision that was ever at this place comes again: the view's ticks
    /// never fall behind them.
    fn replace_draft(&mut self, change: DraftChange) {
        let timeline = self.timeline_of(&change.view);
        let mut new = change.new;
        if let (Some(draft), None) = (&mut new, change.expected) {
            draft.revision = draft.revision.max(timeline.tick);
        }
        let gone = change.expected.map_or(0, |last| last + 1);
        let tick = timeline.tick.max(new.as_ref().map_or(gone, |draft| draft.revision));
        if tick != timeline.tick {
            self.timelines.insert(change.view.clone(), Timeline { tick, ..timeline });
        }
        let key = (change.view, change.slot);
        match new {
            Some(draft) => drop(self.drafts.insert(key, draft)),
            None => drop(self.drafts.remove(&key)),
        }
    }

    fn timeline_of(&self, view: &ViewName) -> Timeline {
        self.timelines.get(view).copied().unwrap_or_default()
    }

    /// Sets a draft as a keystroke does: what could be redone no longer can.
    ///
    /// # Errors
    /// [`ApplyError::Conflict`] when its revision is another.
    pub fn set_draft(&mut self, change: DraftChange) -> Result<(), ApplyError> {
        let (view, slot) = (change.view.clone(), change.slot);
        let before = self.timeline_of(&view).tick;
        let revision = change.new.as_ref().map_or(0, |draft| draft.revision);
        self.apply(Plan { drafts: vec![change], ..Plan::default() })?;
        for ((_, other), draft) in self.drafts.iter_mut().filter(|((of, _), _)| *of == view) {
            if *other != slot {
                draft.forget_undone();
            }
        }
        let timeline = self.timeline_of(&view);
        self.timelines.insert(view, Timeline { redo: None, tick: revision.max(before + 1), ..timeline });
        Ok(())
    }

    pub fn add_generation(&mut self, row: GenerationRow) {
        self.generations.insert(row.id, row);
    }

    /// Adds what is shown with a node; nothing if the node is not there.
    pub fn add_injection(&mut self, injection: Injection) {
        if let Some(order) = self.order_of(injection.node) {
            self.injections.insert((order, injection.ordinal), injection);
        }
    }

    fn order_of(&self, node: NodeId) -> Option<Order> {
        self.nodes.get(&node).map(|row| (row.seq, row.place))
    }

    pub fn add_seal(&mut self, seal: Seal) {
        self.seals.push(seal);
    }

    /// Sets the tree row, as read from a file.
    pub fn restore_tree(&mut self, tree: TreeRow) {
        self.tree = Some(tree);
    }

    /// Adds a position, as read from a file.
    pub fn restore_position(&mut self, position: Position) {
        self.positions.insert(position.id, position);
    }

    /// Adds or replaces a node row, as read from a file.
    pub fn restore_node(&mut self, row: NodeRow) {
        self.order.insert((row.seq, row.place), row.node.id);
        self.short_ids.insert(row.short_id.clone());
        self.nodes.insert(row.node.id, row);
    }

    /// Appends an operation, as read from a file, with what it did to cells and timeline.
    pub fn restore_operation(&mut self, record: OpRecord) {
        for change in &record.op.cells {
            if !matches!(change.key, CellKey::Draft { .. }) {
                self.cells.insert(change.key.clone(), Cell { value: change.new.clone(), seq: record.seq });
            }
        }
        if let Some(view) = &record.op.view {
            let after = self.timeline_of(view).after(&record.op.timeline, record.seq);
            self.timelines.insert(view.clone(), after);
        }
        self.operations.push(record);
    }

    /// Everything that changes, to be damaged by tests of `verify`.
    #[doc(hidden)]
    pub fn parts_mut(
        &mut self,
    ) -> (&mut BTreeMap<NodeId, NodeRow>, &mut BTreeMap<PositionId, Position>, &mut Vec<OpRecord>) {
        (&mut self.nodes, &mut self.positions, &mut self.operations)
    }

    fn page(&self, ids: impl Iterator<Item = NodeId>, limit: usize) -> Vec<NodeRow> {
        ids.filter_map(|id| self.nodes.get(&id).cloned()).take(limit).collect()
    }

    fn newest_first(&self, before: Option<Order>) -> impl Iterator<Item = NodeId> {
        let all = before.is_none();
        let before = before.unwrap_or_default();
        self.order.iter().rev().filter(move |(order, _)| all || **order < before).map(|(_, id)| *id)
    }
}

/// The view a cell stands for.
const fn made_view(key: &CellKey) -> Option<&ViewName> {
    if let CellKey::View { view } = key { Some(view) } else { None }
}

/// The view a cell belongs to.
const fn view_of(key: &CellKey) -> Option<&ViewName> {
    match key {
        CellKey::View { view }
        | CellKey::Tip { view }
        | CellKey::WindowStart { view }
        | CellKey::Selected { view, .. }
        | CellKey::LastTip { view, .. }
        | CellKey::Keep { view, .. }
        | CellKey::Draft { view, .. } => Some(view),
        _ => None,
    }
}

/// Where the record of a number stands in a log without a gap.
fn place_of(seq: Seq) -> usize {
    usize::try_from(seq.0).unwrap_or(usize::MAX).wrapping_sub(1)
}

impl TreeReader for MemoryTree {
    fn attributions(&self, _: &[NodeId]) -> Result<Vec<crate::attribution::Attribution>, RowError> {
        Ok(Vec::new())
    }

    fn tables(&self) -> Result<u32, RowError> {
        Ok(text::grapheme::TABLES)
    }

    fn tree(&self) -> Result<TreeRow, RowError> {
        self.tree.clone().ok_or_else(|| RowError::missing("tree", "row"))
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError> {
        Ok(self.positions.get(&id).cloned())
    }

    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError> {
        Ok(self.nodes.get(&id).cloned())
    }

    fn cell(&self, key: &CellKey) -> Result<Cell, RowError> {
        Ok(self.cells.get(key).cloned().unwrap_or_default())
    }

    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError> {
        let held = self.cells.iter().filter(|(key, _)| scope.holds(key));
        Ok(held.map(|(key, cell)| (key.clone(), cell.clone())).collect())
    }

    fn choices(&self, view: Option<&ViewName>, end: PositionId) -> Result<Vec<(CellKey, Cell)>, RowError> {
        let chosen = self.cells.iter().filter_map(|(key, cell)| {
            let position = match key {
                CellKey::Selected { view: of, position } | CellKey::Keep { view: of, position } => {
                    (Some(of) == view).then_some(*position)
                }
                CellKey::Pruned { target } | CellKey::Excluded { target } => match target {
                    OpTarget::Position(position) => Some(*position),
                    OpTarget::Version(node) => self.nodes.get(node).map(|row| row.node.position),
                },
                _ => None,
            };
            Some((position?, key, cell))
        });
        let chosen: Vec<_> = chosen.collect();
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let up = |id: &PositionId| self.positions.get(id)?.parent;
        let path: BTreeSet<PositionId> = std::iter::successors(Some(end), up).collect();
        let on_path = chosen.into_iter().filter(|(position, ..)| path.contains(position));
        Ok(on_path.map(|(_, key, cell)| (key.clone(), cell.clone())).collect())
    }

    fn versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError> {
        let here = self.newest_first(before).filter(|id| self.nodes[id].node.position == position);
        Ok(self.page(here, limit))
    }

    fn count_versions(&self, position: PositionId) -> Result<u64, RowError> {
        Ok(self.nodes.values().filter(|row| row.node.position == position).count() as u64)
    }

    fn version_with_content(
        &self,
        position: PositionId,
        content: Digest,
    ) -> Result<Option<NodeId>, RowError> {
        Ok(self.newest_first(None).find(|id| {
            let node = &self.nodes[id].node;
            node.position == position && node.content_hash == content
        }))
    }

    fn children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError> {
        let originals = self.newest_first(before).filter_map(|id| self.positions.get(&id.as_position()));
        Ok(originals.filter(|child| child.parent == Some(position)).take(limit).cloned().collect())
    }

    fn count_children(&self, position: PositionId) -> Result<u64, RowError> {
        let below = self.positions.values().filter(|child| child.parent == Some(position));
        Ok(below.filter(|child| child.kind == PositionKind::Path).count() as u64)
    }

    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError> {
        let fits = |record: &&OpRecord| record.seq == seq;
        let found = self.operations.get(place_of(seq)).filter(fits);
        Ok(found.or_else(|| self.operations.iter().find(fits)).cloned())
    }

    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError> {
        // Where the numbers are without a gap, those up to `after` need not be looked at.
        let at = place_of(after);
        let skip = if self.operations.get(at).is_some_and(|record| record.seq == after) { at } else { 0 };
        let later = self.operations.iter().skip(skip).filter(|record| record.seq > after);
        Ok(later.take(limit).cloned().collect())
    }

    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError> {
        let later = self.order.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded));
        Ok(self.page(later.map(|(_, id)| *id), limit))
    }

    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError> {
        Ok(self.timeline_of(view))
    }

    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError> {
        Ok(self.drafts.get(&(view.clone(), slot)).cloned())
    }

    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError> {
        let here = self.drafts.iter().filter(|((of, _), _)| of == view);
        Ok(here.map(|((_, slot), draft)| (*slot, draft.clone())).collect())
    }

    fn seals(&self) -> Result<Vec<Seal>, RowError> {
        Ok(self.seals.clone())
    }

    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError> {
        Ok(self.generations.get(&id).cloned())
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<(GenerationRow, Option<Digest>)>, RowError> {
        let later =
            self.generations.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded));
        Ok(later.take(limit).map(|(_, row)| (row.clone(), None)).collect())
    }

    // What was sent and received is not held.

    fn answer(&self, _: GenerationId) -> Result<Option<StoredResponse>, RowError> {
        Ok(None)
    }

    fn manifest(&self, _: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(None)
    }

    fn body(&self, _: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(None)
    }

    fn response(&self, _: NodeId) -> Result<Option<StoredResponse>, RowError> {
        Ok(None)
    }

    fn injections(&self, from: NodeId, before: Option<NodeId>) -> Result<Vec<Injection>, RowError> {
        let Some(from) = self.order_of(from) else { return Ok(Vec::new()) };
        let before = before.and_then(|node| self.order_of(node));
        let shown = self.injections.range((from, 0)..);
        Ok(shown
            .take_while(|((order, _), _)| before.is_none_or(|before| *order < before))
            .map(|(_, injection)| injection.clone())
            .collect())
    }
}
