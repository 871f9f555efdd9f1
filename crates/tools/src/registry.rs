//! The table of the tools of a session, by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use context::tools::server_of;
use context::{FolderInstructions, ToolSpec};
use loom::{Digest, NodeId, Seq, TreeId};
use model::Cancel;
use policy::{
    CallFacts, Effect, LastingAnswers, PathAccess, PathPlace, PathUse, Permission, SandboxLevel,
    SessionFacts, SessionType, Verdict,
};
use serde_json::{Map, Value};
use workspace::protected::{self, ProtectionMatch};
use workspace::{RelativePath, Root, RootAccess};

use crate::arguments::ArgumentSchema;
use crate::call_place::CallPlace;
use crate::changes::{ChangeRecorder, WrittenFile, line_name};
use crate::exec::{self, ChangedFiles, CommandScope, EXEC, beside_commands};
use crate::files;
use crate::folder_instructions::EnteredFolders;
use crate::hooks::{HookEvent, HookedCall, HookedEvent, hooked, on_event, refusal};
use crate::plan;
use crate::search;
use crate::subagents::{self, SUBAGENT_TOOLS};
use crate::tool::{CallScope, Tool, ToolOutput, ToolScope};
use crate::web::NetworkTarget;

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
}

/// A call whose tool is there and whose arguments fit.
pub struct CheckedCall {
    tool: Arc<Tool>,
    scope: Arc<ToolScope>,
    arguments: Value,
    plan_mode: bool,
    entered: Arc<EnteredFolders>,
}

/// What is said of the name of a server's tool that there is not.
const OF_NO_SERVER: &str = "tool_search finds those of servers; one that its server tells otherwise than it was accepted is \
                            switched off until its owner accepts it again (`drawloom mcp accept`)";

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
        let is_given = |name: &str| may_spawn || !SUBAGENT_TOOLS.contains(&name);
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
        Self::of_checked(tools.collect(), self.scope.of_subagent())
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
        })
    }

    /// Until which change of a tree it was told what was written.
    pub fn told_written(&self, tree: TreeId) -> Option<(NodeId, u32, u32)> {
        self.told_written.lock().unwrap_or_else(PoisonError::into_inner).get(&tree).copied()
    }

    /// A turn begins, with this newest event of the store. That of the turn before; none of the first.
    pub fn begin_turn(&self, newest: u64) -> Option<u64> {
        self.entered.clear();
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
        let entered = Arc::clone(&self.entered);
        Ok(CheckedCall { tool, scope, arguments: arguments.clone(), plan_mode: false, entered })
    }
}

/// A tool by its name, with what checks its arguments.
fn with_schema(tool: Tool) -> Result<(String, CheckedTool), String> {
    let schema = Arc::new(ArgumentSchema::new(&tool.spec.parameters)?);
    Ok((tool.spec.name.clone(), (Arc::new(tool), schema)))
}

fn all_tools() -> impl Iterator<Item = Tool> {
    files::tools().into_iter().chain(exec::tools()).chain([plan::tool()]).chain(subagents::tools())
}

/// Letters in which two names of one length differ; many where their lengths do.
fn differ(one: &str, other: &str) -> usize {
    if one.len() != other.len() {
        return usize::MAX;
    }
    one.bytes().zip(other.bytes()).filter(|(one, other)| one != other).count()
}

