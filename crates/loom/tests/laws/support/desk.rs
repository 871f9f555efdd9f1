//! A tree in memory with someone working at it: plans over slices, applies, types, asks a made-up model.

use std::collections::BTreeMap;

use drawloom_loom::content::content_hash;
use drawloom_loom::id::Entropy;
use drawloom_loom::memory::MemoryTree;
use drawloom_loom::path::ViewOverrides;
use drawloom_loom::plan::{Answer, DraftChange, EditAs, NewText, NewTree, Request, plan};
use drawloom_loom::reader::RowError;
use drawloom_loom::render::{Show, render, tip};
use drawloom_loom::verify::{Evidence, Gap, Report, Reread, verify};
use drawloom_loom::{
    Author, AuthorKind, Block, Digest, Draft, Finish, GenerationId, GenerationPlace, GenerationRow, IdSource,
    Millis, Mode, ModelSource, NodeId, NodeRow, Op, Plan, PlanError, PositionId, Purpose, ReadSet, Refusal,
    ResponsePart, Role, Run, Seq, Slot, SourceKind, TreeId, TreeReader, Trust, ViewName,
};

/// Someone working at one tree.
pub(crate) struct Desk {
    pub(crate) tree: MemoryTree,
    pub(crate) mode: Mode,
    pub(crate) evidence: Stored,
    ids: IdSource,
    now: i64,
}

/// Responses and manifests as they were received.
#[derive(Default, Clone)]
pub(crate) struct Stored {
    pub(crate) responses: BTreeMap<Digest, Vec<Block>>,
    pub(crate) manifests: BTreeMap<Digest, Vec<u8>>,
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
}

pub(crate) const TREE: TreeId = TreeId::from_bytes([7; 16]);

pub(crate) fn main_view() -> ViewName {
    ViewName::default()
}

impl Desk {
    pub(crate) fn new(mode: Mode) -> Self {
        let mut desk = Self {
            tree: MemoryTree::default(),
            mode,
            evidence: Stored::default(),
            ids: IdSource::default(),
            now: 1_700_000_000_000,
        };
        desk.run(Op::Create(NewTree { mode, title: "a tree".into(), origin: None })).unwrap();
        desk
    }

    pub(crate) fn buffer() -> Self {
        Self::new(Mode::Buffer)
    }

    pub(crate) fn request(&mut self, view: &ViewName, op: Op) -> Request {
        self.now += 1;
        Request {
            tree: TREE,
            view: view.clone(),
            author: Author::owner(),
            trust: Trust::Owner,
            now: Millis(self.now),
            op,
        }
    }

    /// A plan over rows read as it asks for them, and the number of rounds that took.
    pub(crate) fn plan_over(
        &mut self,
        rows: &dyn TreeReader,
        view: &ViewName,
        op: Op,
    ) -> Result<(Plan, usize), Refusal> {
        let request = self.request(view, op);
        let (mut slice, mut rounds) = (ReadSet::default(), 0);
        loop {
            let mut entropy = Entropy { ids: &mut self.ids, random: self.now as u128 };
            match plan(&request, &slice, &mut entropy) {
                Ok(plan) => return Ok((plan, rounds)),
                Err(PlanError::Refused(refusal)) => return Err(refusal),
                Err(PlanError::Needs(needs)) => slice.load(&needs, rows).unwrap(),
            }
            rounds += 1;
            assert!(rounds < 200, "a plan that never ends");
        }
    }

    pub(crate) fn plan_in(&mut self, view: &ViewName, op: Op) -> Result<Plan, Refusal> {
        let tree = std::mem::take(&mut self.tree);
        let planned = self.plan_over(&tree, view, op);
        self.tree = tree;
        Ok(planned?.0)
    }

    /// Plans and applies; returns the plan.
    pub(crate) fn run_in(&mut self, view: &ViewName, op: Op) -> Result<Plan, Refusal> {
        let plan = self.plan_in(view, op)?;
        self.tree.apply(plan.clone()).unwrap();
        Ok(plan)
    }

