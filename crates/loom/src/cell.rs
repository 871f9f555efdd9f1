//! Cells: the few things about a tree that change. Each change is a compare-and-swap in an operation record.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::draft::Slot;
use crate::id::{NodeId, PositionId, Seq, ViewName};

/// One position with all its versions, or one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpTarget {
    Position(PositionId),
    Version(NodeId),
}

/// Names a cell of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "cell", rename_all = "snake_case")]
pub enum CellKey {
    /// The tree's title: [`CellValue::Text`].
    Title,
    /// Whether the tree is archived: [`CellValue::Set`].
    Archived,
    /// The position of the tree's head: [`CellValue::Position`].
    Head,
    /// The position of the tree's note: [`CellValue::Position`].
    Note,
    /// How many paragraphs before the end the note stands: [`CellValue::Number`].
    NoteDepth,
    /// A view exists: [`CellValue::Text`] names its agent.
    View { view: ViewName },
    /// The end of a view's path: [`CellValue::Position`].
    Tip { view: ViewName },
    /// Where the view's window starts, if it was moved: [`CellValue::Place`].
    WindowStart { view: ViewName },
    /// The version a view shows at a position: [`CellValue::Node`].
    Selected { view: ViewName, position: PositionId },
    /// The tip a view had below a position when it left it: [`CellValue::Position`].
    LastTip {
        view: ViewName,
        /// The sibling that was left.
        position: PositionId,
    },
    /// Drift accepted at or below a position: [`CellValue::Keep`].
    Keep { view: ViewName, position: PositionId },
    /// Hidden by the owner: [`CellValue::Set`].
    Pruned { target: OpTarget },
    /// Left out of the context: [`CellValue::Set`].
    Excluded { target: OpTarget },
    /// A bookmark and its title: [`CellValue::Text`].
    Bookmark { position: PositionId },
    /// A tag: [`CellValue::Set`].
    Tag { position: PositionId, tag: String },
    /// The owner answers for the text of a node from outside: [`CellValue::Set`].
    Trusted { node: NodeId },
    /// A draft that an operation took or gave back: [`CellValue::Draft`].
    Draft { view: ViewName, slot: Slot },
}

/// How far a `keep` reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepScope {
    Here,
    /// This position and all below.
    Below,
}

/// A place in the text of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextOffset {
    pub position: PositionId,
    /// Byte offset in the text shown there.
    pub at: u64,
}

/// What a cell holds. A cell that was never set holds `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellValue {
    #[default]
    None,
    /// A flag that is up.
    Set,
    Position(PositionId),
    Node(NodeId),
    /// A place in the text shown at a position.
    Place(TextOffset),
    /// An accepted drift: choices newer than the operation that set it count as drift again.
    Keep(KeepScope),
    Text(String),
    Number(u64),
    /// A draft whose text is that of nodes, one after another: those a commit made of it.
    Draft {
        /// The version it edits, if it is a pending edit.
        base: Option<NodeId>,
        /// The nodes with its text.
        text_of: Vec<NodeId>,
    },
}

impl CellValue {
    pub const fn as_position(&self) -> Option<PositionId> {
        if let Self::Position(id) = self { Some(*id) } else { None }
    }

    pub const fn as_node(&self) -> Option<NodeId> {
        if let Self::Node(id) = self { Some(*id) } else { None }
    }

    pub const fn as_place(&self) -> Option<TextOffset> {
        if let Self::Place(place) = self { Some(*place) } else { None }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Whether it is a flag that is up.
    pub const fn is_set(&self) -> bool {
        matches!(self, Self::Set)
    }

    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// A cell as stored: its value and the operation that set it last (0: never).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cell {
    pub value: CellValue,
    /// The operation that set it.
    pub seq: Seq,
}

/// One change of one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellChange {
    pub key: CellKey,
    /// What it must hold for the change to apply.
    pub old: CellValue,
    pub new: CellValue,
}

impl CellChange {
    /// The change that takes this one back.
    #[must_use]
    pub(crate) fn swapped(&self) -> Self {
        Self { key: self.key.clone(), old: self.new.clone(), new: self.old.clone() }
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Title => f.write_str("title"),
            Self::Archived => f.write_str("archived"),
            Self::Head => f.write_str("head"),
            Self::Note => f.write_str("note"),
            Self::NoteDepth => f.write_str("note depth"),
            Self::View { view } => write!(f, "view {view}"),
            Self::Tip { view } => write!(f, "tip of {view}"),
            Self::WindowStart { view } => write!(f, "window start of {view}"),
            Self::Selected { view, position } => write!(f, "version shown at {position} in {view}"),
            Self::LastTip { view, position } => write!(f, "last tip below {position} in {view}"),
            Self::Keep { view, position } => write!(f, "keep at {position} in {view}"),
            Self::Pruned { target } => write!(f, "pruned {target}"),
            Self::Excluded { target } => write!(f, "excluded {target}"),
            Self::Bookmark { position } => write!(f, "bookmark at {position}"),
            Self::Tag { position, tag } => write!(f, "tag {tag:?} at {position}"),
            Self::Trusted { node } => write!(f, "trust of {node}"),
            Self::Draft { view, slot: Slot::Buffer } => write!(f, "working buffer of {view}"),
            Self::Draft { view, slot: Slot::Edit(position) } => {
                write!(f, "pending edit of {position} in {view}")
            }
        }
    }
}

impl fmt::Display for OpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(id) => id.fmt(f),
            Self::Version(id) => write!(f, "version {id}"),
        }
    }
}

/// Which cells of a tree a reader wants as a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellScope {
    Views,
    /// The versions a view selected.
    Selected(ViewName),
    /// The keeps of a view.
    Keeps(ViewName),
    Pruned,
    Excluded,
    Bookmarks,
    /// The tags of one position.
    Tags(PositionId),
    AllTags,
}

impl CellScope {
    /// Whether `key` belongs to it.
    pub fn holds(&self, key: &CellKey) -> bool {
        match (self, key) {
            (Self::Views, CellKey::View { .. })
            | (Self::Pruned, CellKey::Pruned { .. })
            | (Self::Excluded, CellKey::Excluded { .. })
            | (Self::Bookmarks, CellKey::Bookmark { .. })
            | (Self::AllTags, CellKey::Tag { .. }) => true,
            (Self::Selected(of), CellKey::Selected { view, .. })
            | (Self::Keeps(of), CellKey::Keep { view, .. }) => of == view,
            (Self::Tags(of), CellKey::Tag { position, .. }) => of == position,
            _ => false,
        }
    }
}
