//! Branching inside a passage: a sibling with the text before a place, quoting it so that its authors stay.

use crate::content::Block;
use crate::id::NodeId;
use crate::node::Quote;
use crate::operation::OpKind;
use crate::plan::builder::{NewNode, PlanBuilder};
use crate::plan::generate::NewToken;
use crate::plan::{PlanError, Refusal, commit, travel};
use crate::position::PositionKind;

/// Starts a sibling of the passage `node` stands at, with its text before byte `at`. At 0 there is no text to
/// keep (an empty original is never made), so the view moves to the parent; at the end of what is shown it
/// moves to the passage itself. Never to a place that is hidden.
pub(super) fn branch_at(
    builder: &mut PlanBuilder<'_, '_>,
    node: NodeId,
    at: u64,
    token: Option<&NewToken>,
) -> Result<(), PlanError> {
    let from = builder.node(node)?;
    let position = builder.passage(from.position)?;
    let parent = position.parent.ok_or(Refusal::Genesis)?;
    let text = from.text().into_owned();
    let len = text.len() as u64;
    let cut = usize::try_from(at).ok().filter(|cut| *cut <= text.len() && text.is_char_boundary(*cut));
    let cut = cut.ok_or(Refusal::Offset { at, len })?;
    travel::visible(builder, parent)?;
    commit::commit(builder)?;
    let at_the_end = cut > 0 && cut == text.len() && token.is_none() && builder.shown(position.id)? == node;
    if at_the_end && builder.tip()? == position.id {
        return travel::visible(builder, position.id);
    }
    travel::leave(builder, position.id)?;
    let base = if cut == 0 {
        parent
    } else if at_the_end {
        travel::visible(builder, position.id)?;
        position.id
    } else {
        let mut seed = NewNode::new(
            vec![Block::text(&text[..cut])],
            builder.request.author.clone(),
            from.trust.min(builder.request.trust),
        );
        seed.quote = Some(Quote { node, chain: from.chain_hash, from: 0, to: at, at: 0 });
        builder.add_position(parent, PositionKind::Path, position.role, None, seed)?
    };
    builder.set_tip(base)?;
    if let Some(token) = token {
        if token.text.is_empty() {
            return Err(Refusal::Empty.into());
        }
        let mut seed = NewNode::new(vec![Block::text(&token.text)], token.author.clone(), token.trust);
        seed.source = Some(token.source.clone());
        seed.generation = token.generation;
        let child = builder.add_position(base, PositionKind::Path, position.role, None, seed)?;
        builder.set_tip(child)?;
    }
    if builder.has_work() {
        builder.rename(OpKind::Branch);
    }
    Ok(())
}
