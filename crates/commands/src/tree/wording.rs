//! Cells of a tree in words, with the short ids people see.

use loom::{CellKey, NodeId, OpTarget, RowError, Slot, TreeReader};

/// What a cell is, as a person would say it.
pub(super) fn cell(rows: &dyn TreeReader, key: &CellKey) -> Result<String, RowError> {
    let short = |node: NodeId| -> Result<String, RowError> {
        Ok(rows.node(node)?.map_or_else(|| node.to_string(), |row| row.short_id))
    };
    let target = |target: &OpTarget| match target {
        OpTarget::Position(position) => short(position.original()),
        OpTarget::Version(node) => Ok(format!("version {}", short(*node)?)),
    };
    Ok(match key {
        CellKey::Title => "the title".to_owned(),
        CellKey::Archived => "whether the tree is archived".to_owned(),
        CellKey::Head => "the head".to_owned(),
        CellKey::Note => "the note".to_owned(),
        CellKey::NoteDepth => "the depth of the note".to_owned(),
        CellKey::View { view } => format!("the view {view}"),
        CellKey::Tip { view } => format!("the tip of {view}"),
        CellKey::WindowStart { view } => format!("the start of the window of {view}"),
        CellKey::Selected { view, position } => {
            format!("the version of {} shown in {view}", short(position.original())?)
        }
        CellKey::LastTip { view, position } => {
            format!("where {view} was last below {}", short(position.original())?)
        }
        CellKey::Keep { view, position } => {
            format!("the accepted basis of {} in {view}", short(position.original())?)
        }
        CellKey::Pruned { target: what } => format!("whether {} is pruned", target(what)?),
        CellKey::Excluded { target: what } => format!("whether {} is left out", target(what)?),
        CellKey::Bookmark { position } => format!("the bookmark of {}", short(position.original())?),
        CellKey::Tag { position, tag } => format!("the tag {tag:?} of {}", short(position.original())?),
        CellKey::Trusted { node } => format!("the trust of {}", short(*node)?),
        CellKey::Draft { view, slot: Slot::Buffer } => format!("the draft of {view}"),
        CellKey::Draft { view, slot: Slot::Edit(position) } => {
            format!("the pending edit of {} in {view}", short(position.original())?)
        }
    })
}
