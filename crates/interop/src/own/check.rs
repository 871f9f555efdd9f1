//! Checks of single records against what was read before them.
//!
//! A record may refer only to records before it, so there is no cycle to find, and what passes is closed:
//! nothing in the tree names something that is not there. Fields that readers compute with (counts, ranges,
//! hashes) are recomputed or bounded here, once, so that nothing behind has to doubt them.

use loom::cell::TextOffset;
use loom::content::content_hash;
use loom::memory::MemoryTree;
use loom::position::Sums;
use loom::record::{Links, chain_hash};
use loom::{
    CellChange, CellKey, CellValue, Digest, Node, NodeId, NodeRow, OpRecord, OpTarget, OriginRole, Position,
    PositionId, PositionKind, Quote, Slot, TreeReader, TreeRow,
};

use super::line::ReadLimits;
use super::record::{NodeRecord, PositionRecord};

pub(super) type Why = String;

fn position(tree: &MemoryTree, id: PositionId) -> Result<Position, Why> {
    tree.position(id).ok().flatten().ok_or_else(|| format!("position {id} is not in the lines before"))
}

fn node(tree: &MemoryTree, id: NodeId) -> Result<NodeRow, Why> {
    tree.node(id).ok().flatten().ok_or_else(|| format!("node {id} is not in the lines before"))
}

/// A position, with what follows from its parent. `own` is still empty: it is that of the original.
pub(super) fn placed(tree: &MemoryTree, row: &TreeRow, record: &PositionRecord) -> Result<Position, Why> {
    let id = record.id;
    if tree.position(id).is_ok_and(|held| held.is_some()) {
        return Err(format!("position {id} is in the file twice"));
    }
    let mut made = Position {
        id,
        tree: row.id,
        parent: record.parent,
        kind: record.kind,
        role: record.role,
        depth: 0,
        jump: id,
        above: Sums::default(),
        own: Sums::default(),
    };
    let Some(parent) = record.parent else {
        return if id == row.root { Ok(made) } else { Err(format!("position {id} has no parent")) };
    };
    if id == row.root {
        return Err("the beginning of the tree has a parent".into());
    }
    let above = position(tree, parent)?;
    let fits = match record.kind {
        PositionKind::Path => above.kind == PositionKind::Path,
        PositionKind::Head | PositionKind::Note => parent == row.root,
        PositionKind::Annotation => true,
    };
    if !fits {
        return Err(format!("position {id} cannot be under {parent}"));
    }
    let jump = position(tree, above.jump)?;
    let jump_jump = position(tree, jump.jump)?;
    made.depth = above.depth.checked_add(1).ok_or("the path is too deep")?;
    made.jump = Position::child_jump(&above, &jump, &jump_jump);
    made.above = above.below();
    Ok(made)
}

/// A node, checked against everything it names. `here` is its position.
pub(super) fn read_node(
    tree: &MemoryTree,
    row: &TreeRow,
    here: &Position,
    record: NodeRecord,
    limits: &ReadLimits,
) -> Result<NodeRow, Why> {
    let id = record.id;
    if tree.node(id).is_ok_and(|held| held.is_some()) {
        return Err(format!("node {id} is in the file twice"));
    }
    if !loom::short_id::candidates(id.to_bytes()).any(|short| short == record.short_id) {
        return Err("its short id is not one of its id".into());
    }
    if record.role != here.role {
        return Err("its role is not that of its position".into());
    }
    if record.absent.is_some() != record.was.is_some()
        || (record.absent.is_some() && !record.content.is_empty())
    {
        return Err("an absent text has its size and nothing else".into());
    }
    let made = record.into_row(row.id);
    let node = &made.node;
    let counts = node.counts;
    if counts.bytes > limits.node {
        return Err(format!("it holds {} bytes; a node holds at most {}", counts.bytes, limits.node));
    }
    if counts.chars > counts.bytes || counts.graphemes > counts.chars {
        return Err("its size contradicts itself".into());
    }
    if here.parent.is_none() && counts.bytes != 0 {
        return Err("the beginning of the tree is not empty".into());
    }
    origins(tree, here, node)?;
    if let Some(quote) = &node.quote {
        quoted(tree, &made, quote)?;
    }
    hashes(tree, &made)?;
    Ok(made)
}

fn origins(tree: &MemoryTree, here: &Position, made: &Node) -> Result<(), Why> {
    for origin in &made.origins {
        if node(tree, origin.node)?.node.chain_hash != origin.chain {
            return Err(format!("it names another hash for {}", origin.node));
        }
    }
    let expected = match here.kind {
        PositionKind::Path => OriginRole::Parent,
        PositionKind::Head => OriginRole::Head,
        PositionKind::Note => OriginRole::Note,
        PositionKind::Annotation => OriginRole::Annotation,
    };
    match (here.parent, made.origins.first()) {
        (None, None) => Ok(()),
        (Some(parent), Some(first))
            if first.role == expected && node(tree, first.node)?.node.position == parent =>
        {
            Ok(())
        }
        _ => Err("its origin does not belong to the parent of its position".into()),
    }
}

