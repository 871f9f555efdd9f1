//! A patch: what it does to each of its files.

use std::fmt;

use super::hunk::Hunk;
use super::{begin_patch, excerpt, unified};

/// A patch of one or several files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// In the order of the patch; a path that stands there twice is changed twice.
    pub files: Vec<FilePatch>,
}

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    pub action: FileAction,
    /// Whether the file is executable afterwards, where the patch says so.
    pub executable: Option<bool>,
    pub(super) hunks: Vec<Hunk>,
}

impl FilePatch {
    /// The patch with the lines that are looked for in the file changed by `line`.
    #[must_use]
    pub fn with_old_lines(mut self, line: impl Fn(&str) -> String) -> Self {
        for old in self.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines).filter(|line| line.kind.is_old()) {
            old.content = line(&old.content);
        }
        self
    }
}

/// What becomes of a file. Paths are as the patch names them, without the prefixes of git: they may lead anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    Add { path: String },
    Delete { path: String },
    Update { path: String },
    Move { from: String, to: String },
}

/// A text that is no patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PatchError {
    /// Line of the text, from 1.
    pub line: usize,
    pub expected: String,
    /// What stands there, cut; none at the end.
    pub found: Option<String>,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the patch: expected {}, ", self.line, self.expected)?;
        match &self.found {
            Some(found) => write!(f, "found `{found}`"),
            None => write!(f, "found its end"),
        }
    }
}

impl Patch {
    /// Reads a patch: a unified diff, or one that begins with `*** Begin Patch`. What stands before it is passed over.
    ///
    /// # Errors
    /// The text is neither, or breaks off, or holds what is no text: binary changes, links, copies.
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        let mut patch = PatchLines::new(text);
        loop {
            match patch.line() {
                None => {
                    return Err(patch.expected("`*** Begin Patch`, or `--- PATH` with `+++ PATH` below it"));
                }
                Some(line) if line.trim_end() == begin_patch::BEGIN => {
                    return begin_patch::parse(&mut patch).map(|files| Self { files });
                }
                Some(line) if unified::starts_file(&patch) || line.starts_with("@@ -") => {
                    return unified::parse(&mut patch).map(|files| Self { files });
                }
                Some(_) => patch.next(),
            }
        }
    }
}

/// The lines of a patch, and which is next.
pub(super) struct PatchLines<'p> {
    lines: Vec<&'p str>,
    at: usize,
}

impl<'p> PatchLines<'p> {
    /// A patch whose every line ends in CR LF was written so as a whole: its lines say nothing about their endings.
    fn new(text: &'p str) -> Self {
        let text = super::lines::without_bom(text);
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let (whole, last) = lines.split_at(lines.len().saturating_sub(1));
        let is_cr = |line: &&str| line.ends_with('\r');
        if !lines.is_empty() && whole.iter().all(is_cr) && (!whole.is_empty() || last.iter().all(is_cr)) {
            lines.iter_mut().for_each(|line| *line = line.strip_suffix('\r').unwrap_or(line));
        }
        Self { lines, at: 0 }
    }

    pub(super) fn line(&self) -> Option<&'p str> {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, by: usize) -> Option<&'p str> {
        self.lines.get(self.at + by).copied()
    }

    pub(super) const fn next(&mut self) {
        self.at += 1;
    }

    /// Number of the line that is next, from 1.
    pub(super) const fn number(&self) -> usize {
        self.at + 1
    }

    /// Where it stands, to come back to.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    pub(super) const fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    pub(super) fn expected(&self, expected: &str) -> PatchError {
        let found = self.line().map(|line| excerpt::head(&excerpt::unseen(line)));
        PatchError { line: self.number(), expected: expected.to_owned(), found }
    }
}
