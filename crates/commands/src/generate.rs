//! Asking models to continue: commit, then one request for each sibling.
//!
//! One generation is one request. Several siblings are several requests, unless the model honours `n`: the
//! first goes ahead until its first token, so that the others find a warm cache (spec: loom §2 `generate`).

use std::collections::HashSet;

use agent::{
    AgentError, CacheGate, GenerationOutcome, GenerationRequest, PathRequest, PreparedRequest, SiblingGate,
    WindowNotice,
};
use futures_util::future::BoxFuture;
use futures_util::future::join_all;
use loom::{Op, Position, PositionId, PositionKind, Seq, TreeId, TreeReader, ViewName};
use model::ModelInfo;
use tokio::sync::watch;

use crate::app::App;
use crate::args::tree::{Generate, Regenerate, Sampling};
use crate::contexts;
use crate::egress_notice;
use crate::error::CommandError;
use crate::model_selection::{Share, shares};
use crate::results::CommandOutcome;
use crate::results::tree::{Estimate, Generated, GeneratedNode, UsageShown};
use crate::rights::Asker;
use crate::thinking;
use crate::tree::{answer_place, tree_argument};

/// Siblings one command may ask for.
pub(crate) const MAX_SIBLINGS: u32 = 64;

/// `tree generate`.
pub(crate) async fn generate(
    app: &App,
    asker: &Asker,
    args: Generate,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let from = match &args.from {
        None => None,
        Some(name) => {
            let named = app.node_named(asker, Some(tree), name).await?.1;
            Some(on_path(app, asker, tree, named).await?.id)
        }
    };
    run(app, asker, tree, view, from, &args.sampling).await
}

/// `tree regenerate`: more siblings of a node.
pub(crate) async fn regenerate(
    app: &App,
    asker: &Asker,
    args: Regenerate,
) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args.node).await?;
    let at = named.position;
    let parent = on_path(app, asker, named.tree, at).await?.parent.ok_or(loom::Refusal::Genesis)?;
    run(app, asker, named.tree, named.view, Some(parent), &args.sampling).await
}

/// A position that text goes on from: no head, note or remark.
async fn on_path(app: &App, asker: &Asker, tree: TreeId, at: PositionId) -> Result<Position, CommandError> {
    let position = app.read(asker, tree, move |rows| rows.position(at)).await?;
    match position.ok_or(loom::Refusal::NoPosition(at))? {
        aside if aside.kind != PositionKind::Path => Err(loom::Refusal::OffPath(at).into()),
        position => Ok(position),
    }
}

/// Refuses, before drafts are committed, a place that is pruned or below one that is: the tip, if none is named.
async fn require_visible(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    from: Option<PositionId>,
) -> Result<(), CommandError> {
    let view = view.clone();
    let hidden = move |rows: &dyn TreeReader| {
        let at = from.map_or_else(|| loom::render::tip(rows, &view), Ok)?;
        loom::path::hidden(rows, at)
    };
    let hidden = app.read(asker, tree, hidden).await?;
    hidden.map_or(Ok(()), |refusal| Err(refusal.into()))
}

