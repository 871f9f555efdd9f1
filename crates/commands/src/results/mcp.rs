//! Results of `mcp`.

use std::path::PathBuf;

use serde::Serialize;

/// `mcp list`, `/mcp`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServersShown {
    pub servers: Vec<ServerShown>,
    /// Servers that the workspace names; they are never started.
    pub not_started: Option<WorkspaceServers>,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerShown {
    pub name: String,
    pub status: ServerStatus,
    /// What is wrong, or should be known.
    pub notes: Vec<String>,
    pub tool_count: usize,
    /// Names of its tools that are offered, in order.
    pub tools: Vec<String>,
    /// Tools that it tells otherwise than they were accepted: they are switched off.
    pub changed: Vec<String>,
    /// Whether any of its tools were accepted.
    pub pinned: bool,
    /// Whether it runs in the sandbox.
    pub sandbox: bool,
    /// Address of one that is no program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Rules about its tools, where it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<ServerRules>,
    /// Secrets that went with it, where it was removed, by their keys below its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_secrets: Option<Vec<String>>,
    /// What became of its `HOME`, where it was removed; none where it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<ServerHome>,
}

/// What became of the `HOME` of a server that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerHome {
    Removed,
    /// Left where it is, as the server runs in another process.
    InUse,
}

/// `mcp get`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerDetail {
    #[serde(flatten)]
    pub server: ServerShown,
    /// The program with its arguments; empty of one at an address.
    pub command: Vec<String>,
    pub roots: Vec<String>,
    pub net: Vec<String>,
    /// Seconds that one call may take.
    pub timeout: u32,
    /// Tools that only read, as the owner says.
    pub read: Vec<String>,
    /// Tools that are offered, of those that were accepted; none where all of them are.
    pub allow_tools: Option<Vec<String>>,
    /// Tools that are not offered.
    pub deny_tools: Vec<String>,
    /// Names of variables of its environment, of headers, and of secrets; their values are not told.
    pub variables: Vec<String>,
    pub headers: Vec<String>,
    pub secrets: Vec<String>,
    /// Tools that were accepted as they are; those of them that are offered are `tools`.
    pub accepted: Vec<String>,
}

/// Rules about the tools of a server that was removed, as `policy list` has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServerRules {
    /// Allow rules, which went with it.
    pub removed: Vec<String>,
    /// Deny and ask rules, which stay.
    pub kept: Vec<String>,
}

/// How a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// Started when it is needed.
    Idle,
    Connected,
    /// Not started, or ended.
    Failed,
    /// Without an entry that is right.
    Invalid,
    Removed,
    LoggedIn,
    LoggedOut,
}

/// Servers that a workspace names in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkspaceServers {
    pub file: PathBuf,
    pub names: Vec<String>,
}

/// `mcp test`, `mcp accept`, `mcp add`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerTested {
    pub name: String,
    pub status: ServerStatus,
    /// Name and version that it gives itself.
    pub server: String,
    pub tool_count: usize,
    /// Tools in the order in which it tells them.
    pub tools: Vec<ServerToolShown>,
    /// Why further ones are none.
    pub refused: Vec<String>,
    /// Tools that were accepted, and which it offers no more.
    pub gone: Vec<String>,
    pub notes: Vec<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerToolShown {
    pub name: String,
    pub description: String,
    pub state: ServerToolState,
}

/// How a tool of a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerToolState {
    Accepted,
    /// Not accepted yet.
    New,
    /// Told otherwise than it was accepted.
    Changed,
}
