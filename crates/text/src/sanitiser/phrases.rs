//! Phrases that would have instructions ignored, replaced or told.
//!
//! They are looked for in the letters alone, so that words in pieces are found as well; the first letter of each word is a
//! capital there, so that a phrase begins where a word does, and `#` stands for what no phrase goes over. Words of English
//! alone are known.

use std::sync::LazyLock;

use regex::{Error, Regex, RegexBuilder};

use super::matching::{MatchingCopy, PARAGRAPH, Unit, fold_l, is_space};

/// Most characters of a run of Base64 or hexadecimal digits that is not told.
const LONGEST_PLAIN: usize = 160;

/// Fewest characters of a line of wrapped Base64: words are shorter.
const SHORTEST_WRAPPED: usize = 32;

/// Words between a verb and what it is about; up to six of them.
const FILLERS: &str = "(?:all|any|every|each|of|the|these|those|this|that|your|my|our|its|and|or|to|in|from|with|previous|previously|\
    prior|above|earlier|preceding|foregoing|former|past|existing|current|initial|original|other|system|safety|developer|\
    given|listed|stated|hidden|secret|you|were|have|been|has|received)";

/// Words that say that something came before.
const EARLIER: &str = "(?:previous|previously|prior|above|earlier|preceding|foregoing|former|past)";

/// Words that say whose or which instructions are meant.
const WHOSE: &str = "(?:all|any|every|your|system|safety|developer|initial|original|existing|other)";

const OBJECTS: &str = "(?:instruction|direction|directive|prompt|rule|guideline|polic(?:y|ies)|constraint|restriction|guardrail|\
    training|programming)";

/// Objects that are instructions only where something says that they came before.
const WEAK_OBJECTS: &str = "(?:context|message|command|order|conversation|text|input)";

/// The pattern of all phrases. A capital is the first letter of a word.
fn pattern() -> String {
    let verb = "(?:(?-i:I)gnore|(?-i:D)isregard|(?-i:F)orget|(?-i:O)verride|(?-i:B)ypass|(?-i:N)eglect|(?-i:D)iscard|\
        (?-i:D)o(?:not|nt)(?:follow|obey|heed)|(?-i:N)ever(?:follow|obey))";
    let tell = "(?:(?-i:R)eveal|(?-i:P)rint|(?-i:R)epeat|(?-i:S)how|(?-i:O)utput|(?-i:L)eak|(?-i:D)isclose)";
    let fill = |most: u8| format!("{FILLERS}{{0,{most}}}");
    [
        format!("{verb}{}{EARLIER}{}(?:{OBJECTS}|{WEAK_OBJECTS})", fill(4), fill(4)),
        format!("{verb}{}{WHOSE}{}{OBJECTS}", fill(4), fill(4)),
        format!("{verb}{}(?:everything|anything|all|what(?:ever)?){}(?:above|before|earlier|previously|(?:said|told)(?:so|to|you|above|before|earlier))", fill(2), fill(4)),
        format!("{tell}(?:me|us)?{}(?:(?:system|hidden|secret|initial|original)(?:prompt|instruction|message))", fill(4)),
        "(?-i:Y)ou(?:are|re)now(?:in)?(?:a|an|the)?(?:dan|jailbroken|unrestricted|unfiltered|uncensored|developermode|godmode)".to_owned(),
        "(?-i:Y)ournew(?:instruction|rule|directive|prompt)".to_owned(),
        "(?-i:N)ew(?:system)?(?:instruction|directive|prompt)s?(?:override|replace|supersede)".to_owned(),
    ]
    .map(|phrase| phrase.chars().map(fold_l).collect::<String>())
    .join("|")
}

static PHRASES: LazyLock<Result<Regex, Error>> =
    LazyLock::new(|| RegexBuilder::new(&pattern()).case_insensitive(true).unicode(false).build());

