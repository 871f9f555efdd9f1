//! Sentences that say what was done, where a handoff wants what is true now.
//!
//! Whoever begins from "we tested three parsers" has to find out again what the tests showed. English, German and Chinese
//! are looked at, and the commonest verbs: this is advice, so a sentence that is not found costs nothing.

use text::cut::sentence_ends;
use text::finding::Finding;

use super::parser::Outline;
use super::{Section, SectionForm};

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

/// Participles of German for work, as in "wir haben es getestet".
const PARTICIPLES: [&str; 24] = [
    "aktualisiert",
    "angeschaut",
    "angesehen",
    "aufgeräumt",
    "ausprobiert",
    "behoben",
    "besprochen",
    "entfernt",
    "erstellt",
    "gearbeitet",
    "gebaut",
    "gemessen",
    "geprüft",
    "geschrieben",
    "getestet",
    "hinzugefügt",
    "implementiert",
    "probiert",
    "umbenannt",
    "umgebaut",
    "untersucht",
    "verglichen",
    "verschoben",
    "versucht",
];

/// Verbs of Chinese for work, with the particle of what is done.
const CHINESE: [&str; 16] = [
    "测试了",
    "尝试了",
    "试了",
    "检查了",
    "比较了",
    "修复了",
    "添加了",
    "删除了",
    "更新了",
    "研究了",
    "讨论了",
    "重构了",
    "实现了",
    "运行了",
    "测量了",
    "编写了",
];

/// A warning for each entry with such a sentence.
pub(super) fn findings(outline: &Outline) -> Vec<Finding> {
    let mut found = Vec::new();
    for section in Section::ALL {
        for entry in outline.entries(section) {
            if let Some(verb) = activity(section, &entry.text) {
                let why = format!(
                    "a log of activity (\"{verb}\"): write what is true now and why, as \"X works because Y\""
                );
                found.push(Finding::warning("activity", why).at(entry.line));
            }
        }
    }
    found
}

/// The verb of the first sentence in an entry of a section that tells of an activity. A question tells of none. A verb
/// counts behind "we" or "I" wherever it stands, and in a list at the beginning of a sentence too: of what the work is about
/// and where it stopped is said in the past.
pub(crate) fn activity(section: Section, text: &str) -> Option<&'static str> {
    let alone = section.form() != SectionForm::OneLine;
    let mut from = 0;
    sentence_ends(text).chain([text.len()]).find_map(|end| {
        let sentence = &text[std::mem::replace(&mut from, end)..end];
        let is_question =
            sentence.trim_end_matches(|c: char| !matches!(c, '.' | '!' | '?' | '？')).ends_with(['?', '？']);
        if is_question {
            None
        } else {
            english(sentence, alone).or_else(|| german(sentence)).or_else(|| chinese(sentence))
        }
    })
}

fn english(text: &str, alone: bool) -> Option<&'static str> {
    let mut after_subject = alone;
    let mut ends_sentence = false;
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '’')) {
        let bare = bare(word);
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

fn german(text: &str) -> Option<&'static str> {
    let words: Vec<String> = text.split_whitespace().map(bare).collect();
    let is_first_person = |pair: &[String]| {
        let is_of = |subject: &str, verb: &str| {
            matches!(subject, "wir" | "ich") && matches!(verb, "haben" | "habe" | "hatten" | "hatte")
        };
        is_of(&pair[0], &pair[1]) || is_of(&pair[1], &pair[0])
    };
    let at = words.windows(2).position(is_first_person)?;
    PARTICIPLES.into_iter().find(|verb| words[at..].iter().any(|word| word == verb))
}

fn chinese(text: &str) -> Option<&'static str> {
    let at = text.find('我')?;
    CHINESE.into_iter().find(|verb| text[at..].contains(verb))
}

/// A word in small letters, without what stands around it.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}
