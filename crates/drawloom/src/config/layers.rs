//! Where a value comes from: flag, then environment, then file, then default (spec: cli §5).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use commands::{Command, CommandError};
use loom::source::{DEFAULT_AGENT, EARLIER_DEFAULT_AGENT};
use text::terminal::one_line;
use toml::{Table, Value};

use super::file::{self, CONFIG, KEYS, ParsedFile, Problem, SecretRule};
use super::fitting;
use super::keys::{self, Key};
use super::last_good;
use super::path::segments;
use super::policy::{configured_tools, idle_rules, require_no_slip, rules_without_server};
use super::sections::Config;

/// Which layer a value stands in; a later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Default,
    File,
    Environment,
    Flag,
}

impl Source {
    /// The word of `config get`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// All layers, one over the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layers {
    values: BTreeMap<String, (Value, Source)>,
    loose: Vec<(String, Value)>,
    problems: Vec<Problem>,
    is_broken: bool,
}

impl Layers {
    /// Reads the files of a home, which need not exist, under the environment and the flags.
    pub(crate) fn read(
        home: &Path,
        environment: impl Iterator<Item = (OsString, OsString)>,
        flags: &[(&str, Option<&str>)],
    ) -> Self {
        let mut layers = Self::default();
        let mut config = file::read(&home.join(CONFIG), SecretRule::Refused);
        if !config.problems.is_empty() {
            last_good::fill(home, &mut config);
        }
        layers.put(config, Source::File);
        layers.put(file::read(&home.join(KEYS), SecretRule::Only), Source::File);
        let variables = variables(environment, &layers.names());
        layers.put(variables, Source::Environment);
        for (path, value) in flags {
            if let Some(value) = value {
                layers.values.insert((*path).to_owned(), (Value::String((*value).to_owned()), Source::Flag));
            }
        }
        layers
    }

    fn put(&mut self, held: ParsedFile, source: Source) {
        let values = held.values.into_iter().filter(|(_, value)| !file::is_absent(value));
        self.values.extend(values.map(|(path, value)| (path, (value, source))));
        self.loose.extend(held.loose);
        self.problems.extend(held.problems);
        self.is_broken |= held.is_broken;
    }

