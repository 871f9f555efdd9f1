//! What an engine was asked to do.

use std::sync::atomic::{AtomicU64, Ordering};

/// Work of an engine since the store was opened, of all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatementCounts {
    /// Statements that were run with a set of parameters; round trips where there is a server.
    pub statements: u64,
    /// Steps of SQLite's virtual machine in them; 0 where there is a server.
    pub steps: u64,
}

#[derive(Debug, Default)]
pub(crate) struct StatementCounter {
    statements: AtomicU64,
    steps: AtomicU64,
}

impl StatementCounter {
    pub(crate) fn add(&self, statements: usize, steps: i32) {
        self.statements.fetch_add(statements as u64, Ordering::Relaxed);
        self.steps.fetch_add(u64::try_from(steps).unwrap_or_default(), Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> StatementCounts {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        StatementCounts { statements: read(&self.statements), steps: read(&self.steps) }
    }
}
