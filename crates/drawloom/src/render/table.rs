//! Rows of cells. A pipe gets them whole and lined up; at a terminal they are never wider than it is.
//!
//! Where rows have no room, cells of free text give way: they are cut, with a sign. Nothing else is cut, as ids, names,
//! numbers and reasons are there to be read and typed: where too little is left for free text, or there is none, the
//! cells of a row stand on as many lines as they take.

use super::OutputStyle;
use super::columns::wrapped;
use crate::cells::{cut_end, cut_start, width};

/// Cells between two columns.
const GAP: usize = 2;
/// Cells of free text that is cut, at least; with less room rows take several lines.
const LEAST_FREE: usize = 16;
/// Cells beside other columns in which a text is still worth breaking into lines, at least; half of the terminal as well.
const LEAST_WRAPPED: usize = 24;
/// Cells by which further lines of a row are indented.
const INDENT: usize = 4;

/// Rows lined up; `free` are the columns of free text.
pub(super) fn columns(rows: &[Vec<String>], free: &[usize], to: OutputStyle) -> String {
    blocks(rows, free, to).concat()
}

/// Rows lined up as [`columns`] does, a text of one or more lines for each.
pub(super) fn blocks(rows: &[Vec<String>], free: &[usize], to: OutputStyle) -> Vec<String> {
    let mut widths = widths(rows);
    let Some(room) = to.columns.filter(|room| whole(&widths) > *room) else {
        return rows.iter().map(|row| line(row, &widths)).collect();
    };
    let natural = widths.clone();
    while whole(&widths) > room {
        // The widest gives way first.
        let gives = |column: &&usize| widths.get(**column).is_some_and(|wide| *wide > LEAST_FREE);
        let Some(widest) = free.iter().filter(gives).max_by_key(|column| widths[**column]) else {
            return rows.iter().map(|row| stacked(row, free, room)).collect();
        };
        widths[*widest] -= 1;
    }
    let fitted = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            if widths[column] < natural[column] { shortened(cell, widths[column]) } else { cell.clone() }
        });
        line(&cells.collect::<Vec<_>>(), &widths)
    };
    rows.iter().map(fitted).collect()
}

/// Rows lined up whose last cell is a text to be read whole: at a terminal it is broken between words, beside the others
/// or, where there is too little room, below them.
pub(super) fn explained(rows: &[Vec<String>], to: OutputStyle) -> String {
    let widths = widths(rows);
    let Some(room) = to.columns.filter(|room| whole(&widths) > *room) else {
        return columns(rows, &[], to);
    };
    let beside = whole(&widths[..widths.len().saturating_sub(1)]) + GAP;
    let mut out = String::new();
    for row in rows {
        let Some((text, cells)) = row.split_last().filter(|_| row.len() == widths.len()) else {
            out += &stacked(row, &[], room);
            continue;
        };
        if beside + LEAST_WRAPPED.max(room / 2) > room {
            out += &stacked(cells, &[], room);
            out += &wrapped(text, &" ".repeat(INDENT), to);
            continue;
        }
        let text = wrapped(text, &" ".repeat(beside), to);
        let head = line(cells, &widths);
        let head = head.trim_end();
        // Its first line stands behind the other cells.
        let first = text.get(beside..).unwrap_or("\n");
        let gap = " ".repeat(beside.saturating_sub(width(head)));
        let row = if first.trim().is_empty() { format!("{head}\n") } else { format!("{head}{gap}{first}") };
        out += &row;
    }
    out
}

/// A name and its value behind `wide` cells and a blank. A value of several words is broken between them; one without
/// blanks, as a path is, begins a line where it does not fit: there the terminal breaks it, so that it is copied whole.
pub(super) fn field(name: &str, wide: usize, value: &str, to: OutputStyle) -> String {
    let beside = wide.max(width(name)) + 1;
    match to.columns {
        Some(room) if beside + width(value) > room => {
            if value.contains(' ') {
                let text = wrapped(value, &" ".repeat(beside), to);
                format!("{name:<wide$} {}", text.get(beside..).unwrap_or("\n"))
            } else {
                format!("{name}\n{value}\n")
            }
        }
        _ => format!("{}\n", format!("{name:<wide$} {value}").trim_end()),
    }
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    (0..count).map(|column| widest(column).unwrap_or(0)).collect()
}

/// Cells of a row.
fn whole(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// A row on one line.
fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (place, cell) in row.iter().enumerate() {
        line.push_str(cell);
        if place + 1 < row.len() {
            let missing = widths[place].saturating_sub(width(cell)) + GAP;
            line.extend(std::iter::repeat_n(' ', missing));
        }
    }
    line.trim_end().to_owned() + "\n"
}

