//! The naive model: plans applied to plain maps.

use std::collections::BTreeSet;

use loom::content::NotCanonical;
use loom::memory::MemoryTree;
use loom::plan::DraftChange;
use loom::reader::{Injection, Order};
use loom::{
    Cell, CellChange, CellKey, CellValue, Digest, Node, NodeId, NodeRow, OpRecord, Operation, Plan, Seq,
    Timeline, Trust, ViewName, short_id,
};

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

/// Writes to a tree in memory, as a store takes them: the naive model, which shares no rule with any.
pub trait WriteRows {
    /// Applies a plan: all of it, or nothing. Returns the operation's number, if it made one.
    ///
    /// # Errors
    /// [`ApplyError`]; the tree is as it was.
    fn apply(&mut self, plan: Plan) -> Result<Option<Seq>, ApplyError>;
    /// Sets a draft as a keystroke does: what could be redone no longer can.
    ///
    /// # Errors
    /// [`ApplyError::Conflict`] when its revision is another.
    fn set_draft(&mut self, change: DraftChange) -> Result<(), ApplyError>;
    /// Adds what is shown with a node; nothing if the node is not there.
    fn add_injection(&mut self, injection: Injection);
}

impl WriteRows for MemoryTree {
    fn apply(&mut self, plan: Plan) -> Result<Option<Seq>, ApplyError> {
        check(self, &plan)?;
        let record = match plan.op {
            None => None,
            Some(mut op) => {
                renew_views(self, &mut op);
                let seq = Seq(self.operations.len() as u64 + 1);
                let prev = self.operations.last().map_or(Digest::ZERO, |last| last.hash);
                let before = op.view.as_ref().map(|view| timeline_of(self, view)).unwrap_or_default();
                Some(OpRecord::bind(op, seq, prev, before)?)
            }
        };
        if let Some(tree) = plan.tree {
            self.tree = Some(tree);
        }
        self.positions.extend(plan.positions.into_iter().map(|position| (position.id, position)));
        for change in plan.drafts {
            replace_draft(self, change);
        }
        let Some(record) = record else { return Ok(None) };
        let seq = record.seq;
        for (place, node) in plan.nodes.into_iter().enumerate() {
            insert(self, node, seq, place as u32);
        }
        for change in &record.op.cells {
            if !matches!(change.key, CellKey::Draft { .. }) {
                self.cells.insert(change.key.clone(), Cell { value: change.new.clone(), seq });
            }
            if let CellKey::Trusted { node } = change.key
                && let Some(row) = self.nodes.get_mut(&node)
            {
                row.node.trust = if change.new.is_set() { Trust::Workspace } else { Trust::Outside };
            }
        }
        if let Some(view) = &record.op.view {
            let after = timeline_of(self, view).after(&record.op.timeline, seq);
            self.timelines.insert(view.clone(), after);
        }
        self.operations.push(record);
        Ok(Some(seq))
    }

    fn set_draft(&mut self, change: DraftChange) -> Result<(), ApplyError> {
        let (view, slot) = (change.view.clone(), change.slot);
        let before = timeline_of(self, &view).tick;
        let revision = change.new.as_ref().map_or(0, |draft| draft.revision);
        self.apply(Plan { drafts: vec![change], ..Plan::default() })?;
        for ((_, other), draft) in self.drafts.iter_mut().filter(|((of, _), _)| *of == view) {
            if *other != slot {
                draft.forget_undone();
            }
        }
        let timeline = timeline_of(self, &view);
        self.timelines.insert(view, Timeline { redo: None, tick: revision.max(before + 1), ..timeline });
        Ok(())
    }

    fn add_injection(&mut self, injection: Injection) {
        if let Some(order) = order_of(self, injection.node) {
            self.injections.insert((order, injection.ordinal), injection);
        }
    }
}

/// Empties what earlier views of the same names left where an operation makes views: their cells as part of the
/// operation, their drafts and timelines beside it.
fn renew_views(tree: &mut MemoryTree, op: &mut Operation) {
    let made = |change: &&CellChange| change.old.is_none() && !change.new.is_none();
    let views: BTreeSet<ViewName> =
        op.cells.iter().filter(made).filter_map(|change| made_view(&change.key).cloned()).collect();
    for view in views {
        for (key, cell) in &tree.cells {
            let set = op.cells.iter().any(|change| change.key == *key);
            if view_of(key) == Some(&view) && !cell.value.is_none() && !set {
                let old = cell.value.clone();
                op.cells.push(CellChange { key: key.clone(), old, new: CellValue::None });
            }
        }
        tree.drafts.retain(|(of, _), _| *of != view);
        if let Some(timeline) = tree.timelines.get_mut(&view) {
            *timeline = Timeline { tick: timeline.tick, ..Timeline::default() };
        }
    }
}

fn check(tree: &MemoryTree, plan: &Plan) -> Result<(), ApplyError> {
    for change in plan.op.iter().flat_map(|op| &op.cells) {
        let held = tree.cells.get(&change.key).map(|cell| &cell.value);
        let fits = held.map_or(change.old.is_none(), |held| *held == change.old);
        if !fits && !matches!(change.key, CellKey::Draft { .. }) {
            return Err(ApplyError::Conflict(change.key.to_string()));
        }
    }
    for DraftChange { view, slot, expected, .. } in &plan.drafts {
        let held = tree.drafts.get(&(view.clone(), *slot)).map(|draft| draft.revision);
        if held != *expected {
            return Err(ApplyError::Conflict(CellKey::Draft { view: view.clone(), slot: *slot }.to_string()));
        }
    }
    match plan.nodes.iter().find(|node| tree.nodes.contains_key(&node.id)) {
        Some(node) => Err(ApplyError::Exists(node.id.to_string())),
        None => Ok(()),
    }
}

fn insert(tree: &mut MemoryTree, node: Node, seq: Seq, place: u32) {
    let free = short_id::candidates(node.id.to_bytes()).find(|short| !tree.short_ids.contains(short));
    let short_id = free.unwrap_or_default();
    tree.short_ids.insert(short_id.clone());
    tree.restore_node(NodeRow { node, seq, place, short_id, purged: false });
}

/// Puts a draft in the place of another. No revision that was ever at this place comes again: the view's ticks
/// never fall behind them.
fn replace_draft(tree: &mut MemoryTree, change: DraftChange) {
    let timeline = timeline_of(tree, &change.view);
    let mut new = change.new;
    if let (Some(draft), None) = (&mut new, change.expected) {
        draft.revision = draft.revision.max(timeline.tick);
    }
    let gone = change.expected.map_or(0, |last| last + 1);
    let tick = timeline.tick.max(new.as_ref().map_or(gone, |draft| draft.revision));
    if tick != timeline.tick {
        tree.timelines.insert(change.view.clone(), Timeline { tick, ..timeline });
    }
    let key = (change.view, change.slot);
    match new {
        Some(draft) => drop(tree.drafts.insert(key, draft)),
        None => drop(tree.drafts.remove(&key)),
    }
}

fn timeline_of(tree: &MemoryTree, view: &ViewName) -> Timeline {
    tree.timelines.get(view).copied().unwrap_or_default()
}

fn order_of(tree: &MemoryTree, node: NodeId) -> Option<Order> {
    tree.nodes.get(&node).map(|row| (row.seq, row.place))
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
