//! Full-text search: a set of hits, ranked; the same set in every store (spec: scale §2).

use loom::{NodeId, PositionId, Seq, TreeId};

/// Where to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchScope {
    /// Every tree the principal sees.
    #[default]
    All,
    /// One tree.
    Tree(TreeId),
}

/// A node that meets the query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its tree.
    pub tree: TreeId,
    /// The node.
    pub node: NodeId,
    /// Where it stands.
    pub position: PositionId,
    /// Its short id.
    pub short_id: String,
    /// The operation that made it.
    pub seq: Seq,
    /// How well it fits; greater is better. Comparable within one answer only.
    pub score: f64,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hits {
    /// The best, best first, at most as many as asked for.
    pub hits: Vec<Hit>,
    /// Whether there were more than [`RANKED`] matches, of which only the newest were ranked.
    pub newest_only: bool,
    /// Whether the time was up before every match was seen.
    pub partial: bool,
    /// Whether the query was too long and its end left out.
    pub truncated: bool,
}

/// Matches that are ranked: the newest, when there are more.
pub const RANKED: usize = 20_000;

/// The text of a node that is indexed: its words, those of tools included; thinking and arguments are not.
pub(crate) fn indexed_text(content: &[loom::Block]) -> std::borrow::Cow<'_, str> {
    match content {
        [loom::Block::Text { text }] => text::bigrams::index_text(text),
        _ => {
            let mut all = String::new();
            collect(content, &mut all);
            std::borrow::Cow::Owned(text::bigrams::index_text(&all).into_owned())
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
