//! Files as a model is shown them, with marks in the place of secrets, and what it writes with such marks: a file's own secrets
//! are put back in their place (spec: security §11). A mark says which value it stands for, so that one that was shown for another
//! file, or for a text of a command, is refused: the file would lose what it hides.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use text::mask::{Masked, marks_in};

use crate::tool::ToolScope;

/// The text of a file, and how it is shown.
pub(super) struct ShownFile<'t> {
    text: &'t str,
    masked: Masked<'t>,
}

impl<'t> ShownFile<'t> {
    pub(super) fn new(scope: &ToolScope, text: &'t str) -> Self {
        Self { text, masked: scope.masker.mask_entering(text) }
    }

    /// What a model changes, and is told of where a change misses.
    pub(super) fn shown(&self) -> &str {
        &self.masked.text
    }

    /// A text of a model with the file's secrets in the place of their marks.
    pub(super) fn with_secrets(&self, text: &str) -> Result<String, String> {
        // A mark by which several texts are hidden stands for none of them.
        let mut hidden: HashMap<&str, Option<&str>> = HashMap::new();
        for span in &self.masked.spans {
            let secret = &self.text[span.input.clone()];
            let known = hidden.entry(&self.masked.text[span.output.clone()]).or_insert(Some(secret));
            *known = known.filter(|known| *known == secret);
        }
        // The file may be about marks.
        let written: HashSet<&str> = marks_in(self.text).map(|range| &self.text[range]).collect();
        let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
        let unchanged = Unchanged::of(self.shown(), text);
        for range in marks_in(text) {
            let mark = &text[range.clone()];
            let secret = match (hidden.get(mark), written.contains(mark)) {
                (Some(Some(secret)), false) => Some(*secret),
                (None, true) => None,
                (None, false) => {
                    return Err(format!(
                        "{mark} is no text of the file: it stands for a secret that is not there. Write without it, and \
                         change other lines with edit"
                    ));
                }
                _ => {
                    let Some(at) = unchanged.place(&range) else {
                        return Err(format!(
                            "{mark} stands for several texts of the file: change other lines with edit"
                        ));
                    };
                    let span = self.masked.spans.binary_search_by_key(&at, |span| span.output.start).ok();
                    span.map(|span| &self.text[self.masked.spans[span].input.clone()])
                }
            };
            if let Some(secret) = secret {
                out.push_str(&text[copied..range.start]);
                out.push_str(secret);
                copied = range.end;
            }
        }
        out.push_str(&text[copied..]);
        Ok(out)
    }
}

/// The bytes that two texts begin with, and end with.
struct Unchanged {
    begin: usize,
    /// Where the common end begins in the text before, and in the one after.
    end: (usize, usize),
}

impl Unchanged {
    fn of(before: &str, after: &str) -> Self {
        let same = |pairs: &mut dyn Iterator<Item = (u8, u8)>| pairs.take_while(|(a, b)| a == b).count();
        let begin = same(&mut before.bytes().zip(after.bytes()));
        let end = same(&mut before.bytes().skip(begin).rev().zip(after.bytes().skip(begin).rev()));
        Self { begin, end: (before.len() - end, after.len() - end) }
    }

    /// Where a place of the text after begins in the one before; none of one that was changed.
    fn place(&self, range: &Range<usize>) -> Option<usize> {
        if range.end <= self.begin {
            return Some(range.start);
        }
        range.start.checked_sub(self.end.1).map(|behind| self.end.0 + behind)
    }
}
