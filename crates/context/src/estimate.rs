//! Tokens, estimated from characters (spec: context §4).
//!
//! A linear model over counts by character class, with priors that err upwards for the common tokenizers.
//! The fit is named in the manifest, so that an old estimate can be told from a new one.

use serde::{Deserialize, Serialize};
use text::class::ClassCounts;

/// A linear estimate of tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimator {
    /// The fit's name.
    pub fit: String,
    /// Tokens a character of each class: Latin letters, digits, spaces, punctuation, CJK, other scripts, emoji.
    pub weights: [f64; 7],
    /// Tokens a message.
    pub message: f64,
}

impl Default for Estimator {
    /// Priors before any usage was reported.
    fn default() -> Self {
        Self { fit: "prior/1".to_owned(), weights: [0.26, 0.75, 0.16, 0.75, 1.25, 1.0, 3.0], message: 6.0 }
    }
}

impl Estimator {
    /// Tokens of text with these counts.
    pub fn of_counts(&self, counts: &ClassCounts) -> u64 {
        let weighted: f64 =
            counts.as_array().iter().zip(self.weights).map(|(count, weight)| *count as f64 * weight).sum();
        weighted.ceil() as u64
    }

    /// Tokens of a text.
    pub fn of(&self, text: &str) -> u64 {
        self.of_counts(&ClassCounts::of(text))
    }

    /// Tokens that `messages` messages cost besides their text.
    pub fn of_messages(&self, messages: usize) -> u64 {
        (messages as f64 * self.message).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_grows_with_the_text_and_is_zero_for_none() {
        let estimator = Estimator::default();
        assert_eq!(estimator.of(""), 0);
        let word = estimator.of("rain ");
        assert!(word > 0 && estimator.of(&"rain ".repeat(100)) <= word * 100);
        assert!(estimator.of("雨が降る") >= 4, "a CJK character is about a token");
    }
}
