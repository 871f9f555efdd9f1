//! Commit: drafts become nodes, in one operation (spec: loom §2).

use crate::cell::{CellKey, CellValue, Target};
use crate::content::{Block, content_hash, is_empty, plain_text};
use crate::digest::Digest;
use crate::draft::{Draft, Slot};
use crate::id::{NodeId, PositionId};
use crate::node::{Node, Role};
use crate::operation::OpKind;
use crate::plan::grow::{Growth, Seed};
use crate::plan::{DraftChange, MAX_NODE_BYTES, NewText, PlanError, Refusal, change};
use crate::position::PositionKind;
use crate::slice::Key;
use crate::tree::Mode;

/// Pending edits from the root to the tip each become a version; then the working buffer, if it is not
/// empty, becomes a human node under the tip, and the view moves to it.
pub(super) fn commit(growth: &mut Growth<'_, '_>) -> Result<(), PlanError> {
    let drafts = growth.slice.drafts(&growth.request.view)?;
    let pending: Vec<(PositionId, &Draft)> = drafts
        .iter()
        .filter_map(|(slot, draft)| match slot {
            Slot::Edit(at) => Some((*at, draft)),
            Slot::Buffer => None,
        })
        .collect();
    read_ahead(growth, &pending)?;
    let mut edits = Vec::new();
    for (at, draft) in pending {
        edits.push((growth.position(at)?, draft));
    }
    edits.sort_by_key(|(position, _)| (position.depth, position.id));
    for (position, draft) in edits {
        if unchanged(growth, draft)? {
            growth.drop_blank(Slot::Edit(position.id), draft);
            continue;
        }
        let version = set_text(growth, position.id, &draft.text, draft.base)?;
        take(growth, Slot::Edit(position.id), draft, vec![version]);
    }
    if let Some(buffer) = growth.draft(Slot::Buffer)? {
        if !buffer.text.is_empty() {
            let role = (growth.mode()? == Mode::Dialogue).then_some(Role::User);
            let text = NewText { content: vec![Block::text(&buffer.text)], role, ..typed(growth) };
            let nodes = grow(growth, &text)?;
            take(growth, Slot::Buffer, buffer, nodes);
        } else {
            growth.drop_blank(Slot::Buffer, buffer);
        }
    }
    if growth.has_work() {
        growth.name(OpKind::Commit);
    }
    Ok(())
}

/// Asks at once for what the pending edits will read, so that the rounds do not grow with their number.
fn read_ahead(growth: &Growth<'_, '_>, pending: &[(PositionId, &Draft)]) -> Result<(), PlanError> {
    let selected = |position| CellKey::Selected { view: growth.view(), position };
    let flag = |version| Key::Cell(CellKey::Pruned { target: Target::Version(version) });
    growth.slice.require(pending.iter().flat_map(|(at, draft)| {
        let base = draft.base.unwrap_or(at.original());
        [Key::Position(*at), Key::Cell(selected(*at)), Key::Node(at.original()), Key::Node(base)]
    }))?;
    let mut keys = Vec::new();
    for (at, draft) in pending {
        let wanted = growth.value(&selected(*at))?.as_node().unwrap_or(at.original());
        keys.extend([flag(wanted), Key::Node(wanted)]);
        if let Some(parent) = growth.position(*at)?.parent {
            keys.extend([Key::Cell(selected(parent)), Key::Node(parent.original())]);
        }
        let base = growth.node(draft.base.unwrap_or(at.original()))?;
        keys.push(Key::VersionWithContent(*at, content_hash(&edited(&base, &draft.text))?));
    }
    growth.slice.require(keys.iter().cloned())?;
    let mut last = Vec::new();
    for key in keys {
        match key {
            Key::Cell(CellKey::Selected { position, .. }) => {
                let wanted = growth.value(&selected(position))?.as_node().unwrap_or(position.original());
                last.extend([flag(wanted), Key::Node(wanted)]);
            }
            Key::VersionWithContent(..) => {
                last.extend(
                    growth.slice.found_node(key)?.into_iter().flat_map(|at| [flag(at), Key::Node(at)]),
                );
            }
            _ => {}
        }
    }
    Ok(growth.slice.require(last)?)
}

/// Whether a pending edit says what its base says: it holds nothing.
pub(super) fn unchanged(growth: &Growth<'_, '_>, draft: &Draft) -> Result<bool, PlanError> {
    match draft.base {
        None => Ok(draft.text.is_empty()),
        Some(base) => Ok(growth.node(base)?.text() == draft.text),
    }
}

/// Commits, then adds a node under the tip.
pub(super) fn append(growth: &mut Growth<'_, '_>, text: &NewText) -> Result<(), PlanError> {
    commit(growth)?;
    grow(growth, text)?;
    growth.rename(OpKind::Commit);
    Ok(())
}

/// Commits as the first half of a generation.
pub(super) fn before_generation(growth: &mut Growth<'_, '_>) -> Result<(), PlanError> {
    commit(growth)?;
    if growth.has_work() {
        growth.rename(OpKind::Generate);
    }
    Ok(())
}

/// What the one who asks types, without its text.
fn typed(growth: &Growth<'_, '_>) -> NewText {
    NewText {
        content: Vec::new(),
        author: growth.request.author.clone(),
        role: None,
        trust: growth.request.trust,
    }
}

