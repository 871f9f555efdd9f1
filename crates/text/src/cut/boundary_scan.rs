//! The search for the first sentence or paragraph of a text that arrives in pieces.
//!
//! Each character is looked at once, and again only near a mark at which a sentence may end: what was found to be no end
//! stays none, however the text goes on. So a search costs in proportion to the text, in whatever pieces it arrives.

use super::boundary::{Boundary, LONGEST, MOST_SPACE, before_next, goes_on, has_speech_tag, needs_more};
use super::boundary::{Stop, before_marks};
use super::mark_scan::{MarkRun, MarkScan};
use super::sentence::{ends_at, is_emphasis};
use super::text_slice::TextSlice;

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
        let new = TextSlice::new(text.get(self.seen..).unwrap_or_default());
        for (at, c) in new.char_indices() {
            self.landmarks.add(self.seen + at, c);
        }
        self.seen = self.seen.max(text.len());
        let begin = self.landmarks.begin?;
        let body = TextSlice::new(text).from(begin);
        let paragraph = self.landmarks.paragraph.and_then(|at| before_next(body, at - begin));
        let sentence = match boundary {
            Boundary::Sentence => {
                let most = self.landmarks.most_space.map(|at| body.floor(at - begin));
                let body = body.to(most.unwrap_or(body.len()));
                self.sentence.first_end(body, begin, &self.landmarks).or(most)
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

/// What is known of the marks at which a sentence may end. Offsets are those of the sentence.
#[derive(Debug, Clone, Copy, Default)]
enum Stage {
    /// The next marks are looked for.
    #[default]
    Search,
    /// A sentence may end there; what follows the white space up to `next` tells.
    Next { run: MarkRun, next: usize },
    /// What begins at `next` tells whether the full stop before it goes on.
    After { next: usize, stop: Stop, emphasis: usize, letters: usize },
}

/// What a look at marks came to.
enum Look {
    /// The scan goes on at once, in this stage.
    On(Stage),
    /// Only more of the text tells; this is where it goes on.
    Wait(Stage),
    /// The sentence ends there.
    End(usize),
}

#[derive(Debug, Clone, Default)]
struct SentenceScan {
    marks: MarkScan,
    stage: Stage,
}

impl SentenceScan {
    /// The end of the first sentence of `text`, which stands at `begin` of the text of the landmarks.
    fn first_end(&mut self, text: TextSlice<'_>, begin: usize, landmarks: &Landmarks) -> Option<usize> {
        let has_word = |end: usize| landmarks.word.is_some_and(|at| at < begin + end);
        let has_i = |end: usize| landmarks.i.is_some_and(|at| at < begin + end);
        loop {
            let look = match self.stage {
                Stage::Search => {
                    let run = self.marks.next(text)?;
                    Look::On(Stage::Next { run, next: run.end })
                }
                Stage::Next { run, next } => look_at_next(text, run, next, has_word),
                Stage::After { next, stop, emphasis, letters } => {
                    look_after(text, next, stop, (emphasis, letters), has_i)
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

/// Only white space stands between the marks and `next`.
fn look_at_next(text: TextSlice<'_>, run: MarkRun, next: usize, has_word: impl Fn(usize) -> bool) -> Look {
    let after = text.from(next.min(text.len())).trim_start();
    let wait = Look::Wait(Stage::Next { run, next: text.len() - after.len() });
    // Another full stop may stand apart.
    if after.is_empty() || !run.is_unspaced && after.len() == 1 && after.first() == Some('.') {
        return wait;
    }
    // Marks alone are no sentence: `... And then he left.`
    if !ends_at(text, run) || !has_word(run.end) {
        return Look::On(Stage::Search);
    }
    let Some(next) = before_next(text, run.end) else { return wait };
    let sentence = text.to(run.end);
    if next == run.end {
        match has_speech_tag(sentence, text.from(run.end)) {
            Some(true) => return Look::On(Stage::Search),
            Some(false) => {}
            None => return wait,
        }
    }
    let (before, is_stop) = before_marks(sentence);
    if !is_stop {
        return Look::End(next);
    }
    Look::On(Stage::After { next, stop: Stop::behind(before), emphasis: next, letters: next })
}

/// `emphasis` and `letters` are how far emphasis, then letters behind it were looked at.
fn look_after(
    text: TextSlice<'_>,
    next: usize,
    stop: Stop,
    (mut emphasis, mut letters): (usize, usize),
    has_i: impl Fn(usize) -> bool,
) -> Look {
    if letters == emphasis {
        emphasis = text.len() - text.from(emphasis).trim_start_matches(is_emphasis).len();
        letters = emphasis;
    }
    letters = text.len() - text.from(letters).trim_start_matches(char::is_alphabetic).len();
    let after = text.from(emphasis);
    if needs_more(stop, after, letters == text.len()) {
        return Look::Wait(Stage::After { next, stop, emphasis, letters });
    }
    if goes_on(text.to(stop.at), after, has_i) { Look::On(Stage::Search) } else { Look::End(next) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text_slice::BYTES_READ;
    use super::*;

    /// Bytes that are read of a text that arrives in pieces of so many characters, until its end is found.
    fn bytes_read(boundary: Boundary, text: &str, chars: usize) -> usize {
        BYTES_READ.set(0);
        let mut scan = BoundaryScan::default();
        let ends: Vec<usize> = text.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        let _ =
            ends.chunks(chars).find_map(|piece| scan.first_end(boundary, &text[..*piece.last().unwrap()]));
        BYTES_READ.get()
    }

    /// Checks that four times the text costs four times as much, and each byte little.
    fn check_cost(text: impl Fn(usize) -> String) {
        let texts = [500, 2000].map(text);
        for boundary in [Boundary::Sentence, Boundary::Paragraph] {
            for chars in [1, 7, 1 << 20] {
                let read = texts.each_ref().map(|text| bytes_read(boundary, text, chars));
                let context = format!("{boundary:?} of {:.40}: {read:?} in pieces of {chars}", texts[1]);
                assert!(read[1] <= 4 * read[0] + read[0] / 8 + SLACK, "{context}");
                assert!(read[1] <= MOST_READ * texts[1].len() + SLACK, "{context}");
            }
        }
    }

    /// What an end costs once: white space before it, up to its limit, is read again with each piece.
    const SLACK: usize = 3 * MOST_SPACE * MOST_SPACE;
    /// How often a byte is read at most, on average.
    const MOST_READ: usize = 24;

    #[test]
    fn a_text_that_arrives_by_character_costs_no_more_than_its_length() {
        let texts: [fn(usize) -> String; 25] = [
            |count| "Dr. ".repeat(count),
            |count| "z. B. ".repeat(count),
            |count| "am 3. Tag ".repeat(count),
            |count| "J. ".repeat(count),
            |count| format!("3. A{}", "a".repeat(count)),
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
            |count| format!("One.{}", "*".repeat(count)),
            |count| format!("J{}. One", "*".repeat(count)),
            |count| format!("One[{}]. a", "1".repeat(count)),
            |count| format!("One{}", ");".repeat(count)),
            |count| format!("e.g.{}a", " ".repeat(MOST_SPACE - 1)).repeat(count / 16),
            |count| format!("好。{}", "🇩🇪".repeat(count)),
            |count| format!("a {}. b", "\u{308}".repeat(count)),
            |count| "好。\u{308}".repeat(count),
            |count| "One… two; three?) ».four! ".repeat(count / 4),
        ];
        texts.into_iter().for_each(check_cost);
    }

    #[test]
    fn the_longest_text_costs_no_more_than_its_length() {
        for unit in ["Dr. ", "好。\u{308}", "“走！”他说", "... ", "x[1]. a "] {
            let text = unit.repeat(LONGEST / unit.len());
            let read = bytes_read(Boundary::Sentence, &text, 1);
            assert!((text.len()..MOST_READ * text.len()).contains(&read), "{unit}: {read} of {}", text.len());
        }
    }

    /// A few of the pieces that a search reads more than once.
    fn pieces(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = String> {
        let pieces = "Dr|No|z. B|e.g|J|am|I|3|Mai|Then|a|.|. | |\n|!|;|ς|。|」|“|”|と|言|他|说|*|)| »|[|]|[1]|1234567|\u{308}|\
                      \u{200D}|👩|🇩🇪|ष\u{94D}";
        let pieces = prop::sample::select(pieces.split('|').collect::<Vec<_>>());
        prop::collection::vec(pieces, count).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn whatever_repeats_in_a_text_costs_no_more_than_its_length(
            (before, unit, behind) in (pieces(0..=2), pieces(1..=3), pieces(0..=2)),
            // A small letter lets most sentences go on.
            last in prop::sample::select(vec!["", "a", "*a"]),
        ) {
            check_cost(|count| format!("{before}{}{behind}", format!("{unit}{last}").repeat(count / 4)));
        }
    }
}
