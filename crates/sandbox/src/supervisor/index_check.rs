//! Protected files that differ from what git has of them after a command (spec: security §1).
//!
//! `git checkout` over a file that cannot be written ends well: the index then has the new text and the folder the old
//! one, which the next `commit -a` would commit as if somebody had wanted it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use super::Sandbox;
use super::conversation::Deadline;
use crate::outcome::{Ending, SandboxError};
use crate::process_list::mark;
use crate::protected_paths::ProtectedPaths;
use crate::request::{HelperRequest, HelperTask};
use crate::walls::RootAccess;

/// How long git may take to compare.
const AT_MOST: Duration = Duration::from_secs(10);

/// Indexes of git as they were, to see which ones a command changed.
pub(super) struct IndexStamps(Vec<(PathBuf, Option<Stamp>)>);

/// Inode, time of change in ns, size.
type Stamp = (u64, i64, i64, u64);

impl IndexStamps {
    /// Of the working trees among the git folders of the roots.
    pub(super) fn of(paths: &ProtectedPaths) -> Self {
        let trees =
            paths.git_folders.iter().filter(|folder| folder.file_name().is_some_and(|name| name == ".git"));
        Self(trees.map(|folder| (folder.clone(), stamp(folder))).collect())
    }

    /// Working trees whose index is another one now.
    fn changed(&self) -> impl Iterator<Item = &Path> {
        let changed = self.0.iter().filter(|(folder, before)| stamp(folder) != *before);
        changed.filter_map(|(folder, _)| folder.parent())
    }
}

fn stamp(folder: &Path) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(folder.join("index")).ok()?;
    Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec(), metadata.len()))
}

/// Protected files that git has another text of than the folder, where the command changed what git has. Git itself is
/// asked, behind the same walls, in roots that can only be read.
pub(super) fn differing(sandbox: &Sandbox, request: &HelperRequest, before: &IndexStamps) -> Vec<PathBuf> {
    let mut differing = Vec::new();
    for tree in before.changed() {
        match changed_files(sandbox, request, tree) {
            Ok(names) => differing
                .extend(names.into_iter().filter(|name| is_protected(name)).map(|name| tree.join(name))),
            Err(error) => {
                tracing::debug!(%error, tree = %tree.display(), "git could not be asked what differs");
            }
        }
    }
    differing
}

fn is_protected(name: &Path) -> bool {
    let mut above = name.ancestors();
    above.any(workspace::protected::is_mounted)
}

fn changed_files(
    sandbox: &Sandbox,
    request: &HelperRequest,
    tree: &Path,
) -> Result<Vec<PathBuf>, SandboxError> {
    // What a configuration names to be run is not: the command may have written it.
    let arguments = [
        "git",
        "--no-optional-locks",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        "diff-files",
        "--ignore-submodules",
        "--name-only",
        "-z",
    ];
    let mut walls = request.walls.clone();
    walls.roots.iter_mut().for_each(|root| root.access = RootAccess::ReadOnly);
    walls.touches.clear();
    walls.readable.append(&mut walls.git_folders);
    walls.environment.extend(
        [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let request = HelperRequest {
        level: request.level,
        walls,
        protected: request.protected.clone(),
        hidden: request.hidden.clone(),
        mark: mark(),
        descriptors: 0,
        task: HelperTask::Command {
            arguments: arguments.map(OsString::from).into(),
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
    if end.ending != Ending::Exited(0) {
        return Err(SandboxError::Vanished);
    }
    let (standard, _) = conversation.into_output();
    let names = standard.head.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name))).collect())
}
