//! What one node of a path says, in the form it is sent to a model (spec: loom §5).
//!
//! The form depends on the node and on who is asked, never on what follows: what was sent once is sent again
//! byte for byte.

use std::sync::Arc;

use loom::content::blob_name;
use loom::reader::Injection;
use loom::render::Passage;
use loom::{Block, Digest, NodeId, Position, Role, ToolStatus, Trust};
use model::catalogue::is_same;
use model::{Media, ToolCall};
use serde_json::Value;

use crate::estimate::Estimator;
use crate::target::TargetModel;

/// Where pictures and sounds come from. How large one is is asked for every one that may be sent, its bytes only
/// for those that are.
pub trait Pictures {
    /// The size of a blob in bytes; none if it is not there.
    fn size(&self, blob: Digest) -> Option<u64>;

    /// The blob as it is sent; none if it is not there, damaged, or nothing models take.
    fn media(&self, blob: Digest) -> Option<Media>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NoPictures;

impl Pictures for NoPictures {
    fn size(&self, _: Digest) -> Option<u64> {
        None
    }

    fn media(&self, _: Digest) -> Option<Media> {
        None
    }
}

/// In whose place a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRole {
    System,
    User,
    Assistant,
}

/// A picture or a sound that is to be sent. Its bytes are read when it is.
#[derive(Debug, Clone)]
pub(crate) struct Showing {
    pub(crate) blob: Digest,
    /// Media type, as the node says.
    mime: String,
    /// What it is called where it is left out.
    what: &'static str,
    tokens: u64,
}

impl Showing {
    /// What stands in its place where it is not sent.
    pub(crate) fn left_out(&self) -> String {
        format!("[{} left out: {}]", self.what, self.mime)
    }
}

/// One thing a node says.
#[derive(Debug)]
pub(crate) enum Line {
    Text { voice: MessageRole, text: String },
    Media(Showing),
    Opaque { thinking: Option<String>, json: Value },
    Call(ToolCall),
    Result { call: String, status: ToolStatus, text: String, media: Vec<Showing> },
}

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
    pub(crate) told: u64,
    /// Pictures and sounds that are not sent.
    pub(crate) unseen: u64,
}

impl Spoken {
    /// Whether a turn may begin with it.
    pub(crate) fn is_user(&self) -> bool {
        self.position.role == Some(Role::User) && !self.excluded
    }

    pub(crate) fn says(&self) -> bool {
        !self.excluded && (!self.lines.is_empty() || !self.injections.is_empty())
    }

    /// Keeps of what was shown with it what `stays`.
    pub(crate) fn retain_injections(&mut self, stays: impl Fn(&Injection) -> bool, estimator: &Estimator) {
        let leaves = self.injections.iter().filter(|shown| !stays(shown));
        let tokens: u64 = leaves.map(|shown| estimator.of(&shown.text) + estimator.of_messages(1)).sum();
        self.injections.retain(stays);
        (self.tokens, self.told) = (self.tokens - tokens, self.told - tokens);
    }
}

/// Puts nodes into the form they are sent in.
pub(crate) struct Renderer<'a> {
    pub(crate) target: &'a TargetModel,
    pub(crate) estimator: &'a Estimator,
    pub(crate) pictures: &'a dyn Pictures,
}

impl Renderer<'_> {
    /// What a node says, with what was shown with it.
    pub(crate) fn speak(&self, passage: Passage, injections: Vec<Injection>) -> Spoken {
        let Passage { position, row, text, pending, excluded } = passage;
        let node = row.node;
        let mut said = RenderedPart {
            speaker: self,
            voice: match position.role {
                Some(Role::System) => MessageRole::System,
                Some(Role::Assistant) => MessageRole::Assistant,
                Some(Role::User | Role::Tool) | None => MessageRole::User,
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
            made: position.role == Some(Role::Assistant),
            lines: Vec::new(),
            unseen: 0,
        };
        let other = node.source.as_ref().filter(|source| !is_same(&source.model, &self.target.model));
        if let (Some(other), MessageRole::Assistant) = (other, said.voice) {
            said.voice = MessageRole::User;
            said.name = Some(other.model.clone());
        }
        if !excluded {
            let content =
                if pending { vec![Block::Text { text }] } else { Arc::unwrap_or_clone(node.content) };
            content.into_iter().for_each(|block| said.block(block));
        }
        let RenderedPart { lines, unseen, .. } = said;
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
            unseen,
        }
    }

    fn tokens(&self, line: &Line) -> u64 {
        match line {
            Line::Text { text, .. } => self.estimator.of(text),
            Line::Media(shown) => shown.tokens,
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
                self.estimator.of(call)
                    + self.estimator.of(text)
                    + media.iter().map(|shown| shown.tokens).sum::<u64>()
            }
        }
    }
}

