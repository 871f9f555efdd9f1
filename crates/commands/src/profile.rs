//! Profiles of agents: what `[agents.NAME]` says, its preset and its system prompt included (spec: agent §0).

use std::path::Path;
use std::sync::LazyLock;

use context::SystemPrompt;
use loom::Digest;
use loom::content::canonical;
use loom::source::DEFAULT_AGENT;
use policy::{Policy, PolicyRule};
use serde::Serialize;
use serde_json::{Map, Value};
use text::terminal::one_line;
use workspace::{ReadRules, RelativePath, Root, StoreGuard};

use crate::app::App;
use crate::error::CommandError;
use crate::model_selection;
use crate::settings::{Agent, Preset, Settings};

/// Longest file with a system prompt, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Folder of the home with the files of system prompts.
const FOLDER: &str = "agents";

/// An agent with all that its profile refers to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) agent: Agent,
    /// Sampling of the agent; what it leaves out is that of its preset.
    pub(crate) preset: Preset,
    /// System prompt, known secrets masked.
    pub(crate) system: Option<SystemPrompt>,
}

/// What a digest of a profile is of. It has what says how a request is made and what the agent may do, and not the names by
/// which that was found: the agent's, its preset's, the file's of its system prompt.
#[derive(Serialize)]
struct DigestedProfile<'a> {
    version: u32,
    system: Option<&'a str>,
    buffer_system_context: bool,
    model: Option<&'a str>,
    sampling: Preset,
    /// In its digits: JSON numbers are exact to 53 bits.
    seed: Option<String>,
    provider: Map<String, Value>,
    tools: Option<Vec<String>>,
    policy: &'a [PolicyRule],
    permissions: [bool; 5],
}

impl Profile {
    /// The profile of an agent; one without keys of the default agent, where it is not configured.
    ///
    /// # Errors
    /// `not_found` where there is no such agent, or no preset that it names; else when its system prompt cannot be read.
    pub(crate) fn of(app: &App, name: &str) -> Result<Self, CommandError> {
        let agent = agent(&app.settings, name)?.clone();
        let wrong = |why| CommandError::usage(format!("agents.{name}.{why}"), "correct it in config.toml");
        agent.check().map_err(wrong)?;
        let preset = preset(app, &agent)?;
        let system = system(app, name, &agent)?;
        Ok(Self { name: name.to_owned(), agent, preset, system })
    }

    /// Parameters of the provider, for its own model; none for another one.
    pub(crate) fn provider(&self, is_own_model: bool) -> Result<Map<String, Value>, CommandError> {
        if !is_own_model {
            return Ok(Map::new());
        }
        self.agent.provider().map_err(|why| {
            let what = format!("agents.{}.provider_parameters: {why}", self.name);
            CommandError::usage(what, "correct it in config.toml")
        })
    }

    /// Changes with each key that has an effect, and with nothing else.
    pub(crate) fn digest(&self, settings: &Settings) -> Digest {
        let Agent { loom_aware, loom_write, loom_generate, doc_read, doc_write, .. } = self.agent;
        let preset = &self.preset;
        let tools = self.agent.tools.clone().map(|mut tools| {
            tools.sort();
            tools.dedup();
            tools
        });
        let digested = DigestedProfile {
            version: 1,
            system: self.system.as_ref().map(|system| system.text.as_str()),
            buffer_system_context: self.agent.buffer_system_context && self.system.is_some(),
            model: preset.model.as_deref().or(settings.default_model.as_deref()),
            sampling: Preset {
                name: None,
                model: None,
                n: Some(preset.n.unwrap_or(1)),
                think: preset.think.or(settings.think),
                seed: None,
                ..preset.clone()
            },
            seed: preset.seed.map(|seed| seed.to_string()),
            // A profile is there only where it can be read.
            provider: self.agent.provider().unwrap_or_default(),
            tools,
            policy: &self.agent.policy,
            permissions: [loom_aware, loom_write, loom_generate, doc_read, doc_write],
        };
        // What has no canonical form is a number of a provider that is too large for one.
        let bytes = canonical(&digested).or_else(|_| serde_json::to_vec(&digested));
        Digest::of(&bytes.unwrap_or_default())
    }
}

