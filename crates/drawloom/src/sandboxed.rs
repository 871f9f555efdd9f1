//! `drawloom sandbox -- CMD`: a command of the owner in the walls that an agent's commands have.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use commands::args::maintenance::SandboxArgs;
use commands::results::maintenance::{ProtectedChange, Sandboxed};
use commands::settings::{ExecSettings, WebSettings};
use commands::shell::quoted;
use commands::walls::CommandRoots;
use commands::{CommandError, CommandOutcome};
use model::Clock;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sandbox::{
    CommandLine, Ending, Level, LevelReport, Notice, Outcome, OutputSink, OutputStream, Run, Sandbox,
    SandboxError, Session,
};
use text::terminal::{VisibleStream, one_line};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Sender};
use workspace::lies_in_never;

use crate::interrupt;
use crate::output;
use crate::paths::InvocationPaths;

/// Exit code of a command whose time was over, and of one that went over a limit; as `timeout` has it.
const OVER: u8 = 124;

/// Exit code of a command that wrote where nobody reads, as a shell has it.
const UNREAD: u8 = 128 + SignalKind::pipe().as_raw_value() as u8;

/// Runs the command and prints what it prints, as it comes.
///
/// # Errors
/// When the workspace cannot be found, or the walls cannot be built.
pub(crate) fn run(
    arguments: &SandboxArgs,
    paths: &InvocationPaths,
    (settings, web): (&ExecSettings, &WebSettings),
    json: bool,
) -> Result<CommandOutcome, CommandError> {
    let sandbox = Sandbox::of_this_program().map_err(|error| refused(&SandboxError::Start(error)))?;
    let report = sandbox.probe();
    if report.level == Level::None {
        return Err(CommandError::refused(
            "no_sandbox",
            format!("there are no walls on this machine: {}", report.missing.join("; ")),
            "run the command yourself, if you trust it",
        ));
    }
    let (mut run, session, roots) = walled(arguments, paths, settings, (&sandbox, &report))?;
    let runtime = interrupt::runtime()?;
    let network = {
        let _within = runtime.enter();
        commands::walls::open_network(&arguments.net, (&session, &mut run.walls), web)?
    };
    // Heard from before the command begins: none of them may end this process with the command not yet looked at.
    let mut signals = {
        let _within = runtime.enter();
        EndSignals::listen().map_err(|error| refused(&SandboxError::Start(error)))?
    };
    let (broke, mut breaks) = mpsc::channel(1);
    let sink = (!json).then(|| printing(broke));
    let (ended, unread) = (Cell::new(None), Cell::new(None));
    let go = || {
        let mut running = match piped_input().map_err(SandboxError::Start)? {
            Some(input) => network.session.start_with_input(run, sink, input)?,
            None => network.session.start(run, sink)?,
        };
        runtime.block_on(async {
            tokio::select! {
                biased;
                outcome = running.outcome() => return outcome,
                code = signals.heard() => ended.set(Some(code)),
                // As a pipe that nobody reads ends whoever writes to it.
                Some(why) = breaks.recv() => {
                    unread.set(Some(why));
                    ended.set(Some(UNREAD));
                }
            }
            // What it leaves is still looked at.
            running.cancel();
            running.outcome().await
        })
    };
    let (outcome, changed) = if json {
        let compared = commands::walls::comparing((&paths.home, &paths.guard()?), &roots, settings, go);
        compared.map_err(|why| {
            let message = format!("what stands in the workspace could not be recorded: {why}");
            CommandError::new("not_recorded", 6, message, "without --json nothing is recorded")
        })?
    } else {
        (go(), Ok(Vec::new()))
    };
    runtime.shutdown_background();
    let cancelled_by =
        if ended.get() == Some(UNREAD) { "as nobody reads what it prints" } else { "by Ctrl-C or a signal" };
    output::unless_read_enough(unread.take().or_else(|| breaks.try_recv().ok()).map_or(Ok(()), Err))?;
    let mut told = told(&outcome.map_err(|error| refused(&error))?, &report, cancelled_by);
    told.notices.extend(network.lines());
    if let Some(code) = ended.get().filter(|_| told.exit == crate::run::INTERRUPTED) {
        told.exit = code;
    }
    match changed {
        Ok(changed) => told.changed = changed,
        Err(why) => told.notices.push(format!("which files it changed could not be found out: {why}")),
    }
    Ok(CommandOutcome::Sandboxed(told))
}

/// What stands on standard input, where that is a pipe, a socket or a file; nothing at a terminal. It goes through a pipe, so
/// that the command gets its bytes and not what they come from.
fn piped_input() -> io::Result<Option<OwnedFd>> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let kind = input.metadata()?.file_type();
    if !(kind.is_file() || kind.is_fifo() || kind.is_socket()) {
        return Ok(None);
    }
    let (theirs, mut ours) = io::pipe()?;
    std::thread::spawn(move || {
        // Who stops reading wants no more of it.
        io::copy(&mut input, &mut ours).ok();
    });
    Ok(Some(theirs.into()))
}

