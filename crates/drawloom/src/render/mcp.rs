//! Servers of tools.

use commands::results::mcp::{
    ServerDetail, ServerShown, ServerStatus, ServerTested, ServerToolState, ServersShown,
};
use commands::shell::quoted;

use super::columns::{count, word, wrapped};
use super::{OutputStyle, RenderedOutcome};

/// What stands before the further lines of a server.
const INDENT: &str = "    ";

pub(super) fn list(found: &ServersShown, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    for server in &found.servers {
        out += &wrapped(&to.line(&headline(server)), "", to);
        let mut lines: Vec<String> = server.url.iter().cloned().collect();
        if !server.tools.is_empty() {
            lines.push(server.tools.join(", "));
        }
        if !server.changed.is_empty() {
            lines.push(format!(
                "changed since you accepted them, and switched off: {}; `drawloom mcp accept {}` shows how",
                server.changed.join(", "),
                server.name
            ));
        }
        lines.extend(server.notes.iter().cloned());
        for line in lines {
            out += &wrapped(&to.dim(&to.line(&line)), INDENT, to);
        }
    }
    let not_started = found.not_started.as_ref().map(|servers| {
        let names =
            if servers.names.is_empty() { String::new() } else { format!(" ({})", servers.names.join(", ")) };
        let line = format!("{}{names}: servers of a workspace are not started", servers.file.display());
        to.line(&line).into_owned()
    });
    RenderedOutcome::new(out)
        .noting(not_started)
        .or_saying(to, "no servers: `drawloom mcp add NAME -- COMMAND`, or with `--url URL`, adds one")
}

fn headline(server: &ServerShown) -> String {
    let tools = match server.status {
        ServerStatus::Removed | ServerStatus::Invalid => String::new(),
        _ => format!(", {}", count(server.tool_count as u64, "tool", "tools")),
    };
    format!("{}  {}{tools}", server.name, word(&server.status))
}

pub(super) fn detail(found: &ServerDetail, to: OutputStyle) -> RenderedOutcome {
    let server = &found.server;
    let mut out = wrapped(&to.line(&headline(server)), "", to);
    let command: Vec<String> = found.command.iter().map(|word| quoted(word)).collect();
    let sandbox = match (&server.url, server.sandbox) {
        (Some(_), _) => "",
        (None, true) => "on",
        (None, false) => "off",
    };
    let names = |names: &[String]| names.join(", ");
    for (label, value) in [
        ("command", command.join(" ")),
        ("address", server.url.clone().unwrap_or_default()),
        ("sandbox", sandbox.to_owned()),
        ("roots", names(&found.roots)),
        ("net", names(&found.net)),
        ("timeout", format!("{} s", found.timeout)),
        ("environment", names(&found.variables)),
        ("headers", names(&found.headers)),
        ("secrets", names(&found.secrets)),
        ("reading", names(&found.read)),
        ("allowed", found.allow_tools.as_deref().map(names).unwrap_or_default()),
        ("denied", names(&found.deny_tools)),
        ("accepted", names(&found.accepted)),
        ("offered", names(&server.tools)),
        ("changed", names(&server.changed)),
    ] {
        if !value.is_empty() {
            out += &wrapped(&to.line(&format!("{label}: {value}")), INDENT, to);
        }
    }
    RenderedOutcome::new(out).noting(server.notes.iter().map(|note| to.line(note).into_owned()))
}

pub(super) fn tested(found: &ServerTested, to: OutputStyle) -> RenderedOutcome {
    let of = if found.server.is_empty() { String::new() } else { format!(" ({})", found.server) };
    let tools = count(found.tool_count as u64, "tool", "tools");
    let mut out = wrapped(&to.line(&format!("{}  {}{of}, {tools}", found.name, word(&found.status))), "", to);
    for tool in &found.tools {
        let state = match tool.state {
            ServerToolState::Accepted => "",
            ServerToolState::New => " [not accepted]",
            ServerToolState::Changed => " [changed: switched off]",
        };
        let line = format!("{}{state}  {}", tool.name, tool.description.lines().next().unwrap_or_default());
        out += &wrapped(&to.line(&line), INDENT, to);
    }
    for name in &found.gone {
        out += &wrapped(&to.line(&format!("{name} [gone]")), INDENT, to);
    }
    let is_accepted = found.tools.iter().all(|tool| tool.state == ServerToolState::Accepted);
    let way_on = (!is_accepted && !found.tools.is_empty())
        .then(|| format!("`drawloom mcp accept {}` lets models call them", found.name));
    let notes = found
        .refused
        .iter()
        .map(|why| format!("left out: {why}"))
        .chain(found.notes.iter().cloned())
        .chain(way_on);
    RenderedOutcome::new(out).noting(notes.map(|note| to.line(&note).into_owned()))
}
