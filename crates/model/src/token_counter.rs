//! Tokens as the model itself counts them (spec: context §4).
//!
//! A text is counted in chunks that end with a line or a word, and each chunk once: of a text that grows only the end
//! is counted anew. A cut costs at most a token or two of some hundreds.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::encoded::EncodedRequest;

/// Bytes after which a chunk ends with the line.
const CHUNK: usize = 2_048;
/// Bytes after which a chunk ends with the word, where a line is that long; and, for a word that long, within it.
const LONGEST_CHUNK: usize = 4_096;
/// Chunks whose counts are kept.
const MAX_KEPT: usize = 1 << 16;

/// Whether there was time for what a counter was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountEnd {
    InTime,
    /// What was counted until then is known.
    OutOfTime,
    /// Nothing was answered until then.
    Silent,
}

/// Counts tokens with a model's own vocabulary.
#[async_trait]
pub trait TokenCounter: Debug + Send + Sync {
    /// Who counts, for manifests.
    fn name(&self) -> &'static str;

    /// Tokens of a text by itself; none where that is not known yet.
    fn known(&self, text: &str) -> Option<u64>;

    /// Whether it counts in this process, so that a text may be counted before it is known whether it will be sent.
    fn is_here(&self) -> bool {
        false
    }

    /// Whether it may still count what it is asked; one that cannot is not waited for.
    fn may_count(&self) -> bool {
        true
    }

    /// Finds out what is not known of these texts. What cannot be found out stays unknown.
    async fn learn(&self, texts: &[String]) -> CountEnd;

    /// Finds out how many tokens a whole request has, where only asking tells it.
    async fn learn_request(&self, _: &EncodedRequest) -> CountEnd {
        CountEnd::InTime
    }

    /// Tokens of a whole request with what its template adds; none where that is not known.
    fn request(&self, request: &EncodedRequest) -> Option<u64>;
}

/// Counts of chunks by their digests.
#[derive(Debug, Default)]
pub(crate) struct CountedChunks(Mutex<HashMap<[u8; 16], u32>>);

impl CountedChunks {
    pub(crate) fn get(&self, chunk: impl AsRef<[u8]>) -> Option<u64> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A server that does not count is asked of every text of every request.
        if kept.is_empty() {
            return None;
        }
        kept.get(&key(chunk.as_ref())).map(|tokens| u64::from(*tokens))
    }

    pub(crate) fn keep(&self, chunk: impl AsRef<[u8]>, tokens: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key(chunk.as_ref()), u32::try_from(tokens).unwrap_or(u32::MAX));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Tokens of a text whose chunks are all known.
    pub(crate) fn sum(&self, text: &str) -> Option<u64> {
        chunks(text).map(|chunk| self.get(chunk)).sum()
    }
}

fn key(chunk: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&Sha256::digest(chunk)[..16]);
    key
}

/// The chunks of a text, in order.
pub(crate) fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (chunk, after) = rest.split_at(chunk_end(rest));
        rest = after;
        Some(chunk)
    })
}

/// Where the first chunk of a text ends. Words begin with the space before them.
fn chunk_end(text: &str) -> usize {
    if text.len() <= LONGEST_CHUNK {
        return text.len();
    }
    let bytes = &text.as_bytes()[..LONGEST_CHUNK];
    let line = bytes[CHUNK..].iter().position(|byte| *byte == b'\n').map(|at| CHUNK + at + 1);
    line.or_else(|| bytes.iter().rposition(|byte| *byte == b' ').filter(|at| *at >= CHUNK)).unwrap_or_else(
        || (CHUNK..LONGEST_CHUNK).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(text.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_make_the_text_and_stay_where_a_text_grows() {
        for unit in ["One line of words.\n", "ein Wort und noch eins ", "雨が降る。", "x", "👩\u{200D}💻"]
        {
            let text = unit.repeat(20_000 / unit.len());
            let longer = text.clone() + unit;
            let cut: Vec<_> = chunks(&text).collect();
            assert_eq!(cut.concat(), text);
            assert!(cut.len() > 4 && cut.iter().all(|chunk| chunk.len() <= LONGEST_CHUNK));
            assert_eq!(cut[..cut.len() - 1], chunks(&longer).take(cut.len() - 1).collect::<Vec<_>>());
        }
        assert_eq!(chunks("").count(), 0);
    }

    #[test]
    fn a_text_is_known_when_all_its_chunks_are() {
        let (counted, text) = (CountedChunks::default(), "a line\n".repeat(1_000));
        assert_eq!(counted.sum(&text), None);
        chunks(&text).for_each(|chunk| counted.keep(chunk, 7));
        assert_eq!(counted.sum(&text), Some(7 * chunks(&text).count() as u64));
        assert_eq!(counted.sum(""), Some(0));
    }
}
