//! `init`: keys, servers, package caches and workspaces that are there, and one answer each on what to do with them.
//!
//! Nothing is used because it lies about: a key found in the environment, a server that answers, weights that could
//! be fetched are named with where text would go, and taken after a yes. Without a terminal nothing is decided;
//! what would be asked is said.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use commands::args::maintenance::ConfigCommand;
use commands::package_caches::{CacheSurroundings, found_caches};
use commands::results::model::{SetupReport, SetupStep, StepState};
use commands::{CommandError, CommandOutcome};
use model::catalogue;
use model::{ProviderRow, providers};
use text::terminal::one_line;
use weights::Consent;

use crate::config::{self, Config, Layers};
use crate::detect::{FoundServer, detect, servers};
use crate::model_commands::{DEFAULT, fetch};
use crate::models::ConfiguredModels;
use crate::paths::InvocationPaths;
use crate::terminal::Terminal;
use crate::variable::held;
use crate::{embedded, open};

/// Goes through the steps.
///
/// # Errors
/// When the home cannot be made, or what was said yes to cannot be done.
pub(crate) fn run(
    paths: &InvocationPaths,
    layers: &Layers,
    person: Terminal,
    caches: bool,
) -> Result<CommandOutcome, CommandError> {
    let config = layers.config()?;
    open::home(paths, &config, &person)?;
    let mut init = Init {
        paths,
        layers,
        model: config.model.default.clone(),
        config,
        person: Arc::new(person),
        steps: Vec::new(),
    };
    init.keys()?;
    init.servers(&detect(&servers())?)?;
    init.embedded()?;
    init.caches(caches)?;
    let workspace = init.workspace()?;
    Ok(CommandOutcome::Setup(SetupReport { workspace, model: init.model, steps: init.steps }))
}

struct Init<'a> {
    paths: &'a InvocationPaths,
    layers: &'a Layers,
    config: Config,
    model: Option<String>,
    person: Arc<Terminal>,
    steps: Vec<SetupStep>,
}

