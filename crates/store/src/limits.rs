//! What a store refuses, cuts short or reports (spec: scale §4). The defaults are the specification's; a
//! configuration may set others.

use std::time::Duration;

use loom::{Node, Refusal};

use crate::error::StoreError;

/// Limits of a store, given when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// `wal`: bytes of the write-ahead log from which on it is reported, once each time it grows so far.
    pub wal: u64,
    /// How long a read may take; then it ends with [`crate::StoreError::TooLong`], so that the log can be copied
    /// back.
    pub read: Duration,
    /// `search`: how long a search may take; then it answers with what it found, marked partial.
    pub search: Duration,
    /// `node`: bytes of text a node may hold. What plans changes has its own, [`loom::plan::MAX_NODE_BYTES`]: a
    /// greater value here has no effect.
    pub node: u64,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            wal: 64 * 1024 * 1024,
            read: Duration::from_secs(5),
            search: Duration::from_secs(2),
            node: loom::plan::MAX_NODE_BYTES,
        }
    }
}

impl StoreLimits {
    /// Refuses a node that holds more than one may. An answer of a model is kept, whatever is set: it has the limit
    /// of [`loom::plan::MAX_NODE_BYTES`].
    pub(crate) fn check<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> Result<(), StoreError> {
        let len = nodes
            .into_iter()
            .filter(|node| node.generation.is_none())
            .map(|node| node.text().len() as u64)
            .max()
            .unwrap_or_default();
        if len > self.node { Err(Refusal::TooLarge { len, limit: self.node }.into()) } else { Ok(()) }
    }
}
