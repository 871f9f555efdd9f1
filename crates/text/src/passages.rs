//! Passages of a text: pieces that follow each other without a gap, so that together they are the text again.

use crate::code::Fence;

/// Where a text is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// Before each paragraph; the blank lines behind one belong to it. A block of code stays whole.
    Paragraph,
    /// Before each heading of Markdown of the highest level that the text has twice, else of the highest.
    Chapter,
}

/// The passages of a text, none of them blank unless the whole text is.
pub fn split(text: &str, division: Division) -> Vec<&str> {
    let lines = lines(text);
    let begins: Box<dyn Fn(usize) -> bool> = match division {
        Division::Paragraph => {
            let blank = |at: usize| lines.get(at).is_none_or(|line| line.blank);
            Box::new(move |at| blank(at - 1) && !blank(at))
        }
        Division::Chapter => {
            let level = chapter_level(&lines);
            let lines = &lines;
            Box::new(move |at| lines[at].heading.is_some() && lines[at].heading == level)
        }
    };
    // What stands before the first line that says something goes with it.
    let first = lines.iter().position(|line| !line.blank).unwrap_or(lines.len());
    let cuts = (first + 1..lines.len()).filter(|at| begins(*at)).map(|at| lines[at].start);
    let mut passages = Vec::new();
    let mut start = 0;
    for cut in cuts.chain([text.len()]) {
        if start < cut {
            passages.push(&text[start..cut]);
        }
        start = cut;
    }
    passages
}

/// What the first heading of Markdown that says something says, without its marks; none where there is no such one.
pub fn first_heading(text: &str) -> Option<&str> {
    headings(text).next()
}

/// As [`first_heading`], the last of them: the one a reader stands below at the end of the text.
pub fn last_heading(text: &str) -> Option<&str> {
    headings(text).next_back()
}

fn headings(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let headings = lines(text).into_iter().filter(|line| line.heading.is_some());
    let said = headings.map(|line| {
        let line = text[line.start..].lines().next().unwrap_or_default();
        let said = line.trim().trim_start_matches('#').trim();
        let open = said.trim_end_matches('#');
        // Marks that close stand apart: `# C#` has none.
        if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { said }
    });
    said.filter(|said| !said.is_empty())
}

struct Line {
    /// First byte.
    start: usize,
    /// Whether it is blank, and outside a block of code.
    blank: bool,
    /// Level of the heading that it is.
    heading: Option<usize>,
    /// Whether it begins a paragraph: underlined, it is a heading.
    is_lone: bool,
}

fn lines(text: &str) -> Vec<Line> {
    let (mut found, mut start): (Vec<Line>, usize) = (Vec::new(), 0);
    let mut fence: Option<Fence> = None;
    for line in text.split_inclusive('\n') {
        let within = fence.is_some();
        match &fence {
            Some(open) if open.is_closed_by(line) => fence = None,
            Some(_) => {}
            None => fence = Fence::opening(line),
        }
        let outside = !within && fence.is_none();
        let heading = if outside { heading(line) } else { None };
        let blank = outside && line.trim().is_empty();
        let underlined = if outside { underlined(line) } else { None };
        if let ([.., above], Some(level)) = (&mut found[..], underlined)
            && above.is_lone
        {
            (above.heading, above.is_lone) = (Some(level), false);
        }
        let is_text = outside && !blank && heading.is_none() && underlined.is_none();
        let is_lone = is_text && found.last().is_none_or(|above| above.blank);
        found.push(Line { start, blank, heading, is_lone });
        start += line.len();
    }
    found
}

/// Level of the heading that a line underlines (CommonMark 0.31 §4.3).
fn underlined(line: &str) -> Option<usize> {
    let marks = line.trim_end();
    let rest = marks.trim_start_matches(' ');
    let is_of = |mark: u8| !rest.is_empty() && rest.bytes().all(|byte| byte == mark);
    let level = if is_of(b'=') { 1 } else { 2 };
    (marks.len() - rest.len() < 4 && (is_of(b'=') || is_of(b'-'))).then_some(level)
}

