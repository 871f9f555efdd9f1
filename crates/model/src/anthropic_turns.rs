//! A conversation as the messages API wants it: instructions, then turns of blocks whose roles alternate.
//!
//! The turns are laid out before anything is written, because three things can be said of a block only when
//! those behind it are known: whether a cache mark stands on it, whether thinking leads to something, and whether
//! an instruction stands where the API takes one.

use crate::encoded::{EncodeError, PartKind};
use crate::prompt::{Chat, ChatPart, MediaPart, OpaquePart, TextPart, ToolExchange};

#[derive(Default)]
pub(crate) struct Turns<'a> {
    /// The blocks of `system`.
    pub(crate) system: Vec<Block<'a>>,
    /// The messages; the first is the user's.
    pub(crate) messages: Vec<Turn<'a>>,
    /// Whether a cache mark stands on the last tool.
    pub(crate) tools_marked: bool,
    /// Thinking that has led to nothing yet. The API takes no message that ends with it.
    thoughts: Vec<Block<'a>>,
    /// Instructions inside the conversation whose role depends on what follows.
    instructions: Vec<Block<'a>>,
    /// Whether what was thought is left out.
    thoughtless: bool,
}

pub(crate) struct Turn<'a> {
    pub(crate) role: Role,
    pub(crate) blocks: Vec<Block<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    System,
}

