//! `doctor`: whether everything works, and how to mend what does not.
//!
//! It looks and changes nothing: a home that is not there stays so, and wrong modes are named, not repaired.
//! `--quick` opens no connection.

mod backup;
mod caches;
mod disk;
mod files;
mod servers;
mod skills;

use commands::results::maintenance::{Check, Health, Sandbox, State};
use commands::settings::ConfiguredHook;
use commands::workspaces::InspectedFolder;
use commands::{CommandError, CommandOutcome};
use sandbox::{Level, LevelReport};
use serde_json::Value;
use text::terminal::one_line;
use workspace::Root;
use workspace::trust::{Accepted, decide};

use crate::config::{Config, Layers, problems};
use crate::open::reading;
use crate::paths::InvocationPaths;
use crate::workspaces::in_repository;

/// Looks at everything.
///
/// # Errors
/// When not even looking was possible.
pub(crate) fn examine(
    quick: bool,
    paths: &InvocationPaths,
    layers: &Layers,
) -> Result<CommandOutcome, CommandError> {
    let config = layers.lenient()?;
    let mut checks = vec![settings(paths, layers)?];
    checks.extend(disk::checks(paths, &config, quick));
    let (of_workspace, loaded) = workspace(paths, layers);
    checks.push(of_workspace);
    checks.extend(skills::checks(paths, &config, loaded.as_ref())?);
    checks.extend(hooks(&config));
    checks.extend(servers::checks(layers, &config, quick)?);
    let (walls, level, sandbox) = walls();
    checks.push(walls);
    checks.extend(caches::checks(paths, &config, level));
    let ok = checks.iter().all(|check| check.state != State::Fail);
    Ok(CommandOutcome::Health(Health { ok, checks, sandbox }))
}

/// The hooks, with what each is run on; nothing where there is none. What is wrong with one is a problem of the configuration.
fn hooks(config: &Config) -> Option<Check> {
    let told = |(name, hook): (&String, &ConfiguredHook)| {
        let events = serde_json::json!(hook.on);
        let events: Vec<&str> = events.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("{name} on {}", events.join(", "))
    };
    let told: Vec<String> = config.hooks.iter().map(told).collect();
    (!told.is_empty()).then(|| ok("hooks", told.join("; ")))
}

/// The walls that this machine allows commands.
fn walls() -> (Check, Level, Sandbox) {
    let report = match sandbox::Sandbox::of_this_program() {
        Ok(sandbox) => sandbox.probe(),
        Err(error) => LevelReport { level: Level::None, missing: vec![error.to_string()], landlock: 0 },
    };
    let (level, state, why) = match report.level {
        Level::Full => ("full", State::Ok, "full: commands run behind all walls".to_owned()),
        Level::Partial => ("partial", State::Warn, format!("partial: {}", report.missing.join("; "))),
        Level::None => ("none", State::Warn, format!("none: {}", report.missing.join("; "))),
    };
    let fix = match state {
        State::Ok => "",
        _ => "allow user namespaces and Landlock on this machine",
    };
    let abi = (report.landlock > 0).then_some(report.landlock);
    (check("sandbox", state, why, fix), report.level, Sandbox { level, abi, missing: report.missing })
}

fn ok(name: &str, why: impl Into<String>) -> Check {
    check(name, State::Ok, why, "")
}

fn check(name: &str, state: State, why: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name: name.to_owned(), state, why: why.into(), fix: fix.into() }
}

fn settings(paths: &InvocationPaths, layers: &Layers) -> Result<Check, CommandError> {
    let counted = |why: String, all: usize| match all {
        1 => why,
        _ => format!("{why} (and {} more)", all - 1),
    };
    if let [first, ..] = layers.problems() {
        let why = counted(format!("{}: {}", first.place, first.what), layers.problems().len());
        return Ok(check("config", State::Fail, why, first.hint.clone()));
    }
    let problems = problems(layers, &paths.home)?;
    Ok(match problems.first() {
        None => ok("config", "no unknown keys, no wrong values"),
        Some(first) => {
            let why = counted(first.clone(), problems.len());
            check("config", State::Fail, why, "`drawloom config check` names all of them")
        }
    })
}

/// Looks at the workspace; one that is loaded comes with what counts in it.
fn workspace(paths: &InvocationPaths, layers: &Layers) -> (Check, Option<(Root, Accepted)>) {
    let chosen = match paths.workspace() {
        Ok(chosen) => chosen,
        Err(error) => return (check("workspace", State::Fail, error.message, error.hint), None),
    };
    let mut why = format!("{}: {}", chosen.folder.display(), chosen.why);
    if let Some(git_top) = &chosen.git_top {
        let shown = git_top.to_string_lossy();
        why = format!("{why}; the git repository {} is none: {}", one_line(&shown), in_repository(git_top));
    }
    // What cannot be opened is not there yet, or is named when something is loaded from it.
    let Some(looked) = paths.guard().ok().and_then(|guard| InspectedFolder::at(&chosen.folder, &guard).ok())
    else {
        return (ok("workspace", why), None);
    };
    let record = match reading::file_of_store(paths, layers).map(|file| disk::answered(&file, &looked)) {
        None => None,
        Some(Ok(record)) => record,
        Some(Err(error)) => {
            return (check("workspace", State::Warn, format!("{why}; {}", error.message), error.hint), None);
        }
    };
    let arrival = paths.arrival(&chosen);
    let decision = decide(&looked.id, &looked.inventory, arrival, record.as_ref());
    if !decision.loads() && reading::is_on_server(layers) {
        let why = format!("{why}; whether you trusted it is known to the store on the server");
        return (ok("workspace", why), None);
    }
    let why = format!("{why}; {decision}");
    if decision.loads() {
        let accepted = Accepted::of(&looked.id, arrival, record.as_ref());
        return (ok("workspace", why), Some((looked.root, accepted)));
    }
    let fix = "`drawloom workspace list` shows what it would load, `drawloom workspace trust` allows it";
    (check("workspace", State::Warn, why, fix), None)
}
