//! The tools an agent may call in a session, and what they work in.

mod shown;

use std::path::Path;
use std::sync::Arc;

use ::tools::{
    BackgroundChanges, Checkpoints, CommandEgress, CommandScope, Hook, IsShown, NOTE_OUTCOME, Processes,
    RootCheckpoints, SUBAGENT_TOOLS, SeenFiles, SessionPolicy, Tool, ToolRegistry, ToolScope, WEB_TOOLS,
    WebScope, web_tools,
};
use egress::Gate;
use loom::Trust;
use loom::source::DEFAULT_AGENT;
use model::ModelInfo;
use policy::SessionType;
use sandbox::{Level, Sandbox};
use store::home::{HomeDir, HomeError};
use text::terminal::one_line;
use workspace::discovery::check_writable_root;
use workspace::{AllowedRoots, FurtherRoot, Root, canonical, file_name_of_key};

pub(super) use shown::shown;

use super::{conversation_tools, loom_tools, server_tools};
use crate::app::App;
use crate::args::chat::TurnArgs;
use crate::error::CommandError;
use crate::further_roots;
use crate::profile;
use crate::settings::{ConfiguredHook, WebSettings};
use crate::skills::SkillsOfSession;
use crate::walls;

/// Tools that an agent may call, asked through a model; none where there are none.
///
/// # Errors
/// The configuration names one that there is not, or that comes with a permission.
pub(super) fn of_agent(
    app: &App,
    agent: &str,
    session: SessionType,
    model: &ModelInfo,
    is_shown: Arc<IsShown>,
    (further, skills): (&[FurtherRoot], &SkillsOfSession),
) -> Result<Option<Arc<ToolRegistry>>, CommandError> {
    let names = given(app, agent, session, Some(model))?;
    if names.is_empty() {
        return Ok(None);
    }
    let scope = scope(app, agent, session, &names, (further, &skills.folders))?;
    let registry = registry(app, agent, scope, is_shown, &names)?;
    Ok(Some(Arc::new(match skills.finder.clone() {
        Some(finder) => registry.with_skills(skills.followable.clone(), Arc::new(move || finder.in_reach())),
        None => registry,
    })))
}

/// Whether the configuration names the tools of an agent, or gives it a permission that brings some.
pub(super) fn are_asked(app: &App, agent: &str) -> bool {
    let configured = app.settings.agents.get(agent);
    configured.is_some_and(|agent| agent.tools.is_some() || loom_tools::names(agent).next().is_some())
}

/// The names of the tools of an agent: those that the configuration names, else all that need no permission, where it
/// has a folder to work in, is not asked a single question, and its model takes them in a window that has room (spec:
/// context §3); and those that its permissions bring.
///
/// # Errors
/// Its configuration names one that comes with a permission, or has a permission without the one it needs.
fn given(
    app: &App,
    agent: &str,
    session: SessionType,
    model: Option<&ModelInfo>,
) -> Result<Vec<String>, CommandError> {
    let unnamed = || {
        let takes = |model: &ModelInfo| model.tools && has_room(model);
        let works = session != SessionType::Isolated && has_folder(app) && model.is_none_or(takes);
        let all = if works { there(app) } else { Vec::new() };
        all.into_iter().filter(|name| loom_tools::permission(name).is_none()).collect()
    };
    let Some(configured) = app.settings.agents.get(agent) else {
        return Ok(of_session(session, unnamed()));
    };
    let wrong = |why| CommandError::usage(why, "correct it in config.toml");
    configured.check().map_err(|why| wrong(format!("agents.{agent}.{why}")))?;
    let mut names = configured.tools.clone().unwrap_or_else(unnamed);
    if let Some((name, key)) = names.iter().find_map(|name| Some((name, loom_tools::permission(name)?))) {
        return Err(wrong(named_without_permission(agent, name, key)));
    }
    names.extend(loom_tools::names(configured).map(str::to_owned));
    Ok(server_tools::without_missing(app, of_session(session, names)))
}

/// Names of tools without those that a session has no use for: one that is forgotten with its end has no subagents, as
/// what they say is kept, and only one that hands over notes anything.
fn of_session(session: SessionType, mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| session != SessionType::Private || !SUBAGENT_TOOLS.contains(&name.as_str()));
    names.retain(|name| session == SessionType::Main || name != NOTE_OUTCOME);
    names
}

/// Whether tools that nobody named fit into the window of a model (spec: context §3).
fn has_room(model: &ModelInfo) -> bool {
    u64::from(model.window) >= context::tools::LEAST_WINDOW
}

/// Whether there is a folder in which an agent could work.
fn has_folder(app: &App) -> bool {
    app.workspace.folder.as_ref().is_some_and(|folder| folder.is_dir())
}

