//! Undo and redo: one timeline of keystrokes and operations, newest first.
//!
//! Undo is a new operation with the cells of another one swapped, applied only where a cell still holds what
//! that one wrote; the rest is reported, not forced. No node is ever removed by it (spec: loom §2). A version that
//! was forgotten is not shown again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cell::{CellChange, CellKey, CellValue, OpTarget};
use crate::draft::{Draft, Slot};
use crate::id::{NodeId, PositionId, Seq};
use crate::operation::{OpKind, OpRecord, TimelineEffect};
use crate::plan::builder::PlanBuilder;
use crate::plan::{DraftChange, PlanError, Refusal, commit, flag};
use crate::read_set::ReadKey;

/// Operations that undo looks back over at most for a version that was not forgotten. Each costs up to two rounds of
/// planning: its record, then the versions that it chose.
const MAX_LOOKBACK: usize = 16;

/// Operations that are read in one round, of those that are undone together.
const PAGE: u64 = 256;

pub(super) fn undo(builder: &mut PlanBuilder<'_, '_>) -> Result<(), PlanError> {
    let timeline = builder.slice.timeline(&builder.request.view)?;
    let newest = |slot: Slot, draft: &Draft| draft.newest_at(timeline.depth).map(|tick| (tick, slot));
    if keystroke(builder, newest, |draft| draft.undo(timeline.depth))? {
        return Ok(());
    }
    let newest = timeline.undo.ok_or(Refusal::NothingToUndo)?;
    let last = record(builder, newest)?;
    // A turn counts as one: what was said, the answers, the results.
    let group = group(builder, last)?;
    let then = group.last().and_then(|first| first.undo_prev);
    let mut cells = merged(group.iter().rev().map(|record| record.op.cells.as_slice()));
    pass_forgotten(builder, &mut cells, then)?;
    let of = group.iter().map(|record| record.seq).collect();
    let depth = timeline.depth.saturating_sub(1);
    apply(builder, cells.iter().map(CellChange::swapped), depth, timeline.tick + 1)?;
    builder.name(OpKind::Undo);
    builder.timeline(TimelineEffect::Undo { of, then });
    Ok(())
}

pub(super) fn redo(builder: &mut PlanBuilder<'_, '_>) -> Result<(), PlanError> {
    let timeline = builder.slice.timeline(&builder.request.view)?;
    // What was undone last was made first.
    let oldest =
        |slot: Slot, draft: &Draft| draft.undone_at(timeline.depth).map(|tick| Reverse((tick, slot)));
    if keystroke(builder, oldest, |draft| draft.redo(timeline.depth))? {
        return Ok(());
    }
    let undone = record(builder, timeline.redo.ok_or(Refusal::NothingToRedo)?)?;
    let changes = undone.op.cells.iter().map(CellChange::swapped);
    apply(builder, changes, timeline.depth + 1, timeline.tick + 1)?;
    builder.name(OpKind::Redo);
    builder.timeline(TimelineEffect::Redo { of: undone.seq, then: undone.redo_prev });
    Ok(())
}

/// An operation with those it is undone together with, newest first.
fn group(builder: &PlanBuilder<'_, '_>, last: OpRecord) -> Result<Vec<OpRecord>, PlanError> {
    let TimelineEffect::Join(first) = last.op.timeline else { return Ok(vec![last]) };
    let mut group = vec![last];
    while let Some(newest) = group.last().filter(|record| record.seq != first) {
        let seq = newest.undo_prev.ok_or(Refusal::NothingToUndo)?;
        // From a multiple on: the next ones are of the same page.
        let page = ((seq.0 - seq.0 % PAGE).max(first.0)..=seq.0).map(|seq| ReadKey::Operation(Seq(seq)));
        builder.slice.require(page)?;
        group.push(record(builder, seq)?);
    }
    Ok(group)
}

fn record(builder: &PlanBuilder<'_, '_>, seq: Seq) -> Result<OpRecord, PlanError> {
    Ok(builder.slice.operation(seq)?.ok_or(Refusal::NothingToUndo)?.clone())
}

