//! Texts off every path: the tree's head and note, and remarks on a position.

use crate::cell::{CellKey, CellValue};
use crate::content::plain_text;
use crate::id::PositionId;
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::grow::{Growth, Seed};
use crate::plan::{NewText, PlanError, Refusal, commit};
use crate::position::PositionKind;

/// Writes the head: the first time a position, then versions of it. An empty text takes it away.
pub(super) fn head(growth: &mut Growth<'_, '_>, text: &NewText) -> Result<(), PlanError> {
    pin(growth, &CellKey::Head, PositionKind::Head, text)
}

/// Writes the note, and says how many paragraphs before the end it stands.
pub(super) fn note(growth: &mut Growth<'_, '_>, text: &NewText, depth: Option<u64>) -> Result<(), PlanError> {
    pin(growth, &CellKey::Note, PositionKind::Note, text)?;
    if let Some(depth) = depth {
        growth.set(CellKey::NoteDepth, CellValue::Number(depth))?;
    }
    Ok(())
}

fn pin(
    growth: &mut Growth<'_, '_>,
    key: &CellKey,
    kind: PositionKind,
    text: &NewText,
) -> Result<(), PlanError> {
    let words = plain_text(&text.content).into_owned();
    match growth.value(key)?.as_position() {
        Some(position) => {
            commit::set_text(growth, position, &words, None)?;
        }
        None if words.is_empty() => return Err(Refusal::Empty.into()),
        None => {
            let root = growth.slice.tree()?.root;
            let seed = Seed::new(text.content.clone(), text.author.clone(), text.trust);
            let position = growth.add_position(root, kind, None, None, seed)?;
            growth.set(key.clone(), CellValue::Position(position))?;
        }
    }
    growth.name(OpKind::Pin);
    Ok(())
}

/// Hangs a remark on a position. It is never sent.
pub(super) fn annotate(growth: &mut Growth<'_, '_>, at: PositionId, text: &NewText) -> Result<(), PlanError> {
    growth.position(at)?;
    if plain_text(&text.content).is_empty() {
        return Err(Refusal::Empty.into());
    }
    let seed = Seed::new(text.content.clone(), text.author.clone(), text.trust);
    growth.add_position(at, PositionKind::Annotation, None, None, seed)?;
    growth.name(OpKind::Annotate);
    growth.timeline(TimelineEffect::None);
    Ok(())
}