/// That an agent has no tools, as there is no workspace here or its model has a small window; none where it has some, or
/// would have none otherwise either.
pub(super) fn without_tools(
    app: &App,
    agent: &str,
    session: SessionType,
    model: &ModelInfo,
) -> Option<String> {
    let configured = app.settings.agents.get(agent);
    let is_named = configured.is_some_and(|agent| agent.tools.is_some());
    if is_named || session == SessionType::Isolated || !model.tools || has_folder(app) == has_room(model) {
        return None;
    }
    let permitted = configured.is_some_and(|agent| loom_tools::names(agent).next().is_some());
    let tools = if permitted { "no tools but those of its permissions" } else { "no tools" };
    Some(match has_room(model) {
        true => format!("no workspace here: the model has {tools}{}", advice(app)),
        false => {
            let (name, window, least) = (model.full_name(), model.window, context::tools::LEAST_WINDOW);
            let why = if model.window_assumed {
                format!(
                    "{window} tokens are assumed for its window, and these take {least} or more: if it has them, \
                     `drawloom config set providers.{}.window 32768` says so",
                    model.provider
                )
            } else {
                format!(
                    "its window is {window} tokens, and these take {least} or more: `drawloom config set \
                     agents.{agent}.tools '[\"read\", \"grep\"]'` sends some all the same"
                )
            };
            format!("{} has {tools}: {}", one_line(&name), one_line(&why))
        }
    })
}

/// Which flags of a call change nothing, as its model has no tools, and why it has none; nothing where there is none of
/// them.
pub(super) fn flags_without_tools(
    flags: &TurnArgs,
    (agent, session): (&str, SessionType),
    model: &ModelInfo,
) -> Option<String> {
    let idle = flags.for_tools();
    let mut without = Vec::new();
    if !idle.is_empty() {
        let have = if idle.len() == 1 { "has" } else { "have" };
        without.push(format!("{} {have} no effect", idle.join(" and ")));
    }
    without.extend(flags.wait.map(|_| "--wait waits for answers about a budget alone".to_owned()));
    if without.is_empty() {
        return None;
    }
    let why = match (model.tools, session) {
        (false, _) => format!("{} takes no tools", one_line(&model.full_name())),
        (true, SessionType::Isolated) => {
            format!("`ask` has no tools but those that agents.{agent}.tools names")
        }
        (true, _) => "the model has no tools here".to_owned(),
    };
    Some(format!("{why}: {}", without.join(", ")))
}

/// How to work where one is, behind what is said of it.
fn advice(app: &App) -> String {
    app.workspace.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default()
}

/// Why a list of tools does not name one that comes with a permission.
pub(crate) fn named_without_permission(agent: &str, tool: &str, key: &str) -> String {
    format!(
        "agents.{agent}.tools names {tool}, which comes with agents.{agent}.{key} = true and is not named there"
    )
}

/// The permission that brings a tool; none of one that is named.
pub(crate) fn permission(tool: &str) -> Option<&'static str> {
    loom_tools::permission(tool)
}

/// The tools of these names in a scope, as an agent has them.
///
/// # Errors
/// There is no tool of one of the names, or one that is configured cannot be read.
fn registry(
    app: &App,
    agent: &str,
    scope: ToolScope,
    is_shown: Arc<IsShown>,
    names: &[String],
) -> Result<ToolRegistry, CommandError> {
    ToolRegistry::new(scope, further(app, agent, is_shown, names)?, names).map_err(|why| {
        let searches = WEB_TOOLS[1];
        let hint = if app.settings.web.search.is_none() && names.iter().any(|name| name == searches) {
            format!("{searches} needs a search engine: set web.search, and its key or address")
        } else {
            format!(
                "name some that there are: `drawloom config set agents.{agent}.tools '[\"read\", \"grep\"]'`"
            )
        };
        CommandError::usage(why, hint)
    })
}

/// All tools there are, for a decision on a call that is not made.
///
/// # Errors
/// One that is configured cannot be read.
pub(crate) fn all(app: &App, scope: ToolScope) -> Result<ToolRegistry, CommandError> {
    registry(app, DEFAULT_AGENT, scope, nothing_shown(), &there(app))
}

/// Tools besides those of files and commands; of trees and of the configuration only those that `names` asks for.
///
/// # Errors
/// One that is configured cannot be read.
fn further(
    app: &App,
    agent: &str,
    is_shown: Arc<IsShown>,
    names: &[String],
) -> Result<Vec<Tool>, CommandError> {
    let has_loom = names.iter().any(|name| loom_tools::permission(name).is_some());
    let mut further = of_store(app, if has_loom { loom_tools::tools(app, agent) } else { Vec::new() });
    let WebSettings { private_hosts, search } = app.settings.web.clone();
    further.extend(web_tools(&WebScope { gate: Gate::default(), private_hosts, search, is_shown }));
    for (name, tool) in app.settings.tools.iter().filter(|(name, _)| names.contains(name)) {
        further
            .push(tool.read(name).map_err(|why| wrong_section(&format!("tools.{name}"), why))?.into_tool());
    }
    further.extend(server_tools::tools(app, names));
    Ok(further)
}