/// One block of a message.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(crate) content: Content<'a>,
    /// Whether it stands above the cache boundary.
    above: bool,
    /// Whether a cache mark stands on it.
    pub(crate) marked: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Text(PartKind, &'a TextPart),
    Media(&'a MediaPart),
    Opaque(&'a OpaquePart),
    Call(&'a ToolExchange),
    Result(&'a ToolExchange),
    /// The user's first word, where a conversation begins with the assistant.
    Opening,
}

impl Content<'_> {
    /// Whether a cache mark may stand on it: not on thinking, and not inside what goes back unchanged.
    fn takes_mark(self) -> bool {
        !matches!(self, Self::Opaque(_))
    }
}

impl<'a> Turns<'a> {
    /// Lays a conversation out. With `inside`, instructions may stand in it with a role of their own; without
    /// `thinking`, what was thought is left out.
    ///
    /// # Errors
    /// [`EncodeError::Empty`] when nothing is left to answer to, [`EncodeError::Unsupported`] for a beginning of
    /// the answer that ends with white space, which the API refuses.
    pub(crate) fn of(chat: &'a Chat, inside: bool, thinking: bool) -> Result<Self, EncodeError> {
        let mut turns = Self { thoughtless: !thinking, ..Self::default() };
        for (index, part) in chat.messages.iter().enumerate() {
            let above = index < chat.stable;
            turns.part(part, above, inside);
        }
        turns.place_instructions(Role::Assistant);
        if let Some(prefill) = chat.prefill.as_ref().filter(|prefill| !is_blank(prefill)) {
            if prefill.text.ends_with(char::is_whitespace) {
                return Err(EncodeError::Unsupported {
                    what: "a beginning of the answer that ends with white space",
                });
            }
            turns.assistant(Content::Text(PartKind::Prefill, prefill), false);
        }
        if turns.messages.is_empty() {
            return Err(EncodeError::Empty);
        }
        Ok(turns)
    }

    fn part(&mut self, part: &'a ChatPart, above: bool, inside: bool) {
        match part {
            ChatPart::System(text) if is_blank(text) => {}
            ChatPart::System(text) => self.instruction(text, above, inside),
            ChatPart::User(text) => self.user_text(PartKind::User, text, above),
            ChatPart::Injected(text) => self.user_text(PartKind::Injected, text, above),
            ChatPart::Media(media) => self.push(Role::User, Content::Media(media), above),
            ChatPart::Assistant(text) if is_blank(text) => {}
            ChatPart::Assistant(text) => self.assistant(Content::Text(PartKind::Assistant, text), above),
            ChatPart::Opaque(opaque) => self.assistant(Content::Opaque(opaque), above),
            ChatPart::ToolRound(round) => {
                for exchange in round {
                    for opaque in &exchange.before {
                        self.assistant(Content::Opaque(opaque), above);
                    }
                    self.assistant(Content::Call(exchange), above);
                }
                for exchange in round {
                    self.push(Role::User, Content::Result(exchange), above);
                }
            }
        }
    }

    /// Above the conversation, inside it, or in the user's place.
    fn instruction(&mut self, text: &'a TextPart, above: bool, inside: bool) {
        let block = Block::new(Content::Text(PartKind::System, text), above);
        if self.messages.is_empty() && self.thoughts.is_empty() {
            self.system.push(block);
        } else if inside {
            self.instructions.push(block);
        } else {
            self.push(Role::User, block.content, above);
        }
    }

    fn user_text(&mut self, kind: PartKind, text: &'a TextPart, above: bool) {
        if !is_blank(text) {
            self.push(Role::User, Content::Text(kind, text), above);
        }
    }

    fn assistant(&mut self, content: Content<'a>, above: bool) {
        if matches!(content, Content::Opaque(opaque) if is_thinking(opaque)) {
            if !self.thoughtless {
                self.thoughts.push(Block::new(content, above));
            }
            return;
        }
        for thought in std::mem::take(&mut self.thoughts) {
            self.push(Role::Assistant, thought.content, thought.above);
        }
        self.push(Role::Assistant, content, above);
    }

    fn push(&mut self, role: Role, content: Content<'a>, above: bool) {
        self.place_instructions(role);
        self.put(role, Block::new(content, above));
    }

    /// The API takes instructions between a user's message and what the assistant says to it, nowhere else.
    fn place_instructions(&mut self, next: Role) {
        let answers = self.messages.last().is_some_and(|turn| turn.role == Role::User);
        let role = if answers && next == Role::Assistant { Role::System } else { Role::User };
        for block in std::mem::take(&mut self.instructions) {
            self.put(role, block);
        }
    }

    fn put(&mut self, role: Role, block: Block<'a>) {
        if role == Role::User {
            self.thoughts.clear();
        } else if self.messages.is_empty() {
            let opening = Block::new(Content::Opening, block.above);
            self.messages.push(Turn { role: Role::User, blocks: vec![opening] });
        }
        match self.messages.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.push(block),
            _ => self.messages.push(Turn { role, blocks: vec![block] }),
        }
    }

    /// Sets the cache marks: on the last block above the boundary, and on the last one that the next request
    /// will repeat, so that it reads what this one wrote. The beginning of the answer is not repeated as it
    /// stands: it becomes part of the answer.
    pub(crate) fn mark(&mut self, has_tools: bool) {
        let in_messages = self.messages.iter_mut().flat_map(|turn| &mut turn.blocks);
        let blocks = self.system.iter_mut().chain(in_messages);
        let markable = blocks.filter(|block| block.content.takes_mark());
        let (mut boundary, mut end) = (None, None);
        for block in markable {
            if block.above {
                boundary = Some(block);
            } else if !matches!(block.content, Content::Text(PartKind::Prefill, _)) {
                end = Some(block);
            }
        }
        self.tools_marked = boundary.is_none() && has_tools;
        for block in [boundary, end].into_iter().flatten() {
            block.marked = true;
        }
    }
}

impl<'a> Block<'a> {
    fn new(content: Content<'a>, above: bool) -> Self {
        Self { content, above, marked: false }
    }
}

/// Whether the API would refuse it as empty.
fn is_blank(text: &TextPart) -> bool {
    text.text.trim().is_empty()
}

fn is_thinking(opaque: &OpaquePart) -> bool {
    let kind = opaque.json.get("type").and_then(serde_json::Value::as_str);
    matches!(kind, Some("thinking" | "redacted_thinking"))
}