/// Places of phrases, in bytes of the text.
pub(super) fn find(copy: &MatchingCopy) -> Vec<(usize, usize)> {
    let Ok(phrases) = &*PHRASES else { return Vec::new() };
    let (letters, places) = letters(&copy.units);
    let found = phrases.find_iter(&letters);
    found.map(|found| (places[found.start()].0, places[found.end() - 1].1)).collect()
}

/// The letters of a text, in ASCII, and what each stands for in it.
fn letters(units: &[Unit]) -> (String, Vec<(usize, usize)>) {
    let (mut letters, mut places) = (String::with_capacity(units.len()), Vec::with_capacity(units.len()));
    let mut is_in_word = false;
    for (index, Unit { c, start, end }) in units.iter().enumerate() {
        let ends_sentence = || units.get(index + 1).is_some_and(|next| is_space(next.c));
        let letter = match *c {
            PARAGRAPH => Some('#'),
            '.' | '!' | '?' | '。' if ends_sentence() => Some('#'),
            '@' | '$' if !is_in_word => None,
            c if c.is_alphabetic() && !c.is_ascii() => Some('#'),
            c => letter(c),
        };
        if let Some(letter) = letter {
            letters.push(if is_in_word { letter } else { letter.to_ascii_uppercase() });
            places.push((*start, *end));
        }
        is_in_word = letter.is_some_and(|letter| letter != '#');
    }
    (letters, places)
}

/// The letter that a character is, or is written for.
fn letter(c: char) -> Option<char> {
    match c {
        'a'..='z' => Some(c),
        '0' => Some('o'),
        '1' => Some('i'),
        '3' => Some('e'),
        '4' | '@' => Some('a'),
        '5' | '$' => Some('s'),
        '7' => Some('t'),
        _ => None,
    }
}

/// Long runs of Base64 or hexadecimal digits, also where they are wrapped. Base64 has capitals, small letters and digits, so
/// that no path or rule is one.
pub(super) fn encoded(text: &str) -> Vec<(usize, usize)> {
    let is_of_run =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let mut found = Vec::new();
    let mut stretch = Stretch::default();
    let mut start = 0;
    for run in text.as_bytes().split(|byte| !is_of_run(byte)) {
        let end = start + run.len();
        let is_gap = |gap: &str| gap.bytes().all(|byte| byte.is_ascii_whitespace()) && !gap.contains("\n\n");
        let goes_on = || stretch.length >= SHORTEST_WRAPPED && is_gap(&text[stretch.end..start]);
        if run.len() >= SHORTEST_WRAPPED && goes_on() {
            stretch.add(run, end);
        } else if !run.is_empty() {
            found.extend(stretch.encoded());
            stretch = Stretch { start, ..Stretch::default() };
            stretch.add(run, end);
        }
        start = end + 1;
    }
    found.extend(stretch.encoded());
    found
}

/// Runs of letters of Base64 with white space alone between them.
#[derive(Default)]
struct Stretch {
    start: usize,
    end: usize,
    /// Letters, without the white space.
    length: usize,
    has_capital: bool,
    has_small: bool,
    has_digit: bool,
    has_other_than_hexadecimal: bool,
}

impl Stretch {
    fn add(&mut self, run: &[u8], end: usize) {
        self.end = end;
        self.length += run.len();
        self.has_capital |= run.iter().any(u8::is_ascii_uppercase);
        self.has_small |= run.iter().any(u8::is_ascii_lowercase);
        self.has_digit |= run.iter().any(u8::is_ascii_digit);
        self.has_other_than_hexadecimal |= !run.iter().all(u8::is_ascii_hexdigit);
    }

    fn encoded(&self) -> Option<(usize, usize)> {
        let is_base64 = self.has_capital && self.has_small && self.has_digit;
        let is_hexadecimal =
            !self.has_other_than_hexadecimal && self.has_digit && (self.has_capital || self.has_small);
        (self.length > LONGEST_PLAIN && (is_base64 || is_hexadecimal)).then_some((self.start, self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_are_read() {
        assert!(PHRASES.is_ok(), "{:?}", PHRASES.as_ref().err());
    }
}
