//! A home, the program, and what must be true of a tree.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::Value;

use crate::program::program;

/// Nothing here takes this long; what does, hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home of its own, in a folder of its own.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    /// An empty one: the first command makes it.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// One with a document called `Tale` that begins with `text`.
    pub(crate) fn with_tale(text: &str) -> Self {
        let home = Self::new();
        home.ok(&["tree", "new", "--title", "Tale", "--text", text]);
        home
    }

    /// The folder around the home, where commands are run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The home itself.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join("home")
    }

    /// The store's file.
    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("loom.db")
    }

    /// A file beside the home.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// `--model` for a script of these lines.
    pub(crate) fn script(&self, lines: &[Value]) -> String {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        format!("script:{}", self.file("script.jsonl", lines.join("\n")).display())
    }

    /// The program with these arguments, in this home and in no other.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments);
        self.at_home(command)
    }

    /// Any program, with this home as the only one it can find.
    pub(crate) fn at_home(&self, mut command: Command) -> Command {
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder()).env("DRAWLOOM_HOME", self.path()).current_dir(self.folder());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs the program with this standard input.
    pub(crate) fn run_with<S: AsRef<OsStr>>(&self, arguments: &[S], input: &[u8]) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A program that refuses early closes its end.
        let _ = pipe.write_all(input);
        drop(pipe);
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        ran.stdout
    }

    /// The JSON answer of a command that must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[&["--json"], arguments].concat())).unwrap()
    }

    /// The rendering of the tale.
    pub(crate) fn text(&self) -> String {
        self.json(&["tree", "text", "Tale"])["text"].as_str().unwrap().to_owned()
    }

    /// Every node of the tale.
    pub(crate) fn nodes(&self) -> Vec<Value> {
        self.json(&["tree", "show", "Tale", "--all", "--limit", "1000"])["nodes"].as_array().unwrap().clone()
    }

    /// Nodes a model made, by their text, with how they ended.
    pub(crate) fn answers(&self) -> Vec<(String, Value)> {
        let of_model = |node: &Value| {
            (node["author_kind"] == "model")
                .then(|| (node["text"].as_str().unwrap().to_owned(), node["finish"].clone()))
        };
        self.nodes().iter().filter_map(of_model).collect()
    }

    /// The spools that lie in the home, by name, header and all.
    pub(crate) fn spools(&self) -> BTreeMap<String, Vec<u8>> {
        let Ok(entries) = fs::read_dir(self.path().join("spool")) else { return BTreeMap::new() };
        entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().unwrap();
                // It may be removed between the two.
                (!name.starts_with('.')).then_some((name, fs::read(entry.path()).ok()?))
            })
            .collect()
    }

    /// Processes that said they work here, dead or alive.
    pub(crate) fn instances(&self) -> usize {
        let names = |name: &str| fs::read_dir(self.path().join(name)).unwrap().flatten();
        let locks = names("run").filter(|entry| entry.path().extension().is_some_and(|end| end == "lock"));
        locks.count()
    }

    /// Asserts what holds of every tale at any time: it is valid, and its log has no gap.
    pub(crate) fn is_sound(&self) {
        let report = self.json(&["tree", "verify", "Tale"]);
        assert_eq!(report["status"], "valid", "{report}");
        let log = self.log();
        let expected: Vec<u64> = (1..=log.len() as u64).rev().collect();
        assert_eq!(log, expected, "the log has a gap");
    }

    /// The numbers of all operations, newest first.
    fn log(&self) -> Vec<u64> {
        let mut all = Vec::new();
        let mut before: Option<u64> = None;
        loop {
            let mut arguments = vec!["tree".to_owned(), "log".to_owned(), "Tale".to_owned()];
            arguments.extend(before.iter().flat_map(|before| ["--before".to_owned(), before.to_string()]));
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let page = self.json(&arguments);
            let operations = page["operations"].as_array().unwrap();
            all.extend(operations.iter().map(|operation| operation["seq"].as_u64().unwrap()));
            match page["next"].as_u64() {
                Some(next) => before = Some(next),
                None => return all,
            }
        }
    }
}

/// How the program ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts a refusal: this exit code, nothing on standard output, and one line of the form
    /// `error: what: why: what to do` that says each of `words`.
    #[track_caller]
    pub(crate) fn refused(&self, exit: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(exit), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let errors: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("error:")).collect();
        let [error] = errors.as_slice() else { panic!("not one error: {self:?}") };
        assert_eq!(self.stderr.lines().last(), Some(*error), "{self:?}");
        let parts: Vec<&str> = error.split(": ").collect();
        assert!(parts.len() >= 3 && parts.iter().all(|part| !part.trim().is_empty()), "{error}");
        for word in words {
            assert!(error.contains(word), "no {word:?} in {error}");
        }
    }
}

/// A tale as it was, to be found unharmed.
#[derive(PartialEq)]
pub(crate) struct Before {
    text: String,
    log: Vec<u64>,
    nodes: Vec<Value>,
}

impl Before {
    pub(crate) fn of(home: &Home) -> Self {
        Self { text: home.text(), log: home.log(), nodes: home.nodes() }
    }

    /// Asserts that nothing of it changed, that it is valid, and that the home still takes work.
    #[track_caller]
    pub(crate) fn unharmed(&self, home: &Home) {
        let now = Self::of(home);
        assert_eq!(now.text, self.text);
        assert_eq!(now.nodes, self.nodes);
        assert_eq!(now.log, self.log);
        assert!(home.spools().is_empty(), "a spool is left");
        home.is_sound();
    }
}

/// Asks again and again until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// Suspends a child, and returns when it stands still.
pub(crate) fn suspend(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).unwrap();
    let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(stopped.1.stopped(), "{stopped:?}");
}

/// Lets a suspended child go on.
pub(crate) fn resume(child: &Child) {
    kill_process(Pid::from_child(child), Signal::CONT).unwrap();
}

/// Waits for a child's end, however long it takes it, up to what is bearable.
#[track_caller]
pub(crate) fn ended(mut child: Child) -> Ran {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("a child hangs: {:?}", Ran::of(child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ran::of(child.wait_with_output().unwrap())
}

/// Numbers that look random and are the same in every run of a seed.
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// The text in the body of a spool or of a stream: what whole events say, and whether the last one was there.
pub(crate) fn streamed_text(spool: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(spool);
    let (mut said, mut finished) = (String::new(), false);
    // What stands behind the last empty line is half an event.
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    for event in whole.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(event) = serde_json::from_str::<Value>(event) else { continue };
        let choice = &event["choices"][0];
        said += choice["text"].as_str().unwrap_or_default();
        finished |= choice["finish_reason"].is_string();
    }
    (said, finished)
}
