//! Questions to git itself, asked behind walls in which all can only be read.
//!
//! What git does is the command's to decide: it may have written the index, the objects, what `HOME` holds, and while one
//! runs in the background a configuration, too. So git is shown no more than the command is, and before it is known what
//! that is the git folder alone. An answer is what a command may have wanted it to be.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use workspace::GitWorkingTree;

use super::Sandbox;
use super::conversation::Deadline;
use crate::outcome::{Ending, SandboxError};
use crate::process_list::mark;
use crate::request::{HelperRequest, HelperTask};
use crate::walls::{Network, RootAccess, WallRoot, Walls};

/// How long git may take for one question.
pub(super) const AT_MOST: Duration = Duration::from_secs(10);
/// Bytes of an answer, at most.
const LONGEST_ANSWER: usize = 64 << 20;
/// What a configuration names to be run is not. Nor is what Git LFS has of a file fetched or made by its program, which
/// behind the walls may be missing.
const GIT: [&str; 14] = [
    "git",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "filter.lfs.clean=",
    "-c",
    "filter.lfs.process=",
    "-c",
    "filter.lfs.required=false",
];
/// No configuration but the repository's, and nothing that is fetched: `GIT_ALLOW_PROTOCOL` is stronger than what a
/// configuration allows.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Place of a question, and what git sees there.
#[derive(Clone, Copy)]
pub(super) enum QueryPlace<'a> {
    /// The git folder of a working tree, and an empty folder that stands for that tree and for `HOME`.
    GitFolder { working: &'a GitWorkingTree, empty: &'a Path },
    /// Folder in a root, with all that the command saw.
    Root(&'a Path),
}

/// Questions at a place, until the command has to end.
#[derive(Clone, Copy)]
pub(super) struct GitQuery<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) request: &'a HelperRequest,
    pub(super) place: QueryPlace<'a>,
    pub(super) until: Deadline<'a>,
}

impl GitQuery<'_> {
    fn walls(self) -> Walls {
        let mut walls = self.request.walls.clone();
        walls.touches.clear();
        walls.network = Network::Off;
        walls.limits.output = LONGEST_ANSWER;
        if let Some(path) = walls.environment.get_mut("PATH") {
            *path = without_what_commands_write(path, &self.request.walls);
        }
        let mut environment = ENVIRONMENT.map(|(name, value)| (name, value.to_owned())).to_vec();
        match self.place {
            QueryPlace::GitFolder { working, empty } => {
                // Whatever `.git`, `commondir` and the configuration say.
                environment.extend(
                    [
                        ("GIT_DIR", working.index.parent().unwrap_or(&working.git_folder)),
                        ("GIT_COMMON_DIR", &working.git_folder),
                        ("GIT_WORK_TREE", empty),
                    ]
                    .map(|(name, path)| (name, path.to_string_lossy().into_owned())),
                );
                let read_only =
                    |path: &Path| WallRoot { path: path.to_owned(), access: RootAccess::ReadOnly };
                walls.roots = vec![read_only(&working.git_folder), read_only(empty)];
                walls.git_folders.clear();
                walls.home = empty.to_owned();
                walls.temp = None;
            }
            QueryPlace::Root(_) => {
                walls.close_for_writing();
            }
        }
        walls.environment.extend(environment.into_iter().map(|(name, value)| (name.to_owned(), value)));
        walls
    }

    /// What git answers to a question, given what it reads as its input.
    ///
    /// # Errors
    /// When git cannot be run, fails, is ended, or says more than is read.
    pub(super) fn answer(self, question: &[&OsStr], input: &[u8]) -> Result<Vec<u8>, SandboxError> {
        let (directory, protected) = match self.place {
            QueryPlace::GitFolder { empty, .. } => (empty, Vec::new()),
            QueryPlace::Root(folder) => (folder, self.request.protected.clone()),
        };
        let request = HelperRequest {
            level: self.request.level,
            walls: self.walls(),
            protected,
            fleeting: self.request.fleeting.clone(),
            hidden: self.request.hidden.clone(),
            veiled: self.request.veiled.clone(),
            quarantine: None,
            signs_of_life: Vec::new(),
            mark: mark(),
            descriptors: 1,
            caches: Vec::new(),
            task: HelperTask::Command {
                arguments: GIT.map(OsStr::new).iter().chain(question).map(OsString::from).collect(),
                directory: directory.to_owned(),
            },
        };
        let input = in_memory(input).map_err(SandboxError::Start)?;
        let mut conversation = self.sandbox.converse(&request, &[input.as_fd()], None)?;
        let deadline = self.until.deadline.min(Instant::now() + AT_MOST);
        let end = conversation.until_its_end(Deadline { deadline, ..self.until });
        if let Some(failure) = end.failure {
            return Err(SandboxError::Walls { step: failure.step, problem: failure.problem });
        }
        let (answer, said) = conversation.into_output();
        let problem = match end.ending {
            Ending::Exited(0) if answer.omitted == 0 => {
                return Ok([answer.head.as_slice(), &Vec::from(answer.tail)].concat());
            }
            Ending::Exited(0) => "it says more than is read".to_owned(),
            Ending::Exited(_) => {
                // Not handed on: a command may have written it.
                tracing::debug!(said = said.text(), ?question, "git failed");
                "it failed".to_owned()
            }
            _ => "it did not answer in time".to_owned(),
        };
        Err(SandboxError::Program { program: "git".to_owned(), problem, is_there: true })
    }
}

/// Folders of a search path without those in which a command may have put a program of its own.
fn without_what_commands_write(path: &str, walls: &Walls) -> String {
    let mut written: Vec<&Path> = walls.writable_roots().chain(walls.temp.as_deref()).collect();
    written.extend(walls.writable_folders().map(PathBuf::as_path));
    let is_ours = |folder: &&str| {
        let folder = Path::new(folder);
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        folder.is_absolute() && !written.iter().any(|written| folder.starts_with(written))
    };
    path.split(':').filter(is_ours).collect::<Vec<_>>().join(":")
}

fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(c"question", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
