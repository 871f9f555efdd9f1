//! What a patch makes of a file.

use super::hunk::{Hunk, HunkLine, HunkLineKind};
use super::lines::{BOM, Ending, Line, ending_at, lines, without_bom};
use super::locate::Locator;
use super::miss::{Miss, MissReason};
use super::patch::{FileAction, FilePatch};

impl FilePatch {
    /// The text of the file afterwards; empty if the patch deletes it. `text` is that of the file before, empty for
    /// one that is added.
    ///
    /// A hunk is applied at the line that it states, if its lines stand there and the hunks before it stood where they
    /// said, else where its lines stand behind those hunks exactly once. Its lines must be those of the file; line
    /// endings, the byte order mark and the final newline are changed only by a patch that knows them, and stay as
    /// they are otherwise. Time grows with the length of the file, times the hunks that are not where they say.
    ///
    /// # Errors
    /// A hunk does not stand there, or not once: then none is applied.
    pub fn apply(&self, text: &str) -> Result<String, Miss> {
        let file = lines(text);
        match self.action {
            FileAction::Add { .. } if !file.is_empty() => return Err(Miss::whole(MissReason::NotEmpty)),
            FileAction::Delete { .. } if self.hunks.is_empty() => return Ok(String::new()),
            _ => {}
        }
        let places = Locator::new(&file).places(&self.hunks)?;
        if matches!(self.action, FileAction::Delete { .. }) {
            let removed: usize = self.hunks.iter().map(|hunk| hunk.old().count()).sum();
            let left =
                file.len() - removed + self.hunks.iter().map(|hunk| hunk.new_lines().count()).sum::<usize>();
            let leftover = Miss::whole(MissReason::Leftover { lines: left });
            return if left == 0 { Ok(String::new()) } else { Err(leftover) };
        }
        let mut output = Output { lines: Vec::new(), has_bom: None, is_final: None };
        let mut behind = 0;
        for (hunk, place) in self.hunks.iter().zip(places) {
            output.lines.extend_from_slice(&file[behind..place]);
            output.push_hunk(&file, hunk, place);
            behind = place + hunk.old().count();
        }
        output.lines.extend_from_slice(&file[behind..]);
        Ok(output.into_text(ending_at(&file, 0)))
    }
}

/// The lines of a file afterwards.
struct Output<'t> {
    lines: Vec<Line<'t>>,
    /// Whether the file begins with a byte order mark, where that is not as its first line says.
    has_bom: Option<bool>,
    /// Whether it ends with a newline, where that is not as its last line says.
    is_final: Option<bool>,
}

impl<'t> Output<'t> {
    fn push_hunk(&mut self, file: &[Line<'t>], hunk: &'t Hunk, place: usize) {
        let old: Vec<&HunkLine> = hunk.old().collect();
        let keeps_bom = if place == 0 { kept_bom(&old, file) } else { None };
        self.has_bom = self.has_bom.or(keeps_bom);
        let endings = Endings::of(file, &old, place);
        let mut at = place;
        for line in &hunk.lines {
            let mut pushed = match line.kind {
                HunkLineKind::Add => {
                    Line { content: &line.content, ending: endings.of_added(file, line, at) }
                }
                HunkLineKind::Context | HunkLineKind::Remove => file[at],
            };
            let is_first = self.lines.is_empty() || (at == 0 && line.kind.is_old());
            at += usize::from(line.kind.is_old());
            if line.kind.is_new() {
                if keeps_bom.is_some() && is_first {
                    pushed.content = without_bom(pushed.content);
                }
                self.lines.push(pushed);
            }
        }
        if at == file.len() && !file.is_empty() {
            self.is_final = kept_final_newline(&old, file);
        }
    }

    /// `ending` is that of lines that had none and are not the last any more.
    fn into_text(mut self, ending: Ending) -> String {
        let last = self.lines.len().saturating_sub(1);
        for at in 0..self.lines.len() {
            let line = self.lines[at];
            let needs_ending = at < last
                || self.is_final == Some(true)
                || (self.is_final == Some(false) && line.content.is_empty());
            if needs_ending && line.ending == Ending::Missing {
                let before = at.checked_sub(1).map_or(ending, |before| self.lines[before].ending);
                self.lines[at].ending = before;
            } else if !needs_ending && self.is_final == Some(false) {
                self.lines[at].ending = Ending::Missing;
            }
        }
        let mut text = String::new();
        if self.has_bom == Some(true) {
            text.push(BOM);
        }
        for line in &self.lines {
            text.push_str(line.content);
            text.push_str(line.ending.as_str());
        }
        text
    }
}

/// Whether the file has a byte order mark, where the patch does not know it: then it stays as it is.
fn kept_bom(old: &[&HunkLine], file: &[Line<'_>]) -> Option<bool> {
    let has_bom = file.first()?.content.starts_with(BOM);
    (old.first()?.content.starts_with(BOM) != has_bom).then_some(has_bom)
}

/// Whether the file ends with a newline, where the patch does not know it: then it stays as it is.
fn kept_final_newline(old: &[&HunkLine], file: &[Line<'_>]) -> Option<bool> {
    let ends_with_newline = file.last()?.ending != Ending::Missing;
    let said = old.last().map(|line| line.ending != Ending::Missing);
    (said != Some(ends_with_newline)).then_some(ends_with_newline)
}

/// What a hunk knows of the line endings of its file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endings {
    /// Line endings are as the hunk says, also those of the lines it adds.
    Known,
    /// No line of the hunk tells the line endings.
    Untold,
    /// Line endings differ from those of the hunk: lines it adds get those of their neighbours.
    Other,
}

impl Endings {
    fn of(file: &[Line<'_>], old: &[&HunkLine], place: usize) -> Self {
        let pairs = file[place..].iter().zip(old).map(|(line, old)| [line.ending, old.ending]);
        let mut told = pairs.filter(|pair| !pair.contains(&Ending::Missing)).peekable();
        if told.peek().is_none() && file.iter().any(|line| line.ending != Ending::Missing) {
            Self::Untold
        } else if told.all(|[line, old]| line == old) {
            Self::Known
        } else {
            Self::Other
        }
    }

    fn of_added(self, file: &[Line<'_>], line: &HunkLine, at: usize) -> Ending {
        let is_said = match self {
            Self::Known => true,
            Self::Untold => line.ending != Ending::Lf,
            Self::Other => line.ending == Ending::Missing,
        };
        if is_said { line.ending } else { ending_at(file, at) }
    }
}
