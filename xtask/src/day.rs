//! A writer's day, with the program as a person has it: a long text brought in, edited in an editor at a terminal, gone on
//! with sentence by sentence, branched, compared, undone and redone, taken to another home.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::say::say;

const TITLE: &str = "Day";
const CHAPTERS: usize = 30;
/// Paragraphs of a chapter, and sentences of a paragraph.
const PARAGRAPHS: usize = 9;
const SENTENCES: usize = 8;
/// Sentences a model is asked for, one after another.
const GOES_ON: usize = 40;
/// Names the file in which the stand-in for an editor leaves what it saved.
const SAVED: &str = "DRAWLOOM_DAY_SAVED";
/// What the script model says, cut behind its first sentence.
const SCRIPT: &str = r#"{"text": " The rain fell on the mill again. Nobody", "loop": true}"#;
const OTHER_SCRIPT: &str = r#"{"text": " Der Regen fiel. Niemand", "loop": true}"#;

/// `cargo xtask day PROGRAM [MODEL OTHER]`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (program, models) = arguments.split_first().context("cargo xtask day takes the program")?;
    let folder = std::env::temp_dir().join(format!("drawloom-day-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let day = Day { program: fs::canonicalize(program)?, folder };
    let models = match models {
        [model, other] => [model.clone(), other.clone()],
        _ => {
            fs::write(day.path("one.jsonl"), SCRIPT)?;
            fs::write(day.path("other.jsonl"), OTHER_SCRIPT)?;
            ["one", "other"].map(|name| format!("script:{}", day.path(&format!("{name}.jsonl")).display()))
        }
    };
    let done = day.write(&models);
    fs::remove_dir_all(&day.folder)?;
    done
}

struct Day {
    program: PathBuf,
    folder: PathBuf,
}

impl Day {
    fn write(&self, [model, other]: &[String; 2]) -> Result<()> {
        let novel = novel();
        ensure!(novel.split_whitespace().count() >= 20_000, "the text has too few words");
        fs::write(self.path("novel.md"), &novel)?;
        self.ok(&["tree", "new", "--title", TITLE, "--file", "novel.md"])?;
        ensure!(self.text()? == novel, "the text came in changed");

        let first = self.ids()?;
        let mut text = novel;
        for chapter in [2, 11, 20] {
            text = self.edit(&text, &first, chapter)?;
        }
        let edited = self.ids()?;
        ensure!(edited.len() == first.len(), "no passage left the path");
        let stayed = first.iter().zip(&edited).filter(|(before, after)| before == after).count();
        ensure!(stayed + 3 * PARAGRAPHS >= first.len(), "passages of other chapters changed");
        say(&format!("three chapters were edited; {stayed} of {} passages are the same nodes", first.len()));

        for _ in 0..GOES_ON {
            self.generate(model, &["--stop", "sentence", "--max-tokens", "48"])?;
        }
        let written = self.text()?;
        ensure!(written.starts_with(&text) && written.len() > text.len(), "forty sentences were written");
        self.generate(model, &["-n", "3", "--max-tokens", "24", "--temperature", "1"])?;
        for flag in ["--next", "--next", "--prev"] {
            self.ok(&["tree", "switch", TITLE, flag])?;
        }
        self.ok(&["tree", "siblings", TITLE])?;
        let here = self.tip()?;
        self.ok(&["tree", "branch", TITLE, "--after", "stood in chapter 7, sentence 3,"])?;
        ensure!(
            self.text()?.ends_with("stood in chapter 7, sentence 3,"),
            "the branch begins behind the words"
        );
        self.generate(other, &["--max-tokens", "24"])?;
        self.ok(&["tree", "go", TITLE, &here])?;
        ensure!(self.text()?.starts_with(&written), "back at the end");

        let by_model = self.generate(model, &["--max-tokens", "24"])?;
        let by_other = self.generate(other, &["--from", &here, "--max-tokens", "24"])?;
        self.ok(&["tree", "compare", TITLE, &by_model, &by_other])?;
        let authors = self.json(&["tree", "text", TITLE, "--spans"])?;
        let kinds = |kind: &str| {
            let spans = authors["spans"].as_array().into_iter().flatten();
            spans.filter(|span| span["kind"] == kind).count()
        };
        ensure!(kinds("human") > 0 && kinds("model") >= GOES_ON, "who wrote what: {}", authors["spans"]);
        self.ok(&["tree", "text", TITLE, "--authors"])?;
        self.undo_and_redo()?;

        self.ok(&["tree", "export", TITLE, "-o", "day.jsonl"])?;
        let there = Self { program: self.program.clone(), folder: self.path("there") };
        fs::create_dir(&there.folder)?;
        there.ok(&["import", "../day.jsonl"])?;
        ensure!(there.text()? == self.text()?, "the text is another in the other home");
        let verified = there.json(&["tree", "verify", TITLE])?;
        ensure!(verified["status"] == "valid", "in the other home: {verified}");
        say("the day was written, undone, redone, exported and imported");
        Ok(())
    }

    /// Edits a chapter at a terminal. Returns the text as it has to be then.
    fn edit(&self, text: &str, ids: &[String], chapter: usize) -> Result<String> {
        // Each chapter is its heading and its paragraphs.
        let from = chapter * (PARAGRAPHS + 1);
        let passage = |at: usize| ids.get(at).map(String::as_str).context("a passage is missing");
        let line = format!(
            "{} tree edit {TITLE} --from {} --to {}",
            self.program.display(),
            passage(from)?,
            passage(from + PARAGRAPHS)?
        );
        let stand_in = std::env::current_exe()?;
        let mut command = self.command("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
        command.env("EDITOR", format!("{} edit-chapter", stand_in.display())).env(SAVED, self.path("saved"));
        ended(command.output()?, &line)?;
        let begin = text.find(&heading(chapter)).context("the chapter is gone")?;
        let end = text.find(&heading(chapter + 1)).context("the next chapter is gone")?;
        let expected =
            format!("{}{}{}", &text[..begin], fs::read_to_string(self.path("saved"))?, &text[end..]);
        ensure!(self.text()? == expected, "chapter {chapter} is not what the editor saved");
        Ok(expected)
    }

    /// All the way back, and forth again.
    fn undo_and_redo(&self) -> Result<()> {
        let end = self.text()?;
        let mut steps = 0;
        while self.run(&["tree", "undo", TITLE])?.status.success() {
            steps += 1;
            ensure!(steps < 1_000, "undo comes to no end");
        }
        ensure!(self.text()?.is_empty(), "everything was undone");
        for _ in 0..steps {
            self.ok(&["tree", "redo", TITLE])?;
        }
        ensure!(self.text()? == end, "redo leads to another text");
        say(&format!("{steps} steps were undone and redone"));
        Ok(())
    }

    /// Asks for more. Returns the first new node.
    fn generate(&self, model: &str, more: &[&str]) -> Result<String> {
        let made = self.json(&[&["--model", model, "tree", "generate", TITLE], more].concat())?;
        let node = made["nodes"][0]["short_id"].as_str().context("nothing was written")?;
        Ok(node.to_owned())
    }

    fn ids(&self) -> Result<Vec<String>> {
        let (mut ids, mut from) = (Vec::new(), None::<String>);
        loop {
            let mut words = vec!["tree", "show", TITLE, "--limit", "200"];
            words.extend(from.iter().flat_map(|from| ["--from", from.as_str()]));
            let shown = self.json(&words)?;
            let page = shown["nodes"].as_array().context("no nodes")?;
            let page = page.iter().filter(|node| !node["parent"].is_null());
            let page = page.filter_map(|node| Some(node["short_id"].as_str()?.to_owned()));
            ids.splice(0..0, page.collect::<Vec<_>>());
            match shown["next"].as_str() {
                Some(next) => from = Some(next.to_owned()),
                None => return Ok(ids),
            }
        }
    }

    fn tip(&self) -> Result<String> {
        self.ids()?.pop().context("the path is empty")
    }

    fn text(&self) -> Result<String> {
        Ok(String::from_utf8(self.ok(&["tree", "text", TITLE])?.stdout)?)
    }

    fn json(&self, words: &[&str]) -> Result<Value> {
        let output = self.ok(&[words, &["--json"]].concat())?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn ok(&self, words: &[&str]) -> Result<Output> {
        ended(self.run(words)?, &words.join(" "))
    }

    fn run(&self, words: &[&str]) -> Result<Output> {
        let mut command = self.command(&self.program);
        Ok(command.args(words).output()?)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("DRAWLOOM_HOME", self.path("home")).env("SHELL", "/bin/sh");
        command.stdin(std::process::Stdio::null());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn ended(output: Output, what: &str) -> Result<Output> {
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("{what}: {}: {}", output.status, String::from_utf8_lossy(&said));
    }
    Ok(output)
}

/// The stand-in for an editor: passages of a chapter changed, parted, joined, moved, taken out and written, in place.
pub(crate) fn edit_chapter(arguments: &[String]) -> Result<()> {
    let [file] = arguments else { bail!("one file is edited at a time") };
    let text = fs::read_to_string(file)?;
    let (header, body) = text.split_once('\n').context("there is no line above the text")?;
    let body = body.strip_suffix('\n').context("the last line has no end")?;
    let mut passages: Vec<String> = body.split_inclusive("\n\n").map(str::to_owned).collect();
    ensure!(passages.len() > PARAGRAPHS, "a chapter has {} passages", passages.len());
    passages[1] = passages[1].replace("stood", "lay");
    passages[2] = passages[2].replacen(". ", ".\n\n", 1);
    passages[3] = passages[3].trim_end().to_owned() + " ";
    passages.swap(5, 6);
    passages.remove(7);
    passages.insert(2, "A passage that was not there, éà 🦀.\n\n".to_owned());
    let body = passages.concat();
    fs::write(file, format!("{header}\n{body}\n"))?;
    let mut plain = String::new();
    for (at, part) in body.split('⟦').enumerate() {
        plain.push_str(if at == 0 { part } else { part.split_once('⟧').map_or(part, |(_, rest)| rest) });
    }
    fs::write(std::env::var_os(SAVED).context("nobody waits for the text")?, plain)?;
    Ok(())
}

fn heading(chapter: usize) -> String {
    format!("# Chapter {chapter}\n")
}

/// A text in three languages, no two sentences of it the same.
fn novel() -> String {
    let mut text = String::new();
    for chapter in 0..CHAPTERS {
        text += &format!("{}\n", heading(chapter));
        for paragraph in 0..PARAGRAPHS {
            let sentences = (0..SENTENCES).map(|sentence| {
                let number = paragraph * SENTENCES + sentence;
                match chapter % 3 {
                    0 => {
                        format!("Die Mühle am Fluss in Kapitel {chapter}, Satz {number}, war still geworden.")
                    }
                    1 => format!(
                        "The old mill stood in chapter {chapter}, sentence {number}, beside grey water."
                    ),
                    _ => format!("Старая мельница стояла в главе {chapter}, строка {number}, у тихой воды."),
                }
            });
            text += &sentences.collect::<Vec<_>>().join(" ");
            text += "\n\n";
        }
    }
    text
}