/// What the configuration says of an agent.
///
/// # Errors
/// `not_found`, unless it is the default one, which is built in.
pub(crate) fn agent<'s>(settings: &'s Settings, name: &str) -> Result<&'s Agent, CommandError> {
    static BUILT_IN: LazyLock<Agent> = LazyLock::new(Agent::default);
    match settings.agents.get(name) {
        Some(agent) => Ok(agent),
        None if name == DEFAULT_AGENT => Ok(&BUILT_IN),
        None => {
            let mut names: Vec<&str> = settings.agents.keys().map(String::as_str).collect();
            names.extend((!names.contains(&DEFAULT_AGENT)).then_some(DEFAULT_AGENT));
            names.sort_unstable();
            let hint =
                format!("there are {}; a section [agents.NAME] in config.toml makes one", names.join(", "));
            Err(CommandError::not_found("agent", &one_line(name), &hint))
        }
    }
}

/// How an agent asks a model: its own sampling, else that of its preset.
///
/// # Errors
/// `not_found` where there is no preset that it names.
pub(crate) fn preset(app: &App, agent: &Agent) -> Result<Preset, CommandError> {
    Ok(agent.own_preset().or(model_selection::preset(app, agent.preset.as_deref())?))
}

/// How an agent asks a model, where a preset is named beside it: as that preset says, else as its own keys do. It stands
/// in the place of the agent's own preset.
///
/// # Errors
/// `not_found` where there is no preset of the name.
pub(crate) fn preset_with(app: &App, agent: &Agent, named: Option<&str>) -> Result<Preset, CommandError> {
    match named {
        Some(_) => Ok(model_selection::preset(app, named)?.or(agent.own_preset())),
        None => preset(app, agent),
    }
}

/// The rules that hold for an agent.
///
/// # Errors
/// One of its own can match nothing.
pub(crate) fn policy(settings: &Settings, name: &str) -> Result<Policy, CommandError> {
    let rules = settings.agents.get(name).map(|agent| agent.policy.clone()).unwrap_or_default();
    settings.policy.for_agent(name, rules).map_err(|error| {
        CommandError::usage(
            format!("agents.{name}.policy: {error}"),
            "correct [[agents.NAME.policy]] in config.toml",
        )
    })
}

/// The system prompt of an agent.
fn system(app: &App, name: &str, agent: &Agent) -> Result<Option<SystemPrompt>, CommandError> {
    let (key, text) = match (&agent.system, &agent.system_file) {
        (None, None) => return Ok(None),
        (Some(text), _) => (format!("agents.{name}.system"), text.clone()),
        (None, Some(file)) => {
            let read = read_system_file(app.runtime.home.root(), &app.guard, name, file)?;
            (format!("agents.{name}.system_file"), read)
        }
    };
    app.fits_node(&key, &text, false)?;
    let text = app.masked(&text);
    Ok((!text.trim().is_empty()).then(|| SystemPrompt::of_agent(key, text)))
}

/// Reads a file of the folder of system prompts, which no tool reaches: what stands there is the owner's.
///
/// # Errors
/// When it lies elsewhere, cannot be read, is too long or is not UTF-8.
pub fn read_system_file(
    home: &Path,
    guard: &StoreGuard,
    name: &str,
    file: &Path,
) -> Result<String, CommandError> {
    let folder = home.join(FOLDER);
    let refused = |why: String| {
        let shown = one_line(&file.to_string_lossy()).into_owned();
        let hint = format!("it names a file with UTF-8 text in {}", one_line(&folder.to_string_lossy()));
        CommandError::new("config", 2, format!("agents.{name}.system_file: {shown}: {why}"), hint)
    };
    let path = RelativePath::parse(&file.to_string_lossy()).map_err(|error| refused(error.to_string()))?;
    let root = Root::open(&folder, guard).map_err(|error| refused(error.to_string()))?;
    let read = root.read(&path, &ReadRules::at_most(MAX_FILE)).map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(read.bytes).map_err(|_| refused("it is not UTF-8 text".to_owned()))?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}
