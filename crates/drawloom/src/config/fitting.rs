//! Values that fit the kind of their key and are refused all the same: they would have no effect, or break what reads them.

use ::policy::{Pattern, Policy};
use commands::settings::{ConfiguredHook, ConfiguredServer, ConfiguredTool};
use egress::HostPort;
use text::terminal::one_line;
use toml::Value;
use workspace::RelativePath;

use super::keys::Key;
use super::kind::Kind;
use super::path::segments;

/// What is wrong with a value, and what to do about it.
type Misfit = (String, String);

/// Refuses a value that a key does not take.
pub(super) fn check(path: &str, key: &Key, value: &Value) -> Result<(), Misfit> {
    // The value is not repeated: it may be a key in the wrong place.
    key.kind.check(value).map_err(|wanted| misfit(path, &format!("it takes {wanted}")))?;
    if matches!(key.kind, Kind::Rules) {
        // They fit: that was judged above.
        let rules = Policy::new(value.clone().try_into().unwrap_or_default());
        return rules.map(drop).map_err(|why| misfit(path, &why.to_string()));
    }
    if let [section, name, _] = &segments(path)[..]
        && section == "tools"
        && commands::is_tool(name)
    {
        let what = format!("tools.{name} has the name of a tool that is there");
        return Err((
            what,
            format!("choose another one; `drawloom config unset tools.{name}` takes this one out"),
        ));
    }
    if let [section, name, key] = &segments(path)[..]
        && section == "tools"
    {
        return check_tool(name, key, value).map_err(|why| misfit(path, &why));
    }
    if let [section, name, key @ ..] = &segments(path)[..]
        && section == "mcp"
    {
        return check_server(name, key, value).map_err(|why| misfit(path, &why));
    }
    if let [section, name, key] = &segments(path)[..]
        && section == "hooks"
    {
        return check_hook(name, key, value).map_err(|why| misfit(path, &why));
    }
    if let [section, key, _] = &segments(path)[..]
        && section == "skills"
        && key == "env"
    {
        let mut names = value.as_array().into_iter().flatten().filter(|name| name.is_str());
        return names.try_for_each(check_data_variable).map_err(|why| misfit(path, &why));
    }
    let mut texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_net = matches!(&segments(path)[..], [section, _, key] if section == "tools" && key == "net");
    match path {
        "exec.dependency_folders" => match texts.find(|name| !is_folder_name(name)) {
            Some(_) => Err(misfit(
                path,
                "it takes names of folders, as node_modules: no path, no pattern and not .git",
            )),
            None => Ok(()),
        },
        "capabilities.repo" => match value.as_str() {
            Some(folder) if folder.starts_with('/') || folder.starts_with("~/") => Ok(()),
            _ => Err(misfit(path, "it takes a folder that begins with / or ~/")),
        },
        "capabilities.folders" => match texts.find(|folder| !is_below(folder)) {
            Some(_) => Err(misfit(path, "it takes folders below the workspace, as docs/cards")),
            None => Ok(()),
        },
        "skills.link_targets" => {
            match texts.find(|folder| !folder.starts_with('/') && !folder.starts_with("~/")) {
                Some(_) => Err(misfit(path, "it takes folders that begin with / or ~/")),
                None => Ok(()),
            }
        }
        "web.private_hosts" => {
            texts.try_for_each(|host| host.parse::<HostPort>().map(drop)).map_err(|why| misfit(path, &why))
        }
        _ if is_net => {
            let hosts: Vec<String> = texts.map(str::to_owned).collect();
            commands::settings::network(&hosts).map(drop).map_err(|why| misfit(path, &why))
        }
        _ => Ok(()),
    }
}

/// Whether a path leads to a folder below the one it is read in.
fn is_below(path: &str) -> bool {
    RelativePath::parse(path).is_ok_and(|path| !path.is_root())
}

/// Refuses a variable that cannot be set, or that is no data for a command.
fn check_data_variable(name: &Value) -> Result<(), String> {
    const WANTED: &str = "it takes names of environment variables that hold data, as TRACKER_TOKEN";
    Kind::Variable.check(name).map_err(|_| WANTED.to_owned())?;
    match name.as_str() {
        Some(name) if ::policy::steers_programs(name) => {
            Err(format!("{WANTED}; {name} says with what programs commands run"))
        }
        _ => Ok(()),
    }
}

/// Refuses a value that no tool takes, whatever its other keys are.
fn check_tool(name: &str, key: &str, value: &Value) -> Result<(), String> {
    let mut keys = toml::Table::new();
    for (key, text) in [("command", "true"), ("description", "A tool.")] {
        keys.insert(key.to_owned(), text.into());
    }
    if key == "effects" {
        keys.insert("net".to_owned(), vec!["open"].into());
    }
    keys.insert(key.to_owned(), value.clone());
    let tool: ConfiguredTool =
        keys.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    tool.read(name).map(drop)
}

/// Refuses a value that no server takes, whatever its other keys are.
fn check_server(name: &str, key: &[String], value: &Value) -> Result<(), String> {
    let mut keys = toml::Table::new();
    let value = match key {
        [key, inner] if key == "headers" || key == "env" => {
            toml::Table::from_iter([(inner.clone(), value.clone())]).into()
        }
        [_] => value.clone(),
        _ => return Ok(()),
    };
    match &*key[0] {
        "url" => None,
        "headers" | "client_id" | "scopes" | "callback_port" => {
            keys.insert("url".to_owned(), "https://localhost".into())
        }
        _ => keys.insert("command".to_owned(), "true".into()),
    };
    keys.insert(key[0].clone(), value);
    let server: ConfiguredServer =
        keys.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    server.check(name)
}

/// Refuses a value that no hook takes, whatever its other keys are. Which tools there are is not known here.
fn check_hook(name: &str, key: &str, value: &Value) -> Result<(), String> {
    let mut keys = toml::Table::new();
    keys.insert("command".to_owned(), "true".into());
    keys.insert("on".to_owned(), vec!["before_call"].into());
    keys.insert(key.to_owned(), value.clone());
    let hook: ConfiguredHook =
        keys.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let (mut tools, mut servers) = (Vec::new(), Vec::new());
    for pattern in &hook.tools {
        match pattern {
            Pattern::Tool { server: None, name, .. } => tools.push(name.clone()),
            Pattern::Tool { server: Some(server), .. } => servers.push(server.clone()),
            Pattern::Effect { .. } | Pattern::Exec { .. } => {}
        }
    }
    hook.read(name, (&tools, &servers), None).map(drop)
}

/// The value of a key that was written on a command line or in the environment.
pub(super) fn read(path: &str, key: &Key, written: &str) -> Result<Value, Misfit> {
    let value = key.kind.read(written).map_err(|wanted| misfit(path, &format!("it takes {wanted}")))?;
    check(path, key, &value).map(|()| value)
}

fn misfit(path: &str, why: &str) -> Misfit {
    let why = why.strip_prefix(path).and_then(|why| why.strip_prefix(": ")).unwrap_or(why);
    (format!("{} does not fit", one_line(path)), one_line(why).into_owned())
}

/// Whether a folder below a workspace can be called so and hold packages: git folders are protected by any name.
fn is_folder_name(name: &str) -> bool {
    let is_git = name.eq_ignore_ascii_case(".git");
    !matches!(name, "" | "." | "..") && !is_git && !name.contains(['/', '*', '?', '[', '\0'])
}
