//! The tool that runs commands, in the walls of its session (spec: agent §3 *Shell*, security §1).
//!
//! What stands in the workspace is recorded first, so that all that a command changes can be given back.

mod background_changes;
mod changed_files;
mod command_recovery;
mod held;
mod masked_output;
mod network;
mod processes;
mod programs;
mod published;
pub(crate) mod report;
mod touched_files;
mod watched_files;

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Cancel;
use policy::{CommandFacts, CommandStart, PathAccess, PathUse, SandboxLevel};
use sandbox::{CommandLine, Level, LevelReport, Outcome, RootAccess, Run, RunningCommand, Session, Walls};
use schemars::JsonSchema;
use serde::Deserialize;
use text::terminal::{explicit, one_line};
use workspace::protected::{self, NotTouchable};
use workspace::trust::is_instructions;
use workspace::{
    AllowedRoots, FileError, FileId, FileKind, FileProblem, LinkPolicy, RootedPath, never_touched,
};

use crate::changes::ChangeRecorder;
use crate::checkpoint::RootCheckpoints;
use crate::path_uses::{further_root, is_direct_folder};
use crate::tool::{CallScope, Tool, ToolScope};

pub use background_changes::BackgroundChanges;
pub(crate) use background_changes::{beside_commands, recording_beside};
pub use changed_files::{ChangedFiles, ChangedPath, comparing, recording};
pub(crate) use changed_files::{looking, note_outside};
pub use command_recovery::{
    CommandRecovery, UnfinishedRoots, open_closed_root, reach_roots, recover_command,
};
use network::NetArgument;
pub use network::{CommandEgress, CommandNetwork, NetworkRequest};
pub use processes::{ProcessBounds, Processes};
pub(crate) use programs::how_it_runs;
pub(crate) use report::CommandReport;
use touched_files::TouchedFiles;
pub(crate) use watched_files::watched;

/// Name of the tool; rules on it are about every line that is handed to a shell.
pub(crate) const EXEC: &str = "exec";

const DESCRIPTION: &str = "Runs a line of a shell in the workspace and says how it ended, what it printed, and which files \
it changed. It has no terminal, and no network but what `net` asks for; what it leaves running is ended with it, unless it runs in \
the background.";

/// Seconds that a command may run, unless it asks for more.
const TIME: u32 = 60;
const LONGEST_TIME: u32 = 3_600;
/// Bytes of a line that a program can be given (execve(2)), without the one that ends it.
const LONGEST_LINE: usize = (128 << 10) - 1;
/// Bytes of each output stream that are kept.
pub(crate) const OUTPUT: usize = 1 << 20;

/// Where the commands of a session run.
#[derive(Debug)]
pub struct CommandScope {
    /// What its commands share.
    pub session: Session,
    /// What the probe of this machine found.
    pub report: LevelReport,
    /// Walls of every command; a call adds what it touches and its time.
    pub walls: Walls,
    /// Folder of the home for protected files that commands made.
    pub quarantine: PathBuf,
    pub checkpoints: Arc<RootCheckpoints>,
    pub processes: Processes,
    /// What those in the background change.
    pub background_changes: BackgroundChanges,
    /// What its commands with network go through.
    pub egress: CommandEgress,
    /// Whether one of its commands had network, was of a call that was made in sight of something from outside, or was
    /// reached by a published port.
    pub is_tainted: Arc<AtomicBool>,
}

impl CommandScope {
    /// A call meets its commands, and what either has from outside is in both. Whether it is so now.
    pub(crate) fn meets(&self, changes: &dyn ChangeRecorder) -> bool {
        let taints = changes.is_tainted() || self.session.was_reached();
        self.is_tainted.fetch_or(taints, Ordering::SeqCst) || taints
    }

    /// Walls of the session for a subagent, whose commands in the background are its own. It shares `/tmp` and the network of the
    /// session, and so what is from outside in them.
    pub(crate) fn of_subagent(&self) -> Self {
        Self {
            session: self.session.clone(),
            report: self.report.clone(),
            walls: self.walls.clone(),
            quarantine: self.quarantine.clone(),
            checkpoints: Arc::clone(&self.checkpoints),
            processes: self.processes.anew(),
            background_changes: BackgroundChanges::default(),
            egress: self.egress.clone(),
            is_tainted: Arc::clone(&self.is_tainted),
        }
    }

    pub(crate) fn level(&self) -> SandboxLevel {
        Self::policy_level(self.session.level())
    }

