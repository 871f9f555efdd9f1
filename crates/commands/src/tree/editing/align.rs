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

/// How much of a changed stretch is compared word by word, in bytes; of a longer one line by line.
const MOST_BYTES: usize = 64 * 1024;

/// The texts of passages after their joint text became `new`: as many as there were.
pub(super) fn distribute(old: &[&str], new: &str) -> Vec<String> {
    match old {
        [] => Vec::new(),
        [_] => vec![new.to_owned()],
        _ => {
            let mut passages = Distribution::of(old);
            let joined = old.concat();
            for change in lines(&joined, new) {
                match change {
                    Change::Kept { old, new: to } => passages.keep(old, &new[to]),
                    Change::Replaced { old, new: to } => passages.replace(&joined, old, &new[to]),
                }
            }
            passages.texts
        }
    }
}

/// The texts of passages after these places of their joint text became `new`.
pub(super) fn replace(old: &[&str], places: &[Range<usize>], new: &str) -> Vec<String> {
    let mut passages = Distribution::of(old);
    let joined = old.concat();
    for place in places {
        let kept = passages.at..place.start;
        passages.keep(kept.clone(), &joined[kept]);
        passages.write(new, !place.is_empty());
        passages.at = place.end;
    }
    let rest = passages.at..joined.len();
    passages.keep(rest.clone(), &joined[rest]);
    passages.texts
}

struct Distribution {
    /// Where each passage begins in the joint text, and its end.
    bounds: Vec<usize>,
    texts: Vec<String>,
    /// Bytes of the joint text that are passed.
    at: usize,
}

impl Distribution {
    fn of(old: &[&str]) -> Self {
        Self { bounds: bounds(old), texts: vec![String::new(); old.len()], at: 0 }
    }

    /// Text that took the place of other text.
    fn replace(&mut self, joined: &str, old: Range<usize>, new: &str) {
        let found = stretches(&joined[old.clone()], new);
        for (index, stretch) in found.iter().enumerate() {
            match stretch {
                Stretch::Kept { old: from, new: within } => {
                    self.keep(from.start + old.start..from.end + old.start, &new[within.clone()]);
                }
                Stretch::New { new: within } => {
                    let next = match found.get(index + 1) {
                        Some(Stretch::Kept { old: from, .. }) => from.start + old.start,
                        _ => old.end,
                    };
                    self.write(&new[within.clone()], next > self.at);
                }
            }
        }
        self.at = old.end;
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

/// Where each text begins when they are joined, and the end of the last.
fn bounds(texts: &[&str]) -> Vec<usize> {
    let mut bounds = vec![0];
    bounds.extend(texts.iter().scan(0, |at, text| {
        *at += text.len();
        Some(*at)
    }));
    bounds
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
    let mut changes = Vec::new();
    for op in ops {
        let (old, new) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            changes.push(Change::Kept { old: from.bytes(&old), new: to.bytes(&new) });
            continue;
        }
        // A long stretch is taken line by line, so that no passage takes in what others said.
        let is_long = from.bytes(&old).len() + to.bytes(&new).len() > MOST_BYTES;
        let pairs = if is_long { old.len().min(new.len()).max(1) } else { 1 };
        for pair in 0..pairs {
            let share = |lines: &Range<usize>| {
                let end = if pair + 1 == pairs { lines.end } else { lines.start + pair + 1 };
                lines.start + pair..end
            };
            changes.push(Change::Replaced { old: from.bytes(&share(&old)), new: to.bytes(&share(&new)) });
        }
    }
    changes
}

struct Lines<'t> {
    lines: Vec<&'t str>,
    /// Where each begins, and the end of the last.
    bounds: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        Self { bounds: bounds(&lines), lines }
    }

    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.bounds[lines.start]..self.bounds[lines.end]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{distribute, replace};

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

    #[test]
    fn words_are_replaced_where_they_stand() {
        let old = ["One and ", "", "two and three and"];
        assert_eq!(replace(&old, &[4..7, 12..15, 22..25], "or"), ["One or ", "", "two or three or"]);
        assert_eq!(
            replace(&old, std::slice::from_ref(&(4..11)), "to"),
            ["One to", "", " and three and"],
            "over a border"
        );
        assert_eq!(replace(&old, &[], "or"), old);
    }

    #[test]
    fn where_every_line_of_a_novel_changed_no_passage_takes_in_the_others() {
        let old: Vec<String> =
            (0..1_000).map(|n| format!("Passage {n} says something of rain.\n\n")).collect();
        let new: Vec<String> = old.iter().map(|text| text.replace("rain", "snow")).collect();
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        assert_eq!(distribute(&old, &new.concat()), new);
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
