//! The text of a path as an editor shows it: a mark before each passage, `⟦9c3d⟧`.
//!
//! A mark says where a passage was, so that a changed text finds its way back; it is no border. Where one is gone, was
//! doubled or moved, the text still stands as it was saved: only which passage holds it is told by comparing.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::align::distribute;

const OPEN: char = '⟦';
const CLOSE: char = '⟧';
/// How the line above the text begins.
const HEADER: &str = "⟦drawloom ";
/// Bytes between the brackets of a mark at most.
const LONGEST: usize = 40;

/// The marks of passages, by their short ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    marks: Vec<String>,
    /// What stands behind the id, so that no text holds a mark.
    end: String,
}

/// Something that looks like a mark and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownMark {
    pub(super) mark: String,
    /// Its line, from 1.
    pub(super) line: usize,
}

impl Marks {
    pub(super) fn of<'a>(ids: impl Iterator<Item = &'a str>, text: &str) -> Self {
        let ids: Vec<&str> = ids.collect();
        let taken: HashSet<&str> = marks_in(text).map(|(_, mark)| mark).collect();
        let mut end = String::new();
        let mut number = 1;
        loop {
            let marks: Vec<String> = ids.iter().map(|id| format!("{OPEN}{id}{end}{CLOSE}")).collect();
            if !marks.iter().any(|mark| taken.contains(mark.as_str())) {
                return Self { marks, end };
            }
            number += 1;
            end = format!("·{number}");
        }
    }

    /// The file an editor opens: what to know of it, then each passage behind its mark. Its last line end is not part
    /// of the text, as many editors write one.
    pub(super) fn file(&self, title: &str, texts: &[&str]) -> String {
        let title: String = title.chars().filter(|c| ![OPEN, CLOSE].contains(c) && !c.is_control()).collect();
        // An editor gives a file that has both kinds of line ends one of them.
        let line_end = if texts.iter().any(|text| text.contains("\r\n")) { "\r\n" } else { "\n" };
        let mut file = format!(
            "{HEADER}{title}: {OPEN}…{CLOSE} marks the beginning of a passage. Write as you like; leave the marks where \
             you can. Saved and closed, it is taken in.{CLOSE}{line_end}"
        );
        for (mark, text) in self.marks.iter().zip(texts) {
            file.push_str(mark);
            file.push_str(text);
        }
        file.push_str(line_end);
        file
    }

    /// Whether a file was made for an editor.
    pub(super) fn are_in(&self, file: &str) -> bool {
        let own: HashSet<&str> = self.marks.iter().map(String::as_str).collect();
        file.starts_with(HEADER) || marks_in(file).any(|(_, mark)| own.contains(mark))
    }

    /// What an editor's file says of its text: without the line above and the last line end.
    pub(super) fn body(file: &str) -> &str {
        let (body, line_end) = match file.split_once('\n') {
            Some((header, rest)) if header.starts_with(HEADER) => {
                (rest, if header.ends_with('\r') { "\r\n" } else { "\n" })
            }
            _ => (file, "\n"),
        };
        body.strip_suffix(line_end).unwrap_or(body)
    }

    /// The new text of each passage. Together they are the text of the file without its marks.
    ///
    /// # Errors
    /// A mark of no passage that was not in the text before.
    pub(super) fn read(&self, old: &[&str], body: &str) -> Result<Vec<String>, UnknownMark> {
        let found = self.find(old, body)?;
        let stay = rising(&found.iter().map(|(passage, _)| *passage).collect::<Vec<_>>());
        // A passage whose every mark stands elsewhere than it did.
        let mut is_moved = vec![false; old.len()];
        found.iter().for_each(|(passage, _)| is_moved[*passage] = true);
        stay.iter().for_each(|at| is_moved[found[*at].0] = false);
        // The text between two places, without the marks; a passage that was moved goes where it stands.
        let plain = |range: Range<usize>| {
            let mut text = String::new();
            let mut at = range.start;
            let first = found.partition_point(|(_, mark)| mark.start < range.start);
            for (_, mark) in found[first..].iter().take_while(|(_, mark)| mark.end <= range.end) {
                text.push_str(&body[at..mark.start]);
                at = mark.end;
            }
            text + &body[at..range.end]
        };
        // Where only marks went elsewhere, nothing was written.
        if plain(0..body.len()) == old.concat() {
            return Ok(old.iter().map(|text| (*text).to_owned()).collect());
        }
        let mut texts = vec![String::new(); old.len()];
        let mut fill = |passages: Range<usize>, text: &str| {
            let members: Vec<usize> = passages.filter(|passage| !is_moved[*passage]).collect();
            let before: Vec<&str> = members.iter().map(|passage| old[*passage]).collect();
            for (passage, text) in members.iter().zip(distribute(&before, text)) {
                texts[*passage] = text;
            }
            !members.is_empty()
        };
        let anchors: Vec<(usize, usize)> = stay.iter().map(|at| (found[*at].0, found[*at].1.start)).collect();
        let first = anchors.first().copied().unwrap_or((old.len(), body.len()));
        let above = plain(0..first.1);
        // Where no passage stands above the first mark, what is written there begins the first passage.
        let mut above = if fill(0..first.0, &above) { String::new() } else { above };
        for (at, (passage, start)) in anchors.iter().enumerate() {
            let (next, end) = anchors.get(at + 1).copied().unwrap_or((old.len(), body.len()));
            fill(*passage..next, &(std::mem::take(&mut above) + &plain(*start..end)));
        }
        Ok(texts)
    }

    /// Passages and the places of their marks; a copy of a passage brings its mark along.
    fn find(&self, old: &[&str], body: &str) -> Result<Vec<(usize, Range<usize>)>, UnknownMark> {
        let own: HashMap<&str, usize> = self.marks.iter().map(String::as_str).zip(0..).collect();
        let before: HashSet<&str> =
            old.iter().flat_map(|text| marks_in(text)).map(|(_, mark)| mark).collect();
        let mut found = Vec::new();
        for (start, mark) in marks_in(body) {
            if let Some(passage) = own.get(mark) {
                found.push((*passage, start..start + mark.len()));
            } else if self.is_like_a_mark(mark) && !before.contains(mark) {
                let line = body[..start].matches('\n').count() + 1;
                return Err(UnknownMark { mark: mark.to_owned(), line });
            }
        }
        Ok(found)
    }

    fn is_like_a_mark(&self, mark: &str) -> bool {
        let inner = mark.trim_start_matches(OPEN).trim_end_matches(CLOSE);
        let id = inner.strip_suffix(self.end.as_str()).unwrap_or("");
        id.len() >= loom::short_id::SHORTEST
            && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
    }
}

