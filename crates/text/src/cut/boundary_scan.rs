//! The search for the first sentence or paragraph of a text that arrives in pieces.
//!
//! Each character is looked at once, and again only near a mark at which a sentence may end: what was found to be no end
//! stays none, however the text goes on. So a search costs in proportion to the text, in whatever pieces it arrives.

use super::boundary::{Boundary, LONGEST, MOST_SPACE, before_next, goes_on, has_speech_tag, needs_more};
use super::boundary::{Stop, before_marks};
use super::sentence::{
    Footnote, MarkRun, closing_guillemet, ends_before, is_emphasis, is_initial, next_mark,
};
use crate::grapheme;

/// How far the search for the end of a text that arrives has come. It belongs to one [`Boundary`] and one text.
#[derive(Debug, Clone, Default)]
pub struct BoundaryScan {
    /// Bytes of the text in which the landmarks were looked for.
    seen: usize,
    landmarks: Landmarks,
    sentence: SentenceScan,
    found: Option<usize>,
}

impl BoundaryScan {
    /// Byte offset behind the first sentence or paragraph and the white space after it, just before what follows; none
    /// while nothing follows. The text begins with that of the call before. White space at the beginning belongs to the
    /// sentence. More white space than 64 characters is something that follows, and ends a sentence whatever stands
    /// before it.
    ///
    /// What is found stays the same however the text goes on, so that it does not matter in which pieces it arrived,
    /// and a longer stored answer is cut at the same place.
    pub fn first_end(&mut self, boundary: Boundary, text: &str) -> Option<usize> {
        if self.found.is_some() {
            return self.found;
        }
        let most = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let text = &text[..most.unwrap_or_default()];
        let new = text.get(self.seen..).unwrap_or_default();
        looked_at(new.len());
        for (at, c) in new.char_indices() {
            self.landmarks.add(self.seen + at, c);
        }
        self.seen = self.seen.max(text.len());
        let begin = self.landmarks.begin?;
        let body = &text[begin..];
        let paragraph = self.landmarks.paragraph.and_then(|at| before_next(body, at - begin));
        let sentence = match boundary {
            Boundary::Sentence => {
                let most = self.landmarks.most_space.map(|at| grapheme::floor(body, at - begin));
                let text = &body[..most.unwrap_or(body.len())];
                self.sentence.first_end(text, begin, &self.landmarks).or(most)
            }
            Boundary::Paragraph => None,
        };
        let end = paragraph.into_iter().chain(sentence).min()?;
        self.found = Some(begin + end);
        self.found
    }
}

/// Places in a text that are known by its characters alone. Offsets are those of the text.
#[derive(Debug, Clone, Default)]
struct Landmarks {
    /// Where it begins, behind white space.
    begin: Option<usize>,
    /// The first letter or digit.
    word: Option<usize>,
    /// The first word `I`.
    i: Option<usize>,
    /// White space behind [`MOST_SPACE`] characters of it.
    most_space: Option<usize>,
    /// The end of the last line before a blank line.
    paragraph: Option<usize>,
    /// Characters of white space at the end.
    space: usize,
    /// The end of a line that only white space follows.
    line: Option<usize>,
    /// The word at the end, if it is `I`.
    last_i: Option<usize>,
    is_in_word: bool,
}

impl Landmarks {
    fn add(&mut self, at: usize, c: char) {
        if c.is_whitespace() {
            self.add_space(at, c);
            return;
        }
        self.begin.get_or_insert(at);
        if c.is_alphanumeric() {
            self.word.get_or_insert(at);
        }
        self.last_i = (!self.is_in_word && matches!(c, 'I' | 'i')).then_some(at);
        self.is_in_word = true;
        (self.space, self.line) = (0, None);
    }

    fn add_space(&mut self, at: usize, c: char) {
        if self.begin.is_none() {
            return;
        }
        self.i = self.i.or(self.last_i.take());
        self.is_in_word = false;
        self.space += 1;
        if self.space > MOST_SPACE {
            self.most_space.get_or_insert(at);
        }
        if c == '\n' {
            self.paragraph = self.paragraph.or(self.line);
            self.line = Some(at);
        }
    }
}

