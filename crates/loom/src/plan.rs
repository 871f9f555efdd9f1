//! Planning: every change of a tree as a pure function over a [`ReadSet`].
//!
//! A plan says which rows to insert and which cells to set, each with the value it expects. Inserts never
//! conflict; a cell that changed meanwhile makes the store refuse the whole plan, and it is made again.

mod branch;
mod builder;
mod commit;
mod create;
mod edit;
mod flag;
mod generate;
mod history;
mod merge;
mod pin;
mod travel;

pub use create::NewTree;
pub use generate::{Answer, CallResult, NewToken};

use crate::cell::{CellChange, CellKey, CellValue, KeepScope, OpTarget, TextOffset};
use crate::content::{Block, NotCanonical};
use crate::draft::{Draft, Slot, SpliceError};
use crate::id::{Entropy, Millis, NodeId, PositionId, Seq, ViewName};
use crate::node::{Author, Node, Role, Trust};
use crate::operation::{OpKind, Operation, TimelineEffect};
use crate::position::Position;
use crate::read_set::{Needs, ReadSet};
use crate::tree::TreeRow;

/// Whether an edit makes a version or a sibling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditAs {
    /// As the tree's mode has it: a version in a document, a branch in a dialogue.
    Default,
    /// A version at the same position; everything below stays.
    Version,
    /// A new sibling; what was below stays on the old one.
    Branch,
}

/// A text given by a command, with its author.
#[derive(Debug, Clone)]
pub struct NewText {
    pub content: Vec<Block>,
    pub author: Author,
    /// Role in a dialogue; none in a document.
    pub role: Option<Role>,
    /// How far it is believed.
    pub trust: Trust,
}

impl NewText {
    /// A text typed by the owner.
    pub fn owner(text: impl Into<String>, role: Option<Role>) -> Self {
        Self { content: vec![Block::text(text)], author: Author::owner(), role, trust: Trust::Owner }
    }
}

/// What a passage is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageEdit {
    pub position: PositionId,
    /// The version that was shown there when the text was written.
    pub from: NodeId,
    pub text: String,
    /// What of the text stood in another passage.
    pub moved: Option<MovedText>,
    /// Passage that the text went to: both change, or neither.
    pub moved_to: Option<PositionId>,
}

/// Text that stands in a passage as it stood in a version of another one: its authors and its trust come along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedText {
    pub node: NodeId,
    /// Byte range of that version's text.
    pub from: usize,
    pub to: usize,
    /// Byte at which it stands now.
    pub at: usize,
}

/// A passage with the version that is shown there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownPassage {
    pub position: PositionId,
    pub node: NodeId,
}

