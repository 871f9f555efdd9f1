//! The handoff that is made without a model, from what a session noted, was asked and left open (spec: continuity §4).
//!
//! | Section | From, in this order |
//! |---|---|
//! | Current Work | the first open step of the plan; else the first sentence of the newest request that had effects, else of the newest |
//! | Stopping Point | the first sentence of the newest request, how it ended, the last file changed |
//! | Key Outcomes | decisions, outcomes and corrections of the ledger, newest first; where there are fewer than three, sentences of the owner that decide something, marked `(extract)` |
//! | Open Questions | questions of the ledger, newest first; those without an answer; waiting approvals |
//! | Next Steps | steps of the ledger, open steps of the plan, calls whose outcome is unknown |
//!
//! What an earlier handoff had of the ledger stands behind, the newest first, where there is room.
//!
//! What a later entry corrects is left out; a correction of trust `outside` strikes nothing of higher trust, and stands in the
//! overflow alone. A text of trust `outside` is a quotation with its origin. Whatever comes in, the document passes
//! [`check`](crate::handoff::check) without errors and without logs of activity, and what speaks to a model in it is
//! bracketed. What is noted and is not whole in it is in the overflow, and so is each sentence of the owner that decides
//! something.

mod decision;
mod entry;
mod layout;

use std::collections::HashSet;

use text::fold::folded;

use crate::handoff::{Handoff, Section};
use decision::decides;
use entry::{
    MAX_OVERFLOW_CHARS, MAX_QUOTATION_CHARS, clean, quotation, sentences, shortened, within_brackets,
};
use layout::Layout;

pub(crate) use layout::leaving;

/// Most characters of Current Work, of a request in Stopping Point, of a question and of a step.
pub const MAX_LINE_CHARS: usize = 160;

/// Most entries of Key Outcomes.
pub const MAX_OUTCOMES: usize = 8;

/// Most characters of an entry of Key Outcomes.
pub const MAX_OUTCOME_CHARS: usize = 240;

/// Fewer noted outcomes than these are completed with what the owner said.
const FEW_OUTCOMES: usize = 3;

/// Sentences of a request that may name it.
const MOST_SENTENCES: usize = 5;

/// Most characters of the path of a file.
const MAX_PATH_CHARS: usize = 80;

/// A text with where it comes from. Secrets are masked in it already.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourcedText {
    pub text: String,
    /// Short id of the node that holds it.
    pub source: String,
    /// Name of where a text of trust `outside` comes from, as `example.org`; none for one of higher trust.
    pub outside: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    Decision,
    Outcome,
    Correction,
    Question,
    Step,
}

/// An entry of the session's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub id: String,
    pub kind: NoteKind,
    pub text: SourcedText,
    /// Id of the earlier entry that this one strikes.
    pub corrects: Option<String>,
    /// Whether an earlier handoff had it, so that it is lost nowhere where this one has no room for it.
    pub is_earlier: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEnd {
    Answered,
    Interrupted,
    /// A call waits for a yes.
    WaitsForApproval,
    /// The outcome of so many calls is unknown.
    UnknownOutcomes(usize),
}

/// What a person asked for, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub text: SourcedText,
    /// Whether its turn wrote a file, ran a command or acted in another way.
    pub had_effects: bool,
    pub end: RequestEnd,
}

/// What a wrap gathers of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatheredSession {
    /// Oldest first.
    pub ledger: Vec<Note>,
    /// Open steps of the plan, in order.
    pub plan: Vec<SourcedText>,
    /// Oldest first.
    pub requests: Vec<Request>,
    /// Path of the file that was changed last.
    pub changed_file: Option<String>,
    /// Questions without an answer: the owner's last one, the model's last one.
    pub unanswered: Vec<SourcedText>,
    /// What waits for a yes.
    pub approvals: Vec<SourcedText>,
    /// Calls whose outcome is unknown.
    pub unknown_calls: Vec<SourcedText>,
}

/// A handoff with where it comes from, and what did not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeterministicHandoff {
    pub handoff: Handoff,
    /// Where the entries of the handoff come from, in their order.
    pub sources: Vec<EntrySource>,
    pub overflow: Vec<OverflowEntry>,
}

/// Where an entry of a handoff comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySource {
    pub section: Section,
    /// Place in its section, from 0.
    pub index: usize,
    /// Short id of a node; empty where there is none.
    pub source: String,
    /// Whether its text is of trust `outside`, so that the entry is marked where it is shown to a model.
    pub is_outside: bool,
}

/// An entry that is not, or not whole, in a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverflowEntry {
    /// What it is, as `decision`.
    pub label: &'static str,
    /// One line, in brackets where it speaks to a model.
    pub text: String,
    /// Short id of a node; empty where there is none.
    pub source: String,
}

/// A line that may stand in the handoff.
#[derive(Debug, Clone)]
struct Candidate {
    section: Section,
    /// What it is in the overflow; none for one that stands elsewhere too.
    label: Option<&'static str>,
    before: &'static str,
    /// One line without marks of lists.
    text: String,
    behind: String,
    /// Most characters of the text with what stands before and behind it.
    most: usize,
    source: String,
    outside: Option<String>,
}

