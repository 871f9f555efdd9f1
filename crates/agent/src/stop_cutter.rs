//! Cuts arriving choices behind their first sentence or paragraph, and before a text that stops them.

use std::collections::BTreeMap;

use model::ModelEvent;
use text::cut::BoundaryScan;

use crate::answer_end::AnswerEnd;

/// The choices of one request as far as they arrived, each up to its end.
pub(crate) struct StopCutter {
    end: AnswerEnd,
    expected: usize,
    choices: BTreeMap<u32, ArrivingChoice>,
    /// Whether the choice that ended last was cut. One that ends by itself is followed by what the server says of all.
    was_cut: bool,
}

#[derive(Default)]
struct ArrivingChoice {
    text: String,
    /// Bytes of the text that were passed on. Those behind may be the beginning of a stop.
    shown: usize,
    scan: BoundaryScan,
    ended: bool,
}

impl ArrivingChoice {
    /// The offset at which it is cut, as far as it arrived.
    fn cut(&mut self, end: &AnswerEnd) -> Option<usize> {
        end.find_arriving(&self.text, self.shown, &mut self.scan)
    }

    /// What is passed on where the text is clear up to `until`.
    fn up_to(&mut self, choice: u32, until: usize) -> Option<ModelEvent> {
        let text = self.text.get(self.shown..until).filter(|text| !text.is_empty())?.to_owned();
        self.shown = until;
        Some(ModelEvent::Text { choice, text })
    }
}

impl StopCutter {
    /// `expected` is how many choices were asked for.
    pub(crate) fn new(end: AnswerEnd, expected: u32) -> Self {
        Self { end, expected: expected as usize, choices: BTreeMap::new(), was_cut: false }
    }

    /// Passes on what of an event stands before the end of its choice. What may be the beginning of a stop waits until
    /// it is known whether it is one.
    pub(crate) fn event(&mut self, event: ModelEvent, mut pass: impl FnMut(ModelEvent)) {
        if self.end.is_none() {
            return pass(event);
        }
        match event {
            ModelEvent::Text { choice, text } => {
                let arriving = self.choices.entry(choice).or_default();
                if arriving.ended {
                    return;
                }
                arriving.text.push_str(&text);
                let cut = arriving.cut(&self.end);
                let open = self.end.open_from(&arriving.text, arriving.shown);
                if cut.is_some_and(|cut| cut <= open) {
                    (arriving.ended, self.was_cut) = (true, true);
                }
                arriving.up_to(choice, cut.unwrap_or(open).min(open)).into_iter().for_each(pass);
            }
            ModelEvent::Thinking { choice, .. } if self.choices.get(&choice).is_some_and(|at| at.ended) => {}
            ModelEvent::Finish { choice, .. } => {
                let arriving = self.choices.entry(choice).or_default();
                if !std::mem::replace(&mut arriving.ended, true) {
                    self.was_cut = false;
                    let cut = arriving.cut(&self.end);
                    let until = cut.unwrap_or(arriving.text.len());
                    arriving.up_to(choice, until).into_iter().for_each(&mut pass);
                }
                pass(event);
            }
            event => pass(event),
        }
    }

    /// Passes on what waited for a stop that did not come. Nothing more arrives.
    pub(crate) fn finish(&mut self, mut pass: impl FnMut(ModelEvent)) {
        for (choice, arriving) in &mut self.choices {
            if !arriving.ended {
                let cut = arriving.cut(&self.end);
                arriving.up_to(*choice, cut.unwrap_or(arriving.text.len())).into_iter().for_each(&mut pass);
            }
        }
    }

    /// Whether each choice that was asked for has been cut, or met its own end before that: nothing that still comes
    /// belongs to the answer.
    pub(crate) fn has_ended(&self) -> bool {
        self.was_cut
            && self.choices.len() >= self.expected
            && self.choices.values().all(|choice| choice.ended)
    }
}

#[cfg(test)]
mod tests {
    use text::cut::Boundary;

    use super::*;

    /// A cutter as it is heard.
    struct Heard(StopCutter);

    impl Heard {
        fn new(boundary: Option<Boundary>, stops: &[&str], expected: u32) -> Self {
            let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
            Self(StopCutter::new(AnswerEnd::new(boundary, &stops), expected))
        }

