//! What of a text stayed through an edit.
//!
//! Words first, so that letters two different words happen to share are not taken for kept text; then, where
//! words changed, grapheme clusters, of which only runs long enough to mean something are kept. Greedy Myers
//! with a bound on steps: past it the changed region belongs to the editor as a whole. The algorithm stands here
//! because the library at hand (`similar`) bounds its search by a clock alone: no machine may attribute otherwise
//! than another, and this crate reads no clock.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Diff steps a node may cost; beyond them the changed region is one.
const MAX_STEPS: usize = 2_000_000;

/// Clusters on each side of a place in which its word is looked for.
const LONGEST_WORD: usize = 64;

/// Clusters a run inside a changed region must have to count as kept.
const SHORTEST_RUN: usize = 3;

/// A stretch of the new text. Ranges are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stretch {
    /// A stretch that stood in the old text.
    Kept {
        old: Range<usize>,
        new: Range<usize>,
    },
    New {
        new: Range<usize>,
    },
}

/// The stretches of `new`, in order, without gap or overlap.
pub fn stretches(old: &str, new: &str) -> Vec<Stretch> {
    let mut diff = Diff { old, new, steps: MAX_STEPS, out: Vec::new() };
    let (head, tail) = common_ends(old, new);
    diff.kept(0..head, 0..head);
    diff.changed(head..old.len() - tail, head..new.len() - tail);
    diff.kept(old.len() - tail..old.len(), new.len() - tail..new.len());
    diff.out
}

/// The stretches of `new`, as authors are told by them: a word of which not more than half stayed where another stood
/// was written anew, whatever letters it shares with it at its ends.
pub(super) fn by_words(old: &str, new: &str) -> Vec<Stretch> {
    let found = stretches(old, new);
    let kept = found.iter().filter_map(|stretch| match stretch {
        Stretch::Kept { old, new } => Some((old.clone(), new.clone())),
        Stretch::New { .. } => None,
    });
    let mut kept: Vec<(Range<usize>, Range<usize>)> = kept.collect();
    for next in 0..=kept.len() {
        let (left, right) = rewritten(old, new, &kept, next);
        if let Some((old, new)) = next.checked_sub(1).and_then(|last| kept.get_mut(last)) {
            (old.end, new.end) = (old.end - left, new.end - left);
        }
        if let Some((old, new)) = kept.get_mut(next) {
            (old.start, new.start) = (old.start + right, new.start + right);
        }
    }
    let mut diff = Diff { old, new, steps: 0, out: Vec::new() };
    let mut at = 0;
    for (old, new) in kept {
        diff.written(at..new.start);
        at = new.end;
        diff.kept(old, new);
    }
    diff.written(at..new.len());
    diff.out
}

/// How many kept bytes before and behind what was replaced between two kept stretches are the rest of other words.
fn rewritten(old: &str, new: &str, kept: &[(Range<usize>, Range<usize>)], next: usize) -> (usize, usize) {
    let before = next.checked_sub(1).and_then(|last| kept.get(last).cloned()).unwrap_or((0..0, 0..0));
    let behind = kept.get(next).cloned().unwrap_or((old.len()..old.len(), new.len()..new.len()));
    let (old_gap, new_gap) = (before.0.end..behind.0.start, before.1.end..behind.1.start);
    if old_gap.is_empty() || new_gap.is_empty() {
        return (0, 0);
    }
    let (first, last) = (word_around(new, new_gap.start), word_around(new, new_gap.end));
    let left = first.as_ref().map_or(0, |word| new_gap.start - word.start.max(before.1.start));
    let right = last.as_ref().map_or(0, |word| word.end.min(behind.1.end) - new_gap.end);
    let of_old = |at| word_around(old, at).map_or(0, |word| clusters(&old[word]));
    let (first_old, last_old) = (of_old(old_gap.start), of_old(old_gap.end));
    let is_other = |word: &Range<usize>, word_before: usize, stayed: usize| {
        stayed * 2 <= clusters(&new[word.clone()]).max(word_before)
    };
    let (head, tail) = (
        clusters(&new[new_gap.start - left..new_gap.start]),
        clusters(&new[new_gap.end..new_gap.end + right]),
    );
    match (first, last) {
        (Some(word), Some(last)) if word == last => {
            let other = is_other(&word, first_old.max(last_old), head + tail);
            if other { (left, right) } else { (0, 0) }
        }
        (first, last) => {
            let left = first.filter(|word| is_other(word, first_old, head)).map_or(0, |_| left);
            let right = last.filter(|word| is_other(word, last_old, tail)).map_or(0, |_| right);
            (left, right)
        }
    }
}

