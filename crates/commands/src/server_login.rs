//! `mcp login` and `mcp logout`: who asks at a server at an address (spec: agent §5, security §15).

use egress::Gate;
use mcp::LoginRequest;

use crate::app::App;
use crate::configured_server::PlaceEntry;
use crate::error::CommandError;
use crate::mcp_servers::{list, require_server};
use crate::results::CommandOutcome;
use crate::results::mcp::{ServerStatus, ServersShown};
use crate::servers::{login_hosts, reached, saved_login};

/// Secret of a client that the owner registered.
const CLIENT_SECRET: &str = "CLIENT_SECRET";

/// Logs in, with the owner at a browser.
///
/// # Errors
/// There is no such server, or it let nobody in.
pub(crate) async fn login(app: &App, name: &str) -> Result<CommandOutcome, CommandError> {
    require_server(app, name)?;
    let configured = &app.settings.mcp[name];
    let wrong =
        |why: String| CommandError::usage(why, "docs/mcp.md says how a server at an address is written");
    let PlaceEntry::Address(address) = configured.entry(name).map_err(wrong)?.place else {
        return Err(wrong(format!("{name} is a program: there is nothing to log in to")));
    };
    let secret = configured.secrets.get(CLIENT_SECRET).cloned();
    let request = LoginRequest {
        named: login_hosts(app, &address),
        address: reached((name, configured), address).map_err(wrong)?,
        client: configured.client_id.clone().map(|client| (client, secret)),
        scopes: configured.scopes.clone(),
        port: configured.callback_port,
        saved: saved_login(app, name),
    };
    let show = |address: &str| {
        app.frontend
            .note(&format!("open this address in a browser of this machine, and say yes there: {address}"));
    };
    mcp::login(&Gate::default(), request, &show).await.map_err(|why| {
        let why = format!("there is no login at {name}: {why}");
        let hint = format!("`drawloom mcp login {name}` begins anew; nothing was kept");
        CommandError::new("login", 5, why, hint)
    })?;
    Ok(CommandOutcome::Servers(only(app, name, ServerStatus::LoggedIn)))
}

/// Forgets the login.
///
/// # Errors
/// There is none.
pub(crate) fn logout(app: &App, name: &str) -> Result<CommandOutcome, CommandError> {
    if app.settings.mcp.get(name).is_some_and(|server| server.url.is_none()) {
        let why = format!("{name} is a program: there is no login at it");
        return Err(CommandError::usage(why, "`drawloom mcp list` shows which servers lie at an address"));
    }
    let removed = saved_login(app, name).remove();
    let removed =
        removed.map_err(|why| CommandError::new("home", 6, why, "`drawloom doctor` looks at the home"))?;
    if !removed {
        require_server(app, name)?;
        return Err(CommandError::not_found(
            "login",
            name,
            format!("`drawloom mcp login {name}` begins one"),
        ));
    }
    Ok(CommandOutcome::Servers(only(app, name, ServerStatus::LoggedOut)))
}

fn only(app: &App, name: &str, status: ServerStatus) -> ServersShown {
    let mut servers = list(app).servers;
    servers.retain(|server| server.name == name);
    servers.iter_mut().for_each(|server| server.status = status);
    ServersShown { servers, not_started: None }
}
