//! Edit: a version at the same place, or a sibling with `edited_from` (spec: loom §2).

use crate::cell::CellKey;
use crate::id::PositionId;
use crate::operation::OpKind;
use crate::plan::builder::{NewNode, PlanBuilder};
use crate::plan::{EditAs, NewText, PassageEdit, PlanError, Refusal, commit, travel};
use crate::position::PositionKind;
use crate::tree::Mode;

pub(super) fn edit(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    text: &str,
    edit_as: EditAs,
) -> Result<(), PlanError> {
    let position = builder.position(at)?;
    let version = match edit_as {
        EditAs::Version => true,
        EditAs::Branch => false,
        EditAs::Default => builder.mode()? == Mode::Buffer || position.kind != PositionKind::Path,
    };
    commit::commit(builder)?;
    if version {
        commit::set_text(builder, at, text, None)?;
    } else {
        branch(builder, at, text)?;
    }
    if builder.has_work() {
        builder.rename(OpKind::Edit);
    }
    Ok(())
}

/// Versions of several passages and texts below the tip, in one operation.
pub(super) fn edit_path(
    builder: &mut PlanBuilder<'_, '_>,
    edits: &[PassageEdit],
    texts: &[NewText],
) -> Result<(), PlanError> {
    // Before drafts are committed: what that makes has no rows to read.
    let read = edits.iter().map(|edit| (edit.position, Some(edit.from), edit.text.as_str()));
    commit::read_ahead(builder, &read.collect::<Vec<_>>())?;
    commit::commit(builder)?;
    for edit in edits {
        let position = builder.passage(edit.position)?.id;
        if builder.shown(position)? == edit.from {
            commit::set_text(builder, position, &edit.text, None)?;
        } else {
            builder.skip(CellKey::Selected { view: builder.view(), position });
        }
    }
    commit::grow_all(builder, texts)?;
    if builder.has_work() {
        builder.rename(OpKind::Edit);
    }
    Ok(())
}

/// A new sibling with the same role; what was below stays on the old one.
fn branch(builder: &mut PlanBuilder<'_, '_>, at: PositionId, text: &str) -> Result<(), PlanError> {
    let position = builder.passage(at)?;
    let parent = position.parent.ok_or(Refusal::Genesis)?;
    let from = builder.node(builder.shown(at)?)?;
    let content = commit::edited(&from, text);
    if content == from.content {
        return Ok(());
    }
    if text.is_empty() {
        return Err(Refusal::Empty.into());
    }
    travel::visible(builder, parent)?;
    travel::leave(builder, at)?;
    let mut seed =
        NewNode::new(content, builder.request.author.clone(), from.trust.min(builder.request.trust));
    seed.edited_from = Some(from.id);
    let sibling = builder.add_position(parent, PositionKind::Path, position.role, None, seed)?;
    builder.set_tip(sibling)?;
    Ok(())
}
