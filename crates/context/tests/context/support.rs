//! A tree at a desk: changes planned and applied in memory, and a model to encode for.

use loom::id::Entropy;
use loom::memory::MemoryTree;
use loom::plan::{DraftChange, EditAs, NewText, NewTree, Request, plan};
use loom::reader::Injection;
use loom::{
    Author, Block, Digest, Draft, IdSource, Millis, Mode, ModelSource, NodeId, Op, PlanError, ReadSet,
    ResponsePart, Role, Slot, SourceKind, TreeId, TreeReader, Trust, ViewName,
};
use model::script::ScriptOptions;
use model::{ChatPart, DialectName, Prompt, ScriptModel};

/// Someone at a tree.
pub(crate) struct Desk {
    pub(crate) tree: MemoryTree,
    ids: IdSource,
    now: i64,
}

impl Desk {
    /// An empty document.
    pub(crate) fn new() -> Self {
        Self::of(Mode::Buffer)
    }

    pub(crate) fn of(mode: Mode) -> Self {
        let mut desk = Self { tree: MemoryTree::default(), ids: IdSource::default(), now: 1_700_000_000_000 };
        desk.run(Op::Create(NewTree { mode, title: String::new(), origin: None }));
        desk
    }

    /// Makes a change. Returns the newest node, if it made one.
    pub(crate) fn run(&mut self, op: Op) -> Option<NodeId> {
        self.now += 1;
        let request = Request {
            tree: TreeId::from_bytes([1; 16]),
            view: ViewName::default(),
            author: Author::owner(),
            trust: Trust::Owner,
            now: Millis(self.now),
            op,
        };
        let mut slice = ReadSet::default();
        let made = loop {
            let mut entropy = Entropy { ids: &mut self.ids, random: self.now as u128 };
            match plan(&request, &slice, &mut entropy) {
                Ok(plan) => break plan,
                Err(PlanError::Needs(needs)) => slice.load(&needs, &self.tree).unwrap(),
                Err(PlanError::Refused(refusal)) => panic!("{refusal}"),
            }
        };
        let node = made.nodes.last().map(|node| node.id);
        self.tree.apply(made).unwrap();
        node
    }

    pub(crate) fn append(&mut self, text: &str) -> NodeId {
        self.run(Op::Append(NewText::owner(text, None))).unwrap()
    }

    pub(crate) fn say(&mut self, role: Role, content: Vec<Block>) -> NodeId {
        let text = NewText { content, author: Author::owner(), role: Some(role), trust: Trust::Owner };
        self.run(Op::Append(text)).unwrap()
    }

    /// Something a model said.
    pub(crate) fn answer(&mut self, content: Vec<Block>, source: ModelSource) -> NodeId {
        let node = self.say(Role::Assistant, content);
        let mut row = self.tree.node(node).unwrap().unwrap();
        row.node.source = Some(source);
        self.tree.restore_node(row);
        node
    }

    /// Says it in other words, as a version.
    pub(crate) fn edit(&mut self, node: NodeId, text: &str) {
        let position = node.as_position();
        self.run(Op::Edit { position, text: text.to_owned(), edit_as: EditAs::Version });
    }

    /// Shows something with a node.
    pub(crate) fn shown(&mut self, node: NodeId, source: &str, text: &str) {
        let ordinal =
            self.tree.injections(node, None).unwrap().iter().filter(|shown| shown.node == node).count();
        self.tree.add_injection(Injection {
            node,
            ordinal: ordinal as u32,
            source: source.to_owned(),
            trust: Trust::Owner,
            text: text.to_owned(),
        });
    }

    pub(crate) fn draft(&mut self, text: &str) {
        let draft = Draft::new(None, text);
        let change =
            DraftChange { view: ViewName::default(), slot: Slot::Buffer, expected: None, new: Some(draft) };
        self.tree.set_draft(change).unwrap();
    }
}

/// Where an answer of a model comes from.
pub(crate) fn said_by(model: &str, dialect: DialectName) -> ModelSource {
    ModelSource {
        provider: "p".into(),
        model: model.into(),
        dialect: dialect.as_str().into(),
        kind: SourceKind::Remote,
        manifest: Digest::ZERO,
        response: None,
        choice: ResponsePart::Index(0),
    }
}

/// A model to encode for.
pub(crate) fn echo() -> ScriptModel {
    ScriptModel::echo(ScriptOptions::default())
}

/// The text of a prompt, one part after another.
pub(crate) fn prompt_text(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Raw(parts) => parts.iter().map(|part| part.text.as_str()).collect(),
        Prompt::Chat(chat) => {
            let mut text: Vec<&str> = Vec::new();
            for part in &chat.messages {
                match part {
                    ChatPart::System(part)
                    | ChatPart::User(part)
                    | ChatPart::Injected(part)
                    | ChatPart::Assistant(part) => text.push(&part.text),
                    ChatPart::Opaque(part) => text.extend(part.thinking.as_deref()),
                    ChatPart::Media(_) => {}
                    ChatPart::ToolRound(round) => {
                        for exchange in round {
                            text.extend([exchange.call.arguments.as_str(), exchange.result.text.as_str()]);
                        }
                    }
                }
            }
            text.extend(chat.prefill.iter().map(|part| part.text.as_str()));
            text.join("\n")
        }
    }
}
