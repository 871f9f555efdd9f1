//! Settings that commands read: presets and limits. The file they come from is read by the binary alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::configured_hook::ConfiguredHook;
pub use crate::configured_server::{ConfiguredServer, ServerSandbox};
use egress::HostPort;
use loom::plan::MAX_NODE_BYTES;
use model::Thinking;
use policy::{Effect, Policy, PolicyRule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
pub use tools::ProcessBounds;
use tools::{CommandTool, NetworkRequest};
pub use tools::{SearchEngine, SearchService};

/// Way of asking a model, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Preset {
    /// The name it was found by.
    #[serde(skip)]
    pub name: Option<String>,
    /// The model; the default one without it.
    pub model: Option<String>,
    /// Siblings.
    #[schemars(range(min = 1, max = 64), extend("unit" = "nodes"))]
    pub n: Option<u32>,
    /// Sampling temperature.
    #[schemars(range(min = 0, max = 5))]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// Least probability, relative to the likeliest token.
    #[schemars(range(min = 0, max = 1))]
    pub min_p: Option<f64>,
    /// Tokens an answer may have; in a document 96, unless the model answers in messages and can be told how
    /// much to think.
    #[schemars(range(min = 1), extend("unit" = "tokens"))]
    pub max_tokens: Option<u32>,
    /// Texts to stop at; also `sentence` and `paragraph`.
    pub stop: Vec<String>,
    /// Seed of the sampling.
    pub seed: Option<i64>,
    /// Alternatives a token to keep probabilities of.
    #[schemars(range(min = 0, max = 20))]
    pub logprobs: Option<u8>,
    /// How much the model thinks before it answers.
    pub think: Option<Thinking>,
}

impl Preset {
    /// This, and where it says nothing, what another says.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            name: self.name.or(other.name),
            model: self.model.or(other.model),
            n: self.n.or(other.n),
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            min_p: self.min_p.or(other.min_p),
            max_tokens: self.max_tokens.or(other.max_tokens),
            stop: if self.stop.is_empty() { other.stop } else { self.stop },
            seed: self.seed.or(other.seed),
            logprobs: self.logprobs.or(other.logprobs),
            think: self.think.or(other.think),
        }
    }
}

