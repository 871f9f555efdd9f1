//! Who wrote each character (spec: loom §4).
//!
//! A grapheme cluster belongs to the version that introduced it, found by diffing along the `edited_from`
//! chain; quoted text keeps the authors it has in the node it was taken from. The diff is our own: it must
//! give the same spans on every machine, so it is bounded by steps, not by time.

mod diff;

use std::collections::HashMap;

use crate::id::NodeId;
use crate::node::NodeRow;
use crate::reader::{Attribution, AuthorSpan, RowError, TreeReader};

pub use diff::{Stretch, stretches};

/// The version of what authors are told by, besides the tables of Unicode: how texts are compared and spans joined.
const ALGORITHM: u64 = 1;

/// The version of kept spans: another one than this program's is told anew.
pub const VERSION: u64 = ALGORITHM << 32 | text::grapheme::TABLES as u64;

/// Who wrote each stretch of a node's text, in order, without gap or overlap. Empty for an empty text.
///
/// # Errors
/// [`RowError`] when the store fails or a version of the chain is missing.
pub fn attribute(rows: &dyn TreeReader, node: NodeId) -> Result<Vec<AuthorSpan>, RowError> {
    Attributions::new(rows).of(&read(rows, node)?)
}

/// Tells the authors of nodes from what a store keeps, and from the chain of versions behind it.
pub struct Attributions<'r> {
    rows: &'r dyn TreeReader,
    /// Nodes the store was asked for, with what it keeps.
    known: HashMap<NodeId, Option<Vec<AuthorSpan>>>,
    /// Whether the store is asked at all.
    is_anew: bool,
    computed: Vec<Attribution>,
}

impl std::fmt::Debug for Attributions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attributions").field("computed", &self.computed).finish_non_exhaustive()
    }
}

impl<'r> Attributions<'r> {
    pub fn new(rows: &'r dyn TreeReader) -> Self {
        Self { rows, known: HashMap::new(), is_anew: false, computed: Vec::new() }
    }

    /// Tells them from versions alone, whatever the store keeps.
    pub fn anew(rows: &'r dyn TreeReader) -> Self {
        Self { is_anew: true, ..Self::new(rows) }
    }

    /// Reads in one go what is kept of nodes that will be asked for.
    ///
    /// # Errors
    /// [`RowError`] when the store fails.
    pub fn load<'n>(&mut self, nodes: impl IntoIterator<Item = &'n NodeRow>) -> Result<(), RowError> {
        let ids: Vec<NodeId> =
            nodes.into_iter().filter(|row| source(row).is_some()).map(|row| row.node.id).collect();
        if !ids.is_empty() && !self.is_anew {
            self.known.extend(ids.iter().map(|id| (*id, None)));
            let kept = self.rows.attributions(&ids)?;
            self.known.extend(kept.into_iter().map(|kept| (kept.node, Some(kept.spans))));
        }
        Ok(())
    }

    /// The authors of a node's text, as [`attribute`] tells them.
    ///
    /// # Errors
    /// As [`attribute`].
    pub fn of(&mut self, node: &NodeRow) -> Result<Vec<AuthorSpan>, RowError> {
        if source(node).is_none() {
            return Ok(whole(node, &node.node.text()));
        }
        // Newest first: versions, perhaps a quote that leads to another chain, and the last one that is known.
        let mut chain = vec![node.clone()];
        let mut spans = Vec::new();
        while let Some(row) = chain.last()
            && let Some(next) = source(row)
        {
            if let Some(kept) = self.kept(row)? {
                spans = kept;
                break;
            }
            let next = read(self.rows, next)?;
            // What a version was made from was there before it.
            if (next.seq, next.place) >= (row.seq, row.place) {
                return Err(RowError::damaged("node", next.node.id));
            }
            chain.push(next);
        }
        // The oldest stands on nothing, or is known.
        let Some(oldest) = chain.pop() else { return Ok(spans) };
        let mut before = oldest.node.text().into_owned();
        if source(&oldest).is_none() {
            spans = whole(&oldest, &before);
        }
        let is_computed = !chain.is_empty();
        for row in chain.iter().rev() {
            let text = row.node.text().into_owned();
            spans = match &row.node.quote {
                Some(quote) if row.node.edited_from.is_none() => quoted(row, &text, quote, &spans),
                _ => carried(row, &before, &text, &spans),
            };
            before = text;
        }
        if is_computed {
            self.known.insert(node.node.id, Some(spans.clone()));
            self.computed.push(Attribution { node: node.node.id, spans: spans.clone() });
        }
        Ok(spans)
    }

    /// What the store did not keep yet.
    pub fn into_computed(self) -> Vec<Attribution> {
        self.computed
    }

    fn kept(&mut self, row: &NodeRow) -> Result<Option<Vec<AuthorSpan>>, RowError> {
        if !self.known.contains_key(&row.node.id) {
            self.load([row])?;
        }
        let kept = self.known.get(&row.node.id).cloned().flatten();
        match kept.as_deref() {
            Some(spans) if !fits(spans, &row.node.text()) => {
                Err(RowError::damaged("attribution of", row.node.id))
            }
            _ => Ok(kept),
        }
    }
}

/// The node whose authors a node has some of, if it has one.
fn source(row: &NodeRow) -> Option<NodeId> {
    row.node.edited_from.or_else(|| row.node.quote.as_ref().map(|quote| quote.node))
}

/// Whether spans cover a text, without gap or overlap.
fn fits(spans: &[AuthorSpan], text: &str) -> bool {
    let mut at = 0;
    for span in spans {
        if span.from != at || span.to <= span.from || !text.is_char_boundary(span.to) {
            return false;
        }
        at = span.to;
    }
    at == text.len()
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
