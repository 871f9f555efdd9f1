//! Where a view's path departs from the originals, and what was met of the path so far.
//!
//! A screen asks for the same few positions again and again: where a run begins and ends, what stands above a
//! passage. So a path remembers what it met, and reads a position once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Keeps, climb, position};
use crate::cell::{Cell, CellKey, OpTarget};
use crate::id::{NodeId, PositionId, Seq, ViewName};
use crate::position::{Position, PositionKind, Sums};
use crate::reader::{RowError, TreeReader};
use crate::resolve;

/// One position of a view's path that does not show its original, or is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exception {
    pub position: PositionId,
    pub depth: u32,
    pub shown: NodeId,
    /// Whether it is left out of rendering and context.
    pub excluded: bool,
    pub original: Sums,
    /// What it counts as shown; nothing when left out.
    pub actual: Sums,
    /// The newest choice (selection, exclusion, prune) made at it.
    pub chosen: Seq,
}

/// Positions that are remembered for a path. A screen and the jumps from it to the root are some hundreds; a path
/// that is read whole is not kept.
const REMEMBERED: usize = 4_096;

/// A view's path as far as it departs from the originals. Read once for an open view, then kept.
#[derive(Debug, Clone)]
pub struct ViewOverrides {
    pub tip: Position,
    pub(crate) view: ViewName,
    pub(crate) keeps: Keeps,
    steps: Vec<Step>,
    /// Positions met so far, of this path or not: what a position says never changes.
    met: RefCell<HashMap<PositionId, Position>>,
}

/// An exception, and the sums over those above it.
#[derive(Debug, Clone, Copy)]
struct Step {
    exception: Exception,
    originals_above: Sums,
    actuals_above: Sums,
}

/// What was chosen at positions of a path.
#[derive(Default)]
struct Choices {
    /// The newest choice (selection, exclusion, prune) at each.
    newest: BTreeMap<PositionId, Seq>,
    selected: BTreeMap<PositionId, NodeId>,
    pruned: BTreeSet<NodeId>,
    excluded: BTreeSet<OpTarget>,
}

impl Choices {
    /// Out of the cells that say so. One set back to nothing is a choice as well.
    fn of(rows: &dyn TreeReader, cells: Vec<(CellKey, Cell)>) -> Result<Self, RowError> {
        let mut choices = Self::default();
        for (key, cell) in cells {
            let (target, pruned) = match key {
                CellKey::Selected { position, .. } => {
                    choices.note(position, cell.seq);
                    choices.selected.extend(cell.value.as_node().map(|version| (position, version)));
                    continue;
                }
                CellKey::Pruned { target } => (target, true),
                CellKey::Excluded { target } => (target, false),
                _ => continue,
            };
            match target {
                OpTarget::Position(position) => choices.note(position, cell.seq),
                OpTarget::Version(node) => {
                    if let Some(row) = rows.node(node)? {
                        choices.note(row.node.position, cell.seq);
                    }
                }
            }
            match target {
                _ if !cell.value.is_set() => {}
                OpTarget::Version(node) if pruned => drop(choices.pruned.insert(node)),
                OpTarget::Position(_) if pruned => {}
                _ => drop(choices.excluded.insert(target)),
            }
        }
        Ok(choices)
    }

    fn note(&mut self, position: PositionId, seq: Seq) {
        let newest = self.newest.entry(position).or_default();
        *newest = seq.max(*newest);
    }

    /// The version shown at a position: [`resolve::shown`], from what was read already.
    fn shown(&self, rows: &dyn TreeReader, position: PositionId) -> Result<NodeId, RowError> {
        let wanted = self.selected.get(&position).copied().unwrap_or(position.original());
        if !self.pruned.contains(&wanted) {
            return Ok(wanted);
        }
        Ok(resolve::newest_visible(rows, position, None)?.unwrap_or(wanted))
    }
}

impl ViewOverrides {
    /// Reads those of a view, with `tip` as the end of the path (the view's own, as a rule). A choice on the path
    /// costs the row of its position and that of the version shown, once each; one elsewhere costs nothing.
    ///
    /// # Errors
    /// [`RowError`] when the store fails.
    pub fn read(rows: &dyn TreeReader, view: &ViewName, tip: PositionId) -> Result<Self, RowError> {
        let tip = position(rows, tip)?;
        let met = RefCell::new(HashMap::from([(tip.id, tip.clone())]));
        let chosen = rows.choices(Some(view), tip.id)?;
        let mut path = Self { tip, view: view.clone(), keeps: Keeps::of(&chosen), steps: Vec::new(), met };
        let choices = Choices::of(rows, chosen)?;
        let mut found = Vec::with_capacity(choices.newest.len());
        for (id, seq) in &choices.newest {
            let here = path.position(rows, *id)?;
            if here.kind == PositionKind::Path && here.depth <= path.tip.depth {
                found.push(exception(rows, &choices, &here, *seq)?);
            }
        }
        found.sort_by_key(|exception| std::cmp::Reverse(exception.depth));
        let (mut originals_above, mut actuals_above) = (Sums::default(), Sums::default());
        for exception in found.into_iter().rev() {
            path.steps.push(Step { exception, originals_above, actuals_above });
            originals_above = originals_above.plus(exception.original);
            actuals_above = actuals_above.plus(exception.actual);
        }
        Ok(path)
    }

