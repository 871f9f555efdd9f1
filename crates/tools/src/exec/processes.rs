//! Commands in the background: looked at, waited for, written to and ended (spec: agent §3 *Shell*).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use egress::Proxy;
use model::Cancel;
use policy::{CommandFacts, CommandStart, unfinished_line};
use sandbox::{BackgroundCommand, Ending, Run, TextWait};
use schemars::JsonSchema;
use serde::Deserialize;
use text::cut::head_tail;
use tokio::time::timeout;
use workspace::RelativePath;

use super::masked_output::MaskedOutput;
use super::{
    CommandNetwork, CommandScope, NetworkRequest, blocking, network, note_outside, published, report,
};
use crate::changes::line_name;
use crate::tool::{CallScope, Tool, ToolScope};

const DESCRIPTION: &str = "Says what a command in the background printed since the last look, and whether it ended. It waits \
for a text, writes to its input or closes it, or ends it, where the call says so.";

/// Commands of a session whose end is remembered.
const REMEMBERED: usize = 64;
/// Bytes of output that one look reads, and characters that it tells.
const READ: usize = 1 << 20;
const SHOWN: usize = 20_000;
/// Seconds that a call waits for a text at most, and unless it says so.
const LONGEST_WAIT: u32 = 600;
const WAIT: u32 = 30;
/// How long a command may not read what is written to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one whose input broke has to end, so that it is told how.
const GRACE: Duration = Duration::from_millis(500);

/// How many commands run in the background at one time, how long, and what is kept of their output (spec: scale §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessBounds {
    pub of_session: usize,
    /// Commands of all sessions of a home.
    pub in_all: usize,
    pub time: Duration,
    /// Bytes of the output of each, the last ones.
    pub log: usize,
}

impl Default for ProcessBounds {
    fn default() -> Self {
        Self { of_session: 8, in_all: 32, time: Duration::from_secs(24 * 60 * 60), log: 64 << 20 }
    }
}

/// The background commands of a session, by number. A call holds the one it is at while it waits, and no other.
#[derive(Debug, Default)]
pub struct Processes {
    all: Mutex<BTreeMap<u32, Arc<Mutex<Process>>>>,
    bounds: ProcessBounds,
}

impl Processes {
    /// None, with the same bounds.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.bounds)
    }
}

#[derive(Debug)]
struct Process {
    line: String,
    command: BackgroundCommand,
    /// Addresses of this machine at which it is reached while it runs.
    published: Option<String>,
    /// Place in its output up to which it was told.
    told: u64,
    output: MaskedOutput,
    /// Whether it was started in plan mode, and so sees every root read-only.
    in_plan_mode: bool,
    /// End of its input so far that a further one goes on with: what it does is what both say together.
    unfinished: String,
    /// Network that it was started with: what it is handed is a command with that.
    request: NetworkRequest,
    /// What tells of its proxy, which itself ends with the command.
    proxy: Option<Proxy>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Number that exec gave.
    process: u32,
    /// Text to wait for in what it prints.
    wait_for: Option<String>,
    /// Seconds to wait: 30 without it.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u32>,
    /// Text for its standard input, with its own line ends.
    input: Option<String>,
    /// Close its standard input, after `input`.
    #[serde(default)]
    end_of_input: bool,
    /// End it with all it started.
    #[serde(default)]
    kill: bool,
}

impl Arguments {
    /// Whether its process gets something to work on. A shell runs a line without an end once its input ends.
    fn steers(&self) -> bool {
        self.input.is_some() || self.end_of_input
    }
}

pub(crate) fn tool() -> Tool {
    let about = ("process", DESCRIPTION);
    Tool::steering_commands(about, run, command, preview, only_looks, plan_mode_refusal).beside_the_core()
}

fn only_looks(_: &ToolScope, arguments: &Arguments) -> bool {
    !arguments.steers() && !arguments.kill
}

