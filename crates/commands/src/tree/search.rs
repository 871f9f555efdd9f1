//! Searching the text of nodes.

use std::collections::BTreeMap;

use loom::{NodeId, TreeId};
use store::{RANKED, SearchScope};
use text::bigrams::Query;

use super::{page_size, snippet};
use crate::app::App;
use crate::args::maintenance::Search;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::{HitShown, HitsShown};
use crate::rights::Asker;

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
    let found = app.runtime.store.search(&asker.principal, &args.query, scope, limit).await?;
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
    let mut snippets = BTreeMap::new();
    for (tree, nodes) in by_tree {
        titles.insert(tree, app.runtime.store.tree(&asker.principal, tree).await?.title);
        let query = query.clone();
        let read = app.read(asker, tree, move |rows| {
            let cut = rows.nodes(&nodes)?.into_iter().map(|row| {
                let text = snippet::searched(&row.node.content);
                (row.node.id, snippet::around(&text, &query))
            });
            Ok(cut.collect::<Vec<_>>())
        });
        snippets.extend(read.await?);
    }
    let ranked = if found.newest_only { RANKED } else { found.hits.len() } as u64;
    let hits = found.hits.into_iter().map(|hit| HitShown {
        title: titles.get(&hit.tree).cloned().unwrap_or_default(),
        snippet: snippets.remove(&hit.node).unwrap_or_default(),
        tree: hit.tree,
        node: hit.node,
        short_id: hit.short_id,
        source: "node",
        score: hit.score,
    });
    Ok(CommandOutcome::Hits(HitsShown {
        hits: hits.collect(),
        ranked,
        partial: found.partial || found.newest_only,
    }))
}
