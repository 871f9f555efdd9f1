//! From a message to a score for every card, and to tags with their confidence (spec: capabilities §3).

use std::collections::BTreeMap;

use serde::Serialize;
use text::bigrams::words;

use crate::card::Card;
use crate::fusion::{LayerScores, fused, margins};
use crate::layers::{Bm25, Letters, Likeness, Phrases, fold_plural};

/// Tags that there are without a card that has them.
pub const DEFAULT_TAGS: [&str; 6] =
    ["config", "integration", "deployment", "memory", "token-economy", "debug"];

/// What it says of a tag that a message names it.
const NAMED: f64 = 0.75;

/// Confidence below which a tag is not told.
const TOLD: f64 = 0.05;

/// A tag that a message may be about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TagScore {
    pub tag: String,
    /// 0–1.
    pub confidence: f64,
}

/// Scores of one card.
#[derive(Clone, Debug, PartialEq)]
pub struct CardScores {
    pub layers: LayerScores,
    /// Keywords of the card that stand in the message.
    pub keywords: Vec<String>,
    /// Likelihood that the card is wanted, 0–1.
    pub score: f64,
}

/// What a message is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routing {
    /// From the most likely on, those of the same confidence by name.
    pub tags: Vec<TagScore>,
    /// Of each card, in the order of the cards.
    pub cards: Vec<CardScores>,
}

/// Layers over cards, made once for all messages.
#[derive(Debug)]
pub struct Router {
    phrases: Phrases,
    bm25: Bm25,
    letters: Letters,
    likeness: Likeness,
    /// Tags by their folded spelling.
    tags: Vec<String>,
    named_tags: Phrases,
    /// Indices of the tags of each card.
    tags_of_cards: Vec<Vec<usize>>,
}

impl Router {
    #[must_use]
    pub fn of(cards: &[Card]) -> Self {
        let mut indices: BTreeMap<String, usize> = BTreeMap::new();
        let mut tags = Vec::new();
        let mut index_of = |tag: &str| {
            let folded = folded(tag);
            *indices.entry(folded.clone()).or_insert_with(|| {
                tags.push(folded);
                tags.len() - 1
            })
        };
        for tag in DEFAULT_TAGS {
            index_of(tag);
        }
        let tags_of_cards =
            cards.iter().map(|card| card.tags.iter().map(|tag| index_of(tag)).collect()).collect();
        Self {
            phrases: Phrases::of(cards),
            bm25: Bm25::of(cards),
            letters: Letters::of(cards),
            likeness: Likeness::of(cards),
            named_tags: Phrases::of_tags(&tags),
            tags,
            tags_of_cards,
        }
    }

    /// Scores every card for a message.
    #[must_use]
    pub fn route(&self, message: &str) -> Routing {
        let found = self.phrases.find(message);
        let phrases = self.phrases.scores_of(&found);
        let (bm25, letters) = (self.bm25.scores(message), self.letters.scores(message));
        let likeness = self.likeness.scores(message);
        let mut is_named = vec![false; self.tags.len()];
        for tag in self.named_tags.find(message) {
            is_named[tag.card] = true;
        }
        let layers = (0..phrases.len()).map(|card| LayerScores {
            phrases: phrases[card],
            bm25: bm25[card],
            letters: letters[card],
            likeness: likeness[card],
            names_tag: self.tags_of_cards[card].iter().any(|tag| is_named[*tag]),
        });
        let layers: Vec<LayerScores> = layers.collect();
        let margins = margins(&layers);
        let length = words(message).len();
        let scored = layers.into_iter().zip(margins).map(|(layers, margin)| CardScores {
            score: fused(&layers, margin, length),
            layers,
            keywords: Vec::new(),
        });
        let mut cards: Vec<CardScores> = scored.collect();
        for phrase in found {
            cards[phrase.card].keywords.push(phrase.phrase);
        }
        let tags = self.tag_scores(&is_named, &cards);
        Routing { tags, cards }
    }

    /// A tag is likely by being named, or by a card that has it.
    fn tag_scores(&self, is_named: &[bool], cards: &[CardScores]) -> Vec<TagScore> {
        let mut likeliest = vec![0.0_f64; self.tags.len()];
        for (tags, card) in self.tags_of_cards.iter().zip(cards) {
            for tag in tags {
                likeliest[*tag] = likeliest[*tag].max(card.score);
            }
        }
        let confidence = |(named, likeliest): (&bool, f64)| {
            let named = if *named { NAMED } else { 0.0 };
            1.0 - (1.0 - named) * (1.0 - likeliest)
        };
        let confidences = is_named.iter().zip(likeliest).map(confidence);
        let scored = self.tags.iter().zip(confidences).filter(|(_, confidence)| *confidence >= TOLD);
        let mut tags: Vec<TagScore> =
            scored.map(|(tag, confidence)| TagScore { tag: tag.clone(), confidence }).collect();
        tags.sort_by(|one, other| {
            other.confidence.total_cmp(&one.confidence).then_with(|| one.tag.cmp(&other.tag))
        });
        tags
    }
}

/// A tag in one spelling: `Token_Economies` is `token-economies`, and `deployments` is `deployment`.
fn folded(tag: &str) -> String {
    let mut words = words(tag);
    if let Some(last) = words.last_mut() {
        fold_plural(last);
    }
    words.join("-")
}
