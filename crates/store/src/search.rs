//! Full-text search: a set of hits, ranked; the same set in every store (spec: scale §2).

use std::borrow::Cow;

use loom::{NodeId, PositionId, Seq, Slot, TreeId, ViewName};
use text::bigrams::{Query, Term, for_each_token};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchScope {
    /// Every tree the principal sees.
    #[default]
    All,
    Tree(TreeId),
}

/// A node that meets the query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub tree: TreeId,
    pub node: NodeId,
    pub position: PositionId,
    pub short_id: String,
    /// The operation that made it.
    pub seq: Seq,
    /// How well it fits; greater is better. Comparable within one answer only.
    pub score: f64,
    /// Whether a tag or the bookmark of its position meets the query, and not its text.
    pub labelled: bool,
}

/// A draft that meets the query.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftHit {
    pub tree: TreeId,
    pub view: ViewName,
    pub slot: Slot,
    pub text: String,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hits {
    /// The best, best first, at most as many as asked for.
    pub hits: Vec<Hit>,
    /// Drafts, by their trees, at most as many as asked for. They are read from the rows: no index holds them.
    pub drafts: Vec<DraftHit>,
    /// Whether there were more than [`RANKED`] matches, of which only the newest were ranked.
    pub newest_only: bool,
    /// Whether the time was up before every match was seen.
    pub partial: bool,
    /// Whether the query was too long and its end left out.
    pub truncated: bool,
}

/// Matches that are ranked: the newest, when there are more.
pub const RANKED: usize = 20_000;

/// How often each term of a query occurs in a text.
#[derive(Debug)]
pub(crate) struct Occurrences {
    terms: Vec<usize>,
    len: usize,
}

impl Occurrences {
    /// Counts; none where the text does not meet the query.
    pub(crate) fn count(query: &Query, content: &[loom::Block]) -> Option<Self> {
        Self::count_in(query, &searched_text(content))
    }

    /// [`Self::count`] for a plain text.
    pub(crate) fn count_in(query: &Query, text: &str) -> Option<Self> {
        // One behind the other: a string for each would cost more than all else.
        let (mut joined, mut ends) = (String::new(), Vec::new());
        for_each_token(text, |token| {
            joined.push_str(token);
            ends.push(joined.len());
        });
        let starts = std::iter::once(&0).chain(&ends);
        let tokens: Vec<&str> = starts.zip(&ends).map(|(start, end)| &joined[*start..*end]).collect();
        if !query.matches(&tokens) {
            return None;
        }
        let terms = query.terms.iter().map(|term| occurrences(term, &tokens)).collect();
        Some(Self { terms, len: tokens.len() })
    }
}

fn occurrences(term: &Term, tokens: &[&str]) -> usize {
    match term {
        Term::Word(word) => tokens.iter().filter(|token| *token == word).count(),
        Term::Prefix(beginning) => {
            tokens.iter().filter(|token| token.starts_with(beginning.as_str())).count()
        }
        Term::Phrase { tokens: phrase, .. } => {
            let before = &phrase[..phrase.len().saturating_sub(1)];
            let same = |found: &&[&str]| found.iter().zip(before).all(|(token, wanted)| token == wanted);
            tokens.windows(phrase.len().max(1)).filter(same).count()
        }
    }
}

/// Scores matches of one query: BM25, where every term counts the same. All of them have all terms, so that how
/// rare a term is elsewhere hardly tells them apart.
pub(crate) fn scores(found: &[Occurrences]) -> Vec<f64> {
    const K1: f64 = 1.2;
    const B: f64 = 0.75;
    let all: usize = found.iter().map(|occurrences| occurrences.len).sum();
    let average = all as f64 / found.len().max(1) as f64;
    let score = |occurrences: &Occurrences| -> f64 {
        let norm = K1 * (1.0 - B + B * occurrences.len as f64 / average.max(1.0));
        occurrences.terms.iter().map(|count| *count as f64 * (K1 + 1.0) / (*count as f64 + norm)).sum()
    };
    found.iter().map(score).collect()
}

/// The text of a node that is searched: its words, those of tools included; thinking and arguments are not.
pub(crate) fn searched_text(content: &[loom::Block]) -> Cow<'_, str> {
    match content {
        [loom::Block::Text { text }] => Cow::Borrowed(text),
        _ => {
            let mut all = String::new();
            collect(content, &mut all);
            Cow::Owned(all)
        }
    }
}

/// Text blocks, and those within tool results, one a line.
fn collect(content: &[loom::Block], all: &mut String) {
    for block in content {
        match block {
            loom::Block::Text { text } => {
                all.push_str(text);
                all.push('\n');
            }
            loom::Block::ToolResult { blocks, .. } => collect(blocks, all),
            _ => {}
        }
    }
}
