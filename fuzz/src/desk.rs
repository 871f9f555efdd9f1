//! Someone who works at a tree in memory: actions as fuzzers make them, planned and applied as a store does.

use arbitrary::Arbitrary;
use interop::own::{ArchivedResponse, ExportSource, FileBody, StoredGeneration};
use loom::memory::MemoryTree;
use loom::plan::{DraftChange, EditAs, NewText, NewTree};
use loom::reader::RowError;
use loom::render::{Show, render, tip};
use loom::verify::{Status, verify};
use loom::{
    Author, AuthorKind, Block, Digest, Draft, GenerationId, KeepScope, Mode, NodeId, Op, OpTarget,
    PositionId, Role, Slot, TextOffset, ToolStatus, TreeReader, Trust, ViewName,
};
use loom_testing::{NoEvidence, Planner, WriteRows};

/// Actions of one run.
pub const MOST_ACTIONS: usize = 40;

/// Bytes of one text.
const MOST_TEXT: usize = 200;

/// One action. Numbers name nodes, positions and views there are, by their order.
#[derive(Arbitrary, Debug, Clone)]
pub enum Action {
    /// Adds a passage.
    Append(String),
    /// Adds blocks of every kind.
    Blocks(Vec<Part>),
    /// Changes a passage.
    Edit(u8, String, How),
    /// Branches inside a passage.
    Branch(u8, u8),
    /// Goes to a sibling.
    Switch(u8),
    /// Moves the tip.
    Move(u8),
    /// Shows a version.
    Select(u8, u8),
    /// Accepts drift.
    Keep(u8, bool),
    /// Hides a position or version.
    Prune(u8, bool),
    /// Shows it again.
    Restore(u8, bool),
    /// Leaves a position or version out.
    Exclude(u8, bool),
    /// Takes it in again.
    Include(u8, bool),
    /// Moves the window's start.
    Compact(Option<(u8, u8)>, bool),
    /// Sets or removes a bookmark.
    Bookmark(u8, Option<String>),
    /// Sets or removes a tag.
    Tag(u8, String, bool),
    /// Hangs a remark on a position.
    Annotate(u8, String),
    /// Writes the head.
    Head(String),
    /// Writes the note.
    Note(String, Option<u8>),
    /// Makes a view and works in it.
    View(u8),
    /// Works in a view.
    Go(u8),
    /// Removes a view.
    Unview(u8),
    /// Changes the title.
    Rename(String),
    /// Archives.
    Archive(bool),
    /// Types into the buffer.
    Type(String),
    /// Commits what was typed.
    Commit,
    /// Takes the newest thing back.
    Undo,
    /// Does it again.
    Redo,
}

/// How an edit is made.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub enum How {
    /// As the mode has it.
    Default,
    /// As a version.
    Version,
    /// As a branch.
    Branch,
}

/// One block of content.
#[derive(Arbitrary, Debug, Clone)]
pub enum Part {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A tool call.
    Call(String, String),
    /// A tool's result.
    Result(String),
    /// A picture.
    Image(String),
}

impl Part {
    fn block(self) -> Block {
        match self {
            Self::Text(text) => Block::text(cut(&text)),
            Self::Thinking(text) => Block::Thinking { text: cut(&text), opaque: None },
            Self::Call(name, text) => {
                let arguments = [(cut(&text), cut(&name))].into_iter().collect();
                Block::ToolCall { id: "1".into(), name: cut(&name), arguments }
            }
            Self::Result(text) => Block::ToolResult {
                call_id: "1".into(),
                blocks: vec![Block::text(cut(&text))],
                status: ToolStatus::Ok,
            },
            Self::Image(mime) => Block::Image { blob: Digest::ZERO, mime: cut(&mime) },
        }
    }
}

/// A tree and someone at it.
pub struct Desk {
    /// The tree.
    pub tree: MemoryTree,
    planner: Planner,
    view: ViewName,
    views: Vec<ViewName>,
    nodes: Vec<NodeId>,
    positions: Vec<PositionId>,
}

