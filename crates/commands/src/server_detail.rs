//! `mcp get`: one server of the owner, as it stands (spec: agent §5). Values of variables, headers and secrets are not told.

use crate::app::App;
use crate::configured_server::PlaceEntry;
use crate::error::CommandError;
use crate::mcp_servers::{list, masked, require_server};
use crate::results::mcp::{ServerDetail, ServerShown};
use crate::servers::saved;

/// # Errors
/// There is no such server.
pub(crate) fn get(app: &App, name: &str) -> Result<ServerDetail, CommandError> {
    require_server(app, name)?;
    let shown = list(app).servers.into_iter().find(|server| server.name == name);
    let server: ServerShown = shown.ok_or_else(|| CommandError::not_found("server", name, ""))?;
    let configured = &app.settings.mcp[name];
    let command = match configured.entry(name).map(|entry| entry.place) {
        Ok(PlaceEntry::Program(program)) => program.command,
        Ok(PlaceEntry::Address(_)) => Vec::new(),
        Err(_) => configured.command.iter().chain(&configured.args).cloned().collect(),
    };
    let accepted = saved(app, name).read().unwrap_or_default();
    Ok(ServerDetail {
        server,
        command: command.iter().map(|word| masked(app, word)).collect(),
        roots: configured.roots.clone(),
        net: configured.net.clone(),
        timeout: configured.timeout,
        read: configured.read.clone(),
        allow_tools: configured.allow_tools.clone(),
        deny_tools: configured.deny_tools.clone(),
        variables: configured.env.keys().cloned().collect(),
        headers: configured.headers.keys().cloned().collect(),
        secrets: configured.secrets.keys().cloned().collect(),
        accepted: accepted.usable().map(|tool| tool.name.clone()).collect(),
    })
}
