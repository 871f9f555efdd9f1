//! Operation records: what was done to a tree, in order, each chained to the one before.
//!
//! Undo is a new operation: the record's cells swapped. A view's timeline is a linked list through the
//! records (`undo_prev`, `redo_prev`), so that undo and redo read a fixed number of rows however long the log.

use serde::{Deserialize, Serialize};

use crate::cell::{CellChange, CellKey};
use crate::content::{NotCanonical, canonical};
use crate::digest::Digest;
use crate::id::{Millis, NodeId, Seq, TreeId, ViewName};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    Create,
    /// Made nodes of drafts or given text.
    Commit,
    /// Committed and asked a model.
    Generate,
    /// Took a model's or a tool's answer.
    Answer,
    /// Made a version, or a sibling with `edited_from`.
    Edit,
    /// Made a sibling inside a passage.
    Branch,
    Switch,
    Select,
    Move,
    Keep,
    /// Hid a position or version.
    Prune,
    Restore,
    /// Left something out of the context.
    Exclude,
    Include,
    Compact,
    /// Set or removed a bookmark.
    Bookmark,
    /// Set or removed a tag.
    Tag,
    /// Hung a remark on a position.
    Annotate,
    /// Wrote the tree's head or note.
    Pin,
    NewView,
    DeleteView,
    Rename,
    Archive,
    /// Took it out of the archive.
    Unarchive,
    Undo,
    Redo,
    /// Took nodes from a file.
    Import,
    /// Removed a content for good, leaving its hashes.
    Forget,
    /// The owner answered for texts from outside, or takes that back.
    Trust,
}

/// What an operation means for its view's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineEffect {
    /// Nothing: it cannot be undone and leaves what can be as it is.
    #[default]
    None,
    /// The operation can be undone, and nothing can be redone after it.
    Push,
    /// The operation can be undone together with the one that began its turn, and all between.
    Join(Seq),
    /// The operation took these back, newest first; `then` is what can be undone next.
    Undo {
        of: Vec<Seq>,
        /// What can be undone next.
        then: Option<Seq>,
    },
    /// The operation did again what this undo had taken back; `then` is what can be redone next.
    Redo {
        of: Seq,
        /// What can be redone next.
        then: Option<Seq>,
    },
}

/// Where a view stands in its timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// The newest operation that can be undone.
    pub undo: Option<Seq>,
    /// The newest undo that can be done again.
    pub redo: Option<Seq>,
    /// How many operations can be undone; places keystrokes among them.
    pub depth: u32,
    /// Counts keystrokes and operations of the view.
    pub tick: u64,
}

impl Timeline {
    /// The timeline after an operation with number `seq`.
    #[must_use]
    pub fn after(self, effect: &TimelineEffect, seq: Seq) -> Self {
        let tick = self.tick + 1;
        match effect {
            TimelineEffect::None => Self { tick, ..self },
            TimelineEffect::Push => Self { undo: Some(seq), redo: None, depth: self.depth + 1, tick },
            // Joined operations count as one with the operation they belong to.
            TimelineEffect::Join(_) => Self { undo: Some(seq), redo: None, depth: self.depth, tick },
            TimelineEffect::Undo { then, .. } => {
                Self { undo: *then, redo: Some(seq), depth: self.depth.saturating_sub(1), tick }
            }
            TimelineEffect::Redo { then, .. } => {
                Self { undo: Some(seq), redo: *then, depth: self.depth + 1, tick }
            }
        }
    }
}

/// An operation as planned: everything but its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub tree: TreeId,
    pub agent: String,
    /// In which view; none for what concerns the whole tree.
    pub view: Option<ViewName>,
    pub kind: OpKind,
    /// When, for people.
    pub at: Millis,
    pub cells: Vec<CellChange>,
    /// The nodes it made, with their chain hashes.
    pub nodes: Vec<(NodeId, Digest)>,
    /// Cells an undo or redo left alone, because something else had set them meanwhile.
    pub skipped: Vec<CellKey>,
    /// What it means for the timeline.
    pub timeline: TimelineEffect,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpRecord {
    pub seq: Seq,
    /// Hash of the record before it.
    pub prev: Digest,
    pub hash: Digest,
    /// What could be undone before it.
    pub undo_prev: Option<Seq>,
    /// What could be redone before it.
    pub redo_prev: Option<Seq>,
    #[serde(flatten)]
    pub op: Operation,
    /// Whether a text in its cells was removed by `forget`; its hash stays, and can no longer be recomputed.
    #[serde(default)]
    pub purged: bool,
}

/// What the hash of a record covers.
#[derive(Serialize)]
struct Hashed<'a> {
    format: u32,
    seq: Seq,
    prev: Digest,
    undo_prev: Option<Seq>,
    redo_prev: Option<Seq>,
    #[serde(flatten)]
    op: &'a Operation,
}

/// The version of the record that is hashed.
pub(crate) const RECORD_FORMAT: u32 = 1;

impl OpRecord {
    /// Binds an operation to its number and to the record before it.
    ///
    /// # Errors
    /// [`NotCanonical`] never occurs for what this crate plans; an imported record is checked by it.
    pub fn bind(op: Operation, seq: Seq, prev: Digest, before: Timeline) -> Result<Self, NotCanonical> {
        let mut record = Self {
            seq,
            prev,
            hash: Digest::ZERO,
            undo_prev: before.undo,
            redo_prev: before.redo,
            op,
            purged: false,
        };
        record.hash = record.compute_hash()?;
        Ok(record)
    }

    /// The operation that began the turn of this one: all of it is undone together.
    pub const fn turn(&self) -> Seq {
        match self.op.timeline {
            TimelineEffect::Join(first) => first,
            _ => self.seq,
        }
    }

    /// The hash its fields give, whatever `hash` says.
    ///
    /// # Errors
    /// [`NotCanonical`] for a record without a canonical form.
    pub fn compute_hash(&self) -> Result<Digest, NotCanonical> {
        let hashed = Hashed {
            format: RECORD_FORMAT,
            seq: self.seq,
            prev: self.prev,
            undo_prev: self.undo_prev,
            redo_prev: self.redo_prev,
            op: &self.op,
        };
        Ok(Digest::of_parts("drawloom.operation", &[&canonical(&hashed)?]))
    }
}