/// A quote must be there, on character boundaries, in both texts.
fn quoted(tree: &MemoryTree, made: &NodeRow, quote: &Quote) -> Result<(), Why> {
    let source = node(tree, quote.node)?;
    if source.node.chain_hash != quote.chain {
        return Err(format!("it quotes {} under another hash", quote.node));
    }
    if source.purged || made.purged {
        return Ok(());
    }
    let (theirs, ours) = (source.node.text(), made.node.text());
    let range = |text: &str, from: u64, to: u64| -> Option<String> {
        text.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?).map(str::to_owned)
    };
    let taken = range(&theirs, quote.from, quote.to);
    let end = quote.to.checked_sub(quote.from).and_then(|len| quote.at.checked_add(len));
    let stands = end.and_then(|end| range(&ours, quote.at, end));
    if taken.is_some() && taken == stands {
        Ok(())
    } else {
        Err("what it quotes is not in the source".into())
    }
}

fn hashes(tree: &MemoryTree, made: &NodeRow) -> Result<(), Why> {
    let node_of = |id| node(tree, id).map(|row| row.node.chain_hash);
    let checked = &made.node;
    if !made.purged {
        let hash = content_hash(&checked.content).map_err(|error| error.to_string())?;
        if Some(hash) != checked.kept_hash {
            return Err("its content does not fit its hash".into());
        }
    }
    let links = Links {
        position: if checked.is_original() { None } else { Some(node_of(checked.position.original())?) },
        edited_from: checked.edited_from.map(node_of).transpose()?,
    };
    if chain_hash(checked, links) == Ok(checked.chain_hash) {
        Ok(())
    } else {
        Err("its record does not fit its chain hash".into())
    }
}

/// An operation's own hash and its place in the log.
pub(super) fn chained(record: &OpRecord, last: Option<(loom::Seq, Digest)>) -> Result<(), Why> {
    let (seq, prev) = last.unwrap_or((loom::Seq(0), Digest::ZERO));
    if record.seq.0.checked_sub(1) != Some(seq.0) {
        return Err(format!("it does not follow operation {seq}"));
    }
    if record.prev != prev {
        return Err("it does not name the operation before it".into());
    }
    if !record.purged && record.compute_hash().ok() != Some(record.hash) {
        return Err("its content does not fit its hash".into());
    }
    Ok(())
}

/// The rows an operation names.
pub(super) fn op_rows(tree: &MemoryTree, row: &TreeRow, record: &OpRecord) -> Result<(), Why> {
    if record.op.tree != row.id {
        return Err(format!("it belongs to tree {}", record.op.tree));
    }
    for (place, (id, chain)) in record.op.nodes.iter().enumerate() {
        let made = node(tree, *id)?;
        if (made.seq, u64::from(made.place)) != (record.seq, place as u64) || made.node.chain_hash != *chain {
            return Err(format!("it names node {id} at another place or hash"));
        }
    }
    record.op.cells.iter().try_for_each(|change| cell(tree, change))
}

fn cell(tree: &MemoryTree, change: &CellChange) -> Result<(), Why> {
    let here = match &change.key {
        CellKey::Selected { position: id, .. }
        | CellKey::LastTip { position: id, .. }
        | CellKey::Keep { position: id, .. }
        | CellKey::Bookmark { position: id }
        | CellKey::Tag { position: id, .. }
        | CellKey::Draft { slot: Slot::Edit(id), .. } => Some(position(tree, *id)?.id),
        CellKey::Trusted { node: id } => {
            node(tree, *id)?;
            None
        }
        CellKey::Pruned { target } | CellKey::Excluded { target } => {
            match target {
                OpTarget::Position(id) => position(tree, *id).map(|_| ())?,
                OpTarget::Version(id) => node(tree, *id).map(|_| ())?,
            }
            None
        }
        _ => None,
    };
    for value in [&change.old, &change.new] {
        match value {
            CellValue::Position(id) | CellValue::Place(TextOffset { position: id, .. }) => {
                let kind = position(tree, *id)?.kind;
                let on_path = matches!(
                    change.key,
                    CellKey::Tip { .. } | CellKey::LastTip { .. } | CellKey::WindowStart { .. }
                );
                if on_path && kind != PositionKind::Path {
                    return Err(format!("{} is off every path", change.key));
                }
            }
            CellValue::Node(id) => {
                let at = node(tree, *id)?.node.position;
                if here.is_some_and(|here| here != at) {
                    return Err(format!("{} is a version of another position", change.key));
                }
            }
            CellValue::Draft { base, text_of } => {
                for id in base.iter().chain(text_of) {
                    node(tree, *id)?;
                }
            }
            // These name nothing. Every kind of value is here by name, so that a new one is thought about.
            CellValue::None
            | CellValue::Set
            | CellValue::Keep(_)
            | CellValue::Text(_)
            | CellValue::Number(_) => {}
        }
    }
    Ok(())
}
