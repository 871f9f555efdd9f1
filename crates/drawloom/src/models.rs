//! Models by name: of a configured provider, of an address, or of a script (spec: agent §2, cli §3).
//!
//! A key that merely lies in the environment is not used: it takes a section that names it, or `--model` with
//! that provider. So no text goes to a paid service because of a variable that was meant for another program.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use commands::CommandError;
use commands::app::Models;
use model::connection::place_of;
use model::script::{ScriptError, ScriptOptions};
use model::{
    ApiKey, Connection, DialectName, HttpModel, Model, ModelInfo, Place, Quirks, ScriptModel, SetupError,
    SourceKind, Timeouts,
};
use text::terminal::one_line;

use crate::config::{Config, Provider};
use crate::embedded::{self, Embedded};

/// The provider that is known without a section; its row of defaults stands in the table of keys.
const OPENAI: &str = "openai";
/// Its address.
pub(crate) const OPENAI_URL: &str = "https://api.openai.com/v1";
/// The variable that holds its key.
pub(crate) const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// The models of a configuration.
pub(crate) struct Configured {
    config: Config,
    /// What `--model` says.
    named: Option<String>,
    /// What may be done for embedded models; without, none are known.
    embedded: Option<Embedded>,
    /// A script counts its lines per process, so that each name is one model.
    made: Mutex<HashMap<String, Arc<dyn Model>>>,
}

impl Configured {
    /// The models of a configuration; `named` is what `--model` says.
    pub(crate) fn new(config: Config, named: Option<&str>) -> Self {
        Self { config, named: named.map(str::to_owned), embedded: None, made: Mutex::default() }
    }

    /// The same, with embedded models.
    pub(crate) fn with(mut self, embedded: Embedded) -> Self {
        self.embedded = Some(embedded);
        self
    }

    /// Whether a name means a model, without asking or fetching anything.
    ///
    /// # Errors
    /// As [`Models::find`].
    pub(crate) fn check(&self, name: &str) -> Result<(), CommandError> {
        self.make(name).map(drop)
    }

    fn make(&self, name: &str) -> Result<Arc<dyn Model>, CommandError> {
        if let Some(script) = name.strip_prefix("script:") {
            return ScriptModel::open(script, ScriptOptions::default())
                .map(|model| Arc::new(model) as Arc<dyn Model>)
                .map_err(|error| script_error(&error));
        }
        if let Some(path) = name.strip_prefix(embedded::FILE) {
            return embedded::file(Path::new(path));
        }
        if let (Some(weights), Some(embedded)) = (embedded::known(name), &self.embedded) {
            let named = self.named.as_deref().and_then(embedded::known);
            return embedded.model(weights, named == Some(weights));
        }
        if let Some((address, model)) = address(name)? {
            let provider = Provider::at(&address)?;
            return server(&host(&address), model, &provider, None);
        }
        let (provider, model) = name
            .split_once('/')
            .filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
            .ok_or_else(|| self.unknown(name))?;
        match self.config.providers.get(provider) {
            Some(found) => server(provider, model, found, self.key(provider, found)?),
            None => Err(self.unknown(name)),
        }
    }

    /// The key of a provider, if it needs one.
    fn key(&self, name: &str, provider: &Provider) -> Result<Option<String>, CommandError> {
        if let Some(key) = known_key(provider) {
            return Ok(Some(key));
        }
        if let Some(variable) = &provider.key_env {
            return key_in(variable).map(Some);
        }
        let is_openai = name == OPENAI && provider.base_url.as_deref() == Some(OPENAI_URL);
        if !is_openai {
            return Ok(None);
        }
        let named = self.named.as_deref().and_then(|named| named.split_once('/'));
        if named.is_some_and(|(provider, _)| provider == OPENAI) {
            return key_in(OPENAI_KEY).map(Some);
        }
        Err(CommandError::refused(
            "key_not_named",
            format!("the key in {OPENAI_KEY} is used only when it is named"),
            format!(
                "`drawloom config set providers.{OPENAI}.key_env {OPENAI_KEY}`, or name the model with --model"
            ),
        ))
    }

