//! Processes that come, work, are stopped and killed in one home.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Nothing a process does here takes this long; what does, hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A home and the programs that work in it.
pub(super) struct Place {
    /// The folder around the home.
    pub(super) folder: PathBuf,
    /// The program.
    pub(super) program: PathBuf,
    /// The process that stays.
    pub(super) resident: PathBuf,
}

/// What happened to processes.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) ran: AtomicU64,
    pub(super) killed: AtomicU64,
    pub(super) stopped: AtomicU64,
}

impl Place {
    /// The home.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// A file of script lines: answers, and everything that goes wrong with answers.
    pub(super) fn script(&self) -> Result<PathBuf> {
        const LINES: &str = r#"{"deltas":[" All"," day"," long."],"delta_delay_ms":2}
{"deltas":[" It"," poured"],"fault":"cut","delta_delay_ms":1}
{"text":" And \u001b[2J on."}
{"fault":"500"}
{"deltas":[" sk-soak-sec","ret-0123456789 leaks"]}
{"text":" half","fault":"garbage"}
{"fault":"context_length"}
{"deltas":[" slow"," and"," slow"," and"," slow"],"delta_delay_ms":40}
{"text":"","loop":true}
"#;
        let path = self.folder.join("script.jsonl");
        let text = LINES.replace("context_length", "context_too_long");
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Lines of a model that calls tools: floods, files, processes that stay and such as outlive their command.
    fn tool_script(&self) -> Result<PathBuf> {
        const LINES: &str = r#"{"tool_calls":[{"name":"exec","arguments":{"command":"echo more >> notes; yes | head -c 3000000"}},{"name":"write","arguments":{"path":"made.txt","content":"one\n"}},{"name":"read","arguments":{"path":"notes"}}]}
{"tool_calls":[{"name":"exec","arguments":{"command":"sleep 30","background":true}},{"name":"exec","arguments":{"command":"(setsid sleep 31 &); head -c 1000000 /dev/zero > big; rm -f made.txt; mv notes more"}}]}
{"tool_calls":[{"name":"no_such","arguments":{}},{"name":"read","arguments":{"path":"../secret"}},{"name":"exec","arguments":{"command":"cat more; echo sk-soak-secret-0123456789; exit 3"}}]}
{"text":"Done."}
"#;
        let path = self.folder.join("tools.jsonl");
        std::fs::write(&path, LINES).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// The workspace in which tools work.
    pub(super) fn workspace(&self) -> Result<PathBuf> {
        let path = self.folder.join("workspace");
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// A program in this home and no other.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.folder).env("DRAWLOOM_HOME", self.home()).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a process that stays until its standard input is closed.
    pub(super) fn stay(&self, name: &str) -> Result<Child> {
        let mut command = self.command(&self.resident);
        command.arg(self.home()).arg(name).arg(self.script()?).stdin(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().context("cannot start a process that stays")
    }

    /// The JSON answer of a command that must succeed.
    pub(super) fn json(&self, words: &[&str]) -> Result<Value> {
        let mut command = self.command(&self.program);
        let output =
            command.arg("--json").args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
        if !output.status.success() {
            bail!("{words:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).with_context(|| format!("{words:?} answers no JSON"))
    }

    /// One worker: a command after another until `end`, some stopped for a while, some killed.
    pub(super) fn work(&self, seed: u64, end: Instant, tally: &Tally) -> Result<()> {
        let mut seeded = Seeded(seed);
        let script = format!("script:{}", self.script()?.display());
        let tools = format!("script:{}", self.tool_script()?.display());
        let workspace = self.workspace()?.display().to_string();
        while Instant::now() < end {
            let tree = format!("Shared {}", seeded.below(3));
            let words = words(&mut seeded, &tree, &self.folder, seed);
            let words = words.iter().map(|word| {
                word.replace("SCRIPT", &script).replace("TOOLS", &tools).replace("WORKSPACE", &workspace)
            });
            let mut child =
                self.command(&self.program).args(words).spawn().context("cannot start a command")?;
            tally.ran.fetch_add(1, Ordering::Relaxed);
            match seeded.below(10) {
                0..3 => {
                    thread::sleep(Duration::from_millis(seeded.below(120)));
                    child.kill()?;
                    tally.killed.fetch_add(1, Ordering::Relaxed);
                }
                3 => {
                    thread::sleep(Duration::from_millis(seeded.below(60)));
                    signal(&child, "STOP");
                    thread::sleep(Duration::from_millis(300));
                    signal(&child, "CONT");
                    tally.stopped.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
            let status = ended(&mut child)?;
            // Refusals are answers; a fault of the program itself is not.
            if status == Some(101) || status == Some(134) {
                bail!("a command ended with {status:?}");
            }
        }
        Ok(())
    }
}

/// What a worker does next.
fn words(seeded: &mut Seeded, tree: &str, folder: &Path, worker: u64) -> Vec<String> {
    let text = format!(" word{} ", seeded.below(1000));
    let backup = folder.join(format!("{worker}.backup")).display().to_string();
    let session = format!("soak{}", seeded.below(3));
    let words: &[&str] = match seeded.below(22) {
        0..4 => &["tree", "append", tree, &text],
        4..8 => &["--model", "SCRIPT", "tree", "generate", tree, "-n", "2"],
        8 => &["tree", "draft", tree, &text],
        9 => &["tree", "undo", tree],
        10 => &["tree", "redo", tree],
        11 => &["search", "word*"],
        12 => &["tree", "text", tree],
        13 => &["tree", "show", tree, "--all"],
        14 => &["tree", "verify", tree],
        15..18 => {
            &["--workspace", "WORKSPACE", "--model", "TOOLS", "chat", "--session", &session, "-m", "Work."]
        }
        18 => &["--workspace", "WORKSPACE", "chat", "--session", &session, "-m", "/stop"],
        19 => &["--workspace", "WORKSPACE", "chat", "--session", &session, "-m", "/undo --files"],
        20 => &["--workspace", "WORKSPACE", "chat", "--session", &session, "-m", "/diff session"],
        _ => &["backup", "-o", &backup],
    };
    words.iter().map(ToString::to_string).collect()
}

/// Sends a signal. The standard library has no other than KILL.
fn signal(child: &Child, name: &str) {
    let _ = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .stderr(Stdio::null())
        .status();
}

/// The exit code of a process, once it has ended; none when a signal ended it.
pub(super) fn ended(child: &mut Child) -> Result<Option<i32>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("a process hangs");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Numbers that look random and are the same in every run of a seed (SplitMix64).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
