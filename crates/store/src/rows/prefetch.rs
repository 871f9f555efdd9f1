//! Reading ahead, where a question costs a round trip.
//!
//! A screen asks the same of one position after another: of those of a page, or of those that a view chose something
//! at. So positions and nodes that came in one answer are a group, and what is asked of one of them is read for all of
//! them at once. A walk upwards that leaves the known asks for a run of positions with what their jump pointers lead
//! to, each time for a longer one. Where rows are at hand (SQLite) nothing is read ahead and nothing is kept.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::rc::Rc;

use loom::{Cell as TreeCell, CellKey, GenerationId, GenerationRow, NodeId, NodeRow, Position, PositionId};

/// Rows read for a group at a time.
const GROUP: usize = 4_096;

/// The first run of a walk, and the longest: each is twice the one before.
const FIRST_RUN: usize = 64;
const LONGEST_RUN: usize = 4_096;

/// Where an id stands among those of its answer.
type Member<K> = (Rc<[K]>, usize);

/// Ids that came in one answer.
struct Groups<K>(RefCell<HashMap<K, Member<K>>>);

impl<K: Copy + Eq + Hash> Groups<K> {
    fn add(&self, ids: impl IntoIterator<Item = K>) {
        let ids: Rc<[K]> = ids.into_iter().collect();
        let mut groups = self.0.borrow_mut();
        for (index, id) in ids.iter().enumerate() {
            groups.insert(*id, (Rc::clone(&ids), index));
        }
    }

    /// An id with those that came behind it and before it.
    fn of(&self, id: K) -> Vec<K> {
        let Some((ids, index)) = self.0.borrow().get(&id).cloned() else { return vec![id] };
        let (before, behind) = ids.split_at(index);
        behind.iter().chain(before).copied().take(GROUP).collect()
    }
}

/// What was answered, by what was asked. What is not there is known, too.
pub(super) struct Known<K, V>(RefCell<HashMap<K, V>>);

impl<K: Eq + Hash + Clone, V: Clone> Known<K, V> {
    /// The answer; where there is none, that of `read` for what `of` names beside it. `read` answers in pairs, what
    /// it leaves out is `none`.
    pub(super) fn ask<E>(
        &self,
        key: &K,
        of: impl FnOnce() -> Vec<K>,
        none: &V,
        read: impl FnOnce(&[K]) -> Result<Vec<(K, V)>, E>,
    ) -> Result<V, E> {
        if let Some(known) = self.0.borrow().get(key) {
            return Ok(known.clone());
        }
        let mut unknown = of();
        unknown.retain(|key| !self.0.borrow().contains_key(key));
        let found = read(&unknown)?;
        let mut known = self.0.borrow_mut();
        known.extend(unknown.into_iter().map(|key| (key, none.clone())));
        known.extend(found);
        Ok(known.get(key).unwrap_or(none).clone())
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.0.borrow().get(key).cloned()
    }

    pub(super) fn keep(&self, found: impl IntoIterator<Item = (K, V)>) {
        self.0.borrow_mut().extend(found);
    }
}

impl<K> Default for Groups<K> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

/// What is counted of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Count {
    Versions,
    Children,
}

/// What was read of a tree within one read.
#[derive(Default)]
pub(super) struct PrefetchCache {
    pages: Groups<PositionId>,
    shown: Groups<NodeId>,
    made: Groups<GenerationId>,
    pub(super) numbers: Known<PositionId, Option<i64>>,
    pub(super) positions: Known<PositionId, Option<Position>>,
    pub(super) nodes: Known<NodeId, Option<NodeRow>>,
    pub(super) counts: Known<(Count, PositionId), u64>,
    pub(super) cells: Known<CellKey, TreeCell>,
    pub(super) generations: Known<GenerationId, Option<GenerationRow>>,
    runs: Cell<u32>,
}

impl PrefetchCache {
    /// Keeps the positions of one answer.
    pub(super) fn page(&self, found: &[Position]) {
        self.pages.add(found.iter().map(|position| position.id));
        self.keep_positions(found.iter().cloned());
    }

    pub(super) fn keep_positions(&self, found: impl IntoIterator<Item = Position>) {
        self.positions.keep(found.into_iter().map(|position| (position.id, Some(position))));
    }

    /// Keeps the nodes of one answer.
    pub(super) fn keep_nodes(&self, found: &[NodeRow]) {
        self.made.add(found.iter().filter_map(|row| row.node.generation));
        self.nodes.keep(found.iter().map(|row| (row.node.id, Some(row.clone()))));
    }

    /// Keeps what the cells of one answer are about.
    pub(super) fn chosen(&self, cells: &[(CellKey, TreeCell)]) {
        let (mut positions, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        for (key, cell) in cells {
            match super::cell::parts(key).target {
                Some(loom::OpTarget::Position(position)) => drop(positions.insert(position, ())),
                Some(loom::OpTarget::Version(node)) => drop(nodes.insert(node, ())),
                None => {}
            }
            nodes.extend(cell.value.as_node().map(|node| (node, ())));
        }
        self.pages.add(positions.into_keys());
        self.shown.add(nodes.into_keys());
    }

    /// A position with those it came with; alone it begins a walk.
    pub(super) fn beside(&self, id: PositionId) -> Vec<PositionId> {
        self.pages.of(id)
    }

    pub(super) fn beside_node(&self, id: NodeId) -> Vec<NodeId> {
        self.shown.of(id)
    }

    pub(super) fn beside_generation(&self, id: GenerationId) -> Vec<GenerationId> {
        self.made.of(id)
    }

    /// How many positions the next walk asks for.
    pub(super) fn next_run(&self) -> usize {
        let run = self.runs.get();
        self.runs.set(run + 1);
        FIRST_RUN.checked_shl(run.min(16)).map_or(LONGEST_RUN, |run| run.min(LONGEST_RUN))
    }
}
