//! What an agent's tools cost in a large workspace: searches beside ripgrep's in the same run, commands in their walls,
//! and the end of one that runs (spec: scale §1).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use commands::CommandError;
use commands::settings::ExecSettings;
use sandbox::{CommandLine, Ending, Level, Run, Sandbox};
use serde_json::{Value, json};

use super::harness::failed;
use super::metrics::{Times, ms};
use super::report::Report;
use super::scratch::Scratch;
use super::scripted::{Interrupt, Scripted, WORKER};

/// Searches of each kind, each beside one of ripgrep.
const SEARCHES: usize = 7;
/// Runs of a command by itself.
const RUNS: usize = 11;
/// Commands of one turn behind the first.
const LATER: usize = 20;
/// Commands that are stopped.
const STOPS: usize = 5;
/// Bytes of a file where searches are measured, and where commands are.
const SEARCHED: usize = 1_200;
const WORKED_ON: usize = 20_000;
/// Files of a folder.
const FOLDER: u64 = 100;

/// Measures searches in a workspace of so many files, and commands in one of a tenth.
///
/// # Errors
/// A disk that is full, a search that fails, or one that does not find what ripgrep finds.
pub(super) fn measure(report: &mut Report<'_>, scratch: &Scratch, files: u64) -> Result<(), CommandError> {
    let few = files / 10;
    report.note("making workspaces");
    let made = |name, files, bytes| {
        workspace(&scratch.at(name), files, bytes).map_err(|error| failed("make a workspace", error))
    };
    let (many_at, few_at) = (made("many", files, SEARCHED)?, made("few", few, WORKED_ON)?);
    let agent =
        Scripted::new(scratch.at("agent"), WORKER).map_err(|error| failed("prepare an agent", error))?;
    for (tool, arguments, peer) in searches() {
        let name = format!("{tool} over {files} files");
        search(report, &name, &agent, &many_at, (tool, &arguments), peer)?;
    }
    let none_at = made("none", 0, 0)?;
    fs::create_dir(&none_at).map_err(|error| failed("make a workspace", error))?;
    let mut looks = Vec::new();
    for (files, place, budget) in
        [(0, &none_at, None), (few, &few_at, Some(25.0)), (files, &many_at, Some(120.0))]
    {
        let name = format!("start, walls and look of `exec` in {files} files");
        match alone(&agent, place) {
            Ok(times) => {
                report.row(&name, times.median(), "ms, median", budget);
                looks.push(times.median());
            }
            Err(why) => report.row(&name, 0.0, &format!("not measured: {why}"), None),
        }
        let name = format!("`drawloom sandbox -- true` in {files} files");
        match sandboxed(&agent, place) {
            Ok(times) => report.row(&name, times.median(), "ms, median", None),
            Err(why) => report.row(&name, 0.0, &format!("not measured: {why}"), None),
        }
    }
    let size = few * WORKED_ON as u64 / 1_000_000;
    let first = format!("first command of a turn in {few} files of {size} MB");
    let later = format!("later commands of a turn in {few} files of {size} MB");
    match commands(&agent, &few_at) {
        Ok((time, times)) => {
            report.row(&first, ms(time), "ms", Some(3_000.0));
            report.row(&later, times.median(), "ms, median", None);
            report.row(&later, times.percentile(1.0), "ms, longest", None);
            if let (Ok((_, bare)), [empty, full, ..]) = (commands(&agent, &none_at), &looks[..]) {
                report.row("later commands of a turn in an empty folder", bare.median(), "ms, median", None);
                // There is one before a command and one after it.
                let record = (times.median() - bare.median() - (full - empty)) / 2.0;
                report.row(&format!("a record of {few} files as they were"), record, "ms", Some(60.0));
            }
        }
        Err(why) => report.row(&first, 0.0, &format!("not measured: {why}"), None),
    }
    for (name, how) in [
        ("from Ctrl-C to the end of a command that runs", Interrupt::CtrlC),
        ("from the start of a process that says `/stop` to the end of a command that runs", Interrupt::Stop),
    ] {
        match stops(&agent, how, &few_at) {
            Ok(times) => report.row(name, times.percentile(1.0), "ms, longest", Some(100.0)),
            Err(why) => report.row(name, 0.0, &format!("not measured: {why}"), None),
        }
    }
    for name in ["many", "few", "none"] {
        scratch.remove(name)?;
    }
    Ok(())
}

