//! What a person reads of the result of a call while its turn goes on.

use text::grapheme::floor;

/// Lines of a difference.
const DIFFERENCE: usize = 20;
/// Last lines of what a failed command printed; lines of its notes; files that it changed.
const LAST: usize = 8;
/// Last lines of what another command printed.
const LAST_OF_GOOD: usize = 3;
/// Bytes of a line.
const LINE: usize = 400;

/// The first line of a result. Behind it stand, of a command, the end of what it printed, the files it changed and its notes; of
/// another call the difference that it made.
pub(super) fn result_lines(tool: &str, text: &str, difference: &str) -> Vec<String> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut lines = vec![cut(first)];
    if tool == "exec" {
        let (rest, notes) = rest.rsplit_once("[notes]\n").unwrap_or((rest, ""));
        let (printed, files) = rest.rsplit_once("[files]\n").unwrap_or((rest, ""));
        let printed: Vec<&str> = printed.lines().collect();
        let last = if first.starts_with("exit 0 ") { LAST_OF_GOOD } else { LAST };
        let before = printed.len().saturating_sub(last);
        lines.extend((before > 0).then(|| format!("[{before} lines before.]")));
        lines.extend(printed.iter().skip(before).copied().map(cut));
        lines.extend(files.lines().take(LAST).map(cut));
        let more = files.lines().count().saturating_sub(LAST);
        lines.extend((more > 0).then(|| format!("[{more} more files: /diff shows them.]")));
        lines.extend(notes.lines().take(LAST).map(cut));
    }
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
    fn a_command_shows_the_end_of_what_it_printed_its_files_and_its_notes() {
        let printed: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        let text =
            format!("exit 1 (0.5 s, sandbox full)\n[output]\n{printed}[files]\nmade a\n[notes]\nmoved");
        let lines = result_lines("exec", &text, "");
        assert_eq!(lines[..3], ["exit 1 (0.5 s, sandbox full)", "[13 lines before.]", "line 13"]);
        assert_eq!(lines[lines.len() - 3..], ["line 20", "made a", "moved"]);
        let worked = result_lines("exec", &text.replace("exit 1", "exit 0"), "");
        assert_eq!(worked[..3], ["exit 0 (0.5 s, sandbox full)", "[18 lines before.]", "line 18"]);
        assert_eq!(worked[3..], ["line 19", "line 20", "made a", "moved"]);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let difference: String = (0..30).map(|line| format!("+{line}\n")).collect();
        let lines = result_lines("write", "wrote a\nmore", &difference);
        assert_eq!((lines.len(), lines[0].as_str()), (22, "wrote a"));
        assert_eq!(lines[21], "[10 more lines: /diff shows them.]");
        assert!(result_lines("read", &"x".repeat(500), "")[0].ends_with('…'));
    }
}
