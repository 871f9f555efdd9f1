//! Results of the `tree` commands.

use std::collections::BTreeMap;

use loom::{
    AuthorKind, Block, Digest, Finish, GenerationSettings, Mode, NodeId, OpKind, PositionId, PositionKind,
    Role, Seq, TreeId, Trust, verify,
};
use serde::Serialize;

pub use crate::tree::WordChange;

/// `tree new`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeMade {
    /// Its id.
    pub tree: TreeId,
    /// Its short id.
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
    /// Its id.
    pub tree: TreeId,
    /// Its short id.
    pub short_id: String,
    /// Its title; empty if it has none.
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
    /// The same by its short id, for people.
    #[serde(skip)]
    pub next_short: Option<String>,
    /// The tree's head, which is sent first.
    pub head: Option<StoredText>,
    /// The tree's note, which is sent some paragraphs before the end.
    pub note: Option<StoredText>,
    /// The working buffer, where the page shows the end of the path.
    pub draft: Option<StoredText>,
    /// Where what the model sees begins, if that is not the beginning of the tree.
    pub window: Option<PositionId>,
    /// Whether it is the tree, not a path.
    #[serde(skip)]
    pub all: bool,
    /// Whether its branches are drawn as far as the page has them.
    #[serde(skip)]
    pub unfolded: bool,
}

/// A picture or a sound of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlobShown {
    /// Its media type, as the node says.
    pub mime: String,
    /// SHA-256 of its bytes.
    pub blob: Digest,
}

impl BlobShown {
    pub(crate) fn of(block: &Block) -> Option<Self> {
        match block {
            Block::Image { blob, mime } | Block::Audio { blob, mime } => {
                Some(Self { mime: mime.clone(), blob: *blob })
            }
            _ => None,
        }
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
    /// Its short id.
    pub short_id: String,
    /// Its text; none where nothing stands before them.
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
    /// Its id.
    pub id: NodeId,
    /// Its short id.
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
    /// Its role in a dialogue.
    pub role: Option<Role>,
    /// How far it is believed.
    pub trust: Trust,
    /// The version it was made from.
    pub edited_from: Option<NodeId>,
    /// Versions of its position.
    pub versions: u64,
    /// Siblings of its position, itself included.
    pub siblings: u64,
    /// Its text; that of the pending edit where there is one.
    pub text: String,
    /// Pictures and sounds it shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<BlobShown>,
    /// Whether `text` is a pending edit.
    pub pending: bool,
    /// Whether it followed from something else than what stands above it now.
    pub drifted: bool,
    /// Whether it, or something above it, is hidden.
    pub pruned: bool,
    /// Whether it is left out of the context.
    pub excluded: bool,
    /// How the completion ended.
    pub finish: Option<Finish>,
    /// Whether its content was forgotten.
    pub purged: bool,
    /// Its bookmark.
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

/// A node that was made or marked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeNamed {
    /// Its id.
    pub node: NodeId,
    /// Its short id.
    pub short_id: String,
}

/// `tree draft`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DraftDone {
    /// `buffer`, or the position of the pending edit.
    pub draft: String,
    /// Its revision; none once it was committed.
    pub revision: Option<u64>,
    /// The nodes a commit made.
    pub nodes: Vec<NodeId>,
    /// Their short ids.
    pub short_ids: Vec<String>,
}

/// `tree edit`, `merge`, `split`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Edited {
    /// The version or sibling shown now.
    pub node: NodeId,
    /// Its short id.
    pub short_id: String,
    /// Where it stands.
    pub position: PositionId,
    /// The version it was made from.
    pub edited_from: Option<NodeId>,
    /// The passage that took what stood behind the place, if it was split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<NodeNamed>,
}

/// `tree edit` without a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PathEdited {
    /// Passages that show another text now, in order.
    pub changed: Vec<Edited>,
    /// Passages that were added at the end.
    pub added: Vec<NodeNamed>,
    /// Passages that were changed elsewhere meanwhile or left the path, and are left as they are.
    pub collided: Vec<NodeNamed>,
    /// Those of them that are on the path no more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub off_path: Vec<NodeNamed>,
    /// Words that came.
    pub words_added: u64,
    /// Words that went.
    pub words_removed: u64,
    /// The file in which the edited text lies, where it was not taken in whole.
    pub file: Option<std::path::PathBuf>,
}

/// `tree branch`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Branched {
    /// The node at the new tip.
    pub node: NodeId,
    /// Its short id.
    pub short_id: String,
    /// Its position.
    pub position: PositionId,
    /// The view's tip.
    pub tip: PositionId,
}

/// `tree tokens`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokensShown {
    pub tree: TreeId,
    pub node: NodeId,
    pub short_id: String,
    /// The tokens of its text, in order.
    pub tokens: Vec<TokenShown>,
}

/// A token as it was chosen, with what else could have stood there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenShown {
    /// Its number in the answer, from 0.
    pub index: usize,
    /// Where it begins in the node's text, in characters (grapheme clusters).
    pub at: usize,
    pub text: String,
    /// Natural logarithm of its probability, where the server gave one.
    pub logprob: Option<f64>,
    /// The likeliest tokens at its place, the likeliest first.
    pub alternatives: Vec<AlternativeShown>,
}

/// A token that could have stood there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlternativeShown {
    /// As `tree branch --token` takes it.
    pub rank: usize,
    pub text: String,
    pub logprob: f64,
}

/// `tree generate`, `regenerate`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Generated {
    /// The nodes made, in order of their siblings.
    pub nodes: Vec<GeneratedNode>,
    /// Digest of the manifest of the first request.
    pub manifest: Digest,
    /// Tokens of all requests together.
    pub usage: UsageShown,
    #[serde(flatten)]
    pub place: AnswerPlace,
}

