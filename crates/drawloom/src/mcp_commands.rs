//! `mcp add` and `mcp remove`: what changes the configuration.

use std::path::PathBuf;

use commands::CommandError;
use commands::CommandOutcome;
use commands::args::mcp::{McpAcceptArgs, McpAddArgs, McpCommand};
use commands::results::mcp::{ServerShown, ServerStatus, ServersShown};
use mcp::{SavedLogin, SavedTools};
use store::home::HomeDir;

use crate::config::{add_section, is_name, unset_section};
use crate::paths::InvocationPaths;

/// Writes a server into the configuration. Returns the command that starts it and asks which of its tools are accepted.
///
/// # Errors
/// It is there already, or its entry is wrong: nothing was written.
pub(crate) fn add(
    added: &McpAddArgs,
    paths: &InvocationPaths,
    note: &dyn Fn(&str),
) -> Result<McpCommand, CommandError> {
    let McpAddArgs { name, roots, net, env, url, headers, yes, command } = added;
    if !is_name(name) {
        return Err(CommandError::usage(
            format!("{name:?} is no name of a server"),
            "it has letters, digits, `_` and `-` alone",
        ));
    }
    let text = |text: &str| toml::Value::from(text).to_string();
    let list = |texts: &[String]| toml::Value::from(texts.to_vec()).to_string();
    let (first, arguments) = match (url, command.as_slice()) {
        (Some(url), _) => (("url".to_owned(), text(url)), &[][..]),
        (None, [program, arguments @ ..]) => {
            (("command".to_owned(), text(&shlex_word(program, arguments))), arguments)
        }
        (None, []) => return Err(CommandError::usage("no command is given", "write it behind `--`")),
    };
    for root in roots {
        require_folder(root)?;
    }
    let mut settings = vec![first];
    for (key, values) in [("args", arguments), ("roots", roots), ("net", net)] {
        if !values.is_empty() {
            settings.push((key.to_owned(), list(values)));
        }
    }
    for variable in env {
        let Some((variable, value)) = variable.split_once('=').filter(|(name, _)| is_name(name)) else {
            return Err(CommandError::usage(
                format!("{variable:?} is no variable with its value"),
                "`--env VARIABLE=VALUE`; a secret is set by `drawloom config set mcp.NAME.secrets.VARIABLE VALUE`",
            ));
        };
        settings.push((format!("env.{variable}"), text(value)));
    }
    for header in headers {
        let Some((header, value)) = header.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Err(CommandError::usage(
                format!("{header:?} is no header with its value"),
                "`--header 'NAME: VALUE'`",
            ));
        };
        settings.push((format!("headers.{header}"), text(value.trim())));
    }
    let settings: Vec<(String, String)> =
        settings.into_iter().map(|(key, value)| (format!("mcp.{name}.{key}"), value)).collect();
    add_section(&paths.home, &format!("mcp.{name}"), &settings)?;
    note(&format!("{name} was added; `drawloom mcp remove {name}` takes it out again"));
    Ok(McpCommand::Accept(McpAcceptArgs { name: name.clone(), tools: Vec::new(), yes: *yes }))
}

/// # Errors
/// A root is no folder.
fn require_folder(root: &str) -> Result<(), CommandError> {
    let folder = root.strip_suffix(":rw").unwrap_or(root);
    let path = match (folder.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(folder),
    };
    // One that is written in another way is refused by its entry.
    if (folder.starts_with("~/") || path.is_absolute()) && !path.is_dir() {
        return Err(CommandError::usage(format!("there is no folder {folder}"), "make it first"));
    }
    Ok(())
}

/// The program as the configuration has it: one that stands alone is read as a line of words.
fn shlex_word(program: &str, arguments: &[String]) -> String {
    if arguments.is_empty() { commands::shell::quoted(program) } else { program.to_owned() }
}

/// Takes a server out of the configuration, with what was accepted of it.
///
/// # Errors
/// There is no such server, or a file cannot be written.
pub(crate) fn remove(name: &str, paths: &InvocationPaths) -> Result<CommandOutcome, CommandError> {
    let (was_there, _) = unset_section(&paths.home, &format!("mcp.{name}"))?;
    let saved = SavedTools::of(paths.home.join(HomeDir::AcceptedTools.name()), name);
    let was_accepted = saved.remove().map_err(|why| CommandError::new("home", 6, why, "check the home"))?;
    let login = SavedLogin::of(paths.home.join(HomeDir::Logins.name()), name);
    login.remove().map_err(|why| CommandError::new("home", 6, why, "check the home"))?;
    if !was_there && !was_accepted {
        return Err(CommandError::not_found("server", name, "`drawloom mcp list` names all"));
    }
    let removed = ServerShown {
        name: name.to_owned(),
        status: ServerStatus::Removed,
        notes: Vec::new(),
        tool_count: 0,
        tools: Vec::new(),
        changed: Vec::new(),
        pinned: false,
        sandbox: true,
        url: None,
    };
    Ok(CommandOutcome::Servers(ServersShown { servers: vec![removed], not_started: None }))
}
