//! A tool, what it works in, and what it says.

mod output;
mod typed;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use context::ToolSpec;
use loom::{Digest, ToolStatus, Trust};
use media::Picture;
use model::Cancel;
use policy::{
    Attendance, CallFacts, CommandFacts, Decision, Effect, PathAccess, PathUse, SandboxLevel, ServerFacts,
    SessionFacts, SessionType,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use text::mask::Masker;
use text::terminal::explicit;
use workspace::{AllowedRoots, RelativePath, Root};

use crate::call_place::CallPlace;
use crate::changes::{ChangeRecorder, SeenFiles};
use crate::exec::{ChangedFiles, CommandReport, CommandScope, how_it_runs};
use crate::hooks::Hook;
use crate::path_uses::{self, path_use};
use crate::session_policy::SessionPolicy;
use crate::session_skills::{FollowedSkills, SessionSkills};
use crate::web::NetworkTarget;

pub use output::ToolOutput;
pub(crate) use typed::{bounded, spec};
use typed::{called_with, of_arguments, previewing, running};

/// What the calls of a session work in.
#[derive(Debug)]
pub struct ToolScope {
    pub roots: Arc<AllowedRoots>,
    /// Trust of what its files say.
    pub trust: Trust,
    /// Secrets are masked where text enters.
    pub masker: Arc<Masker>,
    /// What decides which calls run.
    pub policy: SessionPolicy,
    pub session: SessionType,
    /// The home's folder of locks.
    pub locks: PathBuf,
    /// Permission bits that new files and folders do not get: the owner's.
    pub umask: u32,
    pub seen: SeenFiles,
    /// Largest picture that is decoded, in pixels.
    pub max_pixels: u64,
    /// How long `glob` and `grep` look for files.
    pub search_time: Duration,
    /// Where commands run; none where no tool and no hook runs any.
    pub commands: Option<CommandScope>,
    /// Commands of the owner that see its calls.
    pub hooks: Vec<Hook>,
}

impl ToolScope {
    /// A path as it was given, for a decision on the call; none of one that lies nowhere.
    pub(crate) fn path_use(&self, path: &str, access: PathAccess) -> Option<PathUse> {
        let place = self.roots.place(path).ok()?;
        Some(path_use(place.root, place.path, access))
    }

    /// Finds out which paths of a call are protected by what leads to them. It blocks.
    pub(crate) fn judge_places(&self, paths: &mut [PathUse]) {
        path_uses::judge_places(&self.roots, paths);
    }

    /// Whether hooks see calls.
    pub(crate) fn has_call_hooks(&self) -> bool {
        self.hooks.iter().any(Hook::sees_calls)
    }

    /// Refuses what is read of a file on the way, which no decision on the call named.
    pub(crate) fn require_read(&self, root: &Root, path: &RelativePath) -> Result<(), String> {
        // Without rules everything beneath the roots is read.
        if self.policy.is_empty() {
            return Ok(());
        }
        let session = SessionFacts {
            kind: self.session,
            attendance: Attendance::Unattended,
            sandbox: SandboxLevel::None,
            tainted: false,
            plan_mode: false,
            keeps_old_bytes: true,
        };
        for tool in ["read", "grep"] {
            let paths = vec![path_use(root, path.clone(), PathAccess::Read)];
            let effects = [Effect::Read].into();
            let call = CallFacts { tool: tool.to_owned(), effects, paths, ..CallFacts::default() };
            let verdict = self.policy.decide(&call, &session);
            if verdict.decision == Decision::Deny {
                let path = root.shown(path);
                return Err(format!("{} is not read: {}", path.display(), verdict.reason));
            }
        }
        Ok(())
    }
}

/// One call at work.
pub(crate) struct CallScope<'a> {
    pub(crate) scope: &'a ToolScope,
    pub(crate) place: &'a CallPlace,
    pub(crate) cancel: &'a Cancel,
    pub(crate) changes: &'a dyn ChangeRecorder,
    /// Whether nothing may be changed.
    pub(crate) plan_mode: bool,
    /// Whether something was read that comes from outside.
    pub(crate) from_outside: Cell<bool>,
    /// Pictures that it shows.
    pub(crate) pictures: RefCell<Vec<Picture>>,
    /// What a person reads of it while its turn goes on, beside the first line of what it says.
    pub(crate) brief: RefCell<Vec<String>>,
    /// Skills that were followed when it began.
    pub(crate) skills: FollowedSkills,
    /// Skills of the session.
    pub(crate) session_skills: Arc<SessionSkills>,
    /// What commands in the background had changed before each command of this call began.
    pub(crate) background: RefCell<Vec<ChangedFiles>>,
}

