//! Which models a command asks, and how: flags come before presets, presets before agents, agents before settings.

use std::sync::Arc;

use agent::{GenerationRequest, PathRequest};
use context::ContinuationForm;
use loom::source::DEFAULT_AGENT;
use loom::{Mode, Purpose, TreeId};
use model::{Model, Params};
use text::cut::Boundary;

use crate::app::App;
use crate::args::think::Think;
use crate::args::tree::Sampling;
use crate::error::CommandError;
use crate::rights::Asker;
use crate::settings::{Agent, Preset, Settings};

/// One share of a `generate`: a model, how it is asked, how often.
pub(crate) struct Share {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) agent: String,
    pub(crate) params: Params,
    pub(crate) count: u32,
}

/// Tokens of a passage, unless something else is asked for (spec: agent §0 *Presets*).
const PASSAGE: u32 = 96;

impl Share {
    /// The request for a path of a tree.
    pub(crate) fn request(&self, app: &App, tree: TreeId, path: PathRequest) -> GenerationRequest {
        let variant = agent::RequestVariant { strategy: app.settings.strategy, ..path.variant };
        GenerationRequest {
            purpose: Purpose::Turn,
            tree,
            source: PathRequest { variant, ..path }.into(),
            model: self.model.clone(),
            agent: self.agent.clone(),
            params: self.params.clone(),
            part_of: None,
            guards: Vec::new(),
        }
    }

    /// Asks for a passage, where nothing is said of its length. A model that answers in messages, and can be told of its
    /// thinking, may think unasked, and would have no token left to write with.
    fn limited(&mut self) {
        let info = self.model.info();
        let may_think = info.thinks != model::ThinkingControl::Untold;
        if !may_think || ContinuationForm::of(info) != ContinuationForm::Instructed {
            self.params.max_tokens.get_or_insert(PASSAGE);
        }
    }
}

/// Agents and presets of the configuration, with the flags over them.
pub(crate) async fn shares(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    sampling: &Sampling,
) -> Result<Vec<Share>, CommandError> {
    let is_document = app.read(asker, tree, |rows| Ok(rows.tree()?.mode)).await? == Mode::Buffer;
    let base = preset(app, sampling.preset.as_deref())?;
    let mut agents = Vec::new();
    for name in &sampling.agents {
        let agent = app.settings.agents.get(name).cloned();
        let agent = agent
            .or_else(|| (name == DEFAULT_AGENT).then(Agent::default))
            .ok_or_else(|| CommandError::not_found("agent", name, "`drawloom config show` lists [agents]"))?;
        // A flag wins over what the agent has.
        let own = match sampling.preset {
            Some(_) => base.clone(),
            None => preset(app, agent.preset.as_deref())?,
        };
        agents.push((name.clone(), agent.model.clone(), agent.n, own));
    }
    if agents.is_empty() {
        agents.push((DEFAULT_AGENT.to_owned(), None, None, base.clone()));
    }
    let mut shares = Vec::new();
    for (agent, model, n, preset) in agents {
        // What a preset of a flag says comes before what the agent has.
        let by_flag = sampling.preset.is_some();
        let own = if by_flag { preset.n.or(n) } else { n.or(preset.n) };
        let count = sampling.n.or(own).unwrap_or(1);
        if count == 0 {
            return Err(CommandError::usage(
                "no sibling was asked for",
                "ask for at least one sibling: -n 1",
            ));
        }
        let model = app.model(model_name(app, &base, model.as_deref(), &preset)).await?;
        let asked = params(&preset, sampling);
        let params = Params { thinking: asked.thinking.or(app.settings.think), ..asked };
        let mut share = Share { params, model, agent, count };
        if is_document {
            share.limited();
        }
        shares.push(share);
    }
    Ok(shares)
}

/// The model that is asked: that of a flag, else of the preset that a flag names, else of the agent, else of its own preset,
/// else the default one.
pub(crate) fn model_name<'a>(
    app: &'a App,
    by_flag: &'a Preset,
    agent: Option<&'a str>,
    of_agent: &'a Preset,
) -> Option<&'a str> {
    let Settings { named, model, .. } = &app.settings;
    let of_flags = named.as_deref().or(by_flag.model.as_deref());
    of_flags.or(agent).or(of_agent.model.as_deref()).or(model.as_deref())
}

/// A preset of the configuration; the empty one, if none is named.
pub(crate) fn preset(app: &App, name: Option<&str>) -> Result<Preset, CommandError> {
    let Some(name) = name else { return Ok(Preset::default()) };
    let named = |preset: &Preset| Preset { name: Some(name.to_owned()), ..preset.clone() };
    let found = app.settings.presets.get(name).map(named);
    found.ok_or_else(|| CommandError::not_found("preset", name, "`drawloom config show` lists [presets]"))
}

pub(crate) fn params(preset: &Preset, sampling: &Sampling) -> Params {
    let stop = if sampling.stop.is_empty() { &preset.stop } else { &sampling.stop };
    Params {
        temperature: sampling.temperature.or(preset.temperature),
        top_p: sampling.top_p.or(preset.top_p),
        min_p: sampling.min_p.or(preset.min_p),
        max_tokens: sampling.max_tokens.or(preset.max_tokens),
        stop: stop.iter().filter(|stop| boundary(stop).is_none()).cloned().collect(),
        // A paragraph ends a sentence, too.
        ends_at: stop.iter().filter_map(|stop| boundary(stop)).min_by_key(|end| *end == Boundary::Paragraph),
        seed: sampling.seed.or(preset.seed),
        logprobs: sampling.logprobs.or(preset.logprobs),
        thinking: sampling.think.map(Think::wish).or(preset.think),
        preset: preset.name.clone(),
        ..Params::default()
    }
}

/// The boundary a stop names: `sentence` or `paragraph`; any other is a text of its own.
fn boundary(stop: &str) -> Option<Boundary> {
    match stop {
        "sentence" => Some(Boundary::Sentence),
        "paragraph" => Some(Boundary::Paragraph),
        _ => None,
    }
}
