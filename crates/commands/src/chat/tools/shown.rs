//! The tools of a session, as a person is shown them.

use ::tools::{CommandScope, ToolRegistry};
use context::tools::server_of;
use model::ModelInfo;
use policy::{
    Attendance, CallFacts, Effect, NetworkWish, SandboxLevel, ServerFacts, SessionFacts, SessionType,
};
use sandbox::{Level, Sandbox};

use super::{further, given, has_folder, has_room, nothing_shown, there};
use crate::app::App;
use crate::error::CommandError;
use crate::profile;
use crate::results::slash::{ToolShown, ToolSource, ToolsShown};
use crate::settings::ConfiguredServer;

/// The tools that an agent may call, and the names of the others there are (`/tools`). `model` is the one that is asked,
/// once it is known; `is_unrestricted` says that commands have no walls.
///
/// # Errors
/// One that is configured cannot be read.
pub(in crate::chat) fn shown(
    app: &App,
    agent: &str,
    session: SessionType,
    model: Option<&ModelInfo>,
    is_unrestricted: bool,
) -> Result<ToolsShown, CommandError> {
    let named = given(app, agent, session, model)?;
    let further = further(app, agent, nothing_shown(), &named)?;
    let found = ToolRegistry::described(further, &named);
    let policy = profile::policy(&app.settings, agent)?;
    let runs = found.iter().any(|(_, effects)| effects.contains(&Effect::Exec));
    let facts = SessionFacts {
        kind: session,
        attendance: Attendance::Attended,
        sandbox: if runs && !is_unrestricted { sandbox_level() } else { SandboxLevel::None },
        tainted: false,
        plan_mode: false,
        keeps_old_bytes: true,
    };
    let mut tools: Vec<ToolShown> = found
        .into_iter()
        .map(|(spec, effects)| ToolShown {
            source: source(app, &spec.name),
            policy: policy.decide(&bare_call(app, &spec.name, effects), &facts).decision,
            name: spec.name,
            description: spec.description,
            effects: effects.to_vec(),
        })
        .collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let others = there(app).into_iter().filter(|name| !named.contains(name)).collect();
    let untaken = model.filter(|model| !model.tools).map(ModelInfo::full_name);
    let is_named = app.settings.agents.get(agent).is_some_and(|agent| agent.tools.is_some());
    let small = model.filter(|model| model.tools && !has_room(model));
    let small = small.filter(|_| !is_named && session != SessionType::Isolated && has_folder(app));
    let small_window = small.map(|model| model.window);
    let agent = agent.to_owned();
    let has_folder = has_folder(app);
    let advice = app.workspace.advice.clone().filter(|_| !has_folder);
    Ok(ToolsShown { agent, tools, others, untaken, small_window, has_folder, advice })
}

fn source(app: &App, name: &str) -> ToolSource {
    match server_of(name) {
        Some(_) => ToolSource::Server,
        None if app.settings.tools.contains_key(name) => ToolSource::Configuration,
        None => ToolSource::BuiltIn,
    }
}

/// A call of a tool of whose arguments nothing is known.
fn bare_call(app: &App, name: &str, effects: &[Effect]) -> CallFacts {
    let configured = app.settings.tools.get(name).and_then(|tool| tool.read(name).ok());
    let command = configured.map(|tool| tool.facts()).filter(|facts| facts.network != NetworkWish::Off);
    let effects = effects.iter().copied().chain(command.is_some().then_some(Effect::Net)).collect();
    let (server, bare) = server_of(name).map_or((None, name), |(server, tool)| (Some(server), tool));
    let server = server.map(|server| {
        let configured = app.settings.mcp.get(server);
        let reading = configured.map(|server| server.read.clone()).unwrap_or_default();
        let is_online = configured.is_none_or(ConfiguredServer::is_online);
        ServerFacts { name: server.to_owned(), reading, is_online }
    });
    CallFacts { tool: bare.to_owned(), server, effects, command, ..CallFacts::default() }
}

/// Level of the sandbox of this machine.
fn sandbox_level() -> SandboxLevel {
    let level = Sandbox::of_this_program().map_or(Level::None, |sandbox| sandbox.probe().level);
    CommandScope::policy_level(level)
}
