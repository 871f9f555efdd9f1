//! Differences of files, as people and models read them.

use std::time::Duration;

use text::terminal::{explicit, one_line};

/// How long two texts are compared before what is left counts as replaced.
const DIFF_TIME: Duration = Duration::from_secs(1);

/// Lines of a file that goes that are shown; of a longer one its size is.
const GONE_LINES: usize = 100;

/// A path in a line of what is told: a name of several lines would look like lines of it, and one with invisible characters
/// like another one.
pub(crate) fn line_name(path: &str) -> String {
    explicit(&one_line(path)).into_owned()
}

/// A file before and after as a unified diff; none of a file that is not there.
pub fn unified_diff(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let path = line_name(path);
    let name = |text: Option<&str>| if text.is_some() { path.clone() } else { "/dev/null".to_owned() };
    let lines = [before, after].map(|text| lines_of(text.unwrap_or_default()));
    let diff = compared(&lines);
    let mut shown = String::new();
    for hunk in diff.unified_diff().iter_hunks() {
        shown += &format!("{}\n", hunk.header());
        for change in hunk.iter_changes() {
            let line = change.value();
            let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            shown += &format!("{}{line}{end}", change.tag());
        }
    }
    if shown.is_empty() { shown } else { format!("--- {}\n+++ {}\n{shown}", name(before), name(after)) }
}

/// Lines as people count them: a carriage return ends none, and shows none of a further line as a part of one.
fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn compared<'l>([before, after]: &'l [Vec<&str>; 2]) -> similar::TextDiff<'l, 'l, 'l, str> {
    similar::TextDiff::configure().timeout(DIFF_TIME).diff_slices(before, after)
}

/// A file before and after, whatever its bytes are: those that are no text by their number and digest, a long one that
/// goes as well.
pub(crate) fn file_difference(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let is_text = |bytes: Option<&[u8]>| bytes.is_none_or(|bytes| !bytes.contains(&0));
    let is_long = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() > GONE_LINES;
    let told = |bytes: Option<&[u8]>| {
        let told = |bytes: &[u8]| format!("{} bytes with SHA-256 {}", bytes.len(), loom::Digest::of(bytes));
        bytes.map_or_else(|| "nothing".to_owned(), told)
    };
    if is_text(before) && is_text(after) && (after.is_some() || !before.is_some_and(is_long)) {
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        return unified_diff(path, text(before).as_deref(), text(after).as_deref());
    }
    format!("{}: {} becomes {}\n", line_name(path), told(before), told(after))
}

/// Lines that came, and lines that went.
pub fn lines_between(before: &str, after: &str) -> (usize, usize) {
    let lines = [before, after].map(lines_of);
    let diff = compared(&lines);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_hides_no_line_in_another_one() {
        let shown = unified_diff("a", Some("one\rtwo\nsame\n"), Some("one\rowt\nsame\n"));
        assert_eq!(shown, "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-one\rtwo\n+one\rowt\n same\n");
        let shown = unified_diff("a", Some("one\r"), Some("two\r"));
        let end = "\\ No newline at end of file\n";
        assert_eq!(shown, format!("--- a\n+++ a\n@@ -1 +1 @@\n-one\r\n{end}+two\r\n{end}"));
        assert_eq!(unified_diff("a", None, Some("one\n")), "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+one\n");
        assert_eq!(unified_diff("a", Some("one\n"), Some("one\n")), "");
        assert_eq!(lines_between("a\rb\n", "a\rc\n"), (1, 1));
    }
}
