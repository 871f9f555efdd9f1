//! The table of the tools of a session, by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use context::tools::server_of;
use context::{FolderInstructions, ToolSpec};
use loom::{NodeId, Seq, TreeId};
use model::Cancel;
use policy::Effect;
use serde_json::{Map, Value};
use workspace::{RelativePath, Root, RootAccess};

use crate::arguments::ArgumentSchema;
use crate::call_place::CallPlace;
use crate::changes::{ChangeRecorder, WrittenFile, line_name};
use crate::checked_call::CheckedCall;
use crate::exec::{self, ChangedFiles};
use crate::files;
use crate::folder_instructions::EnteredFolders;
use crate::hooks::{HookEvent, HookedEvent, on_event, refusal};
use crate::plan;
use crate::search;
use crate::session_skills::{LookForSkills, SessionSkill, SessionSkills, TurnSkills};
use crate::skill_list;
use crate::subagents::{self, NOTE_OUTCOME, SUBAGENT_TOOLS};
use crate::tool::{CallScope, Tool, ToolOutput, ToolScope};

/// Letters of a name that a near one may differ in, for a hint.
const NEAR: usize = 2;

/// Characters of a name that there is not.
const SHOWN: usize = 64;

/// A tool with what checks its arguments.
type CheckedTool = (Arc<Tool>, Arc<ArgumentSchema>);
type ToolsByName = BTreeMap<String, CheckedTool>;

/// Tools with what they work in. The list never changes within a session.
pub struct ToolRegistry {
    tools: ToolsByName,
    /// Tools that stand for others that wait until they are searched for; no agent names them.
    standing_for_others: ToolsByName,
    scope: Arc<ToolScope>,
    /// The last change of each tree of which its tools know what was written by then: answer, call, and number in that.
    told_written: Mutex<HashMap<TreeId, (NodeId, u32, u32)>>,
    /// Newest event of the store when its last turn began; 0 before the first.
    turn_began: AtomicU64,
    /// Whether it was said that hooks do not run.
    told_unrun: AtomicBool,
    entered: Arc<EnteredFolders>,
    skills: Arc<SessionSkills>,
}

/// What is said of the name of a server's tool that there is not.
const OF_NO_SERVER: &str = "tool_search finds those of servers; one that its owner removed, or that its server tells otherwise \
                            than it was accepted, is not there (`drawloom mcp list` says why)";

impl ToolRegistry {
    /// The tools of these names that work in a scope: those of this crate and `further` ones.
    ///
    /// # Errors
    /// The first name that no tool has, with those that are there.
    pub fn new(scope: ToolScope, further: Vec<Tool>, names: &[String]) -> Result<Self, String> {
        let mut all: BTreeMap<String, Tool> =
            all_tools().chain(further).map(|tool| (tool.spec.name.clone(), tool)).collect();
        let there: Vec<String> = all.keys().cloned().collect();
        let mut tools = BTreeMap::new();
        for name in names {
            let Some(tool) = all.remove(name) else {
                if tools.contains_key(name) {
                    continue;
                }
                return Err(format!("there is no tool {name}: there are {}", there.join(", ")));
            };
            tools.extend([with_schema(tool)?]);
        }
        Self::of_checked(tools, scope)
    }

    /// Tools of these names for a subagent, or all: in the same roots and walls, by the same rules. Those by which it would
    /// have subagents of its own are among them only where it may.
    ///
    /// # Errors
    /// The first name that is none of a tool here.
    pub fn of_subagent(&self, names: Option<&[String]>, may_spawn: bool) -> Result<Self, String> {
        let is_given = |name: &str| name != NOTE_OUTCOME && (may_spawn || !SUBAGENT_TOOLS.contains(&name));
        let missing = |name: &&String| !self.tools.contains_key(*name) || !is_given(name);
        if let Some(name) = names.into_iter().flatten().find(missing) {
            // Names of tools of servers are theirs.
            let is_told = |name: &&str| is_given(name) && server_of(name).is_none();
            let there = self.tools.keys().map(String::as_str).filter(is_told);
            let there = there.collect::<Vec<_>>().join(", ");
            return Err(format!("a subagent can have no tool {name}: it can have {there}"));
        }
        let is_meant = |name: &String| is_given(name) && names.is_none_or(|names| names.contains(name));
        let tools = self.tools.iter().filter(|(name, _)| is_meant(name));
        let tools =
            tools.map(|(name, (tool, schema))| (name.clone(), (Arc::clone(tool), Arc::clone(schema))));
        let registry = Self::of_checked(tools.collect(), self.scope.of_subagent())?;
        Ok(Self { skills: Arc::new(self.skills.of_subagent()), ..registry })
    }

    /// The registry of a session that is opened with these skills, and a way to look for those of a later moment.
    #[must_use]
    pub fn with_skills(self, skills: Vec<SessionSkill>, look: Arc<LookForSkills>) -> Self {
        Self { skills: Arc::new(SessionSkills::new(skills, look)), ..self }
    }