    /// A position, read once.
    pub(crate) fn position(&self, rows: &dyn TreeReader, id: PositionId) -> Result<Position, RowError> {
        if let Some(met) = self.met.borrow().get(&id) {
            return Ok(met.clone());
        }
        let read = position(rows, id)?;
        self.meet(&read);
        Ok(read)
    }

    /// Remembers a position that was read.
    pub(crate) fn meet(&self, position: &Position) {
        let mut met = self.met.borrow_mut();
        if met.len() < REMEMBERED {
            met.insert(position.id, position.clone());
        }
    }

    /// Whether a position stands on the path to another, reading what was not met yet.
    pub(crate) fn is_above(
        &self,
        rows: &dyn TreeReader,
        above: PositionId,
        below: PositionId,
    ) -> Result<bool, RowError> {
        let (above, below) = (self.position(rows, above)?, self.position(rows, below)?);
        Ok(self.climb(rows, below, above.depth)?.is_some_and(|found| found.id == above.id))
    }

    fn climb(&self, rows: &dyn TreeReader, from: Position, depth: u32) -> Result<Option<Position>, RowError> {
        climb(&|id| self.position(rows, id), from, depth)
    }

    /// The exception at a depth of the path, if there is one.
    pub fn at(&self, depth: u32) -> Option<&Exception> {
        let found = self.steps.get(self.first_from(depth)).map(|step| &step.exception);
        found.filter(|exception| exception.depth == depth)
    }

    /// Exceptions between two depths, both included, from the top.
    pub fn between(&self, from: u32, to: u32) -> impl Iterator<Item = &Exception> {
        let overrides = self.steps[self.first_from(from)..].iter().map(|step| &step.exception);
        overrides.take_while(move |exception| exception.depth <= to.max(from))
    }

    /// The index of the highest exception at `depth` or below it.
    fn first_from(&self, depth: u32) -> usize {
        self.steps.partition_point(|step| step.exception.depth < depth)
    }

    /// Sums over what is shown above a position of the path.
    pub fn above(&self, here: &Position) -> Sums {
        let last = self.first_from(here.depth).checked_sub(1).map(|index| &self.steps[index]);
        last.map_or(here.above, |last| {
            let actuals = last.actuals_above.plus(last.exception.actual);
            here.above.plus(actuals).minus(last.originals_above.plus(last.exception.original))
        })
    }

    /// What a position of the path counts as shown.
    pub fn own(&self, here: &Position) -> Sums {
        self.at(here.depth).map_or(here.own, |exception| exception.actual)
    }

    /// Sums over the whole path as shown.
    pub fn total(&self) -> Sums {
        self.above(&self.tip).plus(self.own(&self.tip))
    }

    /// The digest of what is shown from `from` to `to`, both included.
    pub fn digest(&self, from: &Position, to: &Position) -> crate::digest::PathDigest {
        self.above(to).plus(self.own(to)).digest.minus(self.above(from).digest)
    }

    /// The position of the path in which the cluster before `offset` lies, and the offset within it, in
    /// grapheme clusters of the rendering. A place between two passages belongs to the one on its left; the
    /// very beginning, which has nothing on its left, to the passage the first cluster stands in.
    ///
    /// # Errors
    /// [`RowError`] when the store fails.
    pub fn locate(&self, rows: &dyn TreeReader, offset: u64) -> Result<Option<(Position, u64)>, RowError> {
        let total = self.total().counts.graphemes;
        if offset > total {
            return Ok(None);
        }
        let reached = offset.max(1).min(total);
        // The highest position whose end reaches the offset; ends never decrease downwards.
        let (mut low, mut high) = (0, self.tip.depth);
        while low < high {
            let middle = low + (high - low) / 2;
            let here = self
                .climb(rows, self.tip.clone(), middle)?
                .ok_or_else(|| RowError::missing("ancestor of", self.tip.id))?;
            if self.above(&here).plus(self.own(&here)).counts.graphemes >= reached {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let here = self
            .climb(rows, self.tip.clone(), low)?
            .ok_or_else(|| RowError::missing("ancestor of", self.tip.id))?;
        let start = self.above(&here).counts.graphemes;
        Ok(Some((here, offset.saturating_sub(start))))
    }
}

/// What a position of the path shows instead of its original.
fn exception(
    rows: &dyn TreeReader,
    choices: &Choices,
    here: &Position,
    chosen: Seq,
) -> Result<Exception, RowError> {
    let shown = choices.shown(rows, here.id)?;
    let excluded = choices.excluded.contains(&OpTarget::Position(here.id))
        || choices.excluded.contains(&OpTarget::Version(shown));
    let actual = if excluded {
        Sums::default()
    } else if shown == here.id.original() {
        here.own
    } else {
        let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
        Sums { counts: row.node.counts, digest: row.node.term }
    };
    Ok(Exception {
        position: here.id,
        depth: here.depth,
        shown,
        excluded,
        original: here.own,
        actual,
        chosen,
    })
}
