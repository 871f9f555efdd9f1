//! `[mcp.NAME]`: servers of tools that the owner named.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use loom::Digest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use text::terminal::one_line;
use tools::NetworkRequest;

use crate::app::naming::nearest;
use crate::args::allow::AllowedFolder;
use crate::server_address::AddressEntry;
use crate::server_secrets::{is_of_keys, is_secret, missing};
use crate::settings::network;

/// An MCP server, whose tools a model may call once you have accepted them: `drawloom mcp accept NAME`. It is a program
/// that runs in the sandbox and sees of your files only what `roots` names, or lies at an address (`url`).
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfiguredServer {
    /// The program that is the server; without `args` a line with its arguments, such as "npx -y NAME@1.2.3". Needed, if
    /// `url` is not there.
    pub command: Option<String>,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The address of a server that runs elsewhere and speaks streamable HTTP. It may lie on this machine or in its network;
    /// over the public network it is spoken with by https alone. A query (`?project=7`) goes along with each request: a
    /// secret stands in a header.
    #[schemars(regex(pattern = "^https?://"), extend("format" = "server-address"))]
    pub url: Option<String>,
    /// Folders that it sees, for reading, or with `:rw` behind them for writing too: they begin with / or ~/, and `.` is the
    /// workspace. It works in the first of them. Without it a folder of its own.
    pub roots: Vec<String>,
    /// Hosts that it reaches, as the `net` of `exec`: HOST, or HOST:PORT beside 80 and 443; `["open"]` is any. Without it no
    /// network.
    pub net: Vec<String>,
    /// Whether it runs in the sandbox. `off` lets it do whatever you may: read your keys, change your files, reach anybody.
    pub sandbox: ServerSandbox,
    /// How long one of its calls may take.
    #[schemars(range(min = 1, max = 3600), extend("unit" = "seconds"))]
    pub timeout: u32,
    /// Tools of it that are offered; without it all that you accepted.
    pub allow_tools: Option<Vec<String>>,
    /// Tools that are not offered.
    pub deny_tools: Vec<String>,
    /// Tools that only read, as you say: an answer for the session is for all of them, and they are called in plan mode. What
    /// the server itself says of this does not count.
    pub read: Vec<String>,
    #[schemars(schema_with = "headers")]
    pub headers: BTreeMap<String, String>,
    /// Name of the client as which you registered Drawloom at a server whose `mcp login` takes no others. A secret of it is
    /// `secrets.CLIENT_SECRET`.
    pub client_id: Option<String>,
    /// What `mcp login` asks for; without it what the server asks for.
    pub scopes: Vec<String>,
    /// Port of this machine to which a browser comes back from `mcp login`; 0 is any.
    pub callback_port: u16,
    #[schemars(schema_with = "variables")]
    pub env: BTreeMap<String, String>,
    #[schemars(schema_with = "secret_variables")]
    pub secrets: BTreeMap<String, String>,
    /// Secrets in a keys.toml that others may read: they are masked, and never used.
    #[serde(skip)]
    pub loose_secrets: Vec<String>,
}

/// Whether a server runs in the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ServerSandbox {
    #[default]
    On,
    Off,
}

/// A server as it is started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerEntry {
    pub(crate) place: PlaceEntry,
    pub(crate) within: Duration,
    /// What the owner should know of it.
    pub(crate) warnings: Vec<String>,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PlaceEntry {
    Program(ProgramEntry),
    Address(AddressEntry),
}

/// A server that is a program of this machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramEntry {
    /// The program, and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) roots: Vec<AllowedFolder>,
    pub(crate) network: NetworkRequest,
    pub(crate) is_walled: bool,
}

/// The root that stands for the workspace.
pub(crate) const WORKSPACE: &str = ".";

impl Default for ConfiguredServer {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            url: None,
            headers: BTreeMap::new(),
            client_id: None,
            scopes: Vec::new(),
            callback_port: 0,
            env: BTreeMap::new(),
            secrets: BTreeMap::new(),
            loose_secrets: Vec::new(),
            roots: Vec::new(),
            net: Vec::new(),
            sandbox: ServerSandbox::On,
            timeout: 60,
            allow_tools: None,
            deny_tools: Vec::new(),
            read: Vec::new(),
        }
    }
}

impl ConfiguredServer {
    /// Looks for what is wrong with it.
    ///
    /// # Errors
    /// What is wrong, by its key.
    pub fn check(&self, name: &str) -> Result<(), String> {
        self.entry(name).map(drop)
    }

