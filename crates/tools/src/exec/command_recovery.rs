//! What a command changed whose process died, or could not write it down.

use std::io;
use std::path::{Path, PathBuf};

use model::Cancel;
use workspace::protected::is_held;
use workspace::{FileError, FileProblem, Root, StoreGuard};

use super::changed_files::{UnkeptChanges, keep, outside_of};
use crate::changes::{BytesOrigin, ChangeRecorder};
use crate::checkpoint::{
    Checkpoint, CheckpointError, Checkpoints, CommandChange, Differences, StoodState, UnfinishedRecord,
};

/// What of the changes of such a command could not be written down.
#[derive(Debug, Default)]
pub struct CommandRecovery {
    /// Why some cannot be given back.
    pub lost: Vec<String>,
    /// Why some could not be written down by now: their records stay.
    pub waiting: Vec<String>,
}

/// Roots of a command that was cut off, before what it changed is written down.
#[derive(Debug, Default)]
pub struct UnfinishedRoots {
    /// Roots that the command had closed and that are open again, in words.
    pub opened: Vec<String>,
    /// A root that is not there by now, in words.
    pub away: Option<String>,
}

/// Looks for the roots of a command that left records, which are waited for where it ran at or after `since`, in ns since
/// 1970, and for others that it `changed`. `all` as in [`recover_command`]. It blocks.
pub fn reach_roots(
    (all, guard): (&Path, &StoreGuard),
    name: &str,
    since: i64,
    changed: impl IntoIterator<Item = PathBuf>,
) -> UnfinishedRoots {
    let is_absent =
        |root: &PathBuf| root.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let absent = changed.into_iter().find(is_absent);
    let away = absent.map(|root| waited_for(&root, &FileProblem::NotFound));
    let mut roots = UnfinishedRoots { away, ..UnfinishedRoots::default() };
    for (checkpoints, record) in Checkpoints::unfinished(all, name) {
        let UnfinishedRecord::Read { root, before } = record else { continue };
        roots.opened.extend(give_mode_back(&root, (&checkpoints, &before), name, guard));
        if checkpoints.is_recent(name, since)
            && let Err(error) = open(&root, &before, guard)
        {
            roots.away = Some(waited_for(&root, &error.problem));
        }
    }
    roots
}

/// Opens a root for its owner again that a command closed and that was cut off. Says so, in words. `all` as in
/// [`recover_command`]. It blocks.
pub fn open_closed_root(all: &Path, guard: &StoreGuard, closed: &Path) -> Option<String> {
    Checkpoints::unfinished_names(all).iter().find_map(|name| {
        Checkpoints::unfinished(all, name).into_iter().find_map(|(checkpoints, record)| match record {
            UnfinishedRecord::Read { root, before } if root == closed => {
                give_mode_back(&root, (&checkpoints, &before), name, guard)
            }
            _ => None,
        })
    })
}

/// Gives a root its mode back that its owner lost a right to while a command ran. What cannot be given is found as it is.
fn give_mode_back(
    root: &Path,
    (checkpoints, before): (&Checkpoints, &Checkpoint),
    name: &str,
    guard: &StoreGuard,
) -> Option<String> {
    let until = checkpoints.lived_until(name)?;
    let closed = before.folder()?.give_mode_back(root, guard, until).ok()??;
    let root = root.display();
    Some(format!("{root} has its mode again: a command set it to {closed:03o}"))
}

/// Opens the root of a record: the very folder that it is of, where the record says which.
fn open(root: &Path, before: &Checkpoint, guard: &StoreGuard) -> Result<Root, FileError> {
    match before.folder() {
        Some(known) => Root::open_known(root, guard, known),
        None => Root::open_again(root, guard),
    }
}

fn waited_for(root: &Path, problem: &FileProblem) -> String {
    let root = root.display();
    match problem {
        FileProblem::NotFound => format!("{root}, which is not there"),
        FileProblem::OtherFolder => format!("{root}, in whose place another folder stands"),
        problem => format!("{root}: {problem}"),
    }
}

/// Writes down what a command changed of which records are left. A root that cannot be looked at is waited for where the
/// command ran at or after `since`, in ns since 1970. `all` holds the records of every root. It blocks.
pub fn recover_command(
    all: &Path,
    guard: &StoreGuard,
    recorder: &dyn ChangeRecorder,
    since: i64,
) -> CommandRecovery {
    let name = recorder.name();
    let (mut roots, mut is_outside, mut recovery) = (Vec::new(), false, CommandRecovery::default());
    for (checkpoints, record) in Checkpoints::unfinished(all, &name) {
        let UnfinishedRecord::Read { root, before } = record else {
            recovery.lost.push("what stood before it cannot be read".to_owned());
            checkpoints.finish(&name);
            continue;
        };
        let recorded = open(&root, &before, guard).map_err(CheckpointError::from).and_then(|root| {
            let after = checkpoints.record(&root, None, &Cancel::never())?;
            Ok((root, after))
        });
        match recorded {
            Ok((root, after)) => {
                is_outside |= checkpoints.was_outside(&name)
                    || !outside_of(&before, recorder).is_empty()
                    || !outside_of(&after, recorder).is_empty();
                roots.push((checkpoints, root, before, after));
            }
            Err(error) if error.is_of_the_home() || checkpoints.is_recent(&name, since) => {
                recovery.waiting.push(error.to_string());
            }
            Err(error) => {
                recovery.lost.push(error.to_string());
                checkpoints.finish(&name);
            }
        }
    }
    for (checkpoints, root, before, after) in roots {
        let mut differences = Differences::between(&before, &after, checkpoints.lived_until(&name));
        // The walls take it away.
        let is_new = |change: &CommandChange| change.before == StoodState::Absent;
        differences.changes.retain(|change| !(is_new(change) && is_held(change.path.as_path())));
        let origin = if is_outside { BytesOrigin::Outside } else { BytesOrigin::Call };
        match keep(&root, (&before, &after), (&differences.changes, origin), recorder) {
            Err(UnkeptChanges::Unwritten(why)) => {
                recovery.waiting.push(why);
                continue;
            }
            Err(UnkeptChanges::Damaged(why)) => recovery.lost.push(why),
            Ok(()) => {}
        }
        // The bytes it names would be kept for ever.
        checkpoints.finish(&name);
    }
    recovery
}
