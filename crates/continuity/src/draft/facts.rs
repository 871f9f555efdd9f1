//! Whether a line tells of what stands in a source: no proof, but another session's facts are found.
//!
//! Names with a digit, a slash, an underscore or a full stop in them (paths, versions, numbers, names in code) stand in a
//! source as they are; of the other words a third does, by their first five letters, as a model writes them in other forms.
//! In scripts without spaces pairs of characters are the words.

use std::collections::HashSet;

use text::class::is_cjk;

use crate::deterministic::DeterministicHandoff;

/// Letters of a word by which it is compared.
const STEM: usize = 5;

/// Shorter words say nothing of what a line is about.
const SHORTEST_WORD: usize = 4;

/// Words of a line that is judged by its words.
const FEWEST_WORDS: usize = 3;

pub(super) struct KnownFacts {
    texts: Vec<String>,
    words: HashSet<String>,
}

impl KnownFacts {
    pub(super) fn of(made: &DeterministicHandoff, sources: &[String]) -> Self {
        let noted = made.overflow.iter().map(|entry| &entry.text);
        let texts = [made.handoff.render()]
            .iter()
            .chain(noted)
            .chain(sources)
            .map(|text| text.to_lowercase())
            .collect::<Vec<_>>();
        let words = texts.iter().flat_map(|text| words(text)).collect();
        Self { texts, words }
    }

    /// A name that stands in no source, or the line if too few of its words do.
    pub(super) fn unknown(&self, line: &str) -> Option<String> {
        let lower = line.to_lowercase();
        let names =
            lower.split(|c| !is_of_name(c)).map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let is_unknown = |name: &&str| is_name(name) && !self.texts.iter().any(|text| text.contains(*name));
        if let Some(name) = names.into_iter().find(is_unknown) {
            return Some(name.to_owned());
        }
        let words = words(&lower);
        let known = words.iter().filter(|word| self.words.contains(*word)).count();
        (words.len() >= FEWEST_WORDS && known * 3 < words.len()).then(|| line.to_owned())
    }
}

fn is_of_name(c: char) -> bool {
    (c.is_alphanumeric() && !is_cjk(c)) || matches!(c, '/' | '\\' | '_' | '.' | ':' | '-' | '@' | '+' | '#')
}

/// Whether a word is a name that is written in one way only. A single digit is none.
fn is_name(word: &str) -> bool {
    word.chars().count() > 1 && word.contains(|c: char| c.is_numeric() || matches!(c, '/' | '_' | '.' | ':'))
}

/// The words of a text in small letters, by which it is compared.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let letters: Vec<char> = word.chars().collect();
        if letters.iter().any(|c| is_cjk(*c)) {
            found.extend(letters.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if letters.len() >= SHORTEST_WORD {
            found.push(letters[..letters.len().min(STEM)].iter().collect());
        }
    }
    found
}