/// A row on as many lines as its cells take.
fn stacked(row: &[String], free: &[usize], room: usize) -> String {
    let (mut out, mut taken) = (String::new(), 0);
    let below = room.saturating_sub(INDENT);
    for (column, cell) in row.iter().enumerate().filter(|(_, cell)| width(cell) > 0) {
        let gap = if out.is_empty() { 0 } else { GAP };
        let wide = width(cell);
        if taken + gap + wide <= room {
            out.extend(std::iter::repeat_n(' ', gap));
            out += cell;
            taken += gap + wide;
            continue;
        }
        let is_first = out.is_empty();
        let cell = if free.contains(&column) {
            " ".repeat(INDENT) + &shortened(cell, below)
        } else {
            let to = OutputStyle { columns: Some(room), ..OutputStyle::default() };
            wrapped(cell, &" ".repeat(INDENT), to).trim_end().to_owned()
        };
        let cell = if is_first { cell.trim_start() } else { &cell };
        out += if is_first { "" } else { "\n" };
        out += cell;
        taken = cell.lines().last().map_or(0, width);
    }
    out + "\n"
}

/// A free text that is too wide. What tells paths apart is their ends.
fn shortened(cell: &str, room: usize) -> String {
    if cell.starts_with('/') { cut_start(cell, room) } else { cut_end(cell, room) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(columns: usize) -> OutputStyle {
        OutputStyle { terminal: true, color: true, columns: Some(columns) }
    }

    fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
        cells.map(str::to_owned).to_vec()
    }

    #[test]
    fn columns_line_up_in_cells_not_in_bytes() {
        let rows = [row(["a", "x"]), row(["漢字", "y"]), row(["\x1b[34mé\x1b[0m", "z"])];
        let lined_up = "a     x\n漢字  y\n\x1b[34mé\x1b[0m     z\n";
        assert_eq!(columns(&rows, &[], OutputStyle::default()), lined_up);
        assert_eq!(columns(&rows, &[], at(7)), lined_up);
    }

    #[test]
    fn a_line_ends_where_its_text_ends() {
        assert_eq!(columns(&[row(["a", ""])], &[], OutputStyle::default()), "a\n");
    }

    #[test]
    fn the_widest_free_text_gives_way_first() {
        let rows = [
            row(["ab1", "\x1b[2ma title of thirty-three characters\x1b[0m", "openai/gpt-5.1-mini"]),
            row(["cd2", "漢字漢字漢字漢字漢字漢字漢字", "m"]),
        ];
        let fitted = columns(&rows, &[1, 2], at(42));
        assert_eq!(
            fitted,
            "ab1  \x1b[2ma title of thirty…\x1b[0m  openai/gpt-5.1-m…\ncd2  漢字漢字漢字漢字…   m\n"
        );
        // A path is told from others by its end.
        let paths = [row(["main", "/home/somebody/projects/loom"])];
        assert_eq!(columns(&paths, &[1], at(24)), "main  …ody/projects/loom\n");
        // A pipe gets all of it.
        assert!(
            columns(&rows, &[1, 2], OutputStyle::default()).contains("漢字漢字漢字漢字漢字漢字漢字     ")
        );
    }

    #[test]
    fn rows_without_room_take_several_lines() {
        let rows = [row(["ab1", "2026-11-25 08:00", "document", "", "A title that is rather long"])];
        assert_eq!(
            columns(&rows, &[4], at(30)),
            "ab1  2026-11-25 08:00\n    document\n    A title that is rather lo…\n"
        );
        let rows = [row(["a-name-without-any-blank-in-it", "12 calls"])];
        assert_eq!(columns(&rows, &[], at(20)), "a-name-without-a\n    ny-blank-in-it\n    12 calls\n");
    }

    #[test]
    fn explanations_are_broken_beside_the_other_cells_or_below_them() {
        let rows = [
            row(["ok", "store", "it opens"]),
            row(["FAIL", "keys", "no key is there: set one with `config`"]),
        ];
        assert_eq!(
            explained(&rows, at(40)),
            "ok    store  it opens\nFAIL  keys   no key is there: set one\n             with `config`\n"
        );
        assert_eq!(
            explained(&rows, at(30)),
            "ok  store\n    it opens\nFAIL  keys\n    no key is there: set one\n    with `config`\n"
        );
    }

    #[test]
    fn a_field_is_broken_between_words_and_a_path_by_the_terminal() {
        assert_eq!(field("tree", 10, "one two", at(40)), "tree       one two\n");
        assert_eq!(field("tree", 6, "one two three four", at(20)), "tree   one two three\n       four\n");
        assert_eq!(field("home", 6, "/home/somebody/.drawloom", at(20)), "home\n/home/somebody/.drawloom\n");
    }
}
