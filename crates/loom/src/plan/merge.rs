//! Merging and splitting passages: text that goes to the passage above, or to the one below, with its authors.
//!
//! A position is never put between two others (ADR 0018): a passage that was merged into another stays as an empty
//! version, and a tail goes where such a one stands, or to a new position at the end.

use crate::cell::{CellKey, CellValue, KeepScope, OpTarget};
use crate::content::{Block, content_hash, plain_text};
use crate::id::{NodeId, PositionId};
use crate::node::{Node, Quote};
use crate::operation::OpKind;
use crate::plan::builder::{NewNode, PlanBuilder};
use crate::plan::{PlanError, Refusal, ShownPassage, commit, flag, travel};
use crate::position::PositionKind;
use crate::read_set::ReadKey;
use crate::tree::Mode;

/// Joins the text of the last of these passages to that of the first. They stand below one another, and those between
/// are empty.
pub(super) fn merge(
    builder: &mut PlanBuilder<'_, '_>,
    passages: &[ShownPassage],
    keep: bool,
) -> Result<(), PlanError> {
    let [upper, .., lower] = passages else { return Err(Refusal::Empty.into()) };
    ready(builder, passages)?;
    between_are_empty(builder, &passages[1..passages.len() - 1])?;
    let (above, below) = (builder.node(upper.node)?, builder.node(lower.node)?);
    let (head, tail) = (above.text(), below.text());
    if head.is_empty() || tail.is_empty() {
        return Err(Refusal::Empty.into());
    }
    let quote = quote_of(&below, 0..tail.len(), head.len());
    show(builder, *upper, &format!("{head}{tail}"), quote, &below)?;
    commit::set_text(builder, lower.position, "", None)?;
    accept(builder, lower.position, keep)
}

/// Parts the text of the first of these passages at byte `at`: the last of them, which is empty as those between are,
/// takes what stands behind it. Where the first is the only one and the tip, a new position below it does.
pub(super) fn split(
    builder: &mut PlanBuilder<'_, '_>,
    passages: &[ShownPassage],
    at: u64,
    keep: bool,
) -> Result<(), PlanError> {
    let [upper, rest @ ..] = passages else { return Err(Refusal::Empty.into()) };
    ready(builder, passages)?;
    between_are_empty(builder, rest)?;
    let from = builder.node(upper.node)?;
    let text = from.text().into_owned();
    let cut = usize::try_from(at).ok().filter(|cut| text.is_char_boundary(*cut));
    let cut = cut.ok_or(Refusal::Offset { at, len: text.len() as u64 })?;
    let (head, tail) = text.split_at(cut);
    if head.is_empty() || tail.is_empty() {
        return Err(Refusal::Empty.into());
    }
    let tail_quote = quote_of(&from, cut..text.len(), 0);
    let merged = Merged::read(builder, &from, cut)?;
    match merged.as_ref().and_then(|merged| merged.upper) {
        Some(upper_before) => reselect(builder, upper.position, upper_before)?,
        None => show(builder, *upper, head, quote_of(&from, 0..cut, 0), &from)?,
    }
    let Some(lower) = rest.last() else {
        if builder.tip()? != upper.position {
            return Err(Refusal::ChangedMeanwhile(upper.position).into());
        }
        let trust = from.trust.min(builder.request.trust);
        let mut seed = NewNode::new(vec![Block::text(tail)], builder.request.author.clone(), trust);
        seed.quote = Some(tail_quote);
        let position = builder.add_position(upper.position, PositionKind::Path, from.role, None, seed)?;
        builder.set_tip(position)?;
        builder.rename(OpKind::Edit);
        return Ok(());
    };
    match merged.and_then(|merged| merged.lower).filter(|(position, _)| *position == lower.position) {
        Some((position, lower_before)) => reselect(builder, position, lower_before)?,
        None => show(builder, *lower, tail, tail_quote, &from)?,
    }
    accept(builder, lower.position, keep)
}

