//! `model list`, `pull` and `use`: what can be asked, and which of it is asked when none is named.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use commands::args::maintenance::ConfigCommand;
use commands::args::model::ModelCommand;
use commands::results::model::{ModelShown, ModelsShown};
use commands::{CommandError, CommandOutcome};
use model::{ListedModel, ModelInfo, ModelPlace, Prices};
use text::terminal::one_line;
use weights::Consent;

use crate::config::{self, Config, Layers};
use crate::detect::{FoundServer, detect, listed, servers};
use crate::embedded::{self, Embedded};
use crate::interrupt::{self, CommandEnd, InputWait};
use crate::model_address::server_and_model;
use crate::model_names;
use crate::models::ConfiguredModels;
use crate::paths::InvocationPaths;
use crate::provider::ResolvedProvider;
use crate::terminal::Terminal;

/// The key that holds the model used when none is named.
pub(crate) const DEFAULT: &str = "model.default";

/// Runs one, by a configuration of these layers. `model test` asks a model and is none of these.
///
/// # Errors
/// As each command says.
pub(crate) fn run(
    command: &ModelCommand,
    paths: &InvocationPaths,
    (layers, config): (&Layers, Config),
    person: Terminal,
) -> Result<CommandOutcome, CommandError> {
    let shown = match command {
        ModelCommand::List { detect: looks, all } => {
            let found = if *looks { detect(&servers())? } else { Vec::new() };
            let local = if *looks { local_servers(&config)? } else { Vec::new() };
            list(paths, &config, (&found, &local), *all)
        }
        ModelCommand::Pull { name } => vec![pull(name, paths, &config, person)?],
        ModelCommand::Use { name } => vec![use_model(name, paths, layers, &config, &person)?],
        ModelCommand::Test { .. } => {
            return Err(CommandError::usage("a model is asked with a home", "run it from the command line"));
        }
    };
    let is_chosen = matches!(command, ModelCommand::Use { .. });
    let kept_in = is_chosen.then(|| paths.home.join(store::home::CONFIG));
    Ok(CommandOutcome::Models(ModelsShown { models: shown, kept_in }))
}

/// Everything that can be named: what the configuration names, servers that answered, the catalogue if `all` is asked
/// for, and the embedded ones.
fn list(
    paths: &InvocationPaths,
    config: &Config,
    (found, local): (&[FoundServer], &[LocalServer]),
    all: bool,
) -> Vec<ModelShown> {
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
    for full in config.models.keys() {
        if names.insert(full.clone()) {
            shown.push(one(full, &format!("[models.\"{full}\"]"), config));
        }
    }
    for name in config.providers.keys() {
        let prefix = format!("{name}/");
        let is_listed = local.iter().any(|server| server.name == *name && !server.models.is_empty());
        if !is_listed && !names.iter().any(|named| named.starts_with(&prefix)) {
            shown.push(one(&format!("{name}/…"), &format!("[providers.{name}]"), config));
        }
    }
    for server in found {
        for model in &server.models {
            // Under its name where such a server is known to be; elsewhere anybody could listen there.
            let full = format!("{}/{}", server.name, model.id);
            if !names.insert(full.clone()) {
                continue;
            }
            let known = one(&full, &format!("found at {}", server.url), config);
            shown.push(ModelShown { window: model.window.or(known.window), ..known });
        }
    }
    for server in local {
        for model in &server.models {
            let full = format!("{}/{}", server.name, model.id);
            if names.insert(full.clone()) {
                let known = one(&full, &format!("[providers.{}]", server.name), config);
                shown.push(ModelShown { window: model.window.or(known.window), ..known });
            }
        }
    }
    let catalogue = model_names::catalogue(config).filter(|_| all);
    for (full, entry) in catalogue {
        if !names.contains(&full) {
            shown.push(one(&full, &format!("the catalogue of {}", entry.as_of), config));
        }
    }
    shown.extend(weights::table::TABLE.iter().map(|weights| built_in(weights, paths, config)));
    shown
}

/// A local server of the configuration, with the models it says it has.
struct LocalServer {
    name: String,
    models: Vec<ListedModel>,
}

/// Asks the local servers that the configuration names.
fn local_servers(config: &Config) -> Result<Vec<LocalServer>, CommandError> {
    let reached = config.providers.keys().filter_map(|name| ResolvedProvider::of(config, name));
    let local =
        reached.filter(|reached| reached.place() == ModelPlace::Local && reached.base_url().is_some());
    local
        .map(|reached| {
            Ok(LocalServer { models: listed(&reached)?.unwrap_or_default(), name: reached.name.into_owned() })
        })
        .collect()
}

