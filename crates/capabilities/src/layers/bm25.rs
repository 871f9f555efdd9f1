//! BM25 over what a card says of itself, each field with its weight, as the share of what the words of a message could
//! give at most.

use std::collections::{BTreeMap, HashMap};

use text::bigrams::for_each_token;

use crate::card::Card;

/// Saturation of a word that is repeated, and how much the length of a card counts.
const K1: f64 = 1.2;
const B: f64 = 0.3;

/// Weights of a word by the field that has it.
const NAME: f64 = 3.0;
const KEYWORDS: f64 = 3.0;
const EXAMPLES: f64 = 1.5;
const DESCRIPTION: f64 = 1.5;
const BODY: f64 = 0.5;

/// Calls its second argument with every word of the first.
pub(super) type Divide<'d> = dyn Fn(&str, &mut dyn FnMut(&str)) + 'd;

/// Words of cards.
#[derive(Debug, Default)]
pub struct Bm25 {
    /// Cards that have a word, each with the saturated weight of the word in it.
    postings: HashMap<String, Vec<(usize, f64)>>,
    cards: usize,
}

impl Bm25 {
    #[must_use]
    pub fn of(cards: &[Card]) -> Self {
        let fields = |card: &Card| -> Vec<(f64, String)> {
            vec![
                (NAME, card.name.clone()),
                (KEYWORDS, card.keywords.join("\n")),
                (EXAMPLES, card.examples.join("\n")),
                (DESCRIPTION, card.description.clone()),
                (BODY, card.body.clone()),
            ]
        };
        Self::of_texts(&cards.iter().map(fields).collect::<Vec<_>>(), &|text, each| {
            for_each_token(text, each);
        })
    }

    /// Takes the weighted texts of each card, divided into words by a function.
    pub(crate) fn of_texts(cards: &[Vec<(f64, String)>], divide: &Divide<'_>) -> Self {
        // Sums of fractions depend on their order.
        let mut weights: Vec<BTreeMap<String, f64>> = Vec::with_capacity(cards.len());
        for fields in cards {
            let mut of_card: BTreeMap<String, f64> = BTreeMap::new();
            for (weight, text) in fields {
                divide(text, &mut |word| *of_card.entry(word.to_owned()).or_default() += weight);
            }
            weights.push(of_card);
        }
        let length = |card: &BTreeMap<String, f64>| card.values().sum::<f64>();
        let mean = weights.iter().map(length).sum::<f64>() / weights.len().max(1) as f64;
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        for (index, card) in weights.into_iter().enumerate() {
            let norm = K1 * (1.0 - B + B * length(&card) / mean.max(f64::MIN_POSITIVE));
            for (word, weight) in card {
                postings.entry(word).or_default().push((index, weight / (weight + norm)));
            }
        }
        Self { postings, cards: cards.len() }
    }

    /// Score of each card for the words of a message: 1 would be a card in which all of them stand without end.
    #[must_use]
    pub fn scores(&self, message: &str) -> Vec<f64> {
        self.scores_divided(message, &|text, each| for_each_token(text, each))
    }

    pub(crate) fn scores_divided(&self, message: &str, divide: &Divide<'_>) -> Vec<f64> {
        let mut words: BTreeMap<String, f64> = BTreeMap::new();
        divide(message, &mut |word| *words.entry(word.to_owned()).or_default() += 1.0);
        let (mut scores, mut mass) = (vec![0.0; self.cards], 0.0);
        for (word, times) in &words {
            let found = self.postings.get(word).map_or(&[][..], Vec::as_slice);
            let rarity = self.rarity(found.len()) * (1.0 + times.ln());
            mass += rarity;
            for (card, weight) in found {
                scores[*card] += rarity * weight;
            }
        }
        if mass > 0.0 {
            scores.iter_mut().for_each(|score| *score /= mass);
        }
        scores
    }

    fn rarity(&self, having: usize) -> f64 {
        rarity(self.cards, having)
    }
}

/// How much a word says that so many of the cards have (its inverse document frequency).
pub(super) fn rarity(cards: usize, having: usize) -> f64 {
    (1.0 + (cards as f64 - having as f64 + 0.5) / (having as f64 + 0.5)).ln()
}
