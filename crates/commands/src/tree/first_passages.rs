//! The passages that a file begins a document with.
//!
//! Texts that are not Markdown name their chapters in plain lines (`Chapter 1`, `CHAPTER TWO`, `Part One`); these are
//! looked for where no heading of Markdown divides the text.

use text::passages::{Division, split};

use super::telling::count;
use crate::args::tree::SplitArg;

/// Characters of the longest line that is the heading of a chapter.
const LONGEST_HEADING: usize = 80;

/// Words that number a chapter, besides figures; compounds such as `twenty-one` begin with one of them.
const NUMBERS: [&str; 39] = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "last",
    "the",
];

/// The passages of a text; together they are the text.
pub(super) fn divide(text: &str, how: SplitArg) -> Vec<&str> {
    match how {
        SplitArg::None => vec![text],
        SplitArg::Paragraph => split(text, Division::Paragraph),
        SplitArg::Line => cut(text, |lines, at| !lines[at].trim().is_empty()),
        SplitArg::Chapter => match split(text, Division::Chapter) {
            one if one.len() < 2 => cut(text, begins_chapter),
            chapters => chapters,
        },
    }
}

/// What to say where a text of several lines became one passage: which option would divide it.
pub(super) fn undivided(text: &str, how: SplitArg) -> Option<String> {
    let lacks = match how {
        SplitArg::Paragraph => "no blank line parts its paragraphs",
        SplitArg::Chapter => "no heading of a chapter stands below its first line",
        SplitArg::Line | SplitArg::None => return None,
    };
    let others = [
        ("paragraph", SplitArg::Paragraph, ("paragraph", "paragraphs")),
        ("chapter", SplitArg::Chapter, ("chapter", "chapters")),
        ("line", SplitArg::Line, ("line", "lines")),
    ];
    let (option, made, (one, many)) = others.into_iter().find_map(|(option, other, words)| {
        let made = divide(text, other).len();
        (made > 1).then_some((option, made as u64, words))
    })?;
    Some(format!(
        "the text is one passage: {lacks}; `--split {option}` makes one of each of its {}",
        count(made, one, many)
    ))
}

/// A text cut before the lines that begin a passage; what stands before the first line that says something goes with it.
fn cut(text: &str, begins: impl Fn(&[&str], usize) -> bool) -> Vec<&str> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(lines.len());
    let (mut passages, mut start, mut at) = (Vec::new(), 0, 0);
    for (number, line) in lines.iter().enumerate() {
        if number > first && begins(&lines, number) {
            passages.push(&text[start..at]);
            start = at;
        }
        at += line.len();
    }
    passages.push(&text[start..]);
    passages
}

/// Whether a line stands by itself and names a chapter.
fn begins_chapter(lines: &[&str], at: usize) -> bool {
    let is_blank = |line: Option<&&str>| line.is_none_or(|line| line.trim().is_empty());
    let above = at.checked_sub(1).and_then(|above| lines.get(above));
    is_blank(above) && is_blank(lines.get(at + 1)) && names_chapter(lines[at].trim())
}

fn names_chapter(line: &str) -> bool {
    if line.chars().count() > LONGEST_HEADING {
        return false;
    }
    let mut words = line.split_whitespace();
    let is_loud = match words.next() {
        Some("CHAPTER" | "PART") => true,
        Some("Chapter" | "Part") => false,
        _ => return false,
    };
    let Some(number) = words.next() else { return false };
    if is_loud {
        return !line.chars().any(char::is_lowercase) || is_number(number);
    }
    // “Part two of it was true.” is a sentence, and “Part Two: The Rain” a heading.
    let ends = number.ends_with([':', '.', ',']);
    let is_title = |word: &str| ends || !word.starts_with(char::is_lowercase);
    is_number(number) && words.next().is_none_or(is_title)
}

/// Figures, Roman ones too, or a word.
fn is_number(word: &str) -> bool {
    let word = word.trim_end_matches([':', '.', ',', '—', '–', '-']);
    let first = word.split('-').next().unwrap_or_default().to_lowercase();
    let is_all = |of: &str| !word.is_empty() && word.chars().all(|c| of.contains(c));
    is_all("0123456789") || is_all("IVXLCDM") || NUMBERS.contains(&first.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_name_chapters() {
        let text =
            "Rain\n\nChapter 1\n\nIt rained.\n\nCHAPTER TWO\n\nIt poured.\n\nPart Three: Sun\n\nIt shone.\n";
        let chapters = divide(text, SplitArg::Chapter);
        assert_eq!(chapters.concat(), text);
        let begins: Vec<_> = chapters.iter().filter_map(|chapter| chapter.lines().next()).collect();
        assert_eq!(begins, ["Rain", "Chapter 1", "CHAPTER TWO", "Part Three: Sun"]);
        for line in ["Chapter IV", "Chapter Twenty-One", "CHAPTER RAIN AND SUN", "PART ONE", "Part the First"]
        {
            assert!(names_chapter(line), "{line}");
        }
        for line in
            ["Part two of it was true.", "Part of him knew.", "Chapters 1", "Chapter", "CHAPTER of it"]
        {
            assert!(!names_chapter(line), "{line}");
        }
        assert_eq!(divide("A\nChapter 1\nB\n", SplitArg::Chapter).len(), 1, "within a paragraph");
        assert_eq!(divide("## A\nx\n## B\n\nChapter 1\n\ny", SplitArg::Chapter).len(), 2, "headings first");
    }

    #[test]
    fn a_text_that_is_not_divided_names_the_option_that_would_divide_it() {
        let lines = "It rained.\nIt poured.\n\n";
        assert_eq!(divide(lines, SplitArg::Line), ["It rained.\n", "It poured.\n\n"]);
        let said = undivided(lines, SplitArg::Paragraph).unwrap();
        assert!(said.contains("`--split line` makes one of each of its 2 lines"), "{said}");
        let said = undivided("It rained.\n\nIt poured.\n", SplitArg::Chapter).unwrap();
        assert!(said.contains("`--split paragraph`"), "{said}");
        assert_eq!(undivided("It rained.\n", SplitArg::Paragraph), None);
        assert_eq!(undivided(lines, SplitArg::None), None);
    }
}