/// A node on the way into its form.
struct RenderedPart<'a> {
    speaker: &'a Renderer<'a>,
    voice: MessageRole,
    takes_back: bool,
    /// The other model that says it, until it is named.
    name: Option<String>,
    /// Whether a model says it.
    made: bool,
    lines: Vec<Line>,
    unseen: u64,
}

impl RenderedPart<'_> {
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
            Block::Image { blob, mime } => self.shows(blob, mime, false),
            Block::Audio { blob, mime } => self.shows(blob, mime, true),
            Block::ToolCall { id, name, arguments } if target.tools => {
                let (id, name) = (plain(&id, "call"), plain(&name, "tool"));
                self.lines.push(Line::Call(ToolCall { id, name, arguments: arguments.to_string() }));
            }
            Block::ToolCall { name, arguments, .. } => self.text(format!("[called {name} with {arguments}]")),
            Block::ToolResult { call_id, status, blocks } => self.result(&call_id, status, blocks),
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

    fn shows(&mut self, blob: Digest, mime: String, sound: bool) {
        match self.showing(blob, mime, sound) {
            Ok(shown) => {
                // A model takes pictures in the user's place alone, its own too: there it is told whose it is.
                if self.made {
                    let text = format!("[{} {}, made by the assistant]", shown.what, blob_name(blob));
                    self.lines.push(Line::Text { voice: MessageRole::User, text });
                }
                self.lines.push(Line::Media(shown));
            }
            Err(line) => self.text(line),
        }
    }

    fn showing(&mut self, blob: Digest, mime: String, sound: bool) -> Result<Showing, String> {
        let target = self.speaker.target;
        let (what, takes) = if sound { ("sound", target.sounds) } else { ("picture", target.pictures) };
        let size = if takes { self.speaker.pictures.size(blob) } else { None };
        let tokens = match size {
            Some(bytes) if sound => TargetModel::sound_tokens(bytes),
            _ => target.picture_tokens(),
        };
        let shown = Showing { blob, mime, what, tokens };
        if size.is_some() {
            return Ok(shown);
        }
        self.unseen += 1;
        Err(shown.left_out())
    }

    fn result(&mut self, call: &str, status: ToolStatus, blocks: Vec<Block>) {
        let mut said = String::new();
        let mut media = Vec::new();
        for block in blocks {
            match block {
                Block::Text { text } => said.push_str(&text),
                Block::Image { blob, mime } => match self.showing(blob, mime, false) {
                    Ok(picture) => media.push(picture),
                    Err(line) => said.push_str(&line),
                },
                Block::Audio { blob, mime } => match self.showing(blob, mime, true) {
                    Ok(sound) => media.push(sound),
                    Err(line) => said.push_str(&line),
                },
                Block::Thinking { .. }
                | Block::ToolCall { .. }
                | Block::ToolResult { .. }
                | Block::Opaque { .. } => {}
            }
        }
        if self.speaker.target.tools {
            let call = plain(call, "call");
            self.lines.push(Line::Result { call, status, text: said, media });
        } else {
            self.text(format!("[its result]\n{said}"));
        }
    }
}

/// Letters of a name or id of a call: more is refused by some providers, and with it every later request.
const NAME: usize = 64;

/// A name or id as every provider takes it; a model may have written anything.
fn plain(name: &str, otherwise: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= NAME && name.chars().all(|c| is_plain(&c)) {
        return name.to_owned();
    }
    let kept: String = name.chars().filter(is_plain).take(NAME / 2).collect();
    let digest = Digest::of(name.as_bytes()).to_string();
    let kept = if kept.is_empty() { otherwise } else { kept.as_str() };
    // Two that differ stay two.
    format!("{kept}-{}", &digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_are_sent_as_every_provider_takes_them_and_differ_where_they_did() {
        for name in ["read", "call_1", "chatcmpl-tool-0"] {
            assert_eq!(plain(name, "tool"), name);
        }
        let odd: Vec<String> =
            ["", "gr\u{1b}[31m ep\n", "gr ep", "mcp:read", "mcp;read"].map(|name| plain(name, "tool")).into();
        let long = plain(&"n".repeat(100_000), "tool");
        for name in odd.iter().chain([&long]) {
            assert!(name.len() <= NAME && !name.is_empty(), "{name}");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'),
                "{name}"
            );
        }
        let different: std::collections::HashSet<_> = odd.iter().collect();
        assert_eq!(different.len(), odd.len());
    }
}
