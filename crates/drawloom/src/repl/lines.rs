//! When a line is whole, and what it says.

/// Whether more lines belong to what is typed: it ends with a backslash, or inside a fence of code.
pub(super) fn is_open(typed: &str) -> bool {
    ends_with_backslash(typed) || is_in_fence(typed)
}

fn ends_with_backslash(typed: &str) -> bool {
    let backslashes = typed.len() - typed.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

fn is_in_fence(typed: &str) -> bool {
    typed.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1
}

/// What was typed as it is meant: a backslash at the end of a line stands for nothing but the line's end. In a
/// fence of code it is code.
pub(super) fn joined(typed: &str) -> String {
    let mut out = String::with_capacity(typed.len());
    let mut lines = typed.split('\n').peekable();
    while let Some(line) = lines.next() {
        let last = lines.peek().is_none();
        let continues = !last && ends_with_backslash(line) && !is_in_fence(&out);
        out.push_str(if continues { &line[..line.len() - 1] } else { line });
        if !last {
            out.push('\n');
        }
    }
    out
}

/// A line without what a terminal says of its cursor (`ESC [ row ; column R`): an answer that came late stands among what
/// was typed.
pub(super) fn without_reports(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |typed, part| {
        let numbers = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match numbers.strip_prefix('R').filter(|_| part.contains(';')) {
            Some(rest) => typed + rest,
            None => typed + "\x1b[" + part,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_or_an_open_fence_asks_for_more() {
        for open in ["a \\", "a\nb\\", "```rust\nlet x = 1;", "text\n  ```"] {
            assert!(is_open(open), "{open}");
        }
        for whole in ["", "a", "a \\\\", "```\nx\n```", "a ``` b", "a\\\nb"] {
            assert!(!is_open(whole), "{whole}");
        }
    }

    #[test]
    fn a_backslash_before_a_line_end_is_no_text() {
        assert_eq!(joined("a\\\nb"), "a\nb");
        assert_eq!(joined("a\nb"), "a\nb");
        assert_eq!(joined("a\\\\\nb"), "a\\\\\nb");
        assert_eq!(joined("```\nls \\\n -l\n```"), "```\nls \\\n -l\n```");
    }

    #[test]
    fn a_late_answer_of_the_terminal_is_no_text() {
        assert_eq!(without_reports("a\x1b[12;7Rb\x1b[D\x1b[R"), "ab\x1b[D\x1b[R");
    }
}
