//! Forgetting: what is to be removed, where it was, and how occurrences of a text are found in bytes.
//!
//! The one exception to "append, never overwrite" (spec: loom §9, security §21). A node that holds a forgotten
//! text becomes a tombstone as a whole: its content was hashed as a whole, and a hole in it would be a forgery.
//! Its hashes stay. Titles, bookmarks, tags and drafts only lose the words.

use std::collections::{BTreeSet, HashMap};

use loom::content::{blob_name, plain_text};
use loom::operation::TimelineEffect;
use loom::{
    Block, CellChange, CellKey, CellValue, Digest, Draft, GenerationId, Millis, NodeId, OpKind, Operation,
    Seq, Slot, TreeId, ViewName,
};

use crate::error::StoreError;
use crate::job::JobId;

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forget {
    /// One node's content, and what quotes it.
    Node {
        /// Its tree.
        tree: TreeId,
        /// The node.
        node: NodeId,
    },
    /// Every occurrence of a text, in every tree.
    Text(String),
}

/// A place from which something is removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A node's content; the node is left as a tombstone.
    Node {
        /// Its tree.
        tree: TreeId,
        /// The node.
        node: NodeId,
    },
    /// A draft: the words, or the draft if it was a pending edit of the node.
    Draft {
        /// The tree.
        tree: TreeId,
        /// The view.
        view: ViewName,
        /// Which draft.
        slot: Slot,
    },
    /// What was shown to a model with a node.
    Shown {
        /// The tree.
        tree: TreeId,
        /// The node.
        node: NodeId,
    },
    /// Words in a title, bookmark or tag.
    Label {
        /// The tree.
        tree: TreeId,
    },
    /// Words in an operation record, whose hash stays.
    Operation {
        /// The tree.
        tree: TreeId,
        /// Its number.
        seq: Seq,
    },
    /// The bytes of a response.
    Response {
        /// The generation.
        generation: GenerationId,
    },
    /// The bytes of a manifest.
    Manifest {
        /// Its digest.
        digest: Digest,
    },
    /// The bytes of a body that manifests refer to.
    Body {
        /// Its digest.
        digest: Digest,
    },
    /// The payload or result of a job.
    Job {
        /// The job.
        job: JobId,
    },
}

impl Place {
    /// The tree it is in, if it is in one.
    pub(crate) const fn tree(&self) -> Option<TreeId> {
        match self {
            Self::Node { tree, .. }
            | Self::Draft { tree, .. }
            | Self::Shown { tree, .. }
            | Self::Label { tree }
            | Self::Operation { tree, .. } => Some(*tree),
            Self::Response { .. } | Self::Manifest { .. } | Self::Body { .. } | Self::Job { .. } => None,
        }
    }
}

/// What was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// Where it was.
    pub places: Vec<Place>,
    /// Blobs that no node shows any more: the caller removes their files.
    pub blobs: Vec<Digest>,
}

/// A text of a node shorter than this, in bytes, is not searched for in manifests, responses and bodies when the
/// node is forgotten: words like "yes" stand in every one of them. What names the node itself goes all the same.
pub const SHORTEST_TEXT: usize = 16;

/// Texts to be found in bytes, in each form in which they are written there: as they are, as in JSON, and as in
/// JSON without anything but ASCII.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needles {
    /// By their first bytes.
    long: HashMap<[u8; Self::KEY], Vec<Vec<u8>>>,
    /// Those with fewer bytes than a key.
    short: Vec<Vec<u8>>,
}

impl Needles {
    const KEY: usize = 8;

    /// Adds a text. The empty one is nowhere.
    pub(crate) fn add(&mut self, text: &str) {
        let json = escaped(text, false);
        let ascii = escaped(text, true);
        let upper = escaped_upper(text);
        for form in [text.to_owned(), json, ascii, upper] {
            self.add_bytes(form.into_bytes());
        }
    }

    fn add_bytes(&mut self, form: Vec<u8>) {
        if form.is_empty() {
            return;
        }
        let forms = match form.first_chunk::<{ Self::KEY }>() {
            Some(key) => self.long.entry(*key).or_default(),
            None => &mut self.short,
        };
        if !forms.contains(&form) {
            forms.push(form);
        }
    }

