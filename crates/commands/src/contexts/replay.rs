//! `context replay`: a request once more. The model that was asked gets the stored bytes, never encoded again; another
//! one gets a request of the same sources in its own form (spec: context §1, security §10).

use std::sync::Arc;

use agent::{GenerationRequest, PreparedRequest};
use context::{Manifest, ModelRef};
use loom::{Digest, Finish, NodeId, RowError, TreeId, ViewName};
use model::{DialectName, EncodedRequest, Model, ModelInfo, ModelPlace, PartId, PartKind, PartRange};
use text::terminal::one_line;

use super::{Sent, sent};
use crate::app::App;
use crate::args::context::Replay;
use crate::error::CommandError;
use crate::generate::needs_confirmation;
use crate::results::CommandOutcome;
use crate::results::context::{ReplayAnswer, Replayed};
use crate::rights::Asker;
use crate::tree::{answer_place, tree_argument};

pub(crate) async fn replay(app: &App, asker: &Asker, args: Replay) -> Result<CommandOutcome, CommandError> {
    let mut sent = sent(app, asker, &args.node).await?;
    let asked = &sent.manifest.model;
    let (named, name) = (app.settings.named.as_deref(), asked.full_name());
    if args.dry_run && named.is_none() {
        return Ok(as_stored(read_back(&sent)?, name, None));
    }
    let model = match named {
        Some(_) => app.model(named).await?,
        None => the_one_asked(app, asked).await?,
    };
    let info = model.info();
    let fits = is_it(info, asked) && takes_form(info, asked.dialect);
    if !args.dry_run {
        require_node(&sent, &args.node)?;
        admit(app, &sent.manifest, info)?;
    }
    if !fits {
        require_node(&sent, &args.node)?;
        return anew(app, asker, &args, sent, model).await;
    }
    let read = read_back(&sent)?;
    if args.dry_run || !read.1 {
        return Ok(as_stored(read, name, None));
    }
    confirm(app, &args, info, sent.manifest.tokens)?;
    let body = sent.body.take().unwrap_or_default();
    let endpoint = &sent.manifest.endpoint;
    let dialect = sent.manifest.model.dialect;
    let encoded = EncodedRequest::new(
        dialect,
        endpoint.path.clone(),
        body.into(),
        ranges(&sent.manifest),
        endpoint.stream,
    )?;
    let (runtime, call) = (&app.runtime, app.call(asker));
    let (tree, view) = (sent.generation.tree, sent.manifest.view.clone().unwrap_or_default());
    let node = agent::resend(runtime, &call, model, encoded, sent.recorded()).await?;
    let answer = Some((node, answered(app, asker, tree, &view, node).await?));
    Ok(as_stored(read, name, answer))
}

/// The answer as it stands in its tree, which its view did not go to.
async fn answered(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    view: &ViewName,
    node: NodeId,
) -> Result<ReplayAnswer, CommandError> {
    let row =
        app.read(asker, tree, move |rows| rows.node(node)?.ok_or_else(|| RowError::missing("node", node)));
    let row = row.await?;
    Ok(ReplayAnswer {
        text: row.node.text().into_owned(),
        finish: row.node.finish.clone().unwrap_or(Finish::Stop),
        place: answer_place(app, asker, (tree, view), (node, &row.short_id), None).await?,
        streamed: app.frontend.has_shown(node),
        short_id: row.short_id,
    })
}

/// Refuses to send a request again whose answer has no place in the tree.
fn require_node(sent: &Sent, name: &str) -> Result<(), CommandError> {
    if sent.generation.makes_nodes() {
        return Ok(());
    }
    Err(CommandError::usage(
        format!("request {} made no node, so that its answer would stand nowhere", one_line(name)),
        "`--dry-run` without --model reads its bytes back; `drawloom context show` shows them",
    ))
}

