//! Tools of an agent (spec: agent §3): one table of them, the check of what they are called with, those that look at
//! files and change them, the one that runs commands, and those that reach the web.
//!
//! A tool is a name, a description and a schema made of the type of its arguments, with its effects. Policy decides on
//! each call before it runs; one that changes files says first, durably, what it will change.

mod arguments;
mod call_place;
mod changes;
mod checked_call;
mod checkpoint;
mod command_tool;
mod comparisons;
pub mod edits;
mod exec;
mod files;
mod folder_instructions;
mod hooks;
mod ignores;
mod path_uses;
mod plan;
mod program;
mod registry;
mod search;
mod server_tool;
mod session_policy;
mod session_skills;
mod skill_list;
mod subagents;
#[doc(hidden)]
pub mod testing;
mod tool;
mod waited_time;
mod web;

pub use arguments::ArgumentSchema;
pub use call_place::{CallPlace, NextPlace};
pub use changes::{
    BytesOrigin, ChangeRecorder, FileContent, LeftFile, NoChanges, OwnPaths, PlannedChange, SAYS_NOTHING,
    SeenFiles, WrittenFile, give_back, lines_between, recover_files, remove_unkept, unified_diff,
    unkept_digest,
};
pub use checked_call::CheckedCall;
pub use checkpoint::{
    CheckpointRules, Checkpoints, RootCheckpoints, RootRecords, records_with, remove_records,
    remove_records_of,
};
pub use command_tool::CommandTool;
pub use comparisons::{Comparisons, REFERENCES};
pub use exec::{
    BackgroundChanges, ChangedFiles, ChangedPath, CommandEgress, CommandNetwork, CommandRecovery,
    CommandScope, NetworkRequest, ProcessBounds, Processes, UnfinishedRoots, comparing, open_closed_root,
    reach_roots, recording, recover_command,
};
pub use files::READ;
pub use hooks::{Continuation, Hook, HookEvent, HookedEvent};
pub use registry::ToolRegistry;
pub use sandbox::{AcceptedChanges, AcceptedState, FileBefore, before_running_commands};
pub use server_tool::{AskServer, OpenServerFolders, ServerAnswer, ServerFolders, ServerTool};
pub use session_policy::SessionPolicy;
pub use session_skills::{LookForSkills, SessionSkill, SkillsInReach, TurnSkills};
pub use skill_list::LIST_SKILLS;
pub use subagents::{NOTE_OUTCOME, SPAWN, SUBAGENT_TOOLS, SubagentTask, Subagents};
pub use tool::{Tool, ToolOutput, ToolScope};
pub use waited_time::WaitedTime;
pub use web::{IsShown, SearchEngine, SearchService, WEB_TOOLS, WebScope, tools as web_tools};
