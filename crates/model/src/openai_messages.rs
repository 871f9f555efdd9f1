//! The messages of a chat request: first what goes into which message, then its bytes.
//!
//! A message is a run of parts of one place: neighbours of one role share a message, because many chat templates
//! insist that roles alternate. What a message holds decides its form: text alone is one string, with a blank line
//! between its parts; with pictures, or with a cache mark on one part, each part is a block of its own.

use std::borrow::Cow;

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};

use crate::encoded::{BodyWriter, EncodeError, PartKind};
use crate::openai_media;
use crate::openai_thinking;
use crate::prompt::{Chat, ChatPart, Media, OpaquePart, PartId, TextPart, ToolExchange};
use crate::quirks::{CacheForm, CallIds, InstructionRole, PrefillForm, Quirks};

const USER: &str = "user";

/// Writes the messages of a conversation, beginning of the answer included.
///
/// # Errors
/// When the dialect has no block for a picture or sound.
pub(crate) fn write(body: &mut BodyWriter, chat: &Chat, quirks: &Quirks) -> Result<(), EncodeError> {
    let round = |part: &ChatPart| matches!(part, ChatPart::ToolRound(round) if !round.is_empty());
    let with_tools = !chat.tools.is_empty() || chat.messages.iter().any(round);
    let mut list = List { body, quirks, with_tools, first: true };
    for message in messages(chat, quirks) {
        list.message(&message)?;
    }
    if let Some(prefill) = &chat.prefill {
        list.begin("assistant");
        list.body.frame(",\"content\":\"");
        list.body.text(PartKind::Prefill, prefill);
        let flag = quirks.prefill == PrefillForm::PrefixFlag;
        list.body.frame(if flag { "\",\"prefix\":true}" } else { "\"}" });
    }
    Ok(())
}

/// One message.
enum Message<'a> {
    /// What anyone but the assistant said.
    Said { role: &'static str, items: Vec<Item<'a>> },
    /// One answer of the assistant, with the results of the tools it called.
    Answer(Answer<'a>),
}

struct Item<'a> {
    content: Content<'a>,
    marked: bool,
}

enum Content<'a> {
    Text(PartKind, &'a TextPart),
    Media(PartId, &'a Media),
}

#[derive(Default)]
struct Answer<'a> {
    texts: Vec<&'a TextPart>,
    opaque: Vec<&'a OpaquePart>,
    round: &'a [ToolExchange],
    /// Whether the last result carries a cache mark.
    marked: bool,
}

impl Answer<'_> {
    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.round.is_empty()
    }
}

/// Puts the parts of a conversation into messages.
fn messages<'a>(chat: &'a Chat, quirks: &Quirks) -> Vec<Message<'a>> {
    let instructions = match quirks.instructions {
        InstructionRole::System => "system",
        InstructionRole::Developer => "developer",
    };
    let mut messages = Vec::new();
    for (at, part) in chat.messages.iter().enumerate() {
        match part {
            ChatPart::System(text) => {
                said(&mut messages, instructions, Content::Text(PartKind::System, text));
            }
            ChatPart::User(text) => said(&mut messages, USER, Content::Text(PartKind::User, text)),
            ChatPart::Injected(text) => said(&mut messages, USER, Content::Text(PartKind::Injected, text)),
            ChatPart::Media(part) => said(&mut messages, USER, Content::Media(part.id, &part.media)),
            ChatPart::Assistant(text) => answer(&mut messages, |open| open.texts.push(text)),
            ChatPart::Opaque(part) => answer(&mut messages, |open| open.opaque.push(part)),
            ChatPart::ToolRound(round) if round.is_empty() => {}
            ChatPart::ToolRound(round) => {
                answer(&mut messages, |open| {
                    open.opaque.extend(round.iter().flat_map(|exchange| &exchange.before));
                    open.round = round;
                });
                // A result is text alone here: its pictures follow in the user's place.
                for exchange in round {
                    for media in &exchange.result.media {
                        said(&mut messages, USER, Content::Media(exchange.result_part, media));
                    }
                }
            }
        }
        if quirks.cache == CacheForm::Marks && (at + 1 == chat.stable || at + 1 == chat.messages.len()) {
            mark_last(&mut messages);
        }
    }
    messages
}

/// Adds to the last message, if it is of the role, or begins one.
fn said<'a>(messages: &mut Vec<Message<'a>>, role: &'static str, content: Content<'a>) {
    // Thinking alone is no message, and must not stand between two of one role.
    if matches!(messages.last(), Some(Message::Answer(last)) if last.is_empty()) {
        messages.pop();
    }
    let item = Item { content, marked: false };
    match messages.last_mut() {
        Some(Message::Said { role: last, items }) if *last == role => items.push(item),
        _ => messages.push(Message::Said { role, items: vec![item] }),
    }
}

/// Adds to the answer that is still open, one that called no tool yet, or begins one.
fn answer<'a>(messages: &mut Vec<Message<'a>>, add: impl FnOnce(&mut Answer<'a>)) {
    match messages.last_mut() {
        Some(Message::Answer(open)) if open.round.is_empty() => add(open),
        _ => {
            let mut answer = Answer::default();
            add(&mut answer);
            messages.push(Message::Answer(answer));
        }
    }
}

