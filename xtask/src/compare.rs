//! The everyday tasks of `docs/compare.md`, run with Drawloom and with `llm` against one mock of a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::mock;
use crate::say::say;

const TABLE: &str = "docs/compare.md";
/// The one word Drawloom may need more.
const ASK: &str = "ask";
/// A picture of one dot.
const DOT: [u8; 67] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0,
    0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63,
    0x60, 0, 0, 0, 2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60,
    0x82,
];
const SCHEMA: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false}"#;

/// `cargo xtask compare PROGRAM LLM`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [program, llm] = arguments else { bail!("cargo xtask compare takes the program and llm") };
    let folder = std::env::temp_dir().join(format!("drawloom-compare-{}", std::process::id()));
    fs::create_dir_all(folder.join("bin"))?;
    for (name, path) in [("drawloom", program), ("llm", llm)] {
        std::os::unix::fs::symlink(fs::canonicalize(path)?, folder.join("bin").join(name))?;
    }
    let done = compare(&folder);
    fs::remove_dir_all(&folder)?;
    done
}

fn compare(folder: &Path) -> Result<()> {
    let place = Place { folder: folder.to_owned(), base: mock::start()? };
    place.furnish()?;
    let table = fs::read_to_string(TABLE)?;
    let mut tasks = 0;
    for row in table.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [task, ours, theirs] = cells[..] else { bail!("a row has {} cells: {row}", cells.len()) };
        let line = |cell: &str| cell.trim_matches('`').replace("\\|", "|");
        let said = place.run(&line(ours)).with_context(|| task.to_owned())?;
        tasks += 1;
        if theirs == "–" {
            say(&format!("{task}: {} words, llm has nothing", words(&line(ours))));
            continue;
        }
        place.run(&line(theirs)).with_context(|| format!("{task} with llm"))?;
        let (own, other) = (words(&line(ours)), words(&line(theirs)));
        let spare = usize::from(line(ours).split(' ').any(|word| word == ASK));
        ensure!(own <= other + spare, "{task}: {own} words, llm needs {other}");
        ensure!(!said.trim().is_empty(), "{task} says nothing");
        say(&format!("{task}: {own} words, llm {other}"));
    }
    ensure!(tasks == 15, "{tasks} tasks were compared");
    Ok(())
}

/// Words of a line without the program's name and what stands in double quotes.
fn words(line: &str) -> usize {
    let bare: String = line.split('"').step_by(2).collect();
    bare.split_whitespace().filter(|word| !["drawloom", "llm"].contains(word)).count()
}

struct Place {
    folder: PathBuf,
    base: String,
}

impl Place {
    fn furnish(&self) -> Result<()> {
        let models = ["one", "two"].map(|name| {
            format!(
                "- model_id: mock-{name}\n  model_name: {name}\n  api_base: {}\n  api_key_name: mock\n  vision: true\n  \
                 supports_schema: true\n",
                self.base
            )
        });
        fs::create_dir(self.folder.join("llm"))?;
        fs::write(self.folder.join("llm/extra-openai-models.yaml"), models.concat())?;
        fs::create_dir(self.folder.join("here"))?;
        fs::write(self.folder.join("here/notes.txt"), "The warp was cut. The loom stood still.\n")?;
        fs::write(self.folder.join("here/person.json"), SCHEMA)?;
        fs::write(self.folder.join("here/dot.png"), DOT)?;
        Ok(())
    }

    fn run(&self, line: &str) -> Result<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.folder.join("here"))
            .env("PATH", format!("{}:{path}", self.folder.join("bin").display()))
            .env("HOME", &self.folder)
            .env("LLM_USER_PATH", self.folder.join("llm"))
            .env("DRAWLOOM_HOME", self.folder.join("home"))
            .env("DRAWLOOM_PROVIDERS__MOCK__BASE_URL", &self.base)
            .env("DRAWLOOM_PROVIDERS__MOCK__KIND", "vllm")
            .env("DRAWLOOM_PROVIDERS__MOCK__IMAGES", "true")
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            bail!("{line}: {}: {}", output.status, String::from_utf8_lossy(&said));
        }
        Ok(String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?)
    }
}
