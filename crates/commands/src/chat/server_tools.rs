//! Tools of the owner's MCP servers: those that were accepted, whether or not their server runs (spec: agent §5).

use std::sync::Arc;

use ::tools::{ServerAnswer, ServerTool, Tool};
use context::elicitation::Elicit;
use context::tools::{name_of_server_tool, server_of};
use mcp::{CalledTool, OfferedTool, Server, ToolAnswer};
use model::Cancel;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::app::App;
use crate::mcp_servers::of_another;
use crate::server_folders;
use crate::servers::{Servers, saved};
use crate::settings::ConfiguredServer;

/// The names of the tools that are offered. Of a server that cannot be there are none: `mcp list` says why.
pub(crate) fn names(app: &App) -> Vec<String> {
    let of_server = |(name, server): (&String, &ConfiguredServer)| -> Vec<String> {
        offered(app, name, server).iter().map(|tool| name_of_server_tool(name, &tool.name)).collect()
    };
    app.settings.mcp.iter().flat_map(of_server).collect()
}

/// The tools of a server that are offered: accepted, and not told otherwise since.
fn offered(app: &App, name: &str, server: &ConfiguredServer) -> Vec<OfferedTool> {
    let Ok(accepted) = saved(app, name).read() else { return Vec::new() };
    if server.check(name).is_err() {
        return Vec::new();
    }
    let usable = accepted.usable().filter(|tool| server.offers(&tool.name));
    usable.filter(|tool| described(server, name, tool).check().is_ok()).cloned().collect()
}

/// The tools of these names.
pub(super) fn tools(app: &App, names: &[String]) -> Vec<Tool> {
    let mut tools = Vec::new();
    for (name, server) in &app.settings.mcp {
        let is_meant = |tool: &&OfferedTool| names.contains(&name_of_server_tool(name, &tool.name));
        let offered = offered(app, name, server);
        let mut meant = offered.iter().filter(is_meant).peekable();
        if meant.peek().is_none() {
            continue;
        }
        let running = match Servers::get(app, name) {
            Ok(running) => running,
            Err(why) => {
                app.frontend.note(&format!("{name} has no tools: {why}"));
                continue;
            }
        };
        let ask: Arc<::tools::AskServer> =
            Arc::new(move |tool, arguments, of| answer(&running, (tool, arguments), of));
        let folders = server_folders::written(app, server);
        tools.extend(
            meant.map(|tool| {
                described(server, name, tool).into_tool((Arc::clone(&ask), Arc::clone(&folders)))
            }),
        );
    }
    tools
}

/// Says which servers have no tools, as they are not those whose tools were accepted.
pub(super) fn tell_others(app: &App) {
    for (name, server) in &app.settings.mcp {
        if server.check(name).is_ok() && saved(app, name).has_others() {
            app.frontend.note(&format!("{name}: {}", of_another(name)));
        }
    }
}

/// Names of an agent's tools without those of servers that are not there now: no turn breaks for a server.
pub(super) fn without_missing(app: &App, named: Vec<String>) -> Vec<String> {
    let there = names(app);
    let (kept, missing): (Vec<_>, Vec<_>) =
        named.into_iter().partition(|name| server_of(name).is_none() || there.contains(name));
    for name in missing {
        app.frontend.note(&format!("there is no tool {name} now: `drawloom mcp list` says why"));
    }
    kept
}

pub(crate) fn described(server: &ConfiguredServer, name: &str, tool: &OfferedTool) -> ServerTool {
    ServerTool {
        server: name.to_owned(),
        name: tool.name.clone(),
        description: tool.description.clone(),
        schema: tool.schema.clone(),
        reading: server.read.clone(),
        is_online: server.is_online(),
    }
}

/// Asks a server. It blocks, on a thread with a runtime.
fn answer(
    server: &Server,
    (tool, arguments): (&str, Map<String, Value>),
    (cancel, person): (&Cancel, Option<Arc<dyn Elicit>>),
) -> ServerAnswer {
    let called = server.call(tool, arguments, (cancel, person));
    let CalledTool { answer, is_own, notices } = Handle::current().block_on(called);
    let (said, pictures) = match answer {
        Ok(ToolAnswer { text, pictures, is_error: false }) => (Ok(text), pictures),
        Ok(ToolAnswer { text, pictures, is_error: true }) => (Err(text), pictures),
        Err(why) => (Err(why), Vec::new()),
    };
    ServerAnswer { said, is_own, pictures, notices }
}
