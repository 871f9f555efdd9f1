//! Speaking to the person who started a task.

/// Says a line.
#[allow(clippy::print_stderr, reason = "a task speaks to the person who started it")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}