    /// A level of the sandbox, as policy has it.
    pub const fn policy_level(level: Level) -> SandboxLevel {
        match level {
            Level::None => SandboxLevel::None,
            Level::Partial => SandboxLevel::Partial,
            Level::Full => SandboxLevel::Full,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Line for /bin/sh.
    command: String,
    /// Folder to run in; the top of the workspace without it.
    directory: Option<String>,
    /// Seconds it may run: 60 without it.
    #[schemars(range(min = 1, max = 3600))]
    timeout: Option<u32>,
    /// Run it on, as a server, and say its number at once.
    #[serde(default)]
    background: bool,
    /// Protected files it writes, like AGENTS.md or .github/workflows/ci.yml: the owner is asked, and they are read-only
    /// otherwise.
    #[serde(default)]
    touches: Vec<String>,
    /// Network it has, which the owner is asked about: off, the hosts it needs (HOST, or HOST:PORT beside 80 and 443; over
    /// its proxy), or open to any.
    #[serde(default)]
    net: NetArgument,
    /// Ports of 127.0.0.1 on which it serves the owner, who is asked. Only with `background`.
    #[serde(default)]
    #[schemars(length(max = 4), inner(range(min = 1024)))]
    publish: Vec<u16>,
}

/// The tool itself, and the one for what it started.
pub(crate) fn tools() -> [Tool; 2] {
    [Tool::running_commands((EXEC, DESCRIPTION), run, command, paths, preview), processes::tool()]
}

fn place<'s>(scope: &'s ToolScope, arguments: &Arguments) -> Result<RootedPath<'s>, String> {
    let named = arguments.directory.as_deref().unwrap_or(".");
    scope.roots.place(named).map_err(|error| format!("{named:?}: {error}"))
}

/// What policy is told of a call.
fn command(scope: &ToolScope, arguments: &Arguments) -> Option<CommandFacts> {
    let RootedPath { root, path: directory } = place(scope, arguments).ok()?;
    let (directory_is_direct, further_root) = (is_direct_folder(root, &directory), further_root(root));
    let line = arguments.command.clone();
    let start = if arguments.background { CommandStart::Background } else { CommandStart::Foreground };
    let (network, publishes) = (arguments.net.wish(), !arguments.publish.is_empty());
    Some(CommandFacts { line, directory, directory_is_direct, further_root, network, publishes, start })
}

fn paths(scope: &ToolScope, arguments: &Arguments) -> Vec<PathUse> {
    let uses = |path: &String| scope.path_use(path, PathAccess::Write);
    arguments.touches.iter().filter_map(uses).collect()
}

/// What a question shows.
fn preview(scope: &ToolScope, arguments: &Arguments) -> Result<String, String> {
    require_startable(arguments, &place(scope, arguments)?)?;
    // Nobody is asked for what is refused afterwards.
    published::check(scope, arguments)?;
    arguments.touches.iter().try_for_each(|path| touched_path(scope, path).map(drop))?;
    let network = network(scope, arguments)?;
    let explicit_line = |line: &str| explicit(&one_line(line)).into_owned();
    let mut shown: Vec<String> =
        arguments.command.lines().map(|line| format!("$ {}", explicit_line(line))).collect();
    shown.extend(command(scope, arguments).and_then(|facts| how_it_runs(scope, &facts, &facts.line)));
    if arguments.background {
        shown.push("in the background".to_owned());
    }
    if network.is_on() {
        shown.push(format!("reaches {}", explicit_line(&network.to_string())));
    }
    shown.extend(published::shown(arguments));
    shown.extend(arguments.touches.iter().map(|path| {
        let steers =
            scope.path_use(path, PathAccess::Write).is_some_and(|used| is_instructions(used.path.as_path()));
        let after = if steers {
            ", in a trusted workspace loaded only once you accept what it says then"
        } else {
            ""
        };
        let is_there = touched_path(scope, path).is_ok_and(|path| path.exists());
        format!("{} {}{after}", if is_there { "writes" } else { "makes" }, explicit_line(path))
    }));
    Ok(shown.join("\n"))
}

/// The network of a call.
///
/// # Errors
/// It names hosts that are none, or asks for what there is not here.
fn network(scope: &ToolScope, arguments: &Arguments) -> Result<NetworkRequest, String> {
    let network = arguments.net.request()?;
    if arguments.background && network == NetworkRequest::Open {
        return Err(
            "a command in the background has no open network: name the hosts it needs in net".to_owned()
        );
    }
    let level = scope.commands.as_ref().map(|commands| commands.session.level());
    level.map_or(Ok(()), |level| network.check(level)).map(|()| network)
}

