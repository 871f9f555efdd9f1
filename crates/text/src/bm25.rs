//! BM25 over a few hundred tokenised documents held in memory.
//!
//! For ranking cards and skills against a message (spec: capabilities §3). Stores rank their own, larger texts.
//! The parameters are the customary `k1` 1.2 and `b` 0.75, the inverse document frequency the variant that is never
//! negative. Scores depend on nothing but the documents and the query, and are summed in a fixed order.

use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// An index of tokenised documents.
#[derive(Debug, Clone, Default)]
pub struct Bm25 {
    /// For each token the documents that have it, in order, and how often.
    postings: HashMap<String, Vec<(usize, u32)>>,
    /// Tokens of each document.
    lengths: Vec<usize>,
}

/// A document that has at least one word of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The document's place in the index.
    pub document: usize,
    /// The BM25 score, above 0; comparable within one query only.
    pub score: f64,
    /// The score as a share, 0 to 1, of the most that any document could reach with this query: comparable
    /// between queries, lowered by query words that no document has.
    pub share: f64,
}

impl Bm25 {
    /// Indexes documents, each a list of tokens (see [`tokenize`](crate::bigrams::tokenize)).
    pub fn new<D, T>(documents: impl IntoIterator<Item = D>) -> Self
    where
        D: IntoIterator<Item = T>,
        T: Into<String>,
    {
        let mut index = Self::default();
        for (document, tokens) in documents.into_iter().enumerate() {
            let mut length = 0;
            for token in tokens {
                length += 1;
                let posting = index.postings.entry(token.into()).or_default();
                match posting.last_mut() {
                    Some((last, times)) if *last == document => *times += 1,
                    _ => posting.push((document, 1)),
                }
            }
            index.lengths.push(length);
        }
        index
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The documents with a token of `query`, best first, those with equal scores in the order of the index. A
    /// token repeated in the query counts once.
    #[must_use]
    pub fn rank(&self, query: &[impl AsRef<str>]) -> Vec<Hit> {
        let mut scores = vec![0.0; self.len()];
        let mut mass = 0.0;
        let mean_length = self.lengths.iter().sum::<usize>() as f64 / self.len().max(1) as f64;
        let mut tokens: Vec<&str> = query.iter().map(AsRef::as_ref).collect();
        // Sums of floats depend on their order: the order of words in a query must not decide between two hits.
        tokens.sort_unstable();
        tokens.dedup();
        for token in tokens {
            let posting = self.postings.get(token).map_or(&[][..], Vec::as_slice);
            let idf = self.idf(posting.len());
            mass += idf * (K1 + 1.0);
            for (document, times) in posting {
                let times = f64::from(*times);
                let relative_length = self.lengths[*document] as f64 / mean_length;
                scores[*document] +=
                    idf * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * relative_length));
            }
        }
        let hit = |(document, score): (usize, f64)| Hit { document, score, share: (score / mass).min(1.0) };
        let mut hits: Vec<Hit> =
            scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).map(hit).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits
    }

    fn idf(&self, documents_with: usize) -> f64 {
        let (all, with) = (self.len() as f64, documents_with as f64);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(documents: &[&str]) -> Bm25 {
        Bm25::new(documents.iter().map(|text| text.split(' ')))
    }

    fn ranked(index: &Bm25, query: &str) -> Vec<usize> {
        index.rank(&query.split(' ').collect::<Vec<_>>()).iter().map(|hit| hit.document).collect()
    }

    #[test]
    fn rare_words_count_more_than_common_ones() {
        let index = index(&["the loom", "the cat", "the cat and the dog", "a bird"]);
        assert_eq!(ranked(&index, "the loom"), [0, 1, 2]);
    }

    #[test]
    fn more_often_counts_more_and_longer_counts_less() {
        let index =
            index(&["deploy x y z", "deploy deploy y z", "deploy x y z and many more words than these"]);
        assert_eq!(ranked(&index, "deploy"), [1, 0, 2]);
    }

    #[test]
    fn the_score_is_the_formula_by_hand() {
        let hit = index(&["a b", "c d"]).rank(&["a"])[0];
        // idf = ln(1 + 1.5/1.5) = ln 2; both lengths are the mean, so the rest is 2.2 / 2.2.
        assert!((hit.score - 2.0_f64.ln()).abs() < 1e-12);
        assert!((hit.share - 1.0 / 2.2).abs() < 1e-12);
    }

    #[test]
    fn unknown_words_lower_the_share_and_not_the_score() {
        let index = index(&["deploy the gateway", "other"]);
        let (known, half) = (index.rank(&["deploy"])[0], index.rank(&["deploy", "zebra", "deploy"])[0]);
        assert!((known.score - half.score).abs() < 1e-12);
        assert!(half.share < known.share / 1.9);
    }

    #[test]
    fn nothing_matches_nothing() {
        assert!(index(&["a b"]).rank(&["c"]).is_empty());
        assert!(index(&["a b"]).rank(&[""; 0]).is_empty());
        assert!(Bm25::default().rank(&["a"]).is_empty());
    }
}
