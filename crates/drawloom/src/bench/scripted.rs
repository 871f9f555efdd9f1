//! Turns of an agent whose model is a script: `chat --events` of the running program's own file.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How long a command may take to begin, and to end after an interrupt.
const PATIENCE: Duration = Duration::from_secs(30);

/// A home with an agent.
pub(super) struct Scripted {
    home: PathBuf,
}

/// What an agent that searches and runs commands is configured with.
pub(super) const WORKER: &str = "[agents.assistant]\ntools = [\"exec\", \"glob\", \"grep\"]\n";

/// What takes effect from outside of a conversation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interrupt {
    CtrlC,
    /// `/stop`, by another process.
    Stop,
}

/// The session of every conversation here.
const SESSION: &str = "bench";

/// A turn that was made.
pub(super) struct Turn {
    /// From each call to its result.
    pub(super) times: Vec<Duration>,
    /// What each call said.
    pub(super) texts: Vec<String>,
}

impl Scripted {
    /// Makes the home with this configuration.
    pub(super) fn new(home: PathBuf, configuration: &str) -> std::io::Result<Self> {
        fs::create_dir(&home)?;
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700))?;
        let config = home.join("config.toml");
        fs::write(&config, configuration)?;
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
        Ok(Self { home })
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The program, in this home and a workspace.
    pub(super) fn program(&self, workspace: &Path) -> Result<Command, String> {
        let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
        command.arg("--home").arg(&self.home).arg("--workspace").arg(workspace);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Makes a turn in which the model calls tools, one after the other, in a conversation of its own.
    pub(super) fn turn(&self, workspace: &Path, calls: &[(&str, Value)]) -> Result<Turn, String> {
        let mut chat = self.chat(workspace, calls, &[])?;
        let (mut times, mut called, mut tree) = (Vec::new(), Instant::now(), String::new());
        for line in lines(&mut chat) {
            let event: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            match event["event"].as_str() {
                Some("call") => called = Instant::now(),
                Some("result") => times.push(called.elapsed()),
                Some("finished") => tree = event["tree"].as_str().unwrap_or_default().to_owned(),
                _ => {}
            }
        }
        ended(chat)?;
        let mut show = self.program(workspace)?;
        show.args(["tree", "show", &tree, "--all", "--json"]);
        let shown = show.output().map_err(|error| error.to_string())?;
        let shown: Value = serde_json::from_slice(&shown.stdout).map_err(|error| error.to_string())?;
        let nodes = shown["nodes"].as_array().ok_or("the conversation cannot be shown")?;
        let texts =
            nodes.iter().filter(|node| node["role"] == "tool").filter_map(|node| node["text"].as_str());
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        let first = texts.len().checked_sub(calls.len()).filter(|_| times.len() == calls.len());
        let first = first.ok_or_else(|| format!("{} calls instead of {}", times.len(), calls.len()))?;
        Ok(Turn { times, texts: texts[first..].to_vec() })
    }

    /// Begins a turn whose call is asked about, allows it in another process, and returns the time from the start of
    /// that process to the result of the call.
    pub(super) fn approved(&self, workspace: &Path, call: (&str, Value)) -> Result<Duration, String> {
        let mut chat = self.chat(workspace, &[call], &["--wait", "60"])?;
        let (mut approving, mut effect) = (None, None);
        for line in lines(&mut chat) {
            let event: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            match event["event"].as_str() {
                Some("question") => {
                    let question = event["question"]["id"].as_str().ok_or("a question without a number")?;
                    let mut approve = self.program(workspace)?;
                    approve.args(["approve", question]);
                    approving = Some((Instant::now(), approve.spawn().map_err(|error| error.to_string())?));
                }
                Some("result") => effect = approving.as_ref().map(|(began, _)| began.elapsed()),
                _ => {}
            }
        }
        approving.map_or(Ok(()), |(_, approve)| ended(approve))?;
        ended(chat)?;
        effect.ok_or_else(|| "nothing was asked".to_owned())
    }

    /// Begins a turn, interrupts it as soon as a process with this command line runs, and returns how long that
    /// ran on.
    pub(super) fn interrupted(
        &self,
        how: Interrupt,
        workspace: &Path,
        calls: &[(&str, Value)],
        line: &str,
    ) -> Result<Duration, String> {
        let mut chat = self.chat(workspace, calls, &[])?;
        let begun = wait_for(|| running(line));
        let told = Instant::now();
        let chat_id = i32::try_from(chat.id()).ok().and_then(Pid::from_raw);
        let gone = begun.and_then(|process| {
            let stop = match how {
                Interrupt::CtrlC => {
                    let chat_id = chat_id.ok_or("the process has no number")?;
                    kill_process(chat_id, Signal::INT).map_err(|error| error.to_string())?;
                    None
                }
                Interrupt::Stop => {
                    let mut stop = self.program(workspace)?;
                    stop.args(["chat", "--session", SESSION, "-m", "/stop"]);
                    Some(stop.spawn().map_err(|error| error.to_string())?)
                }
            };
            let gone = wait_for(|| (!is_running(&process, line)).then(|| told.elapsed()));
            stop.map_or(Ok(()), ended)?;
            gone
        });
        if gone.is_err() {
            let _ = chat.kill();
        }
        let _ = chat.wait();
        gone
    }

    fn chat(&self, workspace: &Path, calls: &[(&str, Value)], more: &[&str]) -> Result<Child, String> {
        let script = self.home.join("script.jsonl");
        let call = |(name, arguments): &(&str, Value)| {
            format!("{}\n", json!({"tool_calls": [{"name": name, "arguments": arguments}]}))
        };
        let text = calls.iter().map(call).collect::<String>() + &format!("{}\n", json!({"text": "Done."}));
        fs::write(&script, text).map_err(|error| error.to_string())?;
        let mut command = self.program(workspace)?;
        command.args([
            "--model",
            &format!("script:{}", script.display()),
            "chat",
            "--session",
            SESSION,
            "-m",
            "Go on.",
            "--events",
        ]);
        command.args(more);
        command.spawn().map_err(|error| error.to_string())
    }
}

fn lines(chat: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = chat.stdout.take().map(BufReader::new);
    output.into_iter().flat_map(|output| output.lines().map_while(Result::ok))
}

fn ended(mut chat: Child) -> Result<(), String> {
    let mut why = String::new();
    if let Some(errors) = &mut chat.stderr {
        errors.read_to_string(&mut why).map_err(|error| error.to_string())?;
    }
    let status = chat.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(why.trim().to_owned()) }
}

/// Looks until there is something.
fn wait_for<T>(look: impl Fn() -> Option<T>) -> Result<T, String> {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("nothing within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The folder in `/proc` of a process with this command line.
fn running(line: &str) -> Option<PathBuf> {
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    processes.into_iter().find(|process| is_running(process, line))
}

fn is_running(process: &Path, line: &str) -> bool {
    fs::read(process.join("cmdline")).is_ok_and(|read| read == line.as_bytes())
}