/// Tools that work in what the store keeps, with those of trees.
fn of_store(app: &App, of_trees: Vec<Tool>) -> Vec<Tool> {
    let mut tools = conversation_tools::tools(&app.runtime);
    tools.extend(of_trees);
    tools
}

/// Tools of [`of_store`] that read and do nothing else, as a program has them that only looks.
pub(super) fn of_reader(app: &App) -> Vec<Tool> {
    let mut tools = of_store(app, loom_tools::of_reader(app));
    tools.retain(Tool::is_read_only);
    tools
}

/// That a section of the configuration cannot be read, for a reason that begins with its key.
fn wrong_section(section: &str, why: String) -> CommandError {
    let key = why.split([' ', ':']).next().unwrap_or_default();
    let hint =
        format!("`drawloom config set {key} …` corrects it, `drawloom config unset {section}` takes it out");
    CommandError::usage(why, hint)
}

/// What a conversation has shown that is none.
fn nothing_shown() -> Arc<IsShown> {
    Arc::new(|_| false)
}

/// The names of all tools there are, sorted.
pub(crate) fn there(app: &App) -> Vec<String> {
    let mut names = names(app.settings.tools.keys());
    names.retain(|name| name != WEB_TOOLS[1] || app.settings.web.search.is_some());
    names.extend(server_tools::names(app));
    names.sort();
    names
}

/// The names of all tools that a configuration may have, sorted; one of them needs a search engine.
pub(crate) fn names<'s>(configured: impl Iterator<Item = &'s String>) -> Vec<String> {
    let mut names = built_in();
    names.extend(configured.cloned());
    names.sort();
    names
}

/// Whether a tool is one of those that need no configuration, and no call of it reaches a host.
pub(crate) fn reaches_no_host(tool: &str) -> bool {
    built_in().iter().any(|name| name == tool) && tool != "exec" && !WEB_TOOLS.contains(&tool)
}

/// The names of the tools that need no configuration, sorted.
fn built_in() -> Vec<String> {
    let further = conversation_tools::NAMES.into_iter().chain(loom_tools::all_names()).chain(WEB_TOOLS);
    let further = further.map(str::to_owned);
    let mut names: Vec<String> = ToolRegistry::names().into_iter().chain(further).collect();
    names.sort();
    names
}

/// Whether a name is that of a tool of the program, also of those that no agent names.
pub(crate) fn is_taken(name: &str) -> bool {
    [context::tools::tool_search(), context::tools::call_tool()].iter().any(|tool| tool.name == name)
        || built_in().iter().any(|other| other == name)
}

/// What the tools of these names work in, as an agent has them: with further folders, and with those of skills. Where one of them runs commands, it waits for the probe of the sandbox.
///
/// # Errors
/// The home has no place for what they keep; a rule of the agent is about nothing.
pub(crate) fn scope(
    app: &App,
    agent: &str,
    session: SessionType,
    names: &[String],
    (further, skills): (&[FurtherRoot], &[FurtherRoot]),
) -> Result<ToolScope, CommandError> {
    let workspace = &app.workspace;
    // What a folder says that was not trusted is from outside (spec: security §4).
    let (folder, trust) = match &workspace.root {
        Some(root) => (Some(root.path().to_owned()), Trust::Workspace),
        None => (workspace.folder.clone(), Trust::Outside),
    };
    let root = folder.and_then(|folder| match Root::open(&folder, &app.guard) {
        Ok(root) => Some(root),
        Err(error) => {
            app.frontend.note(&format!("tools find no workspace: {error}{}", advice(app)));
            None
        }
    });
    let closed = further_roots::closed(app.runtime.home.root());
    let further_root = |further: &FurtherRoot| {
        further.open(&app.guard, &closed).map_err(|error| {
            CommandError::usage(error.to_string(), "name a folder that is there with --allow")
        })
    };
    let (everything, named): (Vec<_>, Vec<_>) = further.iter().partition(|root| root.is_everything());
    let named = named.into_iter().map(further_root).collect::<Result<Vec<_>, _>>()?;
    let everything = everything.into_iter().map(further_root).collect::<Result<Vec<_>, _>>()?;
    // One that went meanwhile is missed when it is read.
    let skill_roots =
        skills.iter().filter_map(|folder| folder.open(&app.guard, &closed).ok()).map(Root::as_skill);
    let masker = Arc::clone(&app.runtime.masker);
    let locks = app.runtime.home.dir(HomeDir::Locks);
    let locks = locks.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
    let hooks = hooks(app)?;
    Ok(ToolScope {
        roots: AllowedRoots::within(
            root.into_iter().chain(named).chain(skill_roots).chain(everything).collect(),
        )
        .into(),
        trust,
        masker,
        policy: session_policy(app, agent)?,
        session,
        locks,
        umask: store::home::former_umask(),
        seen: SeenFiles::default(),
        max_pixels: app.settings.limits.picture,
        search_time: app.settings.limits.glob,
        commands: if ToolRegistry::runs_commands(names)
            || names.iter().any(|name| app.settings.tools.contains_key(name))
            || !hooks.is_empty()
        {
            commands(app, session, (further, skills))?
        } else {
            None
        },
        hooks,
    })
}

