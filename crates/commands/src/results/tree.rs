//! Results of the `tree` commands.

mod answers;
mod changes;

use std::collections::BTreeMap;

use loom::{
    AuthorKind, Block, Digest, Finish, GenerationSettings, Mode, NodeId, PositionId, PositionKind, Role, Seq,
    TreeId, Trust, verify,
};
use serde::Serialize;

pub use crate::tree::WordChange;

pub use answers::{
    AlternativeShown, AnswerPlace, Estimate, Generated, GeneratedNode, NextAnswer, TokenShown, TokensShown,
    UsageShown,
};
pub use changes::{
    Branched, Compacted, DraftDone, Edited, Moved, NodeNamed, OperationShown, Operations, PathEdited,
    SiblingReached, Stepped,
};

/// `tree new`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeMade {
    pub tree: TreeId,
    pub short_id: String,
    /// The tip of `main`.
    pub tip: PositionId,
}

/// `tree list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trees {
    /// The trees, the one changed last first.
    pub trees: Vec<TreeLine>,
}

/// A tree of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeLine {
    pub tree: TreeId,
    pub short_id: String,
    /// Title of the tree; empty if it has none.
    pub title: String,
    /// `document` or `dialogue`.
    #[serde(serialize_with = "mode_word")]
    pub mode: Mode,
    /// Nodes, genesis included.
    pub nodes: u64,
    /// Passages, or messages, of the path that `main` shows.
    pub passages: u64,
    /// When it was changed last, ms since 1970.
    pub updated: i64,
    /// Whether it is archived.
    pub archived: bool,
}

/// `tree show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeShown {
    /// The tree.
    pub tree: TreeId,
    /// Nodes: of the path from the top, or all in the order they were made.
    pub nodes: Vec<NodeShown>,
    /// `--from` of the next page, if there is one.
    pub next: Option<String>,
    /// The command that shows it.
    #[serde(skip)]
    pub more: Option<String>,
    /// The depth at which it was cut, if something is deeper.
    #[serde(skip)]
    pub cut_at: Option<u32>,
    /// The tree's head, which is sent first.
    pub head: Option<StoredText>,
    /// The tree's note, which is sent some paragraphs before the end.
    pub note: Option<StoredText>,
    /// The working buffer, where the page shows the end of the path.
    pub draft: Option<StoredText>,
    /// Where what the model sees begins, if that is not the beginning of the tree.
    pub window: Option<PositionId>,
    /// Whether it begins inside of that passage.
    pub window_inside: bool,
    /// Whether it is the tree, not a path.
    #[serde(skip)]
    pub all: bool,
    /// Whether its branches are drawn as far as the page has them.
    #[serde(skip)]
    pub unfolded: bool,
    /// Whether it is one node with all that it says.
    #[serde(skip)]
    pub whole: bool,
}

/// A picture or a sound of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlobShown {
    /// Media type, as the node says.
    pub mime: String,
    /// SHA-256 of its bytes.
    pub blob: Digest,
}

impl BlobShown {
    /// Pictures and sounds of a content, those in results of tools as well.
    pub(crate) fn of(blocks: &[Block]) -> Vec<Self> {
        let of_block = |block: &Block| match block {
            Block::Image { blob, mime } | Block::Audio { blob, mime } => {
                vec![Self { mime: mime.clone(), blob: *blob }]
            }
            Block::ToolResult { blocks, .. } => Self::of(blocks),
            _ => Vec::new(),
        };
        blocks.iter().flat_map(of_block).collect()
    }
}

/// A call of a tool that an answer holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCallShown {
    /// The name its result has for it.
    pub id: String,
    /// Which of the answer's calls it is, from 0.
    pub number: usize,
    pub tool: String,
    pub arguments: serde_json::Value,
}

impl ToolCallShown {
    /// Calls of tools in a content.
    pub(crate) fn of(blocks: &[Block]) -> Vec<Self> {
        let calls = blocks.iter().filter_map(|block| match block {
            Block::ToolCall { id, name, arguments } => Some((id, name, arguments)),
            _ => None,
        });
        let shown = |(number, (id, tool, arguments)): (usize, (&String, &String, &serde_json::Value))| Self {
            id: id.clone(),
            number,
            tool: tool.clone(),
            arguments: arguments.clone(),
        };
        calls.enumerate().map(shown).collect()
    }
}

/// A remark on a passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnnotationShown {
    pub node: NodeId,
    pub short_id: String,
    pub author: String,
    pub author_kind: AuthorKind,
    pub text: String,
}

/// `tree head`, `note`, `draft` without a text: what is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StoredText {
    /// The text; none where there is none.
    pub text: Option<String>,
    /// The node that holds it; none for a draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// How many paragraphs before the end a note is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// Revision of a draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// `tree siblings`, `versions`, `bookmarks`; `tag` and `annotate` without a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedNodes {
    /// The tree.
    pub tree: TreeId,
    /// The nodes.
    pub nodes: Vec<NodeShown>,
    /// Index of the one the view shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<usize>,
    /// What they follow, where a conversation asked.
    #[serde(skip)]
    pub after: Option<FollowedMessage>,
}

/// What siblings in a conversation follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedMessage {
    /// Whether they are answers; else they are messages.
    pub are_answers: bool,
    pub short_id: String,
    /// Text of the message; none where nothing stands before the siblings.
    pub text: Option<String>,
}

/// A mode by the word people use for it; records have `buffer` for a document.
pub const fn word_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Buffer => "document",
        Mode::Dialogue => "dialogue",
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn mode_word<S: serde::Serializer>(mode: &Mode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(word_of(*mode))
}

