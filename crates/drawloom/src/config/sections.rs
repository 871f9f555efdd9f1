//! Types of the configuration, and the only list of its keys.
//!
//! A field is a key: its comment is what the key is for, its type and `range` what it takes, the `Default` of its
//! section its default. [`super::keys`] reads all of that from the JSON schema of [`Config`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use commands::CommandError;
use commands::settings::{
    Agent, CardSettings, ConfiguredHook, ConfiguredServer, ConfiguredTool, ExecSettings, Preset,
    SearchEngine, SearchService, SkillSettings, WebSettings,
};
use model::quirks::{LimitField, PrefillForm, ThinkingForm};
use model::{DialectName, ModelPlace, Money, Thinking, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use store::home::KEYS;

use super::keys::{models, named};
use super::limits::Limits;
use super::policy::PolicySection;
use super::values::Seconds;
use crate::variable::held;

/// The whole configuration.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(title = "Drawloom: config.toml")]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) model: Model,
    #[schemars(schema_with = "named::<Provider>")]
    pub(crate) providers: BTreeMap<String, Provider>,
    #[schemars(schema_with = "models::<ModelSection>")]
    pub(crate) models: BTreeMap<String, ModelSection>,
    #[schemars(schema_with = "named::<Preset>")]
    pub(crate) presets: BTreeMap<String, Preset>,
    #[schemars(schema_with = "named::<Agent>")]
    pub(crate) agents: BTreeMap<String, Agent>,
    #[schemars(schema_with = "named::<ConfiguredTool>")]
    pub(crate) tools: BTreeMap<String, ConfiguredTool>,
    #[schemars(schema_with = "named::<ConfiguredHook>")]
    pub(crate) hooks: BTreeMap<String, ConfiguredHook>,
    #[schemars(schema_with = "named::<ConfiguredServer>")]
    pub(crate) mcp: BTreeMap<String, ConfiguredServer>,
    pub(crate) policy: PolicySection,
    pub(crate) safety: Safety,
    pub(crate) exec: Exec,
    pub(crate) web: Web,
    pub(crate) skills: Skills,
    pub(crate) capabilities: CardSettings,
    pub(crate) budget: Budget,
    pub(crate) store: Store,
    pub(crate) limits: Limits,
    pub(crate) context: Context,
    pub(crate) log: Log,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Model {
    /// The default model: PROVIDER/NAME, smollm2, script:FILE or an address.
    pub(crate) default: Option<String>,
    /// Whether weights that are missing may be downloaded without a question.
    pub(crate) auto_pull: bool,
    /// Models asked in this order when one cannot be reached, is overloaded, or its quota is spent: PROVIDER/NAME.
    pub(crate) fallbacks: Vec<String>,
    /// Whether a remote model of `fallbacks` may take over from a local one.
    pub(crate) fallback_remote: bool,
    /// Models that an agent may give its subagents besides its own: PROVIDER/NAME.
    pub(crate) subagents: Vec<String>,
    /// Whether a remote model of `subagents` may work for a local one.
    pub(crate) subagent_remote: bool,
    /// Remote models that `context replay` may send to what went to this machine or to another provider:
    /// PROVIDER/NAME.
    pub(crate) replay: Vec<String>,
    /// How much models think before they answer, unless --think, /think or a preset says otherwise.
    pub(crate) think: Option<Thinking>,
}

#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Provider {
    /// Address of the server, with or without its version. Needed, unless the provider is known by its name or kind.
    #[schemars(url, regex(pattern = "^https?://"))]
    pub(crate) base_url: Option<String>,
    /// The known provider that the server is like, such as vllm or openai.
    pub(crate) kind: Option<String>,
    /// The API of the server; without it that of its kind, else openai_chat.
    pub(crate) dialect: Option<DialectName>,
    /// Whether text sent there stays on your machines; without it only loopback addresses are local.
    pub(crate) place: Option<ModelPlace>,
    /// The environment variable that holds the key.
    #[schemars(extend("format" = "variable"), regex(pattern = "^[A-Za-z0-9_]+$"))]
    pub(crate) key_env: Option<String>,
    /// The key. It is kept in keys.toml.
    #[schemars(extend("writeOnly" = true))]
    pub(crate) key: Option<String>,
    /// A key in a keys.toml that others may read: it is masked, and never used.
    #[serde(skip)]
    pub(crate) loose_key: Option<String>,
    /// Allow plain http to a public host.
    pub(crate) insecure_http: bool,
    /// A proxy to go through; those of the environment are not used.
    #[schemars(url, regex(pattern = "^https?://"))]
    pub(crate) proxy: Option<String>,
    /// Window of its models, instead of what the catalogue says.
    #[schemars(range(min = 1), extend("unit" = "tokens"))]
    pub(crate) window: Option<u32>,
    /// Longest answer of its models.
    #[schemars(range(min = 1), extend("unit" = "tokens"))]
    pub(crate) output_limit: Option<u32>,
    /// Whether one request gives several choices.
    pub(crate) honours_n: Option<bool>,
    /// Whether its models continue a given beginning of their answer.
    pub(crate) prefill: Option<bool>,
    /// How a request asks for that: by a trailing message alone (llama.cpp), by a field of the request (vLLM), or by a
    /// field of the message (DeepSeek, Mistral).
    pub(crate) prefill_form: Option<PrefillForm>,
    /// Whether it gives log-probabilities when asked.
    pub(crate) logprobs: Option<bool>,
    /// Whether it continues raw text.
    pub(crate) completion_endpoint: Option<bool>,
    /// Whether its models can call tools.
    pub(crate) tools: Option<bool>,
    /// Whether its models take pictures.
    pub(crate) images: Option<bool>,
    /// The field of a request that limits an answer.
    pub(crate) limit_field: Option<LimitField>,
    /// The field of a request that sets how much its models think; `none` if there is none.
    pub(crate) thinking_form: Option<ThinkingForm>,
    /// How long a connection may take.
    pub(crate) connect_timeout: Seconds<5>,
    /// How long a model may read before it answers.
    pub(crate) first_byte_timeout: Seconds<120>,
    /// How long an answer may pause.
    pub(crate) idle_timeout: Seconds<60>,
}

