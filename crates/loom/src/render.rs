//! Rendering: the text a view shows, and who wrote which part of it.

mod pages;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::attribution::{Attributions, carried};
use crate::cell::{CellKey, CellValue};
use crate::content::Counts;
use crate::draft::Slot;
use crate::id::{NodeId, PositionId, ViewName};
use crate::node::{AuthorKind, NodeRow};
use crate::path::{ViewOverrides, checked_ancestor};
use crate::position::Position;
use crate::reader::{AuthorSpan, RowError, TreeReader};

pub use pages::{Pages, find_in_window, window_start};

/// One position of a path as shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    pub position: Position,
    pub row: NodeRow,
    /// Text of the passage; that of the pending edit where there is one.
    pub text: String,
    /// Whether `text` is a pending edit.
    pub pending: bool,
    /// Whether it is left out of rendering and context.
    pub excluded: bool,
}

/// The view's tip.
///
/// # Errors
/// [`RowError::Missing`] when there is no such view; [`RowError::Damaged`] when there is one and its tip is no position.
pub fn tip(rows: &dyn TreeReader, view: &ViewName) -> Result<PositionId, RowError> {
    match rows.cell(&CellKey::Tip { view: view.clone() })?.value {
        CellValue::Position(tip) => Ok(tip),
        CellValue::None if !is_view(rows, view)? => Err(RowError::missing("view", view)),
        _ => Err(RowError::damaged("view", view)),
    }
}

/// Whether a tree has a view of this name. It always has `main`.
fn is_view(rows: &dyn TreeReader, view: &ViewName) -> Result<bool, RowError> {
    Ok(view.as_str() == ViewName::MAIN || !rows.cell(&CellKey::View { view: view.clone() })?.value.is_none())
}

/// The last `limit` passages of a view's path that end at depth `to` (the tip's, if none), from the top.
/// Costs as many reads as passages, whatever stands above.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn window(
    rows: &dyn TreeReader,
    view: &ViewName,
    path: &ViewOverrides,
    to: Option<u32>,
    limit: usize,
) -> Result<Vec<Passage>, RowError> {
    let end = match to {
        None => path.tip.id,
        Some(depth) => checked_ancestor(rows, path.tip.clone(), depth)?.id,
    };
    ending_at(rows, view, path, end, limit)
}

/// The last `limit` passages of a view's path that end at a position of it, from the top.
fn ending_at(
    rows: &dyn TreeReader,
    view: &ViewName,
    path: &ViewOverrides,
    end: PositionId,
    limit: usize,
) -> Result<Vec<Passage>, RowError> {
    let pending = pending_edits(rows, view)?;
    let mut positions = rows.upwards(end, limit)?;
    positions.reverse();
    positions.iter().for_each(|position| path.meet(position));
    let shown: Vec<NodeId> = positions
        .iter()
        .map(|position| path.at(position.depth).map_or(position.id.original(), |exception| exception.shown))
        .collect();
    let nodes = rows.nodes(&shown)?;
    Ok(positions
        .into_iter()
        .zip(nodes)
        .map(|(position, row)| {
            let edit = pending.get(&position.id);
            let excluded = path.at(position.depth).is_some_and(|exception| exception.excluded);
            let text = edit.cloned().unwrap_or_else(|| row.node.text().into_owned());
            Passage { pending: edit.is_some(), excluded, text, position, row }
        })
        .collect())
}

/// The texts of the view's pending edits, by position.
///
/// # Errors
/// As the rows say.
pub fn pending_edits(
    rows: &dyn TreeReader,
    view: &ViewName,
) -> Result<BTreeMap<PositionId, String>, RowError> {
    let mut pending: BTreeMap<PositionId, String> = BTreeMap::new();
    for (slot, draft) in rows.drafts(view)? {
        // A draft that says what its base says is no edit; the view may show another version by now.
        if let (Slot::Edit(position), Some(base)) = (slot, draft.base)
            && rows.node(base)?.is_none_or(|base| base.node.text() != draft.text)
        {
            pending.insert(position, draft.text);
        }
    }
    Ok(pending)
}

