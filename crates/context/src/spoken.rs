//! What one node of a path says, in the form it is sent to a model (spec: loom §5).
//!
//! The form depends on the node and on who is asked, never on what follows: what was sent once is sent again
//! byte for byte.

use bytes::Bytes;
use loom::render::Passage;
use loom::rows::Injection;
use loom::{Block, Digest, NodeId, Position, Role, ToolStatus, Trust};
use model::{Media, ToolCall};
use serde_json::Value;

use crate::estimate::Estimator;
use crate::target::Target;

/// Tokens of a picture, as much as any provider counts for one it has scaled to its limit.
pub const PICTURE: u64 = 1_600;

/// Where pictures come from.
pub trait Pictures {
    /// The bytes of a blob; none if they are not there.
    fn picture(&self, blob: Digest) -> Option<Bytes>;
}

/// No picture is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPictures;

impl Pictures for NoPictures {
    fn picture(&self, _: Digest) -> Option<Bytes> {
        None
    }
}

/// In whose place a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    System,
    User,
    Assistant,
}

/// One thing a node says.
#[derive(Debug)]
pub(crate) enum Line {
    Text { voice: Voice, text: String },
    Media(Media),
    Opaque { thinking: Option<String>, json: Value },
    Call(ToolCall),
    Result { call: String, status: ToolStatus, text: String, media: Vec<Media> },
}

/// What a node says.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) position: Position,
    pub(crate) node: NodeId,
    pub(crate) short_id: String,
    pub(crate) trust: Trust,
    /// Whether it is left out: nothing of it is sent.
    pub(crate) excluded: bool,
    /// Each with its tokens.
    pub(crate) lines: Vec<(Line, u64)>,
    /// What was shown with it.
    pub(crate) injections: Vec<Injection>,
    /// Tokens of all of it, injections included.
    pub(crate) tokens: u64,
    /// Tokens of the injections.
    pub(crate) told: u64,
    /// Characters of its text.
    pub(crate) chars: u64,
    /// Pictures and sounds that are not sent.
    pub(crate) unseen: u64,
}

impl Spoken {
    /// Whether a turn may begin with it.
    pub(crate) fn is_user(&self) -> bool {
        self.position.role == Some(Role::User) && !self.excluded
    }

    /// Whether it says something.
    pub(crate) fn says(&self) -> bool {
        !self.excluded && (!self.lines.is_empty() || !self.injections.is_empty())
    }
}

/// Puts nodes into the form they are sent in.
pub(crate) struct Speaker<'a> {
    pub(crate) target: &'a Target,
    pub(crate) estimator: &'a Estimator,
    pub(crate) pictures: &'a dyn Pictures,
}

impl Speaker<'_> {
    /// What a node says, with what was shown with it.
    pub(crate) fn speak(&self, passage: Passage, injections: Vec<Injection>) -> Spoken {
        let Passage { position, row, text, pending, excluded } = passage;
        let node = row.node;
        let mut said = Saying {
            speaker: self,
            voice: match position.role {
                Some(Role::System) => Voice::System,
                Some(Role::Assistant) => Voice::Assistant,
                Some(Role::User | Role::Tool) | None => Voice::User,
            },
            // Opaque material holds only for the very bytes it came with.
            takes_back: !pending
                && node.edited_from.is_none()
                && node.source.as_ref().is_some_and(|source| {
                    source.provider == self.target.provider
                        && source.model == self.target.model
                        && source.dialect == self.target.dialect.as_str()
                }),
            name: None,
            lines: Vec::new(),
            unseen: 0,
        };
        let other = node.source.as_ref().filter(|source| source.model != self.target.model);
        if let (Some(other), Voice::Assistant) = (other, said.voice) {
            said.voice = Voice::User;
            said.name = Some(other.model.clone());
        }
        let chars = node.counts.chars;
        if !excluded {
            let content = if pending { vec![Block::Text { text }] } else { node.content };
            content.into_iter().for_each(|block| said.block(block));
        }
        let Saying { lines, unseen, .. } = said;
        let counted = |line: Line| {
            let tokens = self.tokens(&line);
            (line, tokens)
        };
        let lines: Vec<(Line, u64)> = lines.into_iter().map(counted).collect();
        let shown = if excluded { Vec::new() } else { injections };
        let told: u64 =
            shown.iter().map(|shown| self.estimator.of(&shown.text) + self.estimator.of_messages(1)).sum();
        let messages = if lines.is_empty() { 0 } else { self.estimator.of_messages(1) };
        Spoken {
            tokens: lines.iter().map(|(_, tokens)| tokens).sum::<u64>() + told + messages,
            told,
            position,
            node: node.id,
            short_id: row.short_id,
            trust: shown.iter().map(|shown| shown.trust).fold(node.trust, Trust::min),
            excluded,
            lines,
            injections: shown,
            chars,
            unseen,
        }
    }

    fn tokens(&self, line: &Line) -> u64 {
        match line {
            Line::Text { text, .. } => self.estimator.of(text),
            Line::Media(_) => PICTURE,
            Line::Opaque { thinking, json } => {
                self.estimator.of(&json.to_string())
                    + thinking.as_deref().map_or(0, |text| self.estimator.of(text))
            }
            Line::Call(call) => {
                self.estimator.of(&call.id)
                    + self.estimator.of(&call.name)
                    + self.estimator.of(&call.arguments)
            }
            Line::Result { call, text, media, .. } => {
                self.estimator.of(call) + self.estimator.of(text) + PICTURE * media.len() as u64
            }
        }
    }
}

