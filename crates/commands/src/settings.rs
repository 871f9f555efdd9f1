//! Settings that commands read: presets and limits. The file they come from is read by the binary alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use egress::HostPort;
use loom::plan::MAX_NODE_BYTES;
use model::Thinking;
use policy::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
    /// Tokens an answer may have; in a document 96, unless the model can be told how much to think.
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

/// An agent: a model with the way of asking it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// The model of this agent; the default one without it.
    pub model: Option<String>,
    /// Siblings it adds.
    #[schemars(range(min = 1, max = 64), extend("unit" = "nodes"))]
    pub n: Option<u32>,
    /// The preset by which it is asked.
    pub preset: Option<String>,
    /// The tools it may call in a conversation: `glob`, `grep`, `list` and `read`, which look at files of the workspace,
    /// `copy`, `delete`, `edit`, `mkdir`, `move`, `patch` and `write`, which change them, `exec` and
    /// `process`, which run commands in a sandbox, `web_fetch` and, where a search engine is configured, `web_search`,
    /// which reach the web, and `recall` and `context_status`, which read the conversation itself;
    /// none unless they are named.
    pub tools: Option<Vec<String>>,
}

/// How commands of a shell run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecSettings {
    /// Folders of programs that commands may read, beside those of the system; without them those that are known and
    /// there.
    pub toolchains: Option<Vec<PathBuf>>,
    /// Names of folders that packages are kept in, beside those that are known.
    pub dependency_folders: Vec<String>,
}

/// What the tools of the web reach.
#[derive(Debug, Clone, Default)]
pub struct WebSettings {
    /// Hosts of this machine or its network that pages may be fetched from.
    pub private_hosts: Vec<HostPort>,
    /// The search engine; none where none is configured with what it needs.
    pub search: Option<SearchService>,
}

/// Settings of commands.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The model named on the command line, or the default of the configuration.
    pub model: Option<String>,
    /// The one named on the command line.
    pub named: Option<String>,
    /// Models that old requests may be sent to although they went elsewhere.
    pub replay: Vec<String>,
    /// `[presets.NAME]`.
    pub presets: BTreeMap<String, Preset>,
    /// `[[policy.rules]]`.
    pub policy: Policy,
    /// `[agents.NAME]`.
    pub agents: BTreeMap<String, Agent>,
    /// `[exec]`.
    pub exec: ExecSettings,
    /// `[web]`.
    pub web: WebSettings,
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
            input_wait: Duration::from_secs(300),
        }
    }
}
