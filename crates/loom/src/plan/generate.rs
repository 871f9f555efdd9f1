//! Taking a model's answer: a node of its own under the position it was asked at.

use std::sync::Arc;

use crate::cell::CellKey;
use crate::content::{Block, is_empty};
use crate::generation::{GenerationId, GenerationPlace, GenerationRow};
use crate::id::{NodeId, PositionId, Seq};
use crate::node::{Author, Finish, ModelSource, OriginRole, Role, Trust};
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::builder::{NewNode, PlanBuilder};
use crate::plan::{NewText, PlanError, Refusal};
use crate::position::PositionKind;
use crate::tree::Mode;

/// One choice of a finished or interrupted generation.
#[derive(Debug, Clone)]
pub struct Answer {
    pub generation: GenerationRow,
    /// The reserved id this choice takes.
    pub node: NodeId,
    /// What it says. Never empty: an empty answer makes no node.
    pub content: Arc<Vec<Block>>,
    pub author: Author,
    pub source: ModelSource,
    pub finish: Finish,
    /// The lowest trust its manifest sent.
    pub trust: Trust,
    /// Extra inputs that were sent.
    pub inputs: Vec<(OriginRole, NodeId)>,
    /// The operation that committed the drafts before it, if there was one: undone together.
    pub part_of: Option<Seq>,
    /// Whether the view goes to it, if its tip is still where the generation started.
    pub follow: bool,
}

/// What a tool said.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// What it stands below.
    pub to: PositionId,
    pub text: NewText,
    /// The operation that began the turn: undone together.
    pub part_of: Option<Seq>,
}

/// An alternative token, chosen out of stored probabilities.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub text: String,
    pub author: Author,
    /// The response it stands in, with its place.
    pub source: ModelSource,
    /// The generation it belongs to.
    pub generation: Option<GenerationId>,
    /// Trust of the node it was read from.
    pub trust: Trust,
}

pub(super) fn answer(builder: &mut PlanBuilder<'_, '_>, answer: &Answer) -> Result<(), PlanError> {
    if is_empty(&answer.content) {
        return Err(Refusal::Empty.into());
    }
    let role = (builder.mode()? == Mode::Dialogue).then_some(Role::Assistant);
    let GenerationPlace { parent, parent_node, .. } =
        *answer.generation.place.as_ref().ok_or(Refusal::NoPlace(answer.generation.id))?;
    // A head, a note and a remark are on no path, and nothing goes on from them.
    if builder.position(parent)?.kind != PositionKind::Path {
        return Err(Refusal::OffPath(parent).into());
    }
    let mut seed = NewNode::new(Arc::clone(&answer.content), answer.author.clone(), answer.trust);
    seed.source = Some(answer.source.clone());
    seed.generation = Some(answer.generation.id);
    seed.finish = Some(answer.finish.clone());
    seed.inputs.clone_from(&answer.inputs);
    let position = builder.add_child_of_version(
        parent,
        parent_node,
        PositionKind::Path,
        role,
        Some(answer.node),
        seed,
    )?;
    stand(builder, (parent, position), answer.follow, answer.part_of)
}

/// Adds what a tool said. The view goes there only if it is where the result belongs: whoever moved it meanwhile stays.
pub(super) fn result(builder: &mut PlanBuilder<'_, '_>, result: &CallResult) -> Result<(), PlanError> {
    let CallResult { to, text, part_of } = result;
    if is_empty(&text.content) {
        return Err(Refusal::Empty.into());
    }
    if builder.mode()? != Mode::Dialogue || text.role != Some(Role::Tool) {
        return Err(Refusal::Role.into());
    }
    if builder.position(*to)?.kind != PositionKind::Path {
        return Err(Refusal::OffPath(*to).into());
    }
    let above = builder.shown(*to)?;
    let seed = NewNode::new(text.content.clone(), text.author.clone(), text.trust);
    let position =
        builder.add_child_of_version(*to, above, PositionKind::Path, Some(Role::Tool), None, seed)?;
    stand(builder, (*to, position), true, *part_of)
}

/// Goes to what was added, if the view is where it was added, and counts it with its turn.
fn stand(
    builder: &mut PlanBuilder<'_, '_>,
    (parent, position): (PositionId, PositionId),
    follow: bool,
    part_of: Option<Seq>,
) -> Result<(), PlanError> {
    let here = builder.value(&CellKey::Tip { view: builder.view() })?.as_position();
    if follow && here == Some(parent) {
        builder.set_tip(position)?;
        builder.join(part_of)?;
    } else {
        builder.timeline(TimelineEffect::None);
    }
    builder.name(OpKind::Answer);
    Ok(())
}