    /// Whether a tool of it is offered once it was accepted.
    pub fn offers(&self, tool: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == tool);
        self.allow_tools.as_deref().is_none_or(is_named) && !is_named(&self.deny_tools)
    }

    /// What is said of names in its lists that are none of these tools: they hold for nothing.
    pub(crate) fn unknown_tools(&self, tools: &[&str], of: &str) -> Vec<String> {
        let lists = [
            ("deny_tools", self.deny_tools.as_slice()),
            ("allow_tools", self.allow_tools.as_deref().unwrap_or_default()),
            ("read", self.read.as_slice()),
        ];
        let mut notes = Vec::new();
        for (key, names) in lists {
            for name in names.iter().filter(|name| !tools.contains(&name.as_str())) {
                // Prefixes are what a person takes for a pattern.
                let stem = name.trim_end_matches('*');
                let begins = tools.iter().find(|tool| !stem.is_empty() && tool.starts_with(stem));
                let near = nearest(tools.iter().map(|&tool| tool.to_owned()), name)
                    .or_else(|| begins.map(|&tool| tool.to_owned()));
                let hint = near.map(|near| format!(": did you mean {near}?")).unwrap_or_default();
                let name = one_line(name);
                notes.push(format!("`{key}` names {name}, which is none of {of}{hint}"));
            }
        }
        notes
    }

    /// Digest of what is started or asked: another one is another server, whatever its name.
    pub(crate) fn program_digest(&self) -> Digest {
        let program = serde_json::json!([self.command, self.args, self.url]);
        Digest::of(program.to_string().as_bytes())
    }

    /// How long it may take until it is ready.
    pub(crate) fn start_timeout(&self) -> Duration {
        if self.url.is_some() { Duration::from_secs(self.timeout.into()) } else { mcp::START_TIMEOUT }
    }

    /// Whether it reaches anybody else, as one without walls may.
    pub(crate) fn is_online(&self) -> bool {
        !self.net.is_empty() || self.sandbox == ServerSandbox::Off || self.url.is_some()
    }

    /// The server as it is started.
    ///
    /// # Errors
    /// What is wrong, by its key.
    pub(crate) fn entry(&self, name: &str) -> Result<ServerEntry, String> {
        let within = Duration::from_secs(self.timeout.into());
        let Some(url) = self.url.as_deref() else {
            let of_address = [
                ("headers", !self.headers.is_empty()),
                ("client_id", self.client_id.is_some()),
                ("scopes", !self.scopes.is_empty()),
                ("callback_port", self.callback_port != 0),
            ];
            if let Some((key, _)) = of_address.iter().find(|(_, is_there)| *is_there) {
                return Err(format!("mcp.{name}.{key} is of a server at an address (mcp.{name}.url)"));
            }
            let (program, warnings) = self.program(name)?;
            return Ok(ServerEntry { place: PlaceEntry::Program(program), within, warnings });
        };
        let of_program = [
            ("command", self.command.is_some()),
            ("args", !self.args.is_empty()),
            ("roots", !self.roots.is_empty()),
            ("net", !self.net.is_empty()),
            ("env", !self.env.is_empty()),
            ("sandbox", self.sandbox == ServerSandbox::Off),
        ];
        if let Some((key, _)) = of_program.iter().find(|(_, is_there)| *is_there) {
            return Err(format!("mcp.{name}.{key} is of a program: a server at an address (`url`) has none"));
        }
        let address =
            AddressEntry::read(name, url, &self.headers).map_err(|why| format!("mcp.{name}.{why}"))?;
        let warnings = address.missing(&self.secrets).iter().map(|secret| missing(name, secret)).collect();
        Ok(ServerEntry { warnings, place: PlaceEntry::Address(address), within })
    }

    /// The program that is the server, with what the owner should know of it.
    fn program(&self, name: &str) -> Result<(ProgramEntry, Vec<String>), String> {
        let line = self.command.as_deref().map(str::trim).filter(|line| !line.is_empty());
        let line = line.ok_or_else(|| format!("mcp.{name}.command is missing"))?;
        let command = if self.args.is_empty() {
            let words = shlex::split(line).filter(|words| !words.is_empty());
            words.ok_or_else(|| format!("mcp.{name}.command is no line of words: a quote is not closed"))?
        } else {
            std::iter::once(line).map(str::to_owned).chain(self.args.iter().cloned()).collect()
        };
        let roots = self.roots.iter().map(|root| root_of(root)).collect::<Result<_, _>>();
        let env = self.env.keys().chain(self.secrets.keys());
        if let Some(home) = env.into_iter().find(|variable| ["HOME", "TMPDIR"].contains(&variable.as_str())) {
            return Err(format!("mcp.{name}.env.{home}: it is that of the sandbox"));
        }
        if let Some((variable, _)) = self.env.iter().find(|(name, value)| is_secret(name, value)) {
            return Err(format!("mcp.{name}.env.{variable}: {}", is_of_keys(name, variable)));
        }
        let is_walled = self.sandbox == ServerSandbox::On;
        let unwalled =
            (!is_walled).then(|| "it runs without a sandbox: it may do whatever you may".to_owned());
        let warnings = unpinned(&command).into_iter().chain(unwalled).collect();
        let program = ProgramEntry {
            command,
            roots: roots.map_err(|why: String| format!("mcp.{name}.roots: {why}"))?,
            network: network(&self.net).map_err(|why| format!("mcp.{name}.{why}"))?,
            is_walled,
        };
        Ok((program, warnings))
    }
}

