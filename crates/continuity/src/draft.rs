//! A handoff that a model drafted, judged by rules (spec: continuity §4, *Draft*).
//!
//! | Found | Verdict |
//! |---|---|
//! | a section that is missing, doubled or out of order, an entry in another form, a text of more than 64 KiB | refused |
//! | a line that speaks to a model | refused |
//! | an entry about what stands in no source | refused |
//! | a log of activity; an empty section where the deterministic handoff has entries | sent back |
//! | more than five steps, more than 2,048 bytes | accepted and shortened by whole entries, in the order in which they leave a deterministic handoff |
//!
//! Where a draft is not accepted, the deterministic handoff stays. What stood in that one in other words goes to the overflow
//! of the draft, so that nothing which was noted is lost by a draft that leaves it out.

mod facts;

use text::finding::Finding;
use text::fold::folded;
use text::sanitiser;

use crate::deterministic::{DeterministicHandoff, OverflowEntry, leaving};
use crate::handoff::{Handoff, MAX_BYTES, MAX_STEPS, MOST_READ, Section, check};
use facts::KnownFacts;

/// What becomes of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftVerdict {
    /// The draft, shortened where it was too long, with what left it.
    Accepted(Handoff, Vec<OverflowEntry>),
    /// To be written again, once: a draft that would be sent back a second time is refused.
    SentBack(Vec<Finding>),
    Refused(Vec<Finding>),
}

/// The verdict on a draft that was made from these texts, beside the handoff that it would replace.
#[must_use]
pub fn judged(draft: &str, made: &DeterministicHandoff, sources: &[String]) -> DraftVerdict {
    let found = check(draft);
    let is_shortened = |code: &str| matches!(code, "too_large" | "too_many_steps");
    let is_too_long = draft.len() > MOST_READ;
    let mut wrong: Vec<Finding> = found
        .iter()
        .filter(|finding| finding.is_error() && (is_too_long || !is_shortened(finding.code)))
        .cloned()
        .collect();
    if is_too_long {
        return DraftVerdict::Refused(wrong);
    }
    wrong.extend(sanitiser::findings(draft));
    let mut handoff = Handoff::parse(draft).handoff;
    let known = KnownFacts::of(made, sources);
    for section in Section::ALL {
        for entry in handoff.entries(section) {
            if let Some(fact) = known.unknown(entry) {
                let why = format!("`{}` tells of \"{fact}\", which stands in no source", section.heading());
                wrong.push(Finding::error("unknown_fact", why));
            }
        }
    }
    if !wrong.is_empty() {
        return DraftVerdict::Refused(wrong);
    }
    let has_entries = |section: Section| made.sources.iter().any(|source| source.section == section);
    let emptied = Section::ALL
        .into_iter()
        .filter(|section| handoff.entries(*section).is_empty() && has_entries(*section));
    let why = |section: Section| format!("`{}` is empty, and something stands there", section.heading());
    let mut again: Vec<Finding> =
        emptied.map(|section| Finding::error("empty_section", why(section))).collect();
    again.extend(found.into_iter().filter(|finding| finding.code == "activity"));
    if !again.is_empty() {
        return DraftVerdict::SentBack(again);
    }
    let mut left = handoff.next_steps.split_off(handoff.next_steps.len().min(MAX_STEPS));
    left.reverse();
    let mut overflow: Vec<OverflowEntry> = left.into_iter().map(|step| entry("step", step)).collect();
    while handoff.render().len() > MAX_BYTES {
        let counts = |section: Section| handoff.entries(section).len();
        let Some(section) = leaving(counts) else {
            let why = format!("it has more than {MAX_BYTES} bytes with one entry in each section");
            return DraftVerdict::Refused(vec![Finding::error("too_large", why)]);
        };
        let (label, entries) = match section {
            Section::OpenQuestions => ("question", &mut handoff.open_questions),
            Section::NextSteps => ("step", &mut handoff.next_steps),
            _ => ("outcome", &mut handoff.key_outcomes),
        };
        overflow.extend(entries.pop().map(|text| entry(label, text)));
    }
    overflow.reverse();
    overflow.extend(left_out(&handoff, made));
    DraftVerdict::Accepted(handoff, overflow)
}

/// Entries of the deterministic handoff that do not stand in the draft as they are.
fn left_out(draft: &Handoff, made: &DeterministicHandoff) -> Vec<OverflowEntry> {
    let lists = [
        (Section::KeyOutcomes, "outcome"),
        (Section::OpenQuestions, "question"),
        (Section::NextSteps, "step"),
    ];
    let all = lists.into_iter().flat_map(|(section, label)| {
        let stands =
            move |text: &String| draft.entries(section).iter().any(|entry| folded(entry) == folded(text));
        let sources = made.sources.iter().filter(move |source| source.section == section);
        let entries =
            made.handoff.entries(section).iter().zip(sources).filter(move |(text, _)| !stands(text));
        entries.map(move |(text, source)| OverflowEntry {
            source: source.source.clone(),
            ..entry(label, text.clone())
        })
    });
    all.collect()
}

fn entry(label: &'static str, text: String) -> OverflowEntry {
    OverflowEntry { label, text, source: String::new() }
}