/// The handoff of a session. It depends on its argument alone.
#[must_use]
pub fn deterministic_handoff(session: &GatheredSession) -> DeterministicHandoff {
    let (standing, struck, held_back) = ledger(&session.ledger);
    let mut known = KnownTexts::corrected(&struck, &standing);
    let mut layout = Layout::new(current_work(session), stopping_point(session));
    let mut add = |candidate: Candidate, layout: &mut Layout| {
        if known.is_new(&candidate) {
            layout.add(candidate);
        }
    };
    let (earlier, new): (Vec<&Note>, Vec<&Note>) = standing.iter().partition(|note| note.is_earlier);
    let of_kind = |kinds: &'static [NoteKind]| new.iter().filter(|note| kinds.contains(&note.kind));
    for note in of_kind(&[NoteKind::Decision, NoteKind::Outcome, NoteKind::Correction]).rev() {
        add(noted(note), &mut layout);
    }
    // Where enough is noted, what was only said is in the overflow alone.
    let most = if layout.standing(Section::KeyOutcomes) < FEW_OUTCOMES { MAX_OUTCOMES } else { 0 };
    layout.most_outcomes = most;
    for sentence in decisions(session) {
        let candidate = Candidate::new(Section::KeyOutcomes, Some("said"), &sentence, MAX_OUTCOME_CHARS);
        add(Candidate { behind: " (extract)".to_owned(), ..candidate }, &mut layout);
    }
    for note in of_kind(&[NoteKind::Question]).rev() {
        add(noted(note), &mut layout);
    }
    for question in &session.unanswered {
        add(Candidate::new(Section::OpenQuestions, Some("question"), question, MAX_LINE_CHARS), &mut layout);
    }
    for approval in &session.approvals {
        let candidate = Candidate::new(Section::OpenQuestions, Some("question"), approval, MAX_LINE_CHARS);
        add(Candidate { before: "Waiting for a yes: ", ..candidate }, &mut layout);
    }
    for note in of_kind(&[NoteKind::Step]) {
        add(noted(note), &mut layout);
    }
    for step in &session.plan {
        add(Candidate::new(Section::NextSteps, Some("step"), step, MAX_LINE_CHARS), &mut layout);
    }
    for call in &session.unknown_calls {
        let candidate = Candidate::new(Section::NextSteps, Some("step"), call, MAX_LINE_CHARS);
        add(Candidate { before: "Find out how this call ended: ", ..candidate }, &mut layout);
    }
    for note in held_back {
        layout.leave(noted(note));
    }
    // Where this one leaves room.
    layout.most_outcomes = MAX_OUTCOMES;
    for note in earlier.into_iter().rev() {
        add(noted(note), &mut layout);
    }
    layout.fitted()
}

/// Texts that stand somewhere already, or that are corrected.
struct KnownTexts(HashSet<(String, bool)>);

impl KnownTexts {
    /// What is corrected and noted nowhere else. A text that is corrected is also no quotation.
    fn corrected(struck: &[&Note], standing: &[&Note]) -> Self {
        let key = |note: &&Note, is_outside| (folded(&clean(&note.text.text)), is_outside);
        let corrected = struck.iter().flat_map(|note| {
            let owned = note.text.outside.is_none().then(|| key(note, false));
            owned.into_iter().chain([key(note, true)])
        });
        let noted: HashSet<_> = standing.iter().map(|note| key(note, note.text.outside.is_some())).collect();
        Self(corrected.filter(|key| !noted.contains(key)).collect())
    }

    fn is_new(&mut self, candidate: &Candidate) -> bool {
        !candidate.text.is_empty() && self.0.insert((folded(&candidate.text), candidate.outside.is_some()))
    }
}

/// Entries that stand, those that later ones strike, and corrections that may not strike what they correct.
fn ledger(notes: &[Note]) -> (Vec<&Note>, Vec<&Note>, Vec<&Note>) {
    let mut struck = HashSet::new();
    let mut held_back = HashSet::new();
    for (index, note) in notes.iter().enumerate() {
        let Some(id) = &note.corrects else { continue };
        let Some(earlier) = notes[..index].iter().position(|earlier| earlier.id == *id) else { continue };
        if note.text.outside.is_some() && notes[earlier].text.outside.is_none() {
            held_back.insert(index);
        } else {
            struck.insert(earlier);
        }
    }
    let all = |is_one: &dyn Fn(usize) -> bool| {
        notes.iter().enumerate().filter(|(index, _)| is_one(*index)).map(|(_, note)| note).collect()
    };
    (
        all(&|index| !struck.contains(&index) && !held_back.contains(&index)),
        all(&|index| struck.contains(&index)),
        all(&|index| held_back.contains(&index) && !struck.contains(&index)),
    )
}

