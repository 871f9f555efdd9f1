//! Patches of the form `*** Begin Patch`.

use super::hunk::{self, Body, Hunk, HunkLine, HunkLineKind};
use super::patch::{FileAction, FilePatch, PatchError, PatchLines};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";

/// The files of a patch whose first line is next. What stands behind its end is passed over.
pub(super) fn parse(patch: &mut PatchLines<'_>) -> Result<Vec<FilePatch>, PatchError> {
    patch.next();
    let mut files = Vec::new();
    loop {
        let Some(line) = patch.line() else { return Err(patch.expected(&format!("`{END}`"))) };
        if line.trim_end() == END && !files.is_empty() {
            return Ok(files);
        } else if let Some(path) = named(line, "*** Add File:") {
            patch.next();
            files.push(added(patch, path)?);
        } else if let Some(path) = named(line, "*** Delete File:") {
            patch.next();
            files.push(FilePatch {
                action: FileAction::Delete { path },
                executable: None,
                hunks: Vec::new(),
            });
        } else if let Some(path) = named(line, "*** Update File:") {
            patch.next();
            files.push(updated(patch, path)?);
        } else if line.trim().is_empty() {
            patch.next();
        } else {
            return Err(patch.expected(
                "`*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: PATH` or `*** End Patch`",
            ));
        }
    }
}

fn named(line: &str, header: &str) -> Option<String> {
    line.strip_prefix(header).map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned)
}

fn added(patch: &mut PatchLines<'_>, path: String) -> Result<FilePatch, PatchError> {
    let patch_line = patch.number();
    let mut body = Body::default();
    while let Some(line) = patch.line().filter(|line| !line.starts_with("*** ")) {
        let is_added = line.starts_with('+');
        // An empty line between others lost its sign; before the next file it is none of this one.
        let Some(read) = hunk::body_line(line).filter(|read| is_added || read.content.is_empty()) else {
            return Err(patch.expected("a line of the new file, behind a `+`"));
        };
        body.take(patch, HunkLine { kind: HunkLineKind::Add, ..read });
    }
    let hunk =
        Hunk { patch_line, stated: None, anchors: Vec::new(), lines: body.into_lines(), is_at_end: false };
    let hunks = if hunk.lines.is_empty() { Vec::new() } else { vec![hunk] };
    Ok(FilePatch { action: FileAction::Add { path }, executable: None, hunks })
}

fn updated(patch: &mut PatchLines<'_>, path: String) -> Result<FilePatch, PatchError> {
    let to = patch.line().and_then(|line| named(line, "*** Move to:"));
    if to.is_some() {
        patch.next();
    }
    let mut hunks = Vec::new();
    while patch.line().is_some_and(|line| !line.starts_with("*** ") || line.trim_end() == END_OF_FILE) {
        if hunks.is_empty() && patch.line().is_some_and(str::is_empty) {
            patch.next();
            continue;
        }
        hunks.push(hunk(patch)?);
    }
    if hunks.is_empty() && to.is_none() {
        return Err(patch.expected("`@@` or lines that begin with a space, `-` or `+`"));
    }
    let action = match to {
        Some(to) => FileAction::Move { from: path, to },
        None => FileAction::Update { path },
    };
    Ok(FilePatch { action, executable: None, hunks })
}

fn hunk(patch: &mut PatchLines<'_>) -> Result<Hunk, PatchError> {
    let mut hunk = Hunk {
        patch_line: patch.number(),
        stated: None,
        anchors: Vec::new(),
        lines: Vec::new(),
        is_at_end: false,
    };
    while let Some(header) = hunk::header(patch) {
        let header = header?;
        hunk.anchors.extend(header.anchor);
        hunk.stated = header.ranges.map(|[(line, _), _]| line);
        patch.next();
    }
    hunk.lines = body(patch)?;
    if !hunk.changes() {
        return Err(patch.expected("a line that begins with `-` or `+`"));
    }
    if patch.line().is_some_and(|line| line.trim_end() == END_OF_FILE) {
        hunk.is_at_end = true;
        patch.next();
    }
    Ok(hunk)
}

/// Lines up to the next `@@` or `***`.
fn body(patch: &mut PatchLines<'_>) -> Result<Vec<HunkLine>, PatchError> {
    let mut body = Body::default();
    while let Some(line) = patch.line() {
        if line.starts_with("*** ") || line.starts_with("@@") {
            break;
        }
        let Some(read) = hunk::body_line(line) else {
            return Err(patch.expected("a line that begins with a space, `-` or `+`, or `@@` or `***`"));
        };
        body.take(patch, read);
    }
    Ok(body.into_lines())
}