/// A root of an entry.
///
/// # Errors
/// It is not written as one.
pub(crate) fn root_of(root: &str) -> Result<AllowedFolder, String> {
    let root = AllowedFolder::read(root.into());
    let folder = &root.folder;
    if folder == Path::new(WORKSPACE) || folder.starts_with("~") || folder.is_absolute() {
        return Ok(root);
    }
    Err(format!("{folder:?} names no folder: begin it with / or ~/, or write `.` for the workspace"))
}

/// That a package is fetched whose version is not named, if so: another one may come tomorrow.
fn unpinned(command: &[String]) -> Option<String> {
    let program = Path::new(command.first()?).file_name()?.to_str()?;
    let package = command[1..].iter().find(|word| !word.starts_with('-'))?;
    let (version, form) = match program {
        "npx" | "bunx" => (
            package.strip_prefix('@').unwrap_or(package).rsplit_once('@').map(|(_, version)| version),
            "NAME@1.2.3",
        ),
        "uvx" => (
            package.split_once("==").or_else(|| package.split_once('@')).map(|(_, version)| version),
            "NAME==1.2.3",
        ),
        _ => return None,
    };
    let is_exact = version.is_some_and(|version| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.contains('.')
            && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
    });
    (!is_exact).then(|| {
        format!("{program} fetches whatever version of {package} there is then: name one, as {form}")
    })
}

/// Schema of headers of requests.
fn headers(_: &mut SchemaGenerator) -> Schema {
    by_name(&json_schema!({
        "type": "string",
        "description": "A header of each request to a server at an address, in [mcp.NAME.headers]. `${TOKEN}` in it stands for the secret mcp.NAME.secrets.TOKEN.",
    }))
}

/// Schema of variables of an environment.
fn variables(_: &mut SchemaGenerator) -> Schema {
    by_name(&json_schema!({
        "type": "string",
        "description": "A variable of its environment, in [mcp.NAME.env]. Nothing of your own environment is in it.",
    }))
}

/// Schema of variables that are kept with the keys.
fn secret_variables(_: &mut SchemaGenerator) -> Schema {
    let mut secrets = by_name(&json_schema!({
        "type": "string",
        "writeOnly": true,
        "description": "A variable of its environment that is a secret, or one that its headers name. It is kept in keys.toml.",
    }));
    secrets.insert("writeOnly".to_owned(), true.into());
    secrets
}

fn by_name(variable: &Schema) -> Schema {
    json_schema!({"type": "object", "additionalProperties": false, "patternProperties": {"^[A-Za-z0-9_-]+$": variable}})
}

impl fmt::Debug for ConfiguredServer {
    /// Without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredServer").field("command", &self.command).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use workspace::RootAccess;

    use super::*;

    fn server(command: &str, args: &[&str]) -> ConfiguredServer {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        ConfiguredServer { command: Some(command.to_owned()), args, ..ConfiguredServer::default() }
    }

