//! Cuts arriving choices behind their first sentence or paragraph.

use std::collections::BTreeMap;

use model::ModelEvent;
use text::cut::Boundary;

/// The choices of one request as far as they arrived, each up to its boundary.
pub(crate) struct StopCutter {
    boundary: Option<Boundary>,
    expected: usize,
    choices: BTreeMap<u32, ArrivingChoice>,
    /// Whether the choice that ended last was cut. One that ends by itself is followed by what the server says of all.
    was_cut: bool,
}

#[derive(Default)]
struct ArrivingChoice {
    text: String,
    ended: bool,
}

impl StopCutter {
    /// `expected` is how many choices were asked for. Without a boundary nothing is cut.
    pub(crate) fn new(boundary: Option<Boundary>, expected: u32) -> Self {
        Self { boundary, expected: expected as usize, choices: BTreeMap::new(), was_cut: false }
    }

    /// What of an event stands before the boundary of its choice.
    pub(crate) fn event(&mut self, event: ModelEvent) -> Option<ModelEvent> {
        let Some(boundary) = self.boundary else { return Some(event) };
        match event {
            ModelEvent::Text { choice, mut text } => {
                let arriving = self.choices.entry(choice).or_default();
                if arriving.ended {
                    return None;
                }
                if Boundary::is_too_long(&arriving.text) {
                    return Some(ModelEvent::Text { choice, text });
                }
                let shown = arriving.text.len();
                arriving.text.push_str(&text);
                if let Some(end) = boundary.first_end(&arriving.text) {
                    (arriving.ended, self.was_cut) = (true, true);
                    text.truncate(end.saturating_sub(shown));
                }
                (!text.is_empty()).then_some(ModelEvent::Text { choice, text })
            }
            ModelEvent::Thinking { choice, .. } if self.choices.get(&choice).is_some_and(|at| at.ended) => {
                None
            }
            ModelEvent::Finish { choice, .. } => {
                let arriving = self.choices.entry(choice).or_default();
                if !std::mem::replace(&mut arriving.ended, true) {
                    self.was_cut = false;
                }
                Some(event)
            }
            event => Some(event),
        }
    }

    /// Whether each choice that was asked for has met its boundary, or its own end before that: nothing that still comes
    /// belongs to the answer.
    pub(crate) fn has_ended(&self) -> bool {
        self.was_cut
            && self.choices.len() >= self.expected
            && self.choices.values().all(|choice| choice.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(choice: u32, text: &str) -> ModelEvent {
        ModelEvent::Text { choice, text: text.to_owned() }
    }

    #[test]
    fn each_choice_is_cut_at_its_own_place_and_the_last_ends_the_stream() {
        let mut cutter = StopCutter::new(Some(Boundary::Sentence), 2);
        let thinking = ModelEvent::Thinking { choice: 0, text: "First. Then.".to_owned() };
        assert_eq!(cutter.event(thinking.clone()), Some(thinking.clone()));
        assert_eq!(cutter.event(text(0, " One. T")), Some(text(0, " One. ")));
        assert!(!cutter.has_ended());
        assert_eq!(cutter.event(text(0, "wo.")), None);
        assert_eq!(cutter.event(thinking), None, "what comes behind the boundary is not shown");
        assert_eq!(cutter.event(text(1, "Dr. ")), Some(text(1, "Dr. ")));
        assert_eq!(cutter.event(text(1, "Doe.")), Some(text(1, "Doe.")));
        assert!(!cutter.has_ended());
        assert_eq!(cutter.event(text(1, " He")), Some(text(1, " ")));
        assert!(cutter.has_ended());
    }

    #[test]
    fn a_choice_that_ends_by_itself_keeps_no_other_waiting() {
        let finish = |choice| ModelEvent::Finish { choice, reason: model::FinishReason::Stop };
        let mut cutter = StopCutter::new(Some(Boundary::Sentence), 2);
        cutter.event(text(0, "All of it"));
        assert_eq!(cutter.event(finish(0)), Some(finish(0)));
        assert!(!cutter.has_ended());
        cutter.event(text(1, "One. Two"));
        assert!(cutter.has_ended());

        let mut cutter = StopCutter::new(Some(Boundary::Sentence), 1);
        cutter.event(text(0, "All of it"));
        cutter.event(finish(0));
        assert!(!cutter.has_ended(), "what the server says of the request still comes");
    }

    #[test]
    fn nothing_is_cut_without_a_boundary() {
        let mut cutter = StopCutter::new(None, 1);
        assert_eq!(cutter.event(text(0, "One. Two.")), Some(text(0, "One. Two.")));
        assert!(!cutter.has_ended());
    }
}
