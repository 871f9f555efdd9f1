//! The providers of the configuration, and whether the local ones answer.

use std::time::Duration;

use commands::CommandError;
use commands::results::maintenance::{Check, State};
use loom::source::DEFAULT_AGENT;
use model::{ModelPlace, list_models};

use super::{check, ok};
use crate::config::{Config, Layers, Source, default_model, unusable_model};
use crate::interrupt;
use crate::provider::ResolvedProvider;
use crate::variable::held;

/// How long a local server may take to list its models.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn checks(layers: &Layers, config: &Config, quick: bool) -> Result<Vec<Check>, CommandError> {
    let mut checks = vec![model(config)];
    let mut asked = Vec::new();
    for name in config.providers.keys() {
        let Some(reached) = ResolvedProvider::of(config, name) else { continue };
        let Some(base_url) = reached.base_url() else {
            let fix = format!("`drawloom config set providers.{name}.base_url URL`");
            checks.push(check(&format!("provider {name}"), State::Fail, "it has no address", fix));
            continue;
        };
        let place = if reached.place() == ModelPlace::Local { "local" } else { "remote" };
        checks.push(key(layers, name, &reached, &format!("{place}, {base_url}")));
        if reached.place() == ModelPlace::Local {
            asked.push(reached);
        }
    }
    if !quick && !asked.is_empty() {
        // Only servers on machines of the owner's: nothing is said to others that nobody asked to be said.
        let runtime = interrupt::runtime()?;
        checks.extend(runtime.block_on(async {
            let mut answers = Vec::new();
            for reached in asked {
                answers.push(answer(&reached).await);
            }
            answers
        }));
        runtime.shutdown_background();
    }
    Ok(checks)
}

/// The model of conversations, and that of everything else.
fn model(config: &Config) -> Check {
    let Some(own) = config.agents.get(DEFAULT_AGENT).and_then(|agent| agent.model.as_deref()) else {
        return default(config);
    };
    if let Some(why) = unusable_model(config, &format!("agents.{DEFAULT_AGENT}.model"), own) {
        let fix = format!("`drawloom config set agents.{DEFAULT_AGENT}.model PROVIDER/NAME`");
        return check("model", State::Fail, why, fix);
    }
    let elsewhere = default(config);
    Check { why: format!("{own} in conversations; {}", elsewhere.why), ..elsewhere }
}

fn default(config: &Config) -> Check {
    match (&config.model.default, default_model(config)) {
        (_, Some(why)) => check("model", State::Fail, why, "`drawloom model use PROVIDER/NAME`"),
        (Some(model), None) => ok("model", format!("{model} when none is named")),
        (None, None) => check(
            "model",
            State::Warn,
            "none is the default",
            "`drawloom init` looks for one; or `drawloom model use PROVIDER/NAME`, or name one with --model",
        ),
    }
}

/// Where the key of a provider is found, in the order in which it is looked for. Never the key itself.
fn key(layers: &Layers, name: &str, reached: &ResolvedProvider<'_>, about: &str) -> Check {
    let source = layers.get(&format!("providers.{name}.key")).1;
    let name = format!("provider {name}");
    let provider = &reached.section;
    let is_held = |variable: &str| held(variable).is_some();
    match (&provider.key_env, &provider.key) {
        (Some(variable), _) if is_held(variable) => ok(&name, format!("{about}, key in {variable}")),
        (_, Some(_)) if source == Source::Environment => {
            ok(&name, format!("{about}, key in the environment (DRAWLOOM_PROVIDERS__…__KEY)"))
        }
        (_, Some(_)) => ok(&name, format!("{about}, key in keys.toml")),
        (Some(variable), None) => {
            check(&name, State::Warn, format!("{about}, no key in {variable}"), format!("set {variable}"))
        }
        (None, None) if reached.usual_key().is_some_and(is_held) => {
            let variable = reached.usual_key().unwrap_or_default();
            ok(&name, format!("{about}, a key in {variable}, used when --model names it"))
        }
        (None, None) => ok(&name, format!("{about}, no key set")),
    }
}

async fn answer(reached: &ResolvedProvider<'_>) -> Check {
    let title = format!("server {}", reached.name);
    let connection = match reached.connection(reached.known_key()) {
        Ok(connection) => connection,
        Err(error) => return check(&title, State::Fail, error.message, error.hint),
    };
    match tokio::time::timeout(PATIENCE, list_models(reached.dialect(), connection, None)).await {
        Ok(Ok(found)) => {
            let names: Vec<_> = found.iter().take(8).map(|model| model.id.as_str()).collect();
            let more = if found.len() > names.len() { ", …" } else { "" };
            ok(&title, format!("has {}{more}", names.join(", ")))
        }
        Ok(Err(error)) => check(&title, State::Warn, error.to_string(), "start it, or check its address"),
        Err(_) => {
            check(&title, State::Warn, "it did not answer within 2 s", "start it, or check its address")
        }
    }
}
