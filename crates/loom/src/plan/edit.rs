//! Edit: a version at the same place, or a sibling with `edited_from` (spec: loom §2).

use std::collections::BTreeSet;

use crate::cell::CellKey;
use crate::id::PositionId;
use crate::operation::OpKind;
use crate::plan::builder::{NewNode, PlanBuilder};
use crate::plan::{EditAs, NewText, PassageEdit, PlanError, Refusal, ShownPassage, commit, merge, travel};
use crate::position::PositionKind;
use crate::read_set::ReadKey;
use crate::tree::Mode;

pub(super) fn edit(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    over: Option<&str>,
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
    if let Some(over) = over {
        let now = builder.node(builder.shown(at)?)?;
        // Where somebody wrote the same there is nothing to lose.
        if now.said() != over && now.said() != text {
            return Err(Refusal::ChangedMeanwhile(at).into());
        }
    }
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
    behind: Option<PositionId>,
) -> Result<(), PlanError> {
    // Before drafts are committed: what that makes has no rows to read.
    let read = edits.iter().map(|edit| (edit.position, Some(edit.from), edit.text.as_str()));
    commit::read_ahead(builder, &read.collect::<Vec<_>>())?;
    builder.slice.require(edits.iter().filter_map(|edit| Some(ReadKey::Node(edit.moved?.node))))?;
    let behind = behind.filter(|_| !texts.is_empty());
    let gone = off_the_path(builder, edits.iter().map(|edit| edit.position).chain(behind))?;
    commit::commit(builder)?;
    let mut left = BTreeSet::new();
    for edit in edits {
        if gone.contains(&edit.position) || builder.shown(edit.position)? != edit.from {
            left.insert(edit.position);
        }
    }
    leave_whole_moves(edits, &mut left);
    for edit in edits {
        if left.contains(&edit.position) {
            builder.skip(CellKey::Selected { view: builder.view(), position: edit.position });
        } else {
            set_edited(builder, edit)?;
        }
    }
    if behind.is_some_and(|behind| gone.contains(&behind)) {
        builder.skip(CellKey::Tip { view: builder.view() });
    } else {
        commit::grow_all(builder, texts)?;
    }
    if builder.has_work() {
        builder.rename(OpKind::Edit);
    }
    Ok(())
}

/// Leaves what went from one passage to another whole: each may hold up the next.
fn leave_whole_moves(edits: &[PassageEdit], left: &mut BTreeSet<PositionId>) {
    let ways: Vec<_> = edits.iter().filter_map(|edit| Some([edit.position, edit.moved_to?])).collect();
    let is_half =
        |left: &BTreeSet<PositionId>, way: &[PositionId; 2]| left.contains(&way[0]) != left.contains(&way[1]);
    while let Some(way) = ways.iter().find(|way| is_half(left, way)) {
        left.extend(way);
    }
}

/// Makes a passage show what it was edited to.
fn set_edited(builder: &mut PlanBuilder<'_, '_>, edit: &PassageEdit) -> Result<(), PlanError> {
    let found = edit.moved.map(|moved| Ok::<_, PlanError>((moved, builder.slice.node(moved.node)?)));
    let source = found.transpose()?.and_then(|(moved, row)| {
        let source = row.filter(|row| !row.purged)?.node.clone();
        let text = source.text().get(moved.from..moved.to)?.to_owned();
        (!text.is_empty() && edit.text.get(moved.at..)?.starts_with(&text)).then_some((moved, source))
    });
    match source {
        Some((moved, source)) => {
            let quote = merge::quote_of(&source, moved.from..moved.to, moved.at);
            let at = ShownPassage { position: edit.position, node: edit.from };
            merge::show(builder, at, &edit.text, quote, &source)
        }
        None => commit::set_text(builder, edit.position, &edit.text, None).map(drop),
    }
}

/// Of passages that stand on one path, those that the path of the view does not lead through.
fn off_the_path(
    builder: &PlanBuilder<'_, '_>,
    passages: impl Iterator<Item = PositionId>,
) -> Result<BTreeSet<PositionId>, PlanError> {
    let passages = passages.map(|at| builder.passage(at)).collect::<Result<Vec<_>, _>>()?;
    let Some(lowest) = passages.iter().max_by_key(|passage| passage.depth) else {
        return Ok(BTreeSet::new());
    };
    let tip = builder.stored_tip;
    let common = if lowest.id == tip {
        Some(tip)
    } else {
        builder.slice.found_position(ReadKey::CommonAncestor(lowest.id, tip))?
    };
    if common == Some(lowest.id) {
        return Ok(BTreeSet::new());
    }
    let depth = common.map(|common| builder.position(common)).transpose()?.map_or(0, |common| common.depth);
    Ok(passages.iter().filter(|passage| passage.depth > depth).map(|passage| passage.id).collect())
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
