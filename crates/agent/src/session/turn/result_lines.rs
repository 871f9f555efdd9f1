//! What a person reads of the result of a call while its turn goes on.

use text::grapheme::floor;

/// Lines of a difference.
const DIFFERENCE: usize = 20;
/// Bytes of a line.
const LINE: usize = 400;

/// The first line of a result, what its tool tells in `brief`, and the difference that the call made.
pub(super) fn result_lines(text: &str, brief: &[String], difference: &str) -> Vec<String> {
    let mut lines = vec![cut(text.split('\n').next().unwrap_or_default())];
    lines.extend(brief.iter().map(|line| cut(line)));
    lines.extend(difference.lines().take(DIFFERENCE).map(cut));
    let more = difference.lines().count().saturating_sub(DIFFERENCE);
    lines.extend((more > 0).then(|| format!("[{more} more lines: /diff shows them.]")));
    lines
}

fn cut(line: &str) -> String {
    let at = floor(line, LINE.min(line.len()));
    let more = if at < line.len() { "…" } else { "" };
    format!("{}{more}", &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let difference: String = (0..30).map(|line| format!("+{line}\n")).collect();
        let lines = result_lines("wrote a\nmore", &["made b".to_owned()], &difference);
        assert_eq!((lines.len(), &lines[..2]), (23, &["wrote a".to_owned(), "made b".to_owned()][..]));
        assert_eq!(lines[22], "[10 more lines: /diff shows them.]");
        assert!(result_lines(&"x".repeat(500), &[], "")[0].ends_with('…'));
    }
}
