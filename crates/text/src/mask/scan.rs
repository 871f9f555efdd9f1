//! Finding values: one automaton step a byte, overlapping finds merged.

use std::collections::VecDeque;
use std::ops::Range;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};

use super::{Mark, MaskedSpan, Masker, SecretForm};

/// A span of input that is to be masked.
pub(super) struct Found {
    pub(super) range: Range<usize>,
    /// Place of the secret in the masker's marks.
    pub(super) secret: usize,
    form: SecretForm,
}

impl Found {
    pub(super) fn reported(self, mark: &Mark, output_start: usize) -> MaskedSpan {
        MaskedSpan {
            name: mark.name.clone(),
            form: self.form,
            input: self.range,
            output: output_start..output_start + mark.text.len(),
        }
    }
}

/// The state of a search that has read `seen` bytes.
pub(super) struct Scan {
    state: StateID,
    pub(super) seen: usize,
    /// Found and not yet taken: in order, disjoint. Only the last can still grow.
    pub(super) spans: VecDeque<Found>,
}

impl Scan {
    pub(super) fn new(masker: &Masker) -> Self {
        Self { state: masker.inner.start, seen: 0, spans: VecDeque::new() }
    }

    pub(super) fn feed(&mut self, masker: &Masker, bytes: &[u8]) {
        let search = &masker.inner.search;
        let mut state = self.state;
        for byte in bytes {
            state = search.next_state(Anchored::No, state, *byte);
            self.seen += 1;
            if search.is_special(state) && search.is_match(state) {
                let ending_here = (0..search.match_len(state)).map(|nth| search.match_pattern(state, nth));
                if let Some(longest) = ending_here.max_by_key(|pattern| search.pattern_len(*pattern)) {
                    let start = self.seen - search.pattern_len(longest);
                    let (secret, form) = masker.inner.patterns[longest.as_usize()];
                    self.merge(Found { range: start..self.seen, secret, form });
                }
            }
        }
        self.state = state;
    }

    /// Everything before this offset is settled: whatever follows, no match begins there that is not known.
    /// `tail` is the end of what was read, from an offset that was settled before.
    pub(super) fn settled(&self, masker: &Masker, tail: &VecDeque<u8>) -> usize {
        // A match of the longest form that has just ended is known, so one byte less can be of use.
        self.seen - self.depth(masker, tail).min(masker.longest().saturating_sub(1))
    }

    /// How many bytes at the end of `tail` may be the beginning of a match.
    ///
    /// The automaton's state stands for the longest such end. Reading only the last `k` bytes leads to the same
    /// state if and only if `k` is at least its length, so that length is found by bisection. It is small nearly
    /// always, and steps are taken in proportion to it.
    fn depth(&self, masker: &Masker, tail: &VecDeque<u8>) -> usize {
        let search = &masker.inner.search;
        let reaches = |last: usize| {
            let step = |state, byte: &u8| search.next_state(Anchored::No, state, *byte);
            tail.range(tail.len() - last..).fold(masker.inner.start, step) == self.state
        };
        let (mut low, mut high) = (0, 0);
        while high < tail.len() && !reaches(high) {
            low = high + 1;
            high = (2 * high + 1).min(tail.len());
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if reaches(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        high
    }

    /// Adds a find. Finds come in the order of their ends, so it can only touch the last spans.
    fn merge(&mut self, mut found: Found) {
        while self.spans.back().is_some_and(|last| found.range.start < last.range.end) {
            let Some(last) = self.spans.pop_back() else { break };
            let end = found.range.end;
            if last.range.start < found.range.start {
                found = last;
            }
            found.range.end = end;
        }
        self.spans.push_back(found);
    }
}
