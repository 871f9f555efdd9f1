//! `model list`, `pull` and `use`: what can be asked, and which of it is asked when none is named.

use std::collections::BTreeSet;
use std::sync::Arc;

use commands::args::care::ConfigCommand;
use commands::args::model::ModelCommand;
use commands::results::model::{ModelShown, Models};
use commands::{CommandError, Outcome};
use model::Place;
use model::connection::place_of;
use weights::Consent;

use crate::config::{self, Config, Layers};
use crate::detect::{Found, SERVERS, detect};
use crate::embedded::{self, Embedded};
use crate::interrupt::{self, Ended};
use crate::models::{self, Configured};
use crate::places::Places;
use crate::talk::Person;

/// The key that holds the model used when none is named.
pub(crate) const DEFAULT: &str = "model.default";

/// Runs one. `model test` asks a model and is none of these.
///
/// # Errors
/// As each command says.
pub(crate) fn run(
    command: &ModelCommand,
    places: &Places,
    layers: &Layers,
    person: Person,
) -> Result<Outcome, CommandError> {
    let config = layers.config()?;
    let shown = match command {
        ModelCommand::List { detect: false } => list(places, &config, &[]),
        ModelCommand::List { detect: true } => list(places, &config, &detect(&SERVERS)?),
        ModelCommand::Pull { name } => vec![pull(name, places, &config, person)?],
        ModelCommand::Use { name } => vec![use_model(name, places, layers, &config, &person)?],
        ModelCommand::Test { .. } => {
            return Err(CommandError::usage("a model is asked with a home", "run it from the command line"));
        }
    };
    Ok(Outcome::Models(Models { models: shown }))
}

/// Everything that can be named: the embedded ones, what the configuration names, and servers that answered.
fn list(places: &Places, config: &Config, found: &[Found]) -> Vec<ModelShown> {
    let mut names = BTreeSet::new();
    let mut shown: Vec<ModelShown> = Vec::new();
    let default = config.model.default.as_deref();
    let presets = config
        .presets
        .iter()
        .filter_map(|(name, preset)| Some((preset.model.as_deref()?, format!("preset {name}"))));
    let agents = config
        .agents
        .iter()
        .filter_map(|(name, agent)| Some((agent.model.as_deref()?, format!("agent {name}"))));
    let named = default.map(|name| (name, DEFAULT.to_owned())).into_iter().chain(presets).chain(agents);
    for (name, from) in named {
        if names.insert(name.to_owned()) && embedded::known(name).is_none() {
            shown.push(one(name, &from, config));
        }
    }
    for (name, provider) in &config.providers {
        let prefix = format!("{name}/");
        let is_named = names.iter().any(|named| named.starts_with(&prefix));
        let has_key = models::known_key(provider).is_some() || provider.key_env.is_some();
        if !is_named && (has_key || provider.base_url.as_deref() != Some(models::OPENAI_URL)) {
            shown.push(one(&format!("{name}/…"), &format!("[providers.{name}]"), config));
        }
    }
    for server in found {
        for model in &server.models {
            shown.push(ModelShown {
                name: format!("{}/{}", server.url, model.id),
                place: Place::Local,
                window: model.window,
                price: None,
                embedded: false,
                installed: None,
                default: false,
                from: format!("found at the address of {}", server.name),
                about: None,
            });
        }
    }
    shown.extend(weights::table::TABLE.iter().map(|weights| built_in(weights, places, config)));
    shown
}

fn built_in(weights: &weights::Weights, places: &Places, config: &Config) -> ModelShown {
    let converted = weights::Folders::of_home(&places.home).converted(weights);
    let default = config.model.default.as_deref().and_then(embedded::known);
    ModelShown {
        name: weights.name.to_owned(),
        place: Place::Local,
        window: None,
        price: None,
        embedded: true,
        installed: Some(converted.is_file()),
        default: default.is_some_and(|known| known.name == weights.name),
        from: "built in".to_owned(),
        about: Some(weights.about.to_owned()),
    }
}

/// A model by its name, as far as it is known without asking anybody.
fn one(name: &str, from: &str, config: &Config) -> ModelShown {
    let provider = name.split_once('/').and_then(|(provider, _)| config.providers.get(provider));
    let place = provider
        .and_then(|provider| provider.place.or_else(|| place_of(provider.base_url.as_deref()?).ok()))
        .or_else(|| name.starts_with("http").then(|| place_of(name).ok()).flatten())
        .unwrap_or(if name.contains(':') { Place::Local } else { Place::Remote });
    ModelShown {
        name: name.to_owned(),
        place,
        window: provider.map(|provider| provider.window),
        price: None,
        embedded: name.starts_with(embedded::FILE),
        installed: None,
        default: config.model.default.as_deref() == Some(name),
        from: from.to_owned(),
        about: None,
    }
}

fn pull(name: &str, places: &Places, config: &Config, person: Person) -> Result<ModelShown, CommandError> {
    let Some(weights) = embedded::known(name) else {
        let known: Vec<_> = weights::table::TABLE.iter().map(|weights| weights.name).collect();
        let hint = format!("known: {}; models of servers are fetched by their servers", known.join(", "));
        return Err(CommandError::not_found("weights known as", name, hint));
    };
    fetch(weights, Consent::Pull, places, config, Arc::new(person))?;
    Ok(built_in(weights, places, config))
}

/// Fetches weights in a home, which is made if it is not there. Ctrl-C ends it; what arrived is kept.
///
/// # Errors
/// What went wrong.
pub(crate) fn fetch(
    weights: &'static weights::Weights,
    consent: Consent,
    places: &Places,
    config: &Config,
    person: Arc<Person>,
) -> Result<(), CommandError> {
    crate::open::home(places, config, &person)?;
    let (stop, cancel) = model::Cancel::new();
    let workspace = places.workspace().ok().map(|chosen| chosen.folder);
    let embedded = Embedded::of_home(&places.home, workspace, false, person, cancel);
    let runtime = interrupt::runtime()?;
    let work = async move {
        let fetched = tokio::task::spawn_blocking(move || embedded.obtain(weights, consent).map(drop)).await;
        fetched.unwrap_or_else(|_| Err(CommandError::new("interrupted", 130, "the download was ended", "")))
    };
    let ended = interrupt::run(&runtime, work, Some(&stop))?;
    runtime.shutdown_background();
    match ended {
        Ended::Done(()) => Ok(()),
        Ended::Interrupted(_) => Err(CommandError::new(
            "interrupted",
            crate::run::INTERRUPTED,
            "the download was ended",
            "the same command goes on where it was stopped",
        )),
    }
}

/// Makes a model the default one: its name must mean something, but nothing is asked or fetched.
fn use_model(
    name: &str,
    places: &Places,
    layers: &Layers,
    config: &Config,
    person: &Person,
) -> Result<ModelShown, CommandError> {
    if embedded::known(name).is_none() && !name.starts_with(embedded::FILE) {
        Configured::new(config.clone(), Some(name)).check(name)?;
    }
    let set = ConfigCommand::Set { key: DEFAULT.to_owned(), value: name.to_owned() };
    config::run(set, places, layers, &|line| person.notice(line))?;
    let mut config = config.clone();
    config.model.default = Some(name.to_owned());
    Ok(match embedded::known(name) {
        Some(weights) => {
            let shown = built_in(weights, places, &config);
            if shown.installed == Some(false) {
                person
                    .notice(&format!("its weights are not here yet: `drawloom model pull {}`", weights.name));
            }
            shown
        }
        None => one(name, DEFAULT, &config),
    })
}
