//! `[limits]`: the bounds of work and of what is kept (spec: scale §4).

use std::time::Duration;

use agent::{KeptFileBounds, SubagentBounds, TurnBounds, WaitingBounds};
use commands::settings::{ProcessBounds, ResourceLimits as CommandLimits};
use loom::plan::MAX_NODE_BYTES;
use schemars::JsonSchema;
use serde::Deserialize;

use super::values::Bytes;

/// Seconds of an hour and a day.
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// With less free space than this, generations and imports are refused, and a command that runs where there is less is
    /// ended.
    pub(crate) free_space: Bytes,
    /// A larger home gets a notice.
    pub(crate) home_warn: Bytes,
    /// A longer log of the store (loom.db-wal) gets a notice. From half of it on it is begun anew.
    pub(crate) wal: Bytes<{ 1 << 20 }>,
    /// A larger picture is refused, by its header, before it is decoded.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("unit" = "pixels"))]
    pub(crate) picture: u64,
    /// A search stops after this time and shows what it found.
    #[schemars(range(min = 0.05, max = 600), extend("unit" = "s"))]
    pub(crate) search: f64,
    /// `glob` and `grep` stop after this time and show what they found.
    #[schemars(range(min = 0.05, max = 600), extend("unit" = "s"))]
    pub(crate) glob: f64,
    /// Most rows of a page; --from shows the next page.
    #[schemars(range(min = 1, max = 10_000), extend("unit" = "rows"))]
    pub(crate) show_all: usize,
    /// A longer text does not fit in a node. At the default, text of a document becomes several nodes; any other is
    /// refused.
    pub(crate) node: Bytes<1024, MAX_NODE_BYTES>,
    /// A longer text is refused: typed, from a file or from standard input.
    pub(crate) paste: Bytes<1024, { 1 << 30 }>,
    /// How long standard input, or a pipe named as a file, may send nothing.
    #[schemars(range(min = 0.05, max = 86_400), extend("unit" = "s"))]
    pub(crate) input_wait: f64,
    /// How often the model is asked in a turn before you are asked whether it goes on. Where nobody can be asked, the turn
    /// ends.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) turn_calls: u32,
    /// How long a turn takes before the same is asked, without the time in which people are waited for.
    #[schemars(range(min = 1, max = 1_000_000), extend("unit" = "s"))]
    pub(crate) turn_time: u32,
    /// How many tokens are sent and received in a turn before the same is asked.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("unit" = "tokens"))]
    pub(crate) turn_tokens: u64,
    /// How often the same tool is called with the same arguments, while no file changes, before the same is asked.
    #[schemars(range(min = 2, max = 1_000))]
    pub(crate) same_call: u32,
    /// How often the model is asked by a subagent, which ends there unfinished.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) subagent_calls: u32,
    /// How many subagents of a conversation run at a time; further ones wait.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) subagents: usize,
    /// How many subagents stand one below the other: at 1 they have none of their own.
    #[schemars(range(min = 1, max = 5))]
    pub(crate) subagent_depth: u32,
    /// How many commands run in the background of one conversation at a time; one more is refused.
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) processes: usize,
    /// How many run in the background of all conversations, also those of other processes.
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) processes_in_all: usize,
    /// How long one in the background may run before it is ended.
    #[schemars(range(min = 1, max = 8_760), extend("unit" = "hours"))]
    pub(crate) process_hours: u32,
    /// How much of the output of one in the background is kept: the oldest bytes go.
    pub(crate) process_log: Bytes<1024, { 1 << 30 }>,
    /// How many messages wait for a conversation while it answers; one more is refused.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) steering: usize,
    /// How many questions of a conversation wait for an answer; at one more the turn ends.
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) questions: u64,
    /// How many bytes are kept of what tools changed in files, for each workspace: the oldest go, and cannot be given back.
    pub(crate) kept_files: Bytes<1024>,
    /// How long they are kept.
    #[schemars(range(min = 1, max = 36_500), extend("unit" = "days"))]
    pub(crate) kept_days: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let CommandLimits { free_space, search, show_all, node, paste, picture, glob, processes, input_wait } =
            CommandLimits::default();
        let WaitingBounds { messages, questions } = WaitingBounds::default();
        let TurnBounds { model_calls, time, tokens, same_calls } = TurnBounds::default();
        let subagents = SubagentBounds::default();
        let KeptFileBounds { bytes, age } = KeptFileBounds::default();
        Self {
            glob: glob.as_secs_f64(),
            processes: processes.of_session,
            processes_in_all: processes.in_all,
            process_hours: u32::try_from(processes.time.as_secs() / HOUR).unwrap_or(u32::MAX),
            process_log: Bytes(processes.log as u64),
            steering: messages,
            questions,
            kept_files: Bytes(bytes),
            kept_days: u32::try_from(age.as_secs() / DAY).unwrap_or(u32::MAX),
            turn_calls: model_calls,
            turn_time: u32::try_from(time.as_secs()).unwrap_or(u32::MAX),
            turn_tokens: tokens,
            same_call: same_calls,
            subagent_calls: subagents.model_calls,
            subagents: subagents.at_once,
            subagent_depth: subagents.depth,
            free_space: Bytes(free_space),
            home_warn: Bytes(5 << 30),
            wal: Bytes(store::StoreLimits::default().wal),
            picture,
            search: search.as_secs_f64(),
            show_all,
            node: Bytes(node),
            paste: Bytes(paste),
            input_wait: input_wait.as_secs_f64(),
        }
    }
}

impl Limits {
    pub(crate) fn of_turns(&self) -> TurnBounds {
        TurnBounds {
            model_calls: self.turn_calls,
            time: Duration::from_secs(self.turn_time.into()),
            tokens: self.turn_tokens,
            same_calls: self.same_call,
        }
    }

    /// Limits of the subagents of a session.
    pub(crate) fn of_subagents(&self) -> SubagentBounds {
        SubagentBounds {
            model_calls: self.subagent_calls,
            at_once: self.subagents,
            depth: self.subagent_depth,
        }
    }

    /// Limits of what waits for a session.
    pub(crate) fn of_sessions(&self) -> WaitingBounds {
        WaitingBounds { messages: self.steering, questions: self.questions }
    }

    /// Limits of what is kept of changed files.
    pub(crate) fn of_kept_files(&self) -> KeptFileBounds {
        KeptFileBounds { bytes: self.kept_files.0, age: Duration::from_secs(u64::from(self.kept_days) * DAY) }
    }

    pub(crate) fn of_commands(&self) -> CommandLimits {
        CommandLimits {
            free_space: self.free_space.0,
            search: Duration::from_secs_f64(self.search),
            show_all: self.show_all,
            node: self.node.0,
            paste: self.paste.0,
            picture: self.picture,
            glob: Duration::from_secs_f64(self.glob),
            processes: ProcessBounds {
                of_session: self.processes,
                in_all: self.processes_in_all,
                time: Duration::from_secs(u64::from(self.process_hours) * HOUR),
                log: usize::try_from(self.process_log.0).unwrap_or(usize::MAX),
            },
            input_wait: Duration::from_secs_f64(self.input_wait),
        }
    }
}
