//! Results of commands that write, mark or move.

use loom::{NodeId, OpKind, PositionId, Role, Seq};
use serde::Serialize;

use crate::tree::WordChange;

/// A node that was made or marked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeNamed {
    pub node: NodeId,
    pub short_id: String,
}

/// `tree draft`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DraftDone {
    /// `buffer`, or the position of the pending edit.
    pub draft: String,
    /// Revision of the draft; none once it was committed.
    pub revision: Option<u64>,
    /// The nodes a commit made.
    pub nodes: Vec<NodeId>,
    pub short_ids: Vec<String>,
}

/// `tree edit`, `merge`, `split`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Edited {
    /// The version or sibling shown now.
    pub node: NodeId,
    pub short_id: String,
    /// Where it stands.
    pub position: PositionId,
    /// The version it was made from.
    pub edited_from: Option<NodeId>,
    /// The passage that took what stood behind the place, if it was split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<NodeNamed>,
}

/// `tree edit` without a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PathEdited {
    /// Passages that show another text now, in order.
    pub changed: Vec<Edited>,
    /// Passages that were added at the end.
    pub added: Vec<NodeNamed>,
    /// Passages that were changed elsewhere meanwhile or left the path, and are left as they are.
    pub collided: Vec<NodeNamed>,
    /// Passages of `collided` that are on the path no more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub off_path: Vec<NodeNamed>,
    /// Words that came.
    pub words_added: u64,
    /// Words that went.
    pub words_removed: u64,
    /// The file in which the edited text lies, where it was not taken in whole.
    pub file: Option<std::path::PathBuf>,
}

/// `tree branch`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Branched {
    /// The node at the new tip.
    pub node: NodeId,
    pub short_id: String,
    pub position: PositionId,
    /// The view's tip.
    pub tip: PositionId,
}

/// `tree switch`, `select`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// The view's tip.
    pub tip: PositionId,
    /// Short id of the node shown there.
    #[serde(skip)]
    pub short_id: String,
    /// The sibling that was gone to, where one was.
    #[serde(skip)]
    pub sibling: Option<SiblingReached>,
}

/// A sibling as it is gone to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingReached {
    pub short_id: String,
    pub text: String,
    /// Number among the siblings, from 1.
    pub number: usize,
    /// How many siblings there are, itself included.
    pub of: usize,
    /// The number of the one that was left.
    pub from: usize,
    /// Turns of a conversation that follow the one that was left.
    pub left: usize,
    /// Who says it, in a dialogue.
    pub role: Option<Role>,
}

/// `tree compact`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compacted {
    /// Positions that leave the window, the last maybe in part.
    pub leaves: u64,
    /// Positions that come back into it, where it was moved further down before.
    pub returns: u64,
    /// Characters of those that leave.
    pub chars: u64,
    /// What remembers them: `observed`, `fallback` or `nothing`.
    pub covered_by: &'static str,
    /// The position the window starts at.
    pub start: PositionId,
    /// The passage there by short id and first words, for people.
    #[serde(skip)]
    pub start_named: String,
    /// Whether the start is another one than before.
    #[serde(skip)]
    pub moves: bool,
    /// Whether it was only looked at.
    #[serde(skip)]
    pub dry_run: bool,
}

/// `tree undo`, `redo`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stepped {
    /// The operation; none when it was a keystroke.
    pub operation: Option<Seq>,
    /// Kind of the operation that was undone or redone; none when it was a keystroke.
    pub kind: Option<OpKind>,
    /// What that operation did, in words; none when it was a keystroke.
    pub did: Option<String>,
    /// Words that came into the text and went out of it with this step.
    #[serde(skip)]
    pub words: WordChange,
    /// Whether it was redone.
    #[serde(skip)]
    pub redone: bool,
    /// Whether anything changed: not where all was left alone.
    pub changed: bool,
    /// Cells left alone, because something else had set them meanwhile.
    pub skipped: Vec<String>,
}

/// `tree log`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operations {
    /// The operations, newest first.
    pub operations: Vec<OperationShown>,
    /// `--before` of the next page, if there is one.
    pub next: Option<u64>,
    /// The command that shows it.
    #[serde(skip)]
    pub more: Option<String>,
}

/// An operation as shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationShown {
    pub seq: Seq,
    /// What it was.
    pub kind: OpKind,
    /// What it did, in words.
    pub did: String,
    /// In which view.
    pub view: Option<String>,
    /// Who did it.
    pub agent: String,
    /// When, ms since 1970.
    pub at: i64,
    /// The nodes it made.
    pub nodes: Vec<NodeId>,
    /// The cells it set.
    pub changes: Vec<String>,
}