/// A change of a tree.
#[derive(Debug, Clone)]
pub enum Op {
    /// Makes the tree, with its genesis and the view `main`.
    Create(NewTree),
    /// Makes nodes of the view's drafts.
    Commit,
    /// Commits, then adds a node under the tip and moves there.
    Append(NewText),
    /// Commits, then adds texts under a position, each below the one before it, and moves to the last.
    Reply {
        /// The tip, if none.
        to: Option<PositionId>,
        texts: Vec<NewText>,
        /// Positions that are excluded in the same step: what was said before and never answered.
        exclude: Vec<PositionId>,
        /// The operation it is undone together with: that which began the turn.
        part_of: Option<Seq>,
    },
    /// Commits as the first half of a generation.
    Generate,
    /// Takes one choice of a finished generation.
    Answer(Box<Answer>),
    /// Takes what a tool said, below the answer that called it or the result before it.
    Result(Box<CallResult>),
    /// Changes the text of a position.
    Edit {
        position: PositionId,
        text: String,
        edit_as: EditAs,
    },
    /// As [`Op::Edit`], of a text that somebody read before: refused where, drafts committed, another stands there by now.
    EditShown {
        position: PositionId,
        /// The text that was shown, with the view's pending edit.
        shown: String,
        text: String,
        edit_as: EditAs,
    },
    /// Changes the texts of several passages of one path, and adds others below the tip. A passage that shows another
    /// version by now, or that the path of the view does not lead through any more, is left as it is.
    EditPath {
        edits: Vec<PassageEdit>,
        texts: Vec<NewText>,
        /// The passage behind which the texts were written: nothing is added where it is on the path no more.
        behind: Option<PositionId>,
    },
    /// Joins the text of the last of these passages, one below the other, to that of the first; those between are empty.
    Merge {
        passages: Vec<ShownPassage>,
        /// Whether what stands below is accepted as it is, since the text of the path stays.
        keep: bool,
    },
    /// Parts the text of the first of these passages at a byte. The last takes what stands behind it and is empty, as
    /// those between are; the tip alone gets a passage below it.
    Split {
        passages: Vec<ShownPassage>,
        at: u64,
        /// As of [`Op::Merge`].
        keep: bool,
    },
    /// Starts a sibling with the text before a place in a passage.
    BranchAt {
        /// The node shown there, whose text is cut.
        node: NodeId,
        /// Byte offset in its text.
        at: u64,
        /// An alternative token that follows as a model node.
        token: Option<Box<NewToken>>,
    },
    /// Goes to a sibling, and on to where the view last was below it.
    Switch(PositionId),
    /// Moves the tip to a position.
    Move(PositionId),
    /// Shows a version of a position.
    Select {
        position: PositionId,
        version: NodeId,
    },
    Keep {
        position: PositionId,
        /// There, or there and below.
        scope: KeepScope,
    },
    Prune(OpTarget),
    Restore(OpTarget),
    /// Leaves out of the context.
    Exclude(OpTarget),
    Include(OpTarget),
    Compact {
        /// Where to; none moves it back to the top.
        to: Option<TextOffset>,
        /// Whether a person asked for it, so that it can be undone; else a request that did not fit did.
        by_hand: bool,
    },
    /// Sets a bookmark; no title removes it.
    Bookmark {
        position: PositionId,
        title: Option<String>,
    },
    /// The owner answers for texts from outside (spec: security §3), or takes that back. Nodes for which that changes
    /// nothing are passed over.
    Trust {
        nodes: Vec<NodeId>,
        on: bool,
    },
    /// Sets or removes a tag.
    Tag {
        position: PositionId,
        tag: String,
        on: bool,
    },
    /// Hangs a remark on a position.
    Annotate {
        position: PositionId,
        text: NewText,
    },
    PinHead(NewText),
    PinNote {
        text: NewText,
        /// Paragraphs before the end; none leaves it as it is.
        depth: Option<u64>,
    },
    /// Makes a view from the current one.
    NewView {
        name: ViewName,
        agent: String,
    },
    DeleteView(ViewName),
    Rename(String),
    /// Archives the tree, or takes it out of the archive.
    Archive(bool),
    /// Takes the newest thing back.
    Undo,
    Redo,
    /// A change that an agent makes by a tool: it takes no draft, as what somebody types is theirs.
    ByTool {
        /// The operation that began its turn, which it is undone together with if it can be undone; none of a change of
        /// another tree.
        part_of: Option<Seq>,
        op: Box<Op>,
    },
}

/// Who asks for a change, in which view, when.
#[derive(Debug, Clone)]
pub struct Request {
    pub tree: crate::id::TreeId,
    pub view: ViewName,
    /// Who asks: the author of typed text.
    pub author: Author,
    /// How far what is typed is believed.
    pub trust: Trust,
    pub now: Millis,
    pub op: Op,
}

/// A change of a draft, compared by revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftChange {
    pub view: ViewName,
    pub slot: Slot,
    /// The revision it must have; none: there must be no draft.
    pub expected: Option<u64>,
    /// What it becomes; none: it is gone.
    pub new: Option<Draft>,
}

/// What a store has to do, in one transaction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    pub tree: Option<TreeRow>,
    pub positions: Vec<Position>,
    /// Nodes to insert, in order.
    pub nodes: Vec<Node>,
    pub drafts: Vec<DraftChange>,
    /// The operation to append and whose cells to set; none when only drafts change or nothing does.
    pub op: Option<Operation>,
}

impl Plan {
    /// Whether it does nothing at all.
    pub const fn is_empty(&self) -> bool {
        self.op.is_none() && self.drafts.is_empty()
    }
}

