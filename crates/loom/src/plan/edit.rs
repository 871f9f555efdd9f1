//! Edit: a version at the same place, or a sibling with `edited_from` (spec: loom §2).

use crate::id::PositionId;
use crate::operation::OpKind;
use crate::plan::grow::{Growth, Seed};
use crate::plan::{EditAs, PlanError, Refusal, commit, travel};
use crate::position::PositionKind;
use crate::tree::Mode;

pub(super) fn edit(
    growth: &mut Growth<'_, '_>,
    at: PositionId,
    text: &str,
    edit_as: EditAs,
) -> Result<(), PlanError> {
    let position = growth.position(at)?;
    let version = match edit_as {
        EditAs::Version => true,
        EditAs::Branch => false,
        EditAs::Default => growth.mode()? == Mode::Buffer || position.kind != PositionKind::Path,
    };
    commit::commit(growth)?;
    if version {
        commit::set_text(growth, at, text, None)?;
    } else {
        branch(growth, at, text)?;
    }
    if growth.has_work() {
        growth.rename(OpKind::Edit);
    }
    Ok(())
}

/// A new sibling with the same role; what was below stays on the old one.
fn branch(growth: &mut Growth<'_, '_>, at: PositionId, text: &str) -> Result<(), PlanError> {
    let position = growth.passage(at)?;
    let parent = position.parent.ok_or(Refusal::Genesis)?;
    let from = growth.node(growth.shown(at)?)?;
    let content = commit::edited(&from, text);
    if content == from.content {
        return Ok(());
    }
    if text.is_empty() {
        return Err(Refusal::Empty.into());
    }
    travel::visible(growth, parent)?;
    travel::leave(growth, at)?;
    let mut seed = Seed::new(content, growth.request.author.clone(), from.trust.min(growth.request.trust));
    seed.edited_from = Some(from.id);
    let sibling = growth.add_position(parent, PositionKind::Path, position.role, None, seed)?;
    growth.set_tip(sibling)?;
    Ok(())
}
