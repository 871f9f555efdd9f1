//! One score of the layers: how likely it is that a card is wanted, so that a threshold means the same for every card
//! (spec: capabilities §3).
//!
//! What is measured of the words is made one likelihood by a logistic function, whose weights were fitted to labelled
//! requests among 4 to 100 cards, for many of which there was no card. Phrases that a card names itself speak beside it: they and the
//! likelihood are independent reasons, either of which can be enough.

use serde::Serialize;

/// What each layer says of a card for a message, 0–1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LayerScores {
    pub phrases: f64,
    pub bm25: f64,
    pub letters: f64,
    pub likeness: f64,
    /// Whether the message names a router tag of the card.
    pub names_tag: bool,
}

/// Parts of the layers in the mean by which cards are compared with each other.
const LIKENESS: f64 = 0.5;
const BM25: f64 = 0.25;
const LETTERS: f64 = 0.25;

/// Weights of the logistic function.
const BIAS: f64 = -5.4;
const OF_LIKENESS: f64 = 5.0;
const OF_LETTERS: f64 = 3.4;
const OF_MARGIN: f64 = 11.4;
const OF_LENGTH: f64 = 0.78;

/// Words of a message beyond which its length says nothing more: longer ones were not among the requests.
const LONGEST: usize = 32;

/// Likelihood that a card is wanted by a tag of it that the message names, alone.
const TAG: f64 = 0.4;

/// By how much the words of each card speak for it more than those of the best other card, or less.
#[must_use]
pub fn margins(cards: &[LayerScores]) -> Vec<f64> {
    let mean = |card: &LayerScores| LIKENESS * card.likeness + BM25 * card.bm25 + LETTERS * card.letters;
    let means: Vec<f64> = cards.iter().map(mean).collect();
    let (mut best, mut second, mut first) = (0.0, 0.0, None);
    for (index, mean) in means.iter().enumerate() {
        if *mean > best {
            (second, best, first) = (best, *mean, Some(index));
        } else if *mean > second {
            second = *mean;
        }
    }
    let other = |index| if Some(index) == first { second } else { best };
    means.iter().enumerate().map(|(index, mean)| mean - other(index)).collect()
}

/// Likelihood that a card is wanted by a message of so many words. Words that no layer knows speak for no card.
#[must_use]
pub fn fused(card: &LayerScores, margin: f64, words: usize) -> f64 {
    let is_known = card.likeness > 0.0 || card.letters > 0.0 || card.bm25 > 0.0;
    let length = (1.0 + words.min(LONGEST) as f64).ln();
    let sum = BIAS
        + OF_LIKENESS * card.likeness
        + OF_LETTERS * card.letters
        + OF_MARGIN * margin
        + OF_LENGTH * length;
    let by_words = if is_known { 1.0 / (1.0 + (-sum).exp()) } else { 0.0 };
    let by_tag = if card.names_tag { TAG } else { 0.0 };
    1.0 - (1.0 - by_words) * (1.0 - card.phrases) * (1.0 - by_tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_of_the_best_is_positive_and_of_others_is_not() {
        let of = |likeness| LayerScores { likeness, ..LayerScores::default() };
        let found = margins(&[of(0.2), of(0.8), of(0.4)]);
        let is_near = |(found, expected): (&f64, f64)| (found - expected).abs() < 1e-9;
        assert!(found.iter().zip([-0.3, 0.2, -0.2]).all(is_near), "{found:?}");
        assert_eq!(margins(&[of(0.8)]), [0.4], "without another one it is its own");
        assert_eq!(margins(&[]), [0.0; 0]);
    }

    #[test]
    fn a_keyword_alone_is_enough_and_a_tag_alone_is_not() {
        let nothing = LayerScores::default();
        assert_eq!(fused(&nothing, 0.0, 30), 0.0);
        assert!(fused(&LayerScores { phrases: 0.75, ..nothing }, 0.0, 30) >= crate::DEFAULT_THRESHOLD);
        let tag = fused(&LayerScores { names_tag: true, ..nothing }, 0.0, 30);
        assert!(tag > 0.0 && tag < crate::DEFAULT_THRESHOLD);
    }

    #[test]
    fn every_score_is_between_nothing_and_one() {
        for value in [0.0, 0.5, 1.0] {
            for margin in [-1.0, 0.0, 1.0] {
                let card = LayerScores {
                    phrases: value,
                    bm25: value,
                    letters: value,
                    likeness: value,
                    names_tag: value > 0.0,
                };
                for words in [0, 1, 32, usize::MAX] {
                    assert!((0.0..=1.0).contains(&fused(&card, margin, words)));
                }
            }
        }
    }
}
