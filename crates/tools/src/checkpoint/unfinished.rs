//! Records of commands that run, or were cut off with their process.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use sandbox::SIGN_OF_LIFE;

use super::index::IndexFile;
use super::pack::Pack;
use super::{Checkpoint, CheckpointRules, Checkpoints, PENDING, locked};

/// What is written down of a running command into which nothing from outside goes.
const FROM_HERE: &str = "nothing from outside";
/// What is changed later than this after the last sign of life was not changed by the command.
const SILENCE: Duration = Duration::from_secs(2 * SIGN_OF_LIFE.as_secs());

/// End of the names of the files whose times say until when commands ran.
const ALIVE: &str = ".alive";

/// What a process that did not finish left of a record.
#[derive(Debug)]
pub(crate) enum UnfinishedRecord {
    Read { root: PathBuf, before: Box<Checkpoint> },
    Unreadable,
}

impl Checkpoints {
    /// Names of the commands of which unfinished records are there. `all` holds the records of every root.
    pub(crate) fn unfinished_names(all: &Path) -> BTreeSet<String> {
        let folders = fs::read_dir(all).into_iter().flatten().flatten();
        let pending =
            folders.flat_map(|folder| fs::read_dir(folder.path().join(PENDING)).into_iter().flatten());
        let names = pending.flatten().filter_map(|record| record.file_name().into_string().ok());
        names.filter(|name| !name.ends_with(ALIVE)).collect()
    }

    /// The records that were made under a name by a process that did not finish, one a root, each among the records it
    /// belongs to. `all` holds the records of every root.
    pub(crate) fn unfinished(all: &Path, name: &str) -> Vec<(Self, UnfinishedRecord)> {
        let folders = fs::read_dir(all).into_iter().flatten().flatten().map(|folder| folder.path());
        let unfinished = folders.filter_map(|folder| {
            let path = folder.join(PENDING).join(name);
            let is_there = path.symlink_metadata().is_ok();
            let read = IndexFile::read(&path).and_then(|(_, read)| {
                let pack = Pack::open(&folder, &read.pack).ok()?;
                Some((read.rules, read.root, Box::new(Checkpoint { index: read.index, pack })))
            });
            match read {
                Some((rules, root, before)) => {
                    Some((Self::within(folder, rules), UnfinishedRecord::Read { root, before }))
                }
                // By a version that reads another form, or damaged.
                None if is_there => {
                    Some((Self::within(folder, CheckpointRules::default()), UnfinishedRecord::Unreadable))
                }
                None => None,
            }
        });
        unfinished.collect()
    }

    /// Writes down that a command is about to run, and whether something from outside goes into it. Returns the file whose
    /// time says until when it ran.
    pub(crate) fn begin(&self, name: &str, is_outside: bool) -> PathBuf {
        let path = self.alive(name);
        if let Err(error) = fs::write(&path, if is_outside { "" } else { FROM_HERE }) {
            tracing::warn!(%error, "when a command ran is not known after a crash");
        }
        path
    }

    /// The last time at which the command of an unfinished record may have run, in ns since 1970; none where that is not
    /// known.
    pub(crate) fn lived_until(&self, name: &str) -> Option<i64> {
        let modified = fs::metadata(self.alive(name)).ok()?.modified().ok()?;
        let latest = (modified + SILENCE).duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(latest.as_nanos()).ok()
    }

    /// Whether the command of an unfinished record may have run at or after a time, in ns since 1970.
    pub(crate) fn is_recent(&self, name: &str, since: i64) -> bool {
        self.lived_until(name).is_some_and(|until| until >= since)
    }

    /// Whether something from outside went into what has an unfinished record. What is not known did.
    pub(crate) fn was_outside(&self, name: &str) -> bool {
        fs::read_to_string(self.alive(name)).map_or(true, |says| says != FROM_HERE)
    }

    /// Says that what a command changed since the record of this name is written down, or cannot be.
    pub(crate) fn finish(&self, name: &str) {
        // Where nobody can be kept out they go all the same.
        let _lock = locked(&self.folder);
        for path in [self.pending(name), self.alive(name)] {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, "a record of files is left");
            }
        }
    }

    fn alive(&self, name: &str) -> PathBuf {
        self.folder.join(PENDING).join(format!("{name}{ALIVE}"))
    }
}
