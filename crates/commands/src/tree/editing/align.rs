//! Which passage a changed text belongs to: what stayed stays where it is, what is new goes where it was written.
//!
//! An insertion between two passages belongs to the one on its left, or to an empty one that stands between them; what
//! replaces something belongs to the passage where that begins (spec: loom §2 *Rules*). Together the texts of the
//! passages are the changed text, byte for byte.

use std::collections::HashMap;
use std::ops::Range;

use loom::attribution::{Stretch, matching, stretches};

/// Steps that comparing the lines of a stretch may cost; beyond them what is left counts as replaced. It is work, not
/// time: which passage holds a text is the same on every machine.
const MOST_STEPS: usize = 2_000_000;

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
    let mut changes = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let end = (from.lines.len(), to.lines.len());
    let mut kept = pairs(&from.lines, &to.lines).into_iter().peekable();
    loop {
        let (old, new) = kept.peek().copied().unwrap_or(end);
        if (old_at, new_at) != (old, new) {
            replaced(&mut changes, (&from, old_at..old), (&to, new_at..new));
        }
        let mut size = 0;
        while kept.next_if_eq(&(old + size, new + size)).is_some() {
            size += 1;
        }
        if size == 0 {
            return changes;
        }
        (old_at, new_at) = (old + size, new + size);
        changes.push(Change::Kept { old: from.bytes(&(old..old_at)), new: to.bytes(&(new..new_at)) });
    }
}

fn replaced(
    changes: &mut Vec<Change>,
    (from, old): (&Lines<'_>, Range<usize>),
    (to, new): (&Lines<'_>, Range<usize>),
) {
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

/// The pairs of lines that stayed, in order: first those that stand once in both, then what is found between them.
fn pairs(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = (&old[head..], &new[head..]);
    let tail = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mut anchors = once_in_both(&old[head..old_end], &new[head..new_end]);
    anchors.iter_mut().for_each(|pair| *pair = (pair.0 + head, pair.1 + head));
    let mut steps = MOST_STEPS;
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|line| (line, line)).collect();
    let mut at = (head, head);
    for anchor in anchors.into_iter().map(Some).chain([None]) {
        let (old_to, new_to) = anchor.unwrap_or((old_end, new_end));
        let between = matching(&old[at.0..old_to], &new[at.1..new_to], &mut steps).unwrap_or_default();
        pairs.extend(between.into_iter().map(|pair| (pair.0 + at.0, pair.1 + at.1)));
        pairs.extend(anchor);
        at = (old_to + 1, new_to + 1);
    }
    pairs.extend((0..tail).map(|line| (old_end + line, new_end + line)));
    pairs
}

/// The lines that stand once in both, as many as stayed in order.
fn once_in_both(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let (in_old, in_new) = (places_of_one(old), places_of_one(new));
    let place = |(at, line): (usize, &&str)| {
        let is_once = in_old.get(*line).copied().flatten().is_some();
        in_new.get(*line).copied().flatten().filter(|_| is_once).map(|to| (at, to))
    };
    let both: Vec<(usize, usize)> = old.iter().enumerate().filter_map(place).collect();
    let order: Vec<usize> = both.iter().map(|(_, to)| *to).collect();
    rising(&order).into_iter().map(|index| both[index]).collect()
}

/// Where each line stands; none for one that stands there more than once.
fn places_of_one<'t>(lines: &[&'t str]) -> HashMap<&'t str, Option<usize>> {
    let mut found = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        found.entry(*line).and_modify(|place| *place = None).or_insert(Some(at));
    }
    found
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

/// Indices of a longest rising run of numbers, none of them twice.
pub(super) fn rising(numbers: &[usize]) -> Vec<usize> {
    // The index that ends the best run of each length, and what stands before each.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (at, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| numbers[*end] < *number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() { ends.push(at) } else { ends[length] = at }
    }
    let mut run: Vec<usize> = std::iter::successors(ends.last().copied(), |at| before[*at]).collect();
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{distribute, replace, rising};

    #[test]
    fn the_longest_rising_run_stays() {
        assert_eq!(rising(&[1, 2, 0, 3]), [0, 1, 3]);
        assert_eq!(rising(&[5, 1, 2]), [1, 2]);
        assert!(rising(&[]).is_empty());
    }

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

    #[test]
    fn which_passage_holds_a_text_is_told_by_its_lines_however_many_there_are() {
        // Lines that stand once lead through a text of which most was written anew, and repeated ones are found between.
        let passage = |n: usize, word: &str| format!("Passage {n}.\nThe same.\n{word} {}.\n\n", n % 7);
        let old: Vec<String> = (0..4_000).map(|n| passage(n, "old")).collect();
        let new: Vec<String> =
            (0..4_000).map(|n| passage(n, if n % 3 == 0 { "old" } else { "new" })).collect();
        let lines: Vec<&str> = old.iter().map(String::as_str).collect();
        assert_eq!(distribute(&lines, &new.concat()), new);
        let without: String = new.iter().skip(1_000).map(String::as_str).collect();
        let found = distribute(&lines, &without);
        assert!(found[1..999].iter().all(String::is_empty), "those that went are empty");
        assert_eq!(found[1_001..], new[1_001..]);
    }

    #[test]
    fn lines_that_never_agree_cost_no_more_than_their_steps() {
        let (old, new) = (["a\n", "b\n"].repeat(20_000), ["c\n", "c\n"].repeat(20_000));
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
