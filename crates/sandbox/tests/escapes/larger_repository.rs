//! A repository that the root is a folder of: what commands of any level and time may do to what is shown of it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use drawloom_sandbox::{CommandLine, Ending, Level, Limits, Notice, Outcome, Run, Walls};
use tempfile::TempDir;

use crate::world::{Program, SECRET, lacks};

/// Puts what a command guesses under the name of a file into the index.
const GUESS: &str = "git --git-dir=../.git update-index --add --cacheinfo \
    100644,$(echo guess | git --git-dir=../.git hash-object -w --stdin),other/.env";

/// A program that a question may be led to. It knows the text that a command guessed.
const THIEF: &str = "cat other/.env >> ~/stolen; echo guess";

/// A repository with a part that commands run in, and a secret beside it.
struct Repository {
    folder: TempDir,
    program: Arc<Program>,
    /// Root of the commands, and the git folder that serves it.
    root: &'static str,
    git: &'static str,
}

impl Repository {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let new = Self { folder, program: Program::new(), root: "outer/part", git: "outer/.git" };
        for name in ["outer/part", "outer/other", "home", "records"] {
            fs::create_dir_all(new.path(name)).unwrap();
        }
        fs::write(new.path("outer/part/b"), "b").unwrap();
        fs::write(new.path("outer/other/a"), "a").unwrap();
        new.git(&["init", "-q"]);
        new.git(&["add", "-A"]);
        new.git(&["-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "-q", "-m", "one"]);
        fs::write(new.path("outer/other/.env"), SECRET).unwrap();
        new
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        assert!(git.args(arguments).current_dir(self.path("outer")).status().unwrap().success());
    }

    fn run(&self, way: &str, line: &str, level: Level, time_ms: u64) -> Outcome {
        let output = self.supervisor(way, line, level, time_ms).output().unwrap();
        serde_json::from_slice::<Result<Outcome, String>>(&output.stdout).unwrap().unwrap()
    }

    /// Program that runs a line. Programs of the workspace are found first.
    fn supervisor(&self, way: &str, line: &str, level: Level, time_ms: u64) -> Command {
        let mut walls = Walls::around(&self.path(self.root), &self.path("home"));
        walls.git_folders = vec![self.path(self.git)];
        walls.tracked_records = Some(self.path("records"));
        walls.limits = Limits { time_ms, free_space: 1, ..Limits::default() };
        let path = format!("{}:{}", self.path("outer/part/bin").display(), walls.environment["PATH"]);
        walls.environment.insert("PATH".to_owned(), path);
        let run = Run {
            walls,
            command: CommandLine::Shell(line.to_owned()),
            directory: self.path(self.root),
            level,
            quarantine: self.path("quarantine"),
            signs_of_life: Vec::new(),
        };
        let mut supervisor = Command::new(self.program.path());
        supervisor.arg(way).arg(serde_json::to_string(&run).unwrap());
        supervisor
    }

    fn shows(&self, line: &str) -> Outcome {
        let outcome = self.run("supervise", line, Level::Full, 20_000);
        let told = format!("{outcome:?} {}", outcome.standard.text());
        assert!(!told.contains(SECRET), "{told}");
        outcome
    }

    /// What a question before a command must not have done, whatever commands left for it to run.
    fn nothing_was_stolen(&self, notice: &str) {
        let outcome = self.shows("cat ~/stolen ../other/.env");
        let says = |told: &Notice| matches!(told, Notice::Lacks(what) if what.contains(notice));
        assert!(outcome.notices.iter().any(says), "{outcome:?}");
        assert!(!self.path("home/stolen").exists(), "a question ran what a command left");
    }
}

#[test]
fn what_a_command_below_full_put_into_the_index_is_not_shown() {
    if lacks(&["git"]) {
        return;
    }
    for level in [Level::Full, Level::Partial, Level::None] {
        let repository = Repository::new();
        let outcome = repository.run("supervise", GUESS, level, 20_000);
        assert_eq!(outcome.ending, Ending::Exited(0), "control: {level}: {outcome:?}");
        let outcome = repository.shows("cat ../other/.env ../other/a");
        let says = |notice: &Notice| matches!(notice, Notice::Lacks(what) if what.contains("other/.env is new to git"));
        assert!(outcome.notices.iter().any(says), "{level}: {outcome:?}");
    }
}

#[test]
fn what_is_no_file_is_not_shown_whatever_the_index_says() {
    if lacks(&["git"]) {
        return;
    }
    let repository = Repository::new();
    repository.shows("true");
    let pipe = repository.path("outer/other/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(repository.path("outer/other/socket")).unwrap();
    for name in ["pipe", "socket"] {
        let line = GUESS.replace(".env", name);
        assert_eq!(repository.shows(&line).ending, Ending::Exited(0), "{name}");
    }
    let line = "test ! -e ../other/pipe && test ! -e ../other/socket && cat ../other/a";
    assert_eq!(repository.shows(line).ending, Ending::Exited(0));
}

#[test]
fn a_question_to_git_ends_with_the_time_of_the_command_and_when_it_is_cancelled() {
    if lacks(&["git"]) {
        return;
    }
    let repository = Repository::new();
    repository.shows(&GUESS.replace(".env", "large"));
    // So much that git reads it for longer than it may.
    File::create(repository.path("outer/other/large")).unwrap().set_len(1 << 40).unwrap();
    for (way, time_ms, ending) in
        [("supervise", 1_000, Ending::TimedOut), ("cancel-at-once", 60_000, Ending::Cancelled)]
    {
        let begun = Instant::now();
        let outcome = repository.run(way, "touch ran", Level::Full, time_ms);
        assert_eq!(outcome.ending, ending, "{way}");
        assert!(begun.elapsed() < Duration::from_secs(6), "{way}: {:?}", begun.elapsed());
        assert!(!repository.path("outer/part/ran").exists(), "{way}");
    }
}

#[test]
fn a_filter_of_the_owner_is_not_run_before_the_covers_stand() {
    if lacks(&["git"]) {
        return;
    }
    let repository = Repository::new();
    // As one that loads a module, which may be the command's.
    repository.git(&["config", "filter.notebook.clean", "sh ~/module"]);
    let plant = format!(
        "mkdir -p ~/.config/git && echo '* filter=notebook' > ~/.config/git/attributes && \
         echo '{THIEF}' > ~/module && {GUESS}"
    );
    assert_eq!(repository.shows(&plant).ending, Ending::Exited(0), "control");
    repository.nothing_was_stolen("other/.env is new to git");
}

#[test]
fn a_configuration_that_a_running_command_planted_is_not_read_before_the_covers_stand() {
    if lacks(&["git"]) {
        return;
    }
    let another_folder = "cp -r ../.git/objects ../.git/refs evil && mv config evil && \
        echo \"$PWD/evil/objects\" > ../.git/objects/info/alternates && echo \"$PWD/evil\" > ../.git/commondir";
    for (planted, plant, notice) in [
        ("commondir", another_folder, "git finds no repository"),
        ("config.worktree", "mv config ../.git/config.worktree", "other/.env is new to git"),
    ] {
        let repository = Repository::new();
        repository.git(&["config", "extensions.worktreeConfig", "true"]);
        let line = format!(
            "mkdir -p ~/.config/git evil && echo '* filter=evil' > ~/.config/git/attributes && \
             echo '{THIEF}' > ~/module && {GUESS} && \
             printf '[core]\\n\\tfsmonitor = sh ~/module\\n[filter \"evil\"]\\n\\tclean = sh ~/module\\n' > config && \
             {plant} && touch planted && until test -e seen; do sleep 0.05; done"
        );
        let mut running = repository.supervisor("supervise", &line, Level::Full, 60_000);
        let mut running = running.stdout(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while !repository.path("outer/part/planted").exists() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(repository.path("outer/.git").join(planted).exists(), "control: {planted} is there");
        repository.nothing_was_stolen(notice);
        fs::write(repository.path("outer/part/seen"), "").unwrap();
        assert!(running.wait().unwrap().success());
    }
}

#[test]
fn a_name_in_the_index_that_leads_out_of_the_tree_is_none() {
    if lacks(&["git"]) {
        return;
    }
    let repository = Repository::new();
    fs::write(repository.path("secret"), SECRET).unwrap();
    // Which git would not take; it lists it as it stands.
    let line = GUESS.replace("other/.env", "aa/secret")
        + " && LC_ALL=C sed -i s,aa/secret,../secret, ../.git/index && git --git-dir=../.git ls-files";
    let outcome = repository.shows(&line);
    assert!(outcome.standard.text().contains("../secret"), "control: {outcome:?}");
    // What it says would tell whether the file is there, and whether it is what was guessed.
    let outcome = repository.shows("cat ../other/a");
    assert_eq!((outcome.ending, outcome.notices), (Ending::Exited(0), Vec::new()));
}

#[test]
fn a_name_with_several_hashes_in_the_index_is_none() {
    if lacks(&["git"]) {
        return;
    }
    let guess = |name: &str, text: &str| {
        GUESS.replace("other/.env", name).replace("echo guess", &format!("printf %s {text}"))
    };
    let right = guess("other/.env", SECRET);
    let repository = Repository::new();
    assert_eq!(repository.shows(&right).ending, Ending::Exited(0), "control");
    let outcome = repository.run("supervise", "cat ../other/.env", Level::Full, 20_000);
    assert_eq!(outcome.standard.text(), SECRET, "control: whoever knows a file need not look");
    let repository = Repository::new();
    let wrong = guess("othes/.env", "wrong");
    let line = format!(
        "{right} && {wrong} && LC_ALL=C sed -i s,othes/.env,other/.env, ../.git/index && git --git-dir=../.git ls-files"
    );
    let outcome = repository.shows(&line);
    assert_eq!(outcome.standard.text().matches("other/.env").count(), 2, "control: {outcome:?}");
    let outcome = repository.shows("cat ../other/.env; cat ../other/a");
    assert_eq!(outcome.standard.text(), "a");
}

#[test]
fn a_git_of_the_workspace_answers_no_question() {
    if lacks(&["git"]) {
        return;
    }
    let repository = Repository::new();
    let plant = format!(
        "{GUESS} && mkdir bin && printf '#!/bin/sh\\n(cat other/.env ../other/.env || cat ../../other/.env) >&2\\nexit 1\\n' > bin/git && \
         chmod +x bin/git"
    );
    assert_eq!(repository.shows(&plant).ending, Ending::Exited(0), "control");
    assert_eq!(repository.shows("git").ending, Ending::Exited(1), "control: it is the command's git");
    repository.nothing_was_stolen("other/.env is new to git");
}

#[test]
fn what_its_owner_took_out_of_the_index_is_not_shown_whoever_puts_it_back() {
    if lacks(&["git"]) {
        return;
    }
    let mut repository = Repository::new();
    repository.git(&["worktree", "add", "-q", "../tree"]);
    assert_eq!(repository.shows("cat ../other/a").ending, Ending::Exited(0), "control");
    repository.git(&["rm", "-q", "--cached", "other/a"]);
    fs::write(repository.path("outer/other/a"), SECRET).unwrap();
    // No tree is larger than this root, and it may write the index of the other one.
    repository.root = "tree";
    let line = GUESS.replace("../.git", "../outer/.git").replace("other/.env", "other/a");
    assert_eq!(repository.shows(&line).ending, Ending::Exited(0), "control");
    repository.root = "outer/part";
    let outcome = repository.shows("cat ../other/a");
    let says =
        |notice: &Notice| matches!(notice, Notice::Lacks(what) if what.contains("other/a is new to git"));
    assert!(outcome.notices.iter().any(says), "{outcome:?}");
}

#[test]
fn what_a_command_put_into_the_index_is_not_shown_after_the_repository_was_moved() {
    if lacks(&["git"]) {
        return;
    }
    let mut repository = Repository::new();
    assert_eq!(repository.shows(GUESS).ending, Ending::Exited(0), "control");
    fs::rename(repository.path("outer"), repository.path("moved")).unwrap();
    (repository.root, repository.git) = ("moved/part", "moved/.git");
    repository.nothing_was_stolen("other/.env is new to git");
}
