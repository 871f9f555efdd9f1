//! The one table of commands.
//!
//! A command is typed arguments, the right it needs, and a typed result. Every surface (command line, slash
//! commands, HTTP, MCP, the agent's own tools) renders the same [`Command`] and [`CommandOutcome`]; the check of rights
//! is here ([`App::run`]), not in the surface (spec: security §5).
//!
//! Entry points: [`table`] for what there is, [`slash`] for what may be typed into a conversation, [`App`] for what it
//! works on, [`args`] and [`results`] for the contract of each command.

mod answer_schema;
pub mod app;
mod approvals;
pub mod args;
mod cards;
pub mod chat;
mod command_changes;
mod configured_hook;
mod configured_server;
mod contexts;
mod cost;
mod custom_commands;
mod dispatch;
mod egress_notice;
pub mod error;
mod file_changes;
pub mod frontend;
pub mod further_roots;
mod generate;
mod handoffs;
mod judged_workspace;
pub mod maintenance;
mod mcp_servers;
mod model_selection;
mod models;
mod outcomes;
pub mod package_caches;
mod policies;
mod profile;
pub mod results;
pub mod rights;
mod server_address;
mod server_detail;
mod server_folders;
pub mod server_home;
mod server_login;
mod server_secrets;
mod servers;
pub mod settings;
pub mod shell;
pub mod skills;
pub mod slash;
pub mod table;
pub mod thinking;
mod transfer;
mod tree;
mod verify;
pub mod walls;
pub mod workspaces;

pub use app::App;
pub use approvals::looks_like_id;
pub use error::CommandError;
pub use profile::read_system_file;
pub use results::CommandOutcome;
pub use rights::{Asker, Right};
pub use servers::Servers;
pub use table::Command;
pub use tree::edit_files;

/// The names of all tools there are.
pub fn tool_names<'s>(configured: impl Iterator<Item = &'s String>) -> Vec<String> {
    chat::tools::names(configured)
}

/// Whether a name is that of a tool of the program.
pub fn is_tool(name: &str) -> bool {
    chat::tools::is_taken(name)
}

/// Why the tools of an agent do not name this one: it comes with a permission. None of one that is named.
pub fn why_not_named(agent: &str, tool: &str) -> Option<String> {
    let key = chat::tools::permission(tool)?;
    Some(chat::tools::named_without_permission(agent, tool, key))
}
