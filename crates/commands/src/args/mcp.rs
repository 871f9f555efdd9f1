//! Arguments of `mcp`.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::configured_server::ServerSandbox;

use super::chat::SessionArg;

/// `mcp`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum McpCommand {
    /// List the servers with their tools, without starting any.
    #[command(after_help = "Example: drawloom mcp list")]
    List,
    /// Show a server: its command or address, what it may reach, and its tools. It is not started.
    #[command(after_help = "Example: drawloom mcp get notes")]
    Get(McpServerArg),
    /// Add a server to the configuration, start it, and ask which of its tools you accept.
    #[command(
        after_help = "Example: drawloom mcp add notes --root ~/notes -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ."
    )]
    Add(McpAddArgs),
    /// Take a server out of the configuration, and forget what was accepted of it, the login, and rules that allow its tools.
    #[command(after_help = "Example: drawloom mcp remove notes")]
    Remove(McpServerArg),
    /// Start a server and list its tools.
    #[command(after_help = "Example: drawloom mcp test notes")]
    Test(McpServerArg),
    /// Start a server, show which of its tools are new or changed, and accept them.
    #[command(after_help = "Example: drawloom mcp accept notes")]
    Accept(McpAcceptArgs),
    /// Log in at a server at an address: you say yes in a browser.
    #[command(after_help = "Example: drawloom mcp login issues")]
    Login(McpServerArg),
    /// Forget the login at a server.
    #[command(after_help = "Example: drawloom mcp logout issues")]
    Logout(McpServerArg),
    /// Be a server, for a program that speaks MCP over standard input and output: it may look at a conversation and at
    /// documents, and changes nothing.
    #[command(after_help = "Example: drawloom mcp serve --workspace ~/tale")]
    Serve(SessionArg),
}

/// A server.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct McpServerArg {
    /// The name of the server.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `mcp add`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct McpAddArgs {
    /// The name of the server: letters, digits, `_` and `-`.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// A folder that it sees, for reading; with `:rw` behind it for writing too; `.` is the workspace. Can be repeated.
    #[arg(long = "root", value_name = "DIR[:rw]")]
    #[serde(default)]
    pub roots: Vec<String>,
    /// A host that it reaches, or `open` for any. Can be repeated [default: no network].
    #[arg(long = "net", value_name = "HOST")]
    #[serde(default)]
    pub net: Vec<String>,
    /// Whether it runs in the sandbox. off: it may do whatever you may.
    #[arg(long, value_enum, value_name = "on|off", default_value = "on", hide_possible_values = true)]
    #[serde(default)]
    pub sandbox: ServerSandbox,
    /// A variable of its environment. Secrets have another place: `drawloom config set mcp.NAME.secrets.VARIABLE VALUE`.
    /// Can be repeated.
    #[arg(long = "env", value_name = "VARIABLE=VALUE")]
    #[serde(default)]
    pub env: Vec<String>,
    /// The address of a server that runs elsewhere, in place of a program.
    #[arg(long, value_name = "URL", conflicts_with_all = ["roots", "net", "sandbox", "env", "command"])]
    #[serde(default)]
    pub url: Option<String>,
    /// A header of each request to that address; `${TOKEN}` in it stands for a secret, which has another place:
    /// `drawloom config set mcp.NAME.secrets.TOKEN VALUE`. Can be repeated.
    #[arg(long = "header", value_name = "HEADER: VALUE", requires = "url")]
    #[serde(default)]
    pub headers: Vec<String>,
    /// Accept all of its tools without a question.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
    /// The program that is the server, with its arguments.
    #[arg(value_name = "COMMAND", required_unless_present = "url", last = true)]
    #[serde(default)]
    pub command: Vec<String>,
}

/// `mcp accept`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct McpAcceptArgs {
    /// The name of the server.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The tools that are accepted; the others stay as they are [default: all, and no others].
    #[arg(value_name = "TOOL")]
    #[serde(default)]
    pub tools: Vec<String>,
    /// Accept them without a question.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}