/// A node as shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeShown {
    pub id: NodeId,
    pub short_id: String,
    /// Where it stands.
    pub position: PositionId,
    /// The position above.
    pub parent: Option<PositionId>,
    /// How many positions stand above it.
    pub depth: u32,
    /// Who wrote it.
    pub author: String,
    /// What kind of author.
    pub author_kind: AuthorKind,
    /// The model its text came from, as `PROVIDER/MODEL`, also where it was edited since.
    pub model: Option<String>,
    /// What the position is for.
    pub kind: PositionKind,
    pub role: Option<Role>,
    /// How far it is believed.
    pub trust: Trust,
    /// The version it was made from.
    pub edited_from: Option<NodeId>,
    /// Versions of its position.
    pub versions: u64,
    /// Siblings of its position, itself included.
    pub siblings: u64,
    /// Text of the node; that of the pending edit where there is one.
    pub text: String,
    /// Who wrote which bytes of `text`, where a person changed a part of what a model wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<loom::reader::AuthorSpan>,
    /// Pictures and sounds it shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<BlobShown>,
    /// Tools that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCallShown>,
    /// Whether `text` is a pending edit.
    pub pending: bool,
    /// Whether it followed from something else than what stands above it now.
    pub drifted: bool,
    /// Whether it, or something above it, is hidden.
    pub pruned: bool,
    /// Whether it is hidden only with something above it.
    pub below_pruned: bool,
    /// Whether it is left out of the context.
    pub excluded: bool,
    /// How the completion ended.
    pub finish: Option<Finish>,
    /// Whether its content was forgotten.
    pub purged: bool,
    /// Title of the bookmark on the position, empty where it has none; none without a bookmark.
    pub bookmark: Option<String>,
    /// Tags of its position.
    pub tags: Vec<String>,
    /// Remarks on its position, the oldest first.
    pub annotations: Vec<AnnotationShown>,
    /// Whether it is the version the view shows at its position.
    pub shown: bool,
    /// Whether its position stands on the path of the view.
    pub active: bool,
    /// How the model was asked, where a model made it here.
    pub settings: Option<GenerationSettings>,
    /// When it was made, ms since 1970.
    pub created: i64,
}

/// `tree text`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextShown {
    /// The rendering, byte for byte.
    pub text: String,
    /// Who wrote which part, in grapheme clusters; empty without `--spans`.
    pub spans: Vec<SpanShown>,
    /// Where the messages of a dialogue end, in bytes: plain output has an empty line between two.
    #[serde(skip)]
    pub ends: Vec<usize>,
    /// Whether plain output shows the spans.
    #[serde(skip)]
    pub with_spans: bool,
    /// Whether plain output shows who wrote what in the text itself.
    #[serde(skip)]
    pub with_authors: bool,
}

/// A stretch of text by one author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpanShown {
    #[serde(flatten)]
    pub span: loom::render::Span,
    /// The model that wrote it, as `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// How the model was asked, where it was asked here.
    pub settings: Option<GenerationSettings>,
    /// Short id of the node; none in a draft.
    pub short_id: Option<String>,
}

/// `tree view list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Views {
    /// The views.
    pub views: Vec<ViewLine>,
    /// What was made or deleted, for people.
    #[serde(skip)]
    pub sentence: Option<String>,
}

/// A view of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewLine {
    pub name: String,
    pub tip: PositionId,
    /// The passage at the tip by short id and first words, for people.
    #[serde(skip)]
    pub tip_named: String,
    /// Whose cursor it is.
    pub agent: String,
}

/// `tree compare`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Text on the path to A alone.
    pub only_a: String,
    /// Text on the path to B alone.
    pub only_b: String,
    /// What they share.
    pub common: Common,
}

/// What two paths share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Common {
    /// The lowest position on both.
    pub position: PositionId,
    /// How deep it is.
    pub depth: u32,
    /// Characters above and in it.
    pub chars: u64,
}

/// `tree verify`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verified {
    /// Valid, invalid or incomplete.
    pub status: verify::Status,
    /// What that rests on.
    pub assurance: verify::Assurance,
    /// Nodes seen.
    pub nodes: u64,
    /// Model nodes without a response.
    pub unattested: u64,
    /// Findings.
    pub problems: Vec<verify::Problem>,
    /// The head of the tree.
    pub head: Digest,
    /// Short ids of the nodes of the problems, as far as they are known.
    #[serde(skip)]
    pub short_ids: BTreeMap<NodeId, String>,
}

/// `tree seal`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sealed {
    /// The last operation it covers.
    pub seq: Seq,
    /// The head that was signed.
    pub head: Digest,
    /// The public key, hexadecimal.
    pub key: String,
}

/// `tree trust TREE NODE`, `/trust`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trusted {
    pub tree: TreeId,
    /// Whether the nodes are trusted now, or from outside again.
    pub on: bool,
    pub changed: Vec<TaintingNode>,
    /// What taints the next request in the view.
    pub taints: Vec<TaintingNode>,
}

/// A text from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaintingNode {
    pub node: NodeId,
    pub short_id: String,
    /// The tool, model or person that it is by.
    pub author: String,
    pub chars: usize,
    /// First words of the text.
    pub begins: String,
}

impl TaintingNode {
    /// As a line that a person reads.
    pub fn line(&self) -> String {
        format!("{}  {}, {} characters: {}", self.short_id, self.author, self.chars, self.begins)
    }
}

/// A tree something was done with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeNamed {
    pub tree: TreeId,
    pub short_id: String,
}
