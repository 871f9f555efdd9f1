//! Text as a view shows it, and where two paths part.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use loom::attribution::Attributions;
use loom::path::{ViewOverrides, common_ancestor, position};
use loom::render::{Rendering, Show, Span, render_with, tip, window};
use loom::{
    AuthorKind, GenerationSettings, Mode, NodeId, Position, PositionId, PositionKind, Refusal, RowError,
    TreeReader, ViewName, resolve, source,
};

use super::look;
use crate::app::App;
use crate::args::tree::{Compare, TextArgs};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{Common, Compared, SpanShown, TextShown};
use crate::rights::Asker;
use crate::transfer::naming;

/// Renders a view. Who wrote what is looked for only if it was asked for.
pub(super) async fn text(app: &App, asker: &Asker, args: TextArgs) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let show = Show { drafts: !args.committed, spans: args.spans || args.authors };
    let name = view.clone();
    let imports = app.imports(asker, tree).await?;
    let store = &app.runtime.store;
    let told = store.cursor().await?;
    let is_dialogue = store.tree(&asker.principal, tree).await?.mode == Mode::Dialogue;
    let read = move |rows: &dyn TreeReader, _| {
        naming(rows, &imports, |rows| {
            let mut authors = Attributions::new(rows);
            let Rendering { text, spans } = render_with(rows, &name, show, &mut authors)?;
            let ends = if is_dialogue { message_ends(rows, &name, show)? } else { Vec::new() };
            Ok(((text, with_models(rows, spans)?, ends), authors.into_computed()))
        })
    };
    let ((text, spans, ends), computed) = look(app, asker, tree, &view, read).await?;
    if asker.principal.may_write() && !store.is_read_only() {
        // The text is there, whether or not it is told faster the next time.
        if let Err(error) = store.keep_attributions(&asker.principal, tree, computed, told).await {
            tracing::warn!(%error, "the authors of edited passages are not kept");
        }
    }
    let (with_spans, with_authors) = (args.spans, args.authors);
    Ok(CommandOutcome::Text(TextShown { text, spans, ends, with_spans, with_authors }))
}

/// Where the messages of a dialogue end in its rendering, in bytes.
fn message_ends(rows: &dyn TreeReader, view: &ViewName, show: Show) -> Result<Vec<usize>, RowError> {
    let path = ViewOverrides::read(rows, view, tip(rows, view)?)?;
    let (mut ends, mut at) = (Vec::new(), 0);
    for passage in window(rows, view, &path, None, usize::MAX)? {
        if !passage.excluded {
            let is_pending = passage.pending && show.drafts;
            at += if is_pending { passage.text.len() } else { passage.row.node.text().len() };
            // A message of calls alone has no text.
            if ends.last() != Some(&at) {
                ends.push(at);
            }
        }
    }
    Ok(ends)
}

/// Stretches with the models that wrote them, and how those were asked.
fn with_models(rows: &dyn TreeReader, spans: Vec<Span>) -> Result<Vec<SpanShown>, RowError> {
    type Known = (Option<String>, Option<GenerationSettings>);
    let mut models = HashMap::<NodeId, Known>::new();
    let mut short_ids = HashMap::<NodeId, Option<String>>::new();
    let with_model = |span: Span| {
        let node = span.introduced_by.filter(|_| span.kind == AuthorKind::Model);
        let (model, settings) = match node {
            Some(node) => match models.entry(node) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => {
                    let row = rows.node(node)?.ok_or_else(|| RowError::missing("node", node))?;
                    let origin = source::origin_of(rows, &row.node)?;
                    let settings = origin.as_ref().map(|origin| origin.settings(rows)).transpose()?.flatten();
                    new.insert((origin.map(|origin| origin.model), settings)).clone()
                }
            },
            None => (None, None),
        };
        let short_id = match span.node {
            Some(node) => match short_ids.entry(node) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(rows.node(node)?.map(|row| row.short_id)).clone(),
            },
            None => None,
        };
        Ok(SpanShown { span, model, settings, short_id })
    };
    spans.into_iter().map(with_model).collect()
}

/// Compares the paths to two nodes, as committed.
pub(super) async fn compare(app: &App, asker: &Asker, args: Compare) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let (a, at_a) = app.node_named(asker, Some(tree), &args.a).await?;
    let (b, at_b) = app.node_named(asker, Some(tree), &args.b).await?;
    let name = view.clone();
    let (a, b) = (End { node: a, position: at_a }, End { node: b, position: at_b });
    let found = look(app, asker, tree, &view, move |rows, _| compared(rows, &name, a, b)).await??;
    Ok(CommandOutcome::Compared(found))
}

/// A node as the end of a path.
#[derive(Clone, Copy)]
struct End {
    node: NodeId,
    position: PositionId,
}

fn compared(
    rows: &dyn TreeReader,
    view: &ViewName,
    a: End,
    b: End,
) -> Result<Result<Compared, Refusal>, RowError> {
    for end in [a, b] {
        if position(rows, end.position)?.kind != PositionKind::Path {
            return Ok(Err(Refusal::OffPath(end.position)));
        }
    }
    let mut common = common_ancestor(rows, a.position, b.position)?;
    // Where the paths go through different versions of it, they part one position higher.
    let shown = resolve::shown(rows, view, common.id)?;
    let version = |end: End| if end.position == common.id { end.node } else { shown };
    if version(a) != version(b)
        && let Some(parent) = common.parent
    {
        common = position(rows, parent)?;
    }
    let above = ViewOverrides::read(rows, view, common.id)?;
    let shared = Common { position: common.id, depth: common.depth, chars: above.total().counts.chars };
    let (only_a, only_b) = (below(rows, view, &common, a)?, below(rows, view, &common, b)?);
    Ok(Ok(Compared { only_a, only_b, common: shared }))
}

/// The text of the path to `end` below `common`: of the end the version named, above it what the view shows.
fn below(rows: &dyn TreeReader, view: &ViewName, common: &Position, end: End) -> Result<String, RowError> {
    let path = ViewOverrides::read(rows, view, end.position)?;
    let passages = window(rows, view, &path, None, path.tip.depth.saturating_sub(common.depth) as usize)?;
    let mut text = String::new();
    for passage in passages.iter().filter(|passage| !passage.excluded) {
        if passage.position.id == end.position {
            let row = rows.node(end.node)?.ok_or_else(|| RowError::missing("node", end.node))?;
            text.push_str(&row.node.text());
        } else {
            text.push_str(&passage.row.node.text());
        }
    }
    Ok(text)
}