/// A node on the way into its form.
struct Saying<'a> {
    speaker: &'a Speaker<'a>,
    voice: Voice,
    takes_back: bool,
    /// The other model that says it, until it is named.
    name: Option<String>,
    lines: Vec<Line>,
    unseen: u64,
}

impl Saying<'_> {
    fn block(&mut self, block: Block) {
        let target = self.speaker.target;
        match block {
            Block::Text { text } => self.text(text),
            Block::Thinking { text, opaque: Some(json) } if self.takes_back => {
                self.lines.push(Line::Opaque { thinking: Some(text), json });
            }
            Block::Opaque { dialect, model, json }
                if self.takes_back && dialect == target.dialect.as_str() && model == target.model =>
            {
                self.lines.push(Line::Opaque { thinking: None, json });
            }
            Block::Thinking { .. } | Block::Opaque { .. } => {}
            Block::Image { blob, mime } => match self.picture(blob, &mime) {
                // A model takes pictures in the user's place alone.
                Ok(media) => self.lines.push(Line::Media(media)),
                Err(line) => self.text(line),
            },
            Block::Audio { mime, .. } => {
                self.unseen += 1;
                self.text(format!("[sound left out: {mime}]"));
            }
            Block::ToolCall { id, name, arguments } if target.tools => {
                self.lines.push(Line::Call(ToolCall { id, name, arguments: arguments.to_string() }));
            }
            Block::ToolCall { name, arguments, .. } => self.text(format!("[called {name} with {arguments}]")),
            Block::ToolResult { call_id, status, blocks } => self.result(call_id, status, blocks),
        }
    }

    fn text(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let text = match self.name.take() {
            Some(name) => format!("{name}: {text}"),
            None => text,
        };
        match self.lines.last_mut() {
            Some(Line::Text { text: before, .. }) => before.push_str(&text),
            _ => self.lines.push(Line::Text { voice: self.voice, text }),
        }
    }

    fn picture(&mut self, blob: Digest, mime: &str) -> Result<Media, String> {
        let found = if self.speaker.target.pictures { self.speaker.pictures.picture(blob) } else { None };
        found.map(|data| Media { mime: mime.to_owned(), data }).ok_or_else(|| {
            self.unseen += 1;
            format!("[picture left out: {mime}]")
        })
    }

    fn result(&mut self, call: String, status: ToolStatus, blocks: Vec<Block>) {
        let mut said = String::new();
        let mut media = Vec::new();
        for block in blocks {
            match block {
                Block::Text { text } => said.push_str(&text),
                Block::Image { blob, mime } => match self.picture(blob, &mime) {
                    Ok(picture) => media.push(picture),
                    Err(line) => said.push_str(&line),
                },
                Block::Audio { mime, .. } => {
                    self.unseen += 1;
                    said.push_str(&format!("[sound left out: {mime}]"));
                }
                Block::Thinking { .. }
                | Block::ToolCall { .. }
                | Block::ToolResult { .. }
                | Block::Opaque { .. } => {}
            }
        }
        if self.speaker.target.tools {
            self.lines.push(Line::Result { call, status, text: said, media });
        } else {
            self.text(format!("[its result]\n{said}"));
        }
    }
}
