//! What is shown of the lines that match: of one file, and of all in order.

use std::fmt::Write as _;
use std::path::Path;

use loom::Digest;

use super::expression::{Expression, Line};
use crate::changes::line_name;

/// Characters of what is shown.
const OUTPUT: usize = 50_000;
/// Characters that are shown of one line.
const LINE: usize = 400;

/// What is shown of a file in which something was found.
pub(super) struct FileMatches {
    /// Of the bytes that were searched.
    pub(super) digest: Digest,
    pub(super) shown: Shown,
    /// What the walk had passed over before it.
    pub(super) passed_over: usize,
}

/// Lines that match, each with those around it that were not shown before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    text: String,
    /// For each line that matches: where in `text` that ends which it adds.
    ends: Vec<usize>,
}

/// How lines are searched for and shown.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) expression: Expression,
    /// Lines shown before and after each match.
    pub(super) context: usize,
    /// Lines that may be found.
    pub(super) most: usize,
}

impl Search {
    /// What is shown of a text; none where no line matches. It is as much as may be shown of anything, no more.
    pub(super) fn look(&self, path: &Path, text: &str) -> Option<Shown> {
        let mut found = self.expression.find(text, 0)?;
        let path = line_name(&path.to_string_lossy());
        let mut shown = Shown::default();
        // The first line that was not shown yet, and the number of the line found.
        let (mut next, mut next_at) = (0, 0);
        let (mut number, mut counted) = (0, 0);
        loop {
            number += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..found.start]).count();
            counted = found.start;
            let from = number.saturating_sub(self.context).max(next);
            if next > 0 && from > next && self.context > 0 {
                shown.text.push_str("--\n");
            }
            let mut at = next_at;
            if from != next {
                at = found.start;
                for _ in from..number {
                    at = Line::before(text, at).map_or(at, |line| line.start);
                }
            }
            let to = number + self.context + 1;
            while next.max(from) < to {
                let Some(line) = Line::at(text, at) else { break };
                next = next.max(from);
                let is_match = line.start == found.start || self.expression.matches(&line);
                show(&mut shown.text, &path, next, &line, if is_match { ':' } else { '-' });
                (next, at) = (next + 1, line.next);
                next_at = at;
            }
            shown.ends.push(shown.text.len());
            if shown.ends.len() >= self.most || shown.text.len() >= OUTPUT {
                return Some(shown);
            }
            match self.expression.find(text, found.next) {
                Some(line) => found = line,
                None => return Some(shown),
            }
        }
    }
}

fn show(out: &mut String, path: &str, number: usize, line: &Line<'_>, sign: char) {
    let cut = line.text.char_indices().nth(LINE).map(|(at, _)| at);
    let shown = &line.text[..cut.unwrap_or(line.text.len())];
    let more = if cut.is_some() { "…" } else { "" };
    let _ = writeln!(out, "{path}{sign}{}{sign}{shown}{more}", number + 1);
}

/// How much more may be shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Lines that match.
    lines: usize,
    /// Bytes; the last line may go beyond.
    bytes: usize,
}

impl Room {
    pub(super) const fn new(most: usize) -> Self {
        Self { lines: most, bytes: OUTPUT }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.lines == 0 || self.bytes == 0
    }

    /// Takes the room of all that is shown of a file.
    pub(super) fn count(&mut self, shown: &Shown) {
        self.take(shown.ends.len(), shown.text.len());
    }

    fn take(&mut self, lines: usize, bytes: usize) {
        self.lines = self.lines.saturating_sub(lines);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// Everything that was found, in the order of the files.
#[derive(Debug)]
pub(super) struct AllMatches {
    room: Room,
    pub(super) out: String,
    /// Digests of the files in which something was found.
    pub(super) files: Vec<Digest>,
}

impl AllMatches {
    pub(super) const fn new(most: usize) -> Self {
        Self { room: Room::new(most), out: String::new(), files: Vec::new() }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.room.is_full()
    }

    /// Adds as much of the next file as there is room for.
    pub(super) fn add(&mut self, digest: Digest, shown: &Shown) {
        let mut from = 0;
        for end in &shown.ends {
            if self.is_full() {
                break;
            }
            self.room.take(1, end - from);
            self.out.push_str(&shown.text[from..*end]);
            from = *end;
        }
        if from > 0 {
            self.files.push(digest);
        }
    }
}
