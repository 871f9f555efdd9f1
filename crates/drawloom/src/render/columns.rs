//! Lines cut and broken to the width of a terminal, moments of time, and words of enums.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::OutputStyle;
use crate::cells::{cut_end, most_width, sequence, width};

/// Lines of a text, indented; at a terminal broken between words where they would be wider than it is, and a word that
/// is wider than all of it between characters. A command and an address are whole, however wide they are: they are copied
/// or followed from there, and the terminal itself breaks them. A colour ends with its line and goes on in the next:
/// pagers show lines.
pub(super) fn wrapped(text: &str, indent: &str, to: OutputStyle) -> String {
    let room = to.columns.map_or(usize::MAX, |columns| columns.saturating_sub(width(indent)).max(10));
    let mut out = String::new();
    for row in rows(text, room, is_whole) {
        out.extend([indent, &row, "\n"]);
    }
    out
}

/// What stands before the further rows of a line in [`hanging`].
const HANG: &str = "    ";

/// Lines of a text that is not ours, at a terminal in rows of which none is wider than it is, and each but the first of a
/// line is indented: no line goes on at the margin, where lines of the program begin.
pub(super) fn hanging(text: &str, indent: &str, to: OutputStyle) -> String {
    let beside =
        |indent: usize| to.columns.map_or(usize::MAX, |columns| columns.saturating_sub(indent).max(1));
    let (whole, room) = (beside(width(indent)), beside(width(indent) + HANG.len()));
    let mut out = String::new();
    for line in text.lines() {
        let room = if most_width(line) <= whole { whole } else { room };
        for (number, row) in rows(line, room, |_| false).iter().enumerate() {
            out.extend([indent, if number == 0 { "" } else { HANG }, row, "\n"]);
        }
    }
    out
}

/// Lines of a text in rows that are no wider than this, but for words that are whole.
fn rows(text: &str, room: usize, is_whole: fn(&str) -> bool) -> Vec<String> {
    let (mut rows, mut color) = (Vec::new(), String::new());
    let mut add = |row: &str| {
        let row = row.trim_end();
        let began = color.clone();
        color = color_behind(row, &began);
        let end = if color.is_empty() { "" } else { "\x1b[0m" };
        rows.push(format!("{began}{row}{end}"));
    };
    for line in text.lines() {
        let mut row = String::new();
        for word in words(line) {
            if most_width(&row) + most_width(word.trim_end()) <= room {
                row.push_str(word);
                continue;
            }
            if !row.is_empty() {
                add(&row);
                row.clear();
            }
            let mut pieces = if is_whole(word) { vec![word.to_owned()] } else { broken(word, room) };
            row = pieces.pop().unwrap_or_default();
            pieces.iter().for_each(|piece| add(piece));
        }
        add(&row);
    }
    rows
}

/// Words of a line, each with the space behind it; a command between backquotes is one.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let word = rest.split_inclusive(' ').next()?;
        let start = word.find(COMMAND).map(|at| at + COMMAND.len());
        let end = start.and_then(|start| Some(start + rest.get(start..)?.find('`')?));
        let behind = |end: usize| rest[end..].find(' ').map_or(rest.len(), |space| end + space + 1);
        let (word, left) = rest.split_at(end.map_or(word.len(), behind));
        rest = left;
        Some(word)
    })
}

/// How a command in a sentence begins.
const COMMAND: &str = "`drawloom ";

fn is_whole(word: &str) -> bool {
    word.contains(COMMAND) || ["http://", "https://"].iter().any(|scheme| word.starts_with(scheme))
}

/// A word in pieces that are no wider than this.
fn broken(word: &str, room: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut taken) = (Vec::new(), String::new(), 0);
    let mut rest = word;
    while !rest.is_empty() {
        let wide_to = |end: usize| (end, most_width(&rest[..end]));
        let cluster = || text::grapheme::clusters(rest).next().map_or(rest.len(), |cluster| cluster.end);
        let (end, wide) = sequence(rest).map_or_else(|| wide_to(cluster()), |end| (end, 0));
        if taken + wide > room && taken > 0 && &rest[..end] != " " {
            pieces.push(std::mem::take(&mut piece));
            taken = 0;
        }
        piece.push_str(&rest[..end]);
        taken += wide;
        rest = &rest[end..];
    }
    pieces.push(piece);
    pieces
}

