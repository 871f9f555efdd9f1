//! Paragraphs, separated by blank lines.

/// Byte offsets at which a paragraph begins: the start of every line that is not blank and follows a blank line
/// or the start of the text. A line is blank if it holds nothing but white space.
pub fn paragraph_starts(text: &str) -> impl Iterator<Item = usize> {
    let mut after_blank = true;
    let mut line_start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = line_start;
        line_start += line.len();
        let blank = line.chars().all(char::is_whitespace);
        let begins = after_blank && !blank;
        after_blank = blank;
        begins.then_some(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str) -> Vec<&str> {
        paragraph_starts(text).map(|at| text[at..].trim_start().split(' ').next().unwrap_or("")).collect()
    }

    #[test]
    fn blank_lines_separate() {
        assert_eq!(
            starts("\n\none a\nline b\n\n\n  two c\r\n \t\r\nthree d\n\u{3000}\nfour e\n\n"),
            ["one", "two", "three", "four"]
        );
    }

    #[test]
    fn indentation_belongs_to_its_paragraph() {
        assert_eq!(paragraph_starts("a\n\n    b").collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn nothing_begins_in_a_text_without_words() {
        assert_eq!(paragraph_starts("").count() + paragraph_starts(" \n\n\t\n").count(), 0);
    }
}