/// The stored bytes: their hash, and whether it is the one they had.
fn read_back(sent: &Sent) -> Result<(Digest, bool), CommandError> {
    let body = sent.body.as_deref().ok_or_else(|| {
        CommandError::new(
            "incomplete",
            3,
            "the body of that request is not stored here",
            "it was forgotten, or left out of an import",
        )
    })?;
    let sha256 = Digest::of(body);
    Ok((sha256, sha256 == sent.manifest.body.sha256))
}

/// What came of the stored bytes.
fn as_stored(
    (sha256, identical): (Digest, bool),
    model: String,
    answer: Option<(NodeId, ReplayAnswer)>,
) -> CommandOutcome {
    let (node, answer) = answer.unzip();
    CommandOutcome::Replayed(Replayed { sha256, identical, model, anew: false, node, answer })
}

fn is_it(info: &ModelInfo, asked: &ModelRef) -> bool {
    (&info.provider, &info.name) == (&asked.provider, &asked.name)
}

/// Whether a model takes requests of this form: those of its dialect, and raw text besides where it continues that.
fn takes_form(info: &ModelInfo, form: DialectName) -> bool {
    let raw = info.completion_endpoint && info.dialect.has_completions();
    info.dialect == form || raw && form == DialectName::OpenAiCompletions
}

/// The model that was asked: by the name the owner has for it, else by its own.
async fn the_one_asked(app: &App, asked: &ModelRef) -> Result<Arc<dyn Model>, CommandError> {
    let full = asked.full_name();
    // A name that has nothing of its own is not looked up: that may take weights into memory, or ask for them.
    let default = app.settings.model.as_deref();
    let default = default.filter(|name| name.contains(&asked.name) || asked.name.contains(name));
    for name in [default, Some(&asked.name)].into_iter().flatten() {
        if let Some(found) = app.model(Some(name)).await.ok().filter(|found| is_it(found.info(), asked)) {
            return Ok(found);
        }
    }
    if asked.provider == "script" {
        let what = format!("that request was answered by the script {}", one_line(&asked.name));
        return Err(CommandError::usage(what, "name the script with --model script:FILE, or another model"));
    }
    let found = app.model(Some(&full)).await?;
    if is_it(found.info(), asked) {
        return Ok(found);
    }
    let what = format!("that request went to {full}, which is not known here");
    Err(CommandError::usage(what, "name a model with --model"))
}

/// Lets an old request go where it went. It leaves this machine, or goes to another provider, only if the owner has
/// named the model for that: in the configuration, or by a yes at the terminal (spec: security §10).
fn admit(app: &App, manifest: &Manifest, to: &ModelInfo) -> Result<(), CommandError> {
    let from = &manifest.model;
    let stays =
        to.place == ModelPlace::Local || (from.place == ModelPlace::Remote && from.provider == to.provider);
    if stays || app.settings.replay.contains(&to.full_name()) {
        return Ok(());
    }
    let host = to.host.as_deref().unwrap_or("another machine");
    let went = match from.place {
        ModelPlace::Local => format!("went to {}/{} on this machine", from.provider, from.name),
        ModelPlace::Remote => format!("went to {}/{}", from.provider, from.name),
    };
    let what = format!("that request {went}, and {} is at {host} ({})", to.full_name(), to.provider);
    let hint = format!(
        "name it in model.replay (`drawloom config set model.replay '[\"{}\"]'`), or say yes at a terminal",
        to.full_name()
    );
    let confirmed = app.frontend.confirm(&format!("{what}. Send it there?"));
    confirmed.require("elsewhere", format!("nothing was sent: {what}"), hint)
}

/// Shows what many tokens would go elsewhere, and asks (spec: agent §1 *Budgets*).
fn confirm(app: &App, args: &Replay, info: &ModelInfo, tokens: u64) -> Result<(), CommandError> {
    if args.yes || !needs_confirmation(info, tokens, 0, 1) {
        return Ok(());
    }
    let price = info.prices.map_or_else(
        || "at an unknown price".to_owned(),
        |prices| format!("about {} without its answer", prices.estimate(tokens, 0)),
    );
    let what = format!("a request of about {tokens} tokens, {price}, to {}", info.full_name());
    let confirmed = app.frontend.confirm(&format!("{what}. Send it?"));
    let message = format!("nothing was sent: {what}");
    confirmed.require("not_confirmed", message, "`--yes` sends it without asking")
}

