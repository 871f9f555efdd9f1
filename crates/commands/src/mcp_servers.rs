//! `mcp`: the servers of the owner, and which of their tools are accepted (spec: agent §5).

use ::policy::Decision;
use mcp::{AcceptedTools, OfferedTool, ServerOffer, ServerState, ToolChange};
use serde_json::Value;
use text::terminal::{explicit, one_line};
use workspace::{ReadRules, RelativePath};

use crate::app::{App, naming::nearest};
use crate::args::mcp::{McpAcceptArgs, McpCommand};
use crate::chat::{served_tools, server_tools};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::mcp::{
    ServerShown, ServerStatus, ServerTested, ServerToolShown, ServerToolState, ServersShown, WorkspaceServers,
};
use crate::rights::Asker;
use crate::servers::{Servers, saved, saved_login};
use crate::settings::ConfiguredServer;
use crate::{server_detail, server_home, server_login};

/// File in which other programs keep the servers of a workspace.
const OF_WORKSPACE: &str = ".mcp.json";
/// What is said of a server that this process has, and that was taken out meanwhile.
const REMOVED: &str = "it was taken out meanwhile: none of its tools is called any more";
/// Bytes of it that are read, and names that are shown.
const LONGEST_FILE: u64 = 256 << 10;
const MOST_NAMES: usize = 50;

/// `mcp`, but for what changes the configuration.
///
/// # Errors
/// There is no server of that name, it does not start, or nobody is there to accept its tools.
pub(crate) async fn command(
    app: &App,
    asker: &Asker,
    command: McpCommand,
) -> Result<CommandOutcome, CommandError> {
    match command {
        McpCommand::List => Ok(CommandOutcome::Servers(list(app))),
        McpCommand::Get(named) => {
            server_detail::get(app, &named.name).map(Box::new).map(CommandOutcome::ServerDetail)
        }
        McpCommand::Test(named) => {
            let hint = format!("`drawloom mcp test {}` asks at a terminal", named.name);
            confirm_kept(app, &named.name, (false, hint))?;
            let offer = offer(app, &named.name).await?;
            let accepted = saved(app, &named.name).read().unwrap_or_default();
            Ok(CommandOutcome::ServerTested(tested(app, &named.name, &offer, &accepted)))
        }
        McpCommand::Accept(args) => accept(app, &args).await,
        McpCommand::Login(named) => server_login::login(app, &named.name).await,
        McpCommand::Serve(session) => served_tools::serve(app, asker, &session).await,
        McpCommand::Logout(named) => server_login::logout(app, &named.name),
        McpCommand::Add(_) | McpCommand::Remove(_) => {
            Err(CommandError::usage("this changes the configuration", "run it from the command line"))
        }
    }
}

/// The servers as they stand, none of which is started.
pub(crate) fn list(app: &App) -> ServersShown {
    let shown = |(name, server): (&String, &ConfiguredServer)| {
        let (mut status, mut notes) = match server.entry(name) {
            Err(why) => (ServerStatus::Invalid, vec![why]),
            Ok(entry) => {
                let (status, why) = match Servers::known(app, name).map(|server| server.state()) {
                    None | Some(ServerState::Idle) => (ServerStatus::Idle, None),
                    Some(ServerState::Connected) => (ServerStatus::Connected, None),
                    Some(ServerState::Failed(why)) => (ServerStatus::Failed, Some(masked(app, &why))),
                };
                (status, why.into_iter().chain(entry.warnings).collect())
            }
        };
        let kept = saved(app, name);
        // What this process has of it was accepted when it began.
        if Servers::known(app, name).is_some() && !kept.is_there() {
            (status, notes) = (ServerStatus::Removed, vec![REMOVED.to_owned()]);
        }
        let accepted = kept.read().unwrap_or_else(|why| {
            notes.push(why);
            AcceptedTools::default()
        });
        let is_of_it =
            |tool: &String| context::tools::server_of(tool).is_some_and(|(server, _)| server == name);
        let tools: Vec<String> = server_tools::names(app).into_iter().filter(is_of_it).collect();
        let changed: Vec<String> = accepted.changed().map(str::to_owned).collect();
        if server.url.as_deref().is_some_and(|url| saved_login(app, name).is_for(url)) {
            notes.push("you are logged in there".to_owned());
        }
        notes.extend(server.kept_before(app.runtime.home.root(), name));
        let pinned = accepted.usable().next().is_some() || !changed.is_empty();
        if pinned {
            let names = accepted.usable().map(|tool| tool.name.as_str()).chain(accepted.changed());
            notes.extend(
                server.unknown_tools(&names.collect::<Vec<_>>(), "the tools that were accepted of it"),
            );
        }
        if status == ServerStatus::Invalid {
            notes.push(correction(name));
        } else if kept.has_others() {
            notes.push(of_another(name));
        } else if !pinned && status != ServerStatus::Removed {
            notes.push(format!("none of its tools is accepted: `drawloom mcp accept {name}` shows them"));
        }
        ServerShown {
            name: name.clone(),
            status,
            notes,
            tool_count: tools.len(),
            tools,
            changed,
            pinned,
            sandbox: server.url.is_none() && server.sandbox == crate::configured_server::ServerSandbox::On,
            url: server.url.clone(),
            rules: None,
            removed_secrets: None,
            home: None,
        }
    };
    ServersShown { servers: app.settings.mcp.iter().map(shown).collect(), not_started: of_workspace(app) }
}