/// The moment a desk begins, in the middle of what importers take for honest times.
pub const START: i64 = 1_790_000_000_000;

impl Desk {
    /// An empty tree.
    pub fn new(dialogue: bool, title: &str) -> Self {
        let mut desk = Self {
            tree: MemoryTree::default(),
            planner: Planner::at(START),
            view: ViewName::default(),
            views: vec![ViewName::default()],
            nodes: Vec::new(),
            positions: Vec::new(),
        };
        let mode = if dialogue { Mode::Dialogue } else { Mode::Buffer };
        assert!(desk.run(Op::Create(NewTree { mode, title: cut(title), origin: None })));
        desk
    }

    /// A tree after these actions.
    pub fn after(dialogue: bool, title: &str, actions: Vec<Action>) -> Self {
        let mut desk = Self::new(dialogue, title);
        for action in actions.into_iter().take(MOST_ACTIONS) {
            desk.act(action);
        }
        desk
    }

    /// Plans and applies; whether the change was not refused.
    pub fn run(&mut self, op: Op) -> bool {
        match self.planner.plan(&self.tree, &self.view, op) {
            Ok((plan, _)) => {
                self.nodes.extend(plan.nodes.iter().map(|node| node.id));
                self.positions.extend(plan.positions.iter().map(|position| position.id));
                self.tree.apply(plan).expect("a fresh plan applies");
                true
            }
            Err(refusal) => {
                assert!(!refusal.to_string().is_empty());
                false
            }
        }
    }

    fn act(&mut self, action: Action) {
        let op = match action {
            Action::Append(text) => Op::Append(NewText::owner(cut(&text), self.role())),
            Action::Blocks(parts) => Op::Append(NewText {
                content: parts.into_iter().take(6).map(Part::block).collect(),
                author: Author { kind: AuthorKind::Model, id: "weaver".into(), profile: None },
                role: self.role().map(|_| Role::Assistant),
                trust: Trust::Outside,
            }),
            Action::Edit(at, text, how) => Op::Edit {
                position: self.position(at),
                text: cut(&text),
                edit_as: match how {
                    How::Default => EditAs::Default,
                    How::Version => EditAs::Version,
                    How::Branch => EditAs::Branch,
                },
            },
            Action::Branch(at, offset) => {
                Op::BranchAt { node: self.node(at), at: offset.into(), token: None }
            }
            Action::Switch(at) => Op::Switch(self.position(at)),
            Action::Move(at) => Op::Move(self.position(at)),
            Action::Select(at, version) => {
                Op::Select { position: self.position(at), version: self.node(version) }
            }
            Action::Keep(at, below) => Op::Keep {
                position: self.position(at),
                scope: if below { KeepScope::Below } else { KeepScope::Here },
            },
            Action::Prune(at, version) => Op::Prune(self.target(at, version)),
            Action::Restore(at, version) => Op::Restore(self.target(at, version)),
            Action::Exclude(at, version) => Op::Exclude(self.target(at, version)),
            Action::Include(at, version) => Op::Include(self.target(at, version)),
            Action::Compact(to, by_hand) => Op::Compact {
                to: to.map(|(at, offset)| TextOffset { position: self.position(at), at: offset.into() }),
                by_hand,
            },
            Action::Bookmark(at, title) => {
                Op::Bookmark { position: self.position(at), title: title.map(|title| cut(&title)) }
            }
            Action::Tag(at, tag, on) => Op::Tag { position: self.position(at), tag: cut(&tag), on },
            Action::Annotate(at, text) => {
                Op::Annotate { position: self.position(at), text: NewText::owner(cut(&text), None) }
            }
            Action::Head(text) => Op::PinHead(NewText::owner(cut(&text), None)),
            Action::Note(text, depth) => {
                Op::PinNote { text: NewText::owner(cut(&text), None), depth: depth.map(u64::from) }
            }
            Action::View(number) => {
                let Ok(name) = format!("view-{}", number % 4).parse::<ViewName>() else { return };
                if self.run(Op::NewView { name: name.clone(), agent: "reader".into() }) {
                    self.views.push(name.clone());
                    self.view = name;
                }
                return;
            }
            Action::Go(number) => {
                self.view = self.views[usize::from(number) % self.views.len()].clone();
                return;
            }
            Action::Unview(number) => {
                let name = self.views[usize::from(number) % self.views.len()].clone();
                self.view = ViewName::default();
                if self.run(Op::DeleteView(name.clone())) {
                    self.views.retain(|view| *view != name);
                }
                return;
            }
            Action::Rename(title) => Op::Rename(cut(&title)),
            Action::Archive(on) => Op::Archive(on),
            Action::Type(text) => return self.type_in(&cut(&text)),
            Action::Commit => Op::Commit,
            Action::Undo => Op::Undo,
            Action::Redo => Op::Redo,
        };
        self.run(op);
    }

