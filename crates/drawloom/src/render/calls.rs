//! Calls of tools beneath the answer that holds them.

use commands::results::tree::ToolCallShown;
use loom::call_lines::call_lines;
use text::terminal::one_line;

use super::OutputStyle;
use super::columns::cut;

/// Calls that are drawn of an answer, lines of a call, and characters of a line where no terminal says how many it has
/// room for.
const CALLS: usize = 10;
const LINES: usize = 4;
const CHARACTERS: usize = 200;

/// Lines of calls as notices draw them, each on one line behind an indent: the first lines of each. `whole` is the command
/// that shows where they stand.
pub(super) fn lines(calls: &[ToolCallShown], indent: &str, whole: &str, to: OutputStyle) -> Vec<String> {
    let mut drawn = Vec::new();
    for call in calls.iter().take(CALLS) {
        let all = call_lines(&call.tool, &call.arguments);
        let left = all.len().saturating_sub(LINES);
        drawn.extend(all.into_iter().take(LINES));
        if left > 0 {
            drawn.push(format!("  … {left} more lines: `{whole}`"));
        }
    }
    let left = calls.len().saturating_sub(CALLS);
    if left > 0 {
        drawn.push(format!("… {left} more calls: `{whole}`"));
    }
    drawn.iter().map(|line| cut(&format!("{indent}{}", to.dim(&short(line))), to)).collect()
}

/// A line on one line; its beginning where it is long and no terminal cuts it.
fn short(line: &str) -> String {
    let line = one_line(line);
    match line.char_indices().nth(CHARACTERS) {
        Some((at, _)) => format!("{}…", &line[..text::grapheme::floor(&line, at)]),
        None => line.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn drawn(calls: &[(&str, Value)], columns: Option<usize>) -> Vec<String> {
        let calls: Vec<ToolCallShown> = calls
            .iter()
            .enumerate()
            .map(|(number, (tool, arguments))| ToolCallShown {
                id: number.to_string(),
                number,
                tool: (*tool).to_owned(),
                arguments: arguments.clone(),
            })
            .collect();
        lines(&calls, "  ", "WHOLE", OutputStyle { columns, ..OutputStyle::default() })
    }

    #[test]
    fn calls_are_bounded_and_hide_no_control_character() {
        let exec = ("exec", json!({"command": "cargo test\u{1b}[2J\tx\r"}));
        assert_eq!(drawn(std::slice::from_ref(&exec), None), ["  calls exec", "    $ cargo test␛[2J␉x␍"]);
        let long = drawn(&[("exec", json!({"command": "ls\n".repeat(12)}))], None);
        assert_eq!((long.len(), &*long[4]), (5, "    … 9 more lines: `WHOLE`"));
        let long = drawn(&[("exec", json!({"command": "é".repeat(900)}))], None);
        assert!(long[1].chars().count() < 210 && long[1].ends_with('…'), "{long:?}");
        assert!(drawn(&[exec], Some(12)).iter().all(|line| line.chars().count() <= 12));
        let many = drawn(&vec![("list", json!({})); 12], None);
        assert_eq!((many.len(), &*many[10]), (11, "  … 2 more calls: `WHOLE`"));
    }
}