fn run<'a>(
    app: &'a App,
    asker: &'a Asker,
    tree: TreeId,
    view: ViewName,
    from: Option<PositionId>,
    sampling: &'a Sampling,
) -> BoxFuture<'a, Result<CommandOutcome, CommandError>> {
    Box::pin(async move {
        require_visible(app, asker, (tree, &view), from).await?;
        let shares = shares(app, asker, tree, sampling).await?;
        let requests: u32 = shares.iter().map(|share| share.count).sum();
        let model = |share: &Share| share.model.info().full_name();
        let differ = shares.iter().any(|share| model(share) != model(&shares[0]));
        if requests > MAX_SIBLINGS {
            return Err(CommandError::usage(
                format!("{requests} siblings are asked for and {MAX_SIBLINGS} is the most"),
                "ask for fewer at a time",
            ));
        }
        for share in &shares {
            if let Some(notice) = thinking::unheard(share.model.info(), share.params.thinking, sampling.think)
            {
                app.frontend.note(&notice);
            }
        }
        let mut inputs = (Vec::new(), Vec::new());
        for (names, nodes) in [(&sampling.context, &mut inputs.0), (&sampling.instruction, &mut inputs.1)] {
            for name in names {
                nodes.push(app.node_named(asker, Some(tree), name).await?.0);
            }
        }
        let ask = |share: &Share, from: Option<PositionId>, part_of: Option<Seq>, drafts: bool| {
            let path = PathRequest {
                view: view.clone(),
                from,
                follow: !drafts,
                drafts,
                context: inputs.0.clone(),
                instruction: inputs.1.clone(),
                ..PathRequest::default()
            };
            GenerationRequest { part_of, ..share.request(app, tree, path) }
        };
        if sampling.dry_run {
            let share = weighed(&shares);
            let prepared = ask(share, from, None, true);
            let prepared = app.prepare_counted(&app.runtime, asker, &prepared).await?;
            let mut found = estimate(&prepared, share.model.info(), &shares);
            if differ {
                let mut windows = Windows::default();
                for share in &shares {
                    let name = share.model.info().full_name();
                    if windows.begin(&name) {
                        let prepared = ask(share, from, None, true);
                        let prepared = app.prepare_counted(&app.runtime, asker, &prepared).await?;
                        windows.add(prepared.chars_above(), prepared.window_notice(&name));
                    }
                }
                (found.left_out, found.window_start) = windows.shown();
            }
            return Ok(CommandOutcome::Estimate(found));
        }
        if !sampling.yes && requests > 0 {
            let prepared = ask(weighed(&shares), from, None, true);
            ask_first(app, asker, prepared, &shares).await?;
        }
        app.runtime.require_space()?;
        egress_notice::tell(app, asker, tree, shares.iter().map(|share| share.model.info())).await?;
        // Drafts first: what was typed is a node before anything is asked.
        let committed = match from {
            None => {
                let applied = app.change(asker, tree, &view, Op::Generate).await?;
                app.note_committed(&applied.nodes);
                applied.seq
            }
            Some(_) => None,
        };
        // All siblings hang where the view's tip is now, wherever it goes meanwhile.
        let tip = {
            let view = view.clone();
            app.read(asker, tree, move |rows| loom::render::tip(rows, &view)).await?
        };
        let at = from.unwrap_or(tip);
        let follows = at == tip;
        // What a tool asks for is spent in its turn.
        let own = app.runtime.new_turn()?;
        let spending = asker.turn.as_ref().map_or_else(|| own.turn(), |turn| turn.spending.as_str());
        let (warm, cold) = watch::channel(false);
        let mut slots = Vec::new();
        let mut told = HashSet::new();
        for share in &shares {
            // A model that honours `n` gives all of its share in one request.
            let (times, n) = if share.model.info().honours_n { (1, share.count) } else { (share.count, 1) };
            for _ in 0..times {
                let mut ask = ask(share, Some(at), committed, false);
                if let Some(path) = ask.source.path_mut() {
                    // The view goes to the first sibling, whichever is there first.
                    path.follow = follows && slots.is_empty();
                    path.window = match (told.insert(model(share)), differ) {
                        (true, true) => WindowNotice::ByName,
                        (true, false) => WindowNotice::OfModel,
                        (false, _) => WindowNotice::Silent,
                    };
                }
                ask.params.n = n;
                // One seed for all would give the same answer as often as it is asked for.
                ask.params.seed = ask.params.seed.map(|seed| seed.wrapping_add(slots.len() as i64));
                slots.push(ask);
            }
        }
        let (runtime, call) = (&app.runtime, app.call(asker));
        let count = slots.len() as u32;
        let mut before = None;
        let asked = slots.iter().enumerate().map(|(index, ask)| {
            let slot = model::SiblingSlot { turn: spending.to_owned(), index: index as u32, count };
            let cache = if index == 0 { CacheGate::Opens(&warm) } else { CacheGate::Waits(cold.clone()) };
            let (committed, next) = watch::channel(());
            let gate = SiblingGate { cache, before: before.replace(next), committed };
            ask.send_among(runtime, &call, slot, gate)
        });
        let answers = join_all(asked).await;
        let from = follows.then_some(at);
        collect(app, asker, (tree, &view), from, answers).await
    })
}

