//! The providers of the configuration, and whether the local ones answer.

use std::time::Duration;

use commands::CommandError;
use commands::results::care::{Check, State};
use model::connection::place_of;
use model::{DialectName, Place, list_models};

use super::{check, ok};
use crate::config::{Config, Layers, Provider, Source};
use crate::{interrupt, models};

/// How long a local server may take to list its models.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn checks(layers: &Layers, config: &Config, quick: bool) -> Result<Vec<Check>, CommandError> {
    let mut checks = vec![default(config)];
    let mut asked = Vec::new();
    // What is known without a section is no news until it has a key.
    let in_use = |provider: &&Provider| {
        provider.key.is_some()
            || provider.key_env.is_some()
            || provider.base_url.as_deref() != Some(models::OPENAI_URL)
    };
    for (name, provider) in config.providers.iter().filter(|(_, provider)| in_use(provider)) {
        let Some(base_url) = &provider.base_url else {
            let fix = format!("`drawloom config set providers.{name}.base_url URL`");
            checks.push(check(&format!("provider {name}"), State::Fail, "it has no address", fix));
            continue;
        };
        let place = provider.place.or_else(|| place_of(base_url).ok());
        if place == Some(Place::Local) {
            asked.push((name.as_str(), provider));
        }
        let place = if place == Some(Place::Local) { "local" } else { "remote" };
        checks.push(key(layers, name, provider, &format!("{place}, {base_url}")));
    }
    if !quick && !asked.is_empty() {
        // Only servers on machines of the owner's: nothing is said to others that nobody asked to be said.
        let runtime = interrupt::runtime()?;
        checks.extend(runtime.block_on(async {
            let mut answers = Vec::new();
            for (name, provider) in asked {
                answers.push(answer(name, provider).await);
            }
            answers
        }));
        runtime.shutdown_background();
    }
    Ok(checks)
}

fn default(config: &Config) -> Check {
    match &config.model.default {
        Some(model) => ok("model", format!("{model} when none is named")),
        None => check(
            "model",
            State::Warn,
            "none is the default",
            "`drawloom init` looks for one; or `drawloom model use PROVIDER/NAME`, or name one with --model",
        ),
    }
}

/// Where the key of a provider is found, in the order in which it is looked for. Never the key itself.
fn key(layers: &Layers, name: &str, provider: &Provider, about: &str) -> Check {
    let source = layers.get(&format!("providers.{name}.key")).1;
    let name = format!("provider {name}");
    let held = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    match (&provider.key_env, &provider.key) {
        (Some(variable), _) if held(variable) => ok(&name, format!("{about}, key in {variable}")),
        (_, Some(_)) if source == Source::Environment => {
            ok(&name, format!("{about}, key in the environment (DRAWLOOM_PROVIDERS__…__KEY)"))
        }
        (_, Some(_)) => ok(&name, format!("{about}, key in keys.toml")),
        (Some(variable), None) => {
            check(&name, State::Warn, format!("{about}, no key in {variable}"), format!("set {variable}"))
        }
        (None, None) => ok(&name, format!("{about}, no key set")),
    }
}

async fn answer(name: &str, provider: &Provider) -> Check {
    let title = format!("server {name}");
    let connection = match models::connection(name, provider, models::known_key(provider)) {
        Ok(connection) => connection,
        Err(error) => return check(&title, State::Fail, error.message, error.hint),
    };
    match tokio::time::timeout(PATIENCE, list_models(DialectName::OpenAiChat, connection, None)).await {
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
