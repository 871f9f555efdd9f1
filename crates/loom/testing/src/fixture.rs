//! A tree in memory with a writer at it: plans over slices, applies, types, asks a made-up model.

use std::collections::BTreeMap;
use std::sync::Arc;

use loom::content::content_hash;
use loom::memory::MemoryTree;
use loom::path::ViewOverrides;
use loom::plan::{Answer, DraftChange, EditAs, NewText, NewTree};
use loom::reader::RowError;
use loom::render::{Show, render, tip};
use loom::verify::{Evidence, Gap, Report, Reread, verify};
use loom::{
    Author, AuthorKind, Block, Digest, Draft, Finish, GenerationId, GenerationPlace, GenerationRow, Mode,
    ModelSource, NodeId, NodeRow, Op, Plan, PositionId, Purpose, Refusal, ResponsePart, Role, Run, Seq, Slot,
    SourceKind, TreeReader, Trust, ViewName,
};

use crate::{Planner, TREE, WriteRows};

/// A tree in memory with a writer at it.
pub struct Fixture {
    pub tree: MemoryTree,
    pub mode: Mode,
    pub evidence: Stored,
    planner: Planner,
}

/// Responses and manifests as they were received.
#[derive(Default, Clone)]
pub struct Stored {
    pub responses: BTreeMap<Digest, Vec<Block>>,
    pub manifests: BTreeMap<Digest, Vec<u8>>,
}

impl Evidence for Stored {
    fn manifest(&self, digest: Digest) -> Result<Result<Digest, Gap>, RowError> {
        Ok(self.manifests.get(&digest).map(|bytes| Digest::of(bytes)).ok_or(Gap::Missing))
    }

    fn reread(&self, _: &NodeRow, source: &ModelSource) -> Result<Reread, RowError> {
        Ok(match source.response.and_then(|digest| self.responses.get(&digest)) {
            Some(blocks) => Reread::Blocks { digest: content_hash(blocks).unwrap(), blocks: blocks.clone() },
            None => Reread::Gap { digest: None, gap: Gap::Missing },
        })
    }

    fn has_checked_records(&self) -> bool {
        false
    }
}

pub fn main_view() -> ViewName {
    ViewName::default()
}

impl Fixture {
    pub fn new(mode: Mode) -> Self {
        let mut fixture = Self {
            tree: MemoryTree::default(),
            mode,
            evidence: Stored::default(),
            planner: Planner::at(1_700_000_000_000),
        };
        fixture.run(Op::Create(NewTree { mode, title: "a tree".into(), origin: None })).unwrap();
        fixture
    }

    pub fn buffer() -> Self {
        Self::new(Mode::Buffer)
    }

    /// A plan over rows read as it asks for them, and the number of rounds that took.
    pub fn plan_over(
        &mut self,
        rows: &dyn TreeReader,
        view: &ViewName,
        op: Op,
    ) -> Result<(Plan, usize), Refusal> {
        self.planner.plan(rows, view, op)
    }

    pub fn plan_in(&mut self, view: &ViewName, op: Op) -> Result<Plan, Refusal> {
        let tree = std::mem::take(&mut self.tree);
        let planned = self.plan_over(&tree, view, op);
        self.tree = tree;
        Ok(planned?.0)
    }

    /// Plans and applies; returns the plan.
    pub fn run_in(&mut self, view: &ViewName, op: Op) -> Result<Plan, Refusal> {
        let plan = self.plan_in(view, op)?;
        self.tree.apply(plan.clone()).unwrap();
        Ok(plan)
    }

    pub fn run(&mut self, op: Op) -> Result<Plan, Refusal> {
        self.run_in(&main_view(), op)
    }

    /// The nodes an operation made in `main`.
    pub fn made(&mut self, op: Op) -> Vec<NodeId> {
        self.run(op).unwrap().nodes.iter().map(|node| node.id).collect()
    }

    pub fn role(&self) -> Option<Role> {
        (self.mode == Mode::Dialogue).then_some(Role::User)
    }

    pub fn append(&mut self, text: &str) -> PositionId {
        let role = self.role();
        self.made(Op::Append(NewText::owner(text, role)))[0].as_position()
    }

    pub fn edit(&mut self, position: PositionId, text: &str) -> Option<NodeId> {
        let edit = Op::Edit { position, text: text.into(), edit_as: EditAs::Version };
        self.made(edit).first().copied()
    }