/// Tokens above which the estimate is shown first (spec: agent §1 *Budgets*).
const MANY_TOKENS: u64 = 50_000;

/// Shows what many tokens of a model elsewhere would come to, and asks. What runs here is not asked about.
async fn ask_first(
    app: &App,
    asker: &Asker,
    ask: GenerationRequest,
    shares: &[Share],
) -> Result<(), CommandError> {
    let info = weighed(shares).model.info();
    if info.place == model::ModelPlace::Local {
        return Ok(());
    }
    let params = ask.params.clone();
    let prepared = ask.prepare(&app.runtime, &asker.principal).await?;
    let found = estimate(&prepared, info, shares);
    let expected = agent::expected_output(&params, prepared.manifest.budget.reserved_output);
    if !needs_confirmation(info, found.input_tokens, expected, found.requests) {
        return Ok(());
    }
    let cost = found.cost.map(model::Money::from_dollars);
    let hint = "`--yes` sends it without asking";
    confirm_requests(app, (found.requests, found.input_tokens), cost, &found.model, hint)
}

/// Whether requests of so many tokens each, with what is expected of their answers, are many for a model elsewhere.
pub(crate) fn needs_confirmation(info: &ModelInfo, input: u64, output: u64, requests: u32) -> bool {
    let tokens = input.saturating_add(output).saturating_mul(requests.into());
    info.place != model::ModelPlace::Local && tokens > MANY_TOKENS
}

/// Shows requests, how many of how many tokens each, and asks whether to send them.
pub(crate) fn confirm_requests(
    app: &App,
    (requests, tokens): (u32, u64),
    cost: Option<model::Money>,
    model: &str,
    hint: &str,
) -> Result<(), CommandError> {
    let cost = cost.map_or_else(|| "at an unknown price".to_owned(), |cost| format!("at most {cost}"));
    let what = format!("{requests} requests of {tokens} tokens each, {cost}, to {model}");
    let confirmed = app.frontend.confirm(&format!("{what}. Send them?"));
    confirmed.require("not_confirmed", format!("nothing was sent: {what}"), hint)
}

/// What models see of a document, each said once.
#[derive(Default)]
struct Windows {
    models: HashSet<String>,
    left_out: u64,
    starts: Vec<String>,
}

impl Windows {
    /// Whether nothing was said of this model yet.
    fn begin(&mut self, model: &str) -> bool {
        self.models.insert(model.to_owned())
    }

    fn add(&mut self, left_out: u64, start: Option<String>) {
        self.left_out = self.left_out.max(left_out);
        self.starts.extend(start);
    }

    /// Characters that are left out for the one that sees least, and where the windows begin.
    fn shown(self) -> (u64, Option<String>) {
        let starts = self.starts.join("; ");
        (self.left_out, Some(starts).filter(|starts| !starts.is_empty()))
    }
}