/// An agent: a model with the way of asking it, and what it may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// The model of this agent; the default one without it.
    pub model: Option<String>,
    /// Siblings it adds.
    #[schemars(range(min = 1, max = 64), extend("unit" = "nodes"))]
    pub n: Option<u32>,
    /// The preset by which it is asked. What is set here goes before what the preset says.
    pub preset: Option<String>,
    /// System prompt in conversations, in place of the built-in one. One that is given to a session goes before it.
    pub system: Option<String>,
    /// The file with its system prompt, in place of `system`: UTF-8 text in the folder `agents` beside config.toml.
    pub system_file: Option<PathBuf>,
    /// Whether its system prompt is sent with documents, too.
    pub buffer_system_context: bool,
    /// Sampling temperature.
    #[schemars(range(min = 0, max = 5))]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// Least probability, relative to the likeliest token.
    #[schemars(range(min = 0, max = 1))]
    pub min_p: Option<f64>,
    /// Tokens an answer may have.
    #[schemars(range(min = 1), extend("unit" = "tokens"))]
    pub max_tokens: Option<u32>,
    /// Texts to stop at; also `sentence` and `paragraph`.
    pub stop: Vec<String>,
    /// Seed of the sampling.
    pub seed: Option<i64>,
    /// Alternatives a token to keep probabilities of.
    #[schemars(range(min = 0, max = 20))]
    pub logprobs: Option<u8>,
    /// How much the model thinks before it answers.
    pub think: Option<Thinking>,
    /// Further members of the requests to its model, as a JSON object in a text: parameters of the provider that have no
    /// key here, such as '{"top_k": 40}'. Another model that a flag or the session names is sent none, nor is a fallback.
    pub provider_parameters: Option<String>,
    /// The tools it may call in a conversation: `glob`, `grep`, `list` and `read`, which look at files of the workspace,
    /// `copy`, `delete`, `edit`, `mkdir`, `move`, `patch` and `write`, which change them, `exec` and
    /// `process`, which run commands in a sandbox, `web_fetch` and, where a search engine is configured, `web_search`,
    /// which reach the web, `recall` and `context_status`, which read the conversation itself, `list_skills`, which lists
    /// skills, `note_outcome`, which notes something for the next one, `plan`, which keeps a plan of the work, those of
    /// `[tools.NAME]`, and those of servers by both names, as `notes:search`. Without it: all of these, wherever a
    /// conversation has a workspace; none for `ask`, for a model that takes none, and for one whose window has fewer than
    /// 16,000 tokens. `[]` is none. Those of the loom come with the permissions below and are not named here.
    pub tools: Option<Vec<String>>,
    /// Rules on its calls of tools beside those of `[policy]`, in `[[agents.NAME.policy]]`: a decision (allow, ask or
    /// deny) and the patterns it is about. They allow nothing that a rule of `[policy]` asks about or denies.
    #[schemars(extend("format" = "rules"))]
    pub policy: Vec<PolicyRule>,
    /// Whether it may look at the tree of the conversation it works in, its branches included: `loom_view`, `loom_list`
    /// and `loom_tree`.
    pub loom_aware: bool,
    /// Whether it may change that tree: `loom_annotate`, `loom_bookmark`, `loom_edit`, `loom_pin`, `loom_prune` and
    /// `loom_switch`; `loom_stash`, `loom_recall` and `loom_drop` put texts aside in it. Needs `loom_aware`.
    pub loom_write: bool,
    /// Whether it may have its model answer elsewhere in that tree: `loom_continue`. Needs `loom_aware`.
    pub loom_generate: bool,
    /// Whether it may look at documents, too. Needs `loom_aware`.
    pub doc_read: bool,
    /// Whether it may change documents, too, and go on in them with `loom_generate`. Needs `loom_write` and `doc_read`.
    pub doc_write: bool,
}

impl Agent {
    /// Looks for keys that do not go together: a permission without the one it needs, two system prompts.
    ///
    /// # Errors
    /// The keys, with what they need.
    pub fn check(&self) -> Result<(), String> {
        if self.system.is_some() && self.system_file.is_some() {
            return Err("system and system_file are both set: it takes one of them".to_owned());
        }
        self.provider().map_err(|why| format!("provider_parameters: {why}"))?;
        let needs = [
            ("loom_write", self.loom_write, "loom_aware", self.loom_aware),
            ("loom_generate", self.loom_generate, "loom_aware", self.loom_aware),
            ("doc_read", self.doc_read, "loom_aware", self.loom_aware),
            ("doc_write", self.doc_write, "loom_write", self.loom_write),
            ("doc_write", self.doc_write, "doc_read", self.doc_read),
        ];
        match needs.into_iter().find(|(_, is_given, _, is_met)| *is_given && !is_met) {
            Some((key, _, needed, _)) => Err(format!("{key} needs {needed} = true")),
            None => Ok(()),
        }
    }

    /// Members that it adds to the body of requests.
    ///
    /// # Errors
    /// As [`model::read_members`].
    pub(crate) fn provider(&self) -> Result<serde_json::Map<String, serde_json::Value>, String> {
        self.provider_parameters.as_deref().map_or_else(|| Ok(serde_json::Map::new()), model::read_members)
    }

    /// What it says of model, number and sampling itself.
    pub(crate) fn own_preset(&self) -> Preset {
        Preset {
            name: None,
            model: self.model.clone(),
            n: self.n,
            temperature: self.temperature,
            top_p: self.top_p,
            min_p: self.min_p,
            max_tokens: self.max_tokens,
            stop: self.stop.clone(),
            seed: self.seed,
            logprobs: self.logprobs,
            think: self.think,
        }
    }
}

