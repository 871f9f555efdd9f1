//! Look at the protected set before a command, and after it, however it ended.
//!
//! What was there before is what was there when no command ran in these folders ([`RunningCommands`]). The supervisor looks.
//! Where nothing but the look protects (below level *full*) the helper keeps one of its own, for a supervisor that is killed
//! while the command runs.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::accepted_changes::{AcceptedPaths, hold};
use crate::level::Level;
use crate::made_git_folders::MadeGitFolders;
use crate::outcome::{Notice, SandboxError};
use crate::protected_paths::ProtectedPaths;
use crate::quarantine::Quarantine;
use crate::root_folders::{FolderMode, RootFolders};
use crate::running_commands::RunningCommands;
use crate::snapshot::Snapshot;
use crate::walls::Walls;

/// Protected set as it stood before a command.
pub(crate) struct LookBefore {
    pub(crate) paths: ProtectedPaths,
    /// Of these what the command may not change.
    pub(crate) held: ProtectedPaths,
    /// What is mounted over: these, and what came while another command ran.
    pub(crate) mounted: ProtectedPaths,
    made: MadeGitFolders,
    roots: RootFolders,
    /// Modes of the git folders below the roots.
    git_modes: Vec<FolderMode>,
    snapshot: Snapshot,
    running: RunningCommands,
    /// What is to be told of commands that were killed.
    left_behind: Vec<Notice>,
}

impl LookBefore {
    /// Looks, and looks after commands that were killed before. Others that begin or end are waited for until the time
    /// `is_over`.
    ///
    /// # Errors
    /// If not all can be looked at: what is not looked at is not protected.
    pub(crate) fn new(
        level: Level,
        walls: &Walls,
        quarantine: &Path,
        is_over: impl Fn() -> bool,
    ) -> Result<Self, SandboxError> {
        let unrecorded = |problem: io::Error| SandboxError::Unrecorded {
            folder: walls.tracked_records.clone().unwrap_or_default(),
            problem,
        };
        let roots = RootFolders::open(walls);
        let mut running = RunningCommands::enter(walls, is_over).map_err(unrecorded)?;
        let left_behind = look_after_killed(&running, walls, &roots, quarantine).inspect_err(|_| {
            // Their record stays for the next one.
            running.set_running();
        })?;
        let seen = ProtectedPaths::before(walls)?;
        let git_modes = roots.modes_of(seen.git_folders.iter());
        let mut paths = seen.clone();
        running.retain(&mut paths, walls);
        let made = MadeGitFolders::open(level, walls);
        let held = made.without_them(&seen, &paths);
        let mounted = made.without_them(&seen, &seen);
        let kept = running.kept();
        let snapshot = match level {
            // No mount holds a file that has another name.
            Level::Full => Snapshot::take_mounted(&held.with_other_names(walls), walls, &roots, &kept),
            Level::Partial | Level::None => Snapshot::take(&held, walls, &roots, &kept),
        };
        running.begin(&paths, &snapshot, walls).map_err(unrecorded)?;
        Ok(Self { paths, held, mounted, made, roots, git_modes, snapshot, running, left_behind })
    }

    /// Says that the command may run from here on: unless it is looked after, the next one does that.
    pub(crate) fn set_running(&mut self) {
        self.running.set_running();
    }

    /// Commands that run in these folders, this one among them.
    pub(crate) fn running(&self) -> &RunningCommands {
        &self.running
    }

    /// Opens folders again that a command closed to their owner: what is in them can be looked at.
    pub(crate) fn open_folders(&mut self) {
        let opened = self.roots.give_modes_back(&self.git_modes).into_iter().map(|(root, other)| {
            let root = root.display();
            Notice::Lacks(format!("{root} has its mode again: a command set it to {other:03o}"))
        });
        self.left_behind.extend(opened);
    }