    fn unknown(&self, name: &str) -> CommandError {
        let known: Vec<&str> = self.config.providers.keys().map(String::as_str).collect();
        let hint = format!(
            "known providers: {}; write PROVIDER/NAME, http://HOST:PORT/NAME or script:FILE",
            known.join(", ")
        );
        CommandError::not_found("provider for the model", name, hint)
    }
}

impl Models for Configured {
    fn about(&self, model: &ModelInfo) -> Option<String> {
        if model.dialect != DialectName::Embedded {
            return None;
        }
        Some(match embedded::known(&model.name) {
            Some(weights) => weights.about.to_owned(),
            None => format!("{}: a model inside this program; it cannot act", one_line(&model.name)),
        })
    }

    fn names(&self) -> Vec<String> {
        let presets = self.config.presets.values().filter_map(|preset| preset.model.clone());
        let agents = self.config.agents.values().filter_map(|agent| agent.model.clone());
        let named = self.named.iter().chain(&self.config.model.default).cloned();
        let providers = self.config.providers.keys().map(|provider| format!("{provider}/"));
        let mut names: Vec<String> = named.chain(presets).chain(agents).chain(providers).collect();
        names.sort();
        names.dedup();
        names
    }

    fn find(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        let name = name.or(self.named.as_deref()).or(self.config.model.default.as_deref());
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // What was said yes to stands under no name.
        let key = name.unwrap_or_default();
        if let Some(model) = made.get(key) {
            return Ok(Arc::clone(model));
        }
        let model = match name {
            Some(name) => self.make(name)?,
            None => self.embedded.as_ref().and_then(Embedded::offer).unwrap_or_else(|| Err(none_named()))?,
        };
        made.insert(key.to_owned(), Arc::clone(&model));
        Ok(model)
    }
}

fn none_named() -> CommandError {
    CommandError::usage(
        "no model is named",
        "give --model PROVIDER/NAME, keep one with `drawloom model use PROVIDER/NAME`, or have the small demo model \
         fetched with --model smollm2",
    )
}

fn server(
    name: &str,
    model: &str,
    provider: &Provider,
    key: Option<String>,
) -> Result<Arc<dyn Model>, CommandError> {
    let connection = connection(name, provider, key)?;
    let place = match provider.place {
        Some(place) => place,
        None => place_of(&connection.base_url).map_err(|error| setup(name, &error.into()))?,
    };
    let info = ModelInfo {
        provider: name.to_owned(),
        name: model.to_owned(),
        dialect: DialectName::OpenAiChat,
        place,
        kind: if place == Place::Local { SourceKind::Local } else { SourceKind::Remote },
        window: provider.window,
        output_limit: provider.output_limit,
        honours_n: provider.honours_n,
        prefill: provider.prefill,
        logprobs: provider.logprobs,
        completion_endpoint: provider.completion_endpoint,
        tools: provider.tools,
    };
    let quirks = Quirks { limit: provider.limit_field, prefill: provider.prefill_form, ..Quirks::default() };
    let made = HttpModel::new(info, quirks, connection).map_err(|error| setup(name, &error))?;
    Ok(Arc::new(made))
}

/// How to reach a provider.
///
/// # Errors
/// When its address is missing.
pub(crate) fn connection(
    name: &str,
    provider: &Provider,
    key: Option<String>,
) -> Result<Connection, CommandError> {
    let base_url = provider.base_url.as_deref().ok_or_else(|| {
        CommandError::usage(
            format!("provider {name} has no address"),
            format!("`drawloom config set providers.{name}.base_url URL`"),
        )
    })?;
    Ok(Connection {
        key: key.map(ApiKey::new),
        insecure_http: provider.insecure_http,
        proxy: provider.proxy.clone(),
        timeouts: Timeouts {
            connect: Duration::from_secs(provider.connect_timeout),
            first_byte: Duration::from_secs(provider.first_byte_timeout),
            idle: Duration::from_secs(provider.idle_timeout),
        },
        ..Connection::new(base_url)
    })
}

