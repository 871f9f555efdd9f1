//! Searching the text of nodes.

use std::collections::BTreeMap;
use std::ops::Range;

use loom::path::position;
use loom::{NodeId, PositionKind, RowError, TreeId, TreeReader, ViewName, resolve};
use store::{RANKED, SearchScope};
use text::bigrams::Query;

use super::show::marks;
use super::{page_size, snippet};
use crate::app::App;
use crate::args::maintenance::Search;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::{HitShown, HitsShown};
use crate::results::tree::AnnotationShown;
use crate::rights::Asker;
use crate::transfer::naming;

/// Finds nodes, best first.
///
/// # Errors
/// `usage` for a query without a letter or digit; `not_found` for a tree that is not there.
pub(crate) async fn search(app: &App, asker: &Asker, args: Search) -> Result<CommandOutcome, CommandError> {
    let limit = page_size(app, args.limit)?;
    let query = Query::parse(&args.query);
    if query.terms.is_empty() {
        return Err(CommandError::usage(
            "the query has no word to search for",
            "give a word, or a \"phrase\"",
        ));
    }
    let scope = match &args.tree {
        Some(name) => SearchScope::Tree(app.tree_named(asker, name).await?),
        None => SearchScope::All,
    };
    // One more than is shown tells whether there are more.
    let mut found = app.runtime.store.search(&asker.principal, &args.query, scope, limit + 1).await?;
    if found.hits.len() > limit {
        found.hits.truncate(limit);
        let more = (limit * 5).min(app.settings.limits.show_all);
        let hint = if more > limit {
            format!("--limit {more} shows more")
        } else {
            "another word beside it finds fewer".to_owned()
        };
        app.frontend.note(&format!("the first {limit} are shown: {hint}"));
    }
    if found.truncated {
        app.frontend.note("the query was too long: its end was left out");
    }
    if found.partial && !found.newest_only {
        let seconds = app.settings.limits.search.as_secs_f64();
        app.frontend.note(&format!(
            "the search was ended after {seconds} s (limits.search): a rarer word finds more"
        ));
    }
    let mut by_tree: BTreeMap<TreeId, Vec<NodeId>> = BTreeMap::new();
    for hit in &found.hits {
        by_tree.entry(hit.tree).or_default().push(hit.node);
    }
    let mut titles = BTreeMap::new();
    let mut seen = BTreeMap::new();
    for (tree, nodes) in by_tree {
        let entry = app.runtime.store.tree(&asker.principal, tree).await?;
        titles.insert(tree, (entry.title, entry.short_id));
        let (query, imports) = (query.clone(), app.imports(asker, tree).await?);
        let read =
            app.read(asker, tree, move |rows| naming(rows, &imports, |rows| seen_in(rows, &nodes, &query)));
        seen.extend(read.await?);
    }
    let ranked = if found.newest_only { RANKED } else { found.hits.len() } as u64;
    let hits = found.hits.into_iter().filter_map(|hit| {
        let Seen { snippet, matches, kind, old, tags, annotations } = seen.remove(&hit.node)?;
        let (title, tree_short) = titles.get(&hit.tree).cloned().unwrap_or_default();
        Some(HitShown {
            title,
            tree_short,
            snippet,
            matches,
            kind,
            old,
            tags,
            annotations,
            tree: hit.tree,
            node: hit.node,
            short_id: hit.short_id,
            source: "node",
            score: hit.score,
        })
    });
    Ok(CommandOutcome::Hits(HitsShown {
        hits: hits.collect(),
        ranked,
        partial: found.partial || found.newest_only,
    }))
}

/// What is shown of a hit.
struct Seen {
    snippet: String,
    matches: Vec<Range<usize>>,
    kind: PositionKind,
    old: bool,
    tags: Vec<String>,
    annotations: Vec<AnnotationShown>,
}

fn seen_in(rows: &dyn TreeReader, nodes: &[NodeId], query: &Query) -> Result<Vec<(NodeId, Seen)>, RowError> {
    let main = ViewName::default();
    let found = rows.nodes(nodes)?;
    let marks = marks(rows, &main, found.iter().map(|row| row.node.position))?;
    let mut seen = Vec::new();
    for row in found {
        let at = position(rows, row.node.position)?;
        let snippet = snippet::around(&loom::content::whole_text(&row.node.content), query);
        let (tags, annotations) = marks.get(&at.id).cloned().unwrap_or_default();
        let matches = snippet::matches_in(&snippet, query);
        let old = resolve::shown(rows, &main, at.id)? != row.node.id;
        seen.push((row.node.id, Seen { snippet, matches, kind: at.kind, old, tags, annotations }));
    }
    Ok(seen)
}
