//! Cache of keys and values, and the cache of prefixes over the sequences of earlier jobs.
//!
//! A job begins at the longest cached prefix of its prompt. A sequence can be truncated at any token, not only at
//! checkpoints.

/// Keys and values of one sequence, layer by layer, token by token.
#[derive(Debug, Clone, Default)]
pub(crate) struct KvCache {
    layers: Vec<(Vec<f32>, Vec<f32>)>,
    /// Numbers that one token takes in a layer's keys, and as many in its values.
    width: usize,
    tokens: usize,
}

impl KvCache {
    pub(crate) fn new(layers: usize, width: usize) -> Self {
        Self { layers: vec![(Vec::new(), Vec::new()); layers], width, tokens: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens
    }

    /// Makes room for more tokens, a little more than asked so that generating does not move all each time.
    pub(crate) fn reserve(&mut self, tokens: usize) {
        let needed = (self.tokens + tokens).next_multiple_of(128) * self.width;
        for (keys, values) in &mut self.layers {
            keys.reserve_exact(needed.saturating_sub(keys.len()));
            values.reserve_exact(needed.saturating_sub(values.len()));
        }
    }

    pub(crate) fn append(&mut self, layer: usize, keys: &[f32], values: &[f32]) {
        if let Some((all_keys, all_values)) = self.layers.get_mut(layer) {
            all_keys.extend_from_slice(keys);
            all_values.extend_from_slice(values);
        }
    }

    /// Sets the length in tokens, to which all layers have been appended.
    pub(crate) fn set_len(&mut self, tokens: usize) {
        self.tokens = tokens;
    }

    pub(crate) fn layer(&self, layer: usize) -> (&[f32], &[f32]) {
        self.layers.get(layer).map_or((&[], &[]), |(keys, values)| (keys, values))
    }

    /// Forgets everything after the first `tokens`.
    pub(crate) fn truncate(&mut self, tokens: usize) {
        self.tokens = self.tokens.min(tokens);
        for (keys, values) in &mut self.layers {
            keys.truncate(self.tokens * self.width);
            values.truncate(self.tokens * self.width);
        }
    }

    /// A copy of the first `tokens`.
    fn prefix(&self, tokens: usize) -> Self {
        let end = tokens.min(self.tokens) * self.width;
        let cut = |all: &Vec<f32>| all.get(..end).unwrap_or_default().to_vec();
        let layers = self.layers.iter().map(|(keys, values)| (cut(keys), cut(values))).collect();
        Self { layers, width: self.width, tokens: tokens.min(self.tokens) }
    }

    fn bytes(&self) -> usize {
        let numbers: usize =
            self.layers.iter().map(|(keys, values)| keys.capacity() + values.capacity()).sum();
        numbers * size_of::<f32>()
    }
}

/// Tokens with their keys and values.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    pub(crate) tokens: Vec<u32>,
    pub(crate) kv: KvCache,
}

impl Sequence {
    fn shared_prefix(&self, tokens: &[u32]) -> usize {
        self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count()
    }
}

/// Sequences of earlier jobs, least recently used first, within a limit of memory.
pub(crate) struct PrefixCache {
    sequences: Vec<Sequence>,
    empty: KvCache,
    token_bytes: usize,
    most_bytes: usize,
}

impl PrefixCache {
    pub(crate) fn new(empty: KvCache, token_bytes: usize, most_bytes: usize) -> Self {
        Self { sequences: Vec::new(), empty, token_bytes, most_bytes }
    }

