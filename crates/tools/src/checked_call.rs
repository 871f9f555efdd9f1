//! A call that was checked: what policy decides on it, what a question about it shows, and its run.

use std::path::PathBuf;
use std::sync::Arc;

use context::tools::server_of;
use loom::{Digest, ToolStatus};
use model::Cancel;
use policy::{
    CallFacts, Effect, LastingAnswers, PathAccess, PathPlace, PathUse, Permission, SandboxLevel,
    SessionFacts, SessionType, Verdict,
};
use serde_json::Value;
use workspace::protected::{self, ProtectionMatch};
use workspace::{RelativePath, Root};

use crate::call_place::CallPlace;
use crate::changes::ChangeRecorder;
use crate::exec::{self, CommandScope, EXEC, beside_commands};
use crate::files;
use crate::folder_instructions::EnteredFolders;
use crate::hooks::{HookedCall, hooked};
use crate::session_skills::SessionSkills;
use crate::tool::{CallScope, Tool, ToolOutput, ToolScope};
use crate::web::NetworkTarget;

/// A call whose tool is there and whose arguments fit.
pub struct CheckedCall {
    pub(crate) tool: Arc<Tool>,
    pub(crate) scope: Arc<ToolScope>,
    pub(crate) arguments: Value,
    pub(crate) plan_mode: bool,
    pub(crate) entered: Arc<EnteredFolders>,
    pub(crate) skills: Arc<SessionSkills>,
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
        let facts = self.facts();
        let refusal = self.skills.followed().refusal(&self.scope, &facts);
        // Whoever allowed a command before did not hear what it gets now.
        let permissions = if self.variables_told().is_some() { &[] } else { permissions };
        refusal.unwrap_or_else(|| self.scope.policy.decide_with(&facts, session, permissions))
    }

    /// What a yes to the question about it may hold for. It blocks.
    pub fn lasting_answers(&self, session: &SessionFacts) -> LastingAnswers {
        let answers = self.scope.policy.lasting_answers(&self.facts(), session);
        // What is allowed for good is the command, whatever it is told.
        if self.variables_told().is_some() {
            return LastingAnswers::default();
        }
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
        let shown = self.tool.preview(&self.scope, &self.arguments)?;
        Some(shown.map(|shown| match self.variables_told() {
            Some(told) => format!("{shown}\n{told}"),
            None => shown,
        }))
    }

    /// What a question says of the variables that its command gets; none of another call.
    fn variables_told(&self) -> Option<String> {
        (self.tool.spec.name == EXEC).then(|| self.skills.followed().told_variables())?
    }

    /// The call in plan mode, where nothing may be changed: a command sees its folders read-only.
    #[must_use]
    pub fn in_plan_mode(self) -> Self {
        Self { plan_mode: true, ..self }
    }

    /// Runs it. It blocks.
    pub fn run(&self, cancel: &Cancel, changes: &dyn ChangeRecorder, place: &CallPlace) -> ToolOutput {
        changes.begin(self.protected_paths());
        let mut call = CallScope::new(&self.scope, place, cancel, changes, self.plan_mode);
        call.skills = self.skills.followed();
        call.session_skills = Arc::clone(&self.skills);
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
        let reads = self.tool.spec.name == files::READ;
        let before = if reads { self.skills.of_read(&self.scope, &self.read_paths()) } else { Vec::new() };
        let mut output = beside_commands(&self.tool, (&call, &self.arguments), run);
        self.entered.enter(&self.scope, changes, &self.places());
        if reads && output.status == ToolStatus::Ok {
            let told = self.skills.has_read(&self.scope, &self.read_paths(), before);
            told.iter().for_each(|told| output.add_beside(told));
        }
        if self.tool.spec.name == EXEC {
            output.brief.extend(self.skills.untold_missing_variables());
        }
        output
    }

    /// Follows the skills whose files it read at some time before. It blocks.
    pub(crate) fn follow_read(&self) {
        self.skills.has_read(&self.scope, &self.read_paths(), Vec::new());
    }

    fn read_paths(&self) -> Vec<PathUse> {
        self.tool.paths(&self.scope, &self.arguments)
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
