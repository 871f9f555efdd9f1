//! What looks like a secret in a text that enters: formats with a fixed beginning and length, and values that are
//! assigned to a name such as `API_TOKEN` (spec: security §11).
//!
//! A text with a mark where there is no secret cannot be edited as it stands, so what may be something else is left:
//! hashes, UUIDs, words, identifiers, and what an example says (`xxxx`, `changeme`, `0123456789`).
//!
//! One search for the beginnings ([`ANCHORS`]) tells nearly all texts from those with a secret; what stands around a
//! beginning decides.

mod assigned;
mod formats;
mod stream;

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::packed::{Config, MatchKind, Searcher};
use sha2::{Digest as _, Sha256};

pub use stream::GuessStream;

/// A secret that is guessed: where it stands, and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guess {
    pub(super) range: Range<usize>,
    pub(super) kind: &'static str,
}

/// What no identity of a secret is computed without: whoever lacks it can confirm no value by its mark.
pub(super) type IdentityKey = [u8; 16];

/// How the name of what is guessed begins.
pub(super) const PREFIX: &str = "guessed.";

/// The mark of a guess in `text`: its kind, and 32 bits that are those of no other value.
pub(super) fn mark(guess: &Guess, text: &str, key: &IdentityKey) -> String {
    let digest = Sha256::new().chain_update(key).chain_update(&text[guess.range.clone()]).finalize();
    let identity: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    super::mark(&format!("{PREFIX}{}.{identity}", guess.kind))
}

/// Reads what stands around a beginning at a byte.
type Rule = fn(&[u8], usize) -> Option<Guess>;

/// Beginnings, and what decides there. At most 64: more are not searched for at once.
const ANCHORS: [(&str, Rule); 61] = [
    ("AKIA", formats::aws),
    ("ASIA", formats::aws),
    ("ghp_", formats::github),
    ("gho_", formats::github),
    ("ghu_", formats::github),
    ("ghs_", formats::github),
    ("ghr_", formats::github),
    ("github_pat_", formats::github_pat),
    ("glpat-", formats::gitlab),
    ("xoxa-", formats::slack),
    ("xoxb-", formats::slack),
    ("xoxe-", formats::slack),
    ("xoxp-", formats::slack),
    ("xoxr-", formats::slack),
    ("xoxs-", formats::slack),
    ("sk_live_", formats::stripe),
    ("rk_live_", formats::stripe),
    ("sk-", formats::openai),
    ("AIza", formats::google),
    ("npm_", formats::npm),
    ("pypi-", formats::pypi),
    ("SG.", formats::sendgrid),
    ("SK0", formats::twilio),
    ("SK1", formats::twilio),
    ("SK2", formats::twilio),
    ("SK3", formats::twilio),
    ("SK4", formats::twilio),
    ("SK5", formats::twilio),
    ("SK6", formats::twilio),
    ("SK7", formats::twilio),
    ("SK8", formats::twilio),
    ("SK9", formats::twilio),
    ("SKa", formats::twilio),
    ("SKb", formats::twilio),
    ("SKc", formats::twilio),
    ("SKd", formats::twilio),
    ("SKe", formats::twilio),
    ("SKf", formats::twilio),
    (":AA", formats::telegram),
    ("eyJ", formats::jwt),
    ("BEGIN ", formats::private_key),
    ("://", formats::url_password),
    ("earer ", formats::bearer),
    ("SECR", assigned::value),
    ("secr", assigned::value),
    ("Secr", assigned::value),
    ("TOKE", assigned::value),
    ("toke", assigned::value),
    ("Toke", assigned::value),
    ("PASSW", assigned::value),
    ("passw", assigned::value),
    ("Passw", assigned::value),
    ("_KEY", assigned::key),
    ("_key", assigned::key),
    ("apiKey", assigned::key),
    ("ApiKey", assigned::key),
    ("APIKEY", assigned::key),
    ("apikey", assigned::key),
    ("api-key", assigned::key),
    ("essKey", assigned::key),
    ("retKey", assigned::key),
];

static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let build = |config: &mut Config| {
        let mut builder = config.match_kind(MatchKind::LeftmostFirst).builder();
        builder.extend(ANCHORS.iter().map(|(anchor, _)| anchor));
        builder.build()
    };
    // Without vector instructions it is slower, and finds the same.
    build(&mut Config::new()).or_else(|| build(Config::new().only_rabin_karp(true)))
});

