//! Moving about: siblings, versions, the tip, the window's start.

use crate::cell::{CellKey, CellValue, Place, Target};
use crate::id::{NodeId, PositionId};
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::grow::Growth;
use crate::plan::{PlanError, Refusal, commit};
use crate::position::PositionKind;
use crate::slice::Key;

/// Goes to a sibling (or any passage elsewhere) and on to where the view last was below it.
pub(super) fn switch(growth: &mut Growth<'_, '_>, to: PositionId) -> Result<(), PlanError> {
    growth.passage(to)?;
    visible(growth, to)?;
    commit::commit(growth)?;
    if growth.slice.found_position(Key::CommonAncestor(to, growth.stored_tip))? == Some(to) {
        return Ok(());
    }
    leave(growth, to)?;
    let last = growth.value(&CellKey::LastTip { view: growth.view(), position: to })?.as_position();
    let tip = match last {
        Some(last) if !growth.slice.fact(Key::Hidden { at: last, but: None })? => last,
        _ => growth.slice.found_position(Key::NewestLeaf(to))?.unwrap_or(to),
    };
    growth.set_tip(tip)?;
    if growth.has_work() {
        growth.rename(OpKind::Switch);
    }
    Ok(())
}

/// Remembers, at the sibling being left, the tip the view had below it. `to` is where it goes.
pub(super) fn leave(growth: &mut Growth<'_, '_>, to: PositionId) -> Result<(), PlanError> {
    let stored = growth.stored_tip;
    let tip = growth.tip()?;
    let common = growth.slice.found_position(Key::CommonAncestor(to, stored))?.unwrap_or(stored);
    let left = if common == to {
        // It stands on the path: a sibling of it is about to be made.
        Some(to)
    } else if common != stored {
        growth.slice.found_position(Key::ChildToward(common, stored))?
    } else {
        // The path ended here; only what this plan has just added hangs below.
        planned_child(growth, stored, tip)?
    };
    if let Some(left) = left {
        growth.set(CellKey::LastTip { view: growth.view(), position: left }, CellValue::Position(tip))?;
    }
    Ok(())
}

/// The planned child of `above` on the way to the planned tip.
fn planned_child(
    growth: &Growth<'_, '_>,
    above: PositionId,
    tip: PositionId,
) -> Result<Option<PositionId>, PlanError> {
    let mut here = tip;
    while here != above {
        match growth.position(here)?.parent {
            Some(parent) if parent == above => return Ok(Some(here)),
            Some(parent) => here = parent,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Moves the tip, after a commit.
pub(super) fn move_tip(growth: &mut Growth<'_, '_>, to: PositionId) -> Result<(), PlanError> {
    let position = growth.position(to)?;
    if position.kind != PositionKind::Path {
        return Err(Refusal::OffPath(to).into());
    }
    visible(growth, to)?;
    commit::commit(growth)?;
    growth.set_tip(to)?;
    if growth.has_work() {
        growth.rename(OpKind::Move);
    }
    Ok(())
}

/// Shows a version of a position.
pub(super) fn select(growth: &mut Growth<'_, '_>, at: PositionId, version: NodeId) -> Result<(), PlanError> {
    let position = growth.position(at)?;
    if position.parent.is_none() {
        return Err(Refusal::Genesis.into());
    }
    if growth.node(version)?.position != at {
        return Err(Refusal::NotAVersion { node: version, position: at }.into());
    }
    let target = Target::Version(version);
    if growth.value(&CellKey::Pruned { target })?.is_set() {
        return Err(Refusal::Pruned(target).into());
    }
    commit::commit(growth)?;
    // A version shown only because another is pruned is not chosen yet: the choice is written down.
    let key = CellKey::Selected { view: growth.view(), position: at };
    let chosen = growth.value(&key)?.as_node().unwrap_or(at.original());
    if growth.shown(at)? != version || chosen != version {
        growth.set(key, CellValue::Node(version))?;
    }
    if growth.has_work() {
        growth.rename(OpKind::Select);
    }
    Ok(())
}

/// Moves the start of the window; none moves it back to the top.
pub(super) fn compact(
    growth: &mut Growth<'_, '_>,
    to: Option<Place>,
    by_hand: bool,
) -> Result<(), PlanError> {
    let value = match to {
        None => CellValue::None,
        Some(to) => {
            let position = growth.passage(to.position)?.id;
            if growth.slice.found_position(Key::CommonAncestor(position, growth.stored_tip))?
                != Some(position)
            {
                return Err(Refusal::NotOnPath(position).into());
            }
            CellValue::Place(to)
        }
    };
    growth.set(CellKey::WindowStart { view: growth.view() }, value)?;
    growth.name(OpKind::Compact);
    if !by_hand {
        growth.timeline(TimelineEffect::None);
    }
    Ok(())
}

/// Refuses a place that is pruned or below one that is.
pub(super) fn visible(growth: &Growth<'_, '_>, at: PositionId) -> Result<(), PlanError> {
    if growth.slice.fact(Key::Hidden { at, but: None })? {
        return Err(Refusal::Pruned(Target::Position(at)).into());
    }
    Ok(())
}
