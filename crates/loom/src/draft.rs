//! Drafts: durable mutable text of a view, before it becomes a node.
//!
//! A draft is a base text, a revision and the splices since, in order. Two clients on one draft meet by
//! revision: a splice names the revision it was made against. Undo within a draft is a step back over its
//! splices, so keystrokes are part of the view's one timeline (spec: loom §1 *Draft*, §2 *One timeline*).

use serde::{Deserialize, Serialize};

use crate::id::{NodeId, PositionId};

/// Which draft of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    /// The working buffer after the last node.
    Buffer,
    /// A pending edit of the text at a position.
    Edit(PositionId),
}

/// One change of a draft's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    /// Byte offset in the text before the change.
    pub at: u64,
    /// What was taken out there.
    pub deleted: String,
    /// What was put in there.
    pub inserted: String,
    /// How many operations could be undone when it was made: keeps keystrokes and operations in one order.
    pub depth: u32,
    /// Counts the splices of a view, over all its drafts.
    pub tick: u64,
}

/// A draft that cannot take a splice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// The place is outside the text or inside a character.
    #[error("the place {at} is not a character boundary of a draft of {len} bytes")]
    Place {
        /// The place asked for, in bytes.
        at: u64,
        /// The draft's size, in bytes.
        len: u64,
    },
    /// The text to take out is not there.
    #[error("the draft does not hold the text to be replaced at byte {at}")]
    Differs {
        /// The place asked for, in bytes.
        at: u64,
    },
}

impl SpliceError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        "read the draft again"
    }
}

/// Splices kept before the oldest are folded into the base.
pub(crate) const MAX_SPLICES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The version it edits; none for the working buffer, and for a pending edit that holds nothing but
    /// undone keystrokes.
    pub base: Option<NodeId>,
    /// The text behind the first kept splice.
    pub base_text: String,
    /// What was done since, oldest first.
    pub splices: Vec<Splice>,
    /// What was undone, the latest last.
    pub undone: Vec<Splice>,
    pub revision: u64,
    pub text: String,
}

impl Draft {
    /// A draft that holds `text` and nothing to undo.
    pub fn new(base: Option<NodeId>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { base, base_text: text.clone(), splices: Vec::new(), undone: Vec::new(), revision: 0, text }
    }

    /// Whether the splices lead from the base to the text: they do unless the row is damaged.
    pub fn is_whole(&self) -> bool {
        let mut text = self.base_text.clone();
        let mut splices = self.splices.iter();
        splices.all(|splice| replace(&mut text, splice.at, &splice.deleted, &splice.inserted).is_ok())
            && text == self.text
    }

    /// Applies a splice and forgets what was undone.
    ///
    /// # Errors
    /// [`SpliceError`] when it does not fit the text; nothing changes.
    pub fn splice(&mut self, splice: Splice) -> Result<(), SpliceError> {
        replace(&mut self.text, splice.at, &splice.deleted, &splice.inserted)?;
        self.splices.push(splice);
        self.undone.clear();
        self.revision += 1;
        self.compact();
        Ok(())
    }

    /// The splice that turns the text into `wanted`, by the longest common beginning and end; none if it
    /// is that text already.
    pub fn splice_to(&self, wanted: &str, depth: u32, tick: u64) -> Option<Splice> {
        if self.text == wanted {
            return None;
        }
        let start = common_prefix(&self.text, wanted);
        let end = common_suffix(&self.text[start..], &wanted[start..]);
        Some(Splice {
            at: start as u64,
            deleted: self.text[start..self.text.len() - end].to_owned(),
            inserted: wanted[start..wanted.len() - end].to_owned(),
            depth,
            tick,
        })
    }

    /// Takes the newest splice back, if it was made at `depth`.
    ///
    /// # Errors
    /// [`SpliceError`] when the draft does not agree with its own splices (a damaged row).
    pub fn undo(&mut self, depth: u32) -> Result<bool, SpliceError> {
        let Some(last) = self.splices.last().filter(|splice| splice.depth == depth).cloned() else {
            return Ok(false);
        };
        replace(&mut self.text, last.at, &last.inserted, &last.deleted)?;
        self.splices.pop();
        self.undone.push(last);
        self.revision += 1;
        Ok(true)
    }

    /// Does the latest undone splice again, if it was made at `depth`.
    ///
    /// # Errors
    /// As [`Draft::undo`].
    pub fn redo(&mut self, depth: u32) -> Result<bool, SpliceError> {
        let Some(last) = self.undone.last().filter(|splice| splice.depth == depth).cloned() else {
            return Ok(false);
        };
        replace(&mut self.text, last.at, &last.deleted, &last.inserted)?;
        self.undone.pop();
        self.splices.push(last);
        self.revision += 1;
        Ok(true)
    }

    /// Gives up what could be redone; whether there was anything. Something else was done since: a store calls
    /// it on a view's other drafts at a keystroke, a plan on all of them at an operation.
    pub fn forget_undone(&mut self) -> bool {
        let any = !self.undone.is_empty();
        if any {
            self.undone.clear();
            self.revision += 1;
        }
        any
    }