    /// Follows the skills of these names, whose texts their owner said in the turn, where they were not handed along: as they
    /// count by now, though they be gone. It blocks.
    pub fn follow_named(&self, skills: &[String]) {
        self.skills.follow_named(skills);
    }

    /// Leaves reading alone in a turn of which is not known which skills it follows.
    pub fn follow_unknown(&self) {
        self.skills.follow_unknown();
    }

    /// Follows the skills whose files a call of `read` with these arguments opened. It blocks.
    pub fn follow_read(&self, arguments: &Value) {
        if let Ok(call) = self.check(files::READ, arguments) {
            call.follow_read();
        }
    }

    /// Skills of the turn that began the session of a subagent.
    pub fn skills_of_turn_before(&self) -> TurnSkills {
        self.skills.of_turn_before()
    }

    fn of_checked(tools: ToolsByName, scope: ToolScope) -> Result<Self, String> {
        let specs = tools.values().map(|(tool, _)| tool.spec.clone()).collect();
        let standing_for_others =
            search::tools(specs).into_iter().map(with_schema).collect::<Result<_, _>>()?;
        Ok(Self {
            tools,
            standing_for_others,
            scope: Arc::new(scope),
            told_written: Mutex::default(),
            turn_began: AtomicU64::new(0),
            told_unrun: AtomicBool::new(false),
            entered: Arc::default(),
            skills: Arc::default(),
        })
    }

    /// Until which change of a tree it was told what was written.
    pub fn told_written(&self, tree: TreeId) -> Option<(NodeId, u32, u32)> {
        self.told_written.lock().unwrap_or_else(PoisonError::into_inner).get(&tree).copied()
    }

    /// A turn begins, which goes on with these skills.
    pub fn begin_turn(&self, skills: &TurnSkills) {
        self.entered.clear();
        self.skills.begin_turn(skills);
    }

    /// Newest event of the store at the beginning of the turn before; none of the first. This one begins with `newest`.
    pub fn newest_before(&self, newest: u64) -> Option<u64> {
        Some(self.turn_began.swap(newest, Ordering::Relaxed)).filter(|before| *before != 0)
    }

    /// Drops the bytes of files that it remembers: something was forgotten that may stand in them.
    pub fn forget_files(&self) {
        self.scope.seen.forget();
    }

    /// Tells it what its session wrote in files up to a change, in order.
    pub fn tell_written(&self, tree: TreeId, until: (NodeId, u32, u32), files: Vec<WrittenFile>) {
        let of_root = |file: WrittenFile| {
            let root = self.scope.roots.all().find(|root| root.path() == file.root)?;
            let path = RelativePath::from_components(&file.path).ok()?;
            Some((root.id(), path, file))
        };
        self.scope.seen.learn(files.into_iter().filter_map(of_root));
        self.told_written.lock().unwrap_or_else(PoisonError::into_inner).insert(tree, until);
    }

    /// What tools of these names are told of, with their effects; one that is not there is left out.
    pub fn described(further: Vec<Tool>, names: &[String]) -> Vec<(ToolSpec, &'static [Effect])> {
        let all = all_tools().chain(further).filter(|tool| names.contains(&tool.spec.name));
        all.map(|tool| (tool.spec, tool.effects)).collect()
    }

    /// The names of the tools of this crate.
    pub fn names() -> Vec<String> {
        all_tools().map(|tool| tool.spec.name).collect()
    }

    /// Whether a tool of one of these names runs commands, so that its scope has to say where.
    pub fn runs_commands(names: &[String]) -> bool {
        all_tools().any(|tool| tool.runs_commands() && names.contains(&tool.spec.name))
    }

    /// The folder whose files are named by relative paths; none where there is no workspace.
    pub fn workspace(&self) -> Option<&Path> {
        self.scope.roots.all().find(|root| !root.is_further()).map(Root::path)
    }

    /// Writes down what commands in the background changed since the last call of a turn, at its end; nothing where none
    /// runs. It blocks.
    pub fn keep_background_changes(
        &self,
        changes: &dyn ChangeRecorder,
        turn: (TreeId, Option<Seq>),
    ) -> Option<ChangedFiles> {
        let commands = self.scope.commands.as_ref()?;
        commands.background_changes.settle((&self.scope, commands), changes, turn)
    }

    /// Whether hooks are run on an event.
    pub fn has_hooks(&self, event: HookEvent) -> bool {
        self.scope.hooks.iter().any(|hook| hook.on.contains(&event))
    }

    /// Runs the hooks of an event beside calls, which see the workspace read-only where they only look. That they do not run
    /// is said once. It blocks.
    pub fn run_hooks(
        &self,
        (event, told, only_looks): (HookEvent, &Map<String, Value>, bool),
        cancel: &Cancel,
        changes: &dyn ChangeRecorder,
        place: &CallPlace,
    ) -> HookedEvent {
        if let Some(why) = refusal(&self.scope, only_looks) {
            let is_told = self.told_unrun.swap(true, Ordering::Relaxed);
            let notice = (!is_told).then(|| format!("hooks were not run: {why}"));
            return HookedEvent { notices: notice.into_iter().collect(), ..HookedEvent::default() };
        }
        on_event(&CallScope::new(&self.scope, place, cancel, changes, only_looks), event, told)
    }