/// Where the view stands after an answer was asked for: an answer asked for at the tip moves it to the first sibling,
/// one asked for elsewhere leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerPlace {
    /// The view's tip.
    pub tip: PositionId,
    #[serde(skip)]
    pub view: String,
    /// The command that goes to the answer; none where the view stands there.
    #[serde(skip)]
    pub go: Option<String>,
    /// The command that goes to the next sibling.
    #[serde(skip)]
    pub next: String,
}

/// A node a model made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratedNode {
    /// Its id.
    pub id: NodeId,
    /// Its short id.
    pub short_id: String,
    /// Its text.
    pub text: String,
    /// How it ended.
    pub finish: Finish,
    /// Whether its text was shown while it came.
    #[serde(skip)]
    pub streamed: bool,
}

impl From<agent::CommittedNode> for GeneratedNode {
    fn from(made: agent::CommittedNode) -> Self {
        Self {
            id: made.id,
            short_id: made.short_id,
            text: made.text.to_string(),
            finish: made.finish,
            streamed: false,
        }
    }
}

/// Tokens of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct UsageShown {
    /// Input that came from no cache.
    pub input_uncached: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
    /// Whether a server reported it; else it is not known.
    pub reported: bool,
}

impl UsageShown {
    /// Tokens of one request, as reported.
    pub fn of(usage: Option<model::TokenUsage>) -> Self {
        usage.map_or_else(Self::default, |usage| Self {
            input_uncached: usage.input_uncached,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            output: usage.output,
            reported: true,
        })
    }
}

/// `tree generate --dry-run`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Where it would go.
    pub model: String,
    /// Whether text would leave this machine.
    pub place: model::ModelPlace,
    /// Requests.
    pub requests: u32,
    /// Input tokens of one request.
    pub input_tokens: u64,
    /// Whether the input tokens were counted; else they are estimated.
    pub counted: bool,
    /// Who counted them, or those of the texts: `embedded`, `server`, `library`; `estimate` where nobody did.
    pub counted_by: String,
    /// Output tokens of all requests, at most.
    pub output_tokens: u64,
    /// Characters of the document that stand above its window and are not sent.
    pub left_out: u64,
    /// Where the window begins, where something is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Price; none where it is not known.
    pub cost: Option<f64>,
}

/// `tree switch`, `select`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// The view's tip.
    pub tip: PositionId,
    /// Short id of the node shown there.
    #[serde(skip)]
    pub short_id: String,
    /// The sibling that was gone to, where one was.
    #[serde(skip)]
    pub sibling: Option<SiblingReached>,
}

/// A sibling as it is gone to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingReached {
    pub short_id: String,
    pub text: String,
    /// Its number among the siblings, from 1.
    pub number: usize,
    /// How many siblings there are, itself included.
    pub of: usize,
    /// The number of the one that was left.
    pub from: usize,
    /// Turns of a conversation that follow the one that was left.
    pub left: usize,
    /// Who says it, in a dialogue.
    pub role: Option<Role>,
}

/// `tree compact`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compacted {
    /// Positions that leave the window, the last maybe in part.
    pub leaves: u64,
    /// Positions that come back into it, where it was moved further down before.
    pub returns: u64,
    /// Characters of those that leave.
    pub chars: u64,
    /// What remembers them: `observed`, `fallback` or `nothing`.
    pub covered_by: &'static str,
    /// The position the window starts at.
    pub start: PositionId,
    /// The passage there by short id and first words, for people.
    #[serde(skip)]
    pub start_named: String,
    /// Whether the start is another one than before.
    #[serde(skip)]
    pub moves: bool,
    /// Whether it was only looked at.
    #[serde(skip)]
    pub dry_run: bool,
}

/// `tree undo`, `redo`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stepped {
    /// The operation; none when it was a keystroke.
    pub operation: Option<Seq>,
    /// Kind of the operation that was undone or redone; none when it was a keystroke.
    pub kind: Option<OpKind>,
    /// What that operation was about, for people: its first node with its first words, or the first thing it changed.
    #[serde(skip)]
    pub about: String,
    /// Words that came into the text and went out of it with this step.
    #[serde(skip)]
    pub words: WordChange,
    /// Whether it was redone.
    #[serde(skip)]
    pub redone: bool,
    /// Whether anything changed: not where all was left alone.
    pub changed: bool,
    /// Cells left alone, because something else had set them meanwhile.
    pub skipped: Vec<String>,
}

/// `tree log`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operations {
    /// The operations, newest first.
    pub operations: Vec<OperationShown>,
    /// `--before` of the next page, if there is one.
    pub next: Option<u64>,
}

/// An operation as shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationShown {
    /// Its number.
    pub seq: Seq,
    /// What it was.
    pub kind: OpKind,
    /// In which view.
    pub view: Option<String>,
    /// Who did it.
    pub agent: String,
    /// When, ms since 1970.
    pub at: i64,
    /// The nodes it made.
    pub nodes: Vec<NodeId>,
    /// The cells it set.
    pub changes: Vec<String>,
}

/// `tree view list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Views {
    /// The views.
    pub views: Vec<ViewLine>,
}

/// A view of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewLine {
    /// Its name.
    pub name: String,
    /// Its tip.
    pub tip: PositionId,
    /// The passage there by short id and first words, for people.
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

/// A tree something was done with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeNamed {
    /// Its id.
    pub tree: TreeId,
    /// Its short id.
    pub short_id: String,
}
