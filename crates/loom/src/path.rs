//! Paths: ancestors by jump pointers, and where a text offset lies, without walking to the root.
//!
//! Every position carries sums over the *originals* above it. What a view shows differs from the originals at
//! a few positions, its [`Exceptions`]; with them a sum over what is shown costs O(e), and an ancestor
//! O(log depth) reads (spec: loom §3 *Windowed access*).

use std::collections::BTreeMap;

use crate::cell::{CellKey, CellScope, Target};
use crate::id::{NodeId, PositionId, Seq, ViewName};
use crate::position::{Position, PositionKind, Sums};
use crate::resolve;
use crate::rows::{Order, RowError, Rows};

/// A position that must exist.
///
/// # Errors
/// [`RowError::Missing`] when it does not.
pub fn position(rows: &dyn Rows, id: PositionId) -> Result<Position, RowError> {
    rows.position(id)?.ok_or_else(|| RowError::missing("position", id))
}

/// The ancestor of `from` (itself included) at `depth`; none if `from` is higher up than that.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn ancestor_at(rows: &dyn Rows, from: PositionId, depth: u32) -> Result<Option<Position>, RowError> {
    let mut here = position(rows, from)?;
    while here.depth > depth {
        let jump = position(rows, here.jump)?;
        here = match here.parent {
            _ if jump.depth >= depth => jump,
            Some(parent) => position(rows, parent)?,
            None => return Ok(None),
        };
    }
    Ok((here.depth == depth).then_some(here))
}

/// Whether `above` stands on the path to `below`, or is it.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn is_ancestor(rows: &dyn Rows, above: PositionId, below: PositionId) -> Result<bool, RowError> {
    if above == below {
        return Ok(true);
    }
    let depth = position(rows, above)?.depth;
    Ok(ancestor_at(rows, below, depth)?.is_some_and(|found| found.id == above))
}

/// The lowest position that stands on the paths to both.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn common_ancestor(rows: &dyn Rows, a: PositionId, b: PositionId) -> Result<Position, RowError> {
    let (mut a, mut b) = (position(rows, a)?, position(rows, b)?);
    let depth = a.depth.min(b.depth);
    if let Some(found) = ancestor_at(rows, a.id, depth)? {
        a = found;
    }
    if let Some(found) = ancestor_at(rows, b.id, depth)? {
        b = found;
    }
    while a.id != b.id {
        // Equal depth means equal jump lengths, so both sides leap in step until the jumps meet.
        (a, b) = if a.jump == b.jump {
            match (a.parent, b.parent) {
                (Some(up), Some(other)) => (position(rows, up)?, position(rows, other)?),
                _ => return Err(RowError::missing("common ancestor of", a.id)),
            }
        } else {
            (position(rows, a.jump)?, position(rows, b.jump)?)
        };
    }
    Ok(a)
}

/// The child of `above` on the way to `below`; none if `above` is not above it.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn child_toward(
    rows: &dyn Rows,
    above: PositionId,
    below: PositionId,
) -> Result<Option<PositionId>, RowError> {
    let depth = position(rows, above)?.depth;
    if position(rows, below)?.depth <= depth || !is_ancestor(rows, above, below)? {
        return Ok(None);
    }
    Ok(ancestor_at(rows, below, depth + 1)?.map(|child| child.id))
}

/// Whether a position, or one above it, is pruned. Visibility below is derived, never written.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn is_hidden(rows: &dyn Rows, at: PositionId) -> Result<bool, RowError> {
    is_hidden_but(rows, at, None)
}

/// [`is_hidden`], as if the position `but` were not pruned itself.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn is_hidden_but(rows: &dyn Rows, at: PositionId, but: Option<PositionId>) -> Result<bool, RowError> {
    for (key, cell) in rows.cells(&CellScope::Pruned)? {
        if let CellKey::Pruned { target: Target::Position(pruned) } = key
            && cell.value.is_set()
            && Some(pruned) != but
            && is_ancestor(rows, pruned, at)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The leaf reached from a position by its newest visible children.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn newest_leaf(rows: &dyn Rows, from: PositionId) -> Result<PositionId, RowError> {
    let mut leaf = from;
    'down: loop {
        let mut before: Option<Order> = None;
        loop {
            let page = rows.children(leaf, before, 16)?;
            for child in &page {
                let pruned = CellKey::Pruned { target: Target::Position(child.id) };
                if child.kind == PositionKind::Path && !rows.cell(&pruned)?.value.is_set() {
                    leaf = child.id;
                    continue 'down;
                }
            }
            match page.last() {
                Some(last) if page.len() == 16 => before = Some(order_of(rows, last.id)?),
                _ => return Ok(leaf),
            }
        }
    }
}

/// Where the original of a position stands in the order of the tree.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn order_of(rows: &dyn Rows, position: PositionId) -> Result<Order, RowError> {
    let row = rows.node(position.original())?.ok_or_else(|| RowError::missing("node", position))?;
    Ok((row.seq, row.place))
}

