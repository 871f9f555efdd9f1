//! Text from elsewhere, in which what speaks to a model in another's name is found and made harmless (spec: capabilities §5,
//! security §25; cases: attacks §1).
//!
//! A tripwire, not a wall: where a text comes from, how long it is and what frames it are the protection; a text in another
//! language, or in other words, passes. What is found is found in a copy (module `matching`) in which look-alikes, accents,
//! markup, entities and escapes are folded, and acted on in the original:
//!
//! | Found | Done |
//! |---|---|
//! | role tags and tokens of chat templates (`<system>`, `<\|im_start\|>`, `[INST]`) | the bracket that opens them becomes `(` |
//! | role markers at the start of a line, a bullet, a step, a quotation or a heading (`System:`) | put in brackets |
//! | phrases that override instructions, long runs of Base64 or hexadecimal digits | told |
//! | characters that are not seen and belong to no word or emoji, controls but tab and line feed | removed; line ends of other kinds become line feeds |
//!
//! One pass is the fixpoint. A tag is told by what *follows* its opening bracket, up to the first character that cannot be
//! of a name, and neither a bracket that became `(` nor one that was put around a marker is of a name: what was no tag
//! before is none afterwards, however tags are nested. So nothing is matched against a text that was changed, the time is
//! linear, and the text grows by two bytes a line at most.

mod findings;
mod hidden;
mod matching;
mod phrases;
mod roles;

use std::borrow::Cow;
use std::ops::Range;

pub use findings::findings;
use hidden::Seen;
use matching::MatchingCopy;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DetectionKind {
    /// Characters that are not seen, or that a terminal or an editor obeys.
    Hidden,
    /// A role tag, or a token of a chat template.
    RoleTag,
    /// A role at the start of a line, as in a transcript.
    RoleMarker,
    /// Words that would have instructions ignored or told. English alone is known.
    OverridePhrase,
    /// A run of Base64 or hexadecimal digits that is longer than names and digests are.
    Encoded,
}

/// Something that was found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    pub kind: DetectionKind,
    /// Place in the original, in bytes.
    pub bytes: Range<usize>,
}

/// A text with what was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sanitised<'a> {
    /// The original where there was nothing to do.
    pub text: Cow<'a, str>,
    /// By their places; none twice.
    pub detections: Vec<Detection>,
}

/// A change of the text without hidden characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Edit {
    /// The bracket here becomes `(`.
    Disarm(usize, usize),
    /// What stands here is put in brackets.
    Bracket(usize, usize),
}

/// Finds and disarms. Idempotent; the result depends on the text alone.
#[must_use]
pub fn sanitise(text: &str) -> Sanitised<'_> {
    let seen = Seen::of(text);
    let mut edits = Vec::new();
    let mut detections: Vec<Detection> = seen
        .hidden
        .iter()
        .map(|bytes| Detection { kind: DetectionKind::Hidden, bytes: bytes.clone() })
        .collect();
    let mut found = |kind, start, end| {
        detections.push(Detection { kind, bytes: seen.original(start, end) });
    };
    // What a comment parts is one word, and what stands within a comment is read by a model as well.
    let with_comments = MatchingCopy::of(&seen.text);
    let without = MatchingCopy::without_comments(&seen.text);
    let mut copies: Vec<MatchingCopy> = [Some(with_comments), without].into_iter().flatten().collect();
    for copy in &copies {
        for (kind, edit, (start, end)) in roles::find(copy) {
            edits.push(edit);
            found(kind, start, end);
        }
    }
    // What is a tag or a link depends on brackets, which edits change: only what is told is looked for without them.
    copies.extend(MatchingCopy::without_markup(&seen.text));
    for (start, end) in copies.iter().flat_map(phrases::find) {
        found(DetectionKind::OverridePhrase, start, end);
    }
    for (start, end) in phrases::encoded(&seen.text) {
        found(DetectionKind::Encoded, start, end);
    }
    detections.sort_by_key(|found| (found.bytes.start, found.bytes.end, found.kind));
    detections.dedup();
    edits.sort();
    edits.dedup();
    let text = if edits.is_empty() { seen.text } else { Cow::Owned(edited(&seen.text, &edits)) };
    Sanitised { text, detections }
}

/// A text with some changes, by which no byte is changed twice.
fn edited(text: &str, edits: &[Edit]) -> String {
    let mut places: Vec<(usize, usize, &str)> = Vec::with_capacity(edits.len() * 2);
    for edit in edits {
        match *edit {
            Edit::Disarm(start, end) => places.push((start, end, "(")),
            Edit::Bracket(start, end) => places.extend([(start, start, "["), (end, end, "]")]),
        }
    }
    places.sort_unstable();
    let mut out = String::with_capacity(text.len() + places.len());
    let mut at = 0;
    for (start, end, put) in places {
        // Places of one kind are disjoint, and a marker begins and ends at characters that no tag opens with.
        if start >= at {
            out += &text[at..start];
            out += put;
            at = end;
        }
    }
    out + &text[at..]
}