        fn event(&mut self, event: ModelEvent) -> Option<ModelEvent> {
            let mut heard = Vec::new();
            self.0.event(event, |event| heard.push(event));
            assert!(heard.len() < 2, "{heard:?}");
            heard.pop()
        }

        fn has_ended(&self) -> bool {
            self.0.has_ended()
        }
    }

    fn text(choice: u32, text: &str) -> ModelEvent {
        ModelEvent::Text { choice, text: text.to_owned() }
    }

    #[test]
    fn each_choice_is_cut_at_its_own_place_and_the_last_ends_the_stream() {
        let mut cutter = Heard::new(Some(Boundary::Sentence), &[], 2);
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
        let mut cutter = Heard::new(Some(Boundary::Sentence), &[], 2);
        cutter.event(text(0, "All of it"));
        assert_eq!(cutter.event(finish(0)), Some(finish(0)));
        assert!(!cutter.has_ended());
        cutter.event(text(1, "One. Two"));
        assert!(cutter.has_ended());

        let mut cutter = Heard::new(Some(Boundary::Sentence), &[], 1);
        cutter.event(text(0, "All of it"));
        cutter.event(finish(0));
        assert!(!cutter.has_ended(), "what the server says of the request still comes");
    }

    #[test]
    fn nothing_is_cut_without_a_boundary() {
        let mut cutter = Heard::new(None, &[""], 1);
        assert_eq!(cutter.event(text(0, "One. Two.")), Some(text(0, "One. Two.")));
        assert!(!cutter.has_ended());
    }

    /// What is heard of a text that arrives in these pieces, and whether the stream was ended.
    fn heard(boundary: Option<Boundary>, stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut cutter = Heard::new(boundary, stops, 1).0;
        let mut heard = String::new();
        let mut hear = |event| match event {
            ModelEvent::Text { text, .. } => heard.push_str(&text),
            other => panic!("{other:?}"),
        };
        for piece in pieces {
            if cutter.has_ended() {
                break;
            }
            cutter.event(text(0, piece), &mut hear);
        }
        cutter.finish(&mut hear);
        (heard, cutter.has_ended())
    }

    #[test]
    fn a_text_stops_an_answer_in_whatever_pieces_it_arrives() {
        let cases: [(&[&str], Option<Boundary>, &str, &str); 8] = [
            (&["END"], None, "One. END Two. END", "One. "),
            (&["END"], None, "One. EN END", "One. EN "),
            (&["END"], None, "One. ENEND", "One. EN"),
            (&["aab", "zz"], None, "aaab", "a"),
            (&["die Länge", "Länge"], None, "Es ist die Länge", "Es ist "),
            (&["\n\n##"], Some(Boundary::Sentence), "One.\n\n## Two", "One."),
            (&["\n\n##"], Some(Boundary::Sentence), "One.\n\n# Two", "One.\n\n"),
            (&["Two"], Some(Boundary::Sentence), "One. Two", "One. "),
        ];
        for (stops, boundary, answer, kept) in cases {
            let chars: Vec<String> = answer.chars().map(String::from).collect();
            let by_char: Vec<&str> = chars.iter().map(String::as_str).collect();
            assert_eq!(heard(boundary, stops, &[answer]), (kept.to_owned(), true), "{stops:?}");
            assert_eq!(heard(boundary, stops, &by_char), (kept.to_owned(), true), "{stops:?}");
            assert_eq!(
                AnswerEnd::new(boundary, &stops.iter().map(|stop| (*stop).to_owned()).collect::<Vec<_>>())
                    .find(answer),
                Some(kept.len())
            );
        }
        assert_eq!(
            heard(None, &["END"], &["One", ". EN"]),
            ("One. EN".to_owned(), false),
            "what waited comes"
        );
    }

    #[test]
    fn the_possible_beginning_of_a_stop_waits() {
        let finish = ModelEvent::Finish { choice: 0, reason: model::FinishReason::Stop };
        let mut cutter = Heard::new(None, &["END"], 1);
        assert_eq!(cutter.event(text(0, "One E")), Some(text(0, "One ")));
        assert_eq!(cutter.event(text(0, "N")), None);
        assert_eq!(cutter.event(text(0, "V")), Some(text(0, "ENV")));
        assert_eq!(cutter.event(text(0, "EN")), None);
        let mut heard = Vec::new();
        cutter.0.event(finish.clone(), |event| heard.push(event));
        assert_eq!(heard, [text(0, "EN"), finish]);
    }
}