/// Full names that end with a name without its provider: those the configuration uses, and those its local servers
/// list.
pub(crate) fn that_end_so(config: &Config, name: &str) -> Vec<String> {
    let ends = |full: &str| {
        full.split_once('/').is_some_and(|(_, rest)| rest == name || rest.ends_with(&format!("/{name}")))
    };
    if name.is_empty() || name.contains(['/', ':']) {
        return Vec::new();
    }
    let presets = config.presets.values().filter_map(|preset| preset.model.clone());
    let agents = config.agents.values().filter_map(|agent| agent.model.clone());
    let used =
        config.model.default.iter().chain(&config.model.fallbacks).chain(&config.model.subagents).cloned();
    let used = used.chain(presets).chain(agents);
    // Without the lists the error is still the right one.
    let servers = local_servers(config).unwrap_or_default().into_iter();
    let listed = servers.flat_map(|LocalServer { name, models }| {
        models.into_iter().map(move |model| format!("{name}/{}", model.id))
    });
    let found: BTreeSet<String> = used.chain(listed).filter(|full| ends(full)).collect();
    found.iter().map(|full| one_line(full).into_owned()).collect()
}

fn built_in(weights: &weights::Weights, paths: &InvocationPaths, config: &Config) -> ModelShown {
    let converted = weights::WeightsFolders::of_home(&paths.home).converted(weights);
    let default = config.model.default.as_deref().and_then(embedded::known);
    ModelShown {
        name: weights.name.to_owned(),
        place: ModelPlace::Local,
        window: None,
        window_assumed: false,
        output_limit: None,
        price: Some(Prices::FREE.in_words()),
        abilities: vec!["raw".to_owned()],
        host: None,
        embedded: true,
        installed: Some(converted.is_file()),
        default: default.is_some_and(|known| known.name == weights.name),
        from: "built in".to_owned(),
        about: Some(weights.about.to_owned()),
    }
}

/// A model by its name, as far as it is known without asking anybody.
fn one(name: &str, from: &str, config: &Config) -> ModelShown {
    let info = ConfiguredModels::new(config.clone(), None).info(name);
    let is_here = name.starts_with(embedded::FILE)
        || name.starts_with("script:")
        || info.is_none() && name.starts_with("script/");
    let place =
        info.as_ref().map_or(if is_here { ModelPlace::Local } else { ModelPlace::Remote }, |info| info.place);
    // Of a provider without a model only what holds for all of them is known.
    let whole = info.as_ref().filter(|info| info.name != "…");
    ModelShown {
        name: name.to_owned(),
        place,
        window: info.as_ref().filter(|info| whole.is_some() || !info.window_assumed).map(|info| info.window),
        window_assumed: whole.is_some_and(|info| info.window_assumed),
        output_limit: whole.map(|info| info.output_limit),
        price: whole.and_then(|info| info.prices).map(|prices| prices.in_words()),
        abilities: whole.map(abilities).unwrap_or_default(),
        host: info.as_ref().and_then(|info| info.host.clone()),
        embedded: name.starts_with(embedded::FILE),
        installed: None,
        default: config.model.default.as_deref() == Some(name),
        from: from.to_owned(),
        about: info.as_ref().and_then(|info| model_names::doubt(config, &info.full_name())),
    }
}

/// What a model can do, in words.
fn abilities(info: &ModelInfo) -> Vec<String> {
    let all = [
        (info.tools, "tools"),
        (info.images, "images"),
        (info.audio, "audio"),
        (info.prefill, "prefill"),
        (info.structured, "structured"),
        (info.logprobs, "logprobs"),
        (info.honours_n, "n"),
        (info.completion_endpoint, "raw"),
    ];
    all.iter().filter(|(can, _)| *can).map(|(_, name)| (*name).to_owned()).collect()
}

fn pull(
    name: &str,
    paths: &InvocationPaths,
    config: &Config,
    person: Terminal,
) -> Result<ModelShown, CommandError> {
    let Some(weights) = embedded::known(name) else {
        let known: Vec<_> = weights::table::TABLE.iter().map(|weights| weights.name).collect();
        let hint = format!("known: {}; a server downloads its models itself", known.join(", "));
        return Err(CommandError::not_found("weights known as", name, hint));
    };
    fetch(weights, Consent::Pull, paths, config, Arc::new(person))?;
    Ok(built_in(weights, paths, config))
}

/// Fetches weights in a home, which is made if it is not there. Ctrl-C ends it; what arrived is kept.
///
/// # Errors
/// What went wrong.
pub(crate) fn fetch(
    weights: &'static weights::Weights,
    consent: Consent,
    paths: &InvocationPaths,
    config: &Config,
    person: Arc<Terminal>,
) -> Result<(), CommandError> {
    crate::open::home(paths, config, &person)?;
    let (stop, cancel) = model::Cancel::new();
    let workspace = paths.workspace().ok().map(|chosen| chosen.folder);
    let embedded = Embedded::of_home(&paths.home, workspace, false, person, cancel);
    let runtime = interrupt::runtime()?;
    let work = async move {
        let fetched = tokio::task::spawn_blocking(move || embedded.obtain(weights, consent).map(drop)).await;
        fetched.unwrap_or_else(|_| Err(CommandError::new("interrupted", 130, "the download was ended", "")))
    };
    let ended = interrupt::run(&runtime, work, Some((&stop, &InputWait::default())))?;
    runtime.shutdown_background();
    match ended {
        CommandEnd::Done(()) => Ok(()),
        CommandEnd::Interrupted(_, code) => Err(CommandError::new(
            "interrupted",
            code,
            "the download was ended",
            "the same command continues where it was stopped",
        )),
    }
}

