//! The messages of a chat request: first what goes into which message, then its form.
//!
//! A message is a run of parts of one place: neighbours of one role share a message, because many chat templates
//! insist that roles alternate. What a message holds decides its form: text alone is one string, with a blank line
//! between its parts; with pictures, or with a cache mark on one part, each part is a block of its own.

use std::borrow::Cow;

use data_encoding::BASE32_NOPAD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::encoded::{EncodeError, PartKind};
use crate::openai_media::{self, Block};
use crate::openai_thinking;
use crate::parts::Parts;
use crate::prompt::{Chat, ChatPart, Media, OpaquePart, PartId, TextPart, ToolExchange};
use crate::quirks::{CacheForm, CallIds, InstructionRole, PrefillForm, Quirks};

const USER: &str = "user";
const ASSISTANT: &str = "assistant";
/// What stands between two texts of one message.
const BETWEEN: &str = "\n\n";

/// A message as it is sent.
#[derive(Default, Serialize)]
pub(crate) struct Message {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Vec<String>>,
    content: Content,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<bool>,
}

#[derive(Default, Serialize)]
#[serde(untagged)]
enum Content {
    #[default]
    Nothing,
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Serialize)]
struct Call {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function,
}

#[derive(Serialize)]
struct Function {
    name: String,
    arguments: String,
}

/// The messages of a conversation, beginning of the answer included.
///
/// # Errors
/// When the dialect has no block for a picture or sound.
pub(crate) fn messages<'a>(
    parts: &mut Parts<'a>,
    chat: &'a Chat,
    quirks: &Quirks,
) -> Result<Vec<Message>, EncodeError> {
    let round = |part: &ChatPart| matches!(part, ChatPart::ToolRound(round) if !round.is_empty());
    let with_tools = !chat.tools.is_empty() || chat.messages.iter().any(round);
    let mut list = List { parts, quirks, with_tools, messages: Vec::new() };
    for run in runs(chat, quirks) {
        match run {
            Run::Said { role, items } => list.said(role, &items)?,
            Run::Answer(answer) => list.answer(&answer),
        }
    }
    if let Some(prefill) = &chat.prefill {
        let content = Content::Text(list.parts.text(PartKind::Prefill, prefill));
        let prefix = (quirks.prefill == PrefillForm::PrefixFlag).then_some(true);
        list.messages.push(Message { role: ASSISTANT, content, prefix, ..Message::default() });
    }
    Ok(list.messages)
}

/// What goes into one message.
enum Run<'a> {
    /// What anyone but the assistant said.
    Said { role: &'static str, items: Vec<Item<'a>> },
    /// One answer of the assistant, with the results of the tools it called.
    Answer(Answer<'a>),
}

struct Item<'a> {
    piece: Piece<'a>,
    marked: bool,
}

enum Piece<'a> {
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

/// The runs of a conversation, one for each message.
fn runs<'a>(chat: &'a Chat, quirks: &Quirks) -> Vec<Run<'a>> {
    let instructions = match quirks.instructions {
        InstructionRole::System => "system",
        InstructionRole::Developer => "developer",
    };
    let mut runs = Vec::new();
    for (at, part) in chat.messages.iter().enumerate() {
        match part {
            ChatPart::System(text) => {
                said(&mut runs, instructions, Piece::Text(PartKind::System, text));
            }
            ChatPart::User(text) => said(&mut runs, USER, Piece::Text(PartKind::User, text)),
            ChatPart::Injected(text) => said(&mut runs, USER, Piece::Text(PartKind::Injected, text)),
            ChatPart::Media(part) => said(&mut runs, USER, Piece::Media(part.id, &part.media)),
            ChatPart::Assistant(text) => answer(&mut runs, |open| open.texts.push(text)),
            ChatPart::Opaque(part) => answer(&mut runs, |open| open.opaque.push(part)),
            ChatPart::ToolRound(round) if round.is_empty() => {}
            ChatPart::ToolRound(round) => {
                answer(&mut runs, |open| {
                    open.opaque.extend(round.iter().flat_map(|exchange| &exchange.before));
                    open.round = round;
                });
                // A result is text alone here: its pictures follow in the user's place.
                for exchange in round {
                    for media in &exchange.result.media {
                        said(&mut runs, USER, Piece::Media(exchange.result_part, media));
                    }
                }
            }
        }
        if quirks.cache == CacheForm::Marks && (at + 1 == chat.stable || at + 1 == chat.messages.len()) {
            mark_last(&mut runs);
        }
    }
    runs
}

