//! Forgetting: what is to be removed, where it was, and how occurrences of a text are found in bytes.
//!
//! The one exception to "append, never overwrite" (spec: loom §9, security §21). A node that holds a forgotten
//! text becomes a tombstone as a whole: its content was hashed as a whole, and a hole in it would be a forgery.
//! Its hashes stay. Titles, bookmarks, tags and drafts only lose the words.

mod words;

use std::collections::{BTreeMap, BTreeSet};

use loom::content::{blob_name, plain_text};
use loom::operation::TimelineEffect;
use loom::{Block, Digest, GenerationId, Millis, NodeId, OpKind, Operation, Seq, Slot, TreeId, ViewName};
use text::mask::TextFinder;
use text::sanitiser::sanitise;
use text::terminal::one_line;

use crate::error::StoreError;
use crate::job::JobId;
use crate::outcome::OutcomeId;
use crate::session::SessionId;

pub(crate) use words::{Removed, Words};

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forget {
    /// One node's content, and what quotes it.
    Node { tree: TreeId, node: NodeId },
    /// Every occurrence of a text, in every tree.
    Text(String),
}

/// A place from which something is removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForgottenPlace {
    /// A node's content; the node is left as a tombstone.
    Node { tree: TreeId, node: NodeId },
    /// The content of a node that quotes a forgotten one; it is left as a tombstone.
    Quote { tree: TreeId, node: NodeId, how: QuotedAs },
    /// A draft: the words, or the draft if it was a pending edit of the node.
    Draft { tree: TreeId, view: ViewName, slot: Slot },
    /// What was shown to a model with a node.
    Shown { tree: TreeId, node: NodeId },
    /// Words in a title, bookmark or tag.
    Label { tree: TreeId },
    /// Words in an operation record, whose hash stays.
    Operation { tree: TreeId, seq: Seq },
    /// The bytes of a response.
    Response { generation: GenerationId },
    /// The bytes of a manifest.
    Manifest { digest: Digest },
    /// The bytes of a body that manifests refer to.
    Body { digest: Digest },
    /// An answer under way whose request held it, or that holds it: it is stopped, and what came of it is dropped.
    Running { generation: GenerationId },
    /// The payload or result of a job.
    Job { job: JobId },
    /// What running work asked a person, and the answer.
    Question { question: [u8; 16] },
    /// The name or the settings of a session.
    Session { session: SessionId },
    /// What a session noted.
    Outcome { session: SessionId, outcome: OutcomeId },
    /// A name that stays: of a view, author or model, which hashes are of; of a model that a session is set to; of a
    /// workspace, which is a folder.
    Name { name: String },
    /// A damaged row that cannot be read, in whose bytes it was not found: what it is, with its name.
    Damaged { tree: TreeId, row: String },
}

/// How a node quotes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotedAs {
    /// A node edited from the quoted one, which still holds words of it.
    Version,
    /// A node that branched off inside the quoted one, and holds its beginning.
    Branch,
    /// A node that holds all text of the quoted one.
    Copy,
}

impl ForgottenPlace {
    /// The tree it is in, if it is in one.
    pub(crate) const fn tree(&self) -> Option<TreeId> {
        match self {
            Self::Node { tree, .. }
            | Self::Quote { tree, .. }
            | Self::Draft { tree, .. }
            | Self::Shown { tree, .. }
            | Self::Label { tree }
            | Self::Operation { tree, .. }
            | Self::Damaged { tree, .. } => Some(*tree),
            Self::Response { .. }
            | Self::Manifest { .. }
            | Self::Body { .. }
            | Self::Running { .. }
            | Self::Job { .. }
            | Self::Question { .. }
            | Self::Session { .. }
            | Self::Outcome { .. }
            | Self::Name { .. } => None,
        }
    }

