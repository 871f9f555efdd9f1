//! Likeness of a message to what is said when a card is wanted: the cosine between it and the middle of the card's
//! utterances (a nearest-centroid classifier over weighted words, pairs of words and pieces of words).

use std::collections::{BTreeMap, HashMap};

use text::bigrams::tokenize;

use super::bm25::rarity;
use super::letters::for_each_piece;
use crate::card::Card;

/// Weights of pairs of words and of pieces, beside words.
const PAIR: f64 = 0.6;
const PIECE: f64 = 0.5;

/// Weight of a description, and of name and keywords, beside one utterance.
const SELF_DESCRIPTION: f64 = 1.5;

/// Middles of the utterances of cards.
#[derive(Debug, Default)]
pub struct Likeness {
    /// Cards whose middle has a feature, with its part there.
    postings: HashMap<String, Vec<(usize, f64)>>,
    /// Rarity of each feature among cards.
    rarities: HashMap<String, f64>,
    cards: usize,
}

impl Likeness {
    #[must_use]
    pub fn of(cards: &[Card]) -> Self {
        let features: Vec<Vec<(f64, BTreeMap<String, f64>)>> = cards.iter().map(utterances).collect();
        let mut having: BTreeMap<&str, usize> = BTreeMap::new();
        for card in &features {
            let of_card: std::collections::BTreeSet<&str> =
                card.iter().flat_map(|(_, features)| features.keys().map(String::as_str)).collect();
            for feature in of_card {
                *having.entry(feature).or_default() += 1;
            }
        }
        let rarities: HashMap<String, f64> = having
            .into_iter()
            .map(|(feature, having)| (feature.to_owned(), rarity(cards.len(), having)))
            .collect();
        let mut likeness = Self { postings: HashMap::new(), rarities, cards: cards.len() };
        for (index, utterances) in features.iter().enumerate() {
            let mut middle: BTreeMap<&str, f64> = BTreeMap::new();
            for (weight, features) in utterances {
                for (feature, part) in likeness.unit(features) {
                    *middle.entry(feature).or_default() += weight * part;
                }
            }
            let length = length(middle.values());
            for (feature, part) in middle {
                likeness.postings.entry(feature.to_owned()).or_default().push((index, part / length));
            }
        }
        likeness
    }

    /// Cosine between a message and the middle of each card.
    #[must_use]
    pub fn scores(&self, message: &str) -> Vec<f64> {
        let features = features(message);
        let mut scores = vec![0.0; self.cards];
        for (feature, part) in self.unit(&features) {
            for (card, of_middle) in self.postings.get(feature).map_or(&[][..], Vec::as_slice) {
                scores[*card] += part * of_middle;
            }
        }
        // Sums may be over by their last digit.
        scores.into_iter().map(|score| score.min(1.0)).collect()
    }

    /// Features weighted by their rarity, of length 1.
    fn unit<'f>(&self, features: &'f BTreeMap<String, f64>) -> BTreeMap<&'f str, f64> {
        let unseen = rarity(self.cards, 0);
        let weighted = |(feature, weight): (&'f String, &f64)| {
            let weight = if *weight > 1.0 { 1.0 + weight.ln() } else { *weight };
            let rarity = self.rarities.get(feature).copied().unwrap_or(unseen);
            (feature.as_str(), weight * rarity)
        };
        let mut unit: BTreeMap<&str, f64> = features.iter().map(weighted).collect();
        let length = length(unit.values());
        unit.values_mut().for_each(|part| *part /= length);
        unit
    }
}

fn length<'v>(parts: impl Iterator<Item = &'v f64>) -> f64 {
    parts.map(|part| part * part).sum::<f64>().sqrt().max(f64::MIN_POSITIVE)
}

fn utterances(card: &Card) -> Vec<(f64, BTreeMap<String, f64>)> {
    let named = [std::slice::from_ref(&card.name), &card.keywords].concat().join("\n");
    let itself = [&card.description, &named].into_iter().map(|text| (SELF_DESCRIPTION, features(text)));
    itself.chain(card.examples.iter().map(|example| (1.0, features(example)))).collect()
}

/// Words, pairs of words and pieces of words of a text, each with its weight.
fn features(text: &str) -> BTreeMap<String, f64> {
    let mut features: BTreeMap<String, f64> = BTreeMap::new();
    let words = tokenize(text);
    for pair in words.windows(2) {
        *features.entry(format!("b {} {}", pair[0], pair[1])).or_default() += PAIR;
    }
    for word in words {
        *features.entry(format!("w {word}")).or_default() += 1.0;
    }
    for_each_piece(text, &mut |piece| *features.entry(format!("p {piece}")).or_default() += PIECE);
    features
}