/// Why a change is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("no position {0} in this tree")]
    NoPosition(PositionId),
    #[error("no node {0} in this tree")]
    NoNode(NodeId),
    #[error("no view named {0}")]
    NoView(ViewName),
    /// A view of that name exists.
    #[error("a view named {0} exists")]
    ViewExists(ViewName),
    /// `main` stays.
    #[error("the view main stays with its tree")]
    MainView,
    /// The genesis is never edited, pruned or branched from inside.
    #[error("the beginning of the tree is empty and is never edited, pruned or left out")]
    Genesis,
    #[error("node {node} is not a version of position {position}")]
    NotAVersion { node: NodeId, position: PositionId },
    #[error("{0} is pruned")]
    Pruned(OpTarget),
    #[error("{at} stands below {pruned}, which is pruned")]
    BelowPruned { at: PositionId, pruned: PositionId },
    /// The last visible version cannot be pruned.
    #[error("{0} is the last visible version of its position")]
    LastVersion(NodeId),
    /// The place is not in the text.
    #[error("byte {at} is not a character boundary of a text of {len} bytes")]
    Offset {
        at: u64,
        /// The text's size, bytes.
        len: u64,
    },
    /// An empty text is never made into an original.
    #[error("an empty text makes no node")]
    Empty,
    /// The text was removed by `forget`.
    #[error("the text of {0} was forgotten")]
    Purged(NodeId),
    /// A text is too large for one node.
    #[error("a node holds at most {limit} bytes, this text has {len}")]
    TooLarge {
        /// Size of the text, bytes.
        len: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// The position is not on the view's path.
    #[error("position {0} is not on this view's path")]
    NotOnPath(PositionId),
    /// The position is head, note or remark.
    #[error("position {0} is off every path (a head, note or remark)")]
    OffPath(PositionId),
    /// A role is missing, or there is none in a document.
    #[error("a dialogue's text needs a role and a document's has none")]
    Role,
    #[error("the messages of a conversation are not merged or split")]
    NoDocument,
    /// A passage does not show what the change was made for.
    #[error("position {0} was changed meanwhile")]
    ChangedMeanwhile(PositionId),
    #[error("position {0} is left out of the text")]
    LeftOut(PositionId),
    #[error("somebody is writing in this view, and what they typed is not committed yet")]
    DraftHeld,
    #[error("request {0} was made for no place of the tree: its answer is no node")]
    NoPlace(crate::generation::GenerationId),
    #[error("nothing to undo in this view")]
    NothingToUndo,
    #[error("nothing to redo in this view")]
    NothingToRedo,
    /// A content without a canonical form.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
    /// A draft that does not agree with its own splices.
    #[error("a draft of this view is damaged: {0}")]
    Draft(#[from] SpliceError),
}

impl Refusal {
    /// Refuses a place that is pruned itself, or stands below one that is.
    pub fn hidden(at: PositionId, pruned: PositionId) -> Self {
        if pruned == at { Self::Pruned(OpTarget::Position(at)) } else { Self::BelowPruned { at, pruned } }
    }

    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoView(_) => "`drawloom tree view list TREE` shows them",
            Self::ViewExists(_) => "choose another name",
            Self::MainView => "delete another view",
            Self::Genesis => "name a passage below it",
            Self::Pruned(_) | Self::BelowPruned { .. } => "restore what is pruned first",
            Self::LastVersion(_) => "prune the position instead",
            Self::Empty => "write something",
            Self::Purged(_) => "it cannot be used: name another text",
            Self::TooLarge { .. } => "commit it as several nodes",
            Self::NotOnPath(_) => "switch to it first",
            Self::OffPath(_) => "name a passage",
            Self::Role => "append to a conversation as its owner, or generate an answer",
            Self::NoDocument => "edit a message with `drawloom tree edit TREE NODE`",
            Self::ChangedMeanwhile(_) => "look at it with `drawloom tree show TREE`, and ask again",
            Self::LeftOut(_) => "take it in again with `drawloom tree include TREE NODE`",
            Self::DraftHeld => "commit the draft, or wait until it is",
            Self::NothingToUndo => "`drawloom tree log TREE` shows what was done; --view names another view",
            Self::NothingToRedo => "something new was done since, or nothing was undone",
            Self::NotCanonical(_) | Self::NoPlace(_) => "this is a defect, please report it",
            Self::Draft(error) => error.hint(),
            Self::NoPosition(_) | Self::NoNode(_) | Self::NotAVersion { .. } | Self::Offset { .. } => {
                "`drawloom tree show TREE --all` shows every node and where it stands"
            }
        }
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// Rows that have to be read first.
    Needs(Needs),
    Refused(Refusal),
}

impl From<Needs> for PlanError {
    fn from(needs: Needs) -> Self {
        Self::Needs(needs)
    }
}