/// Whether a secret may begin somewhere in `bytes`.
fn has_anchor(bytes: &[u8]) -> bool {
    SEARCHER.as_ref().is_some_and(|searcher| searcher.find(bytes).is_some())
}

/// The secrets that `text` seems to hold, in order and disjoint.
pub(super) fn find(text: &str) -> Vec<Guess> {
    let bytes = text.as_bytes();
    let mut found: Vec<Guess> = Vec::new();
    let Some(searcher) = &*SEARCHER else { return found };
    let mut from = 0;
    while let Some(hit) = searcher.find_in(bytes, (from..bytes.len()).into()) {
        let (_, rule) = ANCHORS[hit.pattern().as_usize()];
        from = hit.start() + 1;
        let Some(mut guess) = rule(bytes, hit.start()) else { continue };
        if matches!(guess.kind, assigned::VALUE | formats::BEARER)
            && let Some(kind) = format_of(searcher, &bytes[guess.range.clone()])
        {
            guess.kind = kind;
        }
        from = from.max(guess.range.end);
        found
            .extend((guess.kind == formats::AWS).then(|| formats::aws_secret(bytes, &guess.range)).flatten());
        found.push(guess);
    }
    found.sort_by_key(|guess| guess.range.start);
    found.dedup_by(|later, earlier| {
        let overlaps = later.range.start < earlier.range.end;
        earlier.range.end = if overlaps { earlier.range.end.max(later.range.end) } else { earlier.range.end };
        overlaps
    });
    found
}

/// The format of a token that stands in a value.
fn format_of(searcher: &Searcher, value: &[u8]) -> Option<&'static str> {
    searcher
        .find_iter(value)
        .filter_map(|hit| ANCHORS[hit.pattern().as_usize()].1(value, hit.start()))
        .map(|guess| guess.kind)
        .find(|kind| !matches!(*kind, assigned::VALUE | formats::BEARER))
}

/// Length of the run of bytes from `at` on for which `is` holds: `most`, or one more where it is longer. Whatever stands in
/// a text is run through a bounded number of times, so that the cost of guessing grows with its length alone.
fn run(bytes: &[u8], at: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
    let length = bytes[at.min(bytes.len())..].iter().take(most + 1).take_while(|byte| is(**byte)).count();
    #[cfg(test)]
    tests::STEPS.with(|steps| steps.set(steps.get() + length + 1));
    length
}

/// Bytes of a sequence that colours text at a terminal.
const COLOUR: usize = 16;

/// Length of the sequences at a byte that colour what follows (`grep --color`).
fn colours(bytes: &[u8], at: usize) -> usize {
    let mut length = 0;
    while bytes[at + length..].starts_with(b"\x1b[") && length < 4 * COLOUR {
        let numbers = run(bytes, at + length + 2, COLOUR, |byte| byte.is_ascii_digit() || byte == b';');
        if !bytes.get(at + length + 2 + numbers).is_some_and(u8::is_ascii_alphabetic) {
            break;
        }
        length += numbers + 3;
    }
    length
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Letters, digits and the two signs of base64 in an address.
const fn is_url_safe(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// What stands in examples, in lower case.
const EXAMPLES: [&[u8]; 17] = [
    b"xxxx",
    b"****",
    b"....",
    b"____",
    b"example",
    b"placeholder",
    b"changeme",
    b"change-me",
    b"change_me",
    b"your",
    b"dummy",
    b"sample",
    b"redacted",
    b"01234567",
    b"12345678",
    b"abcdefgh",
    b"deadbeef",
];

fn is_example(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    EXAMPLES.iter().any(|example| memchr::memmem::find(&lower, example).is_some())
}

/// How many different bytes there are.
fn variety(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    value.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Whether the part of a format that differs from secret to secret is none of an example.
fn is_body(value: &[u8]) -> bool {
    variety(value) >= 8 && !is_example(value)
}

/// Whether letters and digits are mixed as they are in no word, name or number.
fn is_random(value: &[u8]) -> bool {
    is_mixed(value) && is_body(value)
}

/// Whether letters and digits stand side by side, several times.
fn is_mixed(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let mixes = |pair: &[u8]| {
        pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()
            || pair[1].is_ascii_digit() && pair[0].is_ascii_alphabetic()
    };
    let mixed = value.windows(2).filter(|pair| mixes(pair)).count();
    digits >= 2 && mixed >= 3
}

#[cfg(test)]
mod tests;