/// A stretch of the rendering by one author. Offsets are grapheme clusters: sums of per-node counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub start: u64,
    /// The cluster behind the last.
    pub end: u64,
    /// The position; none for the working buffer.
    pub position: Option<PositionId>,
    /// The node shown there; none for the working buffer.
    pub node: Option<NodeId>,
    /// The version that introduced it, of another passage where it is quoted; none for the working buffer.
    pub introduced_by: Option<NodeId>,
    pub author: String,
    pub kind: AuthorKind,
}

/// The text of a view, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendering {
    pub text: String,
    /// Who wrote what, in order; empty unless asked for.
    pub spans: Vec<Span>,
}

/// What a rendering is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// Pending edits and the working buffer too.
    pub drafts: bool,
    pub spans: bool,
}

/// Renders a view's whole path, with the working buffer after it. What is left out is not in it.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn render(rows: &dyn TreeReader, view: &ViewName, show: Show) -> Result<Rendering, RowError> {
    render_with(rows, view, show, &mut Attributions::new(rows))
}

/// As [`render`], with the authors of nodes from what is known of them already.
///
/// # Errors
/// As [`render`].
pub fn render_with(
    rows: &dyn TreeReader,
    view: &ViewName,
    show: Show,
    authors: &mut Attributions<'_>,
) -> Result<Rendering, RowError> {
    let path = ViewOverrides::read(rows, view, tip(rows, view)?)?;
    if !show.spans {
        return Ok(Rendering { text: plain_text(rows, view, &path, show.drafts)?, spans: Vec::new() });
    }
    let mut rendering = Rendering::default();
    let mut at = 0;
    let mut passages = window(rows, view, &path, None, usize::MAX)?;
    passages.retain(|passage| !passage.excluded);
    authors.load(passages.iter().map(|passage| &passage.row))?;
    for passage in passages {
        let pending = passage.pending && show.drafts;
        let committed;
        let text = if pending {
            &passage.text
        } else {
            committed = passage.row.node.text();
            committed.as_ref()
        };
        rendering.text.push_str(text);
        let node = passage.row.node.id;
        let parts = if pending { pending_spans(&passage, authors)? } else { authors.of(&passage.row)? };
        for part in parts {
            let clusters = Counts::of(&text[part.from..part.to]).graphemes;
            rendering.spans.push(Span {
                start: at,
                end: at + clusters,
                position: Some(passage.position.id),
                node: Some(node),
                introduced_by: Some(part.node),
                author: part.author,
                kind: part.kind,
            });
            at += clusters;
        }
    }
    if show.drafts
        && let Some(buffer) = rows.draft(view, Slot::Buffer)?
        && !buffer.text.is_empty()
    {
        rendering.text.push_str(&buffer.text);
        let clusters = Counts::of(&buffer.text).graphemes;
        rendering.spans.push(Span {
            start: at,
            end: at + clusters,
            position: None,
            node: None,
            introduced_by: None,
            author: crate::node::Author::OWNER.to_owned(),
            kind: AuthorKind::Human,
        });
    }
    Ok(rendering)
}

/// The text alone: originals read in one go, with what the view shows instead of them at its few overrides.
fn plain_text(
    rows: &dyn TreeReader,
    view: &ViewName,
    path: &ViewOverrides,
    drafts: bool,
) -> Result<String, RowError> {
    let pending = if drafts { pending_edits(rows, view)? } else { BTreeMap::new() };
    let mut text = String::new();
    for original in rows.original_texts(path.tip.id)? {
        let exception = path.at(original.depth);
        match (exception, pending.get(&original.position)) {
            (Some(exception), _) if exception.excluded => {}
            (_, Some(edit)) => text.push_str(edit),
            (Some(exception), None) => {
                let shown = exception.shown;
                let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
                text.push_str(&row.node.text());
            }
            (None, None) => text.push_str(&original.text),
        }
    }
    if drafts && let Some(buffer) = rows.draft(view, Slot::Buffer)? {
        text.push_str(&buffer.text);
    }
    Ok(text)
}

/// Authors of a pending edit: what stayed keeps its author, what is new is the owner's.
fn pending_spans(passage: &Passage, authors: &mut Attributions<'_>) -> Result<Vec<AuthorSpan>, RowError> {
    let before = passage.row.node.text();
    let authors = authors.of(&passage.row)?;
    let mut editor = passage.row.clone();
    editor.node.author = crate::node::Author::owner();
    Ok(carried(&editor, &before, &passage.text, &authors))
}
