//! Columns that line up, moments of time, and words of enums.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::OutputStyle;

/// Rows with as much space as the widest cell of each column needs; the last column is as wide as it is.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (place, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if place + 1 < row.len() {
                let missing = widths[place].saturating_sub(self::width(cell)) + 2;
                line.extend(std::iter::repeat_n(' ', missing));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Lines of a text, indented; at a terminal broken between words where they would be wider than it is.
pub(super) fn wrapped(text: &str, indent: &str, to: OutputStyle) -> String {
    let room = to.columns.map_or(usize::MAX, |columns| columns.saturating_sub(indent.len()).max(10));
    let mut out = String::new();
    for line in text.lines() {
        let mut row = String::new();
        for word in line.split_inclusive(' ') {
            if !row.is_empty() && width(&row) + width(word.trim_end()) > room {
                out.extend([indent, row.trim_end(), "\n"]);
                row.clear();
            }
            row.push_str(word);
        }
        out.extend([indent, row.trim_end(), "\n"]);
    }
    out
}

/// A line that fits a terminal: what is too wide is cut, with a sign.
pub(super) fn cut(line: &str, to: OutputStyle) -> String {
    to.columns.map_or_else(|| line.to_owned(), |columns| cut_end(line, columns))
}

/// A line whose end is cut where it is wider than this, with a sign.
pub(crate) fn cut_end(line: &str, room: usize) -> String {
    if width(line) <= room {
        return line.to_owned();
    }
    let (mut out, mut taken) = (String::new(), 0);
    let mut rest = line;
    while !rest.is_empty() {
        if let Some(end) = sequence(rest) {
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let end = text::grapheme::clusters(rest).next().map_or(rest.len(), |cluster| cluster.end);
        let wide = rest[..end].width();
        // One cell is for the sign; sequences behind it still end colours.
        if taken + wide < room {
            out.push_str(&rest[..end]);
            taken += wide;
        } else if taken < room {
            out.push('…');
            taken = room;
        }
        rest = &rest[end..];
    }
    out
}

/// Where a colour sequence of ours ends, if a text begins with one.
fn sequence(text: &str) -> Option<usize> {
    let after = text.strip_prefix("\x1b[")?;
    after.find('m').filter(|end| *end <= 4).map(|end| end + 3)
}

/// Cells a terminal gives a text; our own colour sequences take none.
pub(super) fn width(cell: &str) -> usize {
    let mut wide = 0;
    let mut rest = cell;
    while let Some(start) = rest.find("\x1b[") {
        wide += rest[..start].width();
        let after = &rest[start + 2..];
        // A sequence that is not ours ends nowhere: it was made visible, or goes to a pipe as it is.
        rest = after.find('m').filter(|end| *end <= 4).map_or(after, |end| &after[end + 1..]);
    }
    wide + rest.width()
}

/// Pieces with a gap between them, on as many lines as a width asks for, each behind an indent.
pub(super) fn filled<'a>(
    pieces: impl IntoIterator<Item = &'a str>,
    gap: &str,
    indent: usize,
    columns: usize,
) -> String {
    let start = " ".repeat(indent);
    let (mut out, mut line) = (String::new(), start.clone());
    for piece in pieces {
        let is_first = line.len() == indent;
        if !is_first && width(&line) + width(gap) + width(piece) > columns {
            out += line.trim_end();
            out.push('\n');
            line.clone_from(&start);
        } else if !is_first {
            line += gap;
        }
        line += piece;
    }
    out + line.trim_end() + "\n"
}

/// A line whose beginning is cut where it is wider than this, with a sign.
pub(crate) fn cut_start(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let fits = |c: &char| {
        let left = room.checked_sub(c.width().unwrap_or(0));
        room = left.unwrap_or(room);
        left.is_some()
    };
    let kept: Vec<char> = line.chars().rev().take_while(fits).collect();
    format!("…{}", kept.into_iter().rev().collect::<String>())
}

/// A moment in local time, to the minute.
pub(super) fn moment(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| "?".to_owned(),
        |at| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

/// The word of an enum, as JSON has it.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// A count with its noun.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_in_cells_not_in_bytes() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "x"]), row(["漢字", "y"]), row(["\x1b[34mé\x1b[0m", "z"])];
        assert_eq!(columns(&rows), "a     x\n漢字  y\n\x1b[34mé\x1b[0m     z\n");
    }

    #[test]
    fn what_is_too_wide_is_cut_or_broken_within_colours() {
        let to = OutputStyle { terminal: true, color: true, columns: Some(10) };
        assert_eq!(cut("0123456789", to), "0123456789");
        assert_eq!(cut("a\x1b[34m0123456789\x1b[0m", to), "a\x1b[34m01234567…\x1b[0m");
        assert_eq!(cut("漢字検索です", to), "漢字検索…");
        assert_eq!(wrapped("one two three four\nfive", "", to), "one two\nthree four\nfive\n");
        assert_eq!(cut("0123456789ab", OutputStyle::default()), "0123456789ab");
    }

    #[test]
    fn lines_are_filled_and_cut_by_cells() {
        assert_eq!(filled(["漢字", "ab", "c"], "  ", 1, 8), " 漢字\n ab  c\n");
        assert_eq!(filled(["longer than that"], " ", 0, 4), "longer than that\n");
        assert_eq!(cut_end("漢字漢字", 5), "漢字…");
        assert_eq!(cut_start("ab漢字", 4), "…字");
        assert_eq!(cut_start("漢字", 4), "漢字");
    }

    #[test]
    fn a_line_ends_where_its_text_ends() {
        assert_eq!(columns(&[vec!["a".into(), String::new()]]), "a\n");
    }
}