/// One position of a view's path that does not show its original, or is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exception {
    /// The position.
    pub position: PositionId,
    /// Its depth.
    pub depth: u32,
    /// The version shown.
    pub shown: NodeId,
    /// Whether it is left out of rendering and context.
    pub excluded: bool,
    /// What its original counts.
    pub original: Sums,
    /// What it counts as shown; nothing when left out.
    pub actual: Sums,
    /// The newest choice (selection, exclusion, prune) made at it.
    pub chosen: Seq,
}

/// A view's path as far as it departs from the originals. Read once for an open view, then kept.
#[derive(Debug, Clone)]
pub struct Exceptions {
    /// The tip.
    pub tip: Position,
    /// By depth.
    by_depth: BTreeMap<u32, Exception>,
}

impl Exceptions {
    /// Reads those of a view, with `tip` as the end of the path (the view's own, as a rule).
    ///
    /// # Errors
    /// [`RowError`] when the store fails.
    pub fn read(rows: &dyn Rows, view: &ViewName, tip: PositionId) -> Result<Self, RowError> {
        let mut choices: BTreeMap<PositionId, Seq> = BTreeMap::new();
        let mut excluded: BTreeMap<Target, ()> = BTreeMap::new();
        let mut note = |position: PositionId, seq: Seq| {
            let newest = choices.entry(position).or_default();
            *newest = seq.max(*newest);
        };
        for (key, cell) in rows.cells(&CellScope::Selected(view.clone()))? {
            if let CellKey::Selected { position, .. } = key {
                note(position, cell.seq);
            }
        }
        for scope in [CellScope::Pruned, CellScope::Excluded] {
            for (key, cell) in rows.cells(&scope)? {
                let (CellKey::Pruned { target } | CellKey::Excluded { target }) = key else { continue };
                match target {
                    Target::Position(position) => note(position, cell.seq),
                    Target::Version(node) => {
                        if let Some(row) = rows.node(node)? {
                            note(row.node.position, cell.seq);
                        }
                    }
                }
                if scope == CellScope::Excluded && cell.value.is_set() {
                    excluded.insert(target, ());
                }
            }
        }
        let tip = position(rows, tip)?;
        let mut by_depth = BTreeMap::new();
        for (id, chosen) in choices {
            let here = position(rows, id)?;
            if here.kind != PositionKind::Path
                || ancestor_at(rows, tip.id, here.depth)?.is_none_or(|found| found.id != id)
            {
                continue;
            }
            let shown = resolve::shown(rows, view, id)?;
            let out = excluded.contains_key(&Target::Position(id))
                || excluded.contains_key(&Target::Version(shown));
            let actual = if out {
                Sums::default()
            } else if shown == id.original() {
                here.own
            } else {
                let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
                Sums { counts: row.node.counts, digest: row.node.term }
            };
            by_depth.insert(
                here.depth,
                Exception {
                    position: id,
                    depth: here.depth,
                    shown,
                    excluded: out,
                    original: here.own,
                    actual,
                    chosen,
                },
            );
        }
        Ok(Self { tip, by_depth })
    }

    /// The exception at a depth of the path, if there is one.
    pub fn at(&self, depth: u32) -> Option<&Exception> {
        self.by_depth.get(&depth)
    }

    /// Exceptions between two depths, both included, from the top.
    pub fn between(&self, from: u32, to: u32) -> impl Iterator<Item = &Exception> {
        self.by_depth.range(from..=to.max(from)).map(|(_, exception)| exception)
    }

    /// Sums over what is shown above a position of the path.
    pub fn above(&self, here: &Position) -> Sums {
        let mut sums = here.above;
        for exception in self.by_depth.range(..here.depth).map(|(_, exception)| exception) {
            sums = sums.plus(exception.actual).minus(exception.original);
        }
        sums
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
    pub fn locate(&self, rows: &dyn Rows, offset: u64) -> Result<Option<(Position, u64)>, RowError> {
        let total = self.total().counts.graphemes;
        if offset > total {
            return Ok(None);
        }
        let reached = offset.max(1).min(total);
        // The highest position whose end reaches the offset; ends never decrease downwards.
        let (mut low, mut high) = (0, self.tip.depth);
        while low < high {
            let middle = low + (high - low) / 2;
            let here = ancestor_at(rows, self.tip.id, middle)?
                .ok_or_else(|| RowError::missing("ancestor of", self.tip.id))?;
            if self.above(&here).plus(self.own(&here)).counts.graphemes >= reached {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let here = ancestor_at(rows, self.tip.id, low)?
            .ok_or_else(|| RowError::missing("ancestor of", self.tip.id))?;
        let start = self.above(&here).counts.graphemes;
        Ok(Some((here, offset.saturating_sub(start))))
    }
}