impl Init<'_> {
    fn step(&mut self, name: &str, state: StepState, what: impl Into<String>, next: impl Into<String>) {
        self.steps.push(SetupStep { name: name.to_owned(), state, what: what.into(), next: next.into() });
    }

    fn set(&self, key: &str, value: &str) -> Result<(), CommandError> {
        let set = ConfigCommand::Set { key: key.to_owned(), value: Some(value.to_owned()) };
        config::run(set, self.paths, self.layers, &|line| self.person.notice(line)).map(drop)
    }

    /// Every provider whose key lies in the environment: one yes takes it into use, and makes its usual model the
    /// default one where there is none yet.
    fn keys(&mut self) -> Result<(), CommandError> {
        let mut found = false;
        for row in providers() {
            let Some(variable) = row.key_env else { continue };
            let key = format!("providers.{}.key_env", row.name);
            if self.config.providers.get(row.name).is_some_and(|section| section.key_env.is_some()) {
                self.step("key", StepState::Done, format!("{key} names the key of {}", row.name), "");
                found = true;
            } else if held(variable).is_some() {
                self.key(row, variable, &key)?;
                found = true;
            }
        }
        if !found {
            let names: Vec<_> = providers().iter().filter_map(|row| row.key_env).collect();
            self.step("key", StepState::None, format!("no key in {}", names.join(", ")), "");
        }
        Ok(())
    }

    fn key(&mut self, row: &ProviderRow, variable: &str, key: &str) -> Result<(), CommandError> {
        let usual = catalogue::family(row.name).and_then(|family| family.usual);
        let usual = usual.map(|name| format!("{}/{name}", row.name));
        let price = usual
            .as_ref()
            .and_then(|full| ConfiguredModels::new(self.config.clone(), None).info(full)?.prices);
        let mut lines =
            vec![format!("There is a key in {variable}. Text would go to {} ({}).", row.base_url, row.name)];
        if let (Some(full), Some(price)) = (&usual, price) {
            lines.push(format!("{full} costs {}.", price.in_words()));
        }
        let default = usual.filter(|_| self.model.is_none());
        let question = match &default {
            Some(full) => format!("Use it, with {full} as the default model?"),
            None => format!("Use it when a model of {} is named?", row.name),
        };
        if self.person.answer(&lines, &question) != Some(true) {
            let next = format!("`drawloom config set {key} {variable}` uses it");
            self.step("key", StepState::Open, format!("not used: {}", lines.join(" ")), next);
            return Ok(());
        }
        self.set(key, variable)?;
        let mut what = format!("{variable} is used for {}, {}", row.name, row.base_url);
        if let Some(full) = default {
            self.set(DEFAULT, &full)?;
            what = format!("{what}; {full} is the default model");
            self.model = Some(full);
        }
        let next = format!("`drawloom model use {}/NAME` makes another of its models the default", row.name);
        self.step("key", StepState::Done, what, next);
        Ok(())
    }

    fn servers(&mut self, found: &[FoundServer]) -> Result<(), CommandError> {
        if found.is_empty() {
            let names: Vec<_> = servers().iter().map(|(name, url)| format!("{name} ({url})")).collect();
            self.step("servers", StepState::None, format!("none answers: {}", names.join(", ")), "");
        }
        for server in found {
            let FoundServer { name, url, models } = server;
            let ids: Vec<String> =
                models.iter().take(8).map(|model| one_line(&model.id).into_owned()).collect();
            let what = format!("a server at {url}, the usual address of {name}: {}", ids.join(", "));
            let Some(first) = models.first().filter(|_| self.model.is_none()) else {
                let next = format!("`--model {name}/NAME` asks one of its models");
                self.step("servers", StepState::Done, what, next);
                continue;
            };
            let full = format!("{name}/{}", first.id);
            let lines = [
                format!("There is {what}."),
                "Text stays on this machine, and asking it costs nothing.".to_owned(),
            ];
            let question = format!("Use {} as the default model?", one_line(&full));
            if self.person.answer(&lines, &question) == Some(true) {
                self.set(DEFAULT, &full)?;
                if let Some(window) = first.window {
                    let key = ["models".to_owned(), full.clone(), "window".to_owned()];
                    self.set(&config::join(&key), &window.to_string())?;
                }
                self.step("servers", StepState::Done, format!("{full} is the default model"), "");
                self.model = Some(full);
            } else {
                self.step(
                    "servers",
                    StepState::Open,
                    what,
                    format!("`drawloom model use {name}/{}`", first.id),
                );
            }
        }
        Ok(())
    }

    fn embedded(&mut self) -> Result<(), CommandError> {
        let Some(weights) = weights::table::TABLE.first() else { return Ok(()) };
        let name = weights.name;
        let here = weights::WeightsFolders::of_home(&self.paths.home).converted(weights).is_file();
        if let Some(model) = &self.model {
            let what = format!(
                "{name} is {}; {model} is the default",
                if here { "downloaded" } else { "not needed" }
            );
            self.step("embedded", StepState::Done, what, "");
            return Ok(());
        }
        let lines = embedded::about(weights, here);
        if self.person.answer(&lines, &format!("Use {name} as the default model?")) == Some(true) {
            let consent = Consent::Answered { yes: true };
            fetch(weights, consent, self.paths, &self.config, Arc::clone(&self.person))?;
            self.set(DEFAULT, name)?;
            self.model = Some(name.to_owned());
            self.step(
                "embedded",
                StepState::Done,
                format!("{name} is the default model: {}", weights.about),
                "",
            );
        } else {
            let what = format!("{}; text stays on this machine", weights.about);
            let next = match here {
                true => format!("`drawloom model use {name}` makes it the default"),
                false => format!(
                    "`drawloom model pull {name}` downloads it, `drawloom model use {name}` makes it the default"
                ),
            };
            self.step("embedded", StepState::Open, what, next);
        }
        Ok(())
    }

    /// Package caches that commands in the sandbox may read: those that are there and not configured are offered together,
    /// and taken after a yes, or where the command line says so.
    fn caches(&mut self, is_given: bool) -> Result<(), CommandError> {
        let user_home = commands::walls::user_home();
        let workspace = self.paths.workspace()?.folder;
        let surroundings = CacheSurroundings {
            user_home: user_home.as_deref(),
            home: &self.paths.home,
            workspace: Some(&workspace),
        };
        let configured = self.config.exec.caches.clone();
        let told = |folders: &[PathBuf]| {
            let told = folders.iter().map(|folder| one_line(&folder.to_string_lossy()).into_owned());
            told.collect::<Vec<_>>().join(", ")
        };
        // What lies in one that is configured, or holds it, cannot be added.
        let can_be_added = |folder: &PathBuf| {
            let with_it: Vec<_> = configured.iter().chain([folder]).cloned().collect();
            !configured.contains(folder) && surroundings.caches(&with_it).is_ok()
        };
        let found = found_caches(&surroundings).into_iter().map(|known| Path::new("~").join(known.folder));
        let found: Vec<PathBuf> = found.filter(can_be_added).collect();
        if let Err(why) = surroundings.caches(&configured) {
            self.step("caches", StepState::Open, one_line(&why), "correct exec.caches in config.toml");
            return Ok(());
        }
        if !configured.is_empty() {
            let what = format!("commands in the sandbox read {}", told(&configured));
            self.step("caches", StepState::Done, what, "");
        } else if found.is_empty() {
            self.step("caches", StepState::None, "no package caches of usual tools in your home", "");
        }
        if found.is_empty() {
            return Ok(());
        }
        let lines = [
            format!("There are packages that you downloaded: {}.", told(&found)),
            "Commands in the sandbox could build from them without a network. They would read them and never change \
             them, and see no file in them that looks like credentials."
                .to_owned(),
        ];
        let all: Vec<_> = configured.iter().chain(&found).map(|folder| folder.to_string_lossy()).collect();
        let value = serde_json::to_string(&all).unwrap_or_default();
        if is_given || self.person.answer(&lines, "Let them read these folders?") == Some(true) {
            self.set("exec.caches", &value)?;
            self.step(
                "caches",
                StepState::Done,
                format!("commands in the sandbox read {}", told(&found)),
                "",
            );
        } else {
            let next =
                format!("`drawloom config set exec.caches '{value}'` or `drawloom init --caches` uses them");
            self.step("caches", StepState::Open, format!("not used: {}", lines.join(" ")), next);
        }
        Ok(())
    }

    fn workspace(&mut self) -> Result<String, CommandError> {
        let chosen = self.paths.workspace()?;
        let folder = one_line(&chosen.folder.to_string_lossy()).into_owned();
        let next = "another one: a folder with an AGENTS.md, or --workspace DIR";
        self.step("workspace", StepState::Done, format!("{folder}: {}", chosen.why), next);
        let openclaw = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".openclaw/workspace"));
        if let Some(found) = openclaw.filter(|folder| folder.is_dir()) {
            let found = one_line(&found.to_string_lossy()).into_owned();
            self.step(
                "openclaw",
                StepState::Open,
                format!("there is a workspace of OpenClaw: {found}"),
                format!("`--workspace {found}` uses it"),
            );
        }
        Ok(folder)
    }
}