/// Signals that end a command: Ctrl-C, the wish of another program, the end of the terminal.
struct EndSignals([Signal; 3]);

impl EndSignals {
    fn listen() -> io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    /// Waits for one. Returns the exit code of what it ends.
    async fn heard(&mut self) -> u8 {
        let [interrupt, terminate, hangup] = &mut self.0;
        let kind = tokio::select! {
            _ = interrupt.recv() => SignalKind::interrupt(),
            _ = terminate.recv() => SignalKind::terminate(),
            _ = hangup.recv() => SignalKind::hangup(),
        };
        128 + kind.as_raw_value() as u8
    }
}

/// Exit code of a program that cannot be executed, as shells give it.
const NOT_EXECUTABLE: u8 = 126;

fn refused(error: &SandboxError) -> CommandError {
    let message = one_line(&error.to_string()).into_owned();
    match error {
        SandboxError::Program { is_there: true, .. } => CommandError::new(
            "not_executable",
            NOT_EXECUTABLE,
            message,
            "it is there and not executable: `chmod u+x` makes a script or program of yours so",
        ),
        SandboxError::Program { program, .. } => {
            let hint = commands::walls::program_of_owner(program).map(|file| {
                let file = one_line(&file.to_string_lossy()).into_owned();
                format!("it is {file} for you: commands see it once exec.toolchains names its folder")
            });
            let hint = hint.unwrap_or_else(|| "check its name".to_owned());
            CommandError::not_found("such command:", &message, hint)
        }
        SandboxError::Touches { .. } => CommandError::usage(
            message,
            "--touches takes protected files and folders, as AGENTS.md or .github/workflows",
        ),
        SandboxError::Unrecorded { folder, problem } => {
            CommandError::file("what was there before the command cannot be written down in", folder, problem)
        }
        SandboxError::Directory(_) | SandboxError::Path { .. } => {
            CommandError::refused("outside", message, "name a path of the workspace")
        }
        _ => CommandError::refused("no_sandbox", message, "`drawloom doctor` looks at the installation"),
    }
}

/// The walls of the workspace that was chosen, a session for the one command, and what that may write.
fn walled(
    arguments: &SandboxArgs,
    paths: &InvocationPaths,
    settings: &ExecSettings,
    (sandbox, report): (&Sandbox, &LevelReport),
) -> Result<(Run, Session, CommandRoots), CommandError> {
    let chosen = paths.workspace()?;
    // The command would read all keys there.
    if let Some(why) = paths.refused_as_root(&chosen) {
        return Err(CommandError::refused(
            "bad_workspace",
            format!("no command runs in {}: {why}", one_line(&chosen.folder.to_string_lossy())),
            "go to a folder of its own, or name one with --workspace",
        ));
    }
    let mut walls =
        commands::walls::of_workspace(&paths.home, &chosen.folder, &paths.key(&chosen), settings)?;
    let named = &arguments.allow.folders;
    let further = commands::further_roots::further_roots(named, Some(&chosen.folder), &paths.surroundings())?;
    commands::further_roots::open_in(&mut walls, &further);
    let here = std::env::current_dir().map_err(|error| crate::paths::no_working_directory(&error))?;
    walls.touches = arguments.touches.iter().map(|path| here.join(path)).collect();
    walls.limits.time_ms = arguments.timeout.saturating_mul(1_000);
    let inside =
        here.canonicalize().is_ok_and(|here| walls.roots.iter().any(|root| here.starts_with(&root.path)));
    let place = paths.home.join("sandbox").join("tmp");
    let around = (paths.home.as_path(), chosen.folder.as_path());
    let session = commands::walls::open_session(sandbox, report.level, &place, around, settings)?;
    let run = Run {
        walls,
        command: CommandLine::Program(arguments.command.iter().map(Into::into).collect()),
        directory: if inside { here } else { chosen.folder.clone() },
        level: report.level,
        quarantine: paths.home.join("quarantine").join(format!(
            "{}-{}",
            Clock::system().now(),
            std::process::id()
        )),
        signs_of_life: Vec::new(),
    };
    let roots = CommandRoots { key: paths.key(&chosen), workspace: chosen.folder, further };
    Ok((run, session, roots))
}