    /// Whether nothing is removed from it: it holds what is forgotten after that too, or may hold it.
    pub const fn stays(&self) -> bool {
        matches!(self, Self::Name { .. } | Self::Damaged { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forgotten {
    pub places: Vec<ForgottenPlace>,
    /// Blobs that no node shows any more. Their files are among what is left to be removed
    /// ([`crate::Store::unfinished_removal`]).
    pub blobs: Vec<Digest>,
    /// Whether it was taken out of the engine's files; if not, [`crate::Store::end_forgetting`] does it.
    pub is_scrubbed: bool,
}

/// What is left to be done where rows were removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnfinishedRemoval {
    /// The note that the engine's files may hold what was removed.
    pub(crate) scrub: Option<Vec<u8>>,
    /// Blobs that removed nodes showed, whose files may be there still.
    pub blobs: Vec<ForgottenBlob>,
}

impl UnfinishedRemoval {
    pub const fn has_to_scrub(&self) -> bool {
        self.scrub.is_some()
    }
}

/// A blob that a removed node showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenBlob {
    pub blob: Digest,
    pub(crate) note: Vec<u8>,
}

/// A text of a node shorter than this, in bytes, is not searched for in manifests, responses and bodies when the
/// node is forgotten: words like "yes" stand in every one of them. What names the node itself goes all the same, with
/// the bodies of requests that sent it and, in its tree, titles and marks that say nothing else.
pub const SHORTEST_TEXT: usize = 16;

/// What is to go, worked out from a [`Forget`] or a purge.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The nodes that were named.
    pub(crate) named: BTreeSet<(TreeId, NodeId)>,
    /// The tree that goes as a whole: with its drafts, labels, responses and manifests.
    pub(crate) tree: Option<TreeId>,
    /// What manifests, bodies, responses and jobs are searched for.
    finder: TextFinder,
    /// What nodes are searched for: a text that is forgotten, or the whole text of a node.
    in_nodes: TextFinder,
    /// The text of the node that is forgotten, if it is one.
    pub(crate) quoted: Option<String>,
    /// What is taken out of labels and drafts that stay.
    removed: Removed,
    /// The text of the node that is forgotten without white space at its ends, if it is short.
    short: Option<TextFinder>,
    /// Titles and marks that go from a tree where they say just this: a short text of it that is forgotten, and the
    /// title that the tree took from a text that goes.
    alone: BTreeMap<TreeId, Vec<String>>,
    /// What entries of ledgers are searched for.
    in_notes: Vec<String>,
}

/// Fewest bytes of a text that a ledger may have in a writing of its own: of a shorter one that may be a letter.
const SHORTEST_NOTED: usize = 8;

/// The writings that a ledger may have of a text: in one line, as it is and disarmed.
fn noted(text: &str) -> impl Iterator<Item = String> {
    let mut line = String::with_capacity(text.len());
    for c in text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }) {
        if c != ' ' || !line.ends_with(' ') {
            line.push(c);
        }
    }
    let disarmed = sanitise(&line).text.into_owned();
    [disarmed, line].into_iter().filter(|noted| noted.trim().len() >= SHORTEST_NOTED)
}

impl Target {
    fn empty() -> Self {
        Self {
            named: BTreeSet::new(),
            tree: None,
            finder: TextFinder::default(),
            in_nodes: TextFinder::default(),
            quoted: None,
            removed: Removed::default(),
            short: None,
            alone: BTreeMap::new(),
            in_notes: Vec::new(),
        }
    }

    /// A whole tree, to which its nodes are added one by one.
    pub(crate) fn of_tree(tree: TreeId) -> Self {
        Self { tree: Some(tree), ..Self::empty() }
    }

    /// One node, with what quotes it.
    pub(crate) fn of_node(tree: TreeId, node: NodeId, content: &[Block]) -> Self {
        let mut target = Self::empty();
        target.named.insert((tree, node));
        target.add_node(node, content);
        let text = plain_text(content);
        if text.len() >= SHORTEST_TEXT {
            target.in_nodes.add(&text);
        } else if !text.is_empty() {
            target.alone.insert(tree, vec![text.clone().into_owned()]);
        }
        let sent = text.trim();
        if sent.len() < SHORTEST_TEXT && !sent.is_empty() {
            let mut finder = TextFinder::default();
            finder.add_without_base64(sent);
            target.short = Some(finder);
        }
        target.quoted = Some(text.into_owned());
        target
    }

    /// Adds the title that a tree took from a text; whether it is new.
    pub(crate) fn add_title(&mut self, tree: TreeId, title: String) -> bool {
        let alone = self.alone.entry(tree).or_default();
        let is_new = !alone.contains(&title);
        if is_new {
            alone.push(title);
        }
        is_new
    }

    /// A text, wherever it stands.
    ///
    /// # Errors
    /// The empty text stands everywhere and is refused.
    pub(crate) fn text(text: &str) -> Result<Self, StoreError> {
        if text.is_empty() {
            return Err(loom::Refusal::Empty.into());
        }
        let mut target = Self::empty();
        target.finder.add(text);
        target.in_nodes.add(text);
        target.removed.add(text);
        target.in_notes.extend(noted(text));
        // As it stands in titles.
        let line = one_line(text);
        if line != text {
            target.removed.add(&line);
        }
        Ok(target)
    }