/// Steps over one keystroke among the view's drafts, the one that ranks highest, if there is one at this place
/// of the timeline.
fn keystroke<R: Ord>(
    builder: &mut PlanBuilder<'_, '_>,
    rank: impl Fn(Slot, &Draft) -> Option<R>,
    step: impl Fn(&mut Draft) -> Result<bool, crate::draft::SpliceError>,
) -> Result<bool, PlanError> {
    let drafts = builder.slice.drafts(&builder.request.view)?;
    let ranked = drafts.iter().filter_map(|(slot, draft)| Some((rank(*slot, draft)?, slot, draft)));
    let Some((_, slot, draft)) = ranked.max_by(|a, b| a.0.cmp(&b.0)) else { return Ok(false) };
    let mut stepped = draft.clone();
    if let (Slot::Edit(position), None) = (slot, draft.base) {
        // What waited for its turn starts from what is shown, as it did when it was typed.
        let shown = match builder.node(builder.shown(*position)?) {
            // What it was typed over was forgotten.
            Err(PlanError::Refused(Refusal::Purged(_))) => return Ok(false),
            shown => shown?,
        };
        let (undone, revision) = (draft.undone.clone(), draft.revision);
        stepped = Draft { undone, revision, ..Draft::new(Some(shown.id), shown.text()) };
    }
    if !step(&mut stepped)? {
        return Ok(false);
    }
    builder.change_draft(DraftChange {
        view: builder.view(),
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

/// Lets changes whose old value is a forgotten version begin with the newest one before it that was not forgotten.
fn pass_forgotten(
    builder: &PlanBuilder<'_, '_>,
    cells: &mut [CellChange],
    then: Option<Seq>,
) -> Result<(), PlanError> {
    let mut earlier = then;
    for _ in 0..MAX_LOOKBACK {
        let selected = cells.iter().filter_map(|change| selected(builder, &change.key, &change.old));
        builder.slice.require(selected.map(ReadKey::Node))?;
        let mut forgotten = Vec::new();
        for change in cells.iter_mut() {
            if is_forgotten(builder, &change.key, &change.old)? {
                forgotten.push(change);
            }
        }
        let Some(seq) = earlier.filter(|_| !forgotten.is_empty()) else { break };
        let before = record(builder, seq)?;
        earlier = before.undo_prev;
        for change in forgotten {
            let same = |other: &&CellChange| other.key == change.key && other.new == change.old;
            if let Some(step) = before.op.cells.iter().find(same) {
                change.old = step.old.clone();
            }
        }
    }
    Ok(())
}

/// The version that this view shows where a cell is its choice of versions and has this value.
fn selected(builder: &PlanBuilder<'_, '_>, key: &CellKey, value: &CellValue) -> Option<NodeId> {
    match key {
        CellKey::Selected { view, position } if *view == builder.request.view => {
            Some(value.as_node().unwrap_or(position.original()))
        }
        _ => None,
    }
}

fn is_forgotten(builder: &PlanBuilder<'_, '_>, key: &CellKey, value: &CellValue) -> Result<bool, PlanError> {
    let Some(node) = selected(builder, key, value) else { return Ok(false) };
    Ok(builder.slice.node(node)?.is_some_and(|row| row.purged))
}

/// Applies changes where the cell still holds what they expect; names the others. Tips come behind flags:
/// whether one can be gone back to depends on what is hidden by then. Drafts come last: what they start from
/// depends on what is shown by then.
fn apply(
    builder: &mut PlanBuilder<'_, '_>,
    changes: impl Iterator<Item = CellChange>,
    depth: u32,
    tick: u64,
) -> Result<(), PlanError> {
    let mut changes: Vec<CellChange> = changes.collect();
    changes.sort_by_key(|change| match change.key {
        CellKey::Tip { .. } => 1,
        CellKey::Draft { .. } => 2,
        _ => 0,
    });
    let shown_again = changes.iter().find_map(|change| match change.key {
        CellKey::Pruned { target: OpTarget::Position(id) } if change.new.is_none() => Some(id),
        _ => None,
    });
    builder.slice.require(changes.iter().flat_map(|change| read_by(builder, change, shown_again)))?;
    let mut hidden = Vec::new();
    for change in changes {
        let applied = match &change.key {
            CellKey::Draft { slot, .. } => draft(builder, *slot, &change, depth, tick)?,
            key => builder.slice.cell(key)?.value == change.old && allowed(builder, &change, shown_again)?,
        };
        if !applied {
            builder.skip(change.key);
            continue;
        }
        if let CellKey::Pruned { target: OpTarget::Position(id) } = change.key
            && change.new.is_set()
        {
            hidden.push(id);
        }
        builder.push(change);
    }
    // Views that came there meanwhile leave too.
    hidden.into_iter().try_for_each(|id| flag::retreat(builder, id))
}

/// What a change reads, so that all of them can ask at once.
fn read_by(builder: &PlanBuilder<'_, '_>, change: &CellChange, but: Option<PositionId>) -> Vec<ReadKey> {
    let CellKey::Draft { slot, .. } = change.key else {
        let tip = change.new.as_position().filter(|_| matches!(change.key, CellKey::Tip { .. }));
        let hidden = tip.map(|at| ReadKey::Hidden { at, but });
        let version = selected(builder, &change.key, &change.new).map(ReadKey::Node);
        return [ReadKey::Cell(change.key.clone())].into_iter().chain(hidden).chain(version).collect();
    };
    let held = builder.draft(slot).ok().flatten().and_then(|draft| draft.base);
    let mut nodes: Vec<NodeId> = held.into_iter().collect();
    for value in [&change.old, &change.new] {
        if let CellValue::Draft { base, text_of } = value {
            nodes.extend(base.iter().chain(text_of));
        }
    }
    nodes.into_iter().map(ReadKey::Node).collect()
}

/// A tip that was hidden meanwhile is not gone back to, a version that was forgotten is not shown, and the last visible
/// version is not pruned again.
/// `shown_again` is the position this step takes out of hiding.
fn allowed(
    builder: &PlanBuilder<'_, '_>,
    change: &CellChange,
    shown_again: Option<PositionId>,
) -> Result<bool, PlanError> {
    match &change.key {
        CellKey::Tip { .. } => match change.new.as_position() {
            Some(to) => Ok(!builder.slice.fact(ReadKey::Hidden { at: to, but: shown_again })?),
            None => Ok(true),
        },
        CellKey::Selected { .. } => Ok(!is_forgotten(builder, &change.key, &change.new)?),
        CellKey::Pruned { target: OpTarget::Version(id) } if change.new.is_set() => {
            let position = builder.slice.node(*id)?.ok_or(Refusal::NoNode(*id))?.node.position;
            Ok(builder.slice.fact(ReadKey::OtherVisible(position, *id))?)
        }
        _ => Ok(true),
    }
}

/// Gives a draft back, or takes it again. Keystrokes that were undone on the way wait in the draft that is
/// there, whatever takes its place, until they are done again.
fn draft(
    builder: &mut PlanBuilder<'_, '_>,
    slot: Slot,
    change: &CellChange,
    depth: u32,
    tick: u64,
) -> Result<bool, PlanError> {
    let now = builder.draft(slot)?;
    let view = builder.view();
    let expected = now.map(|draft| draft.revision);
    match (&change.old, &change.new) {
        (CellValue::None, CellValue::Draft { base, text_of }) => {
            if let Some(now) = now
                && !commit::unchanged(builder, now)?
            {
                return Ok(false);
            }
            // What was forgotten is not given back.
            let (Some(base_text), Some(text)) =
                (joined(builder, base.as_slice())?, joined(builder, text_of)?)
            else {
                return Ok(false);
            };
            let mut draft = Draft::new(*base, base_text);
            if let Some(splice) = draft.splice_to(&text, depth, tick) {
                draft.splice(splice)?;
            }
            if let Some(now) = now {
                draft.revision = now.revision + 1;
                draft.undone.clone_from(&now.undone);
            }
            builder.change_draft(DraftChange { view, slot, expected, new: Some(draft) });
            Ok(true)
        }
        (CellValue::Draft { base, text_of }, CellValue::None) => {
            let Some(text) = joined(builder, text_of)? else { return Ok(false) };
            let Some(draft) = now.filter(|draft| draft.text == text && draft.base == *base) else {
                return Ok(false);
            };
            // Undone keystrokes wait in a draft that holds nothing else.
            let (undone, revision) = (draft.undone.clone(), draft.revision + 1);
            let waits = !undone.is_empty();
            let new = waits.then(|| Draft { undone, revision, ..Draft::new(None, "") });
            builder.change_draft(DraftChange { view, slot, expected, new });
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The texts of nodes together; none where one was forgotten.
fn joined(builder: &PlanBuilder<'_, '_>, nodes: &[NodeId]) -> Result<Option<String>, PlanError> {
    builder.slice.require(nodes.iter().map(|node| ReadKey::Node(*node)))?;
    let texts = nodes.iter().map(|node| match builder.node(*node) {
        Ok(node) => Ok(Some(node.text().into_owned())),
        Err(PlanError::Refused(Refusal::Purged(_))) => Ok(None),
        Err(error) => Err(error),
    });
    texts.collect()
}