/// How far a mark at which a sentence may end was looked at. Offsets are those of the sentence.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// No mark stands before this offset.
    Search(usize),
    /// The marks may go on.
    Marks(MarkRun),
    /// The marks are whole, footnotes may follow at this offset.
    Footnotes(MarkRun, usize),
    /// A sentence may end there; what follows tells.
    Next(MarkRun, usize),
    /// What begins at `next` tells whether the full stop at `end` goes on.
    After { end: usize, next: usize, stop: Stop, emphasis: usize, letters: usize },
}

impl Default for Stage {
    fn default() -> Self {
        Self::Search(0)
    }
}

/// What a look at a mark came to.
enum Look {
    /// It goes on at once.
    On(Stage),
    /// Only more of the text tells; this is where it goes on.
    Wait(Stage),
    /// The sentence ends there.
    End(usize),
}

#[derive(Debug, Clone, Default)]
struct SentenceScan {
    stage: Stage,
}

impl SentenceScan {
    /// The end of the first sentence of `text`, which stands at `begin` of the text of the landmarks.
    fn first_end(&mut self, text: &str, begin: usize, landmarks: &Landmarks) -> Option<usize> {
        let has_word = |end: usize| landmarks.word.is_some_and(|at| at < begin + end);
        let has_i = |end: usize| landmarks.i.is_some_and(|at| at < begin + end);
        loop {
            let look = match self.stage {
                Stage::Search(from) => search(text, from),
                Stage::Marks(run) => marks(text, run),
                Stage::Footnotes(run, at) => footnotes(text, run, at),
                Stage::Next(run, end) => next(text, run, end, has_word),
                Stage::After { end, next, stop, emphasis, letters } => {
                    after(text, (end, next), stop, (emphasis, letters), has_i)
                }
            };
            match look {
                Look::On(stage) => self.stage = stage,
                Look::Wait(stage) => {
                    self.stage = stage;
                    return None;
                }
                Look::End(end) => return Some(end),
            }
        }
    }
}

fn search(text: &str, from: usize) -> Look {
    let from = from.min(text.len());
    let mark = next_mark(text, from);
    looked_at(mark.unwrap_or(text.len()) - from);
    mark.map_or(Look::Wait(Stage::Search(text.len())), |mark| Look::On(Stage::Marks(MarkRun::at(mark))))
}

fn marks(text: &str, run: MarkRun) -> Look {
    let mut longer = run;
    longer.extend(text);
    looked_at(longer.end - run.end);
    match longer.end {
        end if end == text.len() => Look::Wait(Stage::Marks(longer)),
        // Behind a mark that needs no space what a bracket holds is not waited for.
        end if longer.is_unspaced => behind(text, longer, end),
        end => Look::On(Stage::Footnotes(longer, end)),
    }
}

fn footnotes(text: &str, run: MarkRun, mut at: usize) -> Look {
    loop {
        looked_at(1);
        match Footnote::of(&text[at..]) {
            Footnote::Whole(bytes) => at += bytes,
            Footnote::Begun => return Look::Wait(Stage::Footnotes(run, at)),
            Footnote::Other => return behind(text, run, at),
        }
    }
}

/// Where marks and footnotes end; three characters behind them tell whether a guillemet belongs to them.
fn behind(text: &str, run: MarkRun, at: usize) -> Look {
    let end = at + closing_guillemet(&text[at..]);
    let known = text[at..].chars().nth(2).is_some() || end == at && !begins_guillemet(&text[at..]);
    if known {
        Look::On(Stage::Next(run, end))
    } else if run.is_unspaced {
        Look::Wait(Stage::Marks(run))
    } else {
        Look::Wait(Stage::Footnotes(run, at))
    }
}

/// Whether a text of two characters at most may be the beginning of a space and a guillemet.
fn begins_guillemet(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_none_or(|c| matches!(c, ' ' | '\u{a0}' | '\u{202f}'))
        && chars.next().is_none_or(|c| matches!(c, '»' | '›'))
}