/// Refuses what no shell can be started with.
fn require_startable(arguments: &Arguments, place: &RootedPath<'_>) -> Result<(), String> {
    let command = &arguments.command;
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    if command.contains('\0') {
        return Err("the command has a NUL character, which no program can be given".to_owned());
    }
    if command.len() > LONGEST_LINE {
        return Err(format!(
            "the command has {} bytes: a line has {LONGEST_LINE} at most; write what is long to a file",
            command.len()
        ));
    }
    let found = place.root.stat(&place.path, LinkPolicy::Follow).map(|found| found.kind);
    let named = arguments.directory.as_deref().unwrap_or(".");
    match found {
        Err(FileError { problem: FileProblem::NotFound, .. }) => {
            Err(format!("the directory {named:?} is not there"))
        }
        Ok(kind) if kind != FileKind::Folder => Err(format!("the directory {named:?} is no folder")),
        // Where it leads is told by the walls.
        _ => Ok(()),
    }
}

fn run(call: &CallScope<'_>, arguments: &Arguments) -> Result<String, String> {
    let scope = call.scope;
    let commands = scope.commands.as_ref().ok_or("commands cannot run on this machine")?;
    published::check(scope, arguments)?;
    require_same_roots(&scope.roots)?;
    let place = place(scope, arguments)?;
    require_startable(arguments, &place)?;
    let network = network(scope, arguments)?;
    let mut walls = walls(commands, call, arguments)?;
    let opened = network.open(&commands.session, &commands.egress, &mut walls)?;
    let is_outside =
        if network.is_on() { call.brings_outside(commands) } else { call.meets_commands(commands) };
    let directory = place.root.path().join(place.path.as_path());
    let run = Run {
        walls,
        command: CommandLine::Shell(arguments.command.clone()),
        directory: directory.clone(),
        level: commands.session.level(),
        quarantine: commands.quarantine.join(call.changes.name()),
        signs_of_life: Vec::new(),
    };
    if arguments.background {
        note_outside(call, &commands.checkpoints);
        return processes::start(call, commands, (arguments, network, opened), run);
    }
    // A command that sees every root read-only changes nothing.
    if call.plan_mode {
        let outcome = looking(call, commands, || run_to_end(&opened.session, run, call.cancel))?;
        return Ok(call.tell(&CommandReport::of(scope, (&outcome, None), &commands.report, None)));
    }
    let touched = TouchedFiles::read(scope, &arguments.touches);
    let touches = run.walls.touches.clone();
    let run = |signs_of_life| run_to_end(&opened.session, Run { signs_of_life, ..run }, call.cancel);
    let (outcome, changed) = recording_beside(call, commands, (is_outside, &touches), run)?;
    match outcome {
        Ok(mut outcome) => {
            opened.correct(&mut outcome);
            // The model reads a new text of instructions once it was accepted.
            touched.difference().iter().for_each(|difference| call.changes.show(difference));
            let ran = Some((&*directory, &*arguments.command));
            let report = CommandReport::of(scope, (&outcome, ran), &commands.report, Some(&changed));
            Ok(call.tell(&CommandReport { network: opened.told(), ..report }))
        }
        Err(why) => {
            call.brief.borrow_mut().extend(changed.brief());
            Err(changed.told_changes().map_or(why.clone(), |changed| format!("{why}\n{changed}")))
        }
    }
}

/// The walls of one call.
fn walls(commands: &CommandScope, call: &CallScope<'_>, arguments: &Arguments) -> Result<Walls, String> {
    let mut walls = commands.walls.clone();
    for (name, value) in call.skills.variables() {
        walls.environment.entry(name).or_insert(value);
    }
    bound(&mut walls, arguments.timeout.unwrap_or(TIME));
    if call.plan_mode {
        walls.close_for_writing();
    }
    for touched in &arguments.touches {
        walls.touches.push(touched_path(call.scope, touched)?);
    }
    Ok(walls)
}