/// Level of a heading of Markdown (CommonMark 0.31 §4.2).
fn heading(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches(' ');
    let level = rest.bytes().take_while(|byte| *byte == b'#').count();
    let is_one = line.len() - rest.len() < 4 && (1..=6).contains(&level);
    (is_one && rest[level..].chars().next().is_none_or(char::is_whitespace)).then_some(level)
}

/// The level of headings that begin chapters: that of a lone title above them is not.
fn chapter_level(lines: &[Line]) -> Option<usize> {
    let count = |level: usize| lines.iter().filter(|line| line.heading == Some(level)).count();
    (1..=6).find(|level| count(*level) > 1).or_else(|| (1..=6).find(|level| count(*level) == 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Division, first_heading, last_heading, split};

    #[test]
    fn a_paragraph_takes_the_blank_lines_behind_it() {
        let paragraphs = |text| split(text, Division::Paragraph);
        assert_eq!(paragraphs("# One\n\nA\nb\n\n\nC"), ["# One\n\n", "A\nb\n\n\n", "C"]);
        assert_eq!(paragraphs("A\r\n \r\nB\r\n"), ["A\r\n \r\n", "B\r\n"]);
        assert_eq!(paragraphs("\n\nA\n\nB"), ["\n\nA\n\n", "B"], "what stands before goes with the first");
        assert_eq!(paragraphs("```\na\n\nb\n```\n\nC"), ["```\na\n\nb\n```\n\n", "C"], "code stays whole");
        assert_eq!(paragraphs("A"), ["A"]);
        assert_eq!(paragraphs(" \n"), [" \n"]);
        assert!(paragraphs("").is_empty());
    }

    #[test]
    fn a_chapter_begins_with_a_heading_and_a_title_is_none() {
        let chapters = |text| split(text, Division::Chapter);
        assert_eq!(chapters("# T\n\n## A\nx\n### a\n## B\ny"), ["# T\n\n", "## A\nx\n### a\n", "## B\ny"]);
        assert_eq!(chapters("Before.\n# A\nx\n# B"), ["Before.\n", "# A\nx\n", "# B"]);
        assert_eq!(chapters("```\n# no\n```\n# A\n"), ["```\n# no\n```\n", "# A\n"]);
        assert_eq!(chapters("no heading\n\n#none"), ["no heading\n\n#none"]);
        assert_eq!(chapters("A\n===\n\nx\n\nB\n=\ny"), ["A\n===\n\nx\n\n", "B\n=\ny"], "underlined");
        assert_eq!(chapters("a\nb\n---\n\n---\n\nc\n\n-- -"), ["a\nb\n---\n\n---\n\nc\n\n-- -"]);
        assert_eq!(chapters("---\ntitle: x\n---\n\ny"), ["---\ntitle: x\n---\n\ny"], "no heading");
    }

    #[test]
    fn the_first_heading_is_none_of_a_block_of_code() {
        assert_eq!(first_heading("```\n# a comment\n```\n#\n  ## The rain ##\n# Other"), Some("The rain"));
        assert_eq!(first_heading("# ##\n# C#\n"), Some("C#"));
        assert_eq!(first_heading("#hashtag\n    # code"), None);
        assert_eq!(first_heading("```\nA\n===\n```\n\nThe rain\n===\n"), Some("The rain"));
        assert_eq!(last_heading("# One\na\n## Two\n```\n# a comment\n```\n#\n"), Some("Two"));
    }

    proptest! {
        #[test]
        fn together_they_are_the_text(text in "([a#`~= \n\r]|```|---|\n\n|é){0,60}") {
            for division in [Division::Paragraph, Division::Chapter] {
                let passages = split(&text, division);
                prop_assert_eq!(passages.concat(), text.as_str());
                prop_assert!(passages.len() < 2 || passages.iter().all(|one| !one.trim().is_empty()));
            }
        }
    }
}