impl fmt::Debug for Provider {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// `[models."PROVIDER/NAME"]`: what the owner knows better than the catalogue.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSection {
    /// Window of the model.
    #[schemars(range(min = 1), extend("unit" = "tokens"))]
    pub(crate) window: Option<u32>,
    /// Longest answer of the model.
    #[schemars(range(min = 1), extend("unit" = "tokens"))]
    pub(crate) output_limit: Option<u32>,
    /// Price of input that came from no cache.
    #[schemars(range(min = 0, max = 100_000), extend("unit" = "dollars per million tokens"))]
    pub(crate) price_input: Option<f64>,
    /// Price of output.
    #[schemars(range(min = 0, max = 100_000), extend("unit" = "dollars per million tokens"))]
    pub(crate) price_output: Option<f64>,
    /// Price of input from the cache; without it, that of input.
    #[schemars(range(min = 0, max = 100_000), extend("unit" = "dollars per million tokens"))]
    pub(crate) price_cache_read: Option<f64>,
    /// Price of writing to the cache; without it, that of input.
    #[schemars(range(min = 0, max = 100_000), extend("unit" = "dollars per million tokens"))]
    pub(crate) price_cache_write: Option<f64>,
    /// Whether it can call tools.
    pub(crate) tools: Option<bool>,
    /// Whether it takes pictures.
    pub(crate) images: Option<bool>,
    /// Whether it takes sound.
    pub(crate) audio: Option<bool>,
    /// Whether it keeps to a schema.
    pub(crate) structured: Option<bool>,
    /// Whether it continues a given beginning of its answer.
    pub(crate) prefill: Option<bool>,
    /// Whether one request gives several choices.
    pub(crate) honours_n: Option<bool>,
    /// Whether it gives log-probabilities when asked.
    pub(crate) logprobs: Option<bool>,
    /// Whether it continues raw text.
    pub(crate) completion_endpoint: Option<bool>,
    /// The cheap model of the same provider for small work.
    pub(crate) fast: Option<String>,
    /// Tokenizer of the model, for estimates.
    pub(crate) tokenizer: Option<Tokenizer>,
    /// The field of a request that sets how much it thinks; `none` if there is none.
    pub(crate) thinking_form: Option<ThinkingForm>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Budget {
    /// Limit of one turn: all its model calls together.
    #[schemars(range(min = 0, max = 1_000_000), extend("unit" = "dollars"))]
    pub(crate) turn: f64,
    /// Limit of a day, in UTC.
    #[schemars(range(min = 0, max = 1_000_000), extend("unit" = "dollars"))]
    pub(crate) day: f64,
    /// Limit of a month, in UTC.
    #[schemars(range(min = 0, max = 1_000_000), extend("unit" = "dollars"))]
    pub(crate) month: f64,
}

impl Default for Budget {
    fn default() -> Self {
        let agent::Budget { turn, day, month } = agent::Budget::default();
        Self { turn: turn.dollars(), day: day.dollars(), month: month.dollars() }
    }
}

impl Budget {
    /// In the agent's own form.
    pub(crate) fn of_the_agent(&self) -> agent::Budget {
        let money = Money::from_dollars;
        agent::Budget { turn: money(self.turn), day: money(self.day), month: money(self.month) }
    }
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Store {
    /// The PostgreSQL database that holds the store instead of a file: postgres://USER@HOST/DATABASE.
    #[schemars(extend("format" = "database"), regex(pattern = "^postgres(ql)?://"))]
    pub(crate) url: Option<String>,
    /// The password of the user. It is kept in keys.toml; DRAWLOOM_STORE_PASSWORD and PGPASSWORD come before it.
    #[schemars(extend("writeOnly" = true))]
    pub(crate) password: Option<String>,
    /// One in a keys.toml that others may read: it is masked, and never used.
    #[serde(skip)]
    pub(crate) loose_password: Option<String>,
    /// Connections to the database at most.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) pg_pool: u16,
    /// Open a home on a network file system, where locks may lose saved work.
    pub(crate) allow_network_fs: bool,
}

impl Default for Store {
    fn default() -> Self {
        Self { url: None, password: None, loose_password: None, pg_pool: 16, allow_network_fs: false }
    }
}

impl Store {
    /// The password of the database: the environment before `keys.toml`.
    pub(crate) fn known_password(&self) -> Option<String> {
        held("DRAWLOOM_STORE_PASSWORD").or_else(|| held("PGPASSWORD")).or_else(|| self.password.clone())
    }

