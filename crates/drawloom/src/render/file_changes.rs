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
    let names: Vec<String> = found.given_back.iter().map(|path| path.display().to_string()).collect();
    let given_back = format!("given back: {}; /redo --files takes it again", names.join(", "));
    RenderedOutcome::new(out)
        .noting((!names.is_empty()).then_some(given_back))
        .or_saying(to, "no tool changed a file here")
}

pub(super) fn given_back(done: &FilesGivenBack, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    for path in &done.given {
        let did = if done.is_redone { "redone" } else { "given back" };
        let _ = writeln!(out, "{did}: {}", to.line(&path.display().to_string()));
    }
    let left = done.left.iter().map(|left| format!("left as it is: {}: {}", left.path.display(), left.why));
    let note = match (done.given.is_empty(), done.is_redone) {
        (true, _) if !done.left.is_empty() => None,
        (true, true) => Some("no giving-back of files is left to redo"),
        (true, false) => Some("there is nothing to give back"),
        (false, true) => None,
        (false, false) => Some("/redo --files takes it again"),
    };
    RenderedOutcome::new(out).noting(left.chain(note.map(str::to_owned)))
}
