//! Lines that match an expression, found without trying it on each of them.
//!
//! What counts is the expression tried on one line alone. Beside it stands a second one that is tried on all lines at
//! once: made of the same parts, but no part of it matches a line feed, a text's beginning is the beginning of any
//! line, and its end the end of any. Wherever the first matches a line the second matches there too, within the line;
//! so where it finds nothing there is nothing, and where it finds something the line it is in is asked.

use memchr::{memchr, memrchr};
use regex::{Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::meta;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition,
};

/// Bytes that a compiled expression may take.
const SIZE: usize = 4 << 20;

/// An expression that is searched for. Threads that share one wait for each other: each is given a clone.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    line: Regex,
    /// None where it would be too large: then each line is asked.
    lines: Option<meta::Regex>,
}

/// A line of a text, without what ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    /// Where it begins.
    pub(super) start: usize,
    /// Where the next one begins.
    pub(super) next: usize,
}

impl<'t> Line<'t> {
    /// The line that begins at a place; none at the end of the text.
    pub(super) fn at(text: &'t str, start: usize) -> Option<Self> {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        Some(match memchr(b'\n', rest.as_bytes()) {
            Some(end) => {
                let line = &rest[..end];
                Self { text: line.strip_suffix('\r').unwrap_or(line), start, next: start + end + 1 }
            }
            None => Self { text: rest, start, next: text.len() },
        })
    }

    /// The line above the one that begins at a place; none at the beginning of the text.
    pub(super) fn before(text: &'t str, start: usize) -> Option<Self> {
        let above = text.as_bytes().get(..start.checked_sub(1)?)?;
        Self::at(text, memrchr(b'\n', above).map_or(0, |end| end + 1))
    }
}

impl Expression {
    pub(super) fn new(pattern: &str, ignore_case: bool) -> Result<Self, regex::Error> {
        let line = RegexBuilder::new(pattern).case_insensitive(ignore_case).size_limit(SIZE).build()?;
        let parsed = ParserBuilder::new().case_insensitive(ignore_case).build().parse(pattern);
        let configured = meta::Config::new().nfa_size_limit(Some(SIZE));
        let compiled = parsed.ok().and_then(|parsed| {
            meta::Builder::new().configure(configured).build_from_hir(&within_lines(&parsed)).ok()
        });
        Ok(Self { line, lines: compiled })
    }

    pub(super) fn matches(&self, line: &Line<'_>) -> bool {
        self.line.is_match(line.text)
    }

    /// The first line that matches, of those from the one on that begins at a place.
    pub(super) fn find<'t>(&self, text: &'t str, mut from: usize) -> Option<Line<'t>> {
        while from < text.len() {
            let hit = match &self.lines {
                Some(lines) => {
                    lines.search_half(&Input::new(text).span(from..text.len()).earliest(true))?.offset()
                }
                None => from,
            };
            let start = memrchr(b'\n', &text.as_bytes()[from..hit]).map_or(from, |end| from + end + 1);
            // Behind the last line feed there is no line.
            let line = Line::at(text, start)?;
            if self.matches(&line) {
                return Some(line);
            }
            from = line.next;
        }
        None
    }
}

/// An expression that matches within any line whatever `hir` matches in a line alone, and perhaps more.
fn within_lines(hir: &Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(within_lines).collect();
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        // A line ends before its carriage return as well.
        HirKind::Look(Look::End | Look::EndLF) => Hir::look(Look::EndCRLF),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(part) => {
            Hir::repetition(Repetition { sub: Box::new(within_lines(&part.sub)), ..part.clone() })
        }
        HirKind::Capture(part) => within_lines(&part.sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}
