//! Which models a command asks, and how: flags come before presets, presets before agents, agents before settings.

use std::sync::Arc;

use agent::{GenerationRequest, PathRequest};
use context::{Bootstrap, ContinuationForm, SystemPrompt};
use loom::source::DEFAULT_AGENT;
use loom::{Digest, Mode, Purpose, TreeId};
use model::{Model, Params};
use text::cut::Boundary;

use crate::app::App;
use crate::args::think::Think;
use crate::args::tree::Sampling;
use crate::error::CommandError;
use crate::profile::{self, Profile};
use crate::rights::Asker;
use crate::settings::{Preset, Settings};

/// One share of a `generate`: a model, how it is asked, how often.
pub(crate) struct Share {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) agent: String,
    /// Digest of its profile.
    pub(crate) profile: Digest,
    /// System prompt of the agent, where it is sent with a document.
    system: Option<SystemPrompt>,
    pub(crate) params: Params,
    pub(crate) count: u32,
}

/// Tokens of a passage, unless something else is asked for (spec: agent §0 *Presets*).
const PASSAGE: u32 = 96;

impl Share {
    /// The request for a path of a tree.
    pub(crate) fn request(&self, app: &App, tree: TreeId, path: PathRequest) -> GenerationRequest {
        let variant = agent::RequestVariant { strategy: app.settings.strategy, ..path.variant };
        let path = PathRequest { variant, ..path };
        let bootstrap = Bootstrap { system: self.system.clone(), ..Bootstrap::default() };
        let path = match &self.system {
            Some(_) => PathRequest { bootstrap: Arc::new(bootstrap), ..path },
            None => path,
        };
        GenerationRequest {
            purpose: Purpose::Turn,
            tree,
            source: path.into(),
            model: self.model.clone(),
            agent: self.agent.clone(),
            profile: Some(self.profile),
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
    let default = [DEFAULT_AGENT.to_owned()];
    let names = if sampling.agents.is_empty() { &default[..] } else { &sampling.agents };
    let mut shares = Vec::new();
    for name in names {
        let profile = Profile::of(app, name)?;
        let preset = profile::preset_with(app, &profile.agent, sampling.preset.as_deref())?;
        let count = sampling.n.or(preset.n).unwrap_or(1);
        if count == 0 {
            return Err(CommandError::usage(
                "no sibling was asked for",
                "ask for at least one sibling: -n 1",
            ));
        }
        let is_own = app.settings.named.is_none() && preset.model == profile.preset.model;
        let provider = profile.provider(is_own)?;
        let model = app.model(model_name(app, &preset)).await?;
        let asked = params(&preset, sampling);
        let params = Params { thinking: asked.thinking.or(app.settings.think), provider, ..asked };
        let digest = profile.digest(&app.settings);
        let system = profile.system.filter(|_| is_document && profile.agent.buffer_system_context);
        let mut share = Share { params, model, agent: name.clone(), profile: digest, count, system };
        if is_document {
            share.limited();
        }
        shares.push(share);
    }
    Ok(shares)
}

/// The model that is asked: that of a flag, else of the preset in force, else the default one.
pub(crate) fn model_name<'a>(app: &'a App, preset: &'a Preset) -> Option<&'a str> {
    let Settings { named, model, .. } = &app.settings;
    named.as_deref().or(preset.model.as_deref()).or(model.as_deref())
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