    pub(crate) fn run(&mut self, op: Op) -> Result<Plan, Refusal> {
        self.run_in(&main_view(), op)
    }

    /// The nodes an operation made in `main`.
    pub(crate) fn made(&mut self, op: Op) -> Vec<NodeId> {
        self.run(op).unwrap().nodes.iter().map(|node| node.id).collect()
    }

    pub(crate) fn role(&self) -> Option<Role> {
        (self.mode == Mode::Dialogue).then_some(Role::User)
    }

    pub(crate) fn append(&mut self, text: &str) -> PositionId {
        let role = self.role();
        self.made(Op::Append(NewText::owner(text, role)))[0].as_position()
    }

    pub(crate) fn edit(&mut self, position: PositionId, text: &str) -> Option<NodeId> {
        let edit = Op::Edit { position, text: text.into(), edit_as: EditAs::Version };
        self.made(edit).first().copied()
    }

    /// Types as a client does: what is in a slot becomes `wanted`.
    pub(crate) fn typed_in(&mut self, view: &ViewName, slot: Slot, wanted: &str) {
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

    pub(crate) fn typed(&mut self, wanted: &str) {
        self.typed_in(&main_view(), Slot::Buffer, wanted);
    }

    pub(crate) fn shown(&self, view: &ViewName, position: PositionId) -> NodeId {
        drawloom_loom::resolve::shown(&self.tree, view, position).unwrap()
    }

    pub(crate) fn tip_of(&self, view: &ViewName) -> PositionId {
        tip(&self.tree, view).unwrap()
    }

    pub(crate) fn tip(&self) -> PositionId {
        self.tip_of(&main_view())
    }

    pub(crate) fn root(&self) -> PositionId {
        self.tree.tree().unwrap().root
    }

    pub(crate) fn text_of(&self, view: &ViewName) -> String {
        render(&self.tree, view, Show { drafts: true, spans: false }).unwrap().text
    }

    pub(crate) fn text(&self) -> String {
        self.text_of(&main_view())
    }

    pub(crate) fn committed(&self) -> String {
        render(&self.tree, &main_view(), Show { drafts: false, spans: false }).unwrap().text
    }

    pub(crate) fn path(&self, view: &ViewName) -> ViewOverrides {
        ViewOverrides::read(&self.tree, view, self.tip_of(view)).unwrap()
    }

    pub(crate) fn verify(&self) -> Report {
        verify(&self.tree, &self.evidence).unwrap()
    }

    /// A generation as a store begins it: drafts committed, the row with the whole path as its one run.
    pub(crate) fn asked(&mut self, view: &ViewName, count: usize) -> (GenerationRow, Option<Seq>, Plan) {
        let plan = self.plan_in(view, Op::Generate).unwrap();
        let part_of = self.tree.apply(plan.clone()).unwrap();
        let path = self.path(view);
        let root = drawloom_loom::path::position(&self.tree, self.root()).unwrap();
        self.now += 1;
        let manifest = format!("manifest {}", self.now).into_bytes();
        let digest = Digest::of(&manifest);
        self.evidence.manifests.insert(digest, manifest);
        let mut entropy = Entropy { ids: &mut self.ids, random: self.now as u128 };
        let now = Millis(self.now);
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
                parent_node: drawloom_loom::resolve::shown(&self.tree, view, path.tip.id).unwrap(),
            }),
            reserved: (0..count).map(|_| entropy.next(now)).collect(),
            runs: vec![Run { from: root.id, to: path.tip.id, digest: path.digest(&root, &path.tip) }],
        };
        self.tree.add_generation(row.clone());
        (row, part_of, plan)
    }

    /// The answer to one choice of a generation.
    pub(crate) fn answer(
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
    pub(crate) fn generate(&mut self, texts: &[&str]) -> Vec<NodeId> {
        let view = main_view();
        let (row, part_of, _) = self.asked(&view, texts.len());
        for (choice, text) in texts.iter().enumerate() {
            let op = self.answer(&row, choice, text, part_of, true);
            self.run_in(&view, op).unwrap();
        }
        row.reserved
    }
}
