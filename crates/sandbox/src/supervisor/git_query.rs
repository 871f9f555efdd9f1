//! Questions to git itself, asked behind the walls of a command, in roots that can only be read.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use super::Sandbox;
use super::conversation::Deadline;
use crate::outcome::{Ending, SandboxError};
use crate::process_list::mark;
use crate::request::{HelperRequest, HelperTask};
use crate::walls::{RootAccess, WallRoot};

/// How long git may take.
const AT_MOST: Duration = Duration::from_secs(10);
/// Bytes of an answer, at most.
const LONGEST_ANSWER: usize = 64 << 20;

/// What git answers in a folder of a working tree.
///
/// # Errors
/// When git cannot be run, fails, or says more than is read.
pub(super) fn answer(
    sandbox: &Sandbox,
    request: &HelperRequest,
    tree: &Path,
    question: &[&OsStr],
) -> Result<Vec<u8>, SandboxError> {
    // What a configuration names to be run is not: the command may have written it.
    let git = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
    let mut walls = request.walls.clone();
    walls.roots.iter_mut().for_each(|root| root.access = RootAccess::ReadOnly);
    if !walls.roots.iter().any(|root| tree.starts_with(&root.path)) {
        walls.roots.push(WallRoot { path: tree.to_owned(), access: RootAccess::ReadOnly });
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
        level: request.level,
        walls,
        protected: request.protected.clone(),
        hidden: request.hidden.clone(),
        quarantine: None,
        mark: mark(),
        descriptors: 0,
        task: HelperTask::Command {
            arguments: git.map(OsStr::new).iter().chain(question).map(OsString::from).collect(),
            directory: tree.to_owned(),
        },
    };
    let (cancelled, _keep) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| SandboxError::Start(error.into()))?;
    let mut conversation = sandbox.converse(&request, &[], None)?;
    let until = Deadline { deadline: Instant::now() + AT_MOST, cancelled: &[cancelled] };
    let end = conversation.until_its_end(until);
    if let Some(failure) = end.failure {
        return Err(SandboxError::Walls { step: failure.step, problem: failure.problem });
    }
    let (answer, said) = conversation.into_output();
    if end.ending != Ending::Exited(0) || answer.omitted > 0 {
        return Err(SandboxError::Program { program: "git".to_owned(), problem: said.text() });
    }
    Ok([answer.head.as_slice(), &Vec::from(answer.tail)].concat())
}
