//! Words that are taken out of labels and drafts, which stay.

use loom::{CellChange, CellKey, CellValue, Draft};
use text::mask::TextFinder;

use super::SHORTEST_TEXT;
use crate::rows::bytes::Out;

/// Words to be taken out of the labels and drafts of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Words<'a> {
    /// Every word: a whole tree goes.
    All,
    These {
        removed: &'a Removed,
        /// Texts that go only where they are all there is: others may have some of their words too.
        alone: &'a [String],
    },
}

/// Texts to be removed, and what finds them in other forms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Removed {
    texts: Vec<String>,
    finder: TextFinder,
}

impl Removed {
    /// Adds a text, which is not empty.
    pub(crate) fn add(&mut self, text: &str) {
        self.finder.add(text);
        self.texts.push(text.to_owned());
    }
}

impl Words<'_> {
    /// Takes them out of a text; whether there were any.
    pub(crate) fn remove_from(&self, text: &mut String) -> bool {
        let Self::These { removed, alone } = self else {
            let found = !text.is_empty();
            text.clear();
            return found;
        };
        if !text.is_empty() && alone.contains(text) {
            text.clear();
            return true;
        }
        let mut found = false;
        // Taking words out can put the same words together anew.
        while let Some(word) = removed.texts.iter().find(|word| text.contains(word.as_str())) {
            *text = text.replace(word.as_str(), "");
            found = true;
        }
        // What holds them in another form than their own goes whole.
        if removed.finder.occurs_in(text.as_bytes()) {
            text.clear();
            found = true;
        }
        found
    }

    /// Whether the bytes of a record that cannot be read may hold them. A short text stands in any other: it is looked
    /// for as it is written where it is all there is.
    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        let Self::These { removed, alone } = self else { return true };
        let stands = |text: &String| {
            let mut written = Out::default();
            written.text(text);
            let sought = if text.len() < SHORTEST_TEXT { &written.0 } else { text.as_bytes() };
            !text.is_empty() && bytes.windows(sought.len()).any(|at| at == sought)
        };
        removed.finder.occurs_in(bytes) || alone.iter().any(stands)
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

    /// Takes them out of the cells of an operation; whether there were any. A tag that holds some is no cell any more.
    pub(crate) fn remove_from_changes(
        &self,
        cells: &mut Vec<CellChange>,
        skipped: &mut Vec<CellKey>,
    ) -> bool {
        let before = (cells.len(), skipped.len());
        cells.retain(|change| !self.is_in_tag(&change.key));
        skipped.retain(|key| !self.is_in_tag(key));
        let mut found = before != (cells.len(), skipped.len());
        for change in cells {
            found |= self.remove_from_cell(&mut change.key, &mut [&mut change.old, &mut change.new]);
        }
        found
    }

    fn is_in_tag(&self, key: &CellKey) -> bool {
        matches!(key, CellKey::Tag { .. }) && self.remove_from_cell(&mut key.clone(), &mut [])
    }

    /// The draft without them, if it holds any, now or in what can be undone.
    pub(crate) fn without(&self, draft: &Draft) -> Option<Draft> {
        let Self::These { removed, .. } = self else { return None };
        let holds = |text: &str| removed.finder.occurs_in(text.as_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(text: &str) -> Removed {
        let mut removed = Removed::default();
        removed.add(text);
        removed
    }

    const fn words(removed: &Removed) -> Words<'_> {
        Words::These { removed, alone: &[] }
    }

    #[test]
    fn what_holds_words_in_another_form_goes_whole() {
        let mut text = r#"see {"a":"one \u0074wo"}"#.to_owned();
        assert!(words(&removed("one two")).remove_from(&mut text));
        assert_eq!(text, "");
    }

    #[test]
    fn words_do_not_grow_together_again() {
        let mut text = "ababcc".to_owned();
        assert!(words(&removed("abc")).remove_from(&mut text));
        assert_eq!(text, "");
    }

    #[test]
    fn a_damaged_record_holds_a_short_text_where_it_is_all_there_is() {
        let bytes = |text: &str| {
            let mut out = Out::default();
            out.fixed(b"\x05");
            out.text(text);
            out.0
        };
        let removed = Removed::default();
        let holds = |alone: &str, held: &str| {
            Words::These { removed: &removed, alone: &[alone.to_owned()] }.are_in(&bytes(held))
        };
        assert!(holds("yes", "yes") && !holds("yes", "yesterday") && !holds("e", "yes") && !holds("", "yes"));
        let title = "It rained all day on the lake";
        assert!(holds(title, title) && !holds(title, "It snowed"));
        assert!(holds(title, &format!("{title} and more")), "its length may be what is damaged");
    }

    #[test]
    fn a_draft_loses_words_that_were_typed_letter_by_letter() {
        let mut draft = Draft::new(None, "");
        for (index, text) in ["s", "se", "sec", "secret", "secr", "s", ""].into_iter().enumerate() {
            if let Some(splice) = draft.splice_to(text, 0, index as u64) {
                draft.splice(splice).unwrap();
            }
        }
        let clean = words(&removed("secre")).without(&draft).unwrap();
        assert!(clean.splices.is_empty() && clean.undone.is_empty());
        assert!(words(&removed("other")).without(&draft).is_none());
    }
}