/// The hooks of the configuration, by name.
///
/// # Errors
/// One of them cannot be read.
fn hooks(app: &App) -> Result<Vec<Hook>, CommandError> {
    let (known, servers) =
        (names(app.settings.tools.keys()), app.settings.mcp.keys().cloned().collect::<Vec<_>>());
    let workspace = app.workspace.folder.as_deref();
    let read = |(name, hook): (&String, &ConfiguredHook)| {
        hook.read(name, (&known, &servers), workspace)
            .map_err(|why| wrong_section(&format!("hooks.{name}"), why))
    };
    app.settings.hooks.iter().map(read).collect()
}

/// The rules that hold for an agent: those that were read when the process began, and those that stand now.
pub(super) fn session_policy(app: &App, agent: &str) -> Result<SessionPolicy, CommandError> {
    let began = profile::policy(&app.settings, agent)?;
    let agent = agent.to_owned();
    Ok(match app.runtime.rules.file() {
        Some(file) => SessionPolicy::new(began, Arc::new(move || file.read(&agent))),
        None => began.into(),
    })
}

/// Where the commands of a session run; none where there is no workspace.
fn commands(
    app: &App,
    kind: SessionType,
    (further, skills): (&[FurtherRoot], &[FurtherRoot]),
) -> Result<Option<CommandScope>, CommandError> {
    let workspace = &app.workspace;
    let Some(folder) = &workspace.folder else { return Ok(None) };
    let at_home = |error: HomeError| CommandError::new("home", 6, error.to_string(), error.hint());
    let home = &app.runtime.home;
    let mut walls = walls::of_workspace(home.root(), folder, &workspace.key, &app.settings.exec)?;
    let surroundings = workspace.surroundings.as_ref();
    if surroundings.is_some_and(|surroundings| check_writable_root(folder, surroundings).is_err()) {
        walls.close_for_writing();
    }
    further_roots::open_in(&mut walls, further);
    walls.readable.extend(skills.iter().map(|folder| folder.path.clone()));
    let no_sandbox =
        |why: String| CommandError::new("no_sandbox", 6, why, "`drawloom doctor` looks at the sandbox");
    let sandbox = Sandbox::of_this_program()
        .map_err(|error| no_sandbox(format!("this program cannot be its own sandbox: {error}")))?;
    let mut report = sandbox.probe();
    if further_roots::hold_everything(further) {
        (report.level, report.missing) = (Level::None, vec!["--no-restrict lifts it".to_owned()]);
    }
    let cache = home.dir(HomeDir::CheckpointCache).map_err(at_home)?;
    let records = |root: Option<&Path>| match (kind, root) {
        (SessionType::Private, _) => app.runtime.private_records(app.runtime.instance, root),
        (_, None) => Ok(cache.join(file_name_of_key(&workspace.key))),
        // Those of the workspace that the same folder is.
        (_, Some(root)) => Ok(cache.join(file_name_of_key(&root.to_string_lossy()))),
    };
    let rules = walls::checkpoint_rules(home.root(), &app.settings.exec);
    let mut checkpoints = RootCheckpoints::default()
        .with(canonical(folder), Checkpoints::within(records(None)?, rules.clone()));
    for root in further.iter().filter(|root| !root.is_everything()) {
        let of_root = Checkpoints::within(records(Some(&root.path))?, rules.clone());
        checkpoints = checkpoints.with(root.path.clone(), of_root);
    }
    let place = home.dir(HomeDir::Sandbox).map_err(at_home)?.join("tmp");
    let around = (home.root(), folder.as_path());
    let session = walls::open_session(&sandbox, report.level, &place, around, &app.settings.exec)?;
    Ok(Some(CommandScope {
        session,
        report,
        walls,
        quarantine: home.dir(HomeDir::Quarantine).map_err(at_home)?,
        checkpoints: Arc::new(checkpoints),
        processes: Processes::new(app.settings.limits.processes),
        background_changes: BackgroundChanges::default(),
        egress: CommandEgress {
            gate: Gate::default(),
            private_hosts: app.settings.web.private_hosts.clone(),
        },
        is_tainted: Arc::default(),
    }))
}
