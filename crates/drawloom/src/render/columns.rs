//! Columns that line up, moments of time, and words of enums.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

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

/// Cells a terminal gives a text; our own colour sequences take none.
fn width(cell: &str) -> usize {
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
    fn a_line_ends_where_its_text_ends() {
        assert_eq!(columns(&[vec!["a".into(), String::new()]]), "a\n");
    }
}
