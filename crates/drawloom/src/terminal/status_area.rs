//! The lines below what is shown while it comes: what is typed meanwhile, and what becomes of lines that were typed.
//!
//! They are taken away before anything else is written and drawn again behind it, relative to the cursor, so that a
//! screen that scrolls takes them along.

use std::time::Instant;

use text::terminal::one_line;
use unicode_width::UnicodeWidthChar as _;

use crate::cells::{cut_end, cut_start, sequence};

/// Lines that were typed and are still shown, at most.
const SHOWN: usize = 5;
/// Cells to the next tab stop, at most.
const TAB: usize = 8;

/// A line that was typed, and what becomes of it.
pub(super) struct TakenLine {
    pub(super) line: String,
    pub(super) what: String,
}

#[derive(Default)]
pub(super) struct StatusArea {
    pub(super) taken: Vec<TakenLine>,
    /// The line that is being typed.
    pub(super) typing: String,
    /// When the last key came.
    pub(super) key_came: Option<Instant>,
    /// Whether they stand on the screen.
    is_drawn: bool,
}

impl StatusArea {
    /// What takes them away, while the cursor stands behind all that was shown.
    pub(super) fn erase(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_drawn) { "\x1b[J" } else { "" }
    }

    /// What shows them below the cursor and leads back to its column. A line that is full to its end is ended: the
    /// cursor could not be put back behind it.
    pub(super) fn draw(&mut self, column: &mut usize) -> String {
        self.draw_within(column, super::columns())
    }

    fn draw_within(&mut self, column: &mut usize, columns: usize) -> String {
        let hidden = self.taken.len().saturating_sub(SHOWN);
        let more = (hidden > 0).then(|| format!("({hidden} more before)"));
        let taken = self.taken[hidden..].iter().map(|TakenLine { line, what }| format!("> {line} ({what})"));
        let mut rows: Vec<String> =
            more.into_iter().chain(taken).map(|line| cut_end(&one_line(&line), columns - 1)).collect();
        if !self.typing.is_empty() {
            rows.push(cut_start(&format!("> {}", one_line(&self.typing)), columns - 1));
        }
        if rows.is_empty() {
            return String::new();
        }
        self.is_drawn = true;
        let ends = if *column >= columns { "\n" } else { "" };
        *column = if ends.is_empty() { *column } else { 0 };
        let mut out = ends.to_owned();
        rows.iter().for_each(|row| out += &format!("\n{row}"));
        out += &format!("\r\x1b[{}A", rows.len());
        if *column > 0 {
            out += &format!("\x1b[{column}C");
        }
        out
    }
}

/// The column the cursor is in behind a text that was written from a column on. It is that of the terminal's width
/// behind a line that is full.
pub(super) fn column(from: usize, text: &str) -> usize {
    column_within(from, text, super::columns())
}

fn column_within(from: usize, text: &str, columns: usize) -> usize {
    let (mut at, mut rest) = (from, text);
    while let Some(c) = rest.chars().next() {
        if let Some(sequence) = sequence(rest) {
            rest = &rest[sequence..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' | '\r' => at = 0,
            '\t' => at = ((at / TAB + 1) * TAB).min(columns - 1),
            c => {
                let wide = c.width().unwrap_or(0);
                at = if at + wide > columns { wide } else { at + wide };
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_that_of_the_cells() {
        let of = |from, text| column_within(from, text, 10);
        assert_eq!((of(0, "abc"), of(8, "ab"), of(8, "abc")), (3, 10, 1));
        assert_eq!((of(9, "漢"), of(0, "漢字"), of(3, "x\n")), (2, 4, 0));
        assert_eq!((of(0, "\x1b[2mab\x1b[22m"), of(1, "\t"), of(9, "\t")), (2, 8, 9));
    }

    #[test]
    fn lines_are_drawn_below_and_taken_away_once() {
        let mut below = StatusArea::default();
        assert_eq!((below.draw_within(&mut 4, 10), below.erase()), (String::new(), ""));
        below.typing = "some more words".to_owned();
        assert_eq!(below.draw_within(&mut 4, 10), "\n…re words\r\x1b[1A\x1b[4C");
        assert_eq!((below.erase(), below.erase()), ("\x1b[J", ""));
        let taken = || TakenLine { line: "a".to_owned(), what: "b".to_owned() };
        below.taken.push(taken());
        let mut column = 10;
        assert_eq!(below.draw_within(&mut column, 10), "\n\n> a (b)\n…re words\r\x1b[2A");
        assert_eq!(column, 0, "a full line is ended");
        below.taken.extend((0..SHOWN).map(|_| taken()));
        below.typing.clear();
        let drawn = below.draw_within(&mut 0, 30);
        assert!(drawn.starts_with("\n(1 more before)\n> a (b)\n") && drawn.matches("> a").count() == SHOWN);
    }
}