    /// Adds what cites a node by id, quotes it at length or names a blob that it shows. Words are taken out of labels
    /// and drafts only where no whole tree goes: that would be a search for every sentence in it. What was sent may lack
    /// the white space at the ends of a text.
    pub(crate) fn add_node(&mut self, node: NodeId, content: &[Block]) {
        self.finder.add_without_base64(&node.to_string());
        for blob in crate::blobs::shown_in(content) {
            self.finder.add_without_base64(&blob_name(blob));
        }
        let text = plain_text(content);
        let sent = text.trim();
        if sent.len() >= SHORTEST_TEXT {
            if self.tree.is_some() {
                self.finder.add_without_base64(sent);
            } else {
                self.finder.add(sent);
            }
        }
        if text.len() >= SHORTEST_TEXT && self.tree.is_none() {
            self.removed.add(&text);
            self.in_notes.extend(noted(sent).filter(|noted| noted.len() >= SHORTEST_TEXT));
        }
    }

    /// Whether an entry of a ledger, which is a text in a writing of its own, holds what is searched for.
    pub(crate) fn is_in_noted(&self, text: &str) -> bool {
        // An entry in brackets has round ones within.
        let is_in_brackets = text.starts_with('[') && text.ends_with(']');
        let round = |sought: &str| sought.replace('[', "(").replace(']', ")");
        let holds =
            |sought: &String| text.contains(sought) || is_in_brackets && text.contains(&round(sought));
        self.is_in_bytes(text.as_bytes()) || self.in_notes.iter().any(holds)
    }

    /// Whether bytes hold what is searched for.
    pub(crate) fn is_in_bytes(&self, bytes: &[u8]) -> bool {
        self.finder.occurs_in(bytes)
    }

    /// Whether the body of a request that sent a node holds its text, which is short.
    pub(crate) fn is_in_sent(&self, body: &[u8]) -> bool {
        self.short.as_ref().is_some_and(|finder| finder.occurs_in(body))
    }

    /// Whether a node is forgotten whose text is short.
    pub(crate) const fn is_short(&self) -> bool {
        self.short.is_some()
    }

    /// Whether a content holds the text that nodes are searched for.
    pub(crate) fn is_in(&self, content: &[Block]) -> bool {
        match content {
            [] => false,
            [Block::Text { text }] => self.in_nodes.occurs_in(text.as_bytes()),
            blocks => {
                // Words may run over from one text block to the next.
                let json = serde_json::to_vec(blocks).unwrap_or_default();
                self.in_nodes.occurs_in(plain_text(blocks).as_bytes()) || self.in_nodes.occurs_in(&json)
            }
        }
    }

    /// Whether nodes are searched for a text.
    pub(crate) fn searches_nodes(&self) -> bool {
        !self.in_nodes.is_empty()
    }

    /// What is taken out of the labels, drafts and operations of a tree.
    pub(crate) fn words_of(&self, tree: TreeId) -> Words<'_> {
        if self.tree == Some(tree) {
            return Words::All;
        }
        Words::These { removed: &self.removed, alone: self.alone.get(&tree).map_or(&[], Vec::as_slice) }
    }
}

/// Whether two texts have a run of [`SHORTEST_TEXT`] bytes in common; of a shorter one, all of it.
pub(crate) fn share_words(quoted: &str, other: &str) -> bool {
    if quoted.len() < SHORTEST_TEXT {
        return !quoted.is_empty() && other.contains(quoted);
    }
    let runs: BTreeSet<&[u8]> = quoted.as_bytes().windows(SHORTEST_TEXT).collect();
    other.as_bytes().windows(SHORTEST_TEXT).any(|run| runs.contains(run))
}

/// The record of a removal in a tree's log.
pub(crate) fn operation(tree: TreeId, at: Millis) -> Operation {
    Operation {
        tree,
        agent: loom::Author::OWNER.to_owned(),
        view: None,
        kind: OpKind::Forget,
        at,
        cells: Vec::new(),
        nodes: Vec::new(),
        skipped: Vec::new(),
        timeline: TimelineEffect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::share_words;

    #[test]
    fn an_edit_that_keeps_words_shares_them() {
        assert!(share_words("the key is under the mat, he said", "now the key is under the mat"));
        assert!(!share_words("the key is under the mat, he said", "something else altogether, it is"));
        assert!(share_words("yes", "oh yes") && !share_words("yes", "no") && !share_words("", "no"));
    }
}
