//! How much a text is, in units of its kinds (spec: context §4).
//!
//! A letter of another script than Latin, or an emoji, is one unit, a Cyrillic letter of a Ukrainian text 1.25: else texts
//! of one script differ little.
//! What else a text holds is one kind of Latin text ([`LatinKind`]), and a unit of that is what one kind's tokens have
//! in common in all tokenizers: a weighted sum of characters and of the places where tokenizers cut.
//! So the units of a text are the same for every model, and a model's tokens are units times one weight a kind.

use text::class::{ClassCounts, Script};
use text::kind::{LatinKind, is_in_capitals, is_japanese, is_ukrainian};

/// Kinds in Latin letters.
pub(crate) const LATIN: usize = LatinKind::ALL.len();
/// All kinds: those, and scripts.
pub(crate) const KINDS: usize = LATIN + Script::ALL.len();

/// What a unit is made of: a letter, what an accented one has besides, a digit, a space, a punctuation mark, a run,
/// a gap, a hump.
type Shape = [f64; 8];

/// A word is a token, whatever its length.
const ENGLISH: Shape = [0.02, 0.0, 0.25, 0.02, 0.08, 0.48, 0.80, 0.50];
/// Tokens are shorter than words.
const PROSE: Shape = [0.083, 0.135, 0.15, 0.076, 0.246, 0.098, 0.689, 0.2];
const STRUCTURED: Shape = [0.032, 0.03, 0.178, 0.01, 0.047, 0.213, 0.475, 0.296];
/// There are no words.
const DENSE: Shape = [0.095, 0.1, 0.102, 0.094, 0.05, 0.097, 0.1, 0.134];

/// What prose in capitals has times the units it has in small letters: vocabularies have its words in small letters, and spell
/// these in pieces.
const CAPITALS: f64 = 1.7;

/// What Ukrainian has times the units that Russian of as many letters has: vocabularies know fewer of its words.
const UKRAINIAN: f64 = 1.25;

fn shape(kind: LatinKind) -> &'static Shape {
    match kind {
        LatinKind::English => &ENGLISH,
        LatinKind::Code | LatinKind::Names | LatinKind::Json => &STRUCTURED,
        LatinKind::Hex | LatinKind::Base64 => &DENSE,
        _ => &PROSE,
    }
}

/// Tells how many units a text has of each kind; of most kinds it has none, and they are not told.
pub(crate) fn each_unit(text: &str, mut tell: impl FnMut(usize, f64)) {
    let counts = ClassCounts::of(text);
    let ClassCounts { latin, accented, digits, spaces, punctuation, runs, gaps, humps, .. } = counts;
    if latin + digits + spaces + punctuation > 0 {
        let kind = LatinKind::of(text, &counts);
        let counted = [latin, accented, digits, spaces, punctuation, runs, gaps, humps];
        let units: f64 = counted.iter().zip(shape(kind)).map(|(count, weight)| *count as f64 * weight).sum();
        let is_dearer = kind.is_prose() && is_in_capitals(text, &counts);
        tell(kind as usize, if is_dearer { units * CAPITALS } else { units });
    }
    if counts.foreign() == 0 {
        return;
    }
    let japanese = is_japanese(&counts);
    for (script, count) in Script::ALL.into_iter().zip(counts.scripts) {
        if count > 0 {
            let script = if japanese && script == Script::Han { Script::Kana } else { script };
            let is_dearer = script == Script::Cyrillic && is_ukrainian(text);
            let units = count as f64;
            tell(LATIN + script as usize, if is_dearer { units * UKRAINIAN } else { units });
        }
    }
}

/// The name of a kind, for what is learned of it.
pub(crate) fn name(kind: usize) -> String {
    match LatinKind::ALL.get(kind) {
        Some(latin) => format!("{latin:?}"),
        None => Script::ALL
            .get(kind.saturating_sub(LATIN))
            .map_or_else(String::new, |script| format!("{script:?}")),
    }
}