    /// Sequence with the longest cached prefix of `tokens`. The last token is never part of it: it is read again for
    /// its logits.
    ///
    /// A sequence that continues otherwise is copied, so that siblings do not evict each other; where memory does
    /// not suffice for both, it is taken. `room` is the length in tokens the sequence will grow to.
    pub(crate) fn take_prefix(&mut self, tokens: &[u32], room: usize) -> Sequence {
        let most = tokens.len().saturating_sub(1);
        let shared = |sequence: &Sequence| sequence.shared_prefix(tokens).min(most);
        let best = (0..self.sequences.len()).max_by_key(|&at| shared(&self.sequences[at]));
        let Some((best, share)) =
            best.map(|at| (at, shared(&self.sequences[at]))).filter(|&(_, share)| share > 0)
        else {
            self.evict_to(self.most_bytes.saturating_sub(room * self.token_bytes));
            return Sequence { tokens: Vec::new(), kv: self.empty.clone() };
        };
        // In use now, so the last to be evicted.
        let found = self.sequences.remove(best);
        let needed = room * self.token_bytes;
        let both = needed + found.kv.bytes();
        let mut sequence = if found.tokens.len() > share + 1 && both <= self.most_bytes {
            self.evict_to(self.most_bytes - both);
            let copy = Sequence { tokens: Vec::new(), kv: found.kv.prefix(share) };
            self.sequences.push(found);
            copy
        } else {
            self.evict_to(self.most_bytes.saturating_sub(needed));
            found
        };
        sequence.kv.truncate(share);
        sequence.tokens.clear();
        sequence.tokens.extend_from_slice(&tokens[..share]);
        sequence
    }

    /// Caches a sequence for later jobs, in place of those that are prefixes of it.
    pub(crate) fn insert(&mut self, mut sequence: Sequence) {
        sequence.tokens.truncate(sequence.kv.len());
        if sequence.tokens.is_empty() || sequence.kv.bytes() > self.most_bytes {
            return;
        }
        self.sequences.retain(|kept| kept.shared_prefix(&sequence.tokens) < kept.tokens.len());
        self.sequences.push(sequence);
        self.evict_to(self.most_bytes);
    }

    /// Evicts the least recently used until no more than `bytes` are in use.
    fn evict_to(&mut self, bytes: usize) {
        while self.bytes() > bytes && !self.sequences.is_empty() {
            self.sequences.remove(0);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sequences.iter().map(|sequence| sequence.kv.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(tokens: &[u32]) -> Sequence {
        let mut kv = KvCache::new(1, 2);
        kv.reserve(tokens.len());
        for token in tokens {
            kv.append(0, &[*token as f32; 2], &[0.0; 2]);
        }
        kv.set_len(tokens.len());
        Sequence { tokens: tokens.to_vec(), kv }
    }

    fn kept(most_bytes: usize) -> PrefixCache {
        PrefixCache::new(KvCache::new(1, 2), 16, most_bytes)
    }

    #[test]
    fn a_request_begins_at_the_longest_kept_beginning_and_reads_its_last_token_again() {
        let mut kept = kept(1 << 20);
        kept.insert(sequence(&[1, 2, 3, 4, 5]));
        kept.insert(sequence(&[1, 9]));
        assert_eq!(kept.take_prefix(&[1, 2, 3, 7], 8).tokens, [1, 2, 3]);
        assert_eq!(kept.take_prefix(&[1, 2, 3], 8).tokens, [1, 2]);
        assert_eq!(kept.take_prefix(&[8, 2, 3], 8).kv.len(), 0);
    }

    #[test]
    fn a_sibling_does_not_drive_out_the_sequence_it_shares() {
        let mut kept = kept(1 << 20);
        kept.insert(sequence(&[1, 2, 3, 4, 5]));
        let sibling = kept.take_prefix(&[1, 2, 6], 8);
        assert_eq!((sibling.kv.len(), kept.sequences.len()), (2, 1));
        assert_eq!(sibling.kv.layer(0).0, [1.0, 1.0, 2.0, 2.0]);
        kept.insert(sequence(&[1, 2, 6]));
        assert_eq!(kept.take_prefix(&[1, 2, 3, 4, 5, 6], 8).kv.len(), 5);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let one = sequence(&[1, 2, 3]).kv.bytes();
        let mut kept = kept(2 * one);
        for first in 1..6 {
            kept.insert(sequence(&[first, 2, 3]));
            assert!(kept.bytes() <= 2 * one);
        }
        assert_eq!(kept.take_prefix(&[5, 2, 3, 4], 1).kv.len(), 3);
        assert_eq!(kept.take_prefix(&[1, 2, 3, 4], 1).kv.len(), 0);
    }

    #[test]
    fn without_room_for_a_copy_the_sequence_is_taken_over() {
        let one = sequence(&[1, 2, 3, 4]).kv.bytes();
        let mut kept = kept(one);
        kept.insert(sequence(&[1, 2, 3, 4]));
        assert_eq!(kept.take_prefix(&[1, 2, 9], one / 16).kv.len(), 2);
        assert_eq!(kept.bytes(), 0);
    }
}