    /// Types as a client does: what is in a slot becomes `wanted`.
    pub fn typed_in(&mut self, view: &ViewName, slot: Slot, wanted: &str) {
        let timeline = self.tree.timeline(view).unwrap();
        let held = self.tree.draft(view, slot).unwrap();
        let expected = held.as_ref().map(|draft| draft.revision);
        let mut draft = match (held, slot) {
            (Some(draft), Slot::Buffer) => draft,
            (None, Slot::Buffer) => Draft::new(None, ""),
            (held, Slot::Edit(position)) => {
                let shown = self.shown(view, position);
                let base = |node| self.tree.node(node).unwrap().unwrap().node.text().into_owned();
                match held {
                    Some(draft) if draft.base.is_some_and(|from| draft.text != base(from)) => draft,
                    // A draft that says what its base says holds nothing: it starts again on what is shown.
                    held => Draft {
                        revision: held.map_or(0, |draft| draft.revision),
                        ..Draft::new(Some(shown), base(shown))
                    },
                }
            }
        };
        let Some(splice) = draft.splice_to(wanted, timeline.depth, timeline.tick + 1) else { return };
        draft.splice(splice).unwrap();
        let change = DraftChange { view: view.clone(), slot, expected, new: Some(draft) };
        self.tree.set_draft(change).unwrap();
    }

    pub fn typed(&mut self, wanted: &str) {
        self.typed_in(&main_view(), Slot::Buffer, wanted);
    }

    pub fn shown(&self, view: &ViewName, position: PositionId) -> NodeId {
        loom::resolve::shown(&self.tree, view, position).unwrap()
    }

    pub fn tip_of(&self, view: &ViewName) -> PositionId {
        tip(&self.tree, view).unwrap()
    }

    pub fn tip(&self) -> PositionId {
        self.tip_of(&main_view())
    }

    pub fn root(&self) -> PositionId {
        self.tree.tree().unwrap().root
    }

    pub fn text_of(&self, view: &ViewName) -> String {
        render(&self.tree, view, Show { drafts: true, spans: false }).unwrap().text
    }

    pub fn text(&self) -> String {
        self.text_of(&main_view())
    }

    pub fn committed(&self) -> String {
        render(&self.tree, &main_view(), Show { drafts: false, spans: false }).unwrap().text
    }

    pub fn path(&self, view: &ViewName) -> ViewOverrides {
        ViewOverrides::read(&self.tree, view, self.tip_of(view)).unwrap()
    }

    pub fn verify(&self) -> Report {
        verify(&self.tree, &self.evidence).unwrap()
    }

    /// A generation as a store begins it: drafts committed, the row with the whole path as its one run.
    pub fn asked(&mut self, view: &ViewName, count: usize) -> (GenerationRow, Option<Seq>, Plan) {
        let plan = self.plan_in(view, Op::Generate).unwrap();
        let part_of = self.tree.apply(plan.clone()).unwrap();
        let path = self.path(view);
        let root = loom::path::position(&self.tree, self.root()).unwrap();
        let now = self.planner.tick();
        let manifest = format!("manifest {}", now.0).into_bytes();
        let digest = Digest::of(&manifest);
        self.evidence.manifests.insert(digest, manifest);
        let mut entropy = self.planner.entropy();
        let id: GenerationId = entropy.next(now);
        let row = GenerationRow {
            id,
            tree: TREE,
            purpose: Purpose::Turn,
            manifest: digest,
            profile: None,
            place: Some(GenerationPlace {
                view: view.clone(),
                parent: path.tip.id,
                parent_node: loom::resolve::shown(&self.tree, view, path.tip.id).unwrap(),
            }),
            reserved: (0..count).map(|_| entropy.next(now)).collect(),
            runs: vec![Run { from: root.id, to: path.tip.id, digest: path.digest(&root, &path.tip) }],
            settings: None,
        };
        self.tree.add_generation(row.clone());
        (row, part_of, plan)
    }

    /// The answer to one choice of a generation.
    pub fn answer(
        &mut self,
        row: &GenerationRow,
        choice: usize,
        text: &str,
        part_of: Option<Seq>,
        follow: bool,
    ) -> Op {
        let content = vec![Block::text(text)];
        let response = content_hash(&content).unwrap();
        self.evidence.responses.insert(response, content.clone());
        Op::Answer(Box::new(Answer {
            generation: row.clone(),
            node: row.reserved[choice],
            content: content.into(),
            author: Author { kind: AuthorKind::Model, id: "weaver".into(), profile: None },
            source: ModelSource {
                provider: "script".into(),
                model: "plain".into(),
                dialect: "script".into(),
                kind: SourceKind::Script,
                manifest: row.manifest,
                response: Some(response),
                choice: ResponsePart::Index(choice as u32),
            },
            finish: Finish::Stop,
            trust: Trust::Agent,
            inputs: Vec::new(),
            part_of,
            follow,
        }))
    }

    /// Asks for as many siblings as there are texts; the view follows the first.
    pub fn generate(&mut self, texts: &[&str]) -> Vec<NodeId> {
        let view = main_view();
        let (row, part_of, _) = self.asked(&view, texts.len());
        for (choice, text) in texts.iter().enumerate() {
            let op = self.answer(&row, choice, text, part_of, true);
            self.run_in(&view, op).unwrap();
        }
        row.reserved
    }
}

/// Removes the content of a row, as *forget* does: its hash and its size stay.
pub fn purge(row: &mut NodeRow) {
    row.node.kept_hash = Some(row.node.content_hash().unwrap());
    (row.node.content, row.purged) = (Arc::default(), true);
}
