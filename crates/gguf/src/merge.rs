//! Merges of neighbouring symbols, best first: the core of byte-pair encoding and of SentencePiece.
//!
//! Work grows with n log n, also for a long text without a break.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Rank of a merge: smaller comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rank(pub(crate) f64);

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Joins neighbours until no pair can be joined. `join` gives the joined symbol of a pair and its rank; of
/// joins of one rank the first in the text is made first.
pub(crate) fn merge<S: Clone + PartialEq>(
    symbols: Vec<S>,
    join: impl Fn(&S, &S) -> Option<(Rank, S)>,
) -> Vec<S> {
    let count = symbols.len();
    let mut chain = Chain {
        symbols: symbols.into_iter().map(Some).collect(),
        next: (1..=count).collect(),
        before: (0..count).map(|at| at.checked_sub(1)).collect(),
    };
    let mut heap = BinaryHeap::new();
    let mut offers: Vec<(usize, S, S, S)> = Vec::new();
    let offer = |chain: &Chain<S>, heap: &mut BinaryHeap<_>, left: usize, offers: &mut Vec<_>| {
        let right = chain.next.get(left).copied().unwrap_or(count);
        let (Some(Some(a)), Some(Some(b))) = (chain.symbols.get(left), chain.symbols.get(right)) else {
            return;
        };
        if let Some((rank, joined)) = join(a, b) {
            heap.push(Reverse((rank, left, offers.len())));
            offers.push((right, a.clone(), b.clone(), joined));
        }
    };
    for left in 0..count {
        offer(&chain, &mut heap, left, &mut offers);
    }
    while let Some(Reverse((_, left, number))) = heap.pop() {
        let Some((right, a, b, joined)) = offers.get(number).cloned() else { continue };
        // An offer is void when either of its symbols has been joined to another since.
        let stands = chain.symbols[left].as_ref() == Some(&a)
            && chain.next[left] == right
            && chain.symbols[right].as_ref() == Some(&b);
        if !stands {
            continue;
        }
        chain.join(left, right, joined);
        offer(&chain, &mut heap, left, &mut offers);
        if let Some(before) = chain.before[left] {
            offer(&chain, &mut heap, before, &mut offers);
        }
    }
    chain.symbols.into_iter().flatten().collect()
}

struct Chain<S> {
    symbols: Vec<Option<S>>,
    next: Vec<usize>,
    before: Vec<Option<usize>>,
}

impl<S> Chain<S> {
    fn join(&mut self, left: usize, right: usize, joined: S) {
        self.symbols[left] = Some(joined);
        self.symbols[right] = None;
        let after = self.next[right];
        self.next[left] = after;
        if let Some(before) = self.before.get_mut(after) {
            *before = Some(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str, pairs: &[&str]) -> Vec<String> {
        let symbols = text.chars().map(String::from).collect();
        merge(symbols, |a: &String, b: &String| {
            let whole = format!("{a}{b}");
            let rank = pairs.iter().position(|pair| *pair == whole)?;
            Some((Rank(rank as f64), whole))
        })
    }

    #[test]
    fn the_best_pair_is_joined_first_wherever_it_stands() {
        assert_eq!(joined("abcab", &["bc", "ab", "abc"]), ["abc", "ab"]);
        assert_eq!(joined("abcab", &["ab", "bc"]), ["ab", "c", "ab"]);
    }

    #[test]
    fn of_equal_pairs_the_first_is_joined_first() {
        assert_eq!(joined("aaaaa", &["aa", "aaaa"]), ["aaaa", "a"]);
    }

    #[test]
    fn a_long_run_takes_no_more_than_its_length_allows() {
        let text = "a".repeat(200_000);
        assert_eq!(joined(&text, &["aa", "aaaa", "aaaaaaaa"]).len(), 25_000);
    }
}
