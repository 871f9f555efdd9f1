//! What tools changed in files, and what was given back.

use std::fmt::Write as _;

use commands::results::file_changes::{FilesChanged, FilesGivenBack};

use super::{OutputStyle, RenderedOutcome};

pub(super) fn changed(found: &FilesChanged, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    for line in found.files.iter().flat_map(|file| file.diff.lines()) {
        let color = match line.as_bytes() {
            [b'+', ..] => "32",
            [b'-', ..] => "31",
            [b'@', ..] => "36",
            _ => "",
        };
        let line = to.line(line);
        let _ =
            writeln!(out, "{}", if color.is_empty() { line.into_owned() } else { to.paint(color, &line) });
    }
    RenderedOutcome::new(out).or_saying(to, "no tool changed a file here")
}

pub(super) fn given_back(done: &FilesGivenBack, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    for path in &done.given {
        let _ = writeln!(out, "given back: {}", to.line(&path.display().to_string()));
    }
    let left = done.left.iter().map(|left| format!("left as it is: {}: {}", left.path.display(), left.why));
    let is_nothing = done.given.is_empty() && done.left.is_empty();
    RenderedOutcome::new(out)
        .noting(left.chain(is_nothing.then(|| "there is nothing to give back".to_owned())))
}
