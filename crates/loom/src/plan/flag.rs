//! Flags and names: keep, prune, exclude, bookmarks, tags, views, the title.

use std::collections::BTreeSet;

use crate::cell::{CellKey, CellValue, KeepScope, OpTarget};
use crate::id::{NodeId, PositionId, ViewName};
use crate::node::Trust;
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::builder::PlanBuilder;
use crate::plan::{PlanError, Refusal, change};
use crate::read_set::ReadKey;

/// Accepts what stands above as the basis. Said again it counts from now, so it is recorded even if equal.
pub(super) fn keep(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    scope: KeepScope,
) -> Result<(), PlanError> {
    builder.passage(at)?;
    let key = CellKey::Keep { view: builder.view(), position: at };
    let old = builder.value(&key)?;
    builder.push(change(key, old, CellValue::Keep(scope)));
    builder.name(OpKind::Keep);
    Ok(())
}

/// Hides a position or a version. A view whose path goes through a pruned position moves to its parent in
/// the same step; the last visible version of a position stays.
pub(super) fn prune(builder: &mut PlanBuilder<'_, '_>, target: OpTarget) -> Result<(), PlanError> {
    match target {
        OpTarget::Position(id) => {
            builder.passage(id)?;
            retreat(builder, id)?;
        }
        OpTarget::Version(id) => {
            let position = builder.passage(builder.node(id)?.position)?.id;
            if !builder.slice.fact(ReadKey::OtherVisible(position, id))? {
                return Err(Refusal::LastVersion(id).into());
            }
        }
    }
    builder.set(CellKey::Pruned { target }, CellValue::Set)?;
    builder.name(OpKind::Prune);
    Ok(())
}

/// Moves every view whose path goes through a position to the position above it.
pub(super) fn retreat(builder: &mut PlanBuilder<'_, '_>, from: PositionId) -> Result<(), PlanError> {
    let parent = builder.position(from)?.parent.ok_or(Refusal::Genesis)?;
    let keys: Vec<CellKey> =
        builder.slice.views()?.iter().map(|view| CellKey::Tip { view: view.clone() }).collect();
    builder.slice.require(keys.iter().cloned().map(ReadKey::Cell))?;
    let mut tips = Vec::new();
    for key in keys {
        if let Some(tip) = builder.value(&key)?.as_position() {
            tips.push((key, ReadKey::CommonAncestor(from, tip)));
        }
    }
    builder.slice.require(tips.iter().map(|(_, common)| common.clone()))?;
    for (key, common) in tips {
        if builder.slice.found_position(common)? == Some(from) {
            builder.set(key, CellValue::Position(parent))?;
        }
    }
    Ok(())
}

/// Shows a pruned position or version again.
pub(super) fn restore(builder: &mut PlanBuilder<'_, '_>, target: OpTarget) -> Result<(), PlanError> {
    exists(builder, target)?;
    builder.set(CellKey::Pruned { target }, CellValue::None)?;
    builder.name(OpKind::Restore);
    Ok(())
}

/// Leaves something out of rendering and context, or takes it in again.
pub(super) fn exclude(
    builder: &mut PlanBuilder<'_, '_>,
    target: OpTarget,
    on: bool,
) -> Result<(), PlanError> {
    exists(builder, target)?;
    let value = if on { CellValue::Set } else { CellValue::None };
    builder.set(CellKey::Excluded { target }, value)?;
    builder.name(if on { OpKind::Exclude } else { OpKind::Include });
    Ok(())
}

fn exists(builder: &PlanBuilder<'_, '_>, target: OpTarget) -> Result<(), PlanError> {
    match target {
        OpTarget::Position(id) => builder.passage(id).map(drop),
        OpTarget::Version(id) => builder.passage(builder.node(id)?.position).map(drop),
    }
}

/// Sets a bookmark, or removes it.
pub(super) fn bookmark(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    title: Option<&str>,
) -> Result<(), PlanError> {
    builder.position(at)?;
    let value = title.map_or(CellValue::None, |title| CellValue::Text(title.to_owned()));
    builder.set(CellKey::Bookmark { position: at }, value)?;
    builder.name(OpKind::Bookmark);
    builder.timeline(TimelineEffect::None);
    Ok(())
}

