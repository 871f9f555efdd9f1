//! The recorder of tests, which knows nothing from outside but what it is told.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use loom::Digest;

use crate::changes::{ChangeRecorder, OwnPaths, PlannedChange};

/// What a test keeps of changes.
pub trait KeptChanges: Send + Sync {
    /// Changes that are about to be made, or were found.
    ///
    /// # Errors
    /// Why nothing may be changed now.
    fn keep(&self, changes: &[PlannedChange<'_>]) -> Result<(), String>;

    /// None of the present call was made.
    fn take_back(&self);
}

/// Recorder of calls that nobody approved and nothing runs beside.
#[derive(Debug, Default)]
pub struct TestRecorder<K> {
    pub kept: K,
    /// Files from outside.
    pub outside: Vec<Digest>,
    /// Whether its call is left without a result.
    pub is_left: AtomicBool,
}

impl<K: KeptChanges> ChangeRecorder for TestRecorder<K> {
    fn begin(&self, _: Vec<PathBuf>) {}

    fn finish(&self) {}

    fn record(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        self.kept.keep(changes)
    }

    fn record_found(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        self.kept.keep(changes)
    }

    fn is_approved(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        "call-0".to_owned()
    }

    fn take_back(&self) {
        self.kept.take_back();
    }

    fn leave(&self, _: &str) {
        self.is_left.store(true, Ordering::SeqCst);
    }

    fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }

    fn beside(&self, work: &mut dyn FnMut()) {
        work();
    }

    fn show(&self, _: &str) {}

    fn own_paths(&self) -> OwnPaths {
        OwnPaths::new()
    }

    fn is_tainted(&self) -> bool {
        false
    }

    fn knows_outside(&self) -> bool {
        !self.outside.is_empty()
    }

    fn is_of_running_command(&self, _: &Path, _: Digest) -> bool {
        false
    }

    fn outside(&self, digests: Vec<Digest>) -> Vec<Digest> {
        digests.into_iter().filter(|digest| self.outside.contains(digest)).collect()
    }
}
