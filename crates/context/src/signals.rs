//! Signs that a session goes in circles (spec: context §5 *Signals*): worked out in code, from what was said last.
//! They raise the notice by one zone, to orange at most, and cause nothing else.

use std::collections::HashSet;

use crate::zone::Zone;

/// Words of a stretch that is compared between answers.
const STRETCH: usize = 8;
/// The share of an answer's stretches that stood in an earlier one, from which it repeats itself.
const REPEATED: f64 = 0.5;
/// A failing call this many times is one that will fail again.
const FAILURES: usize = 3;
/// A question of fewer words is no question that is asked twice: "go on".
const QUESTION: usize = 4;

/// What was said lately, oldest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecentTurns<'a> {
    pub answers: &'a [&'a str],
    pub questions: &'a [&'a str],
    /// Name and arguments of calls that failed, in the form in which they are compared.
    pub failed_calls: &'a [&'a str],
}

/// A sign that a session goes in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The last answer is half of what was answered before.
    RepeatedAnswer,
    /// The owner asked the same twice.
    RepeatedQuestion,
    /// One call, by name and arguments, failed three times.
    FailingCall,
}

impl Signal {
    /// The first sign there is.
    pub fn of(lately: &RecentTurns<'_>) -> Option<Self> {
        let last = lately.failed_calls.last();
        if last
            .is_some_and(|last| lately.failed_calls.iter().filter(|call| *call == last).count() >= FAILURES)
        {
            return Some(Self::FailingCall);
        }
        if repeats_question(lately.questions) {
            return Some(Self::RepeatedQuestion);
        }
        repeats_answer(lately.answers).then_some(Self::RepeatedAnswer)
    }
}

/// The zone a notice speaks of: a sign raises it by one, to orange at most.
pub fn noticed(zone: Zone, signal: Option<Signal>) -> Zone {
    match (zone, signal) {
        (Zone::Green, Some(_)) => Zone::Yellow,
        (Zone::Yellow, Some(_)) => Zone::Orange,
        (zone, _) => zone,
    }
}

fn repeats_question(questions: &[&str]) -> bool {
    let Some((last, earlier)) = questions.split_last() else { return false };
    let last = words(last);
    last.len() >= QUESTION && earlier.iter().any(|question| words(question) == last)
}

fn repeats_answer(answers: &[&str]) -> bool {
    let Some((last, earlier)) = answers.split_last() else { return false };
    let last = words(last);
    let stretches: Vec<&[String]> = last.windows(STRETCH).collect();
    if stretches.is_empty() {
        return false;
    }
    let earlier: Vec<Vec<String>> = earlier.iter().map(|answer| words(answer)).collect();
    let known: HashSet<&[String]> = earlier.iter().flat_map(|answer| answer.windows(STRETCH)).collect();
    let met = stretches.iter().filter(|stretch| known.contains(*stretch)).count();
    met as f64 >= stretches.len() as f64 * REPEATED
}

/// Words in lower case; a script without spaces gives each of its letters.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars() {
        if text::class::is_cjk(c) {
            words.push(c.to_string());
            words.push(String::new());
        } else if c.is_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        } else if words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "The build fails because the linker cannot find the library it was told to use here.";
    const B: &str = "Let us look at the manifest first and see which features are on before we change it.";

    #[test]
    fn an_answer_that_was_given_before_is_a_sign() {
        let again = format!("{A} Perhaps.");
        let sign = |answers: &[&str]| Signal::of(&RecentTurns { answers, ..RecentTurns::default() });
        assert_eq!(sign(&[A, B, &again]), Some(Signal::RepeatedAnswer));
        assert_eq!(sign(&[A, B]), None);
        assert_eq!(sign(&["yes", "yes"]), None);
        let han = "潮水退了，船停在岸边，没有人说话，只有海鸟在叫。";
        assert_eq!(sign(&[han, han]), Some(Signal::RepeatedAnswer));
    }

    #[test]
    fn a_question_asked_twice_is_a_sign_whatever_its_case() {
        let sign = |questions: &[&str]| Signal::of(&RecentTurns { questions, ..RecentTurns::default() });
        let questions = ["Why does it fail here?", "And there?", "why does it fail here"];
        assert_eq!(sign(&questions), Some(Signal::RepeatedQuestion));
        assert_eq!(sign(&["go on", "go on"]), None);
    }

    #[test]
    fn the_same_call_failing_three_times_is_a_sign() {
        let sign =
            |failed_calls: &[&str]| Signal::of(&RecentTurns { failed_calls, ..RecentTurns::default() });
        assert_eq!(sign(&["ls a", "ls a", "ls b", "ls a"]), Some(Signal::FailingCall));
        assert_eq!(sign(&["ls a", "ls a", "ls b"]), None);
    }

    #[test]
    fn a_sign_raises_the_notice_by_one_and_never_to_red() {
        let sign = Some(Signal::FailingCall);
        let raised = [Zone::Green, Zone::Yellow, Zone::Orange, Zone::Red].map(|zone| noticed(zone, sign));
        assert_eq!(raised, [Zone::Yellow, Zone::Orange, Zone::Orange, Zone::Red]);
        assert_eq!(noticed(Zone::Green, None), Zone::Green);
    }
}
