//! The values no text may carry out or in: every key this invocation could know (spec: security §11).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent::ReadMasker;
use commands::CommandError;
use mcp::SavedLogin;
use store::home::{HomeDir, KEYS};
use text::mask::{MAX_BYTES, MaskError, Masker, Secret};

use crate::config::{Config, Layers};
use crate::variable::held;

/// Secrets as they are known at a moment.
struct KnownSecrets {
    secrets: Vec<Secret>,
    /// What is said of those that cannot be masked.
    notices: Vec<String>,
    /// Why others are not known that the home keeps.
    unreadable: Vec<String>,
}

/// A masker of every known secret, and notices about those that cannot be masked.
///
/// # Errors
/// When the search for them cannot be made: nothing may go through unmasked instead.
pub(crate) fn masker(config: &Config, home: &Path) -> Result<(Masker, Vec<String>), CommandError> {
    let KnownSecrets { secrets, mut notices, unreadable } = secrets(config, home);
    notices.extend(unreadable);
    let masker = masker_of(config, &secrets)
        .map_err(|error| CommandError::refused("secrets", error.to_string(), "use fewer or shorter keys"))?;
    Ok((masker, notices))
}

fn masker_of(config: &Config, secrets: &[Secret]) -> Result<Masker, MaskError> {
    let masker = Masker::new(secrets)?;
    Ok(if config.safety.guess_secrets { masker } else { masker.without_guesses() })
}

/// Reads the secrets that are known by now, beside all that were known before: what was taken out meanwhile stays masked. An
/// error where one of their files cannot be read whole.
pub(crate) fn newest_masker(config: &Config, home: PathBuf) -> Arc<ReadMasker> {
    let known = Mutex::new(secrets(config, &home).secrets);
    Arc::new(move || {
        let layers = Layers::read(&home, std::env::vars_os(), &[]);
        // A key that cannot be read is not masked.
        if let Some(problem) = layers.problems().iter().find(|problem| problem.place == KEYS) {
            return Err(problem.to_string());
        }
        let config = layers.lenient().map_err(|error| error.message)?;
        let now = secrets(&config, &home);
        if let Some(why) = now.unreadable.into_iter().next() {
            return Err(why);
        }
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = now.secrets.into_iter().filter(|secret| !known.contains(secret)).collect();
        known.extend(new);
        masker_of(&config, &known).map_err(|error| error.to_string())
    })
}

fn secrets(config: &Config, home: &Path) -> KnownSecrets {
    let mut found = KnownSecrets { secrets: Vec::new(), notices: Vec::new(), unreadable: Vec::new() };
    let logins = logins(home, &mut found.unreadable);
    for (name, value) in known(config).into_iter().chain(logins) {
        match Secret::new(name, value) {
            Ok(secret) => found.secrets.push(secret),
            Err(error) => found.notices.push(error.to_string()),
        }
    }
    found
}

/// What lets this home in at servers of tools, those too that the configuration does not name. Says why a login cannot be read.
fn logins(home: &Path, unreadable: &mut Vec<String>) -> Vec<(String, String)> {
    let folder = home.join(HomeDir::Logins.name());
    let saved = SavedLogin::within(&folder).unwrap_or_else(|error| {
        unreadable.push(format!("{}: {error}", folder.display()));
        Vec::new()
    });
    let mut known = Vec::new();
    for login in saved {
        match login.secrets() {
            // One that is too long to be searched for is masked where it could come back.
            Ok(secrets) => known.extend(
                secrets
                    .into_iter()
                    .filter(|value| value.len() <= MAX_BYTES)
                    .map(|value| (format!("mcp.{}.login", login.name()), value)),
            ),
            Err(why) => unreadable.push(why),
        }
    }
    known
}

fn known(config: &Config) -> Vec<(String, String)> {
    let mut known = Vec::new();
    for (name, provider) in &config.providers {
        let key = provider.key.clone().filter(|key| !key.is_empty());
        known.extend(key.map(|key| (format!("providers.{name}.key"), key)));
        let loose = provider.loose_key.clone();
        known.extend(loose.map(|key| (format!("{KEYS}/providers.{name}.key"), key)));
        let named = provider.key_env.as_deref().and_then(|name| Some((name.to_owned(), held(name)?)));
        known.extend(named);
    }
    for (name, server) in &config.mcp {
        let named = server.secrets.iter();
        known.extend(named.map(|(variable, key)| (format!("mcp.{name}.secrets.{variable}"), key.clone())));
        let loose = server.loose_secrets.iter().enumerate();
        known.extend(loose.map(|(number, key)| (format!("{KEYS}/mcp.{name}.secrets.{number}"), key.clone())));
    }
    let loose = config.store.loose_password.clone();
    known.extend(loose.map(|password| (format!("{KEYS}/store.password"), password)));
    known.extend(config.store.known_password().map(|password| ("store.password".to_owned(), password)));
    let web = &config.web;
    known.extend(web.loose_search_key.clone().map(|key| (format!("{KEYS}/web.search_key"), key)));
    known.extend(web.search_key.clone().map(|key| ("web.search_key".to_owned(), key)));
    let named = web.search_key_env.as_deref().and_then(|name| Some((name.to_owned(), held(name)?)));
    known.extend(named);
    let of_skills = config.skills.env.values().flat_map(|variables| &variables.0);
    known.extend(of_skills.filter_map(|name| Some((name.clone(), held(name)?))));
    // Known although it may not be used: the owner's text should not carry it either.
    let usual = model::providers().iter().filter_map(|row| row.key_env);
    known.extend(usual.filter_map(|name| Some((name.to_owned(), held(name)?))));
    known.sort();
    known.dedup_by(|a, b| a.0 == b.0);
    known
}