    /// The password of the database, if it needs one.
    ///
    /// # Errors
    /// When it stands where others may read it.
    pub(crate) fn usable_password(&self) -> Result<Option<String>, CommandError> {
        match (self.known_password(), &self.loose_password) {
            (None, Some(_)) => Err(loose_key("store.password")),
            (known, _) => Ok(known),
        }
    }
}

/// The error of whoever needs a secret that others may read.
pub(crate) fn loose_key(path: &str) -> CommandError {
    CommandError::refused(
        "loose_key",
        format!("{path} is not used: others may read {KEYS}"),
        format!("run `chmod 600` on {KEYS} in the home, and consider a new key"),
    )
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Exec {
    /// Folders of programs that commands in the sandbox may read, beside those of the system. Without it those of cargo,
    /// rustup, pyenv, nvm, volta and deno that are in your home.
    pub(crate) toolchains: Option<Vec<PathBuf>>,
    /// Names of folders that packages are kept in, beside node_modules, target, .venv, venv, vendor and site-packages:
    /// file names that are protected elsewhere are ordinary there, and they are not recorded.
    pub(crate) dependency_folders: Vec<String>,
    /// Folders of your home with packages that were downloaded, as ~/.cargo/registry or ~/.npm/_cacache, which commands
    /// read without a network. They see each at the same place in their own HOME; what they write to it lasts as long as the
    /// session, and yours is never changed. Below level full of the sandbox there are none.
    pub(crate) caches: Vec<PathBuf>,
}

impl Exec {
    pub(crate) fn of_commands(&self, limits: &Limits) -> ExecSettings {
        ExecSettings {
            free_space: limits.free_space.0,
            toolchains: self.toolchains.clone(),
            dependency_folders: self.dependency_folders.clone(),
            caches: self.caches.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Safety {
    /// Whether what looks like a secret is masked in what tools, files and servers say. Keys that Drawloom holds are masked
    /// in any case.
    pub(crate) guess_secrets: bool,
}

impl Default for Safety {
    fn default() -> Self {
        Self { guess_secrets: true }
    }
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Skills {
    /// Names of skills that are not offered.
    pub(crate) disabled: Vec<String>,
    /// Folders that links to skills may lead to, such as ~/dotfiles/skills; other links are not followed.
    pub(crate) link_targets: Vec<PathBuf>,
    #[schemars(schema_with = "named::<SkillVariables>")]
    pub(crate) env: BTreeMap<String, SkillVariables>,
}

/// Variables of your environment that commands get while your skill of this name is followed. Their values are masked in
/// all that is said.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct SkillVariables(pub(crate) Vec<String>);

impl Skills {
    pub(crate) fn of_commands(&self) -> SkillSettings {
        let Self { disabled, link_targets, env } = self.clone();
        let variables = env.into_iter().map(|(skill, variables)| (skill, variables.0)).collect();
        SkillSettings { disabled, link_targets, variables }
    }
}

#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Web {
    /// Hosts of this machine or its network that web_fetch may reach, and commands that name them, as HOST:PORT; all others
    /// there are refused.
    pub(crate) private_hosts: Vec<String>,
    /// The search engine of web_search; without it there is no such tool.
    pub(crate) search: Option<SearchEngine>,
    /// Address of the search engine; searxng needs it, the others have their own.
    #[schemars(url, regex(pattern = "^https?://"))]
    pub(crate) search_url: Option<String>,
    /// The environment variable that holds the key of the search engine.
    #[schemars(extend("format" = "variable"), regex(pattern = "^[A-Za-z0-9_]+$"))]
    pub(crate) search_key_env: Option<String>,
    /// The key of the search engine, which brave and tavily need. It is kept in keys.toml.
    #[schemars(extend("writeOnly" = true))]
    pub(crate) search_key: Option<String>,
    /// One in a keys.toml that others may read: it is masked, and never used.
    #[serde(skip)]
    pub(crate) loose_search_key: Option<String>,
}

impl Web {
    /// In the form of commands. An engine without what it needs is none.
    ///
    /// # Errors
    /// A private host is none.
    pub(crate) fn of_commands(&self) -> Result<WebSettings, String> {
        let host = |host: &String| host.parse().map_err(|why| format!("web.private_hosts: {why}"));
        let private_hosts = self.private_hosts.iter().map(host).collect::<Result<_, String>>()?;
        Ok(WebSettings { private_hosts, search: self.search_service().ok().flatten() })
    }

    /// The search engine, if there is one.
    ///
    /// # Errors
    /// What it lacks.
    pub(crate) fn search_service(&self) -> Result<Option<SearchService>, String> {
        let Some(engine) = self.search else { return Ok(None) };
        let key = self.known_search_key();
        SearchService::new(engine, self.search_url.as_deref(), key.as_deref()).map(Some).map_err(|why| {
            let loose = self.loose_search_key.as_ref().map_or("", |_| ": others may read keys.toml");
            format!("web.search: {why}{loose}")
        })
    }

    /// The key of the search engine: the environment before `keys.toml`.
    pub(crate) fn known_search_key(&self) -> Option<String> {
        self.search_key_env.as_deref().and_then(held).or_else(|| self.search_key.clone())
    }
}

impl fmt::Debug for Web {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("search", &self.search).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Context {
    /// A bootstrap file that changes during a session: send the difference, use it from the next session, or read
    /// all files again.
    pub(crate) changed_files: context::ChangedFiles,
    /// A conversation that is too long: drop its oldest turns, drop those in the middle, or stop.
    pub(crate) strategy: context::Strategy,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// What is logged to standard error; --verbose means debug.
    pub(crate) level: Level,
}

/// Gravity of a line of the log, from the gravest.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
    Trace,
}