impl<'a> CallScope<'a> {
    pub(crate) fn new(
        scope: &'a ToolScope,
        place: &'a CallPlace,
        cancel: &'a Cancel,
        changes: &'a dyn ChangeRecorder,
        plan_mode: bool,
    ) -> Self {
        Self {
            scope,
            place,
            cancel,
            changes,
            plan_mode,
            from_outside: Cell::new(false),
            pictures: RefCell::default(),
            brief: RefCell::default(),
            skills: FollowedSkills::default(),
            session_skills: Arc::default(),
            background: RefCell::default(),
        }
    }

    /// Files were read, by the digests of their bytes: their trust is that of what the call says (spec: security §3). It
    /// blocks.
    pub(crate) fn has_read(&self, digests: Vec<Digest>) {
        if !digests.is_empty() && self.changes.knows_outside() && !self.changes.outside(digests).is_empty() {
            self.from_outside.set(true);
        }
    }

    /// The text that a command is told with, and in brief to a person.
    pub(crate) fn tell(&self, report: &CommandReport<'_>) -> String {
        self.brief.replace(report.brief(self.scope));
        report.told(self.scope)
    }

    /// A command of a session runs, or one is looked at: they share `/tmp`, and what a tainted call leaves there or in a
    /// process is from outside for the later ones, and so is what comes in by a published port. Whether it is so now.
    pub(crate) fn meets_commands(&self, commands: &CommandScope) -> bool {
        let is_tainted = commands.meets(self.changes);
        if is_tainted {
            self.from_outside.set(true);
        }
        is_tainted
    }

    /// [`Self::meets_commands`] for a command with network, or one that is told something from outside: all that it says
    /// and leaves is from there.
    pub(crate) fn brings_outside(&self, commands: &CommandScope) -> bool {
        commands.is_tainted.store(true, Ordering::SeqCst);
        self.meets_commands(commands)
    }
}

/// One tool.
pub struct Tool {
    pub spec: ToolSpec,
    pub(crate) effects: &'static [Effect],
    run: Box<Run>,
    paths: Box<Paths>,
    command: Option<Box<Command>>,
    preview: Option<Box<Preview>>,
    steering: Option<Steering>,
    target: Option<Box<OfCall<NetworkTarget>>>,
    /// Line that a configured tool runs, whatever it is called with.
    pub(crate) program: Option<String>,
    /// Server that it is of.
    pub(crate) server: Option<ServerFacts>,
}

/// What depends on how a call steers a command that runs.
struct Steering {
    only_looks: Box<OfCall<bool>>,
    plan_mode: Box<OfCall<Option<String>>>,
}