    /// Gives back what was changed, moves away what is new and nobody accepted, and says so; `between` is asked for more
    /// between the two.
    pub(crate) fn after(
        mut self,
        walls: &Walls,
        (quarantine, accepted): (&Path, AcceptedPaths),
        between: impl FnOnce() -> Option<Notice>,
    ) -> Vec<Notice> {
        // What stands there by now is new.
        self.held.paths.retain(|path| !accepted.removed.contains(path));
        let by_commands = accepted.by_commands.clone();
        let mut quarantine = Quarantine::new(quarantine).sparing(accepted);
        let mut notices = std::mem::take(&mut self.left_behind);
        notices.extend(self.snapshot.restore(walls, &self.roots, &mut quarantine));
        let after = ProtectedPaths::of(walls);
        // Before git is asked, which would wait at a pipe in place of its index.
        notices.extend(self.paths.foreign.take_new(&after.foreign, &self.roots, &mut quarantine));
        self.paths.rebases.take_new(&after.rebases, &self.roots, &mut quarantine);
        notices.extend(between());
        quarantine.take_new(&self.held, &after, walls, &self.roots);
        quarantine.take_never((&self.held, &after), walls, &self.roots);
        let told = |path: &PathBuf| {
            Notice::Lacks(format!(
                "{} is new, and stays: a command that ran beside this one was let write it, and which of them did cannot be \
                 told: look at it",
                path.display()
            ))
        };
        notices.extend(after.new_since(&self.held).filter(|path| holds_any(&by_commands, path)).map(told));
        if let Err(error) = self.made.keep(&self.paths, &after) {
            let why = format!("repositories that it made cannot be changed by the next command: {error}");
            notices.push(Notice::Lacks(why));
        }
        self.running.set_looked_after();
        notices.extend(quarantine.into_notices());
        notices.extend(after.cut_at(walls.limits.entries).map(Notice::NotAllScanned));
        notices.extend(after.too_many(walls).map(Notice::TooManyProtected));
        notices
    }
}

/// Whether one of some paths is at a path, or below it, that is there.
fn holds_any(paths: &BTreeSet<PathBuf>, path: &Path) -> bool {
    path.symlink_metadata().is_ok()
        && paths.range(path.to_owned()..).next().is_some_and(|first| first.starts_with(path))
}

/// Does what is done after a command for those that were killed, and says so.
///
/// # Errors
/// If something that they changed cannot be given back.
fn look_after_killed(
    running: &RunningCommands,
    walls: &Walls,
    roots: &RootFolders,
    quarantine: &Path,
) -> Result<Vec<Notice>, SandboxError> {
    let unreadable = |(path, error)| SandboxError::Path {
        path,
        problem: format!(
            "what commands that were killed made cannot be told from what was there ({error}): look through the protected \
             files of the workspace, then remove this file"
        ),
    };
    if running.left_behind().map_err(unreadable)?.is_none() {
        return Ok(Vec::new());
    }
    let _held = walls.tracked_records.as_deref().and_then(hold);
    // Read again, now that no tool changes what it says.
    let Some(left) = running.left_behind().map_err(unreadable)? else { return Ok(Vec::new()) };
    let mut quarantine = Quarantine::new(quarantine).sparing(left.accepted());
    let mut notices = left.kept().restore(walls, roots, &mut quarantine);
    // What stands there would count as its owner's from here on.
    for notice in &notices {
        if let Notice::NotRestored { path, problem } = notice {
            let problem =
                format!("a command that was killed changed it, and it could not be given back: {problem}");
            return Err(SandboxError::Path { path: path.clone(), problem });
        }
    }
    let now = ProtectedPaths::of(walls);
    let before = left.before(&now);
    notices.extend(before.foreign.take_new(&now.foreign, roots, &mut quarantine));
    before.rebases.take_new(&now.rebases, roots, &mut quarantine);
    quarantine.take_new(&before, &now, walls, roots);
    notices.extend(quarantine.into_notices());
    Ok(notices)
}
