//! A story played in a temporary home, with a scripted model and no network.
//!
//! Every step is this very program, run as a person would run it: nothing here reaches around the command line.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use commands::CommandError;
use serde_json::Value;

use crate::output;

/// What the scripted model says: three continuations, then one more for a branch.
const SCRIPT: &str = r#"{"deltas":[" The"," boatman"," counted"," us"," twice,"," and"," came"," to"," different"," numbers."]}
{"deltas":[" Halfway"," over,"," the"," engine"," stopped,"," and"," nobody"," spoke."]}
{"deltas":[" On"," the"," far"," bank"," someone"," had"," lit"," a"," lamp"," for"," each"," of"," us."]}
{"deltas":[" went"," on"," without"," us,"," its"," wake"," folding"," shut"," behind"," it."]}
"#;

/// The document the story begins with.
const DRAFT: &str = "The ferry left at six, whatever the weather.\n\nThat evening there was none: no wind, no rain, no \
                     moon. We stood at the rail and waited for the other shore.";

/// Plays the story. With `keep` its home stays in that folder, as `home`, to go on with; `own` is the home of this
/// invocation.
///
/// # Errors
/// When the folder is in `own`, or a step does not do what it should.
pub(crate) fn play(keep: Option<&Path>, own: Option<&Path>) -> Result<(), CommandError> {
    let keep = keep.map(std::path::absolute).transpose().map_err(|error| failed("the folder", &error))?;
    if let (Some(folder), Some(own)) = (&keep, own) {
        commands::maintenance::refuse_within(&folder.join("home"), own)?;
    }
    let temporary = match &keep {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|error| failed("a temporary folder", &error))?),
    };
    let folder = match (&keep, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().to_path_buf(),
        (None, None) => return Err(failed("a folder", &"there is none")),
    };
    fs::create_dir_all(&folder).map_err(|error| failed("the folder", &error))?;
    let home = folder.join("home");
    // One that is there is not met for the first time, and nobody is asked to set it up.
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&home)
        .map_err(|error| failed("the home", &error))?;
    let story = DemoScript { program: program()?, home, folder };
    story.tell()?;
    if let Some(folder) = keep {
        let home = folder.join("home");
        say(&format!(
            "\nThe home is in {}. To continue: drawloom --home {} tree show Ferry",
            home.display(),
            home.display()
        ))?;
    }
    Ok(())
}

fn program() -> Result<PathBuf, CommandError> {
    std::env::current_exe().map_err(|error| failed("this program", &error))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::new("demo", 1, format!("the demo failed at {what}: {error}"), "please report it")
}

fn say(line: &str) -> Result<(), CommandError> {
    output::bytes(format!("{line}\n").as_bytes())
}

/// A story in the making.
struct DemoScript {
    program: PathBuf,
    home: PathBuf,
    folder: PathBuf,
}

