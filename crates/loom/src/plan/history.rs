//! Undo and redo: one timeline of keystrokes and operations, newest first.
//!
//! Undo is a new operation with the cells of another one swapped, applied only where a cell still holds what
//! that one wrote; the rest is reported, not forced. No node is ever removed by it (spec: loom §2).

use std::collections::BTreeMap;

use crate::cell::{CellChange, CellKey, CellValue};
use crate::draft::{Draft, Slot};
use crate::id::NodeId;
use crate::operation::{OpKind, OpRecord, TimelineEffect};
use crate::plan::grow::Growth;
use crate::plan::{DraftChange, PlanError, Refusal};
use crate::slice::Key;

pub(super) fn undo(growth: &mut Growth<'_, '_>) -> Result<(), PlanError> {
    let timeline = growth.slice.timeline(&growth.request.view)?;
    if keystroke(growth, |draft| draft.newest_at(timeline.depth), |draft| draft.undo(timeline.depth))? {
        return Ok(());
    }
    let newest = timeline.undo.ok_or(Refusal::NothingToUndo)?;
    let last = record(growth, newest)?;
    // An answer counts as one with the commit its generation began with.
    let group = match last.op.timeline {
        TimelineEffect::Join(first) => vec![last, record(growth, first)?],
        _ => vec![last],
    };
    let then = group.last().and_then(|first| first.undo_prev);
    let cells = merged(group.iter().rev().map(|record| record.op.cells.as_slice()));
    let of = group.iter().map(|record| record.seq).collect();
    let depth = timeline.depth.saturating_sub(1);
    apply(growth, cells.iter().map(CellChange::swapped), depth, timeline.tick + 1)?;
    growth.name(OpKind::Undo);
    growth.timeline(TimelineEffect::Undo { of, then });
    Ok(())
}

pub(super) fn redo(growth: &mut Growth<'_, '_>) -> Result<(), PlanError> {
    let timeline = growth.slice.timeline(&growth.request.view)?;
    if keystroke(growth, |draft| draft.undone_at(timeline.depth), |draft| draft.redo(timeline.depth))? {
        return Ok(());
    }
    let undone = record(growth, timeline.redo.ok_or(Refusal::NothingToRedo)?)?;
    let changes = undone.op.cells.iter().map(CellChange::swapped);
    apply(growth, changes, timeline.depth + 1, timeline.tick + 1)?;
    growth.name(OpKind::Redo);
    growth.timeline(TimelineEffect::Redo { of: undone.seq, then: undone.redo_prev });
    Ok(())
}

fn record(growth: &Growth<'_, '_>, seq: crate::id::Seq) -> Result<OpRecord, PlanError> {
    Ok(growth.slice.operation(seq)?.ok_or(Refusal::NothingToUndo)?.clone())
}

/// Steps over the newest keystroke among the view's drafts, if there is one at this place of the timeline.
fn keystroke(
    growth: &mut Growth<'_, '_>,
    tick: impl Fn(&Draft) -> Option<u64>,
    step: impl Fn(&mut Draft) -> Result<bool, crate::draft::SpliceError>,
) -> Result<bool, PlanError> {
    let drafts = growth.slice.drafts(&growth.request.view)?;
    let newest = drafts
        .iter()
        .filter_map(|(slot, draft)| Some((tick(draft)?, slot, draft)))
        .max_by_key(|found| found.0);
    let Some((_, slot, draft)) = newest else { return Ok(false) };
    let mut stepped = draft.clone();
    if !step(&mut stepped)? {
        return Ok(false);
    }
    growth.change_draft(DraftChange {
        view: growth.view(),
        slot: *slot,
        expected: Some(draft.revision),
        new: Some(stepped),
    });
    Ok(true)
}

/// Several operations' changes as one: for each cell the first old value and the last new one.
fn merged<'a>(oldest_first: impl Iterator<Item = &'a [CellChange]>) -> Vec<CellChange> {
    let mut order = Vec::new();
    let mut by_key: BTreeMap<CellKey, CellChange> = BTreeMap::new();
    for change in oldest_first.flatten() {
        by_key.entry(change.key.clone()).and_modify(|first| first.new = change.new.clone()).or_insert_with(
            || {
                order.push(change.key.clone());
                change.clone()
            },
        );
    }
    order.iter().filter_map(|key| by_key.remove(key)).collect()
}

/// Applies changes where the cell still holds what they expect; names the others.
fn apply(
    growth: &mut Growth<'_, '_>,
    changes: impl Iterator<Item = CellChange>,
    depth: u32,
    tick: u64,
) -> Result<(), PlanError> {
    for change in changes {
        let applied = match &change.key {
            CellKey::Draft { slot, .. } => draft(growth, *slot, &change, depth, tick)?,
            key => {
                let holds = growth.slice.cell(key)?.value == change.old;
                holds && reachable(growth, &change)?
            }
        };
        if applied {
            growth.push(change);
        } else {
            growth.skip(change.key);
        }
    }
    Ok(())
}

/// A tip that was pruned meanwhile is not gone back to.
fn reachable(growth: &Growth<'_, '_>, change: &CellChange) -> Result<bool, PlanError> {
    match (&change.key, change.new.as_position()) {
        (CellKey::Tip { .. }, Some(to)) => Ok(!growth.slice.fact(Key::Hidden(to))?),
        _ => Ok(true),
    }
}

/// Gives a draft back, or takes it again.
fn draft(
    growth: &mut Growth<'_, '_>,
    slot: Slot,
    change: &CellChange,
    depth: u32,
    tick: u64,
) -> Result<bool, PlanError> {
    let now = growth.draft(slot)?;
    let view = growth.view();
    match (&change.old, &change.new) {
        (CellValue::None, CellValue::Draft { base, text_of }) => {
            if now.is_some_and(|draft| !draft.text.is_empty() || draft.base.is_some()) {
                return Ok(false);
            }
            let base_text = match base {
                Some(base) => growth.node(*base)?.text().into_owned(),
                None => String::new(),
            };
            let mut draft = Draft::new(*base, base_text);
            draft.revision = now.map_or(0, |draft| draft.revision + 1);
            let text = joined(growth, text_of)?;
            if let Some(splice) = draft.splice_to(&text, depth, tick) {
                draft.splice(splice)?;
            }
            let expected = now.map(|draft| draft.revision);
            growth.change_draft(DraftChange { view, slot, expected, new: Some(draft) });
            Ok(true)
        }
        (CellValue::Draft { base, text_of }, CellValue::None) => {
            let text = joined(growth, text_of)?;
            let Some(draft) = now.filter(|draft| draft.text == text && draft.base == *base) else {
                return Ok(false);
            };
            let expected = Some(draft.revision);
            growth.change_draft(DraftChange { view, slot, expected, new: None });
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn joined(growth: &Growth<'_, '_>, nodes: &[NodeId]) -> Result<String, PlanError> {
    nodes.iter().map(|node| Ok(growth.node(*node)?.text().into_owned())).collect()
}