/// What looks like a mark, with the places.
fn marks_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices(OPEN).filter_map(|(start, _)| Some((start, mark_at(&text[start..])?)))
}

/// The mark a text begins with: brackets on one line, not far apart.
fn mark_at(text: &str) -> Option<&str> {
    let inner = &text[OPEN.len_utf8()..];
    let end = inner.find([OPEN, CLOSE, '\n']).filter(|end| *end <= LONGEST)?;
    inner[end..].starts_with(CLOSE).then(|| &text[..OPEN.len_utf8() + end + CLOSE.len_utf8()])
}

/// Indices of a longest rising run of numbers, none of them twice.
fn rising(numbers: &[usize]) -> Vec<usize> {
    // The index that ends the best run of each length, and what stands before each.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (at, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| numbers[*end] < *number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() { ends.push(at) } else { ends[length] = at }
    }
    let mut run: Vec<usize> = std::iter::successors(ends.last().copied(), |at| before[*at]).collect();
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDS: [&str; 4] = ["aaaa", "bbbb", "cccc", "dddd"];
    const OLD: [&str; 4] =
        ["One is first.\n\n", "Two is next.\n\n", "Three comes then.\n\n", "Four ends it."];

    fn marks(old: &[&str]) -> Marks {
        Marks::of(IDS.iter().copied().take(old.len()), &old.concat())
    }

    fn read(body: &str) -> Vec<String> {
        marks(&OLD).read(&OLD, body).unwrap()
    }

    #[test]
    fn a_file_that_was_not_touched_is_the_text() {
        let file = marks(&OLD).file("A ⟦title⟧\n", &OLD);
        assert!(file.starts_with("⟦drawloom A title: "), "{file}");
        assert_eq!(read(Marks::body(&file)), OLD);
        assert!(marks(&OLD).are_in(&file) && !marks(&OLD).are_in(&OLD.concat()));
    }

    #[test]
    fn marks_may_be_gone_doubled_moved_or_all_missing() {
        let [one, two, three, four] = OLD;
        let gone = format!("⟦aaaa⟧{one}{two}⟦cccc⟧{three}⟦dddd⟧{four}");
        assert_eq!(read(&gone), OLD, "a mark that is gone");
        let alone = format!("{one}{two}{three}{four}");
        assert_eq!(read(&alone), OLD, "all marks are gone");
        let doubled = format!("⟦aaaa⟧{one}⟦bbbb⟧{two}⟦aaaa⟧{one}⟦cccc⟧{three}⟦dddd⟧{four}");
        assert_eq!(
            read(&doubled),
            [one, &format!("{two}{one}"), three, four],
            "a passage copied with its mark"
        );
        let moved = format!("⟦bbbb⟧{two}⟦cccc⟧{three}⟦aaaa⟧{one}⟦dddd⟧{four}");
        assert_eq!(read(&moved), ["", two, &format!("{three}{one}"), four], "a passage moved with its mark");
        let above = format!("Before.\n\n⟦aaaa⟧{one}⟦bbbb⟧{two}⟦cccc⟧{three}⟦dddd⟧{four}");
        assert_eq!(
            read(&above),
            [&format!("Before.\n\n{one}"), two, three, four],
            "text above the first mark"
        );
        let deleted = format!("⟦aaaa⟧{one}⟦dddd⟧{four}");
        assert_eq!(read(&deleted), [one, "", "", four], "passages deleted with their marks");
        assert_eq!(read("⟦aaaa⟧⟦bbbb⟧⟦cccc⟧⟦dddd⟧"), ["", "", "", ""]);
        let alone = format!("⟦aaaa⟧One is ⟦cccc⟧first.\n\n⟦bbbb⟧{two}{three}⟦dddd⟧{four}⟦dddd⟧");
        assert_eq!(read(&alone), OLD, "marks that went elsewhere and stand there twice are no edit");
    }

    #[test]
    fn an_invented_mark_is_named_and_brackets_of_the_text_are_text() {
        let unknown = marks(&OLD).read(&OLD, "⟦aaaa⟧One\n⟦zzzz⟧Two").unwrap_err();
        assert_eq!(unknown, UnknownMark { mark: "⟦zzzz⟧".to_owned(), line: 2 });
        let old = ["⟦aaaa⟧ and ⟦zzzz⟧ ", "⟦secret:K⟧ ⟦not a mark⟧ ⟦"];
        let marks = marks(&old);
        let file = marks.file("T", &old);
        assert!(file.contains("⟦aaaa·2⟧⟦aaaa⟧"), "{file}");
        assert_eq!(marks.read(&old, Marks::body(&file)).unwrap(), old);
    }

    #[test]
    fn the_longest_rising_run_stays() {
        assert_eq!(rising(&[1, 2, 0, 3]), [0, 1, 3]);
        assert_eq!(rising(&[5, 1, 2]), [1, 2]);
        assert!(rising(&[]).is_empty());
    }

    proptest! {
        /// What the editor saved is what the passages say together, whatever became of the marks.
        #[test]
        fn together_they_are_what_was_saved(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(OLD.to_vec()).prop_map(str::to_owned),
                    prop::sample::select(IDS.to_vec()).prop_map(|id| format!("⟦{id}⟧")),
                    "[A é\n⟦⟧.]{0,8}",
                ],
                0..12,
            ),
        ) {
            let body = pieces.concat();
            let mut plain = body.clone();
            for id in IDS {
                plain = plain.replace(&format!("⟦{id}⟧"), "");
            }
            prop_assert_eq!(read(&body).concat(), plain);
        }
    }
}