/// Work of a tool. It blocks: whoever runs it does so on a thread that may wait for the disk.
type Run = dyn Fn(&CallScope<'_>, Value) -> ToolOutput + Send + Sync;
/// Paths that a call is about, with what it does to them. It blocks.
type Paths = dyn Fn(&ToolScope, &Value) -> Vec<PathUse> + Send + Sync;
/// What a call says of itself.
type OfCall<T> = dyn Fn(&ToolScope, &Value) -> T + Send + Sync;
/// Command that a call runs.
type Command = dyn Fn(&ToolScope, &Value) -> Option<CommandFacts> + Send + Sync;
/// What a call would do, as a question shows it. It blocks.
type Preview = dyn Fn(&ToolScope, Value) -> Result<String, String> + Send + Sync;

impl Tool {
    /// A core tool that reads files. Its schema is that of `A`; a failure is told to the model.
    pub(crate) fn reading<A: DeserializeOwned + JsonSchema + 'static>(
        name: &str,
        description: &str,
        run: fn(&CallScope<'_>, &A) -> Result<String, String>,
    ) -> Self {
        let paths = |scope: &ToolScope, arguments: &Value| {
            // Those that need none are about the workspace without one.
            let path = arguments.get("path").and_then(Value::as_str).unwrap_or(".");
            let named = scope.path_use(path, PathAccess::Read);
            named.map_or_else(Vec::new, |named| path_uses::read_paths(&scope.roots, named))
        };
        Self {
            spec: spec::<A>(name, description),
            effects: &[Effect::Read],
            run: Box::new(running(run)),
            paths: Box::new(paths),
            command: None,
            preview: None,
            steering: None,
            target: None,
            program: None,
            server: None,
        }
    }

    /// A core tool that changes files: those that `paths` names, as `preview` shows.
    pub(crate) fn writing<A: DeserializeOwned + JsonSchema + 'static>(
        name: &str,
        description: &str,
        run: fn(&CallScope<'_>, &A) -> Result<String, String>,
        paths: fn(&ToolScope, &A) -> Vec<PathUse>,
        preview: fn(&ToolScope, &A) -> Result<String, String>,
    ) -> Self {
        Self {
            spec: spec::<A>(name, description),
            effects: &[Effect::Read, Effect::Write],
            run: Box::new(running(run)),
            paths: Box::new(of_arguments(paths)),
            command: None,
            preview: Some(Box::new(previewing(preview))),
            steering: None,
            target: None,
            program: None,
            server: None,
        }
    }

    /// A core tool that runs commands.
    pub(crate) fn running_commands<A: DeserializeOwned + JsonSchema + 'static>(
        (name, description): (&str, &str),
        run: fn(&CallScope<'_>, &A) -> Result<String, String>,
        command: fn(&ToolScope, &A) -> Option<CommandFacts>,
        paths: fn(&ToolScope, &A) -> Vec<PathUse>,
        preview: fn(&ToolScope, &A) -> Result<String, String>,
    ) -> Self {
        Self {
            spec: spec::<A>(name, description),
            effects: &[Effect::Exec],
            run: Box::new(running(run)),
            paths: Box::new(of_arguments(paths)),
            command: Some(Box::new(of_arguments(command))),
            preview: Some(Box::new(previewing(preview))),
            steering: None,
            target: None,
            program: None,
            server: None,
        }
    }

    /// A core tool that looks at commands which run; what it hands them is a command too. `only_looks` says whether a
    /// call leaves them as they are, `plan_mode` why one is refused in plan mode.
    pub(crate) fn steering_commands<A: DeserializeOwned + JsonSchema + 'static>(
        (name, description): (&str, &str),
        run: fn(&CallScope<'_>, &A) -> Result<String, String>,
        command: fn(&ToolScope, &A) -> Option<CommandFacts>,
        preview: fn(&ToolScope, &A) -> Result<String, String>,
        only_looks: fn(&ToolScope, &A) -> bool,
        plan_mode: fn(&ToolScope, &A) -> Option<String>,
    ) -> Self {
        Self {
            spec: spec::<A>(name, description),
            effects: &[Effect::Read],
            run: Box::new(running(run)),
            paths: Box::new(|_, _| Vec::new()),
            command: Some(Box::new(of_arguments(command))),
            preview: Some(Box::new(previewing(preview))),
            steering: Some(Steering {
                only_looks: Box::new(of_arguments(only_looks)),
                plan_mode: Box::new(of_arguments(plan_mode)),
            }),
            target: None,
            program: None,
            server: None,
        }
    }

    /// A tool that runs a line which is none of the model's; a question shows it, the network it has and the arguments.
    pub(crate) fn running_a_program(
        spec: ToolSpec,
        effects: &'static [Effect],
        (command, line, reaches): (CommandFacts, String, Option<String>),
        run: impl Fn(&CallScope<'_>, &Value) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        let shown = line.lines().map(|line| format!("$ {}\n", explicit(line))).collect::<String>();
        let reaches = reaches.map_or_else(String::new, |reaches| format!("reaches {}\n", explicit(&reaches)));
        let (facts, runs) = (command.clone(), line.clone());
        let preview = move |scope: &ToolScope, arguments: Value| {
            let how = how_it_runs(scope, &facts, &runs).map_or_else(String::new, |how| format!("{how}\n"));
            Ok(format!("{shown}{how}{reaches}{}", called_with(scope, &arguments)))
        };
        Self {
            spec,
            effects,
            run: Box::new(running(run)),
            paths: Box::new(|_, _| Vec::new()),
            command: Some(Box::new(move |_, _| Some(command.clone()))),
            preview: Some(Box::new(preview)),
            steering: None,
            target: None,
            program: Some(line),
            server: None,
        }
    }

    /// A core tool that reads what is kept of the conversation it is called in, and says how far that is believed.
    pub fn of_conversation<A: DeserializeOwned + JsonSchema + 'static>(
        name: &str,
        description: &str,
        run: impl Fn(&CallPlace, A) -> Result<(String, Trust), String> + Send + Sync + 'static,
    ) -> Self {
        let run = move |call: &CallScope<'_>, arguments: Value| {
            let read = serde_json::from_value::<A>(arguments).map_err(|error| error.to_string());
            match read.and_then(|arguments| run(call.place, arguments)) {
                Ok((text, trust)) => {
                    ToolOutput::said(ToolStatus::Ok, bounded(call.place.masked(&text)), trust)
                }
                Err(why) => ToolOutput::error(call.place.masked(&why)),
            }
        };
        Self::reading_no_files(spec::<A>(name, description), run)
    }

    /// A core tool that reaches out over the network: to what `target` says, as `preview` shows. Whatever it
    /// says once a request is prepared comes from outside, an error as well.
    pub(crate) fn reaching_out<A: DeserializeOwned + JsonSchema + 'static, P: 'static>(
        (name, description): (&str, &str),
        prepare: impl Fn(&CallScope<'_>, &A) -> Result<P, String> + Send + Sync + 'static,
        run: impl Fn(&CallScope<'_>, &A, P) -> Result<String, String> + Send + Sync + 'static,
        target: impl Fn(&ToolScope, &A) -> NetworkTarget + Send + Sync + 'static,
        preview: impl Fn(&ToolScope, &A) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        let run = running(move |call: &CallScope<'_>, asked: &A| {
            let prepared = prepare(call, asked)?;
            call.from_outside.set(true);
            run(call, asked, prepared)
        });
        let tool = Self::reading_no_files(spec::<A>(name, description), run);
        Self {
            effects: &[Effect::Net],
            preview: Some(Box::new(previewing(preview))),
            target: Some(Box::new(of_arguments(target))),
            ..tool
        }
    }

    /// A tool that reads no file.
    pub(crate) fn reading_no_files(
        spec: ToolSpec,
        run: impl Fn(&CallScope<'_>, Value) -> ToolOutput + Send + Sync + 'static,
    ) -> Self {
        Self {
            spec,
            effects: &[Effect::Read],
            run: Box::new(run),
            paths: Box::new(|_, _| Vec::new()),
            command: None,
            preview: None,
            steering: None,
            target: None,
            program: None,
            server: None,
        }
    }

    /// Runs it with arguments that were checked.
    pub(crate) fn run(&self, call: &CallScope<'_>, arguments: Value) -> ToolOutput {
        (self.run)(call, arguments)
    }

    /// Whether it runs commands, or steers those that run.
    pub(crate) fn runs_commands(&self) -> bool {
        self.command.is_some()
    }

    /// The command that a call runs; none of one that runs none.
    pub(crate) fn command(&self, scope: &ToolScope, arguments: &Value) -> Option<CommandFacts> {
        self.command.as_ref().and_then(|command| command(scope, arguments))
    }

    /// What a call reaches over the network; none of a tool that reaches nothing. It blocks.
    pub(crate) fn target(&self, scope: &ToolScope, arguments: &Value) -> Option<NetworkTarget> {
        self.target.as_ref().map(|target| target(scope, arguments))
    }

    /// Whether it looks at commands that run.
    pub(crate) fn steers_commands(&self) -> bool {
        self.steering.is_some()
    }

    /// Whether a call changes nothing: neither a file nor a command that runs.
    pub(crate) fn only_reads(&self, scope: &ToolScope, arguments: &Value) -> bool {
        let reads = self.effects.iter().all(|effect| matches!(effect, Effect::Read | Effect::Net));
        reads && self.steering.as_ref().is_none_or(|steering| (steering.only_looks)(scope, arguments))
    }

    /// Whether it reads and does nothing else, whatever it is called with.
    pub fn is_read_only(&self) -> bool {
        self.effects == [Effect::Read] && !self.steers_commands()
    }

    /// Whether a call may change files of the workspace.
    pub(crate) fn changes_files(&self, scope: &ToolScope, arguments: &Value) -> bool {
        let has_files = self.runs_commands() || !(self.paths)(scope, arguments).is_empty();
        has_files && !self.only_reads(scope, arguments)
    }

    /// Why a call is refused in plan mode whatever policy says; none of one that is not.
    pub(crate) fn plan_mode_refusal(&self, scope: &ToolScope, arguments: &Value) -> Option<String> {
        self.steering.as_ref().and_then(|steering| (steering.plan_mode)(scope, arguments))
    }

    /// What it would do, as a question shows it; none of a tool that shows nothing.
    pub(crate) fn preview(&self, scope: &ToolScope, arguments: &Value) -> Option<Result<String, String>> {
        self.preview.as_ref().map(|preview| preview(scope, arguments.clone()))
    }

    /// The tool as one that changes a tree: a question shows what it is called with.
    #[must_use]
    pub fn changing_trees(self) -> Self {
        let preview: Box<Preview> = Box::new(|scope, arguments| Ok(called_with(scope, &arguments)));
        Self { effects: &[Effect::Read, Effect::Write], preview: Some(preview), ..self }
    }

    /// The tool as one of a server: a question shows what it is called with.
    #[must_use]
    pub(crate) fn of_server(self, server: ServerFacts, effects: &'static [Effect]) -> Self {
        let preview: Box<Preview> = Box::new(|scope, arguments| Ok(called_with(scope, &arguments)));
        Self { effects, preview: Some(preview), server: Some(server), ..self }
    }

    /// The tool outside of the core: it is sent only while all tools fit.
    #[must_use]
    pub fn beside_the_core(mut self) -> Self {
        self.spec.core = false;
        self
    }

    /// The paths of a call. One that lies nowhere is none of them: the tool refuses it. It blocks.
    pub(crate) fn paths(&self, scope: &ToolScope, arguments: &Value) -> Vec<PathUse> {
        (self.paths)(scope, arguments)
    }
}