/// Adds to the last message, if it is of the role, or begins one.
fn said<'a>(runs: &mut Vec<Run<'a>>, role: &'static str, piece: Piece<'a>) {
    // Thinking alone is no message, and must not stand between two of one role.
    if matches!(runs.last(), Some(Run::Answer(last)) if last.is_empty()) {
        runs.pop();
    }
    let item = Item { piece, marked: false };
    match runs.last_mut() {
        Some(Run::Said { role: last, items }) if *last == role => items.push(item),
        _ => runs.push(Run::Said { role, items: vec![item] }),
    }
}

/// Adds to the answer that is still open, one that called no tool yet, or begins one.
fn answer<'a>(runs: &mut Vec<Run<'a>>, add: impl FnOnce(&mut Answer<'a>)) {
    match runs.last_mut() {
        Some(Run::Answer(open)) if open.round.is_empty() => add(open),
        _ => {
            let mut answer = Answer::default();
            add(&mut answer);
            runs.push(Run::Answer(answer));
        }
    }
}

/// Marks the last text that can be marked: said by anyone but the assistant, or given by a tool.
fn mark_last(runs: &mut [Run<'_>]) {
    for message in runs.iter_mut().rev() {
        match message {
            Run::Said { items, .. } => {
                let text = items.iter_mut().rev().find(|item| matches!(item.piece, Piece::Text(..)));
                if let Some(item) = text {
                    item.marked = true;
                    return;
                }
            }
            Run::Answer(answer) if !answer.round.is_empty() => {
                answer.marked = true;
                return;
            }
            Run::Answer(_) => {}
        }
    }
}

/// Messages as they are written one after the other.
struct List<'l, 'a> {
    parts: &'l mut Parts<'a>,
    quirks: &'l Quirks,
    /// Whether the conversation has tools, or has used some.
    with_tools: bool,
    messages: Vec<Message>,
}

impl<'a> List<'_, 'a> {
    fn said(&mut self, role: &'static str, items: &[Item<'a>]) -> Result<(), EncodeError> {
        let plain = items.iter().all(|item| matches!(item.piece, Piece::Text(..)) && !item.marked);
        let mut texts = String::new();
        let mut blocks = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match item.piece {
                Piece::Text(kind, part) if plain => {
                    texts.push_str(if at > 0 { BETWEEN } else { "" });
                    texts.push_str(&self.parts.text(kind, part));
                }
                Piece::Text(kind, part) => {
                    blocks.push(Block::text(self.parts.text(kind, part), item.marked));
                }
                Piece::Media(part, media) => blocks.push(openai_media::block(self.parts, part, media)?),
            }
        }
        let content = if plain { Content::Text(texts) } else { Content::Blocks(blocks) };
        self.messages.push(Message { role, content, ..Message::default() });
        Ok(())
    }

    fn answer(&mut self, answer: &Answer<'a>) {
        if answer.is_empty() {
            return;
        }
        let back = self.quirks.thinking_back;
        let thinking = openai_thinking::back(self.parts, &answer.opaque, self.with_tools, back);
        let texts: Vec<String> =
            answer.texts.iter().map(|text| self.parts.text(PartKind::Assistant, text)).collect();
        let calls = answer.round.iter().map(|exchange| {
            let (part, call) = (exchange.call_part, &exchange.call);
            let name = self.parts.string(PartKind::ToolCall, part, &call.name);
            let arguments = self.parts.string(PartKind::ToolCall, part, &call.arguments);
            let id = call_id(&call.id, self.quirks.call_ids).into_owned();
            Call { id, kind: "function", function: Function { name, arguments } }
        });
        let tool_calls = calls.collect();
        self.messages.push(Message {
            role: ASSISTANT,
            reasoning_content: thinking.content,
            reasoning_details: thinking.details,
            content: if texts.is_empty() { Content::Nothing } else { Content::Text(texts.join(BETWEEN)) },
            tool_calls,
            ..Message::default()
        });
        for (at, exchange) in answer.round.iter().enumerate() {
            let text = self.parts.string(PartKind::ToolResult, exchange.result_part, &exchange.result.text);
            let marked = answer.marked && at + 1 == answer.round.len();
            self.messages.push(Message {
                role: "tool",
                tool_call_id: Some(call_id(&exchange.call.id, self.quirks.call_ids).into_owned()),
                content: if marked {
                    Content::Blocks(vec![Block::text(text, true)])
                } else {
                    Content::Text(text)
                },
                ..Message::default()
            });
        }
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