/// What a command that may write is handed is work, whatever its own text says.
fn plan_mode_refusal(scope: &ToolScope, arguments: &Arguments) -> Option<String> {
    let number = arguments.process;
    let process = scope.commands.as_ref()?.processes.find(number).ok()?;
    let may_write = arguments.steers() && !locked(&process).in_plan_mode;
    may_write.then(|| {
        format!(
            "plan mode is on, and process {number} was started outside of it and may write: it takes no input until the \
             owner ends plan mode; it can be looked at, waited for and ended"
        )
    })
}

/// What is written to a command may be lines of a shell. Their beginning may have been written before.
fn command(scope: &ToolScope, arguments: &Arguments) -> Option<CommandFacts> {
    let input = arguments.input.as_ref()?;
    let line = unfinished(scope, arguments.process) + input;
    let network = request(scope, arguments.process).wish();
    let (directory, start) = (RelativePath::root(), CommandStart::Input);
    Some(CommandFacts {
        line,
        directory,
        directory_is_direct: false,
        further_root: None,
        network,
        publishes: false,
        start,
    })
}

/// Network that a process was started with.
fn request(scope: &ToolScope, number: u32) -> NetworkRequest {
    let process = scope.commands.as_ref().and_then(|commands| commands.processes.find(number).ok());
    process.map_or(NetworkRequest::Off, |process| locked(&process).request.clone())
}

/// What a process was handed of a line that has not ended.
fn unfinished(scope: &ToolScope, number: u32) -> String {
    let process = scope.commands.as_ref().and_then(|commands| commands.processes.find(number).ok());
    process.map_or_else(String::new, |process| locked(&process).unfinished.clone())
}

/// What a question shows.
fn preview(scope: &ToolScope, arguments: &Arguments) -> Result<String, String> {
    let lines = |text: &str| text.lines().map(|line| format!("> {}", line_name(line))).collect::<Vec<_>>();
    let (number, mut shown) = (arguments.process, Vec::new());
    let before = lines(&unfinished(scope, number));
    if !before.is_empty() {
        shown.push(format!("process {number} has, without an end"));
        shown.extend(before);
    }
    shown.push(format!("process {number} gets"));
    shown.extend(arguments.input.iter().flat_map(|input| lines(input)));
    if arguments.end_of_input {
        shown.push("and the end of its input".to_owned());
    }
    let network = request(scope, number);
    if network.is_on() {
        shown.push(format!("it reaches {}", line_name(&network.to_string())));
    }
    Ok(shown.join("\n"))
}

impl Processes {
    pub fn new(bounds: ProcessBounds) -> Self {
        Self { all: Mutex::default(), bounds }
    }

    pub(crate) fn any_runs(&self) -> bool {
        locked(&self.all).values().any(|process| runs(process))
    }

    /// Ends them with all they started. It blocks until they are gone, and no call may be at one.
    pub(crate) fn end_all(&self) {
        let all: Vec<Arc<Mutex<Process>>> = locked(&self.all).values().cloned().collect();
        all.iter().for_each(|process| locked(process).command.cancel());
        for process in &all {
            let process: &mut Process = &mut locked(process);
            let ended = blocking(async { process.command.outcome().await.is_ok() });
            if let Err(why) = ended {
                tracing::warn!(why, "a command in the background was not waited for");
            }
        }
    }