    /// Whether any of them occurs.
    pub(crate) fn occur_in(&self, bytes: &[u8]) -> bool {
        let long = !self.long.is_empty()
            && bytes.windows(Self::KEY).enumerate().any(|(at, window)| {
                let forms = window.first_chunk().and_then(|key| self.long.get(key));
                forms.is_some_and(|forms| forms.iter().any(|form| bytes[at..].starts_with(form)))
            });
        long || self.short.iter().any(|form| bytes.windows(form.len()).any(|window| window == form))
    }
}

/// A text as it stands between the quotes of a JSON string.
fn escaped(text: &str, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// As [`escaped`] in ASCII, with capital hexadecimal digits.
fn escaped_upper(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            out.push_str(&escaped(c.encode_utf8(&mut [0; 4]), true));
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        }
    }
    out
}

/// Words to be taken out of labels and drafts.
#[derive(Debug, Clone)]
pub(crate) enum Words {
    /// Every word: a whole tree goes.
    All,
    /// These.
    These(Vec<String>),
}

impl Words {
    /// Takes them out of a text; whether there were any.
    pub(crate) fn remove_from(&self, text: &mut String) -> bool {
        let Self::These(words) = self else {
            let found = !text.is_empty();
            text.clear();
            return found;
        };
        let mut found = false;
        // Taking words out can put the same words together anew.
        while let Some(word) = words.iter().find(|word| text.contains(word.as_str())) {
            *text = text.replace(word.as_str(), "");
            found = true;
        }
        found
    }

    /// Takes them out of a cell's name and value; whether there were any. The name of a view's agent stays.
    pub(crate) fn remove_from_cell(&self, key: &mut CellKey, values: &mut [&mut CellValue]) -> bool {
        if matches!(key, CellKey::View { .. }) {
            return false;
        }
        let mut found = if let CellKey::Tag { tag, .. } = key { self.remove_from(tag) } else { false };
        for value in values {
            if let CellValue::Text(text) = value {
                found |= self.remove_from(text);
            }
        }
        found
    }

    /// Takes them out of the cells of an operation; whether there were any.
    pub(crate) fn remove_from_changes(&self, cells: &mut [CellChange], skipped: &mut [CellKey]) -> bool {
        let mut found = false;
        for change in cells {
            found |= self.remove_from_cell(&mut change.key, &mut [&mut change.old, &mut change.new]);
        }
        for key in skipped {
            found |= self.remove_from_cell(key, &mut []);
        }
        found
    }

    /// The draft without them, if it holds any, now or in what can be undone.
    pub(crate) fn without(&self, draft: &Draft) -> Option<Draft> {
        let Self::These(words) = self else { return None };
        let holds = |text: &str| words.iter().any(|word| text.contains(word.as_str()));
        let splices = draft.splices.iter().chain(&draft.undone);
        let spliced = splices.flat_map(|splice| [&splice.deleted, &splice.inserted]).any(|text| holds(text));
        if !spliced && !holds(&draft.base_text) && !holds(&draft.text) && !held_once(draft, holds) {
            return None;
        }
        let mut text = draft.text.clone();
        self.remove_from(&mut text);
        let mut clean = Draft::new(draft.base, text);
        clean.revision = draft.revision + 1;
        Some(clean)
    }
}

/// Whether a draft held something at some point of what can be undone: of words typed letter by letter, no splice
/// holds the whole.
fn held_once(draft: &Draft, holds: impl Fn(&str) -> bool) -> bool {
    let mut step = draft.clone();
    while let Some(depth) = step.undone.last().map(|splice| splice.depth) {
        if !step.redo(depth).unwrap_or(false) {
            break;
        }
    }
    loop {
        if holds(&step.text) {
            return true;
        }
        let Some(depth) = step.splices.last().map(|splice| splice.depth) else { return false };
        if !step.undo(depth).unwrap_or(false) {
            return false;
        }
    }
}

/// What is to go, worked out from a [`Forget`] or a purge.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The nodes.
    pub(crate) nodes: BTreeSet<(TreeId, NodeId)>,
    /// The tree that goes as a whole: with its drafts, labels, responses and manifests.
    pub(crate) tree: Option<TreeId>,
    /// What manifests, bodies, responses and jobs are searched for.
    pub(crate) needles: Needles,
    /// What is taken out of labels and drafts elsewhere.
    pub(crate) words: Words,
    /// Whether a text is forgotten, wherever it stands.
    is_text: bool,
}

