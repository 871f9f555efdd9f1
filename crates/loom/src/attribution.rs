//! Who wrote each character (spec: loom §4).
//!
//! A grapheme cluster belongs to the version that introduced it, found by diffing along the `edited_from`
//! chain; quoted text keeps the authors it has in the node it was taken from, also within a version, as where a
//! passage was merged into another. The diff is our own: it must give the same spans on every machine, so it is
//! bounded by steps, not by time.

mod diff;

use std::collections::HashMap;

use crate::id::NodeId;
use crate::node::NodeRow;
use crate::reader::{Attribution, AuthorSpan, RowError, TreeReader};

pub use diff::{Stretch, matching, stretches};

/// The version of what authors are told by, besides the tables of Unicode: how texts are compared and spans joined.
const ALGORITHM: u64 = 3;

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
            nodes.into_iter().filter(|row| sources(row).next().is_some()).map(|row| row.node.id).collect();
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
        if sources(node).next().is_none() {
            return Ok(whole(node, &node.node.text()));
        }
        if let Some(kept) = self.kept(node)? {
            return Ok(kept);
        }
        let mut told: HashMap<NodeId, Told> = HashMap::new();
        // A node waits here for those it was made from.
        let mut open = vec![node.clone()];
        while let Some(row) = open.last() {
            let id = row.node.id;
            let spans = if told.contains_key(&id) {
                None
            } else if let Some(kept) = self.kept(row)? {
                Some(kept)
            } else {
                let missing: Vec<NodeId> = sources(row).filter(|from| !told.contains_key(from)).collect();
                if !missing.is_empty() {
                    let order = (row.seq, row.place);
                    for from in missing {
                        let from = read(self.rows, from)?;
                        // What a version was made from was there before it.
                        if (from.seq, from.place) >= order {
                            return Err(RowError::damaged("node", from.node.id));
                        }
                        open.push(from);
                    }
                    continue;
                }
                Some(told_of(row, &row.node.text(), &told))
            };
            if let (Some(row), Some(spans)) = (open.pop(), spans) {
                told.insert(id, Told { text: row.node.text().into_owned(), spans });
            }
        }
        let spans = told.remove(&node.node.id).map(|told| told.spans).unwrap_or_default();
        self.known.insert(node.node.id, Some(spans.clone()));
        self.computed.push(Attribution { node: node.node.id, spans: spans.clone() });
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

/// The nodes whose authors a node has some of: the version it was made from, and the node it quotes.
fn sources(row: &NodeRow) -> impl Iterator<Item = NodeId> {
    row.node.edited_from.into_iter().chain(row.node.quote.as_ref().map(|quote| quote.node))
}

/// A node whose authors are known.
struct Told {
    text: String,
    spans: Vec<AuthorSpan>,
}

/// The authors of a node, from those of its sources.
fn told_of(row: &NodeRow, text: &str, told: &HashMap<NodeId, Told>) -> Vec<AuthorSpan> {
    let before = row.node.edited_from.and_then(|from| told.get(&from));
    let source = row.node.quote.as_ref().and_then(|quote| Some((quote, told.get(&quote.node)?)));
    match (before, source) {
        (None, None) => whole(row, text),
        (Some(before), None) => carried(row, &before.text, text, &before.spans),
        (before, Some((quote, source))) => quoted(row, text, quote, &source.spans, before),
    }
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

/// A node that quotes: the quoted stretch keeps its authors, the rest those of the version it was made from; without one
/// it is the quoter's.
fn quoted(
    row: &NodeRow,
    text: &str,
    quote: &crate::node::Quote,
    source: &[AuthorSpan],
    before: Option<&Told>,
) -> Vec<AuthorSpan> {
    let bounds = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (from, to, at) = (bounds(quote.from), bounds(quote.to), bounds(quote.at));
    let end = at.saturating_add(to.saturating_sub(from));
    let is_there = text.is_char_boundary(at) && text.is_char_boundary(end);
    if !is_there || source.last().map_or(0, |last| last.to) < to {
        // Of a quote that is no longer the text it says, nothing is known.
        return before
            .map_or_else(|| whole(row, text), |before| carried(row, &before.text, text, &before.spans));
    }
    let rest = format!("{}{}", &text[..at], &text[end..]);
    let rest = match before {
        Some(before) if !rest.is_empty() => carried(row, &before.text, &rest, &before.spans),
        _ => whole(row, &rest),
    };
    let mut spans = Vec::new();
    part(&mut spans, &rest, 0..at, 0);
    part(&mut spans, source, from..to, at);
    part(&mut spans, &rest, at..usize::MAX, end);
    on_clusters(text, spans)
}

/// Adds those of other spans that lie in a range, from byte `at` on.
fn part(spans: &mut Vec<AuthorSpan>, of: &[AuthorSpan], range: std::ops::Range<usize>, at: usize) {
    let first = of.partition_point(|span| span.to <= range.start);
    for span in of[first..].iter().take_while(|span| span.from < range.end) {
        let (start, stop) = (span.from.max(range.start), span.to.min(range.end));
        let shift = |byte: usize| byte - range.start + at;
        push(spans, AuthorSpan { from: shift(start), to: shift(stop), ..span.clone() });
    }
}

/// Spans that split no cluster: one that became of the ends of two texts belongs to the author of what stands behind.
fn on_clusters(text: &str, spans: Vec<AuthorSpan>) -> Vec<AuthorSpan> {
    let mut whole = Vec::with_capacity(spans.len());
    let mut from = 0;
    for span in spans {
        let to = text::grapheme::floor(text, span.to);
        if to > from {
            push(&mut whole, AuthorSpan { from, to, ..span });
            from = to;
        }
    }
    whole
}

/// Authors after an edit of `before` into `after` by the author of `row`: what stayed keeps its author, what
/// is new is the editor's.
pub fn carried(row: &NodeRow, before: &str, after: &str, authors: &[AuthorSpan]) -> Vec<AuthorSpan> {
    let mut spans = Vec::new();
    for stretch in diff::by_words(before, after) {
        match stretch {
            Stretch::Kept { old, new } => part(&mut spans, authors, old, new.start),
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