/// Prints output as it comes: to a pipe its bytes, to a terminal what it would not obey. `broke` is told once why it takes
/// nothing.
fn printing(broke: Sender<io::Error>) -> OutputSink {
    let mut standard = Shown::new(io::stdout().is_terminal());
    let mut error = Shown::new(io::stderr().is_terminal());
    Box::new(move |stream, bytes| {
        let printed = match stream {
            OutputStream::Standard => standard.print(bytes, Waiting(io::stdout().as_fd())),
            OutputStream::Error => error.print(bytes, Waiting(io::stderr().as_fd())),
        };
        if let Err(why) = printed
            && (stream == OutputStream::Standard || why.kind() == io::ErrorKind::BrokenPipe)
        {
            // Of what breaks later the first is told.
            let _ = broke.try_send(why);
        }
    })
}

/// Writes all to a descriptor, also where whoever opened it said that writes do not wait.
struct Waiting<'f>(BorrowedFd<'f>);

impl io::Write for Waiting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(self.0, bytes) {
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::from_borrowed_fd(self.0, PollFlags::OUT)];
                    rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
                }
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Shown {
    at_terminal: Option<VisibleStream>,
}

impl Shown {
    fn new(is_terminal: bool) -> Self {
        Self { at_terminal: is_terminal.then(VisibleStream::new) }
    }

    fn print(&mut self, bytes: &[u8], mut to: impl io::Write) -> io::Result<()> {
        match &mut self.at_terminal {
            Some(shown) => to.write_all(shown.push(bytes).as_bytes())?,
            None => to.write_all(bytes)?,
        }
        to.flush()
    }
}

fn told(outcome: &Outcome, report: &LevelReport, cancelled_by: &str) -> Sandboxed {
    let mut told = Sandboxed {
        level: outcome.level.to_string(),
        exit: exit(&outcome.ending),
        ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        output: outcome.standard.text(),
        errors: outcome.error.text(),
        changed: Vec::new(),
        protected: Vec::new(),
        notices: Vec::new(),
    };
    match &outcome.ending {
        Ending::Exited(_) => {}
        Ending::Signaled(number) => told.notices.push(format!("ended by signal {number}")),
        Ending::TimedOut => told.notices.push("ended: its time was over".into()),
        Ending::Cancelled => told.notices.push(format!("ended {cancelled_by}")),
        Ending::OverLimit(limit) => told.notices.push(format!("ended: over the limit of {limit}")),
    }
    if outcome.level < Level::Full {
        let missing = report.missing.join("; ");
        told.notices.push(format!("the walls are at level {}: {missing}", outcome.level));
    }
    for notice in &outcome.notices {
        match notice {
            Notice::Quarantined { path, to } if outcome.left_of(path).is_some() => {
                told.protected.push(changed(path, Some(to)));
                let (path, to) = (path.display(), to.display());
                told.notices.push(format!("{path} is back as it was: what it became was moved to {to}"));
            }
            Notice::Restored(path) if outcome.left_of(path).is_some() => {}
            Notice::Quarantined { path, to } => {
                told.protected.push(changed(path, Some(to)));
                told.notices.push(way_back(path, to));
            }
            Notice::Restored(path) => told.protected.push(changed(path, None)),
            Notice::Ended(names) => {
                told.notices.push(format!("ended what it left running: {}", names.join(", ")));
            }
            Notice::NotRestored { path, problem } => {
                told.notices
                    .push(format!("{} was changed and could not be given back: {problem}", path.display()));
            }
            Notice::NotAllScanned(path) => {
                told.notices.push(format!("{} has too many files to look at all of them", path.display()));
            }
            Notice::TooManyProtected(path) => {
                let path = path.display();
                told.notices.push(format!("{path} has too many protected paths for a further command"));
            }
            Notice::DiffersFromIndex(paths) => {
                let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
                told.notices.push(format!("git has another text of {} than the folder", paths.join(", ")));
            }
            Notice::NetworkSeemsMissing => {
                told.notices.push("it seems to need a network: `--net HOST` names what it may reach".into());
            }
            Notice::Lacks(what) => told.notices.push(what.clone()),
        }
    }
    told
}

/// How a file comes back that was moved away, and how a command makes it.
fn way_back(path: &Path, to: &Path) -> String {
    let [path_word, to] = [path, to].map(|path| quoted(&path.to_string_lossy()));
    let back = format!("`mv {to} {path_word}` brings it back");
    if lies_in_never(path) {
        back
    } else {
        format!("{back}, and with `--touches {path_word}` the command may make it")
    }
}

fn changed(path: &Path, to: Option<&PathBuf>) -> ProtectedChange {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    ProtectedChange { path: text(path), moved_to: to.map(|to| text(to)) }
}

fn exit(ending: &Ending) -> u8 {
    match ending {
        Ending::Exited(code) => u8::try_from(*code).unwrap_or(u8::MAX),
        Ending::Signaled(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        Ending::TimedOut | Ending::OverLimit(_) => OVER,
        Ending::Cancelled => crate::run::INTERRUPTED,
    }
}