impl Target {
    /// Nothing yet, of a whole tree or of none.
    pub(crate) fn new(tree: Option<TreeId>) -> Self {
        Self {
            nodes: BTreeSet::new(),
            tree,
            needles: Needles::default(),
            words: Words::These(Vec::new()),
            is_text: false,
        }
    }

    /// Adds a node, and what cites it by id, quotes it at length or names a blob that it shows. Words are taken out of labels and drafts only
    /// where one node is forgotten: of a whole tree that would be a search for every sentence in it.
    pub(crate) fn add_node(&mut self, tree: TreeId, node: NodeId, content: &[Block]) {
        self.nodes.insert((tree, node));
        self.needles.add(&node.to_string());
        for blob in crate::blobs::shown_in(content) {
            self.needles.add(&blob_name(blob));
        }
        let text = plain_text(content);
        if text.len() >= SHORTEST_TEXT {
            self.needles.add(&text);
            if let (None, Words::These(words)) = (self.tree, &mut self.words) {
                words.push(text.into_owned());
            }
        }
    }

    /// The text to be forgotten everywhere.
    ///
    /// # Errors
    /// The empty text stands everywhere and is refused.
    pub(crate) fn text(text: &str) -> Result<Self, StoreError> {
        if text.is_empty() {
            return Err(loom::Refusal::Empty.into());
        }
        let mut target = Self::new(None);
        target.needles.add(text);
        target.words = Words::These(vec![text.to_owned()]);
        target.is_text = true;
        Ok(target)
    }

    /// Whether a content holds what is searched for.
    pub(crate) fn is_in(&self, content: &[Block]) -> bool {
        match content {
            [] => false,
            [Block::Text { text }] => self.needles.occur_in(text.as_bytes()),
            blocks => {
                // Words may run over from one text block to the next.
                let json = serde_json::to_vec(blocks).unwrap_or_default();
                self.needles.occur_in(plain_text(blocks).as_bytes()) || self.needles.occur_in(&json)
            }
        }
    }

    /// Whether nodes are searched for the text, and not only named.
    pub(crate) const fn searches_nodes(&self) -> bool {
        self.is_text
    }

    /// What is taken out of the labels and operations of a tree.
    pub(crate) fn words_of(&self, tree: TreeId) -> &Words {
        if self.tree == Some(tree) { &Words::All } else { &self.words }
    }
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
    use super::*;

    #[test]
    fn a_text_is_found_in_every_form_it_is_written_in() {
        let mut needles = Needles::default();
        needles.add("said \"né\"\nand left");
        for written in [
            "x said \"né\"\nand left y",
            r#"{"t":"said \"né\"\nand left"}"#,
            r#"{"t":"said \"n\u00e9\"\nand left"}"#,
            r#"{"t":"said \"n\u00E9\"\nand left"}"#,
        ] {
            assert!(needles.occur_in(written.as_bytes()), "{written}");
        }
        assert!(!needles.occur_in(b"said \"ne\" and left"));
        let mut short = Needles::default();
        short.add("né");
        assert!(short.occur_in("xné".as_bytes()) && !short.occur_in(b"n"));
        assert!(!Needles::default().occur_in(b"anything"));
    }

    #[test]
    fn words_do_not_grow_together_again() {
        let mut text = "ababcc".to_owned();
        assert!(Words::These(vec!["abc".into()]).remove_from(&mut text));
        assert_eq!(text, "");
    }

    #[test]
    fn a_draft_loses_words_that_were_typed_letter_by_letter() {
        let mut draft = Draft::new(None, "");
        for (index, text) in ["s", "se", "sec", "secret", "secr", "s", ""].into_iter().enumerate() {
            if let Some(splice) = draft.splice_to(text, 0, index as u64) {
                draft.splice(splice).unwrap();
            }
        }
        let clean = Words::These(vec!["secre".into()]).without(&draft).unwrap();
        assert!(clean.splices.is_empty() && clean.undone.is_empty());
        assert!(Words::These(vec!["other".into()]).without(&draft).is_none());
    }
}
