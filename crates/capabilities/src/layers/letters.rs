//! BM25 over pieces of words, so that another ending, a compound or a slip of the pen is still a likeness.

use text::bigrams::for_each_token;

use super::Bm25;
use crate::card::Card;

/// Letters of a piece.
const PIECE: usize = 4;

/// Pieces of the words of cards.
#[derive(Debug)]
pub struct Letters(Bm25);

impl Letters {
    #[must_use]
    pub fn of(cards: &[Card]) -> Self {
        let fields = |card: &Card| -> Vec<(f64, String)> {
            let named = [&card.name, &card.description].map(String::as_str).join("\n");
            vec![(2.0, named), (2.0, card.keywords.join("\n")), (1.0, card.examples.join("\n"))]
        };
        Self(Bm25::of_texts(&cards.iter().map(fields).collect::<Vec<_>>(), &for_each_piece))
    }

    /// Score of each card for the pieces of a message.
    #[must_use]
    pub fn scores(&self, message: &str) -> Vec<f64> {
        self.0.scores_divided(message, &for_each_piece)
    }
}

/// Calls `each` with every [`PIECE`] letters that follow each other in a word, its ends marked.
pub(super) fn for_each_piece(text: &str, each: &mut dyn FnMut(&str)) {
    let mut piece = String::new();
    for_each_token(text, |word| {
        let letters: Vec<char> = std::iter::once('^').chain(word.chars()).chain(['$']).collect();
        for letters in letters.windows(PIECE.min(letters.len())) {
            piece.clear();
            piece.extend(letters);
            each(&piece);
        }
    });
}