fn clusters(text: &str) -> usize {
    text.graphemes(true).count()
}

/// The word that a place lies within; none where one begins or ends.
fn word_around(text: &str, at: usize) -> Option<Range<usize>> {
    let is_solid = |(_, cluster): &(usize, &str)| !cluster.starts_with(char::is_whitespace);
    let before = text[..at].grapheme_indices(true).rev().take_while(is_solid).take(LONGEST_WORD);
    let start = before.last()?.0;
    let behind = text[at..].grapheme_indices(true).take_while(is_solid).take(LONGEST_WORD);
    let end = at + behind.map(|(_, cluster)| cluster.len()).sum::<usize>();
    let mut words = pieces(text, &(start..end), words).into_iter();
    words.find(|word| word.start < at && at < word.end)
}

struct Diff<'a> {
    old: &'a str,
    new: &'a str,
    steps: usize,
    out: Vec<Stretch>,
}

impl Diff<'_> {
    fn kept(&mut self, old: Range<usize>, new: Range<usize>) {
        if new.is_empty() {
            return;
        }
        if let Some(Stretch::Kept { old: last_old, new: last_new }) = self.out.last_mut()
            && last_old.end == old.start
            && last_new.end == new.start
        {
            last_old.end = old.end;
            last_new.end = new.end;
            return;
        }
        self.out.push(Stretch::Kept { old, new });
    }

    fn written(&mut self, new: Range<usize>) {
        if new.is_empty() {
            return;
        }
        if let Some(Stretch::New { new: last }) = self.out.last_mut()
            && last.end == new.start
        {
            last.end = new.end;
            return;
        }
        self.out.push(Stretch::New { new });
    }

    /// A region that differs at both ends: words, then the clusters of changed words.
    fn changed(&mut self, old: Range<usize>, new: Range<usize>) {
        let old_words = pieces(self.old, &old, words);
        let new_words = pieces(self.new, &new, words);
        let Some(matches) = self.matches(&old_words, &new_words) else {
            self.written(new);
            return;
        };
        let (mut from_old, mut from_new) = (old.start, new.start);
        for (a, b) in matches {
            self.reworded(from_old..a.start, from_new..b.start);
            self.kept(a.clone(), b.clone());
            (from_old, from_new) = (a.end, b.end);
        }
        self.reworded(from_old..old.end, from_new..new.end);
    }

    /// Words that were replaced by others.
    fn reworded(&mut self, old: Range<usize>, new: Range<usize>) {
        if old.is_empty() || new.is_empty() {
            self.written(new);
            return;
        }
        let clusters = |text: &str| text.grapheme_indices(true).map(|(at, _)| at).collect();
        let old_clusters = pieces(self.old, &old, clusters);
        let new_clusters = pieces(self.new, &new, clusters);
        let Some(matches) = self.matches(&old_clusters, &new_clusters) else {
            self.written(new);
            return;
        };
        let mut at = new.start;
        for run in runs(&matches) {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let edge = first.1.start == new.start && first.0.start == old.start
                || last.1.end == new.end && last.0.end == old.end;
            if run.len() >= SHORTEST_RUN || edge {
                self.written(at..first.1.start);
                self.kept(first.0.start..last.0.end, first.1.start..last.1.end);
                at = last.1.end;
            }
        }
        self.written(at..new.end);
    }

    /// The pairs of equal pieces on a shortest edit path; none when the steps ran out.
    fn matches(
        &mut self,
        old: &[Range<usize>],
        new: &[Range<usize>],
    ) -> Option<Vec<(Range<usize>, Range<usize>)>> {
        let same = |a: usize, b: usize| self.old[old[a].clone()] == self.new[new[b].clone()];
        let (pairs, steps) = myers(old.len(), new.len(), self.steps, same);
        self.steps = self.steps.saturating_sub(steps);
        Some(pairs?.into_iter().map(|(a, b)| (old[a].clone(), new[b].clone())).collect())
    }
}

/// Byte lengths of the common beginning and end of two texts, on cluster boundaries of both, not overlapping.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let mut head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    head = text::grapheme::floor(old, head).min(text::grapheme::floor(new, head));
    while text::grapheme::floor(old, head) != head || text::grapheme::floor(new, head) != head {
        head = text::grapheme::floor(old, head).min(text::grapheme::floor(new, head));
    }
    let (old_rest, new_rest) = (old.len() - head, new.len() - head);
    let most = old_rest.min(new_rest);
    let mut tail = old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(a, b)| a == b).count();
    loop {
        let a = old.len() - text::grapheme::ceil(old, old.len() - tail);
        let b = new.len() - text::grapheme::ceil(new, new.len() - tail);
        let shorter = a.min(b);
        if shorter == tail {
            return (head, tail);
        }
        tail = shorter;
    }
}

