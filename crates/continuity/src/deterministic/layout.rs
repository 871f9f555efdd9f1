//! Which lines stand in the handoff, so that it is no longer than it may be.
//!
//! Whole entries leave, and in this order: Key Outcomes from the end down to four, Open Questions down to two, Key Outcomes
//! down to two, Open Questions down to one, Next Steps down to three, then Key Outcomes and Next Steps down to one. Only
//! where one line each is still too long (in scripts of three and four bytes) are the lines themselves cut shorter.

use super::{Candidate, DeterministicHandoff, EntrySource, MAX_OUTCOME_CHARS, MAX_OUTCOMES};
use crate::handoff::{Handoff, MAX_BYTES, MAX_STEPS, Section, activity, bracketed::bracket};

/// Sections that entries leave from, and how many stay in them, in order.
const LEAVING: [(Section, usize); 7] = [
    (Section::KeyOutcomes, 4),
    (Section::OpenQuestions, 2),
    (Section::KeyOutcomes, 2),
    (Section::OpenQuestions, 1),
    (Section::NextSteps, 3),
    (Section::KeyOutcomes, 1),
    (Section::NextSteps, 1),
];

/// Characters of a line below which nothing is cut.
const SHORTEST: usize = 8;

/// The section that an entry leaves next, from its end; none where one entry each is left.
pub(crate) fn leaving(count: impl Fn(Section) -> usize) -> Option<Section> {
    LEAVING.into_iter().find(|(section, stay)| count(*section) > *stay).map(|(section, _)| section)
}

pub(super) struct Layout {
    candidates: Vec<Candidate>,
    /// Places of the candidates that stand, by the order of [`Section::ALL`]. Of the two sections of one line, the
    /// first stands and the others may stand in its place.
    sections: [Vec<usize>; Section::ALL.len()],
    /// Most entries of Key Outcomes with those that are added.
    pub(super) most_outcomes: usize,
    /// Most characters of a line.
    cap: usize,
}

impl Layout {
    pub(super) fn new(current_work: Vec<Candidate>, stopping_point: Vec<Candidate>) -> Self {
        let mut layout = Self {
            candidates: Vec::new(),
            sections: Default::default(),
            most_outcomes: MAX_OUTCOMES,
            cap: usize::MAX,
        };
        for candidate in current_work.into_iter().chain(stopping_point) {
            let place = layout.leave(candidate);
            layout.sections[layout.candidates[place].section as usize].push(place);
        }
        layout
    }

    /// Adds a line at the end of its section, if it may stand there.
    pub(super) fn add(&mut self, candidate: Candidate) {
        let section = candidate.section;
        let most = match section {
            Section::KeyOutcomes => self.most_outcomes,
            Section::NextSteps => MAX_STEPS,
            _ => usize::MAX,
        };
        let stands =
            self.standing(section) < most && activity(section, &candidate.line(self.cap).0).is_none();
        let place = self.leave(candidate);
        if stands {
            self.sections[section as usize].push(place);
        }
    }

    /// Adds a line that does not stand in the handoff; its place.
    pub(super) fn leave(&mut self, candidate: Candidate) -> usize {
        self.candidates.push(candidate);
        self.candidates.len() - 1
    }

    /// Lines of a section.
    pub(super) fn standing(&self, section: Section) -> usize {
        self.sections[section as usize].len()
    }

    /// The handoff of the lines that fit.
    pub(super) fn fitted(mut self) -> DeterministicHandoff {
        let handoff = loop {
            self.leave_activity();
            let mut handoff = self.handoff();
            // Brackets make it no shorter.
            if handoff.render().len() <= MAX_BYTES {
                bracket(&mut handoff);
            }
            if handoff.render().len() <= MAX_BYTES || !self.shorten() {
                break handoff;
            }
        };
        let mut sources = Vec::new();
        let mut whole = vec![false; self.candidates.len()];
        for section in Section::ALL {
            for (index, place) in self.entries(section).enumerate() {
                let candidate = &self.candidates[place];
                let (source, is_outside) = (candidate.source.clone(), candidate.outside.is_some());
                sources.push(EntrySource { section, index, source, is_outside });
                whole[place] = candidate.line(self.cap).1;
            }
        }
        let left = self.candidates.iter().zip(whole).filter(|(_, is_whole)| !is_whole);
        let overflow = left.filter_map(|(candidate, _)| Some(candidate.overflow(candidate.label?))).collect();
        DeterministicHandoff { handoff, sources, overflow }
    }

    /// Lets one entry leave, or cuts lines shorter; whether there was something to do.
    fn shorten(&mut self) -> bool {
        match leaving(|section| self.standing(section)) {
            Some(section) => self.sections[section as usize].pop().is_some(),
            None if self.cap <= SHORTEST => false,
            None => {
                self.cap = (self.cap / 2).min(MAX_OUTCOME_CHARS);
                true
            }
        }
    }

    /// Takes out what would be a log of activity, as a line that is cut may be.
    fn leave_activity(&mut self) {
        let Self { candidates, sections, cap, .. } = self;
        for (section, places) in Section::ALL.into_iter().zip(sections) {
            places.retain(|place| activity(section, &candidates[*place].line(*cap).0).is_none());
        }
    }

    /// Places of the lines that stand in a section.
    fn entries(&self, section: Section) -> impl Iterator<Item = usize> {
        let is_one_line = matches!(section, Section::CurrentWork | Section::StoppingPoint);
        let most = if is_one_line { 1 } else { usize::MAX };
        self.sections[section as usize].iter().copied().take(most)
    }

    fn handoff(&self) -> Handoff {
        let lines = |section| {
            self.entries(section).map(|place| self.candidates[place].line(self.cap).0).collect::<Vec<_>>()
        };
        let one = |section| lines(section).pop().unwrap_or_default();
        Handoff {
            current_work: one(Section::CurrentWork),
            stopping_point: one(Section::StoppingPoint),
            key_outcomes: lines(Section::KeyOutcomes),
            open_questions: lines(Section::OpenQuestions),
            next_steps: lines(Section::NextSteps),
        }
    }
}