impl CheckedCall {
    pub fn effects(&self) -> &'static [Effect] {
        self.tool.effects
    }

    /// Whether it changes nothing, so that it may run beside others. Hooks may change whatever they like.
    pub fn only_reads(&self) -> bool {
        self.reads() && !self.scope.has_call_hooks()
    }

    /// Whether it changes nothing itself.
    fn reads(&self) -> bool {
        self.tool.only_reads(&self.scope, &self.arguments)
    }

    /// Whether it only looks at a command that runs: the next look may say something else.
    pub fn looks_at_a_command(&self) -> bool {
        self.tool.steers_commands() && self.reads()
    }

    /// Why it is refused in plan mode whatever policy says: it would reach a command that may write. It blocks.
    pub fn plan_mode_refusal(&self) -> Option<String> {
        self.tool.plan_mode_refusal(&self.scope, &self.arguments).filter(|_| self.plan_mode)
    }

    /// A path of a file tool that lies beneath no root, so that the tool refuses it whatever policy says.
    pub fn unreached(&self) -> Option<String> {
        let named = files::named(&self.tool.spec.name, &self.arguments);
        named.into_iter().find(|path| self.scope.roots.place(path).is_err_and(|error| error.is_outside()))
    }

    /// What policy says of it, where a person allowed some calls before. It blocks: of a folder, what is in it counts.
    pub fn decide(&self, session: &SessionFacts, permissions: &[Permission]) -> Verdict {
        self.scope.policy.decide_with(&self.facts(), session, permissions)
    }

    /// What a yes to the question about it may hold for. It blocks.
    pub fn lasting_answers(&self, session: &SessionFacts) -> LastingAnswers {
        let answers = self.scope.policy.lasting_answers(&self.facts(), session);
        match &self.tool.program {
            // Its name says nothing of what it is called with, and a file that it runs may be another one by then.
            Some(_) if !answers.session.as_ref().is_some_and(Permission::is_of_level) => {
                LastingAnswers::default()
            }
            _ => answers,
        }
    }

    fn facts(&self) -> CallFacts {
        let effects = self.tool.effects.iter().copied().collect();
        let mut paths = self.tool.paths(&self.scope, &self.arguments);
        self.scope.judge_places(&mut paths);
        let command = self.tool.command(&self.scope, &self.arguments);
        // Whatever hands a line to a shell, rules on exec are about it.
        let has_line = command.as_ref().is_some_and(|command| !command.line.is_empty());
        let name = self.tool.spec.name.as_str();
        let bare = server_of(name).map_or(name, |(_, bare)| bare);
        let tool = if has_line { EXEC.to_owned() } else { bare.to_owned() };
        let target = self.tool.target(&self.scope, &self.arguments).unwrap_or_default();
        let NetworkTarget { host, mark } = target;
        let looks_below = files::looks_below(&self.tool.spec.name) && !self.names_files_alone(&paths);
        let server = self.tool.server.clone();
        CallFacts { tool, server, effects, paths, command, host, mark, looks_below }
    }

    fn names_files_alone(&self, paths: &[PathUse]) -> bool {
        let workspace = self.scope.roots.place(".").map(|place| place.root.path());
        workspace.is_ok_and(|workspace| paths.iter().all(|path| workspace.join(path.named()).is_file()))
    }

    /// What tells it from another call of the same tool: the paths it is about, each written one way, or all its
    /// arguments. It blocks.
    pub fn subject(&self) -> String {
        let paths = self.tool.paths(&self.scope, &self.arguments);
        if paths.is_empty() || self.tool.effects.contains(&Effect::Exec) {
            return self.arguments.to_string();
        }
        let paths = paths.into_iter().map(|path| path.named().display().to_string());
        paths.collect::<Vec<_>>().join("\n")
    }

    /// Level of the sandbox it would run in.
    pub fn sandbox(&self) -> SandboxLevel {
        self.scope.commands.as_ref().map_or(SandboxLevel::None, CommandScope::level)
    }

    /// What it rests on beside its arguments: the files and programs that a command names. It blocks.
    ///
    /// # Errors
    /// A file it names cannot be compared with what it will be later, for this reason.
    pub fn rests_on(&self) -> Result<Option<Digest>, String> {
        let Some(mut command) = self.tool.command(&self.scope, &self.arguments) else { return Ok(None) };
        if let Some(line) = &self.tool.program {
            command.line.clone_from(line);
        }
        let roots: Vec<&Root> = self.scope.roots.all().collect();
        let walls = self.scope.commands.as_ref().map(|commands| &commands.walls);
        exec::watched(&roots, &command, walls).map(Some)
    }

    /// Result of the call where it fails before it runs, for this reason, which may quote what its files say.
    pub fn failed(&self, why: String) -> ToolOutput {
        ToolOutput { trust: self.scope.trust, ..ToolOutput::error(why) }
    }

    /// The type of session it is made in.
    pub fn session(&self) -> SessionType {
        self.scope.session
    }

    /// What it would do, as a question shows it, or why it would do nothing; none of a call that shows nothing. It
    /// blocks.
    pub fn preview(&self) -> Option<Result<String, String>> {
        self.tool.preview(&self.scope, &self.arguments)
    }

    /// The call in plan mode, where nothing may be changed: a command sees its folders read-only.
    #[must_use]
    pub fn in_plan_mode(self) -> Self {
        Self { plan_mode: true, ..self }
    }

    /// Runs it. It blocks.
    pub fn run(&self, cancel: &Cancel, changes: &dyn ChangeRecorder, place: &CallPlace) -> ToolOutput {
        changes.begin(self.protected_paths());
        let call = CallScope::new(&self.scope, place, cancel, changes, self.plan_mode);
        let run = || {
            let run = || {
                let output = self.tool.run(&call, self.arguments.clone());
                // A hook may run long, and looks at commands wait for what is being made.
                changes.finish();
                output
            };
            if !self.scope.has_call_hooks() {
                return run();
            }
            let (tool, arguments) = (&*self.tool.spec.name, &self.arguments);
            hooked(&call, &HookedCall { tool, arguments, facts: self.facts() }, run)
        };
        let output = beside_commands(&self.tool, (&call, &self.arguments), run);
        self.entered.enter(&self.scope, changes, &self.places());
        output
    }

    /// Paths of the workspace that it works at, and the folder that its command runs in. It blocks.
    fn places(&self) -> Vec<RelativePath> {
        let paths = self.tool.paths(&self.scope, &self.arguments).into_iter();
        let paths = paths.filter(|path| path.further_root.is_none()).map(|path| path.path);
        let command = self.tool.command(&self.scope, &self.arguments);
        let folder =
            command.filter(|command| command.further_root.is_none()).map(|command| command.directory);
        paths.chain(folder).collect()
    }

    /// Absolute paths of what it changes of the protected set, also by what leads there; none where no command of the session runs.
    fn protected_paths(&self) -> Vec<PathBuf> {
        let running = self.scope.commands.as_ref().filter(|commands| commands.processes.any_runs());
        let (Some(_), Ok(workspace)) = (running, self.scope.roots.place(".")) else {
            return Vec::new();
        };
        let mut paths = self.tool.paths(&self.scope, &self.arguments);
        paths.retain(|path| path.access != PathAccess::Read);
        self.scope.judge_places(&mut paths);
        let is_protected = |path: &&PathUse| {
            matches!(path.place, PathPlace::Protected(_))
                || !matches!(protected::touches(&path.path), ProtectionMatch::Nothing)
        };
        paths.iter().filter(is_protected).map(|path| workspace.root.path().join(path.named())).collect()
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