    #[test]
    fn m5_ordinary_commands_start_a_server_and_one_without_a_version_is_warned_about() {
        for (command, args, words, is_warned) in [
            ("python", &["script.py"][..], &["python", "script.py"][..], false),
            ("npx", &["-y", "@mcp/server"], &["npx", "-y", "@mcp/server"], true),
            ("npx", &["-y", "@mcp/server@1.2.3"], &["npx", "-y", "@mcp/server@1.2.3"], false),
            ("npx -y server@latest", &[], &["npx", "-y", "server@latest"], true),
            ("npx -y 'my server'", &[], &["npx", "-y", "my server"], true),
            ("uvx", &["mcp-server-git"], &["uvx", "mcp-server-git"], true),
            ("uvx mcp-server-git==2026.8.31", &[], &["uvx", "mcp-server-git==2026.8.31"], false),
            ("node", &["server.js"], &["node", "server.js"], false),
            ("npx", &[""], &["npx", ""], true),
            ("npx", &["é@1.2.3"], &["npx", "é@1.2.3"], false),
            ("/opt/my server/run", &["--stdio"], &["/opt/my server/run", "--stdio"], false),
        ] {
            let entry = server(command, args).entry("x").unwrap();
            let PlaceEntry::Program(program) = entry.place else { panic!("{command}") };
            assert_eq!(program.command, words, "{command}");
            assert_eq!(!entry.warnings.is_empty(), is_warned, "{:?}", entry.warnings);
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_key() {
        let good = server("true", &[]);
        for (wrong, said) in [
            (ConfiguredServer::default(), "mcp.x.command is missing"),
            (server("a 'b", &[]), "mcp.x.command is no line"),
            (
                ConfiguredServer { url: Some("https://mcp.example.com".into()), ..good.clone() },
                "mcp.x.command is of a program",
            ),
            (
                ConfiguredServer { url: Some("file:///etc/passwd".into()), ..ConfiguredServer::default() },
                "mcp.x.url: ",
            ),
            (
                ConfiguredServer { headers: [("X-A".into(), "b".into())].into(), ..good.clone() },
                "mcp.x.headers is of a server at",
            ),
            (
                ConfiguredServer { roots: vec!["notes".into()], ..good.clone() },
                "mcp.x.roots: \"notes\" names no",
            ),
            (ConfiguredServer { net: vec!["http://x".into()], ..good.clone() }, "mcp.x.net: "),
            (
                ConfiguredServer { env: [("HOME".into(), "/".into())].into(), ..good.clone() },
                "mcp.x.env.HOME: ",
            ),
        ] {
            let why = wrong.check("x").unwrap_err();
            assert!(why.starts_with(said), "{why}");
        }
        let rooted = ConfiguredServer { roots: vec![".".into(), "~/n:rw".into()], ..good };
        let roots = rooted.program("x").unwrap().0.roots;
        assert_eq!(roots[0].access, RootAccess::ReadOnly);
        assert_eq!((roots[1].folder.to_str(), roots[1].access), (Some("~/n"), RootAccess::ReadWrite));
    }

    #[test]
    fn tools_are_offered_by_the_lists_of_the_owner() {
        let all = server("true", &[]);
        let some = ConfiguredServer {
            allow_tools: Some(vec!["add".into(), "find".into()]),
            deny_tools: vec!["add".into()],
            ..all.clone()
        };
        assert!(all.offers("add") && !some.offers("add") && some.offers("find") && !some.offers("other"));
    }

    #[test]
    fn names_in_the_lists_that_are_no_tools_are_told() {
        let lists = |deny: &[&str], allow: Option<&[&str]>, read: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            let server = ConfiguredServer {
                deny_tools: owned(deny),
                allow_tools: allow.map(owned),
                read: owned(read),
                ..server("true", &[])
            };
            server.unknown_tools(&["add", "search_files", "delete_file"], "its tools")
        };
        assert_eq!(lists(&["add"], Some(&["search_files"]), &["delete_file"]), [""; 0]);
        let told = lists(&["delete", "delete*", "page", "*"], Some(&["serach_files"]), &["search"]);
        assert_eq!(
            told,
            [
                "`deny_tools` names delete, which is none of its tools: did you mean delete_file?",
                "`deny_tools` names delete*, which is none of its tools: did you mean delete_file?",
                "`deny_tools` names page, which is none of its tools",
                "`deny_tools` names *, which is none of its tools",
                "`allow_tools` names serach_files, which is none of its tools: did you mean search_files?",
                "`read` names search, which is none of its tools: did you mean search_files?",
            ]
        );
    }
}