fn noted(note: &Note) -> Candidate {
    let (section, label, most) = match note.kind {
        NoteKind::Decision => (Section::KeyOutcomes, "decision", MAX_OUTCOME_CHARS),
        NoteKind::Outcome => (Section::KeyOutcomes, "outcome", MAX_OUTCOME_CHARS),
        NoteKind::Correction => (Section::KeyOutcomes, "correction", MAX_OUTCOME_CHARS),
        NoteKind::Question => (Section::OpenQuestions, "question", MAX_LINE_CHARS),
        NoteKind::Step => (Section::NextSteps, "step", MAX_LINE_CHARS),
    };
    Candidate::new(section, (!note.is_earlier).then_some(label), &note.text, most)
}

/// What may stand as Current Work, the best first; the last one always may.
fn current_work(session: &GatheredSession) -> Vec<Candidate> {
    let steps =
        session.plan.first().map(|step| Candidate::new(Section::CurrentWork, None, step, MAX_LINE_CHARS));
    let with_effects = session.requests.iter().rev().find(|request| request.had_effects);
    let requests = with_effects.into_iter().chain(session.requests.last());
    let asked = requests.flat_map(|request| named(request, Section::CurrentWork));
    let all = steps.into_iter().chain(asked).chain([nothing(Section::CurrentWork)]);
    all.filter(|candidate| !candidate.text.is_empty()).collect()
}

/// What may stand as Stopping Point, the best first; the last one always may.
fn stopping_point(session: &GatheredSession) -> Vec<Candidate> {
    let Some(request) = session.requests.last() else { return vec![nothing(Section::StoppingPoint)] };
    let end = match request.end {
        RequestEnd::Answered => "answered".to_owned(),
        RequestEnd::Interrupted => "interrupted".to_owned(),
        RequestEnd::WaitsForApproval => "waiting for a yes".to_owned(),
        RequestEnd::UnknownOutcomes(1) => "the outcome of 1 call is unknown".to_owned(),
        RequestEnd::UnknownOutcomes(calls) => format!("the outcomes of {calls} calls are unknown"),
    };
    let path = session.changed_file.as_deref().map(|path| shortened(&clean(path), MAX_PATH_CHARS));
    let with_path = path.map(|path| format!(" ({end}; last file changed: {path})"));
    let ends = with_path.into_iter().chain([format!(" ({end})")]);
    let all = ends.flat_map(|behind| {
        let most = MAX_LINE_CHARS + behind.chars().count();
        let named = named(request, Section::StoppingPoint).into_iter();
        named.map(move |candidate| Candidate { most, behind: behind.clone(), ..candidate })
    });
    all.collect()
}

/// What stands where nothing was asked for.
fn nothing(section: Section) -> Candidate {
    let text = SourcedText { text: "Nothing was asked for.".to_owned(), ..SourcedText::default() };
    Candidate::new(section, None, &text, MAX_LINE_CHARS)
}

/// The sentences by which a request may be named, the first one first, and its id at last.
fn named(request: &Request, section: Section) -> Vec<Candidate> {
    let candidate = |text| {
        let text = SourcedText { text, ..request.text.clone() };
        Candidate::new(section, None, &text, MAX_LINE_CHARS)
    };
    let id = SourcedText { text: String::new(), outside: None, ..request.text.clone() };
    let mut last = Candidate::new(section, None, &id, MAX_LINE_CHARS);
    last.text = format!("The request {}", last.source).trim_end().to_owned();
    sentences(&request.text.text).into_iter().take(MOST_SENTENCES).map(candidate).chain([last]).collect()
}

/// Sentences of the owner that decide something, newest request first.
fn decisions(session: &GatheredSession) -> Vec<SourcedText> {
    let requests = session.requests.iter().rev().filter(|request| request.text.outside.is_none());
    let all = requests.flat_map(|request| {
        let deciding = sentences(&request.text.text).into_iter().filter(|sentence| decides(sentence));
        deciding.map(|text| SourcedText { text, ..request.text.clone() })
    });
    all.collect()
}

impl Candidate {
    fn new(section: Section, label: Option<&'static str>, text: &SourcedText, most: usize) -> Self {
        Self {
            section,
            label,
            before: "",
            text: clean(&text.text),
            behind: String::new(),
            most,
            source: text.source.chars().filter(char::is_ascii_alphanumeric).collect(),
            outside: text.outside.clone(),
        }
    }

    /// The line with at most so many characters, and whether nothing is left out of it.
    fn line(&self, cap: usize) -> (String, bool) {
        let around = self.before.chars().count() + self.behind.chars().count();
        let text = match &self.outside {
            Some(origin) => quotation(origin, &self.text, cap.min(MAX_QUOTATION_CHARS)),
            None => shortened(&self.text, cap.min(self.most.saturating_sub(around))),
        };
        let is_whole = match &self.outside {
            Some(origin) => text == quotation(origin, &self.text, usize::MAX),
            None => text == self.text,
        };
        (format!("{}{text}{}", self.before, self.behind), is_whole)
    }

    fn overflow(&self, label: &'static str) -> OverflowEntry {
        let text = match &self.outside {
            Some(origin) => quotation(origin, &self.text, MAX_QUOTATION_CHARS),
            None => shortened(&self.text, MAX_OVERFLOW_CHARS),
        };
        let text = within_brackets(&format!("{}{text}", self.before));
        OverflowEntry { label, text, source: self.source.clone() }
    }
}