/// Adds a text under the tip and moves there. A document's text over the limit of one node becomes several,
/// cut at paragraphs where there are any.
fn grow(growth: &mut Growth<'_, '_>, new: &NewText) -> Result<Vec<NodeId>, PlanError> {
    let mode = growth.mode()?;
    if (mode == Mode::Dialogue) != new.role.is_some() {
        return Err(Refusal::Role.into());
    }
    if is_empty(&new.content) {
        return Err(Refusal::Empty.into());
    }
    let contents = match (&new.content[..], mode) {
        ([Block::Text { text }], Mode::Buffer) if text.len() as u64 > MAX_NODE_BYTES => {
            pieces(text, MAX_NODE_BYTES as usize).into_iter().map(|piece| vec![Block::text(piece)]).collect()
        }
        _ => vec![new.content.clone()],
    };
    let mut nodes = Vec::new();
    for content in contents {
        let tip = growth.tip()?;
        let seed = Seed::new(content, new.author.clone(), new.trust);
        let position = growth.add_position(tip, PositionKind::Path, new.role, None, seed)?;
        growth.set_tip(position)?;
        nodes.push(position.original());
    }
    Ok(nodes)
}

/// Cuts a text into pieces of at most `limit` bytes, at paragraphs, else sentences, else clusters.
fn pieces(text: &str, limit: usize) -> Vec<&str> {
    let mut rest = text;
    let mut pieces = Vec::new();
    while rest.len() > limit {
        // The second half of the piece is searched for a good place; a character boundary is always one.
        let mut cut = text::cut::window_start(rest, &(limit / 2..=limit));
        if cut == 0 || cut > limit {
            cut = (0..=limit).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(limit);
        }
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Records that a draft was taken, so that undo can give it back.
fn take(growth: &mut Growth<'_, '_>, slot: Slot, draft: &Draft, text_of: Vec<NodeId>) {
    let view = growth.view();
    growth.push(change(
        CellKey::Draft { view: view.clone(), slot },
        CellValue::Draft { base: draft.base, text_of },
        CellValue::None,
    ));
    growth.change_draft(DraftChange { view, slot, expected: Some(draft.revision), new: None });
}

/// Makes the view show `text` at a position: the version shown already, another version that says just this,
/// or a new one. Returns it.
pub(super) fn set_text(
    growth: &mut Growth<'_, '_>,
    at: PositionId,
    text: &str,
    base: Option<NodeId>,
) -> Result<NodeId, PlanError> {
    let position = growth.position(at)?;
    if position.parent.is_none() {
        return Err(Refusal::Genesis.into());
    }
    let shown = growth.shown(at)?;
    if growth.node(shown)?.text() == text {
        return Ok(shown);
    }
    let from = growth.node(base.unwrap_or(shown))?;
    let content = edited(&from, text);
    let version = match same_text(growth, at, text, content_hash(&content)?)? {
        Some(version) => {
            let pruned = CellKey::Pruned { target: Target::Version(version) };
            growth.set(pruned, CellValue::None)?;
            version
        }
        None => {
            let mut seed =
                Seed::new(content, growth.request.author.clone(), from.trust.min(growth.request.trust));
            seed.edited_from = Some(from.id);
            growth.add_version(&position, seed)?
        }
    };
    growth.set(CellKey::Selected { view: growth.view(), position: at }, CellValue::Node(version))?;
    Ok(version)
}

/// A version at a position that says just this. Edits all hold what [`edited`] makes, so their content tells;
/// the original may hold more than an edit keeps, so its text is compared.
fn same_text(
    growth: &Growth<'_, '_>,
    at: PositionId,
    text: &str,
    content: Digest,
) -> Result<Option<NodeId>, PlanError> {
    let original = growth.slice.node(at.original())?;
    if original.is_some_and(|row| !row.purged && row.node.text() == text) {
        return Ok(Some(at.original()));
    }
    let Some(same) = growth.slice.found_node(Key::VersionWithContent(at, content))? else { return Ok(None) };
    // A tombstone keeps the hash of what was forgotten: it does not say it any more.
    let row = growth.slice.node(same)?;
    Ok(row.filter(|row| !row.purged).map(|row| row.node.id))
}

/// The content of an edited node: the new text where the first text stood. What a provider wanted back
/// unchanged does not outlive the change (spec: loom §5 *opaque*).
pub(super) fn edited(from: &Node, text: &str) -> Vec<Block> {
    if plain_text(&from.content) == text {
        return from.content.clone();
    }
    let mut new = Some(Block::text(text));
    let mut content = Vec::new();
    for block in &from.content {
        match block {
            Block::Text { .. } => content.extend(new.take()),
            Block::Opaque { .. } => {}
            Block::Thinking { text, .. } => {
                content.push(Block::Thinking { text: text.clone(), opaque: None });
            }
            other => content.push(other.clone()),
        }
    }
    content.extend(new.take());
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_without_loss_and_within_the_limit() {
        let text = "One sentence here. Another one.\n\nA new paragraph é.\n".repeat(40);
        let pieces = pieces(&text, 100);
        assert!(pieces.len() > 1);
        assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= 100));
        assert_eq!(pieces.concat(), text);
        let one = "x".repeat(1000);
        assert_eq!(super::pieces(&one, 100).concat(), one);
    }
}
