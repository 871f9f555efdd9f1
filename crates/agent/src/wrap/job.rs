//! Rows of wraps: what a resumed one needs, and what is known of one that is done.

use continuity::deterministic::OverflowEntry;
use loom::{Digest, Millis, NodeId, PositionId, TreeId, ViewName};
use serde::{Deserialize, Serialize};
use store::SessionId;

/// Kind of the jobs.
pub(super) const KIND: &str = "wrap";

/// Labels of entries that do not fit.
const LABELS: [&str; 6] = ["decision", "outcome", "correction", "question", "step", "said"];

/// What keys of a session's wraps begin with.
pub(super) fn key_prefix(session: &SessionId) -> String {
    format!("{KIND}/{session}/")
}

/// Payload of a wrap that is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrapJob {
    pub(super) wrap: String,
    pub(super) session: SessionId,
    /// Name of the session, by which its handoff is called.
    pub(super) name: String,
    pub(super) from: TreeId,
    pub(super) view: ViewName,
    pub(super) tip: PositionId,
    pub(super) tip_node: NodeId,
    /// The tree that it goes on in.
    pub(super) to: TreeId,
    /// The handoff that the session saw last; none where it saw none.
    pub(super) expected: Option<Digest>,
    pub(super) text: String,
    /// Whether something in it is from outside.
    pub(super) is_outside: bool,
    pub(super) overflow: Vec<KeptEntry>,
    pub(super) at: Millis,
}

impl WrapJob {
    pub(super) fn key(&self) -> String {
        key_prefix(&self.session) + &self.wrap
    }

    pub(super) fn overflow(&self) -> Vec<OverflowEntry> {
        let entry = |kept: &KeptEntry| {
            let label = LABELS.into_iter().find(|label| *label == kept.label).unwrap_or("said");
            OverflowEntry { label, text: kept.text.clone(), source: kept.source.clone() }
        };
        self.overflow.iter().map(entry).collect()
    }
}

/// An entry that did not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptEntry {
    label: String,
    text: String,
    source: String,
}

impl From<OverflowEntry> for KeptEntry {
    fn from(OverflowEntry { label, text, source }: OverflowEntry) -> Self {
        Self { label: label.to_owned(), text, source }
    }
}

/// Result of a wrap that is done: no text of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrapRecord {
    pub(super) wrap: String,
    pub(super) session: SessionId,
    pub(super) name: String,
    pub(super) from: TreeId,
    pub(super) to: TreeId,
    /// Digest of its handoff.
    pub(super) digest: Digest,
    /// Whether it took the place of another one.
    pub(super) had_text: bool,
    /// Whether that stood in the file then; else it was kept beside another text.
    pub(super) is_written: bool,
}