    /// What is wrong, in the order it was met.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether a file could not be read at all.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The sections that have a name of their own, as `providers.box`.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.values.keys().filter_map(|path| section(path)).collect();
        names.dedup();
        names
    }

    /// The names of the agents that are configured.
    pub(crate) fn agents(&self) -> Vec<String> {
        let named = self.names().into_iter().map(|section| segments(&section));
        let agents = named.filter(|section| section.len() == 2 && section[0] == "agents");
        agents.filter_map(|mut section| section.pop()).collect()
    }

    /// The names of the tools that are configured.
    pub(crate) fn tools(&self) -> Vec<String> {
        configured_tools(self.values.keys())
    }

    /// The value of a key and where it comes from; none where there is neither value nor default.
    pub(crate) fn get(&self, path: &str) -> (Option<Value>, Source) {
        match self.values.get(path) {
            Some((value, source)) => (Some(value.clone()), *source),
            None => (keys::find(path).and_then(|key| key.default.clone()), Source::Default),
        }
    }

    /// Every key that is set, with its row, value and source.
    pub(crate) fn set(&self) -> impl Iterator<Item = (&str, &'static Key, &Value, Source)> {
        self.values
            .iter()
            .filter_map(|(path, (value, source))| Some((path.as_str(), keys::find(path)?, value, *source)))
    }

    /// The sections, typed and with defaults.
    ///
    /// # Errors
    /// The first thing that is wrong anywhere.
    pub(crate) fn config(&self) -> Result<Config, CommandError> {
        let mut blocking = self.problems.iter().filter(|problem| problem.blocks);
        if let Some(problem) = blocking.next() {
            let mut error = problem.error();
            let more = blocking.count();
            if more > 0 {
                error.message += &format!(" (and {more} more: `drawloom config check`)");
            }
            return Err(error);
        }
        self.lenient()
    }

    /// The sections for a command, with a line for each thing of it that is refused. One that writes or asks a model
    /// does so with all of what its owner wrote or not at all; one that only reads goes by what is right.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub(crate) fn config_for(&self, command: &Command, note: &dyn Fn(&str)) -> Result<Config, CommandError> {
        let lacks_rules = self.without_rules().is_some();
        let needs_all = command.vouches_for_secrets() || matches!(command, Command::Policy(_)) && lacks_rules;
        let config = if command.only_reads() && !needs_all { self.lenient()? } else { self.config()? };
        for problem in &self.problems {
            let refused = if problem.blocks {
                " (left out; commands that write or ask a model are refused)"
            } else {
                ""
            };
            note(&format!("{problem}{refused}"));
        }
        let idle = idle_rules(&config);
        if !command.only_reads() {
            require_no_slip(&idle)?;
        }
        idle.iter().for_each(|rule| note(&rule.told));
        rules_without_server(&config).iter().for_each(|told| note(told));
        Ok(config)
    }

    /// What keeps rules from being read, if anything does. A rule that is left out is no rule: what is said of the others
    /// would be wrong.
    pub(crate) fn without_rules(&self) -> Option<&Problem> {
        let is_of_rules = |key: &str| {
            let names = segments(key);
            let of_agent = || {
                names.first().is_some_and(|first| first == "agents")
                    && names.get(2).is_some_and(|name| name == "policy")
            };
            names.first().is_some_and(|first| first == "policy") || of_agent()
        };
        self.problems.iter().find(|problem| problem.key.as_deref().is_some_and(is_of_rules))
    }

    /// Whether there are secrets that others may have read.
    pub(crate) fn has_loose(&self) -> bool {
        !self.loose.is_empty()
    }

    /// Whether what is wrong keeps commands that write or ask a model from running.
    pub(crate) fn are_blocked(&self) -> bool {
        self.problems.iter().any(|problem| problem.blocks)
    }

    /// The sections of what is right, for `doctor` and for commands that only read.
    ///
    /// # Errors
    /// When a key and its type disagree, which no file brings about.
    pub(crate) fn lenient(&self) -> Result<Config, CommandError> {
        let mut whole = Table::new();
        for (path, (value, _)) in &self.values {
            insert(&mut whole, path, value.clone());
        }
        let mut config: Config = whole.try_into().map_err(|error: toml::de::Error| {
            CommandError::new(
                "config",
                2,
                one_line(error.message()),
                "`drawloom config check` looks at every key",
            )
        })?;
        if let (None, Some(old)) =
            (config.agents.get(DEFAULT_AGENT), config.agents.get(EARLIER_DEFAULT_AGENT))
        {
            config.agents.insert(DEFAULT_AGENT.to_owned(), old.clone());
        }
        for (path, value) in &self.loose {
            let Some(secret) = value.as_str().filter(|secret| !secret.is_empty()) else { continue };
            match segments(path).as_slice() {
                [section, name, key] if section == "providers" && key == "key" => {
                    config.providers.entry(name.clone()).or_default().loose_key = Some(secret.to_owned());
                }
                [section, name, key, _] if section == "mcp" && key == "secrets" => {
                    config.mcp.entry(name.clone()).or_default().loose_secrets.push(secret.to_owned());
                }
                [section, key] if section == "store" && key == "password" => {
                    config.store.loose_password = Some(secret.to_owned());
                }
                [section, key] if section == "web" && key == "search_key" => {
                    config.web.loose_search_key = Some(secret.to_owned());
                }
                _ => {}
            }
        }
        Ok(config)
    }
}

/// The named section a key stands in, as `providers.box`; none for a section without names.
fn section(path: &str) -> Option<String> {
    let named = keys::find(path)?.around_name().is_some();
    path.rsplit_once('.').filter(|_| named).map(|(section, _)| section.to_owned())
}

fn insert(table: &mut Table, path: &str, value: Value) {
    let mut names = segments(path);
    let last = names.pop().unwrap_or_default();
    let mut table = table;
    for name in names {
        let inner = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(inner) = inner else { return };
        table = inner;
    }
    table.insert(last, value);
}

