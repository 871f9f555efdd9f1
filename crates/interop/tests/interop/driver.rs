//! A home of one tree, driven through the planner as a store drives it.

use interop::own::{
    ArchivedResponse, ExportOptions, ExportVariant, FileBody, FileHeader, ImportedFile, Materials,
    ResponseParser, StoredGeneration, export, read,
};
use loom::memory::MemoryTree;
use loom::plan::{Answer, NewText, NewTree, Refusal};
use loom::verify::Gap;
use loom::*;
use loom_testing::{Planner, TREE, WriteRows};
use proptest::prelude::*;

pub const START: i64 = 1_790_000_000_000;

/// The parser of the made-up dialect: a response's body is `{"text":…}`.
pub struct JsonText;

impl ResponseParser for JsonText {
    fn blocks(&self, _: &ModelSource, response: &ArchivedResponse) -> Result<Vec<Block>, Gap> {
        let body: serde_json::Value = serde_json::from_slice(&response.bytes).map_err(|_| Gap::Parser)?;
        Ok(vec![Block::text(body["text"].as_str().unwrap_or_default())])
    }
}

#[derive(Clone, Debug)]
pub struct Home {
    pub file: ImportedFile,
    planner: Planner,
    pub nodes: Vec<NodeId>,
}

impl Home {
    pub fn new(mode: Mode) -> Self {
        let row = TreeRow {
            id: TREE,
            mode,
            root: PositionId::from_bytes([0; 16]),
            created_at: Millis(START),
            origin: None,
        };
        let header = FileHeader {
            format: "drawloom".into(),
            version: 1,
            variant: ExportVariant::Full,
            contains: vec![],
            left_out: vec![],
            tree: row,
        };
        let mut home = Self {
            file: ImportedFile {
                header,
                tree: MemoryTree::default(),
                injections: vec![],
                generations: Default::default(),
                materials: Materials::default(),
                problems: vec![],
                further: 0,
                lines_left_out: 0,
                digest: Digest::ZERO,
                withheld: Default::default(),
            },
            planner: Planner::at(START),
            nodes: Vec::new(),
        };
        home.run(Op::Create(NewTree { mode, title: "A walk".into(), origin: None })).unwrap();
        home.file.header.tree = home.tree().tree().unwrap();
        home
    }

    pub fn tree(&self) -> &MemoryTree {
        &self.file.tree
    }

    pub fn run(&mut self, op: Op) -> Result<(), Refusal> {
        self.run_in("main", op)
    }

    pub fn run_in(&mut self, view: &str, op: Op) -> Result<(), Refusal> {
        let (plan, _) = self.planner.plan(&self.file.tree, &view.parse().unwrap(), op)?;
        self.nodes.extend(plan.nodes.iter().map(|node| node.id));
        self.file.tree.apply(plan).unwrap();
        Ok(())
    }

    pub fn role(&self, role: Role) -> Option<Role> {
        (self.file.tree.tree().unwrap().mode == Mode::Dialogue).then_some(role)
    }

    pub fn say(&mut self, text: &str) {
        self.run(Op::Append(NewText::owner(text, self.role(Role::User)))).unwrap();
    }

    pub fn tip(&self) -> PositionId {
        render::tip(self.tree(), &ViewName::default()).unwrap()
    }

    pub fn newest(&self) -> NodeId {
        *self.nodes.last().unwrap()
    }

    /// Something shown with a node.
    fn show(&mut self, node: NodeId) {
        let ordinal = self.file.injections.iter().filter(|shown| shown.node == node).count() as u32;
        let (source, text) = (format!("zone#{ordinal}"), "[The window fills.]".to_owned());
        let shown = reader::Injection { node, ordinal, source, trust: Trust::Outside, text };
        self.file.injections.push(shown);
        let tree = &self.file.tree;
        let order = |node| tree.node(node).unwrap().map(|row| (row.seq, row.place));
        self.file.injections.sort_by_key(|shown| (order(shown.node), shown.ordinal));
    }

