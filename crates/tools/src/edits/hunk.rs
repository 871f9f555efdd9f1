//! One hunk of a patch: lines that are looked for in a file, and those that stand there afterwards.

use super::lines::Ending;
use super::patch::{PatchError, PatchLines};

/// A hunk, of either form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    /// Line of the patch at which it begins, from 1.
    pub(super) patch_line: usize,
    /// First line of the file that it is for, from 1, as it says itself.
    pub(super) stated: Option<usize>,
    /// Lines of the file below which it stands, outermost first.
    pub(super) anchors: Vec<String>,
    pub(super) lines: Vec<HunkLine>,
    /// Whether its last line is the last of the file.
    pub(super) is_at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HunkLine {
    pub(super) kind: HunkLineKind,
    /// Without what ends it.
    pub(super) content: String,
    pub(super) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkLineKind {
    Context,
    Remove,
    Add,
}

impl HunkLineKind {
    pub(super) const fn is_old(self) -> bool {
        !matches!(self, Self::Add)
    }

    pub(super) const fn is_new(self) -> bool {
        !matches!(self, Self::Remove)
    }
}

impl Hunk {
    pub(super) fn old(&self) -> impl DoubleEndedIterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind.is_old())
    }

    /// Whether it changes anything.
    pub(super) fn changes(&self) -> bool {
        self.lines.iter().any(|line| line.kind != HunkLineKind::Context)
    }

    pub(super) fn new_lines(&self) -> impl DoubleEndedIterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind.is_new())
    }
}

/// What stands in the line of a hunk that begins with `@@`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HunkHeader {
    /// First line and number of lines, of the file before and after.
    pub(super) ranges: Option<[(usize, usize); 2]>,
    /// Context behind `@@`, where it has no ranges.
    pub(super) anchor: Option<String>,
}

/// Reads the line of a hunk that begins with `@@`; none if it is no such line.
pub(super) fn header(patch: &PatchLines<'_>) -> Option<Result<HunkHeader, PatchError>> {
    let rest = patch.line()?.strip_prefix("@@")?;
    let inner = rest.trim();
    if let Some(ranges) =
        inner.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        let ranges = ranges.split_once(" @@").map_or(ranges, |(ranges, _)| ranges);
        let read = ranges.split_once(" +").and_then(|(old, new)| Some([range(old)?, range(new.trim_end())?]));
        return Some(match read {
            Some(ranges) => Ok(HunkHeader { ranges: Some(ranges), anchor: None }),
            None => Err(patch.expected("`@@ -LINE,COUNT +LINE,COUNT @@`")),
        });
    }
    let anchor = rest.strip_prefix(' ').unwrap_or(rest);
    let anchor = anchor.strip_suffix(" @@").unwrap_or(anchor);
    let is_empty = matches!(anchor.trim(), "" | "@@" | "..." | "... @@");
    Some(Ok(HunkHeader { ranges: None, anchor: (!is_empty).then(|| anchor.to_owned()) }))
}

fn range(text: &str) -> Option<(usize, usize)> {
    let (line, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((line.parse().ok()?, count.parse().ok()?))
}

/// One line of a hunk by its first character; none if it is no such line. An empty one is an empty line of context
/// that lost its space.
pub(super) fn body_line(line: &str) -> Option<HunkLine> {
    let (kind, content) = match line.as_bytes().first() {
        None | Some(b'\r') => (HunkLineKind::Context, line),
        Some(b' ') => (HunkLineKind::Context, &line[1..]),
        Some(b'-') => (HunkLineKind::Remove, &line[1..]),
        Some(b'+') => (HunkLineKind::Add, &line[1..]),
        Some(_) => return None,
    };
    let (content, ending) = match content.strip_suffix('\r') {
        Some(content) => (content, Ending::CrLf),
        None => (content, Ending::Lf),
    };
    Some(HunkLine { kind, content: content.to_owned(), ending })
}

/// The lines of a hunk as they are read. Empty ones at its end, without even a space, are none of it.
#[derive(Default)]
pub(super) struct Body {
    lines: Vec<HunkLine>,
    /// Lines up to the last that is not such a one.
    whole: usize,
}

impl Body {
    /// Takes the next line, which was read as `line`, and a `\ No newline at end of file` behind it.
    pub(super) fn take(&mut self, patch: &mut PatchLines<'_>, mut line: HunkLine) {
        let is_signed = patch.line().is_some_and(|line| !line.trim_end_matches('\r').is_empty());
        patch.next();
        let is_marked = patch.line().is_some_and(|line| line.starts_with("\\ "));
        if is_marked {
            patch.next();
            if line.ending == Ending::CrLf {
                line.content.push('\r');
            }
            line.ending = Ending::Missing;
        }
        self.lines.push(line);
        if is_signed || is_marked {
            self.whole = self.lines.len();
        }
    }

    pub(super) fn into_lines(mut self) -> Vec<HunkLine> {
        self.lines.truncate(self.whole);
        self.lines
    }
}