/// A tool that a command of yours makes. It reads its arguments as JSON from standard input and prints its result as JSON,
/// in the sandbox that `exec` has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfiguredTool {
    /// The line of a shell that runs it at the top of the workspace. Needed.
    pub command: Option<String>,
    /// What it does, for the model. Needed.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, as a text; without it any object.
    pub schema: Option<String>,
    /// What it does: `read`, and it sees the workspace read-only, or `write`, and what it changes can be taken back;
    /// `message` beside them where it says something to others. `exec` and `net` say nothing further: it runs a command,
    /// and its network is what `net` names.
    pub effects: Vec<Effect>,
    /// Hosts that its calls reach, as the `net` of `exec`: HOST, or HOST:PORT beside 80 and 443; `["open"]` is any. Without
    /// it no network.
    pub net: Vec<String>,
    /// How long it may run.
    #[schemars(range(min = 1, max = 3600), extend("unit" = "seconds"))]
    pub timeout: u32,
}

impl Default for ConfiguredTool {
    fn default() -> Self {
        let effects = vec![Effect::Write];
        Self { command: None, description: None, schema: None, effects, net: Vec::new(), timeout: 60 }
    }
}

/// The network of a `net` that names hosts, `off` or `open`.
///
/// # Errors
/// A host is none, or there are too many.
pub fn network(net: &[String]) -> Result<NetworkRequest, String> {
    match net {
        [] => Ok(NetworkRequest::Off),
        [word] if word == "off" => Ok(NetworkRequest::Off),
        [word] if word == "open" => Ok(NetworkRequest::Open),
        hosts => NetworkRequest::to(hosts),
    }
}

impl ConfiguredTool {
    /// The tool of this name.
    ///
    /// # Errors
    /// What is wrong with it, by its key.
    pub fn read(&self, name: &str) -> Result<CommandTool, String> {
        let missing = |key: &str| format!("tools.{name}.{key} is missing");
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let network = network(&self.net).map_err(|why| format!("tools.{name}.{why}"))?;
        if self.effects.contains(&Effect::Net) && !network.is_on() {
            return Err(format!(
                "tools.{name}.effects names net: name the hosts it reaches in tools.{name}.net"
            ));
        }
        let schema = match &self.schema {
            None => json!({"type": "object"}),
            Some(schema) => serde_json::from_str(schema)
                .map_err(|error| format!("tools.{name}.schema is no JSON: {error}"))?,
        };
        let tool = CommandTool {
            name: name.to_owned(),
            description: given(&self.description).ok_or_else(|| missing("description"))?,
            line: given(&self.command).ok_or_else(|| missing("command"))?,
            schema,
            writes: self.effects.contains(&Effect::Write),
            sends_messages: self.effects.contains(&Effect::Message),
            network,
            seconds: self.timeout,
        };
        tool.check().map_err(|why| format!("tools.{name}: {why}"))?;
        Ok(tool)
    }
}

/// How commands of a shell run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecSettings {
    /// Folders of programs that commands may read, beside those of the system; without them those that are known and
    /// there.
    pub toolchains: Option<Vec<PathBuf>>,
    /// Names of folders that packages are kept in, beside those that are known.
    pub dependency_folders: Vec<String>,
    /// Folders of the owner with packages that commands read, as they are written: `~` is the owner's home.
    pub caches: Vec<PathBuf>,
    /// Free space that a command leaves where it writes, in bytes.
    pub free_space: u64,
}

/// What the tools of the web reach.
#[derive(Debug, Clone, Default)]
pub struct WebSettings {
    /// Hosts of this machine or its network that pages may be fetched from.
    pub private_hosts: Vec<HostPort>,
    /// The search engine; none where none is configured with what it needs.
    pub search: Option<SearchService>,
}

/// Which skills there are.
#[derive(Debug, Clone, Default)]
pub struct SkillSettings {
    /// Names of those that are switched off.
    pub disabled: Vec<String>,
    /// Folders that links to skills may lead to, as they are written: `~` is the owner's home.
    pub link_targets: Vec<PathBuf>,
    /// Variables that commands get while a skill of the owner's is followed, by its name.
    pub variables: BTreeMap<String, Vec<String>>,
}