    /// A model's answer under the tip, with manifest, file body and response.
    pub fn answer(&mut self, text: &str) {
        let parent = self.tip();
        let now = self.planner.tick();
        let mut entropy = self.planner.entropy();
        let (id, generation): (NodeId, GenerationId) = (entropy.next(now), entropy.next(now));
        let body = format!("body of {text}").into_bytes();
        let manifest =
            format!("{{\"n\":{},\"body\":\"{}\"}}", self.nodes.len(), Digest::of(&body)).into_bytes();
        let answer = serde_json::json!({"text": text, "n": self.nodes.len()}).to_string().into_bytes();
        let (sent, got) = (Digest::of(&manifest), Digest::of(&answer));
        let shown = resolve::shown(self.tree(), &ViewName::default(), parent).unwrap();
        self.show(shown);
        let row = GenerationRow {
            id: generation,
            tree: TREE,
            purpose: Purpose::Turn,
            manifest: sent,
            profile: None,
            place: Some(GenerationPlace { view: ViewName::default(), parent, parent_node: shown }),
            reserved: vec![id],
            runs: vec![],
            settings: Some(GenerationSettings {
                temperature: serde_json::Number::from_f64(0.5),
                seed: Some(-7),
                max_tokens: Some(40),
                thinking: Some("low".to_owned()),
                preset: Some("calm".to_owned()),
                ..GenerationSettings::default()
            }),
        };
        let materials = &mut self.file.materials;
        let name =
            FileBody { name: "MEMORY.md".into(), digest: Digest::of(&body), length: body.len() as u64 };
        materials.bodies_of.entry(sent).or_default().push(name);
        materials.bodies.insert(Digest::of(&body), body);
        materials.manifests.insert(sent, manifest);
        let metadata = "{\"status\":200}".to_owned();
        materials.responses.insert(got, ArchivedResponse { metadata, bytes: answer, purged: false });
        self.file.tree.add_generation(row.clone());
        let sent_and_got = StoredGeneration { row: row.clone(), response: Some(got), metadata: None };
        self.file.generations.insert(generation, sent_and_got);
        self.run(Op::Answer(Box::new(Answer {
            generation: row,
            node: id,
            content: vec![Block::text(text)].into(),
            author: Author { kind: AuthorKind::Model, id: "base".into(), profile: None },
            source: ModelSource {
                provider: "here".into(),
                model: "base-70b".into(),
                dialect: "json-text".into(),
                kind: SourceKind::Script,
                manifest: sent,
                response: Some(got),
                choice: ResponsePart::Index(0),
            },
            finish: Finish::Stop,
            trust: Trust::Agent,
            inputs: vec![],
            part_of: None,
            follow: true,
        })))
        .unwrap();
    }

    pub fn tool(&mut self, text: &str) {
        let blob = Digest::of(&[0xff, 0xfe]);
        self.file.materials.blobs.insert(blob, vec![0xff, 0xfe]);
        let blocks = vec![Block::text(text), Block::Image { blob, mime: "image/png".into() }];
        let new = NewText {
            content: vec![Block::ToolResult { call_id: "c1".into(), status: ToolStatus::Ok, blocks }],
            author: Author { kind: AuthorKind::Tool, id: "read".into(), profile: None },
            role: self.role(Role::Tool),
            trust: Trust::Outside,
        };
        self.run(Op::Append(new)).unwrap();
    }

    pub fn export(&self, variant: ExportVariant) -> Vec<u8> {
        exported(&self.file, variant)
    }

    pub fn text(&self) -> String {
        rendered(self.tree())
    }
}

pub fn exported(file: &ImportedFile, variant: ExportVariant) -> Vec<u8> {
    let mut out = Vec::new();
    export(file, ExportOptions { variant, secrets: None }, &mut out).unwrap();
    out
}

pub fn read_all(bytes: &[u8]) -> ImportedFile {
    let mut input = bytes;
    read(&mut input, Default::default()).unwrap()
}

pub fn rendered(rows: &dyn TreeReader) -> String {
    let show = render::Show { drafts: false, spans: true };
    render::render(rows, &ViewName::default(), show).unwrap().text
}

/// One gesture; numbers choose among what is there.
#[derive(Debug, Clone)]
pub enum Step {
    Say(String),
    Answer(String),
    Tool(String),
    Edit(usize, String, bool),
    BranchAt(usize, u64),
    Switch(usize),
    Select(usize),
    Prune(usize, bool),
    Exclude(usize),
    Keep(usize),
    Bookmark(usize),
    Tag(usize),
    Annotate(usize, String),
    Pin(String),
    View(String),
    Rename(String),
    Compact(usize),
    Undo,
    Redo,
}

pub fn step() -> impl Strategy<Value = Step> {
    let text = "[a-zA-Zé\u{301}🦀 .\n\"<&]{1,24}";
    prop_oneof![
        4 => text.prop_map(Step::Say),
        4 => text.prop_map(Step::Answer),
        1 => text.prop_map(Step::Tool),
        3 => (any::<usize>(), text, any::<bool>()).prop_map(|(n, text, branch)| Step::Edit(n, text, branch)),
        2 => (any::<usize>(), 0_u64..20).prop_map(|(n, at)| Step::BranchAt(n, at)),
        2 => any::<usize>().prop_map(Step::Switch),
        2 => any::<usize>().prop_map(Step::Select),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(n, version)| Step::Prune(n, version)),
        1 => any::<usize>().prop_map(Step::Exclude),
        1 => any::<usize>().prop_map(Step::Keep),
        1 => any::<usize>().prop_map(Step::Bookmark),
        1 => any::<usize>().prop_map(Step::Tag),
        1 => (any::<usize>(), text).prop_map(|(n, text)| Step::Annotate(n, text)),
        1 => text.prop_map(Step::Pin),
        1 => "[a-c]".prop_map(Step::View),
        1 => text.prop_map(Step::Rename),
        1 => any::<usize>().prop_map(Step::Compact),
        2 => Just(Step::Undo),
        1 => Just(Step::Redo),
    ]
}

