//! Searching the text of nodes, their tags, the titles of bookmarks, and drafts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use loom::path::position;
use loom::render::tip;
use loom::{CellKey, NodeId, PositionKind, RowError, Slot, TreeId, TreeReader, ViewName, resolve};
use store::{DraftHit, RANKED, SearchScope};
use text::bigrams::Query;

use super::show::marks;
use super::telling::{glimpse, shown_at};
use super::{page_size, snippet};
use crate::app::App;
use crate::args::maintenance::Search;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::{DRAFT, HitShown, HitsShown, NODE, PassageNamed};
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
    let mut by_tree: BTreeMap<TreeId, Vec<Found>> = BTreeMap::new();
    for hit in &found.hits {
        by_tree.entry(hit.tree).or_default().push((hit.node, hit.labelled));
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
    let drafts = drafts(app, asker, std::mem::take(&mut found.drafts), &query).await?;
    let ranked = if found.newest_only { RANKED } else { found.hits.len() } as u64;
    let hits = found.hits.into_iter().filter_map(|hit| {
        let seen = seen.remove(&hit.node)?;
        let (title, tree_short) = titles.get(&hit.tree).cloned().unwrap_or_default();
        Some(HitShown {
            title,
            tree_short,
            snippet: seen.snippet,
            matches: seen.matches,
            kind: seen.kind,
            old: seen.old,
            tags: seen.tags,
            bookmark: seen.bookmark,
            annotations: seen.annotations,
            on: seen.on,
            tree: hit.tree,
            node: seen.node,
            short_id: seen.short_id,
            source: NODE,
            score: hit.score,
        })
    });
    Ok(CommandOutcome::Hits(HitsShown {
        hits: hits.chain(drafts).take(limit).collect(),
        ranked,
        partial: found.partial || found.newest_only,
    }))
}

/// Drafts as hits at the place where each stands.
async fn drafts(
    app: &App,
    asker: &Asker,
    found: Vec<DraftHit>,
    query: &Query,
) -> Result<Vec<HitShown>, CommandError> {
    let mut hits = Vec::new();
    for DraftHit { tree, view, slot, text } in found {
        // Its tree may have gone meanwhile.
        let Ok(entry) = app.runtime.store.tree(&asker.principal, tree).await else { continue };
        let row = app.read(asker, tree, move |rows| {
            let at = match slot {
                Slot::Buffer => tip(rows, &view)?,
                Slot::Edit(position) => position,
            };
            shown_at(rows, &view, at)
        });
        let row = row.await?;
        let snippet = snippet::around(&text, query);
        hits.push(HitShown {
            tree,
            title: entry.title,
            tree_short: entry.short_id,
            node: row.node.id,
            short_id: row.short_id,
            source: DRAFT,
            matches: snippet::matches_in(&snippet, query),
            snippet,
            kind: PositionKind::Path,
            old: false,
            tags: Vec::new(),
            bookmark: None,
            annotations: Vec::new(),
            on: None,
            score: 0.0,
        });
    }
    Ok(hits)
}

/// A node that was found, and whether by a label of its position.
type Found = (NodeId, bool);

/// What is shown of a hit.
struct Seen {
    node: NodeId,
    short_id: String,
    snippet: String,
    matches: Vec<Range<usize>>,
    kind: PositionKind,
    old: bool,
    tags: Vec<String>,
    bookmark: Option<String>,
    annotations: Vec<AnnotationShown>,
    on: Option<PassageNamed>,
}

fn seen_in(rows: &dyn TreeReader, found: &[Found], query: &Query) -> Result<Vec<(NodeId, Seen)>, RowError> {
    let main = ViewName::default();
    let nodes: Vec<NodeId> = found.iter().map(|(node, _)| *node).collect();
    let labelled: BTreeSet<NodeId> = found.iter().filter(|(_, is)| *is).map(|(node, _)| *node).collect();
    let found = rows.nodes(&nodes)?;
    let marks = marks(rows, &main, found.iter().map(|row| row.node.position))?;
    let mut seen = Vec::new();
    for mut row in found {
        let at = position(rows, row.node.position)?;
        let (id, shown) = (row.node.id, resolve::shown(rows, &main, at.id)?);
        // A label is of the place, whatever version stands there.
        if labelled.contains(&id) && shown != id {
            row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
        }
        let snippet = snippet::around(&loom::content::whole_text(&row.node.content), query);
        let (tags, annotations) = marks.get(&at.id).cloned().unwrap_or_default();
        let bookmark = rows.cell(&CellKey::Bookmark { position: at.id })?.value;
        let on = match at.parent.filter(|_| at.kind == PositionKind::Annotation) {
            Some(parent) => named(rows, resolve::shown(rows, &main, parent)?)?,
            None => None,
        };
        let about = Seen {
            matches: snippet::matches_in(&snippet, query),
            old: shown != row.node.id,
            node: row.node.id,
            short_id: row.short_id,
            bookmark: bookmark.as_text().map(str::to_owned),
            kind: at.kind,
            snippet,
            tags,
            annotations,
            on,
        };
        seen.push((id, about));
    }
    Ok(seen)
}

fn named(rows: &dyn TreeReader, node: NodeId) -> Result<Option<PassageNamed>, RowError> {
    Ok(rows.node(node)?.map(|row| PassageNamed {
        node,
        text: glimpse(&row.node.text()),
        short_id: row.short_id,
    }))
}
