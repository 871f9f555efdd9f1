//! What tools changed in files, and what was given back.

use std::fmt::Write as _;

use commands::results::file_changes::{FileHistory, FilesChanged, FilesGivenBack, VersionKind};

use super::columns::moment;
use super::{OutputStyle, RenderedOutcome};

/// What takes a giving-back again, as it is typed where it was given.
fn redo(command: Option<&str>) -> String {
    command.map_or_else(|| "/redo --files".to_owned(), |command| format!("`{command}`"))
}

/// The colour of a line of a difference, by its number; none of one that did not change.
pub(crate) fn difference_color(line: &str) -> &'static str {
    match line.as_bytes() {
        [b'+', ..] => "32",
        [b'-', ..] => "31",
        [b'@', ..] => "36",
        _ => "",
    }
}

pub(super) fn changed(found: &FilesChanged, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    for line in found.changes.iter().flat_map(|file| file.diff.lines()) {
        let color = difference_color(line);
        let line = to.line(line);
        let _ =
            writeln!(out, "{}", if color.is_empty() { line.into_owned() } else { to.paint(color, &line) });
    }
    let names: Vec<String> = found.given_back.iter().map(|path| path.display().to_string()).collect();
    let redo = redo(found.redo_with.as_deref());
    let given_back = format!("given back: {}; {redo} takes it again", names.join(", "));
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
        (true, _) if !done.left.is_empty() => {
            let more = "the same once more gives back what an earlier turn changed";
            done.is_more.then(|| more.to_owned())
        }
        (true, true) => Some("no giving-back of files is left to redo".to_owned()),
        (true, false) => {
            let nothing = "there is nothing to give back".to_owned();
            Some(done.elsewhere.as_ref().map_or(nothing.clone(), |command| {
                format!("{nothing} of this conversation: `{command}` gives back what another one changed")
            }))
        }
        (false, true) => None,
        (false, false) => Some(format!("{} takes it again", redo(done.redo_with.as_deref()))),
    };
    RenderedOutcome::new(out).noting(left.chain(note).chain(done.history.clone()))
}

/// What a path was before each turn, a line each.
pub(super) fn history(found: &FileHistory, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    for version in &found.versions {
        let was = match (version.was, version.bytes) {
            (VersionKind::Nothing, _) => "nothing was there".to_owned(),
            (VersionKind::Folder, _) => "a folder".to_owned(),
            (VersionKind::Special, _) => "a pipe or socket".to_owned(),
            (_, None) => "not kept".to_owned(),
            (VersionKind::Link, Some(_)) => "a link".to_owned(),
            (VersionKind::File, Some(bytes)) => text::bytes::size(bytes),
        };
        let path = to.line(&version.path.display().to_string()).into_owned();
        let _ = writeln!(out, "{}  {}  {path}  {was}", version.short_id, moment(version.at));
    }
    let restore = found.versions.first().filter(|newest| newest.kept).map(|newest| {
        format!("`{} --at {}` makes it what it was before that turn", found.restore, newest.node)
    });
    RenderedOutcome::new(out).noting(restore)
}
