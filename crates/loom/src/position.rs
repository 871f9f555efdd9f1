//! Positions: logical places, and what lets a window of a long path be read without walking it.

use serde::{Deserialize, Serialize};

use crate::content::Counts;
use crate::digest::PathDigest;
use crate::id::{PositionId, TreeId};
use crate::node::Role;

/// Size and digest of a stretch of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sums {
    pub counts: Counts,
    pub digest: PathDigest,
}

impl Sums {
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { counts: self.counts.plus(other.counts), digest: self.digest.plus(other.digest) }
    }

    /// Takes another away, which must be part of it.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { counts: self.counts.minus(other.counts), digest: self.digest.minus(other.digest) }
    }
}

/// What a position is for. Only `Path` positions stand on paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionKind {
    /// A place on a path.
    Path,
    /// The tree's head, sent first.
    Head,
    /// The tree's note, sent some paragraphs before the end.
    Note,
    /// A remark hung on another position; sent only where a request names it.
    Annotation,
}

/// A position row. Everything in it is fixed at creation from its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Id of the position, that of its original.
    pub id: PositionId,
    pub tree: TreeId,
    /// The position it follows from; none for the genesis.
    pub parent: Option<PositionId>,
    pub kind: PositionKind,
    /// Role in a dialogue; none in a document.
    pub role: Option<Role>,
    /// How many positions stand above it; the genesis has 0.
    pub depth: u32,
    /// An ancestor further up (itself for the genesis): a skew-binary jump pointer.
    pub jump: PositionId,
    /// Sums over the originals above it.
    pub above: Sums,
    /// Size and digest term of its own original.
    pub own: Sums,
}

impl Position {
    /// Sums over the originals above a child of this position.
    pub const fn below(&self) -> Sums {
        self.above.plus(self.own)
    }

    /// The jump pointer of a child of `parent`. `jump` is the row `parent.jump` names and `jump_jump` the row
    /// that one names. Two jumps of equal length are joined into one of twice the length and one more step,
    /// so that any ancestor is reached in O(log depth) reads.
    pub const fn child_jump(parent: &Self, jump: &Self, jump_jump: &Self) -> PositionId {
        if parent.depth.wrapping_sub(jump.depth) == jump.depth.wrapping_sub(jump_jump.depth) {
            jump_jump.id
        } else {
            parent.id
        }
    }
}
