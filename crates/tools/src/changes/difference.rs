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
    let mut config = similar::TextDiff::configure();
    let diff = config.timeout(DIFF_TIME).diff_lines(before.unwrap_or_default(), after.unwrap_or_default());
    diff.unified_diff().header(&name(before), &name(after)).to_string()
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
    let diff = similar::TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete))
}
