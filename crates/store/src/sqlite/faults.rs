//! A seam for tests: a write that fails at a chosen statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::error::StoreError;

/// Counts down the statements of writes, and fails the one it reaches zero at. The default never fails.
#[derive(Debug, Clone)]
pub struct Faults(Arc<AtomicI64>);

/// Far enough that no process comes to the end of it.
const NEVER: i64 = i64::MAX;

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(NEVER)))
    }
}

impl Faults {
    /// Fails the `n`th statement from now on (0 is the next one), once.
    pub fn fail_at(&self, n: u32) {
        self.0.store(i64::from(n), Ordering::SeqCst);
    }

    /// Fails nothing any more; whether the fault was still ahead.
    pub fn clear(&self) -> bool {
        let left = self.0.swap(NEVER, Ordering::SeqCst);
        (0..=i64::from(u32::MAX)).contains(&left)
    }

    /// Called before each statement of a write.
    pub(crate) fn step(&self) -> Result<(), StoreError> {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            let source = std::io::Error::other("injected fault");
            return Err(StoreError::Io { what: "write".to_owned(), source });
        }
        Ok(())
    }
}
