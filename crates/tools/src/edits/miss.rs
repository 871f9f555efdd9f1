//! Why an edit was not made, as the model is told.

use std::fmt;

/// An edit that was not made: nothing of the text was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Miss {
    /// Line of the patch at which the hunk begins, from 1; none where it was no hunk.
    pub hunk: Option<usize>,
    pub reason: MissReason,
}

impl Miss {
    pub(super) const fn whole(reason: MissReason) -> Self {
        Self { hunk: None, reason }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hunk {
            Some(line) => write!(f, "The hunk at line {line} of the patch does not apply: {}", self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

/// What an edit failed at. Lines of the file are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissReason {
    #[error(
        "the old text is empty: give the text that is to be replaced, with enough of its lines to be unique"
    )]
    EmptyOld,
    #[error("the old and the new text {}: nothing would change", if *.exactly { "are the same" } else {
        "differ only in line endings, which an edit keeps as the file has them"
    })]
    Unchanged { exactly: bool },
    #[error("the text stands in several places, at lines {}: give more of the lines around the right one",
        numbers(.lines, *.more))]
    Several { lines: Vec<usize>, more: bool },
    #[error("the text does not stand in the file. {}", .0.as_deref().map_or_else(
        || "Nothing there is like it: read the file again.".to_owned(), ToString::to_string))]
    NotFound(Option<Box<Nearest>>),
    #[error("the line {anchor:?} named behind @@ does not stand in the file{}",
        if *.below == 0 { String::new() } else { format!(" below line {below}") })]
    AnchorNotFound { anchor: String, below: usize },
    #[error(
        "it has neither a context line nor a removed one, so that its place is not known: add the lines around \
             it, or *** End of File where it is for the end"
    )]
    NoContext,
    #[error(
        "its lines stand at line {line} only, above the hunk before it or the line behind @@: give hunks in the order of the \
             file, without overlap"
    )]
    OutOfOrder { line: usize },
    #[error("its lines are for the end of the file, but stand at line {line} with {behind} more behind them")]
    NotAtEnd { line: usize, behind: usize },
    #[error("the file is to be added, but is there and not empty: update it, or delete it first")]
    NotEmpty,
    #[error("the file is to be deleted, but {lines} of its lines are not in the patch: read it again")]
    Leftover { lines: usize },
}

fn numbers(lines: &[usize], more: bool) -> String {
    let named: Vec<String> = lines.iter().map(ToString::to_string).collect();
    named.join(", ") + if more { " and more" } else { "" }
}

/// The place of a file that is most like a text which does not stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// First and last line of the place.
    pub lines: (usize, usize),
    /// Whether nothing but white space differs there.
    pub only_white_space: bool,
    pub difference: LineDifference,
    /// Five lines around the difference, or what the file has of them, each with its number.
    pub around: Vec<(usize, String)>,
}

/// The first line that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineDifference {
    /// Line of the file; one behind its last where the file has ended.
    pub line: usize,
    /// Line of the text that was looked for, from 1.
    pub wanted_line: usize,
    /// The line that was looked for, cut around where it differs.
    pub wanted: String,
    /// The line of the file, cut likewise; none where the file has ended.
    pub found: Option<String>,
    pub kind: DifferenceKind,
}

/// How a line differs from the one that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    Text,
    /// White space alone, which is then shown.
    WhiteSpace,
    /// The file has no final newline there.
    FinalNewline,
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.lines;
        writeln!(f, "The nearest place is lines {from} to {to}.")?;
        if self.only_white_space {
            writeln!(f, "Only white space differs there.")?;
        }
        write!(f, "{}", self.difference)?;
        writeln!(f, "Around it the file has:")?;
        for (number, line) in &self.around {
            writeln!(f, "{number:>6}\t{line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LineDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.kind {
            DifferenceKind::Text => "",
            DifferenceKind::WhiteSpace => {
                " in white space alone (· is a space, → a tab, ␍ a carriage return)"
            }
            DifferenceKind::FinalNewline => ": the file ends there without a final newline",
        };
        let (line, wanted_line) = (self.line, self.wanted_line);
        writeln!(f, "The first line that differs is line {line} (line {wanted_line} of the old text){how}.")?;
        writeln!(f, "  wanted: {}", self.wanted)?;
        match &self.found {
            Some(found) => writeln!(f, "  found:  {found}"),
            None => writeln!(f, "  found:  the end of the file"),
        }
    }
}
