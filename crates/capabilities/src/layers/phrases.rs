//! Literal phrases: keywords and router tags that stand in a message, word by word.
//!
//! Message and phrases are compared as words without case, accents and invisible characters, in one pass over the message
//! whatever the number of phrases. A phrase is never an expression, and never found within a word; between characters of
//! Chinese, Japanese and Korean there are no such bounds.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use text::bigrams::words;
use text::class::is_invisible;

use crate::card::Card;

/// What finding a phrase of one word says of its card, and what each further word takes of the rest.
const ONE_WORD: f64 = 0.75;
const FURTHER_WORD: f64 = 0.5;

/// Part of its say that a phrase loses where many cards have it: enough is left for it to be enough alone, as the author of
/// each said that it is.
const SHARED: f64 = 0.2;

/// A phrase of a card that stands in a message.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPhrase {
    /// Index of the card.
    pub card: usize,
    /// As the card has it.
    pub phrase: String,
    /// What it says of the card, 0–1.
    pub score: f64,
}

/// Phrases of cards, ready to be looked for.
#[derive(Debug)]
pub struct Phrases {
    /// None where there are no phrases.
    automaton: Option<AhoCorasick>,
    /// Of each pattern.
    patterns: Vec<Pattern>,
    cards: usize,
    /// Whether the plural of a word is its singular.
    folds_plural: bool,
}

#[derive(Debug)]
struct Pattern {
    phrase: String,
    cards: Vec<usize>,
    score: f64,
}

impl Phrases {
    /// Takes the keywords of cards.
    #[must_use]
    pub fn of(cards: &[Card]) -> Self {
        let all = cards.iter().enumerate();
        let phrases =
            all.flat_map(|(index, card)| card.keywords.iter().map(move |phrase| (index, phrase.as_str())));
        Self::of_phrases(phrases, cards.len(), false)
    }

    /// Takes router tags, each with its index, in which `_` and `-` are one, and singular and plural are.
    #[must_use]
    pub fn of_tags(tags: &[String]) -> Self {
        Self::of_phrases(tags.iter().map(String::as_str).enumerate(), tags.len(), true)
    }

    fn of_phrases<'p>(
        phrases: impl Iterator<Item = (usize, &'p str)>,
        cards: usize,
        folds_plural: bool,
    ) -> Self {
        let mut by_words: Vec<(String, usize, Pattern)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (card, phrase) in phrases {
            let words = words_of(phrase, folds_plural);
            if words.is_empty() {
                continue;
            }
            let bounded = bounded(&words);
            let index = *known.entry(bounded.clone()).or_insert(by_words.len());
            if index == by_words.len() {
                let pattern = Pattern { phrase: phrase.to_owned(), cards: Vec::new(), score: 0.0 };
                by_words.push((bounded, words.len(), pattern));
            }
            let of_phrase = &mut by_words[index].2.cards;
            if !of_phrase.contains(&card) {
                of_phrase.push(card);
            }
        }
        for (_, words, pattern) in &mut by_words {
            pattern.score = score(*words, pattern.cards.len());
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(by_words.iter().map(|(bounded, ..)| bounded))
            .ok()
            .filter(|_| !by_words.is_empty());
        let patterns = by_words.into_iter().map(|(.., pattern)| pattern).collect();
        Self { automaton, patterns, cards, folds_plural }
    }

    /// Phrases that stand in a message, in the order of cards and their phrases, each once.
    #[must_use]
    pub fn find(&self, message: &str) -> Vec<FoundPhrase> {
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let message = bounded(&words_of(message, self.folds_plural));
        let mut is_found = vec![false; self.patterns.len()];
        for found in automaton.find_overlapping_iter(&message) {
            is_found[found.pattern()] = true;
        }
        let patterns = self.patterns.iter().zip(is_found).filter(|(_, is_found)| *is_found);
        let mut found: Vec<FoundPhrase> = patterns
            .flat_map(|(Pattern { phrase, cards, score }, _)| {
                let found = |card: &usize| FoundPhrase { card: *card, phrase: phrase.clone(), score: *score };
                cards.iter().map(found)
            })
            .collect();
        found.sort_by_key(|found| found.card);
        found
    }

    /// Score of each card: what its phrases say together.
    #[must_use]
    pub fn scores(&self, message: &str) -> Vec<f64> {
        self.scores_of(&self.find(message))
    }

    pub(crate) fn scores_of(&self, found: &[FoundPhrase]) -> Vec<f64> {
        let mut doubts = vec![1.0; self.cards];
        for FoundPhrase { card, score, .. } in found {
            doubts[*card] *= 1.0 - score;
        }
        doubts.into_iter().map(|doubt| 1.0 - doubt).collect()
    }
}

/// What a phrase of so many words says of one of the cards that have it.
fn score(words: usize, cards: usize) -> f64 {
    let further = FURTHER_WORD.powi(i32::try_from(words).unwrap_or(i32::MAX) - 1);
    let alone = 1.0 - (1.0 - ONE_WORD) * further;
    alone * (1.0 - SHARED * (1.0 - 1.0 / cards as f64))
}

fn words_of(text: &str, folds_plural: bool) -> Vec<String> {
    // Unseen characters part no words.
    let seen: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let mut words = words(&seen);
    if folds_plural {
        words.iter_mut().for_each(fold_plural);
    }
    words
}

/// Takes the `s` of an English plural off a word.
pub(crate) fn fold_plural(word: &mut String) {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
}

/// Words with a blank around each, so that what is found begins and ends with a word.
fn bounded(words: &[String]) -> String {
    let mut bounded = " ".to_owned();
    for word in words {
        bounded += word;
        bounded.push(' ');
    }
    bounded
}