/// The keys the environment sets. A name in a path is written in capitals, with `_` for `-`; `known` are the
/// sections whose names are spelt otherwise.
fn variables(environment: impl Iterator<Item = (OsString, OsString)>, known: &[String]) -> ParsedFile {
    let mut held = ParsedFile::default();
    for (variable, value) in environment {
        let Some(variable) = variable.to_str() else { continue };
        let Some(rest) = variable.strip_prefix("DRAWLOOM_").filter(|rest| rest.contains("__")) else {
            continue;
        };
        let problem = |key, what: String, hint: String| Problem {
            place: variable.to_owned(),
            key,
            what,
            hint,
            blocks: true,
        };
        let written = rest.to_ascii_lowercase().replace("__", ".");
        let path = known
            .iter()
            .find_map(|name| {
                let rest = written.strip_prefix(&name.to_ascii_lowercase().replace('-', "_"))?;
                rest.starts_with('.').then(|| format!("{name}{rest}"))
            })
            .unwrap_or(written);
        let Some(key) = keys::find(&path) else {
            held.problems.push(problem(None, format!("unknown key {path}"), keys::hint_for_unknown(&path)));
            continue;
        };
        let Some(value) = value.to_str() else {
            let (what, hint) = ("it is not UTF-8 text".to_owned(), "set it again".to_owned());
            held.problems.push(problem(Some(path), what, hint));
            continue;
        };
        // An empty text is no value, of whatever kind the key is.
        if value.is_empty() {
            continue;
        }
        match fitting::read(&path, key, value) {
            Ok(value) => held.values.push((path, value)),
            Err((what, hint)) => held.problems.push(problem(Some(path), what, hint)),
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(config: &str, environment: &[(&str, &str)], model: Option<&str>) -> Layers {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(CONFIG), config).unwrap();
        let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Layers::read(home.path(), environment.collect::<Vec<_>>().into_iter(), &[("model.default", model)])
    }

    fn text(found: (Option<Value>, Source)) -> (Option<String>, &'static str) {
        (found.0.and_then(|value| value.as_str().map(str::to_owned)), found.1.as_str())
    }

    #[test]
    fn flag_beats_environment_beats_file_beats_default() {
        let file = "[model]\ndefault = \"file\"\n[log]\nlevel = \"info\"";
        let variable = [("DRAWLOOM_MODEL__DEFAULT", "variable")];
        let get = |layers: Layers| text(layers.get("model.default"));
        assert_eq!(get(layers(file, &variable, Some("flag"))), (Some("flag".into()), "flag"));
        assert_eq!(get(layers(file, &variable, None)), (Some("variable".into()), "environment"));
        assert_eq!(get(layers(file, &[], None)), (Some("file".into()), "file"));
        assert_eq!(get(layers("", &[], None)), (None, "default"));
        let empty = [("DRAWLOOM_MODEL__DEFAULT", "")];
        assert_eq!(get(layers(file, &empty, None)), (Some("file".into()), "file"), "empty is absent");
        assert_eq!(get(layers("[model]\ndefault = \"\"", &[], None)), (None, "default"));
        assert_eq!(text(layers("", &[], None).get("log.level")), (Some("warn".into()), "default"));
    }

    #[test]
    fn the_environment_reaches_named_sections_as_they_are_spelt() {
        let file = "[providers.My-Box]\nbase_url = \"http://localhost:1\"";
        let found = layers(file, &[("DRAWLOOM_PROVIDERS__MY_BOX__WINDOW", "4096")], None).config().unwrap();
        assert_eq!(found.providers["My-Box"].window, Some(4096));
        let new = layers("", &[("DRAWLOOM_PROVIDERS__NEW__BASE_URL", "http://localhost:1")], None);
        assert!(new.config().unwrap().providers.contains_key("new"));
    }

    #[test]
    fn an_unknown_variable_is_an_error_and_the_home_is_none() {
        let found = layers("", &[("DRAWLOOM_HOME", "/x"), ("DRAWLOOM_LOG__LEVLE", "info")], None);
        assert_eq!(found.problems().len(), 1);
        assert_eq!(found.config().unwrap_err().exit, 2);
        assert!(found.config().unwrap_err().hint.contains("log.level"));
        assert!(found.lenient().is_ok());
    }
}
