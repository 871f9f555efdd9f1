//! Unified diffs, as `diff -u` and git write them.

use super::hunk::{self, Body, Hunk, HunkLine};
use super::lines::Ending;
use super::patch::{FileAction, FilePatch, PatchError, PatchLines};
use super::{begin_patch, paths};

const HEADER: &str = "`@@ -LINE,COUNT +LINE,COUNT @@`";
const PATHS: &str = "`--- PATH` with `+++ PATH` below it";
const NONE: &str = "/dev/null";

/// Whether the part of a file begins at the next line.
pub(super) fn starts_file(patch: &PatchLines<'_>) -> bool {
    let starts = |by, sign| patch.ahead(by).is_some_and(|line: &str| line.starts_with(sign));
    starts(0, "diff --git ") || (starts(0, "--- ") && starts(1, "+++ "))
}

/// The files of a diff. What stands between them is passed over.
pub(super) fn parse(patch: &mut PatchLines<'_>) -> Result<Vec<FilePatch>, PatchError> {
    let mut files = Vec::new();
    while let Some(line) = patch.line() {
        if starts_file(patch) {
            files.push(file(patch)?);
        } else if line.starts_with("@@ -") {
            return Err(patch.expected(PATHS));
        } else if line.trim_end() == begin_patch::BEGIN {
            return Err(patch.expected("a unified diff, as above"));
        } else {
            patch.next();
        }
    }
    Ok(files)
}

/// What the lines between `diff --git` and `---` say.
#[derive(Default)]
struct Extended {
    paths: Option<(String, String)>,
    from: Option<String>,
    to: Option<String>,
    executable: Option<bool>,
    is_new: bool,
    is_deleted: bool,
}

fn file(patch: &mut PatchLines<'_>) -> Result<FilePatch, PatchError> {
    let mut said = Extended::default();
    if let Some(rest) = patch.line().and_then(|line| line.strip_prefix("diff --git ")) {
        said.paths = paths::git_paths(rest);
        patch.next();
        extended(patch, &mut said)?;
    }
    let at = patch.position();
    let (mut named, mut hunks) = (None, Vec::new());
    if starts_file(patch) && patch.line().is_some_and(|line| line.starts_with("--- ")) {
        let old = path(patch, "--- ")?;
        let new = path(patch, "+++ ")?;
        named = Some((old, new));
        while starts_hunk(patch) {
            hunks.push(read_hunk(patch)?);
        }
        if hunks.is_empty() {
            return Err(patch.expected(HEADER));
        }
    }
    let has_hunks = named.is_some();
    let executable = said.executable;
    let Some(action) = action(said, named) else {
        patch.go_back(at);
        return Err(patch.expected(PATHS));
    };
    if !has_hunks && executable.is_none() && matches!(action, FileAction::Update { .. }) {
        return Err(patch.expected(PATHS));
    }
    Ok(FilePatch { action, executable, hunks })
}

/// Reads the lines that git writes below `diff --git`.
fn extended(patch: &mut PatchLines<'_>, said: &mut Extended) -> Result<(), PatchError> {
    while let Some(line) = patch.line() {
        let named = |header| line.strip_prefix(header).map(paths::header_path);
        let mode = line.strip_prefix("new file mode ").or_else(|| line.strip_prefix("new mode "));
        if let Some(mode) = mode {
            said.executable = Some(is_executable(patch, mode)?);
            said.is_new |= line.starts_with("new file");
        } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
            is_executable(patch, mode)?;
            said.is_deleted = true;
        } else if let Some(path) = named("rename from ") {
            said.from = path;
        } else if let Some(path) = named("rename to ") {
            said.to = path;
        } else if line.starts_with("index ") {
            if let Some(mode) = line.split(' ').nth(2) {
                is_executable(patch, mode)?;
            }
        } else if ["Binary files ", "GIT binary patch", "copy from "].iter().any(|no| line.starts_with(no)) {
            return Err(patch.expected("changes of text: binary changes and copies are not applied"));
        } else if !["old mode ", "similarity index ", "dissimilarity index "]
            .iter()
            .any(|header| line.starts_with(header))
        {
            break;
        }
        patch.next();
    }
    Ok(())
}

/// Whether the mode of a file says that it is executable. Links and submodules are no text.
fn is_executable(patch: &PatchLines<'_>, mode: &str) -> Result<bool, PatchError> {
    match mode.trim_end() {
        "100755" => Ok(true),
        mode if mode.starts_with("100") => Ok(false),
        _ => Err(patch.expected("mode 100644 or 100755: links and submodules are not changed")),
    }
}

fn path(patch: &mut PatchLines<'_>, sign: &str) -> Result<String, PatchError> {
    let path = patch.line().and_then(|line| line.strip_prefix(sign)).and_then(paths::header_path);
    let path = path.ok_or_else(|| patch.expected(&format!("`{sign}PATH`")))?;
    patch.next();
    Ok(path)
}