/// Answers for texts from outside, or takes that back. `/undo`, which needs less of a right, does neither.
pub(super) fn trust(builder: &mut PlanBuilder<'_, '_>, nodes: &[NodeId], on: bool) -> Result<(), PlanError> {
    let key = |node: NodeId| CellKey::Trusted { node };
    builder.slice.require(nodes.iter().flat_map(|node| [ReadKey::Node(*node), ReadKey::Cell(key(*node))]))?;
    for id in nodes.iter().collect::<BTreeSet<_>>() {
        let trust = builder.node(*id)?.trust;
        let old = builder.value(&key(*id))?;
        if on && trust == Trust::Outside {
            // Set, too, in the history of a file, whose owner was another: said here it counts.
            builder.push(change(key(*id), old, CellValue::Set));
        } else if !on && trust == Trust::Workspace && old.is_set() {
            builder.push(change(key(*id), old, CellValue::None));
        }
    }
    builder.name(OpKind::Trust);
    builder.timeline(TimelineEffect::None);
    Ok(())
}

/// Sets a tag, or removes it.
pub(super) fn tag(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    tag: &str,
    on: bool,
) -> Result<(), PlanError> {
    builder.position(at)?;
    if tag.is_empty() {
        return Err(Refusal::Empty.into());
    }
    let value = if on { CellValue::Set } else { CellValue::None };
    builder.set(CellKey::Tag { position: at, tag: tag.to_owned() }, value)?;
    builder.name(OpKind::Tag);
    builder.timeline(TimelineEffect::None);
    Ok(())
}

/// Makes a view from the current one, with its selections.
pub(super) fn new_view(
    builder: &mut PlanBuilder<'_, '_>,
    name: &ViewName,
    agent: &str,
) -> Result<(), PlanError> {
    let key = CellKey::View { view: name.clone() };
    if !builder.value(&key)?.is_none() {
        return Err(Refusal::ViewExists(name.clone()).into());
    }
    builder.set(key, CellValue::Text(agent.to_owned()))?;
    builder.set(CellKey::Tip { view: name.clone() }, CellValue::Position(builder.stored_tip))?;
    let start = builder.value(&CellKey::WindowStart { view: builder.view() })?;
    builder.set(CellKey::WindowStart { view: name.clone() }, start)?;
    let selections = builder.slice.selections(&builder.request.view)?;
    let key = |position: PositionId| CellKey::Selected { view: name.clone(), position };
    builder.slice.require(selections.iter().map(|(position, _)| ReadKey::Cell(key(*position))))?;
    for (position, node) in selections {
        builder.set(key(*position), CellValue::Node(*node))?;
    }
    builder.name(OpKind::NewView);
    builder.timeline(TimelineEffect::None);
    Ok(())
}

/// Removes a view; what it showed stays in the tree.
pub(super) fn delete_view(builder: &mut PlanBuilder<'_, '_>, name: &ViewName) -> Result<(), PlanError> {
    if name.as_str() == ViewName::MAIN {
        return Err(Refusal::MainView.into());
    }
    let key = CellKey::View { view: name.clone() };
    if builder.value(&key)?.is_none() {
        return Err(Refusal::NoView(name.clone()).into());
    }
    builder.set(key, CellValue::None)?;
    builder.set(CellKey::Tip { view: name.clone() }, CellValue::None)?;
    builder.set(CellKey::WindowStart { view: name.clone() }, CellValue::None)?;
    let selections = builder.slice.selections(name)?;
    let key = |position: PositionId| CellKey::Selected { view: name.clone(), position };
    builder.slice.require(selections.iter().map(|(position, _)| ReadKey::Cell(key(*position))))?;
    for (position, _) in selections {
        builder.set(key(*position), CellValue::None)?;
    }
    builder.name(OpKind::DeleteView);
    builder.timeline(TimelineEffect::None);
    Ok(())
}

pub(super) fn rename(builder: &mut PlanBuilder<'_, '_>, title: &str) -> Result<(), PlanError> {
    let value = if title.is_empty() { CellValue::None } else { CellValue::Text(title.to_owned()) };
    builder.set(CellKey::Title, value)?;
    builder.name(OpKind::Rename);
    builder.timeline(TimelineEffect::None);
    Ok(())
}

/// Archives the tree, or takes it out of the archive.
pub(super) fn archive(builder: &mut PlanBuilder<'_, '_>, on: bool) -> Result<(), PlanError> {
    builder.set(CellKey::Archived, if on { CellValue::Set } else { CellValue::None })?;
    builder.name(if on { OpKind::Archive } else { OpKind::Unarchive });
    builder.timeline(TimelineEffect::None);
    Ok(())
}