/// Where words start. Some scripts have word boundaries inside a cluster; those are left out.
fn words(text: &str) -> Vec<usize> {
    let mut clusters = text.grapheme_indices(true).map(|(at, _)| at).peekable();
    let starts = text.split_word_bound_indices().map(|(at, _)| at);
    starts
        .filter(|start| {
            while clusters.next_if(|cluster| cluster < start).is_some() {}
            clusters.peek() == Some(start)
        })
        .collect()
}

/// The pieces of a range of `text` that start where `starts` says.
fn pieces(text: &str, range: &Range<usize>, starts: impl Fn(&str) -> Vec<usize>) -> Vec<Range<usize>> {
    let starts = starts(&text[range.clone()]);
    let ends = starts.iter().skip(1).copied().chain([range.len()]);
    starts.iter().zip(ends).map(|(from, to)| range.start + from..range.start + to).collect()
}

/// Pairs that follow one another on both sides, as runs.
fn runs(pairs: &[(Range<usize>, Range<usize>)]) -> impl Iterator<Item = &[(Range<usize>, Range<usize>)]> {
    pairs.chunk_by(|a, b| a.0.end == b.0.start && a.1.end == b.1.start)
}

/// The pairs of equal pieces of two texts, in order, as they stay on a shortest way from the one to the other; none when
/// `steps` were not enough. What it took is taken from them.
pub fn matching<T: PartialEq>(old: &[T], new: &[T], steps: &mut usize) -> Option<Vec<(usize, usize)>> {
    let (pairs, taken) = myers(old.len(), new.len(), *steps, |a, b| old[a] == new[b]);
    *steps = steps.saturating_sub(taken);
    pairs
}

/// Myers' greedy algorithm over `n` old and `m` new pieces: the pairs of equal pieces on a shortest edit
/// path, oldest first, or none when `limit` steps were not enough; and the steps taken.
fn myers(
    n: usize,
    m: usize,
    limit: usize,
    same: impl Fn(usize, usize) -> bool,
) -> (Option<Vec<(usize, usize)>>, usize) {
    let mut steps = 0;
    // `trace[d][k]` is the furthest old index on diagonal k - d after d edits; diagonals alternate in parity.
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for d in 0..=n + m {
        let mut row = vec![0; 2 * d + 1];
        for index in (0..=2 * d).step_by(2) {
            let k = index as isize - d as isize;
            let mut x = match trace.last() {
                None => 0,
                Some(before) => {
                    // In the row before, diagonal k stands at k + d - 1.
                    let at = |diagonal: isize| {
                        usize::try_from(diagonal + d as isize - 1).ok().and_then(|at| before.get(at))
                    };
                    match (at(k - 1), at(k + 1)) {
                        (Some(left), Some(down)) => (left + 1).max(*down),
                        (Some(left), None) => left + 1,
                        (None, Some(down)) => *down,
                        (None, None) => 0,
                    }
                }
            };
            let mut y = (x as isize - k) as usize;
            steps += 1;
            while x < n && y < m && same(x, y) {
                x += 1;
                y += 1;
                steps += 1;
            }
            row[index] = x;
            if x >= n && y >= m {
                trace.push(row);
                return (Some(backtrack(&trace, n, m)), steps);
            }
            if steps > limit {
                return (None, steps);
            }
        }
        trace.push(row);
    }
    (Some(Vec::new()), steps)
}

