//! Questions to git itself, asked behind the walls of a command, in roots that can only be read.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use super::Sandbox;
use super::conversation::Deadline;
use crate::outcome::{Ending, SandboxError};
use crate::process_list::mark;
use crate::request::{HelperRequest, HelperTask};
use crate::walls::{RootAccess, WallRoot};

/// How long git may take for one question.
pub(super) const AT_MOST: Duration = Duration::from_secs(10);
/// Bytes of an answer, at most.
const LONGEST_ANSWER: usize = 64 << 20;
/// What a configuration names to be run is not: the command may have written it. Nor is what Git LFS has of a file fetched
/// or made by its program, which behind the walls may be missing.
const GIT: [&str; 12] = [
    "git",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "filter.lfs.clean=",
    "-c",
    "filter.lfs.process=",
    "-c",
    "filter.lfs.required=false",
];

/// Place of questions: a folder of a working tree, behind the walls of a command, until that has to end.
#[derive(Clone, Copy)]
pub(super) struct GitQuery<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) request: &'a HelperRequest,
    pub(super) folder: &'a Path,
    pub(super) until: Deadline<'a>,
}

impl GitQuery<'_> {
    /// What git answers to a question, given what it reads as its input.
    ///
    /// # Errors
    /// When git cannot be run, fails, is ended, or says more than is read.
    pub(super) fn answer(self, question: &[&OsStr], input: &[u8]) -> Result<Vec<u8>, SandboxError> {
        let mut walls = self.request.walls.clone();
        walls.roots.iter_mut().for_each(|root| root.access = RootAccess::ReadOnly);
        if !walls.roots.iter().any(|root| self.folder.starts_with(&root.path)) {
            walls.roots.push(WallRoot { path: self.folder.to_owned(), access: RootAccess::ReadOnly });
        }
        walls.touches.clear();
        walls.readable.append(&mut walls.git_folders);
        walls.limits.output = LONGEST_ANSWER;
        walls.environment.extend(
            [
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let request = HelperRequest {
            level: self.request.level,
            walls,
            protected: self.request.protected.clone(),
            hidden: self.request.hidden.clone(),
            quarantine: None,
            mark: mark(),
            descriptors: 1,
            caches: Vec::new(),
            task: HelperTask::Command {
                arguments: GIT.map(OsStr::new).iter().chain(question).map(OsString::from).collect(),
                directory: self.folder.to_owned(),
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
            Ending::Exited(_) => said.text(),
            _ => "it did not answer in time".to_owned(),
        };
        Err(SandboxError::Program { program: "git".to_owned(), problem })
    }
}

fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(c"question", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
