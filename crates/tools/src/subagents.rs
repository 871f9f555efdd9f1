//! Tools by which an agent hands work to agents of its own, which do it in the background (spec: agent §8).

use std::sync::Arc;

use loom::Trust;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call_place::CallPlace;
use crate::changes::SeenFiles;
use crate::exec::CommandScope;
use crate::tool::{Tool, ToolScope};

/// The tool that begins a subagent.
pub const SPAWN: &str = "spawn";
const STATUS: &str = "subagent_status";
const STOP: &str = "subagent_stop";

/// The names of them.
pub const SUBAGENT_TOOLS: [&str; 3] = [SPAWN, STATUS, STOP];

/// The tool by which an agent notes what the next session has to know. A subagent hands over nothing.
pub const NOTE_OUTCOME: &str = "note_outcome";

/// Work for a subagent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubagentTask {
    /// What to do, with all it has to know: it sees nothing of this conversation.
    pub task: String,
    /// What to call it, in a word or two.
    pub label: Option<String>,
    /// The model that works on it, PROVIDER/NAME; yours without it.
    pub model: Option<String>,
    /// Names of your tools that it has; all of them without it.
    pub tools: Option<Vec<String>>,
    /// Most that it may cost, in dollars.
    #[schemars(range(min = 0))]
    pub budget: Option<f64>,
}

/// The subagents of the conversation that a call is made in. All of it blocks.
pub trait Subagents: Send + Sync {
    /// Begins one, and says how it is called.
    ///
    /// # Errors
    /// Why none begins.
    fn spawn(&self, task: SubagentTask, place: &CallPlace) -> Result<String, String>;

    /// How one stands, with what it brought, or how all of them do.
    ///
    /// # Errors
    /// There is none of this id, or it cannot be read.
    fn status(&self, id: Option<&str>) -> Result<(String, Trust), String>;

    /// Stops one.
    ///
    /// # Errors
    /// There is none of this id that runs here.
    fn stop(&self, id: &str) -> Result<String, String>;
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {
    /// Id of one; all of them without it.
    id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopArguments {
    id: String,
}

pub(crate) fn tools() -> [Tool; 3] {
    [
        Tool::of_conversation(
            SPAWN,
            "Hand a task of its own to a subagent, which works on it in the background with your tools. Returns its id at \
             once; what it comes to is told to you by itself.",
            |place, task: SubagentTask| Ok((of(place)?.spawn(task, place)?, Trust::Owner)),
        )
        .in_order(),
        Tool::of_conversation(
            STATUS,
            "Say whether your subagents run, wait for an answer of the owner's or have ended, and what they cost.",
            |place, asked: StatusArguments| of(place)?.status(asked.id.as_deref()),
        ),
        Tool::of_conversation(STOP, "Stop a subagent.", |place, asked: StopArguments| {
            Ok((of(place)?.stop(&asked.id)?, Trust::Owner))
        }),
    ]
    .map(Tool::beside_the_core)
}

impl ToolScope {
    /// Roots, walls, rules and hooks of the session for a subagent, which has read nothing yet.
    pub(crate) fn of_subagent(&self) -> Self {
        Self {
            roots: Arc::clone(&self.roots),
            trust: self.trust,
            masker: Arc::clone(&self.masker),
            policy: self.policy.of_subagent(),
            session: self.session,
            locks: self.locks.clone(),
            umask: self.umask,
            seen: SeenFiles::default(),
            max_pixels: self.max_pixels,
            search_time: self.search_time,
            commands: self.commands.as_ref().map(CommandScope::of_subagent),
            hooks: self.hooks.clone(),
        }
    }
}

fn of(place: &CallPlace) -> Result<&dyn Subagents, String> {
    place.subagents.as_deref().ok_or_else(|| "there are no subagents here".to_owned())
}
