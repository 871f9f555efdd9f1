//! A repository that the root is a folder of: what commands of any level and time may do to what is shown of it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use drawloom_sandbox::{CommandLine, Ending, Level, Limits, Notice, Outcome, Run, Walls};
use tempfile::TempDir;

use crate::world::{SECRET, program};

/// Puts what a command guesses under the name of a file into the index.
const GUESS: &str = "git --git-dir=../.git update-index --add --cacheinfo \
    100644,$(echo guess | git --git-dir=../.git hash-object -w --stdin),other/.env";

/// A repository with a part that commands run in, and a secret beside it.
struct Repository {
    folder: TempDir,
}

impl Repository {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let new = Self { folder };
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
        let mut walls = Walls::around(&self.path("outer/part"), &self.path("home"));
        walls.git_folders = vec![self.path("outer/.git")];
        walls.tracked_records = Some(self.path("records"));
        walls.limits = Limits { time_ms, free_space: 1, ..Limits::default() };
        let run = Run {
            walls,
            command: CommandLine::Shell(line.to_owned()),
            directory: self.path("outer/part"),
            level,
            quarantine: self.path("quarantine"),
        };
        let output =
            Command::new(program()).arg(way).arg(serde_json::to_string(&run).unwrap()).output().unwrap();
        serde_json::from_slice::<Result<Outcome, String>>(&output.stdout).unwrap().unwrap()
    }

    fn shows(&self, line: &str) -> Outcome {
        let outcome = self.run("supervise", line, Level::Full, 20_000);
        assert!(!outcome.standard.text().contains(SECRET), "{outcome:?}");
        outcome
    }
}

#[test]
fn what_a_command_below_full_put_into_the_index_is_not_shown() {
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
    let repository = Repository::new();
    repository.shows("true");
    let pipe = repository.path("outer/other/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(repository.path("outer/other/socket")).unwrap();
    for name in ["pipe", "socket"] {
        let line = GUESS.replace(".env", name);
        assert_eq!(repository.shows(&line).ending, Ending::Exited(0), "{name}");
    }
    let line =
        "test -f ../other/pipe && test -f ../other/socket && test ! -s ../other/pipe && cat ../other/a";
    assert_eq!(repository.shows(line).ending, Ending::Exited(0));
}

#[test]
fn a_question_to_git_ends_with_the_time_of_the_command_and_when_it_is_cancelled() {
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