/// What is said of a server that is not the one whose tools were accepted.
pub(crate) fn of_another(name: &str) -> String {
    format!(
        "the tools that were accepted are of another program or address: `drawloom mcp accept {name}` shows its own"
    )
}

/// Servers that the workspace names.
fn of_workspace(app: &App) -> Option<WorkspaceServers> {
    let folder = app.workspace.folder.as_ref()?;
    let root = workspace::Root::open(folder, &app.guard).ok()?;
    let path = RelativePath::parse(OF_WORKSPACE).ok()?;
    let text = root.read_text(&path, &ReadRules::at_most(LONGEST_FILE)).ok()?;
    let named: Value = serde_json::from_str(&text).unwrap_or_default();
    let servers = named.get("mcpServers").and_then(Value::as_object);
    let names = servers.into_iter().flat_map(|servers| servers.keys()).take(MOST_NAMES);
    let names = names.map(|name| one_line(name).chars().take(100).collect()).collect();
    Some(WorkspaceServers { file: folder.join(OF_WORKSPACE), names })
}

/// Asks before a program is started that would have what one before it kept. A yes hands that over.
fn confirm_kept(app: &App, name: &str, (yes, hint): (bool, String)) -> Result<(), CommandError> {
    let home = app.runtime.home.root();
    let kept = app.settings.mcp.get(name).and_then(|server| Some((server, server.kept_before(home, name)?)));
    let Some((server, kept)) = kept else { return Ok(()) };
    if !yes {
        let confirmed = app.frontend.confirm_shown(&[kept], &format!("Start {name}?"));
        confirmed.require("not_accepted", format!("{name} was not started"), hint)?;
    }
    server_home::hand_over(home, name, server.program_digest())
        .map_err(|error| CommandError::file("cannot write in", &server_home::place(home, name), &error))
}

/// Starts a server, and asks for its tools.
async fn offer(app: &App, name: &str) -> Result<ServerOffer, CommandError> {
    require_server(app, name)?;
    let server = Servers::get(app, name).map_err(|why| CommandError::usage(why, correction(name)))?;
    let configured = &app.settings.mcp[name];
    let within = configured.start_timeout().as_secs();
    let (place, hint) = match &configured.url {
        Some(url) => {
            app.frontend.under_way(&format!("{name} is asked for its tools, for {within} s at most"));
            (
                format!(" at {}", masked(app, url)),
                "is it running there? What it wants to know is named in its entry: `url`, `headers` (docs/mcp.md)",
            )
        }
        None => {
            app.frontend.under_way(&format!("{name} is started, and has {within} s to be ready"));
            (
                String::new(),
                "what it needs beside the system's folders is named in its entry: `roots`, `net`, `env` (docs/mcp.md)",
            )
        }
    };
    let mut offer = server.offer().await.map_err(|why| {
        let why = format!("the server {name}{place} gives no tools: {}", explicit(&masked(app, &why)));
        CommandError::new("server", 5, why, hint)
    })?;
    // What is not checked is not called.
    offer.tools.retain(|tool| match server_tools::described(configured, name, tool).check() {
        Ok(()) => true,
        Err(why) => {
            offer.refused.push(why);
            false
        }
    });
    Ok(offer)
}

/// What helps with an entry that is wrong.
fn correction(name: &str) -> String {
    format!("`drawloom config set mcp.{name}.… VALUE` corrects it, `drawloom mcp remove {name}` takes it out")
}

pub(crate) fn require_server(app: &App, name: &str) -> Result<(), CommandError> {
    if app.settings.mcp.contains_key(name) {
        return Ok(());
    }
    let hint = match nearest(app.settings.mcp.keys().cloned(), name) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("`drawloom mcp add {name} -- COMMAND`, or with `--url URL`, adds it"),
    };
    Err(CommandError::not_found("server", name, hint))
}