    /// Ends the commands in the background, and waits until they are gone. It blocks.
    pub fn end_commands(&self) {
        if let Some(commands) = &self.scope.commands {
            commands.processes.end_all();
        }
    }

    /// What a model is told of what its tools reach beside the workspace: folders, and servers; empty where there is nothing.
    pub fn further_reach(&self) -> String {
        let told = [self.further_folders(), self.servers()];
        told.into_iter().filter(|told| !told.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn has_server(&self, name: &str) -> bool {
        self.tools.values().any(|(tool, _)| tool.server.as_ref().is_some_and(|server| server.name == name))
    }

    fn servers(&self) -> String {
        let servers = self.tools.values().filter_map(|(tool, _)| Some(tool.server.as_ref()?.name.as_str()));
        let servers: BTreeSet<&str> = servers.collect();
        if servers.is_empty() {
            return String::new();
        }
        let servers: Vec<&str> = servers.into_iter().collect();
        format!(
            "tool_search finds the tools of these servers, and call_tool calls them: {}.",
            servers.join(", ")
        )
    }

    fn further_folders(&self) -> String {
        let further = self.scope.roots.all().filter(|root| root.is_further() && !root.is_skill());
        let named = |root: &Root| {
            let may = match root.access() {
                RootAccess::ReadOnly => "read only",
                RootAccess::ReadWrite => "read and write",
            };
            format!("{} ({may})", line_name(&root.path().display().to_string()))
        };
        let named: Vec<String> = further.map(named).collect();
        if named.is_empty() {
            return String::new();
        }
        format!(
            "Tools reach these folders beside the workspace, by absolute paths: {}. Relative paths are below the workspace.",
            named.join(", ")
        )
    }

    /// What a model is told of the folders that calls of this turn worked in.
    pub fn folder_instructions(&self) -> Vec<FolderInstructions> {
        self.entered.instructions()
    }

    /// What a model is told of them, by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|(tool, _)| tool.spec.clone()).collect()
    }

    /// Checks a call before anything is decided on it.
    ///
    /// # Errors
    /// What the model is told: there is no such tool, or its arguments do not fit.
    pub fn check(&self, name: &str, arguments: &Value) -> Result<CheckedCall, ToolOutput> {
        let found = self.tools.get(name).or_else(|| self.standing_for_others.get(name));
        let Some((tool, schema)) = found else {
            // Names of servers' tools are theirs, and found by a search.
            let names = || self.tools.keys().map(String::as_str).filter(|name| server_of(name).is_none());
            let near = names().find(|other| other.eq_ignore_ascii_case(name) || differ(other, name) <= NEAR);
            let hint = match (near, server_of(name)) {
                (Some(near), _) => format!("did you mean {near}?"),
                (None, Some((server, _))) if !self.has_server(server) => format!(
                    "no tool of a server {server} is accepted as it is now (`drawloom mcp list` says why); one that its owner \
                     accepts is there in conversations that are opened later"
                ),
                (None, Some(_)) => OF_NO_SERVER.to_owned(),
                (None, None) => format!("the tools are {}", names().collect::<Vec<_>>().join(", ")),
            };
            let shown: String = name.chars().take(SHOWN).collect();
            return Err(ToolOutput::error(format!("there is no tool {shown:?}: {hint}")));
        };
        schema.check(arguments).map_err(|why| {
            let refused = ToolOutput::error(format!("Invalid parameters of {name}: {why}"));
            // The schema of a server may be quoted.
            if tool.server.is_some() { refused.from_outside() } else { refused }
        })?;
        let (tool, scope) = (Arc::clone(tool), Arc::clone(&self.scope));
        let (entered, skills) = (Arc::clone(&self.entered), Arc::clone(&self.skills));
        Ok(CheckedCall { tool, scope, arguments: arguments.clone(), plan_mode: false, entered, skills })
    }
}

/// A tool by its name, with what checks its arguments.
fn with_schema(tool: Tool) -> Result<(String, CheckedTool), String> {
    let schema = Arc::new(ArgumentSchema::new(&tool.spec.parameters)?);
    Ok((tool.spec.name.clone(), (Arc::new(tool), schema)))
}

fn all_tools() -> impl Iterator<Item = Tool> {
    files::tools()
        .into_iter()
        .chain(exec::tools())
        .chain([plan::tool(), skill_list::tool()])
        .chain(subagents::tools())
}

/// Letters in which two names of one length differ; many where their lengths do.
fn differ(one: &str, other: &str) -> usize {
    if one.len() != other.len() {
        return usize::MAX;
    }
    one.bytes().zip(other.bytes()).filter(|(one, other)| one != other).count()
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
