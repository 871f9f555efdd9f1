//! Who wrote each character (spec: loom §4).
//!
//! A grapheme cluster belongs to the version that introduced it, found by diffing along the `edited_from`
//! chain; quoted text keeps the authors it has in the node it was taken from. The diff is our own: it must
//! give the same spans on every machine, so it is bounded by steps, not by time.

mod diff;

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::node::{AuthorKind, NodeRow};
use crate::reader::{RowError, TreeReader};

pub use diff::{MAX_STEPS, Stretch, stretches};

/// A stretch of a node's text by one author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorSpan {
    /// First byte in the node's text.
    pub from: usize,
    /// The byte behind the last.
    pub to: usize,
    /// The version that introduced it; of another node where it is quoted.
    pub node: NodeId,
    pub author: String,
    pub kind: AuthorKind,
}

/// Who wrote each stretch of a node's text, in order, without gap or overlap. Empty for an empty text.
///
/// # Errors
/// [`RowError`] when the store fails or a version of the chain is missing.
pub fn attribute(rows: &dyn TreeReader, node: NodeId) -> Result<Vec<AuthorSpan>, RowError> {
    // The chain, newest first: versions, and at its end perhaps a quote that leads to another chain.
    let mut chain = vec![read(rows, node)?];
    while let Some(next) = chain
        .last()
        .and_then(|row| row.node.edited_from.or_else(|| row.node.quote.as_ref().map(|quote| quote.node)))
    {
        let next = read(rows, next)?;
        // What a version was made from was there before it.
        if chain.last().is_some_and(|row| (next.seq, next.place) >= (row.seq, row.place)) {
            return Err(RowError::damaged("node", next.node.id));
        }
        chain.push(next);
    }
    let mut spans: Vec<AuthorSpan> = Vec::new();
    let mut before = String::new();
    for row in chain.iter().rev() {
        let text = row.node.text().into_owned();
        spans = match &row.node.quote {
            Some(quote) if row.node.edited_from.is_none() => quoted(row, &text, quote, &spans),
            _ if row.node.edited_from.is_some() => carried(row, &before, &text, &spans),
            _ => whole(row, &text),
        };
        before = text;
    }
    Ok(spans)
}

fn read(rows: &dyn TreeReader, id: NodeId) -> Result<NodeRow, RowError> {
    rows.node(id)?.ok_or_else(|| RowError::missing("node", id))
}

fn span(row: &NodeRow, from: usize, to: usize) -> AuthorSpan {
    let author = &row.node.author;
    AuthorSpan { from, to, node: row.node.id, author: author.id.clone(), kind: author.kind }
}

fn whole(row: &NodeRow, text: &str) -> Vec<AuthorSpan> {
    if text.is_empty() { Vec::new() } else { vec![span(row, 0, text.len())] }
}

/// A first version that quotes: the quoted stretch keeps its authors, the rest is the quoter's.
fn quoted(row: &NodeRow, text: &str, quote: &crate::node::Quote, source: &[AuthorSpan]) -> Vec<AuthorSpan> {
    let bounds = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (from, to, at) = (bounds(quote.from), bounds(quote.to), bounds(quote.at));
    let end = at.saturating_add(to.saturating_sub(from));
    if end > text.len() || source.last().map_or(0, |last| last.to) < to {
        return whole(row, text);
    }
    let mut spans = Vec::new();
    push(&mut spans, span(row, 0, at));
    for part in source {
        let (start, stop) = (part.from.max(from), part.to.min(to));
        if start < stop {
            push(&mut spans, AuthorSpan { from: at + start - from, to: at + stop - from, ..part.clone() });
        }
    }
    push(&mut spans, span(row, end, text.len()));
    // Of a quote that is no longer the text it says, nothing is known.
    if spans.iter().all(|span| text.is_char_boundary(span.from)) { spans } else { whole(row, text) }
}

/// Authors after an edit of `before` into `after` by the author of `row`: what stayed keeps its author, what
/// is new is the editor's.
pub fn carried(row: &NodeRow, before: &str, after: &str, authors: &[AuthorSpan]) -> Vec<AuthorSpan> {
    let mut spans = Vec::new();
    for stretch in stretches(before, after) {
        match stretch {
            Stretch::Kept { old, new } => {
                let first = authors.partition_point(|part| part.to <= old.start);
                for part in authors[first..].iter().take_while(|part| part.from < old.end) {
                    let (start, stop) = (part.from.max(old.start), part.to.min(old.end));
                    let shift = |at: usize| at - old.start + new.start;
                    push(&mut spans, AuthorSpan { from: shift(start), to: shift(stop), ..part.clone() });
                }
            }
            Stretch::New { new } => push(&mut spans, span(row, new.start, new.end)),
        }
    }
    spans
}

/// Adds a span, joined to the one before if it is of the same version and author (a pending edit has no
/// version of its own yet).
fn push(spans: &mut Vec<AuthorSpan>, next: AuthorSpan) {
    if next.from >= next.to {
        return;
    }
    match spans.last_mut() {
        Some(last)
            if last.node == next.node
                && last.to == next.from
                && last.kind == next.kind
                && last.author == next.author =>
        {
            last.to = next.to;
        }
        _ => spans.push(next),
    }
}
