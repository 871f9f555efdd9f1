//! Sentences that say what was done, where a handoff wants what is true now.
//!
//! Whoever begins from "we tested three parsers" has to find out again what the tests showed. English alone is looked at,
//! and the commonest verbs: this is advice, so a sentence that is not found costs nothing.

use text::finding::Finding;

use super::Section;
use super::parser::Outline;

/// Verbs of work in the past tense, which say nothing of its result.
const VERBS: [&str; 40] = [
    "added",
    "analysed",
    "analyzed",
    "attempted",
    "benchmarked",
    "built",
    "checked",
    "cleaned",
    "compared",
    "created",
    "debugged",
    "discussed",
    "evaluated",
    "examined",
    "experimented",
    "explored",
    "fixed",
    "implemented",
    "inspected",
    "investigated",
    "looked",
    "measured",
    "moved",
    "profiled",
    "refactored",
    "removed",
    "renamed",
    "researched",
    "reviewed",
    "ran",
    "spent",
    "started",
    "studied",
    "talked",
    "tested",
    "tried",
    "updated",
    "worked",
    "wrote",
    "went",
];

/// Words that may stand between who did something and the verb, or before it.
const FILLERS: [&str; 14] = [
    "also",
    "already",
    "briefly",
    "finally",
    "first",
    "had",
    "have",
    "just",
    "later",
    "next",
    "quickly",
    "successfully",
    "then",
    "ve",
];

/// A warning for each entry with such a sentence.
pub(super) fn findings(outline: &Outline) -> Vec<Finding> {
    // Where the work stopped is said in the past: there and in what it is about, only who did something tells a log.
    let looked_at =
        [(Section::CurrentWork, false), (Section::StoppingPoint, false), (Section::KeyOutcomes, true)];
    let mut found = Vec::new();
    for (section, alone) in looked_at {
        for entry in outline.entries(section) {
            if let Some(verb) = activity(&entry.text, alone) {
                let why = format!(
                    "a log of activity (\"{verb}\"): write what is true now and why, as \"X works because Y\""
                );
                found.push(Finding::warning("activity", why).at(entry.line));
            }
        }
    }
    found
}

/// The verb of the first sentence that tells of an activity: behind "we" or "I" wherever it stands, and where verbs count
/// `alone`, at the beginning of a sentence too.
fn activity(text: &str, alone: bool) -> Option<&'static str> {
    let mut after_subject = alone;
    let mut ends_sentence = false;
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '’')) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if bare.is_empty() {
            continue;
        }
        if ends_sentence && alone || matches!(&*bare, "we" | "i") {
            after_subject = true;
        }
        ends_sentence = word.ends_with(['.', '!', '?', ':', ';']);
        if matches!(&*bare, "we" | "i") || FILLERS.contains(&&*bare) {
            continue;
        }
        if after_subject && let Some(verb) = VERBS.into_iter().find(|verb| *verb == bare) {
            return Some(verb);
        }
        after_subject = false;
    }
    None
}
