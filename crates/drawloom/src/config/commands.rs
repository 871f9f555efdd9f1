//! The `config` commands. None of them needs the store, and only those that change it make a home.

use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use commands::args::maintenance::ConfigCommand;
use commands::package_caches::CacheSurroundings;
use commands::results::maintenance::{Checked, Paths, Setting, SettingShown, SettingsShown};
use commands::{CommandError, CommandOutcome};
use store::home::{Home, HomeOptions};
use text::terminal::one_line;
use toml::Value;
use workspace::{FileArgument, StoreGuard};

use super::keys::Key;
use super::layers::{Layers, Source};
use super::path::{normal, segments};
use super::policy::idle_rules;
use super::set::{UnsetSection, set, unknown, unset, unset_section, unset_unknown};
use super::{Config, file, keys, servers};
use crate::models::ConfiguredModels;
use crate::paths::InvocationPaths;
use crate::terminal::hidden_line;

/// Runs one.
///
/// # Errors
/// As each command says.
pub(crate) fn run(
    command: ConfigCommand,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<CommandOutcome, CommandError> {
    match command {
        ConfigCommand::Get { key } => get(&key, layers, note).map(CommandOutcome::Setting),
        ConfigCommand::Set { key, value } => {
            set_key(&key, value.as_deref(), paths, layers, note).map(CommandOutcome::Setting)
        }
        ConfigCommand::Unset { key } => unset_key(&key, paths, layers, note).map(CommandOutcome::Setting),
        ConfigCommand::Check => {
            let problems: Vec<_> = problems(layers, &paths.home)?;
            Ok(CommandOutcome::Checked(Checked { ok: problems.is_empty(), problems, repaired: None }))
        }
        ConfigCommand::Show { defaults } => Ok(CommandOutcome::Settings(show(defaults, layers, note))),
        ConfigCommand::Path => path(paths).map(CommandOutcome::Paths),
    }
}

fn get(path: &str, layers: &Layers, note: &dyn Fn(&str)) -> Result<Setting, CommandError> {
    let path = &*normal(path);
    let key = keys::find(path).ok_or_else(|| unknown(path))?;
    // A wrong value elsewhere does not matter; a file that says nothing does.
    for problem in layers.problems().iter().filter(|problem| problem.key.is_none()) {
        note(&problem.to_string());
    }
    if let Some(wrong) = layers.problems().iter().find(|problem| problem.key.as_deref() == Some(path)) {
        return Err(wrong.error());
    }
    let (value, source) = layers.get(path);
    Ok(setting(path, key, value.as_ref(), source))
}

fn setting(path: &str, key: &Key, value: Option<&Value>, source: Source) -> Setting {
    Setting { key: path.to_owned(), value: shown(key, value), source: source.as_str().to_owned(), said: None }
}

/// The file that keeps a key.
fn kept_in(row: &Key, home: &Path) -> String {
    let name = if row.secret { file::KEYS } else { file::CONFIG };
    one_line(&home.join(name).display().to_string()).into_owned()
}

/// Sets a key. A secret that is not given is read from a pipe, or asked for at a terminal, where it is not shown; an
/// empty value takes the key out of the file.
fn set_key(
    path: &str,
    written: Option<&str>,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<Setting, CommandError> {
    let path = &*normal(path);
    let row = keys::find(path).ok_or_else(|| unknown(path))?;
    let from_input;
    let written = match written {
        None | Some("-") if row.secret && io::stdin().is_terminal() => {
            let typed = hidden_line(&format!("{path}: "));
            let typed = typed.and_then(|typed| match typed.is_empty() {
                true => Err(io::Error::new(io::ErrorKind::InvalidInput, "nothing was typed")),
                false => Ok(typed),
            });
            from_input = typed.map_err(|error| {
                let hint = format!("set it again; `drawloom config unset {path}` takes one out");
                let what = format!("{path} was not set: {error}");
                match error.kind() {
                    io::ErrorKind::InvalidInput => CommandError::usage(what, hint),
                    _ => CommandError::new("cancelled", 130, what, hint),
                }
            })?;
            from_input.as_str()
        }
        None => {
            let is_piped = row.secret && FileArgument::is_input_piped();
            from_input = if is_piped { line_of_input()? } else { String::new() };
            if from_input.is_empty() {
                let hint = match row.secret {
                    true => format!(
                        "`drawloom config set {path}` asks for it at a terminal; `-` reads it from standard input"
                    ),
                    false => format!("`drawloom config set {path} VALUE`; `-` reads it from standard input"),
                };
                return Err(CommandError::usage(format!("no value for {path}"), hint));
            }
            from_input.as_str()
        }
        Some("-") => {
            from_input = line_of_input()?;
            from_input.as_str()
        }
        Some(written) => {
            if row.secret && !written.is_empty() {
                note(
                    "a secret on the command line may stay in the shell's history; without it, it is asked for",
                );
            }
            written
        }
    };
    let written = if row.secret { written.trim() } else { written };
    if row.secret && written.contains(char::is_control) {
        let hint = "give it as one line, as it was issued";
        return Err(CommandError::usage(
            format!("{path} was not set: it has a line break or another control character"),
            hint,
        ));
    }
    if written.is_empty() {
        return unset_key(path, paths, layers, note);
    }
    if let Some((_, problem)) = FOLDERS.iter().find(|(key, _)| path == *key) {
        require_folders(path, written, &paths.home, *problem)?;
    }
    if let [section, agent, last] = &segments(path)[..]
        && (section.as_str(), last.as_str()) == ("agents", "tools")
        && let Ok(value) = row.kind.read(written)
    {
        let names: Vec<String> = value.try_into().unwrap_or_default();
        if let Some(why) = unknown_tools(agent, &names, &layers.tools()).into_iter().next() {
            return Err(CommandError::usage(why, "nothing was written"));
        }
    }
    let home = home(path, paths, layers)?;
    for problem in set(home.root(), path, written)? {
        note(&format!("also wrong in the file: {problem}"));
    }
    let (before, above) = layers.get(path);
    if let Some(server) =
        servers::program_of(path).filter(|_| before.as_ref() != row.kind.read(written).ok().as_ref())
    {
        servers::changed(&server, home.root(), note);
    }
    if matches!(above, Source::Environment | Source::Flag) {
        note(&format!("written; the {} sets it too and takes precedence", above.as_str()));
    }
    let now = row.kind.read(written).ok();
    let found = setting(path, row, now.as_ref(), Source::File);
    let is_now = if row.secret { "set".to_owned() } else { in_words(&found.value) };
    let said = format!("{path} is {is_now} now, kept in {}", kept_in(row, home.root()));
    Ok(Setting { said: Some(said), ..found })
}

/// Why each of the tools of an agent that may not be named is none; `configured` are those of `[tools.NAME]`.
fn unknown_tools(agent: &str, names: &[String], configured: &[String]) -> Vec<String> {
    let mut there = commands::tool_names(configured.iter());
    there.retain(|tool| commands::why_not_named(agent, tool).is_none());
    // Those of servers come and go, and are missed when they are wanted.
    let is_ours = |tool: &&String| context::tools::server_of(tool).is_none();
    let wrong = names.iter().filter(is_ours).filter(|tool| !there.contains(tool)).map(|tool| {
        commands::why_not_named(agent, tool).unwrap_or_else(|| {
            let (tool, there) = (one_line(tool), there.join(", "));
            format!("agents.{agent}.tools names {tool}: there is no such tool; there are {there}")
        })
    });
    wrong.collect()
}

/// Takes a key out of the file; the result is what holds then.
fn unset_key(
    path: &str,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<Setting, CommandError> {
    let path = &*normal(path);
    let Some(row) = keys::find(path) else { return unset_unknown_key(path, paths, layers, note) };
    if let Some(server) = servers::needs(path, layers) {
        return Err(servers::not_taken_out(path, &server));
    }
    let home = home(path, paths, layers)?;
    for problem in unset(home.root(), path)? {
        note(&format!("also wrong in the file: {problem}"));
    }
    if let Some(server) = servers::program_of(path).filter(|_| layers.get(path).1 == Source::File) {
        servers::changed(&server, home.root(), note);
    }
    let (value, source) = match layers.get(path) {
        (value, source @ (Source::Environment | Source::Flag)) => {
            note(&format!("the {} sets it still", source.as_str()));
            (value, source)
        }
        _ => (row.default.clone(), Source::Default),
    };
    let found = setting(path, row, value.as_ref(), source);
    let file = kept_in(row, home.root());
    let said = match source {
        Source::Default if value.is_some() => {
            format!("{path} is {} now, its default: it is not in {file} any more", in_words(&found.value))
        }
        Source::Default => format!("{path} is not set any more: it is not in {file}"),
        other => format!("{path} is not in {file} any more; the {} sets it", other.as_str()),
    };
    Ok(Setting { said: Some(said), ..found })
}

/// Takes a section with a name of its own out of the files, with all that stands in it.
fn unset_whole_section(
    path: &str,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<Setting, CommandError> {
    if let Some(server) = servers::named(path).filter(|_| servers::is_set(path, layers)) {
        return Err(servers::not_taken_out(path, &server));
    }
    let home = home(path, paths, layers)?;
    let UnsetSection { was_there, problems, .. } = unset_section(home.root(), path)?;
    for problem in problems {
        note(&format!("also wrong in the file: {problem}"));
    }
    if !was_there {
        let hint = "`drawloom config show` shows what is set";
        return Err(CommandError::not_found("section", &one_line(path), hint));
    }
    let said =
        format!("{} is not set any more: nothing of it is in {}", one_line(path), home_files(home.root()));
    Ok(Setting {
        key: path.to_owned(),
        value: serde_json::Value::Null,
        source: Source::Default.as_str().to_owned(),
        said: Some(said),
    })
}

/// The files of settings of a home, in words.
fn home_files(home: &Path) -> String {
    let [config, keys] = [file::CONFIG, file::KEYS].map(|name| home.join(name).display().to_string());
    format!("{} and {}", one_line(&config), one_line(&keys))
}

/// Takes a key that there is not out of the file.
fn unset_unknown_key(
    path: &str,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<Setting, CommandError> {
    if !layers.problems().iter().any(|problem| problem.key.as_deref() == Some(path)) {
        return match keys::is_named_section(path) {
            true => unset_whole_section(path, paths, layers, note),
            false => Err(unknown(path)),
        };
    }
    let home = home(path, paths, layers)?;
    for problem in unset_unknown(home.root(), path)? {
        note(&format!("also wrong in the file: {problem}"));
    }
    let file = one_line(&home.root().join(file::CONFIG).display().to_string()).into_owned();
    let said = format!("{} is not in {file} any more", one_line(path));
    let (key, source) = (path.to_owned(), Source::Default.as_str().to_owned());
    Ok(Setting { key, value: serde_json::Value::Null, source, said: Some(said) })
}

/// A value as a sentence has it.
fn in_words(value: &serde_json::Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    one_line(&text).into_owned()
}

/// The home in whose file a key is to be written.
pub(crate) fn home(path: &str, paths: &InvocationPaths, layers: &Layers) -> Result<Home, CommandError> {
    let allow = matches!(layers.get("store.allow_network_fs").0, Some(Value::Boolean(true)));
    let options = HomeOptions { allow_network_fs: allow || path == "store.allow_network_fs" };
    Home::open(&paths.home, options).map_err(|error| crate::open::home_error(&error))
}

/// The longest value taken from standard input, in bytes.
const MAX_LINE_BYTES: u64 = 64 * 1024;

fn line_of_input() -> Result<String, CommandError> {
    let limits = commands::settings::ResourceLimits::default();
    let input = FileArgument::standard_input(&StoreGuard::new(), limits.input_wait)
        .map_err(|error| CommandError::file_argument(&error))?;
    let mut line = String::new();
    let read = BufReader::new(input.take(MAX_LINE_BYTES)).read_line(&mut line);
    read.map_err(|error| CommandError::file("cannot read", Path::new("standard input"), &error))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// What is wrong with what is configured, with keys that are missing and do not go together.
///
/// # Errors
/// When a key and its type disagree, which no file brings about.
pub(crate) fn problems(layers: &Layers, home: &Path) -> Result<Vec<String>, CommandError> {
    let mut problems: Vec<_> = layers.problems().iter().map(file::Problem::to_string).collect();
    // Of a file that cannot be read it is not known what is missing.
    if layers.is_broken() {
        return Ok(problems);
    }
    let config = layers.lenient()?;
    for (name, provider) in &config.providers {
        let row = provider.kind.as_deref().unwrap_or(name);
        if provider.base_url.is_none() && model::provider(row).is_none() {
            problems.push(format!("providers.{name}.base_url is missing: set the server's address"));
        }
        if let Some(kind) = provider.kind.as_ref().filter(|kind| model::provider(kind).is_none()) {
            problems.push(format!("providers.{name}.kind names {kind}: no provider is known by that name"));
        }
    }
    for (name, model) in &config.models {
        if model.price_input.is_some() != model.price_output.is_some() {
            problems.push(format!(
                "models.\"{name}\" has one price of two: price_input and price_output belong together"
            ));
        }
    }
    problems.extend(default_model(&config));
    for (name, agent) in &config.agents {
        if let Some(preset) = agent.preset.as_ref().filter(|preset| !config.presets.contains_key(*preset)) {
            problems.push(format!("agents.{name}.preset names {preset}: there is no [presets.{preset}]"));
        }
        let configured: Vec<String> = config.tools.keys().cloned().collect();
        problems.extend(unknown_tools(name, agent.tools.as_deref().unwrap_or_default(), &configured));
        if let Some(file) = &agent.system_file {
            let read = commands::read_system_file(home, &StoreGuard::new(), name, file);
            problems.extend(read.err().map(|error| error.message));
        }
        problems.extend(agent.check().err().map(|why| format!("agents.{name}.{why}")));
    }
    problems.extend(config.tools.iter().filter_map(|(name, tool)| tool.read(name).err()));
    problems.extend(config.mcp.iter().filter_map(|(name, server)| server.check(name).err()));
    let known = commands::tool_names(config.tools.keys());
    let servers: Vec<String> = config.mcp.keys().cloned().collect();
    let known = (&known[..], &servers[..]);
    problems.extend(config.hooks.iter().filter_map(|(name, hook)| hook.read(name, known, None).err()));
    problems.extend(idle_rules(&config).into_iter().map(|rule| rule.told));
    problems.extend(caches_problem(&config.exec.caches, home));
    let toolchains = config.exec.toolchains.as_deref().unwrap_or_default();
    problems.extend(commands::walls::toolchains_problem(toolchains, home));
    problems.extend(config.web.of_commands().err());
    problems.extend(config.web.search_service().err());
    Ok(problems)
}

/// What is wrong with folders, given the home, if anything is.
type FoldersProblem = fn(&[PathBuf], &Path) -> Option<String>;

/// Keys of folders that commands read.
const FOLDERS: [(&str, FoldersProblem); 2] =
    [("exec.caches", caches_problem), ("exec.toolchains", commands::walls::toolchains_problem)];

/// Refuses folders that commands may not read.
fn require_folders(
    key: &str,
    written: &str,
    home: &Path,
    problem: FoldersProblem,
) -> Result<(), CommandError> {
    // What is no list of folders is refused with what it takes.
    let folders =
        keys::find(key).and_then(|row| row.kind.read(written).ok()).and_then(|value| value.try_into().ok());
    let problem = folders.and_then(|folders: Vec<PathBuf>| problem(&folders, home));
    problem.map_or(Ok(()), |why| {
        Err(CommandError::usage(why, "name the folders that are needed alone; nothing was changed"))
    })
}

/// What is wrong with package caches, if anything is.
fn caches_problem(folders: &[PathBuf], home: &Path) -> Option<String> {
    let user_home = commands::walls::user_home();
    let surroundings = CacheSurroundings { user_home: user_home.as_deref(), home, workspace: None };
    surroundings.caches(folders).err()
}

/// What is wrong with `model.default`, if anything is.
pub(crate) fn default_model(config: &Config) -> Option<String> {
    let name = config.model.default.as_deref()?;
    unusable_model(config, "model.default", name)
}

/// Why the model that a key names cannot be asked, if it cannot.
pub(crate) fn unusable_model(config: &Config, key: &str, name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some(format!("{key} is empty: name a model, as PROVIDER/NAME"));
    }
    let error = ConfiguredModels::new(config.clone(), None).can_be(name).err()?;
    Some(format!("{key} names {}: {}", one_line(name), error.hint))
}

fn show(defaults: bool, layers: &Layers, note: &dyn Fn(&str)) -> SettingsShown {
    for problem in layers.problems() {
        note(&problem.to_string());
    }
    let line = |path: &str, key: &Key, value: Option<&Value>, source: Source| SettingShown {
        key: path.to_owned(),
        value: shown(key, value),
        source: source.as_str().to_owned(),
        doc: key.about(),
    };
    let mut settings: Vec<_> =
        layers.set().map(|(path, key, value, source)| line(path, key, Some(value), source)).collect();
    if defaults {
        let unset = keys::KEYS.iter().filter(|key| layers.get(&key.path).1 == Source::Default);
        settings.extend(unset.map(|key| line(&key.path, key, key.default.as_ref(), Source::Default)));
    }
    SettingsShown { settings, schema: defaults.then(keys::schema) }
}

/// A value as it is shown: of a secret only that it is there.
fn shown(key: &Key, value: Option<&Value>) -> serde_json::Value {
    match value {
        None => serde_json::Value::Null,
        Some(_) if key.secret => "present".into(),
        Some(value) => serde_json::to_value(value).unwrap_or_default(),
    }
}

fn path(paths: &InvocationPaths) -> Result<Paths, CommandError> {
    let workspace = paths.workspace()?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(Paths {
        home: text(&paths.home),
        config: text(&paths.home.join(file::CONFIG)),
        workspace: text(&workspace.folder),
        why: workspace.why,
    })
}