impl<R: Into<Refusal>> From<R> for PlanError {
    fn from(refusal: R) -> Self {
        Self::Refused(refusal.into())
    }
}

/// Bytes a node holds at most (spec: scale §4 `node`).
pub const MAX_NODE_BYTES: u64 = 16 * 1024 * 1024;

/// Plans a change over a slice.
///
/// # Errors
/// [`PlanError::Needs`] names rows to read before it is called again with the same request and the slice
/// grown; [`PlanError::Refused`] says why the change is not made.
pub fn plan(request: &Request, slice: &ReadSet, entropy: &mut Entropy<'_>) -> Result<Plan, PlanError> {
    if let Op::Create(new) = &request.op {
        return create::create(request, new, entropy);
    }
    let mut builder = builder::PlanBuilder::new(request, slice, entropy)?;
    apply(&mut builder, &request.op)?;
    Ok(builder.finish()?)
}

fn apply(builder: &mut builder::PlanBuilder<'_, '_>, op: &Op) -> Result<(), PlanError> {
    match op {
        Op::Create(_) => {}
        Op::Commit => commit::commit(builder)?,
        Op::Append(text) => commit::append(builder, None, std::slice::from_ref(text), &[])?,
        Op::Reply { to, texts, exclude, part_of } => {
            commit::append(builder, *to, texts, exclude)?;
            builder.join(*part_of)?;
        }
        Op::Generate => commit::before_generation(builder)?,
        Op::Answer(answer) => generate::answer(builder, answer)?,
        Op::Result(result) => generate::result(builder, result)?,
        Op::Edit { position, text, edit_as } => edit::edit(builder, *position, None, text, *edit_as)?,
        Op::EditShown { position, shown, text, edit_as } => {
            edit::edit(builder, *position, Some(shown), text, *edit_as)?;
        }
        Op::EditPath { edits, texts, behind } => edit::edit_path(builder, edits, texts, *behind)?,
        Op::Merge { passages, keep } => merge::merge(builder, passages, *keep)?,
        Op::Split { passages, at, keep } => merge::split(builder, passages, *at, *keep)?,
        Op::BranchAt { node, at, token } => branch::branch_at(builder, *node, *at, token.as_deref())?,
        Op::Switch(position) => travel::switch(builder, *position)?,
        Op::Move(position) => travel::move_tip(builder, *position)?,
        Op::Select { position, version } => travel::select(builder, *position, *version)?,
        Op::Keep { position, scope } => flag::keep(builder, *position, *scope)?,
        Op::Prune(target) => flag::prune(builder, *target)?,
        Op::Restore(target) => flag::restore(builder, *target)?,
        Op::Exclude(target) => flag::exclude(builder, *target, true)?,
        Op::Include(target) => flag::exclude(builder, *target, false)?,
        Op::Compact { to, by_hand } => travel::compact(builder, *to, *by_hand)?,
        Op::Bookmark { position, title } => flag::bookmark(builder, *position, title.as_deref())?,
        Op::Trust { nodes, on } => flag::trust(builder, nodes, *on)?,
        Op::Tag { position, tag, on } => flag::tag(builder, *position, tag, *on)?,
        Op::Annotate { position, text } => pin::annotate(builder, *position, text)?,
        Op::PinHead(text) => pin::head(builder, text)?,
        Op::PinNote { text, depth } => pin::note(builder, text, *depth)?,
        Op::NewView { name, agent } => flag::new_view(builder, name, agent)?,
        Op::DeleteView(name) => flag::delete_view(builder, name)?,
        Op::Rename(title) => flag::rename(builder, title)?,
        Op::Archive(on) => flag::archive(builder, *on)?,
        Op::Undo => history::undo(builder)?,
        Op::Redo => history::redo(builder)?,
        Op::ByTool { part_of, op } => {
            apply(builder, op)?;
            builder.by_tool(*part_of)?;
        }
    }
    Ok(())
}

/// The change of one cell.
fn change(key: CellKey, old: CellValue, new: CellValue) -> CellChange {
    CellChange { key, old, new }
}

/// The operation of a request.
fn operation(request: &Request, kind: OpKind, timeline: TimelineEffect) -> Operation {
    Operation {
        tree: request.tree,
        agent: request.author.id.clone(),
        view: Some(request.view.clone()),
        kind,
        at: request.now,
        cells: Vec::new(),
        nodes: Vec::new(),
        skipped: Vec::new(),
        timeline,
    }
}
