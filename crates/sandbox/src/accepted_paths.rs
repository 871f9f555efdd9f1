//! Paths that persons accepted in a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Path that a person accepted, and when.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) path: PathBuf,
    pub(crate) at: SystemTime,
}

/// Paths accepted in a session, by when each was accepted last.
#[derive(Debug, Default)]
pub(crate) struct AcceptedPaths(Mutex<Acceptances>);

#[derive(Debug, Default)]
struct Acceptances {
    count: u64,
    /// Each with its number and its time.
    paths: BTreeMap<PathBuf, (u64, SystemTime)>,
}

impl AcceptedPaths {
    /// Accepts paths. Returns the number of the last of all.
    pub(crate) fn accept(&self, paths: impl IntoIterator<Item = PathBuf>) -> u64 {
        let mut all = self.locked();
        for path in paths {
            all.count += 1;
            let number = all.count;
            all.paths.insert(path, (number, SystemTime::now()));
        }
        all.count
    }

    /// Paths accepted up to a number.
    pub(crate) fn until(&self, last: u64) -> Vec<Accepted> {
        let all = self.locked();
        let before = all.paths.iter().filter(|(_, (number, _))| *number <= last);
        before.map(|(path, (_, at))| Accepted { path: path.clone(), at: *at }).collect()
    }

    /// Paths accepted after a number.
    pub(crate) fn after(&self, last: u64) -> Vec<PathBuf> {
        let all = self.locked();
        let after = all.paths.iter().filter(|(_, (number, _))| *number > last);
        after.map(|(path, _)| path.clone()).collect()
    }

    fn locked(&self) -> MutexGuard<'_, Acceptances> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