/// Commits drafts, and checks that a document shows these passages one below the other on the view's path.
fn ready(builder: &mut PlanBuilder<'_, '_>, passages: &[ShownPassage]) -> Result<(), PlanError> {
    let keys = passages.iter().flat_map(|passage| {
        let (position, view) = (passage.position, builder.view());
        [
            ReadKey::Position(position),
            ReadKey::Cell(CellKey::Selected { view, position }),
            ReadKey::Cell(CellKey::Pruned { target: OpTarget::Version(passage.node) }),
            ReadKey::Cell(CellKey::Excluded { target: OpTarget::Version(passage.node) }),
            ReadKey::Cell(CellKey::Excluded { target: OpTarget::Position(position) }),
            ReadKey::Node(passage.node),
        ]
    });
    builder.slice.require(keys)?;
    if builder.mode()? == Mode::Dialogue {
        return Err(Refusal::NoDocument.into());
    }
    let mut above = None;
    for passage in passages {
        let position = builder.passage(passage.position)?;
        if above.is_some_and(|above| position.parent != Some(above)) {
            return Err(Refusal::NotOnPath(position.id).into());
        }
        above = Some(position.id);
    }
    if let Some(last) = above {
        let common = ReadKey::CommonAncestor(last, builder.stored_tip);
        if builder.slice.found_position(common)? != Some(last) {
            return Err(Refusal::NotOnPath(last).into());
        }
        travel::visible(builder, last)?;
    }
    commit::commit(builder)?;
    for passage in passages {
        if builder.shown(passage.position)? != passage.node {
            return Err(Refusal::ChangedMeanwhile(passage.position).into());
        }
    }
    for passage in passages.first().into_iter().chain(passages.last()) {
        for target in [OpTarget::Position(passage.position), OpTarget::Version(passage.node)] {
            if builder.value(&CellKey::Excluded { target })?.is_set() {
                return Err(Refusal::LeftOut(passage.position).into());
            }
        }
    }
    Ok(())
}

fn between_are_empty(builder: &PlanBuilder<'_, '_>, passages: &[ShownPassage]) -> Result<(), PlanError> {
    for passage in passages {
        let row = builder.slice.node(passage.node)?.ok_or(Refusal::NoNode(passage.node))?;
        if !plain_text(&row.node.content).is_empty() {
            return Err(Refusal::ChangedMeanwhile(passage.position).into());
        }
    }
    Ok(())
}

pub(super) fn quote_of(node: &Node, range: std::ops::Range<usize>, at: usize) -> Quote {
    let (from, to) = (range.start as u64, range.end as u64);
    Quote { node: node.id, chain: node.chain_hash, from, to, at: at as u64 }
}

/// Makes a passage show `text`, a part of which is quoted: by the version that was made the same way, else a new one.
pub(super) fn show(
    builder: &mut PlanBuilder<'_, '_>,
    at: ShownPassage,
    text: &str,
    quote: Quote,
    source: &Node,
) -> Result<(), PlanError> {
    let from = builder.node(at.node)?;
    let content = commit::edited(&from, text);
    let same = ReadKey::VersionWithContent(at.position, content_hash(&content)?);
    if let Some(same) = builder.slice.found_node(same)?
        && let Some(row) = builder.slice.node(same)?
        && !row.purged
        && row.node.edited_from == Some(from.id)
        && row.node.quote.as_ref() == Some(&quote)
    {
        return reselect(builder, at.position, same);
    }
    let trust = from.trust.min(source.trust).min(builder.request.trust);
    let mut seed = NewNode::new(content, builder.request.author.clone(), trust);
    (seed.edited_from, seed.quote) = (Some(from.id), Some(quote));
    let version = builder.add_version(&builder.position(at.position)?, seed)?;
    builder
        .set(CellKey::Selected { view: builder.view(), position: at.position }, CellValue::Node(version))?;
    Ok(())
}

fn reselect(builder: &mut PlanBuilder<'_, '_>, at: PositionId, version: NodeId) -> Result<(), PlanError> {
    builder.set(CellKey::Pruned { target: OpTarget::Version(version) }, CellValue::None)?;
    builder.set(CellKey::Selected { view: builder.view(), position: at }, CellValue::Node(version))?;
    Ok(())
}

/// What a version was merged of, where it is parted just there: the versions before are those that come back.
struct Merged {
    upper: Option<NodeId>,
    lower: Option<(PositionId, NodeId)>,
}

impl Merged {
    fn read(builder: &PlanBuilder<'_, '_>, node: &Node, cut: usize) -> Result<Option<Self>, PlanError> {
        let (Some(upper), Some(quote)) = (node.edited_from, &node.quote) else { return Ok(None) };
        let text = node.text();
        let is_end = quote.at == cut as u64 && quote.at + (quote.to - quote.from) == text.len() as u64;
        if !is_end {
            return Ok(None);
        }
        builder.slice.require([ReadKey::Node(upper), ReadKey::Node(quote.node)])?;
        let (head, tail) = text.split_at(cut);
        let says = |id: NodeId, text: &str| {
            let row = builder.slice.node(id)?;
            Ok::<_, PlanError>(row.filter(|row| !row.purged && row.node.text() == text).map(|row| &row.node))
        };
        let upper = says(upper, head)?.map(|node| node.id);
        let lower = says(quote.node, tail)?.map(|node| (node.position, node.id));
        Ok(Some(Self { upper, lower }))
    }
}

/// Text went from one passage to another and is what it was: where it says so, nothing below counts as drifted.
fn accept(builder: &mut PlanBuilder<'_, '_>, at: PositionId, keep: bool) -> Result<(), PlanError> {
    if keep {
        flag::keep(builder, at, KeepScope::Below)?;
    }
    builder.rename(OpKind::Edit);
    Ok(())
}