    fn find(&self, number: u32) -> Result<Arc<Mutex<Process>>, String> {
        let processes = locked(&self.all);
        processes.get(&number).cloned().ok_or_else(|| {
            let there: Vec<String> = processes.keys().map(u32::to_string).collect();
            let there = if there.is_empty() { "there is none".to_owned() } else { there.join(", ") };
            format!("process {number} is not there: {there}")
        })
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a command runs, as one that a call is at may.
fn runs(process: &Mutex<Process>) -> bool {
    match process.try_lock() {
        Ok(mut process) => process.command.outcome_now().is_none(),
        Err(TryLockError::Poisoned(process)) => process.into_inner().command.outcome_now().is_none(),
        Err(TryLockError::WouldBlock) => true,
    }
}

/// Starts a command in the background. Returns what is told of it. It blocks.
pub(super) fn start(
    call: &CallScope<'_>,
    commands: &CommandScope,
    command: (&super::Arguments, NetworkRequest, CommandNetwork),
    mut run: Run,
) -> Result<String, String> {
    let (arguments, request, network) = command;
    if !call.plan_mode {
        commands.background_changes.begin(call, commands, &run.walls.touches)?;
    }
    let mut processes = locked(&commands.processes.all);
    let bounds = commands.processes.bounds;
    let most = bounds.of_session;
    if processes.values().filter(|process| runs(process)).count() >= most {
        return Err(format!(
            "{most} commands run in the background of this conversation already (limits.processes): end one of them"
        ));
    }
    let place = place_among_all(&call.scope.locks, bounds.in_all)?;
    run.walls.limits.time_ms = u64::try_from(bounds.time.as_millis()).unwrap_or(u64::MAX);
    let ports = published::publish(&network.session, &arguments.publish)?;
    let published = published::addresses(ports.as_ref());
    let (session, proxy, served) = network.into_parts();
    let command = session
        .start_background(run, bounds.log, (ports, served, place))
        .map_err(|error| error.to_string())?;
    let number = processes.keys().next_back().map_or(1, |last| last + 1);
    let process = Process {
        line: arguments.command.clone(),
        command,
        published: published.clone(),
        told: 0,
        output: MaskedOutput::new(&call.scope.masker),
        in_plan_mode: call.plan_mode,
        unfinished: String::new(),
        request,
        proxy,
    };
    processes.insert(number, Arc::new(Mutex::new(process)));
    while processes.len() > REMEMBERED {
        let Some((number, _)) = processes.iter().find(|(_, process)| !runs(process)) else { break };
        let number = *number;
        processes.remove(&number);
    }
    let opened =
        published.map(|addresses| format!("until then the owner reaches it at {addresses} of this machine"));
    call.brief.borrow_mut().extend(opened.clone());
    let opened = opened.map_or_else(String::new, |opened| format!("\n{opened}"));
    Ok(format!(
        "process {number} runs in the background; `process` looks at it, and it ends with this session{opened}"
    ))
}

/// One of the places that the background commands of all processes of a home share; it is free again once the file is
/// closed.
fn place_among_all(locks: &Path, most: usize) -> Result<File, String> {
    let failed = |error: io::Error| format!("the commands in the background could not be counted: {error}");
    for number in 0..most {
        let path = locks.join(format!("background-{number}.lock"));
        let file = workspace::open_lock_file(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(format!(
        "{most} commands run in the background of all conversations already (limits.processes_in_all): end one of them"
    ))
}

fn run(call: &CallScope<'_>, arguments: &Arguments) -> Result<String, String> {
    let commands = call.scope.commands.as_ref().ok_or("commands cannot run on this machine")?;
    let process = commands.processes.find(arguments.process)?;
    call.meets_commands(commands);
    note_outside(call, &commands.checkpoints);
    let told = look(call, commands, &mut locked(&process), arguments);
    // Somebody may have reached it while it was waited for.
    call.meets_commands(commands);
    note_outside(call, &commands.checkpoints);
    told
}

fn look(
    call: &CallScope<'_>,
    commands: &CommandScope,
    process: &mut Process,
    arguments: &Arguments,
) -> Result<String, String> {
    let mut notes = Vec::new();
    let refused = arguments.input.as_ref().map_or(Ok(None), |input| hand(process, input))?;
    let took_input = refused.is_none();
    if arguments.end_of_input {
        process.command.close_input();
    }
    notes.extend(refused);
    if let Some(text) = &arguments.wait_for {
        let seconds = arguments.timeout.unwrap_or(WAIT).clamp(1, LONGEST_WAIT);
        match wait(process, text, Duration::from_secs(seconds.into()), call.cancel)? {
            Some(TextWait::Printed(_)) => {}
            Some(TextWait::Ended) => notes.push(format!("it ended without printing {text:?}")),
            Some(TextWait::TimedOut) => notes.push(format!("it did not print {text:?} in {seconds} s")),
            None => notes.push("it was not waited for any longer: the turn was stopped".to_owned()),
        }
    }
    if arguments.kill {
        process.command.cancel();
        let _ended = blocking(async { process.command.outcome().await.is_ok() })?;
    }
    let has_ended = process.command.outcome_now().is_some();
    let state = match process.command.outcome_now() {
        None => match &process.published {
            Some(addresses) => format!("runs, reached at {addresses} of this machine"),
            None => "runs".to_owned(),
        },
        Some(Ok(outcome)) => {
            notes.extend(outcome.notices.iter().map(report::notice));
            if outcome.ending == Ending::TimedOut {
                "ended: it ran as long as one in the background may (limits.process_hours)".to_owned()
            } else {
                report::ending(&outcome.ending)
            }
        }
        Some(Err(error)) => error.to_string(),
    };
    let piece = process.command.output(process.told, READ);
    process.told = piece.end;
    if piece.omitted > 0 {
        process.output.skip();
        notes.push(format!(
            "at least {} bytes before this are not kept any more (limits.process_log)",
            piece.omitted
        ));
    }
    let mut parts = vec![format!("process {} ({}): {state}", arguments.process, line_name(&process.line))];
    let mut output = process.output.push(&piece.bytes);
    if has_ended && piece.bytes.len() < READ {
        output += &process.output.finish();
    }
    if !output.is_empty() {
        parts.push(format!("[output]\n{}", head_tail(output.trim_end_matches('\n'), SHOWN, "output").text));
    }
    if commands.session.level() < sandbox::Level::Full {
        notes.push(format!("the sandbox is {}", commands.session.level()));
    }
    if !notes.is_empty() {
        parts.push(format!("[notes]\n{}", notes.join("\n")));
    }
    parts.extend(network::told(process.proxy.as_ref()));
    let told = parts.join("\n");
    if took_input { Ok(told) } else { Err(told) }
}

/// Hands a process input. Returns why it did not take it: how it ended is told beside.
fn hand(process: &mut Process, input: &str) -> Result<Option<String>, String> {
    let written = blocking(async { process.command.write(input.as_bytes(), PATIENCE).await })?;
    let Err(error) = written else {
        process.unfinished = unfinished_line(&(process.unfinished.clone() + input)).to_owned();
        return Ok(None);
    };
    // It may have a part of it, and nobody knows what the next line would be.
    process.command.close_input();
    let ended = blocking(async { timeout(GRACE, process.command.outcome()).await.is_ok() })?;
    let why = match error.kind() {
        _ if ended => "it did not take the input: it has ended".to_owned(),
        ErrorKind::TimedOut => {
            let seconds = PATIENCE.as_secs();
            format!("it did not read all of the input within {seconds} s: its input is closed")
        }
        _ => format!("it did not take the input, which is closed: {error}"),
    };
    Ok(Some(why))
}

/// Waits for a text; none where the turn was stopped meanwhile.
fn wait(
    process: &mut Process,
    text: &str,
    at_most: Duration,
    cancel: &Cancel,
) -> Result<Option<TextWait>, String> {
    // It may have begun in what was told already. What ends there was waited for before.
    let begun = text.len().saturating_sub(1) as u64;
    let (mut cancel, from) = (cancel.clone(), process.told.saturating_sub(begun));
    blocking(async {
        tokio::select! {
            waited = process.command.wait_for(text.as_bytes(), from, at_most) => Some(waited),
            () = cancel.cancelled() => None,
        }
    })
}
