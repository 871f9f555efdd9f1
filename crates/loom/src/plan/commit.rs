//! Commit: drafts become nodes, in one operation (spec: loom §2).

use std::sync::Arc;

use crate::cell::{CellKey, CellValue, OpTarget};
use crate::content::{Block, content_hash, is_empty};
use crate::digest::Digest;
use crate::draft::{Draft, Slot};
use crate::id::{NodeId, PositionId};
use crate::node::{Node, Role};
use crate::operation::OpKind;
use crate::plan::builder::{NewNode, PlanBuilder};
use crate::plan::{DraftChange, MAX_NODE_BYTES, NewText, PlanError, Refusal, change, flag, travel};
use crate::position::PositionKind;
use crate::read_set::ReadKey;
use crate::tree::Mode;

/// Pending edits from the root to the tip each become a version; then the working buffer, if it is not
/// empty, becomes a human node under the tip, and the view moves to it.
pub(super) fn commit(builder: &mut PlanBuilder<'_, '_>) -> Result<(), PlanError> {
    let drafts = builder.slice.drafts(&builder.request.view)?;
    let pending: Vec<(PositionId, &Draft)> = drafts
        .iter()
        .filter_map(|(slot, draft)| match slot {
            Slot::Edit(at) => Some((*at, draft)),
            Slot::Buffer => None,
        })
        .collect();
    let read = pending.iter().map(|(at, draft)| (*at, draft.base, draft.text.as_str()));
    read_ahead(builder, &read.collect::<Vec<_>>())?;
    let mut edits = Vec::new();
    for (at, draft) in pending {
        edits.push((builder.position(at)?, draft));
    }
    edits.sort_by_key(|(position, _)| (position.depth, position.id));
    for (position, draft) in edits {
        if unchanged(builder, draft)? {
            builder.drop_blank(Slot::Edit(position.id), draft);
            continue;
        }
        let version = set_text(builder, position.id, &draft.text, draft.base)?;
        take(builder, Slot::Edit(position.id), draft, vec![version]);
    }
    if let Some(buffer) = builder.draft(Slot::Buffer)? {
        if !buffer.text.is_empty() {
            let role = (builder.mode()? == Mode::Dialogue).then_some(Role::User);
            let text = NewText { content: vec![Block::text(&buffer.text)], role, ..typed(builder) };
            let nodes = grow(builder, &text)?;
            take(builder, Slot::Buffer, buffer, nodes);
        } else {
            builder.drop_blank(Slot::Buffer, buffer);
        }
    }
    if builder.has_work() {
        builder.name(OpKind::Commit);
    }
    Ok(())
}

/// Asks at once for what edits will read, so that the rounds do not grow with their number: of each its position, the
/// version it was made from, and its text.
pub(super) fn read_ahead(
    builder: &PlanBuilder<'_, '_>,
    edits: &[(PositionId, Option<NodeId>, &str)],
) -> Result<(), PlanError> {
    let selected = |position| CellKey::Selected { view: builder.view(), position };
    let flag = |version| ReadKey::Cell(CellKey::Pruned { target: OpTarget::Version(version) });
    builder.slice.require(edits.iter().flat_map(|(at, base, _)| {
        let base = base.unwrap_or(at.original());
        [
            ReadKey::Position(*at),
            ReadKey::Cell(selected(*at)),
            ReadKey::Node(at.original()),
            ReadKey::Node(base),
        ]
    }))?;
    let mut keys = Vec::new();
    for (at, base, text) in edits {
        let wanted = builder.value(&selected(*at))?.as_node().unwrap_or(at.original());
        keys.extend([flag(wanted), ReadKey::Node(wanted)]);
        if let Some(parent) = builder.position(*at)?.parent {
            keys.extend([ReadKey::Cell(selected(parent)), ReadKey::Node(parent.original())]);
        }
        let base = builder.node(base.unwrap_or(at.original()))?;
        keys.push(ReadKey::VersionWithContent(*at, content_hash(&edited(&base, text))?));
    }
    builder.slice.require(keys.iter().cloned())?;
    let mut last = Vec::new();
    for key in keys {
        match key {
            ReadKey::Cell(CellKey::Selected { position, .. }) => {
                let wanted = builder.value(&selected(position))?.as_node().unwrap_or(position.original());
                last.extend([flag(wanted), ReadKey::Node(wanted)]);
            }
            ReadKey::VersionWithContent(..) => {
                last.extend(
                    builder.slice.found_node(key)?.into_iter().flat_map(|at| [flag(at), ReadKey::Node(at)]),
                );
            }
            _ => {}
        }
    }
    Ok(builder.slice.require(last)?)
}

/// Whether a pending edit says what its base says: it holds nothing.
pub(super) fn unchanged(builder: &PlanBuilder<'_, '_>, draft: &Draft) -> Result<bool, PlanError> {
    match draft.base {
        None => Ok(draft.text.is_empty()),
        Some(base) => Ok(builder.node(base)?.text() == draft.text),
    }
}

/// Commits, then adds texts under a position (the tip, if none), each below the one before it, and excludes others.
pub(super) fn append(
    builder: &mut PlanBuilder<'_, '_>,
    to: Option<PositionId>,
    texts: &[NewText],
    exclude: &[PositionId],
) -> Result<(), PlanError> {
    if texts.is_empty() {
        return Err(Refusal::Empty.into());
    }
    if let Some(to) = to {
        if builder.position(to)?.kind != PositionKind::Path {
            return Err(Refusal::OffPath(to).into());
        }
        travel::visible(builder, to)?;
    }
    commit(builder)?;
    if let Some(to) = to
        && builder.tip()? != to
    {
        travel::leave(builder, to)?;
        builder.set_tip(to)?;
    }
    grow_all(builder, texts)?;
    for position in exclude {
        flag::exclude(builder, OpTarget::Position(*position), true)?;
    }
    builder.rename(OpKind::Commit);
    Ok(())
}