/// A model as its local server lists it; none where it cannot be asked, or does not say what it has, which is told. What
/// is not listed is refused with `command` and the name of one that is, unless the server is llama.cpp's: what has one
/// model answers to every name.
///
/// # Errors
/// `not_found`; also when the system gives no threads.
pub(crate) fn served(
    models: &ConfiguredModels,
    full: &str,
    command: &str,
    tell: &dyn Fn(&str),
) -> Result<Option<ListedModel>, CommandError> {
    let Some(info) = models.info(full).filter(|info| info.place == ModelPlace::Local) else {
        return Ok(None);
    };
    let Some((provider, name)) = server_and_model(full) else { return Ok(None) };
    let (listed, why) = match models.listed(full, &info)? {
        Ok(listed) => (listed, String::new()),
        Err(why) => (Vec::new(), format!(" ({})", one_line(&why))),
    };
    // Ollama lists a name that is given without a tag with its default one.
    let is_it = |model: &&ListedModel| model.id.strip_suffix(":latest").unwrap_or(&model.id) == info.name;
    let found = listed.iter().find(|model| model.id == info.name).or_else(|| listed.iter().find(is_it));
    match (found, &listed[..]) {
        (Some(found), _) => Ok(Some(found.clone())),
        (None, [only]) if models.answers_to_any_name(&info, &only.id) => {
            let (full, id) = (one_line(full), one_line(&only.id));
            tell(&format!("the server of {full} lists one model, {id}: it answers to any name"));
            Ok(Some(only.clone()))
        }
        (None, [first, ..]) => {
            let has: Vec<_> = listed.iter().map(|model| one_line(&model.id)).collect();
            let hint = format!("`{command} {}/{}`", one_line(&provider), one_line(&first.id));
            let what = format!("on the server, which lists {}", has.join(", "));
            Err(CommandError::not_found("model", &format!("{name} {what}"), hint))
        }
        (None, []) => {
            let full = one_line(full);
            tell(&format!(
                "the server of {full} did not say which models it has{why}: the name is kept unchecked"
            ));
            Ok(None)
        }
    }
}

/// Keeps the window a local server says its model has: it may have been given less than it was made for, and what is
/// beyond that is cut off without a word. What the owner has written stays.
fn keep_window(
    models: &ConfiguredModels,
    full: &str,
    paths: &InvocationPaths,
    layers: &Layers,
    person: &Terminal,
) -> Result<Option<u32>, CommandError> {
    let found = served(models, full, "drawloom model use", &|line| person.notice(line))?;
    let Some((provider, name)) = server_and_model(full) else { return Ok(None) };
    let Some(window) = found.and_then(|model| model.window) else { return Ok(None) };
    let key = config::join(&["models".to_owned(), full.to_owned(), "window".to_owned()]);
    let of_all = format!("providers.{provider}.window");
    if full.starts_with("http") || layers.get(&key).0.is_some() || layers.get(&of_all).0.is_some() {
        return Ok(None);
    }
    person.notice(&format!(
        "the server of {} reports a window of {window} tokens: kept as {key}",
        one_line(name)
    ));
    let set = ConfigCommand::Set { key, value: Some(window.to_string()) };
    config::run(set, paths, layers, &|line| person.notice(line))?;
    Ok(Some(window))
}

/// Makes a model the default one: its name must mean something. Only a local server is asked, for its window.
fn use_model(
    name: &str,
    paths: &InvocationPaths,
    layers: &Layers,
    config: &Config,
    person: &Terminal,
) -> Result<ModelShown, CommandError> {
    let models = ConfiguredModels::new(config.clone(), Some(name)).guarding(paths.guard()?);
    let (mut full, mut told) = (Cow::Borrowed(name), None);
    let is_here = embedded::known(name).is_some() || name.starts_with(embedded::FILE);
    if !is_here {
        models.check(name)?;
        // A name alone is kept in full, so that it means the same tomorrow.
        if let Some(info) = models.info(name).filter(|_| !name.contains('/')) {
            full = Cow::Owned(info.full_name());
        }
        if let Some(doubt) = model_names::doubt(config, &full) {
            person.notice(&doubt);
        }
        told = keep_window(&models, &full, paths, layers, person)?;
    }
    let name = &*full;
    let set = ConfigCommand::Set { key: DEFAULT.to_owned(), value: Some(name.to_owned()) };
    config::run(set, paths, layers, &|line| person.notice(line))?;
    let mut config = config.clone();
    config.model.default = Some(name.to_owned());
    if told.is_some() {
        config.models.entry(name.to_owned()).or_default().window = told;
    }
    Ok(match embedded::known(name) {
        Some(weights) => {
            let shown = built_in(weights, paths, &config);
            if shown.installed == Some(false) {
                person.notice(&format!(
                    "its weights are not downloaded yet: `drawloom model pull {}`",
                    weights.name
                ));
            }
            shown
        }
        None => one(name, DEFAULT, &config),
    })
}
