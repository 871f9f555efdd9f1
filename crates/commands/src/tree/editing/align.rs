//! Which passage a changed text belongs to: what stayed stays where it is, what is new goes where it was written.
//!
//! An insertion between two passages belongs to the one on its left, or to an empty one that stands between them; what
//! replaces something belongs to the passage where that begins (spec: loom §2 *Rules*). Together the texts of the
//! passages are the changed text, byte for byte.

use std::ops::Range;
use std::time::{Duration, Instant};

use loom::attribution::{Stretch, stretches};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// How long lines are compared; beyond it what is left counts as replaced.
const MOST_TIME: Duration = Duration::from_secs(5);

/// The texts of passages after their joint text became `new`: as many as there were.
pub(super) fn distribute(old: &[&str], new: &str) -> Vec<String> {
    match old {
        [] => Vec::new(),
        [_] => vec![new.to_owned()],
        _ => Distribution::of(old).fill(new),
    }
}

struct Distribution {
    joined: String,
    /// Where each passage begins in `joined`, and its end.
    bounds: Vec<usize>,
    texts: Vec<String>,
    /// Bytes of `joined` that are passed.
    at: usize,
}

impl Distribution {
    fn of(old: &[&str]) -> Self {
        let mut bounds = vec![0];
        bounds.extend(old.iter().scan(0, |at, text| {
            *at += text.len();
            Some(*at)
        }));
        Self { joined: old.concat(), bounds, texts: vec![String::new(); old.len()], at: 0 }
    }

    fn fill(mut self, new: &str) -> Vec<String> {
        let joined = std::mem::take(&mut self.joined);
        for change in lines(&joined, new) {
            match change {
                Change::Kept { old, new: to } => self.keep(old, &new[to]),
                Change::Replaced { old, new: to } => {
                    let found = stretches(&joined[old.clone()], &new[to.clone()]);
                    for (index, stretch) in found.iter().enumerate() {
                        match stretch {
                            Stretch::Kept { old: from, new: within } => {
                                self.keep(shifted(from, old.start), &new[shifted(within, to.start)]);
                            }
                            Stretch::New { new: within } => {
                                let next = match found.get(index + 1) {
                                    Some(Stretch::Kept { old: from, .. }) => from.start + old.start,
                                    _ => old.end,
                                };
                                self.write(&new[shifted(within, to.start)], next > self.at);
                            }
                        }
                    }
                    self.at = old.end;
                }
            }
        }
        self.texts
    }

    /// Text that stands in both, from `old` on.
    fn keep(&mut self, old: Range<usize>, mut text: &str) {
        let mut at = old.start;
        while at < old.end {
            let passage = self.passage_behind(at);
            let size = self.bounds[passage + 1].min(old.end) - at;
            let (here, rest) = text.split_at(size);
            self.texts[passage].push_str(here);
            (at, text) = (at + size, rest);
        }
        self.at = old.end;
    }

    /// Text that is new, written over something or between.
    fn write(&mut self, text: &str, over: bool) {
        let passage = if over { self.passage_behind(self.at) } else { self.passage_before(self.at) };
        self.texts[passage].push_str(text);
    }

    /// The passage whose text begins at or goes on behind a byte.
    fn passage_behind(&self, at: usize) -> usize {
        let behind = self.bounds.partition_point(|bound| *bound <= at);
        behind.saturating_sub(1).min(self.texts.len() - 1)
    }

    /// The passage whose text ends at or goes on behind a byte: the last empty one that stands there.
    fn passage_before(&self, at: usize) -> usize {
        let first = self.bounds.partition_point(|bound| *bound < at);
        let last = self.bounds.partition_point(|bound| *bound <= at);
        // Bounds first..last lie at this byte: between two of them an empty passage stands.
        if last - first > 1 { last - 2 } else { first.saturating_sub(1) }
    }
}

fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// A stretch of both texts, in bytes.
enum Change {
    Kept { old: Range<usize>, new: Range<usize> },
    Replaced { old: Range<usize>, new: Range<usize> },
}

/// What became of the lines of a text.
fn lines(old: &str, new: &str) -> Vec<Change> {
    let (from, to) = (Lines::of(old), Lines::of(new));
    let deadline = Instant::now() + MOST_TIME;
    let ops = capture_diff_slices_deadline(Algorithm::Patience, &from.lines, &to.lines, Some(deadline));
    ops.into_iter()
        .map(|op| {
            let (old, new) = (from.bytes(&op.old_range()), to.bytes(&op.new_range()));
            if matches!(op, DiffOp::Equal { .. }) {
                Change::Kept { old, new }
            } else {
                Change::Replaced { old, new }
            }
        })
        .collect()
}

struct Lines<'t> {
    lines: Vec<&'t str>,
    /// Where each begins, and the end of the last.
    bounds: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut bounds = vec![0];
        bounds.extend(lines.iter().scan(0, |at, line| {
            *at += line.len();
            Some(*at)
        }));
        Self { lines, bounds }
    }

    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.bounds[lines.start]..self.bounds[lines.end]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::distribute;

    #[test]
    fn what_stayed_stays_and_what_is_new_goes_where_it_was_written() {
        let old = ["One.\n\n", "Two is here.\n\n", "Three."];
        assert_eq!(distribute(&old, "One.\n\nTwo is here.\n\nThree."), old);
        assert_eq!(
            distribute(&old, "One.\n\nTwo was here.\n\nThree."),
            ["One.\n\n", "Two was here.\n\n", "Three."],
            "changed words"
        );
        assert_eq!(
            distribute(&old, "One.\n\nNew.\n\nTwo is here.\n\nThree."),
            ["One.\n\nNew.\n\n", "Two is here.\n\n", "Three."],
            "an insertion goes to the left"
        );
        assert_eq!(distribute(&old, "One.\n\nThree."), ["One.\n\n", "", "Three."], "a deletion");
        assert_eq!(
            distribute(&old, "One.\n\nQuite another thing!\n\nThree."),
            ["One.\n\n", "Quite another thing!\n\n", "Three."],
            "a replaced passage is replaced in its place"
        );
        assert_eq!(distribute(&old, "One.\n\nTwo is here. Three."), ["One.\n\n", "Two is here. ", "Three."]);
        assert_eq!(distribute(&old, ""), ["", "", ""]);
        assert_eq!(distribute(&["One.\n", "", "Two.\n"], "One.\nBetween.\nTwo.\n")[1], "Between.\n");
        assert_eq!(distribute(&["", ""], "a"), ["", "a"]);
        assert!(distribute(&[], "a").is_empty());
    }

    proptest! {
        #[test]
        fn together_they_are_the_new_text(
            old in prop::collection::vec("[ab\n é]{0,6}", 1..6), new in "[ab\n é]{0,24}",
        ) {
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let texts = distribute(&old, &new);
            prop_assert_eq!(texts.len(), old.len());
            prop_assert_eq!(texts.concat(), new);
            prop_assert_eq!(distribute(&old, &old.concat()), old);
        }
    }
}
