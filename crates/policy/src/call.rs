//! Facts that a decision is made of: those of the call, and those of its session.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workspace::protected::Protection;
use workspace::{RelativePath, protected};

/// Effect of a tool, declared where it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Read,
    Write,
    Exec,
    Net,
    Message,
}

impl Effect {
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Exec, Self::Net, Self::Message];

    /// Name in configuration and in patterns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
            Self::Net => "net",
            Self::Message => "message",
        }
    }
}

/// A call of a tool, its arguments checked and resolved.
#[derive(Clone, Debug, Default)]
pub struct CallFacts {
    pub tool: String,
    /// Server of an MCP tool; nothing for a tool of our own.
    pub server: Option<ServerFacts>,
    pub effects: BTreeSet<Effect>,
    pub paths: Vec<PathUse>,
    /// Host that a web tool, a webhook or a server's tool reaches.
    pub host: Option<String>,
    /// Command of exec; its `touches` stand in `paths` as written. A configured tool that runs a program has an empty line,
    /// beside the network of its entry.
    pub command: Option<CommandFacts>,
    pub mark: Option<CallMark>,
    /// Whether what lies below its paths is found or read, too. Rules decide on that one by one, where it is read.
    pub looks_below: bool,
}

/// Server of an MCP tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    pub name: String,
    /// Tools of it that the owner marked `read`; a server's own hints never count.
    pub reading: Vec<String>,
    /// Whether it reaches anybody else.
    pub is_online: bool,
}

/// Path of a call, below one of its roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathUse {
    pub path: RelativePath,
    /// Canonical path of the further root that it lies below; none below the workspace.
    pub further_root: Option<PathBuf>,
    pub access: PathAccess,
    pub place: PathPlace,
}

impl PathUse {
    /// The path as it is named: relative below the workspace, absolute below a further root.
    pub fn named(&self) -> PathBuf {
        match &self.further_root {
            Some(root) => root.join(self.path.as_path()),
            None => self.path.as_path().to_owned(),
        }
    }

    /// Whether the owner lifted the restriction, and what stands there steers the machine's programs or those of a home.
    pub fn steers_programs(&self) -> bool {
        self.is_of_everything() && protected::steers_programs(&self.path)
    }

    /// Whether it lies in no folder that was named, but anywhere, as the owner lifted the restriction.
    pub(crate) fn is_of_everything(&self) -> bool {
        self.further_root.as_deref() == Some(Path::new("/"))
    }
}

/// Use that a call makes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    Read,
    /// The path is created, or its content replaced.
    Write,
    /// A link comes to stand there: what lies below its name is elsewhere from then on.
    Link,
    /// The path goes: it is moved or deleted, with all below it. A decision knows no folder's content, so a caller
    /// lists what lies below as well, at least the paths that `workspace::protected` knows.
    Remove,
}

/// Kind of place that a path lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPlace {
    WritableRoot,
    /// A place in a writable root that is protected by what leads to it, whatever the table of names says: a link, a
    /// configuration of git.
    Protected(Protection),
    ReadOnlyRoot,
    /// Key files, the store, the rest of Drawloom's home.
    Private,
}

/// Command of an exec call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFacts {
    /// Line as the shell gets it.
    pub line: String,
    /// Working directory below its root.
    pub directory: RelativePath,
    /// Whether no link stands on the way to it, so that `..` there is the folder that its name says.
    pub directory_is_direct: bool,
    /// Canonical path of the further root that it lies below; none below the workspace.
    pub further_root: Option<PathBuf>,
    pub network: NetworkWish,
    /// Whether a port is to be published on the machine.
    pub publishes: bool,
    pub start: CommandStart,
}

/// How a line reaches a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandStart {
    /// One is started for it and waited for.
    Foreground,
    /// One is started for it and runs on.
    Background,
    /// As input of a command that runs already: what reads it and where it is are not known.
    Input,
}

