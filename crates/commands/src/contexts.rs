//! What was sent: shown, compared, read back byte for byte, sent again.

mod next;
mod replay;
mod sent_words;

use agent::replay::RecordedRequest;
use context::window_beginning::{WindowBeginning, first_words};
use context::{Kind, Manifest, PathRun, Segment, Zone};
use loom::path::{ViewOverrides, child_toward};
use loom::render::tip;
use loom::{Answers, Digest, GenerationRow, NodeId, PositionId, RowError, TreeId, TreeReader, ViewName};
use store::StoreError;

use agent::stored;

use crate::app::App;
use crate::args::context::{Diff, ShowContext};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::context::{ChangedSegment, ContextDiff, ContextShown, SegmentShown};
use crate::rights::Asker;
use crate::tree::shown_at;

pub(crate) use replay::replay;
use sent_words::sent_words;

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

impl Sent {
    fn recorded(&self) -> RecordedRequest<'_> {
        RecordedRequest {
            generation: &self.generation,
            manifest: self.manifest.clone(),
            body: self.body.as_deref(),
            agent: &self.agent,
            inputs: &self.inputs,
        }
    }
}

/// The request a node was made of, or that of a generation, which may have made none.
async fn sent(app: &App, asker: &Asker, name: &str) -> Result<Sent, CommandError> {
    let found = match generation(app, asker, name).await? {
        Some(row) => app.read(asker, row.tree, move |rows| of_id(rows, row)).await?,
        None => {
            let named = match app.node_anywhere(asker, None, name).await {
                Err(error) if error.exit == 3 => match app.tree_named(asker, name).await {
                    Ok(tree) => return newest_of(app, asker, tree, name).await,
                    Err(of_tree) if of_tree.exit == 3 => {
                        return Err(app.no_node_and_no_tree(asker, name, error).await?);
                    }
                    // Several trees have that name.
                    Err(of_tree) => return Err(of_tree),
                },
                named => named?,
            };
            app.read(asker, named.tree, move |rows| match of_node(rows, named.node)? {
                None => of_answer(rows, named.position),
                sent => Ok(sent),
            })
            .await?
        }
    };
    found
        .ok_or_else(|| CommandError::not_found("request", name, "only nodes that a model made here have one"))
}