/// Walks the trace back and collects the diagonal steps.
fn backtrack(trace: &[Vec<usize>], n: usize, m: usize) -> Vec<(usize, usize)> {
    let (mut x, mut y) = (n, m);
    let mut pairs = Vec::new();
    for d in (0..trace.len()).rev() {
        let k = x as isize - y as isize;
        let (from_x, from_y) = if d == 0 {
            (0, 0)
        } else {
            let before = &trace[d - 1];
            let at = |diagonal: isize| {
                usize::try_from(diagonal + d as isize - 1).ok().and_then(|at| before.get(at)).copied()
            };
            let (left, down) = (at(k - 1), at(k + 1));
            match (left, down) {
                (Some(left), down) if down.is_none_or(|down| left + 1 > down) => {
                    (left + 1, (left as isize + 1 - k) as usize)
                }
                (_, Some(down)) => (down, (down as isize - k) as usize),
                _ => (0, 0),
            }
        };
        while x > from_x && y > from_y {
            x -= 1;
            y -= 1;
            pairs.push((x, y));
        }
        if d > 0 {
            // One step back over the edit itself.
            let before = &trace[d - 1];
            let at = |diagonal: isize| {
                usize::try_from(diagonal + d as isize - 1).ok().and_then(|at| before.get(at)).copied()
            };
            if at(k - 1).is_some_and(|left| left + 1 == x) && at(k + 1).is_none_or(|down| x > down) {
                x -= 1;
            } else {
                y -= 1;
            }
        }
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(old: &str, new: &str) -> Vec<String> {
        stretches(old, new)
            .into_iter()
            .filter_map(|stretch| match stretch {
                Stretch::Kept { new: range, .. } => Some(new[range].to_owned()),
                Stretch::New { .. } => None,
            })
            .collect()
    }

    #[test]
    fn a_changed_word_leaves_its_neighbours() {
        assert_eq!(kept("the rain fell softly", "the snow fell softly"), ["the ", " fell softly"]);
    }

    #[test]
    fn a_corrected_letter_leaves_the_rest_of_the_word() {
        assert_eq!(kept("a grey color there", "a grey colour there"), ["a grey colo", "r there"]);
    }

    fn by_whole_words(old: &str, new: &str) -> Vec<String> {
        let kept = by_words(old, new).into_iter().filter_map(|stretch| match stretch {
            Stretch::Kept { old: from, new: range } => {
                assert_eq!(old[from], new[range.clone()]);
                Some(new[range].to_owned())
            }
            Stretch::New { .. } => None,
        });
        kept.collect()
    }

    #[test]
    fn letters_that_a_word_shares_with_the_one_it_replaced_are_its_own() {
        assert_eq!(by_whole_words("The model sat.", "The machine sat."), ["The ", " sat."]);
        assert_eq!(by_whole_words("model", "machine"), Vec::<String>::new());
        assert_eq!(by_whole_words("It rained here.", "It poured here."), ["It ", " here."], "at its end");
        // What was corrected, lengthened, cut or stands next to what is new is kept.
        for (old, new, kept) in [
            ("a grey color there", "a grey colour there", vec!["a grey colo", "r there"]),
            ("It rained.", "It raining.", vec!["It rain", "."]),
            ("snow", "show", vec!["s", "ow"]),
            ("an oar", "an oarsman", vec!["an oar"]),
            ("the rain fell", "the snow fell", vec!["the ", " fell"]),
            (
                "\u{732b}\u{304c}\u{6765}\u{305f}",
                "\u{732b}\u{304c}\u{8d70}\u{305f}",
                vec!["\u{732b}\u{304c}", "\u{305f}"],
            ),
        ] {
            assert_eq!(by_whole_words(old, new), kept, "{old} -> {new}");
        }
    }

    #[test]
    fn letters_shared_by_chance_are_not_kept() {
        assert_eq!(kept("x lantern y", "x umbrella y"), ["x ", " y"]);
    }

    #[test]
    fn a_cluster_is_never_split() {
        // e + combining acute against e + combining grave: the common byte `e` is not a common cluster.
        assert_eq!(kept("e\u{301}", "e\u{300}"), Vec::<String>::new());
    }

    #[test]
    fn past_the_limit_the_region_is_one() {
        let old: String = (0..3000).map(|n| format!("a{n} ")).collect();
        let new: String = (0..3000).map(|n| format!("b{n} ")).collect();
        let middle = stretches(&format!("same {old}end"), &format!("same {new}end"));
        assert!(middle.len() <= 4, "{} stretches", middle.len());
    }

    proptest! {
        #[test]
        fn stretches_cover_the_new_text_and_kept_ones_are_equal(old in "[ab é\u{301}🦀.]{0,40}", new in "[ab é\u{301}🦀.]{0,40}") {
            let mut at = 0;
            let mut last_old = 0;
            for stretch in stretches(&old, &new) {
                let range = match stretch {
                    Stretch::Kept { old: from, new: to } => {
                        prop_assert_eq!(&old[from.clone()], &new[to.clone()]);
                        prop_assert!(from.start >= last_old);
                        last_old = from.end;
                        to
                    }
                    Stretch::New { new } => new,
                };
                prop_assert_eq!(range.start, at);
                at = range.end;
            }
            prop_assert_eq!(at, new.len());
        }

        #[test]
        fn an_insertion_keeps_all_that_was_there(text in "[a-c ]{0,30}", at in 0usize..30, word in "[xyz]{1,6}") {
            let at = at.min(text.len());
            let new = format!("{}{}{}", &text[..at], word, &text[at..]);
            let kept: usize = stretches(&text, &new).iter().map(|stretch| match stretch {
                Stretch::Kept { new, .. } => new.len(),
                Stretch::New { .. } => 0,
            }).sum();
            prop_assert_eq!(kept, text.len());
        }
    }
}