/// Network that a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkWish {
    Off,
    Hosts(Vec<String>),
    /// Any host, the local network included.
    Open,
}

/// Property of a call that a row of the table names and that no other fact shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMark {
    /// A GET of a URL that stands verbatim in the owner's text or in a result already shown, without text of files or
    /// memory in its query.
    ShownUrl,
    /// A message to the target that the job itself names.
    OwnTarget,
    /// A pinned memory or a reminder with a prompt: text that instructs later sessions.
    StandingInstruction,
    /// Configuration, policy, keys, servers, trust, approvals.
    Administration,
}

impl CallFacts {
    /// Whether its tool is of a server, and one that the owner marked `read` there; none of a tool of our own.
    pub(crate) fn reads_of_server(&self) -> Option<bool> {
        self.server.as_ref().map(|server| server.reading.contains(&self.tool))
    }

    /// Whether the call has an effect, declared or evident from its other facts.
    pub fn has(&self, effect: Effect) -> bool {
        self.effects.contains(&effect)
            || match effect {
                Effect::Read => self.paths.iter().any(|path| path.access == PathAccess::Read),
                Effect::Write => self.written().next().is_some(),
                Effect::Exec => self.command.is_some(),
                Effect::Net => {
                    self.host.is_some() || self.command.as_ref().is_some_and(CommandFacts::is_online)
                }
                Effect::Message => false,
            }
    }

    /// Paths that are written or removed.
    pub fn written(&self) -> impl Iterator<Item = &PathUse> {
        self.paths.iter().filter(|path| path.access != PathAccess::Read)
    }

    /// Hosts that are named; an open network names none.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let named = match self.command.as_ref().map(|command| &command.network) {
            Some(NetworkWish::Hosts(hosts)) => hosts.as_slice(),
            Some(NetworkWish::Off | NetworkWish::Open) | None => &[],
        };
        self.host.iter().chain(named).map(String::as_str)
    }

    /// Whether a port of this machine is asked for.
    pub fn publishes(&self) -> bool {
        self.command.as_ref().is_some_and(|command| command.publishes)
    }

    /// Whether hosts may be reached that are not named.
    pub fn is_open(&self) -> bool {
        match &self.command {
            Some(command) => command.network == NetworkWish::Open,
            None => self.has(Effect::Exec) && self.has(Effect::Net) && self.host.is_none(),
        }
    }
}

impl CommandFacts {
    /// Whether the command asks for any network. An empty list of hosts counts: it is no `off`.
    pub fn is_online(&self) -> bool {
        self.network != NetworkWish::Off
    }
}

/// Type of a session (spec: agent §0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionType {
    /// The owner's.
    Main,
    /// The owner's, purged at its end; a rule for `main` holds here too.
    Private,
    /// One question, API clients, subagents, reminders and heartbeat.
    Isolated,
    /// A buffer tree.
    Document,
}

impl SessionType {
    /// Name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Private => "private",
            Self::Isolated => "isolated",
            Self::Document => "document",
        }
    }

    /// Whether a rule for sessions of another type holds for this one.
    pub fn falls_under(self, other: Self) -> bool {
        self == other || (self == Self::Private && other == Self::Main)
    }
}

/// Whether somebody can answer a question of the session in time. A subagent has its parent's; a caller that waits for an
/// answer is attended while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    Attended,
    Unattended,
}

/// Level of the sandbox that commands run in (spec: security §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxLevel {
    None,
    Partial,
    Full,
}

/// Facts of the session in which a call is made.
#[derive(Clone, Copy, Debug)]
pub struct SessionFacts {
    pub kind: SessionType,
    pub attendance: Attendance,
    pub sandbox: SandboxLevel,
    /// Whether the request that made the call sent an `outside` segment (spec: security §3).
    pub tainted: bool,
    pub plan_mode: bool,
    /// Whether a checkpoint holds what a write replaces.
    pub keeps_old_bytes: bool,
}
