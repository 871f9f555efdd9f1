//! Events: what a follower has to look at again.
//!
//! Every write appends one, inside its transaction, so that the events of a tree stand in the order of its
//! `seq`. They carry no text. A store keeps the newest [`EVENT_RETENTION`]; a follower that is further behind reads anew.

use loom::{GenerationId, OpKind, Seq, Slot, TreeId, ViewName};
use serde::{Deserialize, Serialize};

use crate::question::QuestionId;

pub const EVENT_RETENTION: u64 = 16_384;

/// A place in the stream of events; 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor(pub u64);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Operation {
        seq: Seq,
        kind: OpKind,
        view: Option<ViewName>,
    },
    Draft {
        view: ViewName,
        slot: Slot,
        /// Revision after the change; none once the draft is gone.
        revision: Option<u64>,
    },
    /// A generation began, ended or changed hands.
    Generation {
        id: GenerationId,
    },
    /// A question was asked or answered.
    Question {
        id: QuestionId,
    },
    /// Content was removed for good: what was read before may be gone.
    Removed,
}

/// Something that happened in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreEvent {
    pub cursor: Cursor,
    pub tree: TreeId,
    pub what: EventKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// What this principal may see of it, oldest first.
    pub events: Vec<StoreEvent>,
    pub next: Cursor,
    /// Whether events between the cursor asked for and the first one kept are gone.
    pub missed: bool,
}