/// Replays a request to `model`, with the same sources in the form of that model.
async fn anew(
    app: &App,
    asker: &Asker,
    args: &Replay,
    sent: Sent,
    model: Arc<dyn Model>,
) -> Result<CommandOutcome, CommandError> {
    let full = model.info().full_name();
    let manifest = &sent.manifest;
    let ask: GenerationRequest =
        sent.recorded().for_model(&app.runtime, &asker.principal, model.clone()).await?;
    let runtime = &app.runtime;
    let prepared = if args.dry_run {
        app.prepare_counted(runtime, asker, &ask).await?
    } else {
        let prepared = ask.prepare(runtime, &asker.principal).await.map_err(CommandError::from);
        match prepared {
            Err(error) if error.code == "changed" => {
                return Err(regenerating(app, asker, &sent, error).await?);
            }
            prepared => prepared?,
        }
    };
    app.frontend.note(&told(manifest, &prepared, model.info()));
    let sha256 = prepared.manifest.body.sha256;
    let done = |answer: Option<(NodeId, ReplayAnswer)>| {
        let (node, answer) = answer.unzip();
        let done = Replayed { sha256, identical: false, model: full, anew: true, node, answer };
        CommandOutcome::Replayed(done)
    };
    if args.dry_run {
        return Ok(done(None));
    }
    confirm(app, args, model.info(), prepared.manifest.tokens)?;
    let node = ask.of_this_one(runtime, &app.call(asker)).await?;
    let view = manifest.view.clone().unwrap_or_default();
    let answer = answered(app, asker, sent.generation.tree, &view, node).await?;
    Ok(done(Some((node, answer))))
}

/// The error of a request whose text stands there no more, with the command that asks for another answer there.
async fn regenerating(
    app: &App,
    asker: &Asker,
    sent: &Sent,
    error: CommandError,
) -> Result<CommandError, CommandError> {
    let (tree, made) = (sent.generation.tree, sent.generation.reserved.first().copied());
    let row = app.read(asker, tree, move |rows| made.map(|made| rows.node(made)).transpose()).await?;
    let Some(row) = row.flatten() else { return Ok(error) };
    let named = tree_argument(app, asker, tree).await?;
    let hint = format!("`drawloom tree regenerate {named} {}` asks with what stands there now", row.short_id);
    Ok(CommandError { hint, ..error })
}

/// That it is not the request that was sent, in one line.
fn told(before: &Manifest, now: &PreparedRequest, to: &ModelInfo) -> String {
    let chars = |manifest: &Manifest| manifest.runs.iter().map(|run| run.chars).sum::<u64>();
    let missing = chars(before).saturating_sub(chars(&now.manifest));
    let short = match missing {
        0 => String::new(),
        missing => format!("; {missing} of its characters do not fit in the window and are left out"),
    };
    let place = match (to.place, &to.host) {
        (ModelPlace::Remote, Some(host)) => format!("; text goes to {host}"),
        _ => String::new(),
    };
    format!(
        "that request went to {}/{}; for {} it is built again from its segments, about {} tokens{short}{place}",
        before.model.provider,
        before.model.name,
        to.full_name(),
        now.manifest.tokens
    )
}

/// The segments as ranges of the body.
fn ranges(manifest: &Manifest) -> Vec<PartRange> {
    let parts = manifest.segments.iter().filter(|segment| segment.kind != context::Kind::Framing);
    parts
        .enumerate()
        .filter_map(|(index, segment)| {
            let (from, to) = segment.bytes?;
            let kind = match segment.kind {
                context::Kind::Document | context::Kind::Buffer => PartKind::Document,
                context::Kind::History => PartKind::User,
                _ => PartKind::System,
            };
            Some(PartRange { part: PartId(index as u32), kind, bytes: from as usize..to as usize })
        })
        .collect()
}