/// Commits as the first half of a generation.
pub(super) fn before_generation(builder: &mut PlanBuilder<'_, '_>) -> Result<(), PlanError> {
    commit(builder)?;
    if builder.has_work() {
        builder.rename(OpKind::Generate);
    }
    Ok(())
}

/// What the one who asks types, without its text.
fn typed(builder: &PlanBuilder<'_, '_>) -> NewText {
    NewText {
        content: Vec::new(),
        author: builder.request.author.clone(),
        role: None,
        trust: builder.request.trust,
    }
}

/// Adds texts under the tip, each below the one before it.
pub(super) fn grow_all(builder: &mut PlanBuilder<'_, '_>, texts: &[NewText]) -> Result<(), PlanError> {
    texts.iter().try_for_each(|text| grow(builder, text).map(|_| ()))
}

/// Adds a text under the tip and moves there. A document's text over the limit of one node becomes several,
/// cut at paragraphs where there are any.
fn grow(builder: &mut PlanBuilder<'_, '_>, new: &NewText) -> Result<Vec<NodeId>, PlanError> {
    let mode = builder.mode()?;
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
        let tip = builder.tip()?;
        let seed = NewNode::new(content, new.author.clone(), new.trust);
        let position = builder.add_position(tip, PositionKind::Path, new.role, None, seed)?;
        builder.set_tip(position)?;
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
fn take(builder: &mut PlanBuilder<'_, '_>, slot: Slot, draft: &Draft, text_of: Vec<NodeId>) {
    let view = builder.view();
    builder.push(change(
        CellKey::Draft { view: view.clone(), slot },
        CellValue::Draft { base: draft.base, text_of },
        CellValue::None,
    ));
    builder.change_draft(DraftChange { view, slot, expected: Some(draft.revision), new: None });
}

/// Makes the view show `text` at a position: the version shown already, another version that says just this,
/// or a new one. Returns it.
pub(super) fn set_text(
    builder: &mut PlanBuilder<'_, '_>,
    at: PositionId,
    text: &str,
    base: Option<NodeId>,
) -> Result<NodeId, PlanError> {
    let position = builder.position(at)?;
    if position.parent.is_none() {
        return Err(Refusal::Genesis.into());
    }
    let shown = builder.shown(at)?;
    if builder.node(shown)?.text() == text {
        return Ok(shown);
    }
    let from = builder.node(base.unwrap_or(shown))?;
    let content = edited(&from, text);
    let version = match same_text(builder, at, text, content_hash(&content)?)? {
        Some(version) => {
            let pruned = CellKey::Pruned { target: OpTarget::Version(version) };
            builder.set(pruned, CellValue::None)?;
            version
        }
        None => {
            let mut seed =
                NewNode::new(content, builder.request.author.clone(), from.trust.min(builder.request.trust));
            seed.edited_from = Some(from.id);
            builder.add_version(&position, seed)?
        }
    };
    builder.set(CellKey::Selected { view: builder.view(), position: at }, CellValue::Node(version))?;
    Ok(version)
}

/// A version at a position that says just this. Edits all hold what [`edited`] makes, so their content tells;
/// the original may hold more than an edit keeps, so its text is compared.
fn same_text(
    builder: &PlanBuilder<'_, '_>,
    at: PositionId,
    text: &str,
    content: Digest,
) -> Result<Option<NodeId>, PlanError> {
    let original = builder.slice.node(at.original())?;
    if original.is_some_and(|row| !row.purged && row.node.text() == text) {
        return Ok(Some(at.original()));
    }
    let Some(same) = builder.slice.found_node(ReadKey::VersionWithContent(at, content))? else {
        return Ok(None);
    };
    // A tombstone keeps the hash of what was forgotten: it does not say it any more.
    let row = builder.slice.node(same)?;
    Ok(row.filter(|row| !row.purged).map(|row| row.node.id))
}

/// The content of an edited node: the new text where the first text stood. What a provider wanted back
/// unchanged does not outlive the change (spec: loom §5 *opaque*).
pub(super) fn edited(from: &Node, text: &str) -> Arc<Vec<Block>> {
    if from.said() == text {
        return Arc::clone(&from.content);
    }
    let mut new = Some(Block::text(text));
    let mut content = Vec::new();
    let has_text = from.content.iter().any(|block| matches!(block, Block::Text { .. }));
    for block in from.content.iter() {
        match block {
            // What a tool said stands in its result.
            Block::ToolResult { call_id, status, blocks } if !has_text && new.is_some() => {
                let others = blocks.iter().filter(|block| !matches!(block, Block::Text { .. }));
                let blocks = new.take().into_iter().chain(others.cloned()).collect();
                let call_id = call_id.clone();
                content.push(Block::ToolResult { call_id, status: *status, blocks });
            }
            Block::Text { .. } => content.extend(new.take()),
            Block::Opaque { .. } => {}
            Block::Thinking { text, .. } => {
                content.push(Block::Thinking { text: text.clone(), opaque: None });
            }
            other => content.push(other.clone()),
        }
    }
    content.extend(new.take());
    content.into()
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