impl DemoScript {
    fn tell(&self) -> Result<(), CommandError> {
        let draft = self.folder.join("draft.txt");
        let script = self.folder.join("script.jsonl");
        fs::write(&draft, DRAFT).map_err(|error| failed("writing the draft", &error))?;
        fs::write(&script, SCRIPT).map_err(|error| failed("writing the script", &error))?;
        let model = format!("script:{}", script.display());
        let lines: Vec<&str> = SCRIPT.lines().collect();

        self.act("A document from a file.", &["tree", "new", "--title", "Ferry", "--file", "draft.txt"])?;
        self.act(
            "Three continuations. (A script stands in for the model.)",
            &["--model", &model, "tree", "generate", "Ferry", "-n", "3"],
        )?;
        let nodes = self.ask(&["tree", "show", "Ferry", "--all"])?;
        let node = |index: usize| short(&nodes["nodes"], index);
        let (first, second) = (node(1)?, node(4)?);
        self.act("The second one is better.", &["tree", "switch", "Ferry", &second])?;
        self.act(
            "A sentence of our own after it.",
            &["tree", "append", "Ferry", " We heard the water think."],
        )?;
        self.act(
            "A word changed far above. Everything below stays.",
            &["tree", "edit", "Ferry", &first, "--replace", "six", "seven"],
        )?;
        self.act("Who wrote what.", &["tree", "text", "Ferry", "--spans"])?;
        self.act("Text that followed the old words is marked.", &["tree", "show", "Ferry"])?;

        // The branch asks for its own line of the script: counting starts anew in every process.
        fs::write(&script, format!("{}\n", lines[3]))
            .map_err(|error| failed("writing the script", &error))?;
        let cut = " Halfway over, the engine".chars().count().to_string();
        self.act(
            "Another way, from inside that passage.",
            &["tree", "branch", "Ferry", &second, "--at", &cut],
        )?;
        self.act("", &["--model", &model, "tree", "generate", "Ferry"])?;

        let before = self.text()?;
        let mut steps = 0;
        while self.quiet(&["tree", "undo", "Ferry"])? {
            steps += 1;
        }
        let empty = self.text()?;
        for _ in 0..steps {
            self.quiet(&["tree", "redo", "Ferry"])?;
        }
        if !empty.is_empty() || self.text()? != before {
            return Err(failed("undo and redo", &"the text is not what it was"));
        }
        say(&format!("\nUndone to the empty page and done again, {steps} steps each way: the same text.\n"))?;

        let nodes = self.ask(&["tree", "show", "Ferry"])?;
        let count = nodes["nodes"].as_array().map_or(0, Vec::len);
        let last = format!("Ferry:{}", short(&nodes["nodes"], count.saturating_sub(1))?);
        self.act("What the model was sent for the last passage, and why.", &["context", "show", &last])?;
        self.act("The same bytes, read back.", &["context", "replay", &last, "--dry-run"])?;
        self.act("Everything agrees with its hashes.", &["tree", "verify", "Ferry"])?;
        self.act("The document.", &["tree", "text", "Ferry"])?;
        Ok(())
    }

    /// One step, shown as it would be typed.
    fn act(&self, why: &str, words: &[&str]) -> Result<(), CommandError> {
        if !why.is_empty() {
            say(&format!("\n# {why}"))?;
        }
        let typed: Vec<String> = words.iter().map(|word| shown(word, &self.folder)).collect();
        say(&format!("$ drawloom {}", typed.join(" ")))?;
        let done = self.command(words).stdout(Stdio::inherit()).status();
        match done {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(&typed.join(" "), &status)),
            Err(error) => Err(failed(&typed.join(" "), &error)),
        }
    }

    /// The JSON answer of a step that is not shown.
    fn ask(&self, words: &[&str]) -> Result<Value, CommandError> {
        let words = [&["--json"], words].concat();
        let done = self.command(&words).output().map_err(|error| failed(&words.join(" "), &error))?;
        serde_json::from_slice(&done.stdout).map_err(|error| failed(&words.join(" "), &error))
    }

    /// Whether a step that is not shown was done.
    fn quiet(&self, words: &[&str]) -> Result<bool, CommandError> {
        let done = self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
        done.map(|status| status.success()).map_err(|error| failed(&words.join(" "), &error))
    }

    fn text(&self) -> Result<String, CommandError> {
        Ok(self.ask(&["tree", "text", "Ferry"])?["text"].as_str().unwrap_or_default().to_owned())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--home").arg(&self.home).args(words).current_dir(&self.folder).stdin(Stdio::null());
        command
    }
}

fn short(nodes: &Value, index: usize) -> Result<String, CommandError> {
    let found = nodes[index]["short_id"].as_str().map(str::to_owned);
    found.ok_or_else(|| failed("a node", &format!("there is no node {index}")))
}

/// A word as a person would type it.
fn shown(word: &str, folder: &Path) -> String {
    let word = word.replace(&format!("{}/", folder.display()), "");
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=".contains(c));
    let short: String =
        if word.chars().count() > 48 { word.chars().take(45).chain("…".chars()).collect() } else { word };
    if plain { short } else { format!("\"{}\"", short.replace('\n', "⏎")) }
}