/// Searches with what ripgrep is called with for the same: one that finds few lines, one that finds none, one for names.
fn searches() -> [(&'static str, Value, &'static [&'static str]); 3] {
    [
        ("grep", json!({"pattern": "thread_42 = 5[0-9]*42"}), &["-n", "thread_42 = 5[0-9]*42"]),
        ("grep", json!({"pattern": "nowhere_at_all"}), &["-n", "nowhere_at_all"]),
        ("glob", json!({"pattern": "**/d*7/f07.rs"}), &["--files", "-g", "**/d*7/f07.rs"]),
    ]
}

fn search(
    report: &mut Report<'_>,
    name: &str,
    agent: &Scripted,
    place: &Path,
    (tool, arguments): (&str, &Value),
    peer: &[&str],
) -> Result<(), CommandError> {
    let pattern = arguments["pattern"].as_str().unwrap_or_default();
    let name = format!("{name}, {pattern}");
    let said = |error: String| failed("search", error);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=SEARCHES {
        let turn = agent.turn(place, &[(tool, arguments.clone())]).map_err(said)?;
        let found = ripgrep(place, peer).map_err(|error| failed("run ripgrep", error))?;
        if let Some((hits, _)) = &found {
            let own = turn.texts.concat();
            let mut own: Vec<&str> = own.lines().filter(|line| !line.starts_with('[')).collect();
            own.sort_unstable();
            if *hits != own {
                let why = format!("{} lines instead of ripgrep's {}", own.len(), hits.len());
                return Err(failed(&format!("find by {name} what ripgrep finds"), why));
            }
        }
        // The first one reads the files from the disk.
        if round > 0 {
            ours.extend(turn.times);
            theirs.extend(found.map(|(_, time)| time));
        }
    }
    let (ours, theirs): (Times, Times) = (ours.into_iter().collect(), theirs.into_iter().collect());
    report.row(&name, ours.median(), "ms, median", None);
    if theirs.median() > 0.0 && ours.median() > 0.0 {
        report.row(&name, theirs.median() / ours.median(), "of ripgrep's speed", Some(0.8));
    } else {
        report.row(&name, 0.0, "not measured beside ripgrep: there is no rg", None);
    }
    Ok(())
}

/// The lines that ripgrep prints, sorted, and its time from start to end; none where there is no ripgrep.
fn ripgrep(place: &Path, arguments: &[&str]) -> io::Result<Option<(Vec<String>, Duration)>> {
    let mut command = Command::new("rg");
    command.arg("--no-config").args(arguments).arg(".").current_dir(place).stdin(Stdio::null());
    let start = Instant::now();
    let done = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        done => done?,
    };
    let time = start.elapsed();
    let lines = String::from_utf8_lossy(&done.stdout);
    let mut lines: Vec<String> =
        lines.lines().map(|line| line.strip_prefix("./").unwrap_or(line).to_owned()).collect();
    lines.sort_unstable();
    Ok(Some((lines, time)))
}

fn sandboxed(agent: &Scripted, place: &Path) -> Result<Times, String> {
    let mut times = Vec::with_capacity(RUNS);
    for round in 0..=RUNS {
        let mut command = agent.program(place)?;
        command.args(["sandbox", "--", "true"]).stdout(Stdio::null());
        let start = Instant::now();
        let done = command.output().map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).trim().to_owned());
        }
        times.extend((round > 0).then(|| start.elapsed()));
    }
    Ok(times.into_iter().collect())
}

/// What a command that does nothing takes in a session that stands: what `exec` starts, without its turn.
fn alone(agent: &Scripted, place: &Path) -> Result<Times, String> {
    let (home, settings) = (agent.home(), ExecSettings::default());
    let sandbox = Sandbox::of_this_program().map_err(|error| error.to_string())?;
    let level = sandbox.probe().level;
    if level != Level::Full {
        return Err(format!("the sandbox is {level}"));
    }
    let told = |error: CommandError| error.message;
    let around = (home, place);
    let session =
        commands::walls::open_session(&sandbox, level, &home.join("sandbox/tmp"), around, &settings);
    let session = session.map_err(told)?;
    let run = Run {
        walls: commands::walls::of_workspace(home, place, "bench", &settings).map_err(told)?,
        command: CommandLine::Shell("true".to_owned()),
        directory: place.to_owned(),
        level,
        quarantine: home.join("quarantine").join("bench"),
        signs_of_life: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut times = Vec::with_capacity(RUNS);
    for round in 0..=RUNS {
        let start = Instant::now();
        let outcome = runtime.block_on(session.run(run.clone(), None)).map_err(|error| error.to_string())?;
        times.extend((round > 0).then(|| start.elapsed()));
        if outcome.ending != Ending::Exited(0) {
            return Err(format!("`true` came to {:?}", outcome.ending));
        }
    }
    Ok(times.into_iter().collect())
}

/// The time of the first command of a turn, and those of the later ones.
fn commands(agent: &Scripted, place: &Path) -> Result<(Duration, Times), String> {
    // No two are alike: a call that repeats itself is asked about.
    let call = |number| ("exec", json!({"command": format!("true # {number}")}));
    let turn = agent.turn(place, &(0..=LATER).map(call).collect::<Vec<_>>())?;
    let (first, later) = turn.times.split_first().ok_or("no command was run")?;
    Ok((*first, later.iter().copied().collect()))
}

/// Times from an interrupt to the end of a command that runs.
fn stops(agent: &Scripted, how: Interrupt, place: &Path) -> Result<Times, String> {
    // Of all commands of this machine no other sleeps so long.
    let seconds = 1_000_000 + u64::from(std::process::id());
    let call = [("exec", json!({"command": format!("sleep {seconds}")}))];
    (0..STOPS).map(|_| agent.interrupted(how, place, &call, &format!("sleep\0{seconds}\0"))).collect()
}

/// A workspace of so many files of so many bytes, a hundred in a folder.
fn workspace(at: &Path, files: u64, bytes: usize) -> io::Result<PathBuf> {
    for number in 0..files {
        let folder = at.join(format!("d{:04}", number / FOLDER));
        if number % FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        // No two files are alike: equal ones would be kept once.
        let noise = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let line = format!("fn f{number}() {{ let thread_{} = {number}; }} // {noise:016x}\n", number % 97);
        let mut text = line.repeat(bytes / line.len() + 1);
        text.truncate(bytes);
        fs::write(folder.join(format!("f{:02}.rs", number % FOLDER)), text)?;
    }
    Ok(at.to_owned())
}
