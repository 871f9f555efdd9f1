//! Paths: ancestors by jump pointers, and where a text offset lies, without walking to the root.
//!
//! Every position carries sums over the *originals* above it. What a view shows differs from the originals at
//! a few positions, its [`ViewOverrides`]; with them a sum over what is shown costs O(log e) and no read, and an
//! ancestor O(log depth) reads (spec: loom §3 *Windowed access*).

mod keeps;
mod overrides;

use crate::cell::{CellKey, OpTarget};
use crate::id::PositionId;
use crate::plan::Refusal;
use crate::position::{Position, PositionKind};
use crate::reader::{Order, RowError, TreeReader};

pub(crate) use keeps::Keeps;
pub use overrides::{Exception, ViewOverrides};

/// A position that must exist.
///
/// # Errors
/// [`RowError::Missing`] when it does not.
pub fn position(rows: &dyn TreeReader, id: PositionId) -> Result<Position, RowError> {
    rows.position(id)?.ok_or_else(|| RowError::missing("position", id))
}

/// The ancestor of `from` (itself included) at `depth`; none if `from` is higher up than that.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn ancestor_at(
    rows: &dyn TreeReader,
    from: PositionId,
    depth: u32,
) -> Result<Option<Position>, RowError> {
    climb(&|id| position(rows, id), position(rows, from)?, depth)
}

/// The ancestor of `here` at `depth`, with positions from wherever they are at hand.
fn climb(
    position: &dyn Fn(PositionId) -> Result<Position, RowError>,
    mut here: Position,
    depth: u32,
) -> Result<Option<Position>, RowError> {
    while here.depth > depth {
        let jump = higher(&here, position(here.jump)?)?;
        here = match here.parent {
            _ if jump.depth >= depth => jump,
            Some(parent) => higher(&here, position(parent)?)?,
            None => return Ok(None),
        };
    }
    Ok((here.depth == depth).then_some(here))
}

/// A position that another one names as above it: a walk upwards ends.
fn higher(here: &Position, above: Position) -> Result<Position, RowError> {
    if above.depth < here.depth { Ok(above) } else { Err(RowError::damaged("position", here.id)) }
}

/// That `below` stands right below `above`, and was made there: what it sums up above it is what stands there.
pub(crate) fn follows(above: &Position, below: &Position) -> Result<(), RowError> {
    let is_next = below.parent == Some(above.id) && below.depth.checked_sub(1) == Some(above.depth);
    let is_summed = above.below().digest == below.above.digest;
    if is_next && is_summed { Ok(()) } else { Err(RowError::damaged("position", below.id)) }
}

/// [`ancestor_at`] for what is read out: `from` itself, if it is not further down than `depth`. A position that one
/// damaged row names in place of an ancestor is an error: a parent has to be [followed](follows), and a jump that
/// leads past the parent leads where two jumps from the parent do ([`Position::child_jump`]).
pub(crate) fn checked_ancestor(
    rows: &dyn TreeReader,
    from: Position,
    depth: u32,
) -> Result<Position, RowError> {
    let mut here = from;
    while here.depth > depth {
        let damaged = || RowError::damaged("position", here.id);
        let parent = position(rows, here.parent.ok_or_else(damaged)?)?;
        follows(&parent, &here)?;
        let jump = if here.jump == parent.id { parent.clone() } else { position(rows, here.jump)? };
        if jump.depth < depth || jump.id == parent.id {
            here = parent;
        } else if jump.depth < parent.depth && position(rows, parent.jump)?.jump == jump.id {
            here = jump;
        } else {
            return Err(damaged());
        }
    }
    Ok(here)
}

/// Whether `above` stands on the path to `below`, or is it.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn is_ancestor(rows: &dyn TreeReader, above: PositionId, below: PositionId) -> Result<bool, RowError> {
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
pub fn common_ancestor(rows: &dyn TreeReader, a: PositionId, b: PositionId) -> Result<Position, RowError> {
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
        let (up, other) = if a.jump == b.jump {
            match (a.parent, b.parent) {
                (Some(up), Some(other)) => (up, other),
                _ => return Err(RowError::missing("common ancestor of", a.id)),
            }
        } else {
            (a.jump, b.jump)
        };
        (a, b) = (higher(&a, position(rows, up)?)?, higher(&b, position(rows, other)?)?);
    }
    Ok(a)
}

/// The child of `above` on the way to `below`; none if `above` is not above it.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn child_toward(
    rows: &dyn TreeReader,
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
pub fn is_hidden(rows: &dyn TreeReader, at: PositionId) -> Result<bool, RowError> {
    is_hidden_but(rows, at, None)
}

/// [`is_hidden`], as if the position `but` were not pruned itself.
///
/// # Errors
/// [`RowError`] when the store fails.
pub(crate) fn is_hidden_but(
    rows: &dyn TreeReader,
    at: PositionId,
    but: Option<PositionId>,
) -> Result<bool, RowError> {
    Ok(rows.choices(None, at)?.iter().any(|(key, cell)| {
        matches!(key, CellKey::Pruned { target: OpTarget::Position(pruned) } if Some(*pruned) != but)
            && cell.value.is_set()
    }))
}

/// The nearest position that is pruned itself, at a position or above it.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn pruned_above(rows: &dyn TreeReader, at: PositionId) -> Result<Option<PositionId>, RowError> {
    let mut nearest: Option<Position> = None;
    for (key, cell) in rows.choices(None, at)? {
        let CellKey::Pruned { target: OpTarget::Position(pruned) } = key else { continue };
        if cell.value.is_set() {
            let found = position(rows, pruned)?;
            nearest = nearest.filter(|nearest| nearest.depth > found.depth).or(Some(found));
        }
    }
    Ok(nearest.map(|nearest| nearest.id))
}

/// Why nothing goes on from a position: it, or one above it, is pruned. None where it is visible.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn hidden(rows: &dyn TreeReader, at: PositionId) -> Result<Option<Refusal>, RowError> {
    Ok(pruned_above(rows, at)?.map(|pruned| Refusal::hidden(at, pruned)))
}

/// The leaf reached from a position by its newest visible children.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn newest_leaf(rows: &dyn TreeReader, from: PositionId) -> Result<PositionId, RowError> {
    let (mut leaf, mut depth) = (from, position(rows, from)?.depth);
    'down: loop {
        let mut before: Option<Order> = None;
        loop {
            let page = rows.children(leaf, before, 16)?;
            for child in &page {
                let pruned = CellKey::Pruned { target: OpTarget::Position(child.id) };
                if child.kind == PositionKind::Path && !rows.cell(&pruned)?.value.is_set() {
                    if child.depth <= depth {
                        return Err(RowError::damaged("position", child.id));
                    }
                    (leaf, depth) = (child.id, child.depth);
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
pub fn order_of(rows: &dyn TreeReader, position: PositionId) -> Result<Order, RowError> {
    let row = rows.node(position.original())?.ok_or_else(|| RowError::missing("node", position))?;
    Ok((row.seq, row.place))
}
