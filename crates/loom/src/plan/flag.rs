//! Flags and names: keep, prune, exclude, bookmarks, tags, views, the title.

use crate::cell::{CellKey, CellValue, KeepScope, Target};
use crate::id::{PositionId, ViewName};
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::grow::Growth;
use crate::plan::{PlanError, Refusal, change};
use crate::slice::Key;

/// Accepts what stands above as the basis. Said again it counts from now, so it is recorded even if equal.
pub(super) fn keep(growth: &mut Growth<'_, '_>, at: PositionId, scope: KeepScope) -> Result<(), PlanError> {
    growth.passage(at)?;
    let key = CellKey::Keep { view: growth.view(), position: at };
    let old = growth.value(&key)?;
    growth.push(change(key, old, CellValue::Keep(scope)));
    growth.name(OpKind::Keep);
    Ok(())
}

/// Hides a position or a version. A view whose path goes through a pruned position moves to its parent in
/// the same step; the last visible version of a position stays.
pub(super) fn prune(growth: &mut Growth<'_, '_>, target: Target) -> Result<(), PlanError> {
    match target {
        Target::Position(id) => {
            growth.passage(id)?;
            retreat(growth, id)?;
        }
        Target::Version(id) => {
            let position = growth.passage(growth.node(id)?.position)?.id;
            if !growth.slice.fact(Key::OtherVisible(position, id))? {
                return Err(Refusal::LastVersion(id).into());
            }
        }
    }
    growth.set(CellKey::Pruned { target }, CellValue::Set)?;
    growth.name(OpKind::Prune);
    Ok(())
}

/// Moves every view whose path goes through a position to the position above it.
pub(super) fn retreat(growth: &mut Growth<'_, '_>, from: PositionId) -> Result<(), PlanError> {
    let parent = growth.position(from)?.parent.ok_or(Refusal::Genesis)?;
    let keys: Vec<CellKey> =
        growth.slice.views()?.iter().map(|view| CellKey::Tip { view: view.clone() }).collect();
    growth.slice.require(keys.iter().cloned().map(Key::Cell))?;
    let mut tips = Vec::new();
    for key in keys {
        if let Some(tip) = growth.value(&key)?.as_position() {
            tips.push((key, Key::CommonAncestor(from, tip)));
        }
    }
    growth.slice.require(tips.iter().map(|(_, common)| common.clone()))?;
    for (key, common) in tips {
        if growth.slice.found_position(common)? == Some(from) {
            growth.set(key, CellValue::Position(parent))?;
        }
    }
    Ok(())
}

/// Shows a pruned position or version again.
pub(super) fn restore(growth: &mut Growth<'_, '_>, target: Target) -> Result<(), PlanError> {
    exists(growth, target)?;
    growth.set(CellKey::Pruned { target }, CellValue::None)?;
    growth.name(OpKind::Restore);
    Ok(())
}

/// Leaves something out of rendering and context, or takes it in again.
pub(super) fn exclude(growth: &mut Growth<'_, '_>, target: Target, on: bool) -> Result<(), PlanError> {
    exists(growth, target)?;
    let value = if on { CellValue::Set } else { CellValue::None };
    growth.set(CellKey::Excluded { target }, value)?;
    growth.name(if on { OpKind::Exclude } else { OpKind::Include });
    Ok(())
}

fn exists(growth: &Growth<'_, '_>, target: Target) -> Result<(), PlanError> {
    match target {
        Target::Position(id) => growth.passage(id).map(drop),
        Target::Version(id) => growth.passage(growth.node(id)?.position).map(drop),
    }
}

/// Sets a bookmark, or removes it.
pub(super) fn bookmark(
    growth: &mut Growth<'_, '_>,
    at: PositionId,
    title: Option<&str>,
) -> Result<(), PlanError> {
    growth.position(at)?;
    let value = title.map_or(CellValue::None, |title| CellValue::Text(title.to_owned()));
    growth.set(CellKey::Bookmark { position: at }, value)?;
    growth.name(OpKind::Bookmark);
    growth.timeline(TimelineEffect::None);
    Ok(())
}

/// Sets a tag, or removes it.
pub(super) fn tag(growth: &mut Growth<'_, '_>, at: PositionId, tag: &str, on: bool) -> Result<(), PlanError> {
    growth.position(at)?;
    if tag.is_empty() {
        return Err(Refusal::Empty.into());
    }
    let value = if on { CellValue::Set } else { CellValue::None };
    growth.set(CellKey::Tag { position: at, tag: tag.to_owned() }, value)?;
    growth.name(OpKind::Tag);
    growth.timeline(TimelineEffect::None);
    Ok(())
}

/// Makes a view from the current one, with its selections.
pub(super) fn new_view(growth: &mut Growth<'_, '_>, name: &ViewName, agent: &str) -> Result<(), PlanError> {
    let key = CellKey::View { view: name.clone() };
    if !growth.value(&key)?.is_none() {
        return Err(Refusal::ViewExists(name.clone()).into());
    }
    growth.set(key, CellValue::Text(agent.to_owned()))?;
    growth.set(CellKey::Tip { view: name.clone() }, CellValue::Position(growth.stored_tip))?;
    let start = growth.value(&CellKey::WindowStart { view: growth.view() })?;
    growth.set(CellKey::WindowStart { view: name.clone() }, start)?;
    let selections = growth.slice.selections(&growth.request.view)?;
    let key = |position: PositionId| CellKey::Selected { view: name.clone(), position };
    growth.slice.require(selections.iter().map(|(position, _)| Key::Cell(key(*position))))?;
    for (position, node) in selections {
        growth.set(key(*position), CellValue::Node(*node))?;
    }
    growth.name(OpKind::NewView);
    growth.timeline(TimelineEffect::None);
    Ok(())
}

/// Removes a view; what it showed stays in the tree.
pub(super) fn delete_view(growth: &mut Growth<'_, '_>, name: &ViewName) -> Result<(), PlanError> {
    if name.as_str() == ViewName::MAIN {
        return Err(Refusal::MainView.into());
    }
    let key = CellKey::View { view: name.clone() };
    if growth.value(&key)?.is_none() {
        return Err(Refusal::NoView(name.clone()).into());
    }
    growth.set(key, CellValue::None)?;
    growth.set(CellKey::Tip { view: name.clone() }, CellValue::None)?;
    growth.set(CellKey::WindowStart { view: name.clone() }, CellValue::None)?;
    let selections = growth.slice.selections(name)?;
    let key = |position: PositionId| CellKey::Selected { view: name.clone(), position };
    growth.slice.require(selections.iter().map(|(position, _)| Key::Cell(key(*position))))?;
    for (position, _) in selections {
        growth.set(key(*position), CellValue::None)?;
    }
    growth.name(OpKind::DeleteView);
    growth.timeline(TimelineEffect::None);
    Ok(())
}

/// Changes the title.
pub(super) fn rename(growth: &mut Growth<'_, '_>, title: &str) -> Result<(), PlanError> {
    let value = if title.is_empty() { CellValue::None } else { CellValue::Text(title.to_owned()) };
    growth.set(CellKey::Title, value)?;
    growth.name(OpKind::Rename);
    growth.timeline(TimelineEffect::None);
    Ok(())
}

/// Archives the tree, or takes it out of the archive.
pub(super) fn archive(growth: &mut Growth<'_, '_>, on: bool) -> Result<(), PlanError> {
    growth.set(CellKey::Archived, if on { CellValue::Set } else { CellValue::None })?;
    growth.name(if on { OpKind::Archive } else { OpKind::Unarchive });
    growth.timeline(TimelineEffect::None);
    Ok(())
}
