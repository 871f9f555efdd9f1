//! A tree at a desk: changes planned and applied in memory, and a model to encode for.

use loom::plan::{DraftChange, EditAs, NewText};
use loom::reader::Injection;
use loom::{
    Author, Block, Digest, Draft, Mode, ModelSource, NodeId, Op, ResponsePart, Role, Slot, SourceKind,
    TreeReader, Trust, ViewName,
};
use loom_testing::{Fixture, WriteRows};
use model::script::ScriptOptions;
use model::{ChatPart, DialectName, Prompt, ScriptModel};

/// Someone at a tree.
pub(crate) struct Desk {
    fixture: Fixture,
}

impl std::ops::Deref for Desk {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl std::ops::DerefMut for Desk {
    fn deref_mut(&mut self) -> &mut Fixture {
        &mut self.fixture
    }
}

impl Desk {
    /// An empty document.
    pub(crate) fn new() -> Self {
        Self::of(Mode::Buffer)
    }

    pub(crate) fn of(mode: Mode) -> Self {
        Self { fixture: Fixture::new(mode) }
    }

    /// Makes a change. Returns the newest node, if it made one.
    pub(crate) fn run(&mut self, op: Op) -> Option<NodeId> {
        self.fixture.run(op).unwrap().nodes.last().map(|node| node.id)
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