fn next(text: &str, run: MarkRun, end: usize, has_word: impl Fn(usize) -> bool) -> Look {
    let rest = &text[end..];
    let after = rest.trim_start();
    looked_at(rest.len() - after.len());
    // Another full stop may stand apart.
    if after.is_empty() || !run.is_unspaced && after == "." {
        return Look::Wait(Stage::Next(run, end));
    }
    let ends = if run.is_unspaced {
        grapheme::floor(text, end) == end
    } else {
        ends_before(rest) && !is_initial(&text[..run.mark], &text[run.mark..end])
    };
    // Marks alone are no sentence: `... And then he left.`
    if !ends || !has_word(end) {
        return Look::On(Stage::Search(end));
    }
    let Some(next) = before_next(text, end) else { return Look::Wait(Stage::Next(run, end)) };
    if next == end {
        match has_speech_tag(&text[..end], rest) {
            Some(true) => return Look::On(Stage::Search(end)),
            Some(false) => {}
            None => return Look::Wait(Stage::Next(run, end)),
        }
    }
    let (before, is_stop) = before_marks(&text[..end]);
    looked_at(end - before.len());
    if !is_stop {
        return Look::End(next);
    }
    Look::On(Stage::After { end, next, stop: Stop::behind(before), emphasis: next, letters: next })
}

/// `emphasis` and `letters` are how far emphasis, then letters behind it were looked at.
fn after(
    text: &str,
    (end, next): (usize, usize),
    stop: Stop,
    (mut emphasis, mut letters): (usize, usize),
    has_i: impl Fn(usize) -> bool,
) -> Look {
    let from = letters;
    if letters == emphasis {
        emphasis = text.len() - text[emphasis..].trim_start_matches(is_emphasis).len();
        letters = emphasis;
    }
    letters = text.len() - text[letters..].trim_start_matches(char::is_alphabetic).len();
    looked_at(letters - from);
    if needs_more(stop, &text[emphasis..], letters == text.len()) {
        return Look::Wait(Stage::After { end, next, stop, emphasis, letters });
    }
    let (before, behind) = (&text[..stop.at], &text[emphasis..]);
    if goes_on(before, behind, has_i) { Look::On(Stage::Search(end)) } else { Look::End(next) }
}

/// Counts what a search looks at, for a test that it grows no faster than the text.
#[cfg(not(test))]
pub(super) const fn looked_at(_: usize) {}

#[cfg(test)]
pub(super) fn looked_at(bytes: usize) {
    tests::LOOKED.with(|looked| looked.set(looked.get() + bytes + 1));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static LOOKED: Cell<usize> = const { Cell::new(0) };
    }

    /// Bytes that are looked at in a text that arrives in pieces of so many characters.
    fn looked_at_in(boundary: Boundary, text: &str, chars: usize) -> usize {
        LOOKED.with(|looked| looked.set(0));
        let mut scan = BoundaryScan::default();
        let ends: Vec<usize> = text.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        for piece in ends.chunks(chars) {
            assert_eq!(scan.first_end(boundary, &text[..*piece.last().unwrap()]), None, "{text:.40}");
        }
        LOOKED.with(Cell::get)
    }

    #[test]
    fn a_text_that_arrives_by_character_costs_no_more_than_its_length() {
        let texts: [fn(usize) -> String; 14] = [
            |count| "Dr. ".repeat(count),
            |count| "z. B. ".repeat(count),
            |count| "am 3. Tag ".repeat(count),
            |count| "\n1. ".repeat(count),
            |count| "... ".repeat(count),
            |count| format!("3. {}", "a".repeat(count)),
            |count| format!("Dr. No. {}", "*".repeat(count)),
            |count| format!("No{}. **", "*".repeat(count)),
            |count| format!("One{}", ".)*".repeat(count)),
            |count| format!("One.{}", "[1]".repeat(count)),
            |count| "“走！”他说".repeat(count),
            |count| format!("One.\r{}", "a.".repeat(count)),
            |count| " ".repeat(count),
            |count| "e.g. a".repeat(count),
        ];
        for text in texts {
            for (boundary, chars) in [
                (Boundary::Sentence, 1),
                (Boundary::Sentence, 7),
                (Boundary::Sentence, 1 << 20),
                (Boundary::Paragraph, 1),
            ] {
                let (small, large) = (text(200), text(2000));
                let looked = [&small, &large].map(|text| looked_at_in(boundary, text, chars));
                assert!(looked[1] <= 12 * looked[0] + 200, "{small:.20}: {looked:?} in pieces of {chars}");
                assert!(looked[1] <= 24 * large.len(), "{small:.20}: {looked:?} in pieces of {chars}");
            }
        }
    }
}
