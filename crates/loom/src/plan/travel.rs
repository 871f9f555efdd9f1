//! Moving about: siblings, versions, the tip, the window's start.

use crate::cell::{CellKey, CellValue, OpTarget, TextOffset};
use crate::id::{NodeId, PositionId};
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::builder::PlanBuilder;
use crate::plan::{PlanError, Refusal, commit};
use crate::position::PositionKind;
use crate::read_set::ReadKey;

/// Goes to a sibling (or any passage elsewhere) and on to where the view last was below it.
pub(super) fn switch(builder: &mut PlanBuilder<'_, '_>, to: PositionId) -> Result<(), PlanError> {
    builder.passage(to)?;
    visible(builder, to)?;
    commit::commit(builder)?;
    if builder.slice.found_position(ReadKey::CommonAncestor(to, builder.stored_tip))? == Some(to) {
        return Ok(());
    }
    leave(builder, to)?;
    let last = builder.value(&CellKey::LastTip { view: builder.view(), position: to })?.as_position();
    let tip = match last {
        Some(last) if !builder.slice.fact(ReadKey::Hidden { at: last, but: None })? => last,
        _ => builder.slice.found_position(ReadKey::NewestLeaf(to))?.unwrap_or(to),
    };
    builder.set_tip(tip)?;
    if builder.has_work() {
        builder.rename(OpKind::Switch);
    }
    Ok(())
}

/// Remembers, at the sibling being left, the tip the view had below it. `to` is where it goes.
pub(super) fn leave(builder: &mut PlanBuilder<'_, '_>, to: PositionId) -> Result<(), PlanError> {
    let stored = builder.stored_tip;
    let tip = builder.tip()?;
    let common = builder.slice.found_position(ReadKey::CommonAncestor(to, stored))?.unwrap_or(stored);
    let left = if common == to {
        // It stands on the path: a sibling of it is about to be made.
        Some(to)
    } else if common != stored {
        builder.slice.found_position(ReadKey::ChildToward(common, stored))?
    } else {
        // The path ended here; only what this plan has just added hangs below.
        planned_child(builder, stored, tip)?
    };
    if let Some(left) = left {
        builder.set(CellKey::LastTip { view: builder.view(), position: left }, CellValue::Position(tip))?;
    }
    Ok(())
}

/// The planned child of `above` on the way to the planned tip.
fn planned_child(
    builder: &PlanBuilder<'_, '_>,
    above: PositionId,
    tip: PositionId,
) -> Result<Option<PositionId>, PlanError> {
    let mut here = tip;
    while here != above {
        match builder.position(here)?.parent {
            Some(parent) if parent == above => return Ok(Some(here)),
            Some(parent) => here = parent,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Moves the tip, after a commit.
pub(super) fn move_tip(builder: &mut PlanBuilder<'_, '_>, to: PositionId) -> Result<(), PlanError> {
    let position = builder.position(to)?;
    if position.kind != PositionKind::Path {
        return Err(Refusal::OffPath(to).into());
    }
    visible(builder, to)?;
    commit::commit(builder)?;
    builder.set_tip(to)?;
    if builder.has_work() {
        builder.rename(OpKind::Move);
    }
    Ok(())
}

/// Shows a version of a position.
pub(super) fn select(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    version: NodeId,
) -> Result<(), PlanError> {
    let position = builder.position(at)?;
    if position.parent.is_none() {
        return Err(Refusal::Genesis.into());
    }
    if builder.node(version)?.position != at {
        return Err(Refusal::NotAVersion { node: version, position: at }.into());
    }
    let target = OpTarget::Version(version);
    if builder.value(&CellKey::Pruned { target })?.is_set() {
        return Err(Refusal::Pruned(target).into());
    }
    commit::commit(builder)?;
    // A version shown only because another is pruned is not chosen yet: the choice is written down.
    let key = CellKey::Selected { view: builder.view(), position: at };
    let chosen = builder.value(&key)?.as_node().unwrap_or(at.original());
    if builder.shown(at)? != version || chosen != version {
        builder.set(key, CellValue::Node(version))?;
    }
    if builder.has_work() {
        builder.rename(OpKind::Select);
    }
    Ok(())
}

/// Moves the start of the window; none moves it back to the top.
pub(super) fn compact(
    builder: &mut PlanBuilder<'_, '_>,
    to: Option<TextOffset>,
    by_hand: bool,
) -> Result<(), PlanError> {
    let value = match to {
        None => CellValue::None,
        Some(to) => {
            let position = builder.passage(to.position)?.id;
            if builder.slice.found_position(ReadKey::CommonAncestor(position, builder.stored_tip))?
                != Some(position)
            {
                return Err(Refusal::NotOnPath(position).into());
            }
            CellValue::Place(to)
        }
    };
    builder.set(CellKey::WindowStart { view: builder.view() }, value)?;
    builder.name(OpKind::Compact);
    if !by_hand {
        builder.timeline(TimelineEffect::None);
    }
    Ok(())
}

/// Refuses a place that is pruned or below one that is.
pub(super) fn visible(builder: &PlanBuilder<'_, '_>, at: PositionId) -> Result<(), PlanError> {
    if builder.slice.fact(ReadKey::Hidden { at, but: None })? {
        let pruned = builder.slice.found_position(ReadKey::PrunedAbove(at))?.unwrap_or(at);
        return Err(Refusal::hidden(at, pruned).into());
    }
    Ok(())
}