/// The key a section names or holds, if it is there: the environment before `keys.toml` (spec: cli §5).
pub(crate) fn known_key(provider: &Provider) -> Option<String> {
    let named = provider.key_env.as_deref().and_then(|variable| key_in(variable).ok());
    named.or_else(|| provider.key.clone())
}

fn key_in(variable: &str) -> Result<String, CommandError> {
    std::env::var(variable).ok().filter(|key| !key.is_empty()).ok_or_else(|| {
        CommandError::refused(
            "no_key",
            format!("there is no key in {variable}"),
            format!("set {variable}, or keep the key in keys.toml"),
        )
    })
}

/// An address with a model's name behind it: the base is scheme, host and port, and the path up to a version
/// where there is one.
fn address(name: &str) -> Result<Option<(String, &str)>, CommandError> {
    let Some(scheme) = ["http://", "https://"].into_iter().find(|scheme| name.starts_with(scheme)) else {
        return Ok(None);
    };
    let (authority, path) = name[scheme.len()..].split_once('/').unwrap_or((&name[scheme.len()..], ""));
    let mut base = format!("{scheme}{authority}");
    let mut model = path;
    let is_version = |segment: &str| {
        segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if let Some(place) = path.split('/').position(is_version) {
        let end: usize = path.split('/').take(place + 1).map(|segment| segment.len() + 1).sum();
        base = format!("{base}/{}", path[..end.min(path.len())].trim_end_matches('/'));
        model = path.get(end..).unwrap_or("");
    }
    if model.is_empty() {
        return Err(CommandError::usage(
            format!("{} names a server but no model", one_line(name)),
            "write the model's name behind the address, as http://localhost:8080/NAME",
        ));
    }
    Ok(Some((base, model)))
}

fn host(address: &str) -> String {
    let authority = address.split("://").nth(1).unwrap_or(address);
    authority.split('/').next().unwrap_or(authority).to_owned()
}

fn setup(name: &str, error: &SetupError) -> CommandError {
    CommandError::new(error.code(), 2, format!("provider {}: {error}", one_line(name)), error.hint())
}

fn script_error(error: &ScriptError) -> CommandError {
    let (code, exit) = match error {
        ScriptError::Read { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => ("not_found", 3),
        _ => ("bad_script", 2),
    };
    CommandError::new(
        code,
        exit,
        one_line(&error.to_string()),
        "script:FILE takes JSON lines, script:echo needs no file",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_ends_where_the_name_begins() {
        for (name, base, model) in [
            ("http://localhost:8080/qwen", "http://localhost:8080", "qwen"),
            ("http://localhost:8080/meta/Llama-3", "http://localhost:8080", "meta/Llama-3"),
            ("http://localhost:8080/v1/qwen", "http://localhost:8080/v1", "qwen"),
            ("https://host/api/v1/meta/Llama-3", "https://host/api/v1", "meta/Llama-3"),
            ("http://[::1]:1/v1beta/a:7b", "http://[::1]:1/v1beta", "a:7b"),
        ] {
            assert_eq!(address(name).unwrap(), Some((base.to_owned(), model)), "{name}");
        }
        assert_eq!(address("openai/gpt").unwrap(), None);
        for name in
            ["http://localhost:8080", "http://localhost:8080/", "http://localhost:8080/v1", "https://h/v1/"]
        {
            assert_eq!(address(name).unwrap_err().exit, 2, "{name}");
        }
    }

    #[test]
    fn plain_http_goes_to_this_machine_alone() {
        let home = tempfile::tempdir().unwrap();
        let config = crate::config::Layers::read(home.path(), std::iter::empty(), &[]).config().unwrap();
        let models = Configured::new(config, None);
        let local = models.find(Some("http://127.0.0.1:8080/m")).unwrap();
        assert_eq!((local.info().place, local.info().kind), (Place::Local, SourceKind::Local));
        let Err(refused) = models.find(Some("http://example.com/m")) else {
            panic!("plain http to a stranger")
        };
        assert_eq!((refused.code, refused.exit), ("insecure_http", 2));
    }
}
