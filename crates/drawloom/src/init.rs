//! `init`: keys, servers and workspaces that are there, and one answer each on what to do with them.
//!
//! Nothing is used because it lies about: a key found in the environment, a server that answers, weights that could
//! be fetched are named with where text would go, and taken after a yes. Without a terminal nothing is decided;
//! what would be asked is said.

use std::path::PathBuf;
use std::sync::Arc;

use commands::args::care::ConfigCommand;
use commands::results::model::{Begun, Step, StepState};
use commands::{CommandError, Outcome};
use text::terminal::one_line;
use weights::Consent;

use crate::config::{self, Config, Layers};
use crate::detect::{Found, SERVERS, detect};
use crate::model_commands::{DEFAULT, fetch};
use crate::models::{OPENAI_KEY, OPENAI_URL};
use crate::places::Places;
use crate::talk::Person;
use crate::{embedded, open};

/// Goes through the steps.
///
/// # Errors
/// When the home cannot be made, or what was said yes to cannot be done.
pub(crate) fn run(places: &Places, layers: &Layers, person: Person) -> Result<Outcome, CommandError> {
    let config = layers.config()?;
    open::home(places, &config, &person)?;
    let mut init = Init {
        places,
        layers,
        model: config.model.default.clone(),
        config,
        person: Arc::new(person),
        steps: Vec::new(),
    };
    init.key()?;
    init.servers(&detect(&SERVERS)?)?;
    init.embedded()?;
    let workspace = init.workspace()?;
    Ok(Outcome::Begun(Begun { workspace, model: init.model, steps: init.steps }))
}

struct Init<'a> {
    places: &'a Places,
    layers: &'a Layers,
    config: Config,
    model: Option<String>,
    person: Arc<Person>,
    steps: Vec<Step>,
}

impl Init<'_> {
    fn step(&mut self, name: &str, state: StepState, what: impl Into<String>, next: impl Into<String>) {
        self.steps.push(Step { name: name.to_owned(), state, what: what.into(), next: next.into() });
    }

    fn set(&self, key: &str, value: &str) -> Result<(), CommandError> {
        let set = ConfigCommand::Set { key: key.to_owned(), value: value.to_owned() };
        config::run(set, self.places, self.layers, &|line| self.person.notice(line)).map(drop)
    }

    fn key(&mut self) -> Result<(), CommandError> {
        let held = std::env::var_os(OPENAI_KEY).is_some_and(|key| !key.is_empty());
        let key = "providers.openai.key_env";
        if self.config.providers.get("openai").is_some_and(|openai| openai.key_env.is_some()) {
            self.step("key", StepState::Done, format!("{key} names the key of OpenAI"), "");
        } else if held {
            let lines =
                [format!("There is a key in {OPENAI_KEY}. Text would go to {OPENAI_URL}, at their price.")];
            let next = "`drawloom model use openai/NAME` makes one of its models the default";
            if self.person.answer(&lines, "Use it when a model of openai is named?") == Some(true) {
                self.set(key, OPENAI_KEY)?;
                self.step(
                    "key",
                    StepState::Done,
                    format!("{OPENAI_KEY} is used for openai, {OPENAI_URL}"),
                    next,
                );
            } else {
                let next = format!("`drawloom config set {key} {OPENAI_KEY}` uses it");
                self.step("key", StepState::Open, format!("there is a key in {OPENAI_KEY}, not used"), next);
            }
        } else {
            self.step("key", StepState::None, format!("no key in {OPENAI_KEY}"), "");
        }
        Ok(())
    }

    fn servers(&mut self, found: &[Found]) -> Result<(), CommandError> {
        if found.is_empty() {
            let names: Vec<_> = SERVERS.iter().map(|(name, url)| format!("{name} ({url})")).collect();
            self.step("servers", StepState::None, format!("none answers: {}", names.join(", ")), "");
        }
        for server in found {
            let Found { name, url, models } = server;
            let ids: Vec<String> =
                models.iter().take(8).map(|model| one_line(&model.id).into_owned()).collect();
            let what = format!("a server at {url}, where {name} listens: {}", ids.join(", "));
            let Some(first) = models.first().filter(|_| self.model.is_none()) else {
                let next = format!("`--model {url}/NAME` asks one of its models");
                self.step("servers", StepState::Done, what, next);
                continue;
            };
            let full = format!("{name}/{}", first.id);
            let lines =
                [format!("There is {what}."), "Text stays on this machine, and it costs nothing.".to_owned()];
            let question = format!("Use {} when none is named?", one_line(&full));
            if self.person.answer(&lines, &question) == Some(true) {
                self.set(&format!("providers.{name}.base_url"), url)?;
                self.set(DEFAULT, &full)?;
                self.step("servers", StepState::Done, format!("{full} is the default model"), "");
                self.model = Some(full);
            } else {
                self.step(
                    "servers",
                    StepState::Open,
                    what,
                    format!("`drawloom model use {url}/{}`", first.id),
                );
            }
        }
        Ok(())
    }

    fn embedded(&mut self) -> Result<(), CommandError> {
        let Some(weights) = weights::table::TABLE.first() else { return Ok(()) };
        let name = weights.name;
        let here = weights::Folders::of_home(&self.places.home).converted(weights).is_file();
        if let Some(model) = &self.model {
            let what =
                format!("{name} is {}; {model} is the default", if here { "here" } else { "not needed" });
            self.step("embedded", StepState::Done, what, "");
            return Ok(());
        }
        let lines = embedded::about(weights, here);
        if self.person.answer(&lines, &format!("Use {name} when none is named?")) == Some(true) {
            let consent = Consent::Answered { yes: true };
            fetch(weights, consent, self.places, &self.config, Arc::clone(&self.person))?;
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
            self.step(
                "embedded",
                StepState::Open,
                what,
                format!("`drawloom model pull {name}`, or `--model {name}`"),
            );
        }
        Ok(())
    }

    fn workspace(&mut self) -> Result<String, CommandError> {
        let chosen = self.places.workspace()?;
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