    /// Types as a client does: the buffer becomes `wanted`.
    fn type_in(&mut self, wanted: &str) {
        let timeline = self.tree.timeline(&self.view).expect("a timeline");
        let held = self.tree.draft(&self.view, Slot::Buffer).expect("drafts");
        let expected = held.as_ref().map(|draft| draft.revision);
        let mut draft = held.unwrap_or_else(|| Draft::new(None, ""));
        let Some(splice) = draft.splice_to(wanted, timeline.depth, timeline.tick + 1) else { return };
        draft.splice(splice).expect("a splice of this draft");
        let change = DraftChange { view: self.view.clone(), slot: Slot::Buffer, expected, new: Some(draft) };
        self.tree.set_draft(change).expect("the revision is the newest");
    }

    /// Asserts what holds of every tree: it verifies, and every view shows a text.
    pub fn is_sound(&self) {
        let report = verify(&self.tree, &NoEvidence).expect("rows are there");
        assert_eq!(report.status, Status::Valid, "{:?}", report.problems);
        for view in &self.views {
            assert!(self.tree.position(tip(&self.tree, view).expect("a tip")).expect("rows").is_some());
            self.text(view);
        }
    }

    /// What a view shows, with its drafts; its spans cover it without gap or overlap.
    pub fn text(&self, view: &ViewName) -> String {
        let shown = render(&self.tree, view, Show { drafts: true, spans: true }).expect("a path");
        let mut at = 0;
        for span in &shown.spans {
            assert_eq!(span.start, at, "{:?}", shown.spans);
            assert!(span.end > span.start);
            at = span.end;
        }
        shown.text
    }

    /// What a view shows of what was committed: what an export holds.
    pub fn committed(&self, view: &ViewName) -> String {
        render(&self.tree, view, Show { drafts: false, spans: false }).expect("a path").text
    }

    fn role(&self) -> Option<Role> {
        (self.tree.tree().expect("a tree").mode == Mode::Dialogue).then_some(Role::User)
    }

    fn node(&self, number: u8) -> NodeId {
        self.nodes[usize::from(number) % self.nodes.len()]
    }

    fn position(&self, number: u8) -> PositionId {
        // From the newest, so that small numbers name what was just made.
        self.positions[self.positions.len() - 1 - usize::from(number) % self.positions.len()]
    }

    fn target(&self, number: u8, version: bool) -> OpTarget {
        if version { OpTarget::Version(self.node(number)) } else { OpTarget::Position(self.position(number)) }
    }
}

impl ExportSource for Desk {
    fn rows(&self) -> &dyn TreeReader {
        &self.tree
    }

    fn generations(&self, _: Option<GenerationId>, _: usize) -> Result<Vec<StoredGeneration>, RowError> {
        Ok(Vec::new())
    }

    fn manifest(&self, _: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(None)
    }

    fn bodies(&self, _: Digest) -> Result<Vec<FileBody>, RowError> {
        Ok(Vec::new())
    }

    fn body(&self, _: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(None)
    }

    fn response(&self, _: Digest) -> Result<Option<ArchivedResponse>, RowError> {
        Ok(None)
    }

    fn blob(&self, _: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(None)
    }
}

/// The first [`MOST_TEXT`] bytes of a text.
fn cut(text: &str) -> String {
    let end = (0..=text.len().min(MOST_TEXT)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}