fn tested(app: &App, name: &str, offer: &ServerOffer, accepted: &AcceptedTools) -> ServerTested {
    let changes = accepted.changes(&offer.tools);
    let state = |tool: &OfferedTool| {
        let is = |change: fn(String) -> ToolChange| changes.contains(&change(tool.name.clone()));
        match (is(ToolChange::New), is(ToolChange::Changed)) {
            (true, _) => ServerToolState::New,
            (_, true) => ServerToolState::Changed,
            _ => ServerToolState::Accepted,
        }
    };
    let shown = |tool: &OfferedTool| ServerToolShown {
        name: tool.name.clone(),
        description: masked(app, &tool.description),
        state: state(tool),
    };
    let gone = changes.iter().filter_map(|change| match change {
        ToolChange::Gone(name) => Some(name.clone()),
        ToolChange::Changed(_) | ToolChange::New(_) => None,
    });
    let configured = &app.settings.mcp[name];
    let mut notes = configured.entry(name).map(|entry| entry.warnings).unwrap_or_default();
    let names: Vec<&str> = offer.tools.iter().map(|tool| tool.name.as_str()).collect();
    notes.extend(configured.unknown_tools(&names, "its tools"));
    ServerTested {
        name: name.to_owned(),
        status: ServerStatus::Connected,
        server: masked(app, &offer.about),
        tool_count: offer.tools.len(),
        tools: offer.tools.iter().map(shown).collect(),
        refused: offer.refused.iter().map(|why| masked(app, why)).collect(),
        gone: gone.collect(),
        notes,
    }
}

/// Shows what is new or changed, and accepts it.
async fn accept(app: &App, args: &McpAcceptArgs) -> Result<CommandOutcome, CommandError> {
    let McpAcceptArgs { name, tools, yes } = args;
    let hint = format!("`drawloom mcp accept {name} --yes` starts it and asks nothing");
    confirm_kept(app, name, (*yes, hint))?;
    let offer = offer(app, name).await?;
    let accepted = saved(app, name).read().unwrap_or_default();
    if let Some(unknown) = tools.iter().find(|tool| offer.tools.iter().all(|offered| offered.name != **tool))
    {
        return Err(CommandError::not_found(
            "tool",
            unknown,
            format!("`drawloom mcp test {name}` lists its tools"),
        ));
    }
    let is_new = accepted.usable().next().is_none() && accepted.changed().next().is_none();
    let rules = if is_new { rules_for(app, name) } else { Vec::new() };
    let is_meant = |tool: &str| tools.is_empty() || tools.iter().any(|named| named == tool);
    let changes: Vec<ToolChange> =
        accepted.changes(&offer.tools).into_iter().filter(|change| is_meant(change.tool())).collect();
    if !changes.is_empty() {
        let lines = changes.iter().flat_map(|change| shown(app, change, &accepted, &offer.tools));
        let lines: Vec<String> = lines.chain(rules.iter().cloned()).collect();
        let question = format!("Let models call these tools of {name}, as they are told here?");
        if !yes {
            let confirmed = app.frontend.confirm_shown(&lines, &question);
            let hint =
                format!("`drawloom mcp accept {name}` asks again at a terminal; with --yes nobody is asked");
            confirmed.require("not_accepted", format!("nothing was accepted of {name}"), hint)?;
        }
    }
    if is_new {
        app.runtime.forget_permissions(name).await?;
    }
    let written = saved(app, name).accept(&offer.about, &offer.tools, tools);
    written.map_err(|why| CommandError::new("home", 6, why, "`drawloom doctor` looks at the home"))?;
    let accepted = saved(app, name).read().unwrap_or_default();
    let mut tested = tested(app, name, &offer, &accepted);
    tested.notes.extend(rules);
    Ok(CommandOutcome::ServerTested(tested))
}

/// What is said of rules that allow calls of a server's tools: they may have been written for another one of its name.
fn rules_for(app: &App, name: &str) -> Vec<String> {
    let of_agents = app.settings.agents.values().flat_map(|agent| &agent.policy);
    let all = app.settings.policy.rules().iter().chain(of_agents);
    let allowing = all.filter(|rule| {
        rule.decision == Decision::Allow && rule.tool.iter().any(|pattern| pattern.is_of_server(name))
    });
    allowing
        .map(|rule| {
            format!("the rule `{rule}` lets models call them unasked: `drawloom policy remove` takes it out")
        })
        .collect()
}

/// What the owner reads of a change before they accept it.
fn shown(app: &App, change: &ToolChange, accepted: &AcceptedTools, offered: &[OfferedTool]) -> Vec<String> {
    let name = change.tool();
    let before = accepted.of_name(name);
    let of_tool = |label: &str, tool: &OfferedTool| {
        let line = |text: &str| explicit(&one_line(&masked(app, text))).into_owned();
        [
            format!("{label}{}: {}", tool.name, line(&tool.description)),
            format!("  arguments: {}", line(&tool.schema.to_string())),
        ]
    };
    let now = offered.iter().find(|tool| tool.name == name);
    let lines = match change {
        ToolChange::New(_) => now.map(|tool| of_tool("new: ", tool).to_vec()),
        ToolChange::Changed(_) => now.map(|tool| {
            let before = before.map(|tool| of_tool("was: ", tool).to_vec());
            before.into_iter().flatten().chain(of_tool("now: ", tool)).collect()
        }),
        ToolChange::Gone(_) => Some(vec![format!("gone: {name}")]),
    };
    lines.unwrap_or_default()
}

pub(crate) fn masked(app: &App, text: &str) -> String {
    app.runtime.masker.mask_entering(text).text.into_owned()
}