/// Does a gesture; one the planner refuses does nothing.
pub fn take(home: &mut Home, step: Step) {
    let at = |home: &Home, n: usize| home.nodes[n % home.nodes.len()];
    let place = |home: &Home, n: usize| {
        let id = at(home, n);
        home.tree().node(id).unwrap().unwrap().node.position
    };
    let op = match step {
        Step::Say(text) => return home.say(&text),
        Step::Answer(text) => return home.answer(&text),
        Step::Tool(text) => return home.tool(&text),
        Step::Edit(n, text, branch) => Op::Edit {
            position: place(home, n),
            text,
            edit_as: if branch { plan::EditAs::Branch } else { plan::EditAs::Version },
        },
        Step::BranchAt(n, at_byte) => Op::BranchAt { node: at(home, n), at: at_byte, token: None },
        Step::Switch(n) => Op::Switch(place(home, n)),
        Step::Select(n) => Op::Select { position: place(home, n), version: at(home, n) },
        Step::Prune(n, true) => Op::Prune(OpTarget::Version(at(home, n))),
        Step::Prune(n, false) => Op::Prune(OpTarget::Position(place(home, n))),
        Step::Exclude(n) => Op::Exclude(OpTarget::Position(place(home, n))),
        Step::Keep(n) => Op::Keep { position: place(home, n), scope: KeepScope::Below },
        Step::Bookmark(n) => Op::Bookmark { position: place(home, n), title: Some("here".into()) },
        Step::Tag(n) => Op::Tag { position: place(home, n), tag: "good".into(), on: true },
        Step::Annotate(n, text) => {
            Op::Annotate { position: place(home, n), text: NewText::owner(text, None) }
        }
        Step::Pin(text) => Op::PinHead(NewText::owner(text, None)),
        Step::View(name) => Op::NewView { name: name.parse().unwrap(), agent: "main".into() },
        Step::Rename(title) => Op::Rename(title),
        Step::Compact(n) => {
            Op::Compact { to: Some(TextOffset { position: place(home, n), at: 0 }), by_hand: true }
        }
        Step::Undo => Op::Undo,
        Step::Redo => Op::Redo,
    };
    drop(home.run(op));
}

pub fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Dialogue), Just(Mode::Buffer)]
}

prop_compose! {
    pub fn home()(mode in mode(), steps in prop::collection::vec(step(), 0..25)) -> Home {
        let mut home = Home::new(mode);
        for step in steps {
            take(&mut home, step);
        }
        home
    }
}

/// A small tree with something of every kind.
pub fn rich() -> Home {
    let mut home = Home::new(Mode::Buffer);
    home.say("The rain ");
    home.answer("fell softly ");
    let fell = home.newest();
    home.tool("a file, whole");
    home.say("on the roof.");
    home.run(Op::Edit {
        position: fell.as_position(),
        text: "fell hard ".into(),
        edit_as: plan::EditAs::Version,
    })
    .unwrap();
    home.run(Op::BranchAt { node: home.newest(), at: 5, token: None }).unwrap();
    home.answer("and stopped.");
    home.run(Op::Annotate { position: fell.as_position(), text: NewText::owner("a remark", None) }).unwrap();
    home.run(Op::Tag { position: fell.as_position(), tag: "weather".into(), on: true }).unwrap();
    home.run(Op::Bookmark { position: fell.as_position(), title: Some("the turn".into()) }).unwrap();
    home.run(Op::PinNote { text: NewText::owner("Keep it quiet.", None), depth: Some(2) }).unwrap();
    home
}

/// Seals the newest operation.
pub fn seal(home: &mut Home) {
    let records = home.tree().operations(Seq(0), usize::MAX).unwrap();
    let head = records.iter().fold(seal::first_head(TREE), |head, record| seal::next_head(head, record.hash));
    let seq = records.last().unwrap().seq;
    let signed = seal::sign(&[3; 32], TREE, seq, head, Millis(START));
    home.file.tree.add_seal(signed);
}

/// A quarter of the cases asked for: each builds a whole tree and writes it several times.
pub fn cases() -> ProptestConfig {
    let cases = ProptestConfig::default().cases.div_ceil(4);
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}