/// The newest request of the path of a tree.
async fn newest_of(app: &App, asker: &Asker, tree: TreeId, name: &str) -> Result<Sent, CommandError> {
    let view = ViewName::default();
    let found = app.read(asker, tree, move |rows| {
        for answer in Answers::new(rows, tip(rows, &view)?) {
            if let Some(sent) = of_node(rows, answer?.node)? {
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

/// Answers below a question that are looked at.
const ANSWERS: usize = 64;

/// The request that a question was sent with: of its newest answer.
fn of_answer(rows: &dyn TreeReader, question: PositionId) -> Result<Option<Sent>, RowError> {
    for answer in rows.children(question, None, ANSWERS)? {
        if let Some(sent) = of_node(rows, answer.id.original())? {
            return Ok(Some(sent));
        }
    }
    Ok(None)
}

fn of_node(rows: &dyn TreeReader, node: NodeId) -> Result<Option<Sent>, RowError> {
    let Some(made) = rows.node(node)?.map(|row| row.node) else { return Ok(None) };
    let Some(generation) = made.generation else { return Ok(None) };
    let Some(row) = rows.generation(generation)? else { return Ok(None) };
    let agent = made.author.id;
    let inputs = made.origins.iter().map(|origin| (origin.role, origin.node)).collect();
    Ok(of_generation(rows, row)?.map(|sent| Sent { agent, inputs, ..sent }))
}

/// A request by its own id. What was sent beside the path, and for whom, is read of a node that it made.
fn of_id(rows: &dyn TreeReader, generation: GenerationRow) -> Result<Option<Sent>, RowError> {
    for node in &generation.reserved {
        if let Some(sent) = of_node(rows, *node)? {
            return Ok(Some(sent));
        }
    }
    of_generation(rows, generation)
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
    let mut shown = shown(app, asker, &sent.manifest, sent.body.as_deref().filter(|_| args.text)).await?;
    shown.map = args.map;
    shown.manifest = Some(sent.digest);
    shown.profile = sent.generation.profile;
    shown.cache_read = sent.usage.map(|usage| usage.cache_read);
    if let Some(reported) = reported {
        shown.used = reported;
        shown.estimated = false;
    }
    Ok(CommandOutcome::Context(shown))
}

/// A request for people; the segments with their texts where its body is given.
pub(crate) async fn shown(
    app: &App,
    asker: &Asker,
    manifest: &Manifest,
    body: Option<&[u8]>,
) -> Result<ContextShown, CommandError> {
    let place = PlaceOfRequest::read(app, asker, manifest, THE_MODEL).await?;
    let text = |segment: &Segment| {
        let (from, to) = segment.bytes?;
        let bytes = body?.get(from as usize..to as usize)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    Ok(ContextShown {
        model: manifest.model.full_name(),
        window: manifest.budget.window,
        budget: manifest.budget.budget,
        used: manifest.tokens,
        estimated: !manifest.is_counted(),
        counted_by: manifest.counted_by().to_owned(),
        reusable: manifest.reused_tokens,
        cache_read: None,
        zone: manifest.way.is_none().then(|| Zone::of(manifest.share()).to_string()),
        tainted_by: manifest.tainted_by,
        tainted_short: place.tainted_short,
        left_out: left_out(manifest),
        window_start: place.window_start,
        manifest: None,
        profile: None,
        sha256: manifest.body.sha256,
        segments: manifest
            .segments
            .iter()
            .map(|segment| SegmentShown { segment: segment.clone(), text: text(segment) })
            .collect(),
        map: false,
    })
}

/// What the request of a node left out above its window, in characters, and where the window of `who` began.
pub(crate) async fn window_of(
    app: &App,
    asker: &Asker,
    (tree, node): (TreeId, NodeId),
    who: &str,
) -> Result<(u64, Option<String>), CommandError> {
    let read = app.read(asker, tree, move |rows| {
        let Some(made) = rows.node(node)?.and_then(|row| row.node.generation) else { return Ok(None) };
        let Some(row) = rows.generation(made)? else { return Ok(None) };
        stored::manifest(rows, row.manifest)
    });
    let Some(manifest) = read.await? else { return Ok((0, None)) };
    let place = PlaceOfRequest::read(app, asker, &manifest, who).await?;
    Ok((left_out(&manifest), place.window_start))
}

/// Characters of the path that stand above the window of a request.
fn left_out(manifest: &Manifest) -> u64 {
    manifest.left.iter().map(|run| run.chars).sum()
}

/// What of the tree a request says something about.
#[derive(Default)]
struct PlaceOfRequest {
    /// Short id of a node of trust `outside` that was sent.
    tainted_short: Option<String>,
    /// Where the window begins, if something stands above it.
    window_start: Option<String>,
}

impl PlaceOfRequest {
    /// With what `who` sees.
    async fn read(app: &App, asker: &Asker, manifest: &Manifest, who: &str) -> Result<Self, CommandError> {
        if manifest.tainted_by.is_none() && manifest.left.is_empty() {
            return Ok(Self::default());
        }
        let about = (manifest.tainted_by, manifest.view.clone().unwrap_or_default());
        let (runs, left, is_document) =
            (manifest.runs.clone(), manifest.left.clone(), manifest.way.is_some());
        let who = who.to_owned();
        let read = app.read(asker, manifest.tree, move |rows| {
            let (tainted_by, view) = about;
            let row = tainted_by.map(|node| rows.node(node)).transpose()?.flatten();
            let begins = window_beginning(rows, &view, &runs, &left, is_document)?;
            let chars = left.iter().map(|run| run.chars).sum();
            let window_start = begins.map(|begins| agent::window_notice(&who, &begins, chars));
            Ok(Self { tainted_short: row.map(|row| row.short_id), window_start })
        });
        match read.await {
            // A request that was only looked at may be of a tree that is not there yet.
            Err(error) if error.code == "not_found" => Ok(Self::default()),
            found => found,
        }
    }
}

/// Who sees a window, where one model is asked.
pub(crate) const THE_MODEL: &str = "the model";
/// Bytes of a document's text in which its first words are looked for.
const BEGINNING: usize = 1_024;

/// Where a window begins: at the first run that stands below all that was left out.
fn window_beginning(
    rows: &dyn TreeReader,
    view: &ViewName,
    runs: &[PathRun],
    left: &[PathRun],
    is_document: bool,
) -> Result<Option<WindowBeginning>, RowError> {
    let Some(last) = left.last() else { return Ok(None) };
    let above = loom::path::position(rows, last.to)?.depth;
    for run in runs {
        // What would be said next is not in the tree.
        let Some(at) = rows.position(run.from)? else { continue };
        // A passage whose beginning was cut off stands in both.
        if at.depth < above {
            continue;
        }
        let mut text = shown_at(rows, view, at.id)?.node.text().into_owned();
        let mut last = at.id;
        // A document goes on in the same line with the next passage.
        while is_document && last != run.to && text.len() < BEGINNING && !text.trim_start().contains('\n') {
            let Some(next) = child_toward(rows, last, run.to)? else { break };
            last = next;
            text.push_str(&shown_at(rows, view, last)?.node.text());
        }
        let cut = usize::try_from(run.cut).unwrap_or_default();
        let sent = text.get(cut..).unwrap_or(&text);
        return Ok(Some(if is_document {
            let path = ViewOverrides::read(rows, view, run.to)?;
            WindowBeginning::find(rows, view, &path, at.depth, text.get(..cut).unwrap_or_default(), sent)?
        } else {
            WindowBeginning { words: first_words(sent), chapter: None, is_new: false }
        }));
    }
    Ok(None)
}

/// `context diff`.
pub(crate) async fn diff(app: &App, asker: &Asker, args: Diff) -> Result<CommandOutcome, CommandError> {
    let (a, b) = (sent(app, asker, &args.a).await?, sent(app, asker, &args.b).await?);
    let estimated = !(a.manifest.is_counted() && b.manifest.is_counted());
    let mut diff = ContextDiff { added: Vec::new(), removed: Vec::new(), estimated, changed: Vec::new() };
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
            let (before, after) = (before.clone(), after.clone());
            let (old, new) = for_people(after.kind, old, new);
            diff.changed.push(ChangedSegment { before, after, same_prefix: same, old, new });
        }
    }
    diff.removed = left.into_iter().flatten().cloned().collect();
    Ok(CommandOutcome::ContextDiff(diff))
}

/// What differs between two stretches, for people: words where words do, else the bytes.
fn for_people(kind: Kind, old: &[u8], new: &[u8]) -> (String, String) {
    let has_words = !matches!(kind, Kind::Framing | Kind::Schemas);
    let words = (sent_words(old), sent_words(new));
    if has_words && words.0 != words.1 {
        return words;
    }
    let bytes = |stretch: &[u8]| String::from_utf8_lossy(stretch).into_owned();
    (bytes(old), bytes(new))
}

fn slice<'a>(sent: &'a Sent, segment: &Segment) -> &'a [u8] {
    let range = segment.bytes.map(|(from, to)| from as usize..to as usize);
    range.and_then(|range| sent.body.as_deref()?.get(range)).unwrap_or_default()
}