/// Marks the last text that can be marked: said by anyone but the assistant, or given by a tool.
fn mark_last(messages: &mut [Message<'_>]) {
    for message in messages.iter_mut().rev() {
        match message {
            Message::Said { items, .. } => {
                let text = items.iter_mut().rev().find(|item| matches!(item.content, Content::Text(..)));
                if let Some(item) = text {
                    item.marked = true;
                    return;
                }
            }
            Message::Answer(answer) if !answer.round.is_empty() => {
                answer.marked = true;
                return;
            }
            Message::Answer(_) => {}
        }
    }
}

/// Writes messages one after the other.
struct List<'a, 'q> {
    body: &'a mut BodyWriter,
    quirks: &'q Quirks,
    /// Whether the conversation has tools, or has used some.
    with_tools: bool,
    first: bool,
}

impl List<'_, '_> {
    fn message(&mut self, message: &Message<'_>) -> Result<(), EncodeError> {
        match message {
            Message::Said { role, items } => {
                self.begin(role);
                self.body.frame(",\"content\":");
                self.content(items)?;
                self.body.frame("}");
            }
            Message::Answer(answer) => self.answer(answer),
        }
        Ok(())
    }

    fn content(&mut self, items: &[Item<'_>]) -> Result<(), EncodeError> {
        let plain = items.iter().all(|item| matches!(item.content, Content::Text(..)) && !item.marked);
        self.body.frame(if plain { "\"" } else { "[" });
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.body.frame(if plain { "\\n\\n" } else { "," });
            }
            match &item.content {
                Content::Text(kind, part) if plain => self.body.text(*kind, part),
                Content::Text(kind, part) => self.block(*kind, part.id, &part.text, item.marked),
                Content::Media(part, media) => openai_media::block(self.body, *part, media)?,
            }
        }
        self.body.frame(if plain { "\"" } else { "]" });
        Ok(())
    }

    fn block(&mut self, kind: PartKind, part: PartId, text: &str, marked: bool) {
        self.body.frame("{\"type\":\"text\",\"text\":\"");
        self.body.string(kind, part, text);
        self.body.frame(if marked { "\",\"cache_control\":{\"type\":\"ephemeral\"}}" } else { "\"}" });
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        if answer.is_empty() {
            return;
        }
        self.begin("assistant");
        openai_thinking::write_back(self.body, &answer.opaque, self.with_tools, self.quirks.thinking_back);
        self.body.frame(if answer.texts.is_empty() { ",\"content\":null" } else { ",\"content\":\"" });
        for (at, text) in answer.texts.iter().enumerate() {
            if at > 0 {
                self.body.frame("\\n\\n");
            }
            self.body.text(PartKind::Assistant, text);
        }
        if !answer.texts.is_empty() {
            self.body.frame("\"");
        }
        if !answer.round.is_empty() {
            self.calls(answer.round);
        }
        self.body.frame("}");
        for (at, exchange) in answer.round.iter().enumerate() {
            self.result(exchange, answer.marked && at + 1 == answer.round.len());
        }
    }

    fn calls(&mut self, round: &[ToolExchange]) {
        self.body.frame(",\"tool_calls\":[");
        for (index, exchange) in round.iter().enumerate() {
            self.body.frame(if index > 0 { ",{\"id\":" } else { "{\"id\":" });
            self.body.frame_value(&call_id(&exchange.call.id, self.quirks.call_ids));
            self.body.frame(",\"type\":\"function\",\"function\":{\"name\":\"");
            self.body.string(PartKind::ToolCall, exchange.call_part, &exchange.call.name);
            self.body.frame("\",\"arguments\":\"");
            self.body.string(PartKind::ToolCall, exchange.call_part, &exchange.call.arguments);
            self.body.frame("\"}}");
        }
        self.body.frame("]");
    }

    fn result(&mut self, exchange: &ToolExchange, marked: bool) {
        let (part, text) = (exchange.result_part, &exchange.result.text);
        self.begin("tool");
        self.body.frame(",\"tool_call_id\":");
        self.body.frame_value(&call_id(&exchange.call.id, self.quirks.call_ids));
        if marked {
            self.body.frame(",\"content\":[");
            self.block(PartKind::ToolResult, part, text, true);
            self.body.frame("]}");
        } else {
            self.body.frame(",\"content\":\"");
            self.body.string(PartKind::ToolResult, part, text);
            self.body.frame("\"}");
        }
    }

    fn begin(&mut self, role: &str) {
        if !std::mem::take(&mut self.first) {
            self.body.frame(",");
        }
        self.body.frame("{\"role\":\"");
        self.body.frame(role);
        self.body.frame("\"");
    }
}

/// An id the server takes: the call's own, or one derived from it, the same in every request.
fn call_id(id: &str, ids: CallIds) -> Cow<'_, str> {
    let fits = id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    match ids {
        CallIds::Nine if !fits => {
            let mut derived = BASE32_NOPAD.encode(&Sha256::digest(id));
            derived.truncate(9);
            Cow::Owned(derived)
        }
        CallIds::Any | CallIds::Nine => Cow::Borrowed(id),
    }
}