/// The path of a protected file that a command is to write, or make. The decision on the call is made by its name, and the
/// walls open what stands there: so the name has to be the protected one, and no link leads elsewhere.
///
/// # Errors
/// It is not protected, is a link or behind one, lies where nothing is written, or is not there as is the protected folder
/// that it is to be in.
fn touched_path(scope: &ToolScope, touched: &str) -> Result<PathBuf, String> {
    let at = scope.roots.place(touched).map_err(|error| format!("{touched:?}: {error}"))?;
    if at.root.access() == RootAccess::ReadOnly {
        return Err(format!("{touched} lies in a folder that is open for reading only"));
    }
    let found = match at.root.stat(&at.path, LinkPolicy::Refuse) {
        Err(error) if matches!(error.problem, FileProblem::NotFound) => None,
        other => Some(other.map_err(|error| error.to_string())?),
    };
    if found.as_ref().is_some_and(|found| found.kind == FileKind::Symlink) {
        return Err(format!("{touched} is a link: name in touches the file that it leads to"));
    }
    protected::check_touch(&at.path, found.is_some()).map_err(|problem| format!("{touched} {problem}"))?;
    let path = at.root.path().join(at.path.as_path());
    let is_folder = found.is_some_and(|found| found.kind == FileKind::Folder);
    if is_folder && !never_touched(at.root.path(), &path).is_ok_and(|never| never.is_empty()) {
        return Err(format!("{touched} {}", NotTouchable::HoldsNever));
    }
    Ok(path)
}

/// Commands reach folders by their paths, file tools by what was opened: both have to be the same.
///
/// # Errors
/// The folder of a root was replaced by another one.
pub(crate) fn require_same_roots(roots: &AllowedRoots) -> Result<(), String> {
    for root in roots.all().filter(|root| !root.is_skill()) {
        let there = root.path().metadata().map(|there| FileId { device: there.dev(), inode: there.ino() });
        if there.ok() != Some(root.id()) {
            let path = root.path().display();
            return Err(format!(
                "{path} is not the folder that was opened: it was moved or replaced meanwhile"
            ));
        }
    }
    Ok(())
}

/// Bounds what a command prints, and the seconds it runs.
pub(crate) fn bound(walls: &mut Walls, seconds: u32) {
    walls.limits.output = OUTPUT;
    walls.limits.time_ms = u64::from(seconds.clamp(1, LONGEST_TIME)) * 1_000;
}

/// Runs a command until it ends, or ends it where the turn is stopped. It blocks.
fn run_to_end(session: &Session, run: Run, cancel: &Cancel) -> Result<Outcome, String> {
    let mut running: RunningCommand = session.start(run, None).map_err(|error| error.to_string())?;
    let mut cancel = cancel.clone();
    let outcome = blocking(async {
        tokio::select! {
            biased;
            outcome = running.outcome() => return outcome,
            () = cancel.cancelled() => running.cancel(),
        }
        running.outcome().await
    })?;
    outcome.map_err(|error| error.to_string())
}

/// Waits for something on this thread.
pub(crate) fn blocking<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.map(|runtime| runtime.block_on(work)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use crate::files::fixture::Fixture;

    #[test]
    fn what_it_touches_is_the_protected_file_itself_and_no_link_to_one() {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.path("d/.vscode")).unwrap();
        fixture.put("AGENTS.md", "ours\n");
        fixture.put("plain", "ours\n");
        for (target, link) in
            [("AGENTS.md", "one"), ("d/.vscode", "two"), ("d", "way"), ("AGENTS.md", "CLAUDE.md")]
        {
            symlink(target, fixture.path(link)).unwrap();
        }
        let previewed = |touched: &str| {
            let arguments = json!({"command": "true", "touches": [touched]});
            fixture.registry.check("exec", &arguments).unwrap().preview().unwrap()
        };
        for touched in ["AGENTS.md", "d/.vscode", "./d/../AGENTS.md", ".envrc", "new/AGENTS.md"] {
            assert_eq!(previewed(touched).err(), None, "{touched}");
        }
        for (touched, why) in [
            ("one", "one is a link: name in touches the file that it leads to"),
            ("two", "is a link"),
            ("CLAUDE.md", "is a link"),
            ("way/.vscode", "link"),
            ("plain", "plain is not protected itself"),
            ("d", "d is not protected itself"),
            ("d/.vscode/new", "what protects it, d/.vscode"),
            ("skills/new", "is not there: name in touches what protects it, skills"),
        ] {
            let refused = previewed(touched).unwrap_err();
            assert!(refused.contains(why), "{touched}: {refused}");
        }
    }
}