async fn collect(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    from: Option<PositionId>,
    answers: Vec<Result<GenerationOutcome, AgentError>>,
) -> Result<CommandOutcome, CommandError> {
    let mut nodes = Vec::new();
    let mut manifest = None;
    let mut usage = UsageShown::default();
    let mut errors = Vec::new();
    // Who answered, with its first node.
    let mut answered = Vec::new();
    for answer in answers {
        match answer {
            Ok(answer) => {
                manifest.get_or_insert(answer.manifest);
                answered.extend(answer.nodes.first().map(|node| (answer.model.clone(), node.id)));
                nodes.extend(
                    answer.nodes.into_iter().map(|node| GeneratedNode {
                        streamed: app.frontend.has_shown(node.id),
                        ..node.into()
                    }),
                );
                usage.reported = answer.usage.is_some() && (usage.reported || usage.is_nothing());
                let came_to = answer.usage.unwrap_or(answer.estimated_usage);
                usage.input_uncached += came_to.input_uncached;
                usage.cache_read += came_to.cache_read;
                usage.cache_write += came_to.cache_write;
                usage.output += came_to.output;
                errors.extend(answer.error.map(CommandError::from));
            }
            Err(error) => errors.push(error.into()),
        }
    }
    let whole = nodes.iter().any(|node: &GeneratedNode| !matches!(node.finish, loom::Finish::Interrupted(_)));
    match (errors.into_iter().next(), manifest) {
        (Some(mut error), _) if !whole => {
            if let [part, ..] = &nodes[..] {
                let named = tree_argument(app, asker, tree).await?;
                let again = format!("`drawloom tree regenerate {named} {}` asks again", part.short_id);
                // Asked for at the tip, the next answer would go on behind the part that is kept.
                error.hint = match error.hint.strip_prefix("ask again to retry") {
                    Some(or) => again + or,
                    None => format!("{}; {again}", error.hint),
                };
            }
            let ids: Vec<&str> = nodes.iter().map(|partial| &*partial.short_id).collect();
            match ids[..] {
                [] => {}
                [id] => error.message = format!("{}: the part received is kept as {id}", error.message),
                _ => {
                    let kept = ids.join(", ");
                    error.message = format!("{}: the parts received are kept as {kept}", error.message);
                }
            }
            Err(error)
        }
        (error, Some(manifest)) => {
            if let Some(error) = error {
                let error = app.told(asker, error).await;
                app.frontend.note(&format!("one of the requests failed: {error}"));
            }
            let first = nodes.first().ok_or(AgentError::Empty)?;
            let name = view.clone();
            let tip = app.read(asker, tree, move |rows| loom::render::tip(rows, &name)).await?;
            if from == Some(tip) {
                // The request that the view would have followed failed.
                app.change(asker, tree, view, Op::Move(first.id.as_position())).await?;
            }
            let answer = (first.id, first.short_id.as_str());
            let another = nodes.get(1).map(|node| (node.id, node.short_id.as_str()));
            let place = answer_place(app, asker, (tree, view), answer, another).await?;
            let differ = answered.iter().any(|(model, _)| *model != answered[0].0);
            let mut windows = Windows::default();
            for (model, node) in &answered {
                if windows.begin(model) {
                    let who = if differ { model } else { contexts::THE_MODEL };
                    let (above, start) = contexts::window_of(app, asker, (tree, *node), who).await?;
                    windows.add(above, start);
                }
            }
            let (left_out, window_start) = windows.shown();
            let done = Generated { nodes, manifest, usage, left_out, window_start, place };
            Ok(CommandOutcome::Generated(done))
        }
        (_, None) => {
            Err(CommandError::usage("no sibling was asked for", "ask for at least one sibling: -n 1"))
        }
    }
}

/// The share whose request stands for all: the first that leaves this machine, else the first.
fn weighed(shares: &[Share]) -> &Share {
    let leaves = |share: &&Share| share.model.info().place != model::ModelPlace::Local;
    shares.iter().find(leaves).unwrap_or(&shares[0])
}

fn estimate(prepared: &PreparedRequest, info: &ModelInfo, shares: &[Share]) -> Estimate {
    let requests: u32 = shares.iter().map(|share| share.count).sum();
    Estimate {
        model: info.full_name(),
        place: info.place,
        requests,
        input_tokens: prepared.manifest.tokens,
        counted: prepared.manifest.is_counted(),
        counted_by: prepared.manifest.counted_by().to_owned(),
        output_tokens: prepared.manifest.budget.reserved_output * u64::from(requests),
        left_out: prepared.chars_above(),
        window_start: prepared.window_notice(contexts::THE_MODEL),
        cost: cost(prepared, shares),
    }
}

/// What all requests come to at most; none where a price is not known. Each share is reckoned with this request.
fn cost(prepared: &PreparedRequest, shares: &[Share]) -> Option<f64> {
    let budget = &prepared.manifest.budget;
    let of_share = |share: &Share| {
        let info = share.model.info();
        let prices =
            info.prices.or((info.place == model::ModelPlace::Local).then_some(model::Prices::FREE))?;
        Some(prices.estimate(prepared.manifest.tokens, budget.reserved_output).times(u64::from(share.count)))
    };
    let all: Option<Vec<model::Money>> = shares.iter().map(of_share).collect();
    all.map(|all| all.into_iter().sum::<model::Money>().dollars())
}
