//! A line as it is shown to the model: cut, and with what cannot be seen made visible.

use text::grapheme;

/// Grapheme clusters that are shown of one line.
pub(super) const SHOWN: usize = 200;
/// Clusters that are shown before the place at which a line differs, where that is far behind its start.
const BEFORE: usize = 50;

/// A line, cut behind its start.
pub(super) fn head(line: &str) -> String {
    around(line, 0)
}

/// A line, cut so that byte `at` is among what is shown.
pub(super) fn around(line: &str, at: usize) -> String {
    let at = grapheme::floor(line, at);
    let index = grapheme::count(&line[..at]);
    let from = if index + BEFORE < SHOWN { 0 } else { index - BEFORE };
    let mut clusters = grapheme::clusters(line).skip(from).peekable();
    let start = clusters.peek().map_or(line.len(), |cluster| cluster.start);
    let end = clusters.take(SHOWN).last().map_or(start, |cluster| cluster.end);
    let [before, behind] = [start > 0, end < line.len()].map(|cut| if cut { "…" } else { "" });
    format!("{before}{}{behind}", &line[start..end])
}

/// A line with its white space shown.
pub(super) fn white_space(line: &str) -> String {
    line.chars().map(|c| if c == ' ' { '·'.to_string() } else { escaped(c) }).collect()
}

/// A line with the characters shown that cannot be seen, or look like a space.
pub(super) fn unseen(line: &str) -> String {
    line.chars().map(escaped).collect()
}

fn escaped(c: char) -> String {
    match c {
        '\t' => '→'.to_string(),
        '\r' => '␍'.to_string(),
        ' ' => c.to_string(),
        _ if c.is_control() || c.is_whitespace() || is_invisible(c) => c.escape_unicode().to_string(),
        _ => c.to_string(),
    }
}

/// Characters of no width. The joiner of emoji and of scripts is left: what it joins shows it.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The first byte at which two lines differ, before the character that does.
pub(super) fn first_difference(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same).rev().find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_where_it_differs() {
        let line = format!("{}👩\u{200D}💻{}", "a".repeat(500), "b".repeat(500));
        assert_eq!(head(&line), format!("{}…", "a".repeat(200)));
        let cut = around(&line, 503);
        assert_eq!(cut, format!("…{}👩\u{200D}💻{}…", "a".repeat(50), "b".repeat(149)));
        assert_eq!(around("short", 4), "short");
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(white_space("\ta \u{a0}b\r"), "→a·\\u{a0}b␍");
        assert_eq!(unseen("a b\u{200b}"), "a b\\u{200b}");
    }
}