/// `[capabilities]`: which cards there are, and how much of them is sent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CardSettings {
    /// Whether cards are read.
    pub enabled: bool,
    /// The folder whose docs/capabilities holds the cards of the repository; without it the git repository around the
    /// workspace, else the workspace.
    pub repo: Option<PathBuf>,
    /// Further folders of cards, as paths below the workspace. They are read with `allow_workspace_cards`.
    pub folders: Vec<String>,
    /// Whether cards of `folders` are read.
    pub allow_workspace_cards: bool,
    /// Whether cards of the home's capabilities/ are read.
    pub allow_user_capabilities: bool,
    /// Ids of cards that are sent whatever is said.
    pub force_include: Vec<String>,
    /// Ids of cards that are never sent.
    pub exclude: Vec<String>,
    /// Most tokens of the cards that are sent at once.
    #[schemars(extend("unit" = "tokens"))]
    pub max_tokens: u64,
}

impl Default for CardSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            repo: None,
            folders: Vec::new(),
            allow_workspace_cards: false,
            allow_user_capabilities: false,
            force_include: Vec::new(),
            exclude: Vec::new(),
            max_tokens: 1_500,
        }
    }
}

/// Settings of commands.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model named on the command line, or the default of the configuration.
    pub model: Option<String>,
    /// The one named on the command line.
    pub named: Option<String>,
    /// The default of the configuration.
    pub default_model: Option<String>,
    /// Names of the weights that run in this program, which keep to no schema. Some may not be fetched yet.
    pub embedded: Vec<String>,
    /// Models that old requests may be sent to although they went elsewhere.
    pub replay: Vec<String>,
    /// `[presets.NAME]`.
    pub presets: BTreeMap<String, Preset>,
    /// `[[policy.rules]]`.
    pub policy: Policy,
    /// `[agents.NAME]`.
    pub agents: BTreeMap<String, Agent>,
    /// `[tools.NAME]`.
    pub tools: BTreeMap<String, ConfiguredTool>,
    /// `[hooks.NAME]`.
    pub hooks: BTreeMap<String, ConfiguredHook>,
    /// `[mcp.NAME]`.
    pub mcp: BTreeMap<String, ConfiguredServer>,
    /// `[exec]`.
    pub exec: ExecSettings,
    /// `[web]`.
    pub web: WebSettings,
    /// `[skills]`.
    pub skills: SkillSettings,
    /// `[capabilities]`.
    pub cards: CardSettings,
    /// `[limits]`.
    pub limits: ResourceLimits,
    /// How much is thought before an answer, where neither a flag nor a preset says so.
    pub think: Option<Thinking>,
    /// What becomes of a boot file that changes in mid-session.
    pub changed_files: context::ChangedFiles,
    /// How a conversation that is too long is cut.
    pub strategy: context::Strategy,
}

/// What is met before something grows without end (spec: scale §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Free space below which no new turn starts, in bytes.
    pub free_space: u64,
    /// How long one search may take. What was found by then is the answer, marked partial.
    pub search: Duration,
    /// Rows of a page of `tree show`, at most.
    pub show_all: usize,
    /// Bytes of one node, at most [`MAX_NODE_BYTES`].
    pub node: u64,
    /// Bytes of one text that is typed, pasted or read from a file.
    pub paste: u64,
    /// Pixels of a picture that is decoded.
    pub picture: u64,
    /// How long `glob` and `grep` look for files.
    pub glob: Duration,
    /// Commands in the background.
    pub processes: ProcessBounds,
    /// How long standard input, or a pipe named as a file, may stay silent.
    pub input_wait: Duration,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            free_space: 256 << 20,
            search: Duration::from_secs(2),
            show_all: 1_000,
            node: MAX_NODE_BYTES,
            paste: 64 << 20,
            picture: media::MAX_PIXELS,
            glob: Duration::from_secs(2),
            processes: ProcessBounds::default(),
            input_wait: Duration::from_secs(300),
        }
    }
}