    /// The tick of the newest splice made at `depth`.
    pub(crate) fn newest_at(&self, depth: u32) -> Option<u64> {
        self.splices.last().filter(|splice| splice.depth == depth).map(|splice| splice.tick)
    }

    /// The tick of the latest undone splice made at `depth`.
    pub(crate) fn undone_at(&self, depth: u32) -> Option<u64> {
        self.undone.last().filter(|splice| splice.depth == depth).map(|splice| splice.tick)
    }

    /// Folds the oldest splices into the base once there are more than [`MAX_SPLICES`]; they can no longer
    /// be undone one by one.
    fn compact(&mut self) {
        if self.splices.len() <= MAX_SPLICES {
            return;
        }
        let fold = self.splices.len() - MAX_SPLICES / 2;
        for splice in self.splices.drain(..fold) {
            // A kept splice fitted when it was made; were the row damaged, the text itself still stands.
            if replace(&mut self.base_text, splice.at, &splice.deleted, &splice.inserted).is_err() {
                break;
            }
        }
    }
}

/// Replaces `old` at byte `at` of `text` by `new`.
fn replace(text: &mut String, at: u64, old: &str, new: &str) -> Result<(), SpliceError> {
    let len = text.len() as u64;
    let start =
        usize::try_from(at).ok().filter(|start| text.is_char_boundary(*start) && *start <= text.len());
    let start = start.ok_or(SpliceError::Place { at, len })?;
    if !text[start..].starts_with(old) {
        return Err(SpliceError::Differs { at });
    }
    text.replace_range(start..start + old.len(), new);
    Ok(())
}

/// Length in bytes of the longest common beginning, on a character boundary.
fn common_prefix(a: &str, b: &str) -> usize {
    let mut len = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    while !a.is_char_boundary(len) {
        len -= 1;
    }
    len
}

/// Length in bytes of the longest common end, on a character boundary.
fn common_suffix(a: &str, b: &str) -> usize {
    let mut len = a.bytes().rev().zip(b.bytes().rev()).take_while(|(x, y)| x == y).count();
    while !a.is_char_boundary(a.len() - len) || !b.is_char_boundary(b.len() - len) {
        len -= 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn typed(draft: &mut Draft, wanted: &str, depth: u32) {
        let tick = draft.revision + 1;
        if let Some(splice) = draft.splice_to(wanted, depth, tick) {
            draft.splice(splice).unwrap();
        }
    }

    #[test]
    fn undo_and_redo_step_over_keystrokes_of_their_depth_only() {
        let mut draft = Draft::new(None, "");
        typed(&mut draft, "rain", 1);
        typed(&mut draft, "rain fell", 2);
        assert!(!draft.undo(1).unwrap(), "a splice of depth 2 is the newest");
        assert!(draft.undo(2).unwrap());
        assert_eq!(draft.text, "rain");
        assert!(!draft.redo(1).unwrap());
        assert!(draft.redo(2).unwrap());
        assert_eq!(draft.text, "rain fell");
    }

    #[test]
    fn a_splice_that_does_not_fit_changes_nothing() {
        let mut draft = Draft::new(None, "añb");
        let bad = Splice { at: 2, deleted: String::new(), inserted: "x".into(), depth: 0, tick: 1 };
        assert_eq!(draft.splice(bad), Err(SpliceError::Place { at: 2, len: 4 }));
        let wrong = Splice { at: 0, deleted: "b".into(), inserted: "x".into(), depth: 0, tick: 1 };
        assert_eq!(draft.splice(wrong), Err(SpliceError::Differs { at: 0 }));
        assert_eq!((draft.text.as_str(), draft.revision), ("añb", 0));
    }

    proptest! {
        #[test]
        fn every_text_is_reached_and_all_kept_steps_can_be_undone(texts in prop::collection::vec("[aéż🦀\u{301} ]{0,12}", 1..40)) {
            let mut draft = Draft::new(None, "");
            let mut seen = vec![String::new()];
            for wanted in &texts {
                typed(&mut draft, wanted, 0);
                prop_assert_eq!(&draft.text, wanted);
                if seen.last() != Some(wanted) { seen.push(wanted.clone()); }
            }
            while draft.undo(0).unwrap() {
                seen.pop();
                prop_assert_eq!(Some(&draft.text), seen.last());
            }
            prop_assert_eq!(draft.text.as_str(), "");
            while draft.redo(0).unwrap() {}
            prop_assert_eq!(Some(&draft.text), texts.last());
        }

        #[test]
        fn compaction_keeps_the_text(count in 250usize..600) {
            let mut draft = Draft::new(None, "");
            for index in 0..count {
                let wanted = format!("{}{}", draft.text, (b'a' + (index % 26) as u8) as char);
                typed(&mut draft, &wanted, 0);
            }
            prop_assert!(draft.splices.len() <= MAX_SPLICES);
            let mut replayed = draft.base_text.clone();
            for splice in &draft.splices {
                replace(&mut replayed, splice.at, &splice.deleted, &splice.inserted).unwrap();
            }
            prop_assert_eq!(&replayed, &draft.text);
        }
    }
}
