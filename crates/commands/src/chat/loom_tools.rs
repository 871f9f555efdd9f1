//! Tools of the loom: an agent reads and changes the tree of its conversation, and documents where it may (spec: agent §3 *Loom*).
//!
//! Each runs the command that a person would type, as the agent and with its rights: what a command refuses is refused
//! here, and what its owner took away (pruned, left out, forgotten) is not told. Each comes with a permission of the
//! agent, and none is of the core.

mod asking;
mod place;
mod reading;
mod stash;
mod writing;

use ::tools::Tool;

use crate::app::App;
use crate::settings::Agent;
use place::LoomAgent;

/// A permission of an agent, by its key in `[agents.NAME]`, with tools that it brings.
struct LoomPermission {
    key: &'static str,
    is_given: fn(&Agent) -> bool,
    tools: &'static [&'static str],
}

const PERMISSIONS: [LoomPermission; 4] = [
    LoomPermission { key: "loom_aware", is_given: |agent| agent.loom_aware, tools: &reading::NAMES },
    LoomPermission { key: "loom_write", is_given: |agent| agent.loom_write, tools: &stash::NAMES },
    LoomPermission { key: "loom_write", is_given: |agent| agent.loom_write, tools: &writing::NAMES },
    LoomPermission { key: "loom_generate", is_given: |agent| agent.loom_generate, tools: &asking::NAMES },
];

/// The names of the tools that the permissions of an agent bring.
pub(super) fn names(agent: &Agent) -> impl Iterator<Item = &'static str> {
    PERMISSIONS.iter().filter(|one| (one.is_given)(agent)).flat_map(|one| one.tools).copied()
}

/// The names of all of them.
pub(super) fn all_names() -> impl Iterator<Item = &'static str> {
    PERMISSIONS.iter().flat_map(|one| one.tools).copied()
}

/// The permission that brings a tool; none of a tool that is not of the loom.
pub(super) fn permission(tool: &str) -> Option<&'static str> {
    PERMISSIONS.iter().find(|one| one.tools.contains(&tool)).map(|one| one.key)
}

/// All of them, as an agent has them.
pub(super) fn tools(app: &App, agent: &str) -> Vec<Tool> {
    tools_as(&LoomAgent::new(app, agent))
}

/// All of them, as a program has them that may look at the tree it is shown, and at documents.
pub(super) fn of_reader(app: &App) -> Vec<Tool> {
    tools_as(&LoomAgent::reader(app))
}

fn tools_as(agent: &LoomAgent) -> Vec<Tool> {
    let all = [asking::tools(agent), reading::tools(agent), stash::tools(agent), writing::tools(agent)];
    all.into_iter().flatten().map(Tool::beside_the_core).collect()
}
