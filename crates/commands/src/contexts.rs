//! What was sent: shown, compared, read back byte for byte, sent again.

mod next;
mod replay;

use context::{Manifest, Segment, Zone};
use loom::path::ViewOverrides;
use loom::render::{tip, window};
use loom::{Digest, GenerationRow, NodeId, RowError, TreeId, TreeReader, ViewName};
use store::StoreError;

use agent::stored;

use crate::app::App;
use crate::args::context::{Diff, ShowContext};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::context::{ChangedSegment, ContextDiff, ContextShown, SegmentShown};
use crate::rights::Asker;

pub(crate) use replay::replay;

/// A request as it was sent.
struct Sent {
    digest: Digest,
    manifest: Manifest,
    body: Option<Vec<u8>>,
    generation: GenerationRow,
    usage: Option<model::TokenUsage>,
    /// Who is the author of what came of it.
    agent: String,
    /// What was sent besides the path.
    inputs: Vec<(loom::OriginRole, NodeId)>,
}

/// The request a node was made of, or that of a generation, which may have made none.
async fn sent(app: &App, asker: &Asker, name: &str) -> Result<Sent, CommandError> {
    let found = match generation(app, asker, name).await? {
        Some(row) => app.read(asker, row.tree, move |rows| of_generation(rows, row)).await?,
        None => {
            let named = match app.node_anywhere(asker, None, name).await {
                Err(error) if error.exit == 3 => match app.tree_named(asker, name).await {
                    Ok(tree) => return newest_of(app, asker, tree, name).await,
                    Err(_) => return Err(error),
                },
                named => named?,
            };
            app.read(asker, named.tree, move |rows| of_node(rows, named.node)).await?
        }
    };
    found
        .ok_or_else(|| CommandError::not_found("request", name, "only nodes that a model made here have one"))
}

/// Passages of a tree in which its newest request is looked for, from the end of the path.
const LAST: usize = 64;

/// The newest request of the path of a tree.
async fn newest_of(app: &App, asker: &Asker, tree: TreeId, name: &str) -> Result<Sent, CommandError> {
    let view = ViewName::default();
    let found = app.read(asker, tree, move |rows| {
        let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
        for passage in window(rows, &view, &path, None, LAST)?.iter().rev() {
            if let Some(sent) = of_node(rows, passage.row.node.id)? {
                return Ok(Some(sent));
            }
        }
        Ok(None)
    });
    let name = text::terminal::one_line(name);
    found.await?.ok_or_else(|| {
        let hint = format!("`drawloom context show --next {name}` shows what would be sent next");
        CommandError::not_found("request", &format!("at the end of {name}"), hint)
    })
}

/// The generation a name is the id of, if it is one of those the asker may see.
async fn generation(app: &App, asker: &Asker, name: &str) -> Result<Option<GenerationRow>, CommandError> {
    let Ok(id) = name.parse() else { return Ok(None) };
    match app.runtime.store.generation(&asker.principal, id).await {
        Ok(found) => Ok(Some(found.row)),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn of_node(rows: &dyn TreeReader, node: NodeId) -> Result<Option<Sent>, RowError> {
    let Some(made) = rows.node(node)?.map(|row| row.node) else { return Ok(None) };
    let Some(generation) = made.generation else { return Ok(None) };
    let Some(row) = rows.generation(generation)? else { return Ok(None) };
    let agent = made.author.id;
    let inputs = made.origins.iter().map(|origin| (origin.role, origin.node)).collect();
    Ok(of_generation(rows, row)?.map(|sent| Sent { agent, inputs, ..sent }))
}

fn of_generation(rows: &dyn TreeReader, generation: GenerationRow) -> Result<Option<Sent>, RowError> {
    let Some(manifest) = stored::manifest(rows, generation.manifest)? else { return Ok(None) };
    let body = stored::body(rows, &manifest)?;
    let usage = stored::reply(rows, generation.id)?.and_then(|said| said.usage());
    let (digest, agent, inputs) = (generation.manifest, loom::source::DEFAULT_AGENT.to_owned(), Vec::new());
    Ok(Some(Sent { digest, manifest, body, generation, usage, agent, inputs }))
}

/// `context show`.
pub(crate) async fn show(
    app: &App,
    asker: &Asker,
    args: ShowContext,
) -> Result<CommandOutcome, CommandError> {
    if let Some(tree) = &args.next {
        return next::next(app, asker, tree, &args).await;
    }
    let sent = sent(app, asker, args.node.as_deref().unwrap_or_default()).await?;
    let reported = sent.usage.map(|usage| usage.input());
    let mut shown = shown(&sent.manifest, sent.body.as_deref(), args.text);
    shown.map = args.map;
    shown.manifest = Some(sent.digest);
    shown.cache_read = sent.usage.map(|usage| usage.cache_read);
    if let Some(reported) = reported {
        shown.used = reported;
        shown.estimated = false;
    }
    Ok(CommandOutcome::Context(shown))
}

pub(crate) fn shown(manifest: &Manifest, body: Option<&[u8]>, with_text: bool) -> ContextShown {
    let text = |segment: &Segment| {
        let (from, to) = segment.bytes.filter(|_| with_text)?;
        let bytes = body?.get(from as usize..to as usize)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    ContextShown {
        model: format!("{}/{}", manifest.model.provider, manifest.model.name),
        window: manifest.budget.window,
        budget: manifest.budget.budget,
        used: manifest.tokens,
        estimated: !manifest.is_counted(),
        counted_by: manifest.counted_by().to_owned(),
        reusable: manifest.reused_tokens,
        cache_read: None,
        zone: manifest.way.is_none().then(|| Zone::of(manifest.share()).to_string()),
        tainted_by: manifest.tainted_by,
        manifest: None,
        sha256: manifest.body.sha256,
        segments: manifest
            .segments
            .iter()
            .map(|segment| SegmentShown { segment: segment.clone(), text: text(segment) })
            .collect(),
        map: false,
    }
}

/// `context diff`.
pub(crate) async fn diff(app: &App, asker: &Asker, args: Diff) -> Result<CommandOutcome, CommandError> {
    let (a, b) = (sent(app, asker, &args.a).await?, sent(app, asker, &args.b).await?);
    let mut diff = ContextDiff { added: Vec::new(), removed: Vec::new(), changed: Vec::new() };
    // Segments are paired by what they are and where they come from, in the order they stand.
    let mut left: Vec<Option<&Segment>> = a.manifest.segments.iter().map(Some).collect();
    for after in &b.manifest.segments {
        let pair = left.iter_mut().find(|before| {
            before.is_some_and(|before| before.kind == after.kind && before.source == after.source)
        });
        let Some(before) = pair.and_then(Option::take) else {
            diff.added.push(after.clone());
            continue;
        };
        let (old, new) = (slice(&a, before), slice(&b, after));
        if old != new {
            let same = old.iter().zip(new).take_while(|(a, b)| a == b).count() as u64;
            diff.changed.push(ChangedSegment {
                before: before.clone(),
                after: after.clone(),
                same_prefix: same,
                old: String::from_utf8_lossy(old).into_owned(),
                new: String::from_utf8_lossy(new).into_owned(),
            });
        }
    }
    diff.removed = left.into_iter().flatten().cloned().collect();
    Ok(CommandOutcome::ContextDiff(diff))
}

fn slice<'a>(sent: &'a Sent, segment: &Segment) -> &'a [u8] {
    let range = segment.bytes.map(|(from, to)| from as usize..to as usize);
    range.and_then(|range| sent.body.as_deref()?.get(range)).unwrap_or_default()
}
