//! Texts off every path: the tree's head and note, and remarks on a position.

use crate::cell::{CellKey, CellValue};
use crate::content::plain_text;
use crate::id::PositionId;
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::builder::{NewNode, PlanBuilder};
use crate::plan::{NewText, PlanError, Refusal, commit};
use crate::position::PositionKind;

/// Writes the head: the first time a position, then versions of it. An empty text takes it away.
pub(super) fn head(builder: &mut PlanBuilder<'_, '_>, text: &NewText) -> Result<(), PlanError> {
    pin(builder, &CellKey::Head, PositionKind::Head, text)
}

/// Writes the note, and says how many paragraphs before the end it stands.
pub(super) fn note(
    builder: &mut PlanBuilder<'_, '_>,
    text: &NewText,
    depth: Option<u64>,
) -> Result<(), PlanError> {
    pin(builder, &CellKey::Note, PositionKind::Note, text)?;
    if let Some(depth) = depth {
        builder.set(CellKey::NoteDepth, CellValue::Number(depth))?;
    }
    Ok(())
}

fn pin(
    builder: &mut PlanBuilder<'_, '_>,
    key: &CellKey,
    kind: PositionKind,
    text: &NewText,
) -> Result<(), PlanError> {
    let words = plain_text(&text.content).into_owned();
    match builder.value(key)?.as_position() {
        Some(position) => {
            commit::set_text(builder, position, &words, None)?;
        }
        None if words.is_empty() => return Err(Refusal::Empty.into()),
        None => {
            let root = builder.slice.tree()?.root;
            let seed = NewNode::new(text.content.clone(), text.author.clone(), text.trust);
            let position = builder.add_position(root, kind, None, None, seed)?;
            builder.set(key.clone(), CellValue::Position(position))?;
        }
    }
    builder.name(OpKind::Pin);
    Ok(())
}

/// Hangs a remark on a position. It is sent only where a request names it.
pub(super) fn annotate(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    text: &NewText,
) -> Result<(), PlanError> {
    builder.position(at)?;
    if plain_text(&text.content).is_empty() {
        return Err(Refusal::Empty.into());
    }
    let seed = NewNode::new(text.content.clone(), text.author.clone(), text.trust);
    builder.add_position(at, PositionKind::Annotation, None, None, seed)?;
    builder.name(OpKind::Annotate);
    builder.timeline(TimelineEffect::None);
    Ok(())
}
