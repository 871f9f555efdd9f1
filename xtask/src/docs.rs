//! The commands of README.md and docs/*.md, run as they stand.
//!
//! A block of code marked `sh` is run line by line, in order. Each heading begins an empty home, so that what stands
//! below it needs nothing of above. Providers that a document names are stand-ins, given by the environment. A block
//! that cannot be run has `<!-- not run: WHY -->` above it, and is listed. Any other block that calls the program is an
//! error.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::mock;
use crate::say::say;

const PROGRAM: &str = "drawloom";
/// What needs somebody at a terminal.
const CONVERSATION: &str = "drawloom chat";
/// What asks questions at a terminal; what is typed there means no.
const QUESTIONS: &str = "drawloom init";
/// The variable that names a folder of weights, so that they are fetched once.
const MODELS: &str = "DRAWLOOM_DOCS_MODELS";
const MARK: &str = "<!-- not run: ";
/// What is typed at a terminal: one message, and the end of the conversation.
const TYPED: &str = "What is a loom?\n/exit\n";
/// How long a command may take, in seconds.
const SECONDS: &str = "120";
/// Providers that documents name, as the environment has them.
const STAND_INS: [&str; 3] = ["ANTHROPIC", "LOCAL", "BOX"];
/// The document whose blocks are doors, and how many lines a door has at most.
const DOORS: (&str, usize) = ("README.md", 10);

/// Lines of a document between fences.
struct Block {
    /// Number of its first line, from 1.
    line: usize,
    /// Number of the last heading above it, from 0.
    section: usize,
    lines: Vec<String>,
    runs: bool,
    /// Why it is not run.
    mark: Option<String>,
}

/// `cargo xtask docs PROGRAM [--terminal] FILE...`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (program, rest) = arguments.split_first().context("cargo xtask docs takes the program and files")?;
    let (terminal, files) = match rest {
        [flag, files @ ..] if flag == "--terminal" => (true, files),
        files => (false, files),
    };
    let program = fs::canonicalize(program).with_context(|| format!("there is no program {program}"))?;
    let (base, began) = (mock::start()?, Instant::now());
    let (mut run, mut left) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let mut place: Option<(usize, Place)> = None;
        for block in blocks(&text) {
            let at = format!("{file}:{}", block.line);
            let calls = block.lines.iter().filter(|line| line.split(' ').any(|word| word == PROGRAM)).count();
            if let Some(why) = &block.mark {
                left.push(format!("{at}: {} lines: {why}", block.lines.len()));
                continue;
            }
            if !block.runs {
                ensure!(calls == 0, "{at}: mark the block `sh`, or say why it is not run");
                continue;
            }
            ensure!(
                file != DOORS.0 || block.lines.len() <= DOORS.1,
                "{at}: the block is longer than {} lines",
                DOORS.1
            );
            let place = match &mut place {
                Some((section, place)) if *section == block.section => place,
                other => {
                    // The one before goes first: both are the same folder.
                    *other = None;
                    &mut other.insert((block.section, Place::make(&program, &base)?)).1
                }
            };
            for line in &block.lines {
                if !terminal && is_conversation(line) {
                    left.push(format!("{at}: {CONVERSATION}: it needs --terminal"));
                    continue;
                }
                place.run(line, terminal).with_context(|| format!("{at}: {line}"))?;
                run += 1;
            }
        }
    }
    say(&format!("{run} commands of the documentation were run in {} s", began.elapsed().as_secs()));
    left.iter().for_each(|block| say(&format!("not run: {block}")));
    Ok(())
}

fn is_conversation(line: &str) -> bool {
    line.split('#').next().map(str::trim) == Some(CONVERSATION)
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut within, mut mark, mut section) = (false, None, 0);
    for (number, line) in text.lines().enumerate() {
        // What has backticks behind it is text about a fence.
        if let Some(info) = line.strip_prefix("```").filter(|info| !info.contains('`')) {
            if !within {
                let runs = info == "sh";
                blocks.push(Block { line: number + 2, section, lines: Vec::new(), runs, mark: mark.take() });
            }
            within = !within;
        } else if within {
            if let Some(block) = blocks.last_mut() {
                block.lines.push(line.to_owned());
            }
        } else {
            section += usize::from(line.starts_with('#'));
            mark = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")).map(str::to_owned);
        }
    }
    blocks
}

/// An empty home, and a folder to stand in.
struct Place {
    folder: PathBuf,
    path: String,
    /// Address of the stand-in for providers.
    base: String,
}

impl Place {
    fn make(program: &Path, base: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("drawloom-docs-{}", std::process::id()));
        // What a run before left there.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("here"))?;
        if let Some(models) = std::env::var_os(MODELS) {
            let home = folder.join("home");
            fs::create_dir(&home)?;
            fs::set_permissions(&home, PermissionsExt::from_mode(0o700))?;
            symlink(models, home.join("models"))?;
        }
        let own = program.parent().context("the program lies in no folder")?;
        let path = std::env::var("PATH").unwrap_or_default();
        Ok(Self { folder, path: format!("{}:{path}", own.display()), base: base.to_owned() })
    }

    fn run(&self, line: &str, terminal: bool) -> Result<()> {
        let mut command = Command::new("timeout");
        command.arg(SECONDS);
        if terminal {
            command.args(["script", "--quiet", "--return", "--command", line, "/dev/null"]);
        } else {
            command.args(["sh", "-c", line]);
        }
        command
            .current_dir(self.folder.join("here"))
            .env("HOME", &self.folder)
            .env("DRAWLOOM_HOME", self.folder.join("home"))
            .env("PATH", &self.path)
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .env("EDITOR", "sed -i s/mill/barn/")
            .envs(STAND_INS.map(|name| (format!("DRAWLOOM_PROVIDERS__{name}__BASE_URL"), &self.base)))
            .env("DRAWLOOM_PROVIDERS__ANTHROPIC__KEY", "a-key-of-nobody")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(if terminal { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().context("cannot start it")?;
        if let Some(mut input) = child.stdin.take() {
            use std::io::Write;
            // Who reads nothing has ended by then; what nobody reads `script` would wait for.
            let asks = is_conversation(line) || line.starts_with(QUESTIONS);
            let typed = if asks { TYPED } else { "" };
            let _ = input.write_all(typed.as_bytes());
        }
        let ended = child.wait_with_output()?;
        if !ended.status.success() {
            let said = [ended.stdout, ended.stderr].concat();
            bail!("{}: {}", ended.status, String::from_utf8_lossy(&said));
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