/// What becomes of the file; none if it is not named.
fn action(said: Extended, named: Option<(String, String)>) -> Option<FileAction> {
    if let (Some(from), Some(to)) = (said.from, said.to) {
        return Some(FileAction::Move { from, to });
    }
    let (old, new) = named.or(said.paths)?;
    let (old, new) = paths::without_prefixes(old, new);
    if said.is_new || old == NONE {
        return (new != NONE).then_some(FileAction::Add { path: new });
    }
    if said.is_deleted || new == NONE {
        return Some(FileAction::Delete { path: old });
    }
    // The copy that somebody kept before the change is not the file.
    let is_copy = [".orig", ".old", ".bak"].iter().any(|kept| old.strip_suffix(kept) == Some(new.as_str()));
    if old == new || is_copy {
        return Some(FileAction::Update { path: new });
    }
    Some(FileAction::Move { from: old, to: new })
}

/// Whether a hunk is next, behind empty lines at most, which are then passed over.
fn starts_hunk(patch: &mut PatchLines<'_>) -> bool {
    let at = patch.position();
    while patch.line().is_some_and(|line| line.trim_end().is_empty()) {
        patch.next();
    }
    let starts = patch.line().is_some_and(|line| line.starts_with("@@"));
    if !starts {
        patch.go_back(at);
    }
    starts
}

fn read_hunk(patch: &mut PatchLines<'_>) -> Result<Hunk, PatchError> {
    let patch_line = patch.number();
    let header = hunk::header(patch).ok_or_else(|| patch.expected(HEADER))??;
    patch.next();
    let body = patch.position();
    let counted = header.ranges.and_then(|[(_, old), (_, new)]| counted(patch, old, new));
    let lines = match counted.filter(|_| ends_clearly(patch)) {
        Some(lines) => lines,
        None => {
            patch.go_back(body);
            by_signs(patch)?
        }
    };
    let stated = header.ranges.map(|[(line, _), _]| line);
    let anchors = header.anchor.into_iter().collect();
    let mut hunk = Hunk { patch_line, stated, anchors, lines, is_at_end: false };
    if !hunk.changes() {
        return Err(patch.expected("a line that begins with `-` or `+`"));
    }
    let is_last = |line: Option<&HunkLine>| line.is_some_and(|line| line.ending == Ending::Missing);
    let old = hunk.old().next_back();
    hunk.is_at_end = old.is_some() && (is_last(old) || is_last(hunk.new_lines().next_back()));
    Ok(hunk)
}

/// The lines of a hunk by the counts of its header; none if they do not fit.
fn counted(patch: &mut PatchLines<'_>, mut old: usize, mut new: usize) -> Option<Vec<HunkLine>> {
    let mut body = Body::default();
    while old > 0 || new > 0 {
        if starts_same_file(patch) {
            return None;
        }
        let line = hunk::body_line(patch.line()?)?;
        old = old.checked_sub(usize::from(line.kind.is_old()))?;
        new = new.checked_sub(usize::from(line.kind.is_new()))?;
        body.take(patch, line);
    }
    Some(body.into_lines())
}

/// Whether the header of another file is next, and not lines that only look like it: both name the same path.
fn starts_same_file(patch: &PatchLines<'_>) -> bool {
    let path =
        |by: usize, sign| patch.ahead(by).and_then(|line: &str| line.strip_prefix(sign)?.split_once('/'));
    starts_file_with_hunk(patch)
        && path(0, "--- ")
            .zip(path(1, "+++ "))
            .is_some_and(|((a, old), (b, new))| (a, b, old) == ("a", "b", new))
}

fn starts_file_with_hunk(patch: &PatchLines<'_>) -> bool {
    starts_file(patch) && patch.ahead(2).is_some_and(|line| line.starts_with("@@"))
}

/// Whether what is next cannot belong to the hunk before it.
fn ends_clearly(patch: &PatchLines<'_>) -> bool {
    let mut by = 0;
    while patch.ahead(by).is_some_and(|line| line.trim_end().is_empty() && !line.starts_with(' ')) {
        by += 1;
    }
    let is_signature = patch.line().is_some_and(|line| line.trim_end() == "--");
    is_signature
        || (by == 0 && starts_file(patch))
        || !patch
            .ahead(by)
            .is_some_and(|line| line.starts_with([' ', '+', '-']) && (by == 0 || !line.starts_with("--- ")))
}

/// The lines of a hunk by their signs, up to what is clearly something else.
fn by_signs(patch: &mut PatchLines<'_>) -> Result<Vec<HunkLine>, PatchError> {
    let mut body = Body::default();
    while let Some(line) = patch.line() {
        if line.starts_with("@@")
            || line.starts_with("```")
            || line.starts_with("diff -")
            || starts_file_with_hunk(patch)
        {
            break;
        }
        let Some(read) = hunk::body_line(line) else {
            return Err(patch.expected("a line that begins with a space, `-` or `+`"));
        };
        body.take(patch, read);
    }
    Ok(body.into_lines())
}