/// The colour that is on behind a row, which was on before it or began in it.
fn color_behind(row: &str, before: &str) -> String {
    let mut color = before;
    let mut rest = row;
    while let Some(start) = rest.find("\x1b[") {
        rest = &rest[start..];
        let end = sequence(rest).unwrap_or(2);
        match &rest[..end] {
            "\x1b[0m" => color = "",
            sequence if sequence.ends_with('m') => color = sequence,
            _ => {}
        }
        rest = &rest[end..];
    }
    color.to_owned()
}

/// A line that fits a terminal: what is too wide is cut, with a sign.
pub(super) fn cut(line: &str, to: OutputStyle) -> String {
    to.columns.map_or_else(|| line.to_owned(), |columns| cut_end(line, columns))
}

/// Pieces with a gap between them, on as many lines as a width asks for, each behind an indent.
pub(crate) fn filled<'a>(
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
    fn what_is_too_wide_is_cut_or_broken_within_colours() {
        let to = OutputStyle { terminal: true, color: true, columns: Some(10) };
        assert_eq!(cut("0123456789", to), "0123456789");
        assert_eq!(cut("a\x1b[34m0123456789\x1b[0m", to), "a\x1b[34m01234567…\x1b[0m");
        assert_eq!(cut("漢字検索です", to), "漢字検索…");
        assert_eq!(wrapped("one two three four\nfive", "", to), "one two\nthree four\nfive\n");
        assert_eq!(wrapped("漢字検索です。a", "", to), "漢字検索で\nす。a\n");
        let of_two_lines = "\x1b[2mone two\x1b[0m\n\x1b[2mthree\x1b[0m\n";
        assert_eq!(wrapped("\x1b[2mone two three\x1b[0m", "", to), of_two_lines);
        let commands = "see `drawloom tree list`, or\nrun `drawloom x` (it tells) and `a b c d e`";
        assert_eq!(
            wrapped(commands, "", to),
            "see\n`drawloom tree list`,\nor\nrun\n`drawloom x`\n(it tells)\nand `a b c\nd e`\n",
            "a command is whole"
        );
        assert_eq!(
            wrapped("go to https://a.example/b?c=d, now", "", to),
            "go to\nhttps://a.example/b?c=d,\nnow\n"
        );
        assert_eq!(wrapped("`drawloom a b", "", to), "`drawloom\na b\n", "without an end it is none");
        assert_eq!(cut("0123456789ab", OutputStyle::default()), "0123456789ab");
    }

    #[test]
    fn a_line_that_is_not_ours_goes_on_behind_an_indent_whatever_it_says() {
        let to = OutputStyle { columns: Some(14), ..OutputStyle::default() };
        assert_eq!(hanging("  Pay now or else.\nNo", "", to), "  Pay now\n    or else.\nNo\n");
        assert_eq!(hanging("  Pay or else.", "", to), "  Pay or else.\n", "what fits is one row");
        for line in [
            "`drawloom approve 1234 --for always` is typed",
            "0123456789abcdefghij",
            "漢字検索です。漢字検索",
            // Terminals do not join these.
            &"لا".repeat(20),
            &"👍🏽".repeat(9),
        ] {
            let shown = hanging(line, "", to);
            assert!(shown.lines().all(|row| most_width(row) <= 14), "{shown}");
            assert!(shown.lines().skip(1).all(|row| row.starts_with(HANG)), "{shown}");
            let kept = |text: &str| text.replace(char::is_whitespace, "");
            assert_eq!(kept(&shown), kept(line));
        }
        let unbounded = OutputStyle::default();
        assert_eq!(hanging("a b  c", "> ", unbounded), "> a b  c\n");
    }

    #[test]
    fn lines_are_filled_by_cells() {
        assert_eq!(filled(["漢字", "ab", "c"], "  ", 1, 8), " 漢字\n ab  c\n");
        assert_eq!(filled(["longer than that"], " ", 0, 4), "longer than that\n");
    }
}
