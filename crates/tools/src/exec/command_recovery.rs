//! What a command changed whose process died, or could not write it down.

use std::path::{Path, PathBuf};

use model::Cancel;
use workspace::{Root, StoreGuard};

use super::changed_files::{UnkeptChanges, is_held, keep, outside_of};
use crate::changes::{BytesOrigin, ChangeRecorder};
use crate::checkpoint::{Checkpoints, CommandChange, Differences, StoodState, UnfinishedRecord};

/// What of the changes of such a command could not be written down.
#[derive(Debug, Default)]
pub struct CommandRecovery {
    /// Why some cannot be given back.
    pub lost: Vec<String>,
    /// Why some could not be written down by now: their records stay.
    pub waiting: Vec<String>,
}

/// Roots of which a command left records that ran at or after a time, in ns since 1970. `all` as in [`recover_command`]. It
/// blocks.
pub fn unfinished_roots(all: &Path, name: &str, since: i64) -> Vec<PathBuf> {
    let records = Checkpoints::unfinished(all, name).into_iter();
    let roots = records.filter_map(|(checkpoints, record)| match record {
        UnfinishedRecord::Read { root, .. } => {
            checkpoints.lived_until(name).is_some_and(|until| until >= since).then_some(root)
        }
        UnfinishedRecord::Unreadable => None,
    });
    roots.collect()
}

/// Writes down what a command changed of which records are left. `all` holds the records of every root. It blocks.
pub fn recover_command(all: &Path, guard: &StoreGuard, recorder: &dyn ChangeRecorder) -> CommandRecovery {
    let name = recorder.name();
    let (mut roots, mut is_outside, mut recovery) = (Vec::new(), false, CommandRecovery::default());
    for (checkpoints, record) in Checkpoints::unfinished(all, &name) {
        let UnfinishedRecord::Read { root, before } = record else {
            recovery.lost.push("what stood before it cannot be read".to_owned());
            checkpoints.finish(&name);
            continue;
        };
        let root = match Root::open_again(&root, guard) {
            Ok(root) => root,
            Err(error) => {
                recovery.lost.push(error.to_string());
                checkpoints.finish(&name);
                continue;
            }
        };
        match checkpoints.record(&root, None, &Cancel::never()) {
            Ok(after) => {
                is_outside |= checkpoints.was_outside(&name)
                    || !outside_of(&before, recorder).is_empty()
                    || !outside_of(&after, recorder).is_empty();
                roots.push((checkpoints, root, before, after));
            }
            Err(error) if error.is_of_the_home() => recovery.waiting.push(error.to_string()),
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
