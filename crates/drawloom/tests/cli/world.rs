//! A world in which nothing exists but what a test put there.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::left_out::is_left_out;
use crate::program::program;

/// Empty folders for a user, a home and a place to stand in.
pub(crate) struct World {
    folder: TempDir,
}

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["user", "here"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Writes a file of the home, which is made as the program makes it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        std::fs::create_dir_all(self.home()).unwrap();
        std::fs::set_permissions(self.home(), PermissionsExt::from_mode(0o700)).unwrap();
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(self.home().join(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.home().join(name)).unwrap()
    }

    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env_clear();
        command.env("HOME", self.path("user")).env("DRAWLOOM_HOME", self.home()).env("TZ", "UTC");
        // Nobody would leave one.
        command.env("PAGER", "cat");
        command.current_dir(self.path("here")).stdin(Stdio::null());
        command
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs it with something on standard input.
    pub(crate) fn fed(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut child = piped(self.command(arguments).stdin(Stdio::piped()));
        match child.stdin.take().unwrap().write_all(input) {
            // It has refused before it read.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
        child.wait_with_output().unwrap().into()
    }

    /// Runs it, which must succeed, and gives what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        run.out
    }

    /// Runs it with `--json`, whose answer must be one line of JSON and nothing else.
    pub(crate) fn json(&self, arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
        let run = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(run.out.matches('\n').count(), 1, "{arguments:?}: {run:?}");
        (run.code, serde_json::from_str(&run.out).unwrap())
    }
}

/// Whether the machine lacks programs that a test's commands run, which its owner left out.
pub(crate) fn lacks(programs: &[&str]) -> bool {
    let folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let is_missing = |program: &&str| !folders.iter().any(|folder| folder.join(program).is_file());
    is_left_out(&programs.iter().copied().filter(is_missing).collect::<Vec<_>>())
}

/// Starts it with both outputs piped. A standard input that stays open would be waited for by `chat -m`.
pub(crate) fn piped(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether a program listens to Ctrl-C: before that, it ends the program the plain way.
pub(crate) fn heeds_ctrl_c(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    // Signal 2 is the second bit.
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 2 != 0))
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
