//! `mcp add` and `mcp remove`: what changes the configuration.

use commands::CommandError;
use commands::CommandOutcome;
use commands::args::mcp::{McpAcceptArgs, McpAddArgs, McpCommand};
use commands::results::mcp::{ServerHome, ServerShown, ServerStatus, ServersShown};
use commands::server_home;
use commands::settings::{ConfiguredServer, ServerSandbox};
use mcp::{SavedLogin, SavedTools};
use store::home::{HomeDir, KEYS};

use crate::config::rules::of_server::forget_server;
use crate::config::{add_section, is_name, section, unset_section};
use crate::paths::InvocationPaths;

/// Writes a server into the configuration. Returns the command that starts it and asks which of its tools are accepted.
///
/// # Errors
/// It is there already, or could not be started as it is written: nothing was written.
pub(crate) fn add(
    added: &McpAddArgs,
    paths: &InvocationPaths,
    note: &dyn Fn(&str),
) -> Result<McpCommand, CommandError> {
    let McpAddArgs { name, roots, net, sandbox, env, url, headers, yes, command } = added;
    if !is_name(name) {
        return Err(CommandError::usage(
            format!("{name:?} is no name of a server"),
            "it has letters, digits, `_` and `-` alone",
        ));
    }
    let text = |text: &str| toml::Value::from(text).to_string();
    let list = |texts: &[String]| toml::Value::from(texts.to_vec()).to_string();
    let mut server = ConfiguredServer {
        url: url.clone(),
        roots: roots.clone(),
        net: net.clone(),
        sandbox: *sandbox,
        ..ConfiguredServer::default()
    };
    let (first, arguments) = match (url, command.as_slice()) {
        (Some(url), _) => (("url".to_owned(), text(url)), &[][..]),
        (None, [program, arguments @ ..]) => {
            let program = shlex_word(program, arguments);
            let first = ("command".to_owned(), text(&program));
            server.command = Some(program);
            (first, arguments)
        }
        (None, []) => return Err(CommandError::usage("no command is given", "write it behind `--`")),
    };
    server.args = arguments.to_vec();
    let mut settings = vec![first];
    if *sandbox == ServerSandbox::Off {
        settings.push(("sandbox".to_owned(), text("off")));
    }
    for (key, values) in [("args", arguments), ("roots", roots), ("net", net)] {
        if !values.is_empty() {
            settings.push((key.to_owned(), list(values)));
        }
    }
    for variable in env {
        let Some((variable, value)) = variable.split_once('=').filter(|(name, _)| is_name(name)) else {
            return Err(CommandError::usage(
                format!("{variable:?} is no variable with its value"),
                format!(
                    "`--env VARIABLE=VALUE`; a secret is set by `drawloom config set mcp.{name}.secrets.VARIABLE VALUE`"
                ),
            ));
        };
        server.env.insert(variable.to_owned(), value.to_owned());
        settings.push((format!("env.{variable}"), text(value)));
    }
    for header in headers {
        let Some((header, value)) = header.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Err(CommandError::usage(
                format!("{header:?} is no header with its value"),
                "`--header 'NAME: VALUE'`",
            ));
        };
        server.headers.insert(header.to_owned(), value.trim().to_owned());
        settings.push((format!("headers.{header}"), text(value.trim())));
    }
    let settings: Vec<(String, String)> =
        settings.into_iter().map(|(key, value)| (format!("mcp.{name}.{key}"), value)).collect();
    let wrong = |why| CommandError::usage(why, "nothing was written");
    server.check_here(name, &paths.surroundings()).map_err(wrong)?;
    let there = format!(
        "`drawloom mcp accept {name}` shows its tools, `drawloom config set mcp.{name}.… VALUE` changes it; or choose another \
         name"
    );
    let (is_there, secrets) = section(&paths.home, &format!("mcp.{name}"))?;
    // Of one that is there, that is said.
    if let Some(kept) = server.kept_before(&paths.home, name).filter(|_| !is_there) {
        let what = format!("{name} was not added: {kept}");
        return Err(CommandError::refused("exists", what, "or choose another name for this one"));
    }
    add_section(&paths.home, &format!("mcp.{name}"), &settings, &there)?;
    for secret in secrets {
        note(&format!("the {secret} of {name} in {KEYS}, which stood there before, is for it"));
    }
    note(&format!("{name} was added; `drawloom mcp remove {name}` takes it out again"));
    Ok(McpCommand::Accept(McpAcceptArgs { name: name.clone(), tools: Vec::new(), yes: *yes }))
}

/// The program as the configuration has it: one that stands alone is read as a line of words.
fn shlex_word(program: &str, arguments: &[String]) -> String {
    if arguments.is_empty() { commands::shell::quoted(program) } else { program.to_owned() }
}

/// Takes a server out of the configuration, with its secrets, what was accepted of it, its `HOME` and the rules that allow its tools: another
/// program of that name would have them.
///
/// # Errors
/// There is no such server, or a file cannot be written.
pub(crate) fn remove(name: &str, paths: &InvocationPaths) -> Result<CommandOutcome, CommandError> {
    // All of it, or nothing.
    section(&paths.home, &format!("mcp.{name}"))?;
    // First: while it is there, its calls are asked about.
    let rules = forget_server(&paths.home, name)?;
    let unset = unset_section(&paths.home, &format!("mcp.{name}"))?;
    let gone = rules.removed.iter().map(|rule| format!("the rule `{rule}` was removed with it"));
    let secrets_gone = unset.secrets.iter().map(|key| format!("{key} was removed from {KEYS} with it"));
    let kept =
        rules.kept.iter().map(|rule| format!("the rule `{rule}` stays: `drawloom policy list` shows it"));
    let mut notes: Vec<String> = gone.chain(secrets_gone).chain(kept).collect();
    // What was done where the rest cannot be, for this reason.
    let done = |is_removed: bool, why: &str| {
        let done = ["it was taken out"].into_iter().chain(notes.iter().map(String::as_str));
        done.filter(|_| is_removed).chain([why]).collect::<Vec<_>>().join("; ")
    };
    let is_unset = unset.was_there || !rules.removed.is_empty();
    let failed = |why: String| CommandError::new("home", 6, done(is_unset, &why), "check the home");
    let saved = SavedTools::of(paths.home.join(HomeDir::AcceptedTools.name()), name);
    let is_removed = saved.remove().map_err(failed)? || is_unset;
    let login = SavedLogin::of(paths.home.join(HomeDir::Logins.name()), name);
    login.remove().map_err(failed)?;
    let place = server_home::place(&paths.home, name);
    let home = server_home::remove(&paths.home, name).map_err(|error| {
        CommandError::file(&done(is_removed, "what it kept stays: cannot remove"), &place, &error)
    })?;
    if !is_removed && home.is_none() {
        return Err(CommandError::not_found("server", name, "`drawloom mcp list` names all"));
    }
    notes.extend(home.map(|home| match home {
        ServerHome::Removed => "its HOME was removed with it, and what it kept there".to_owned(),
        ServerHome::InUse => format!(
            "its HOME ({}) stays, as it runs in another process: `drawloom mcp remove {name}` takes it once that has ended",
            place.display()
        ),
    }));
    let removed = ServerShown {
        name: name.to_owned(),
        status: ServerStatus::Removed,
        notes,
        tool_count: 0,
        tools: Vec::new(),
        changed: Vec::new(),
        pinned: false,
        sandbox: true,
        url: None,
        rules: Some(rules),
        removed_secrets: Some(unset.secrets),
        home,
    };
    Ok(CommandOutcome::Servers(ServersShown { servers: vec![removed], not_started: None }))
}
