//! The replacement of one passage of a text by another.

use super::lines::{Ending, LfText, lines, without_bom};
use super::miss::{Miss, MissReason};
use super::nearest::{Wanted, nearest};

/// A text in which a passage was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    pub text: String,
    /// Places that were replaced.
    pub count: usize,
    /// Line of the first of them, from 1.
    pub line: usize,
}

/// Places that are counted and named; one that is looked for is found in a time that grows with the text alone, but
/// overlapping ones are looked for again from each.
const NAMED: usize = 20;

/// Replaces `old`, which must stand in `text` exactly once, or everywhere if `replace_all`, by `new`.
///
/// CR LF and LF are the same in `old` and `new`; lines keep the ending they have, new ones get that of their
/// neighbours, and the byte order mark stays.
///
/// # Errors
/// `old` is empty, is the same as `new`, stands nowhere, or in several places without `replace_all`.
pub fn replace(text: &str, old: &str, new: &str, replace_all: bool) -> Result<Replaced, Miss> {
    let body = without_bom(text);
    let bom = &text[..text.len() - body.len()];
    let argument = |argument: &str| {
        let argument = if bom.is_empty() { argument } else { without_bom(argument) };
        LfText::new(argument).text
    };
    let (old_lf, new_lf) = (argument(old), argument(new));
    if old_lf.is_empty() {
        return Err(Miss::whole(MissReason::EmptyOld));
    }
    if old_lf == new_lf {
        return Err(Miss::whole(MissReason::Unchanged { exactly: old == new }));
    }
    let lf = LfText::new(body);
    let places = if replace_all {
        lf.text.match_indices(&old_lf).map(|(at, _)| at).collect()
    } else {
        places(&lf.text, &old_lf)
    };
    let line_of = |at: usize| lf.text[..at].matches('\n').count() + 1;
    let Some(first) = places.first() else {
        return Err(Miss::whole(MissReason::NotFound(nearest(&lines(body), &Wanted::passage(&old_lf)))));
    };
    if places.len() > 1 && !replace_all {
        let named = places.iter().take(NAMED).map(|at| line_of(*at)).collect();
        return Err(Miss::whole(MissReason::Several { lines: named, more: places.len() > NAMED }));
    }
    let mut out = String::with_capacity(text.len());
    out.push_str(bom);
    let (mut behind, mut line_endings) = (0, LineEndings::new(body));
    for at in &places {
        let (from, to) = (lf.original(*at), lf.original(at + old_lf.len()));
        out.push_str(&body[behind..from]);
        write_with_endings(&mut out, &body[from..to], (&old_lf, &new_lf), line_endings.at(from));
        behind = to;
    }
    out.push_str(&body[behind..]);
    Ok(Replaced { text: out, count: places.len(), line: line_of(*first) })
}

/// Where `old` stands, overlapping places too: one more than are named at most.
fn places(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() <= NAMED
        && let Some(at) = text[from..].find(old)
    {
        found.push(from + at);
        from += at + step;
    }
    found
}

/// The ending of the line in which a byte stands, or of the line before it where it has none; bytes are asked for in
/// order, so that the text is gone through once.
struct LineEndings<'t> {
    rest: std::str::SplitInclusive<'t, char>,
    /// Byte behind the line.
    end: usize,
    ending: Ending,
}

impl<'t> LineEndings<'t> {
    fn new(body: &'t str) -> Self {
        Self { rest: body.split_inclusive('\n'), end: 0, ending: Ending::Lf }
    }

    fn at(&mut self, byte: usize) -> Ending {
        while self.end <= byte
            && let Some(line) = self.rest.next()
        {
            self.end += line.len();
            self.ending = match (line.ends_with('\n'), line.ends_with("\r\n")) {
                (_, true) => Ending::CrLf,
                (true, false) => Ending::Lf,
                (false, false) => self.ending,
            };
        }
        self.ending
    }
}

/// Writes `new` with the line endings of `passage`, which is `old` as it stands in the file: lines that are the same
/// at its start and its end keep theirs.
fn write_with_endings(out: &mut String, passage: &str, (old, new): (&str, &str), fallback: Ending) {
    if !new.contains('\n') {
        out.push_str(new);
        return;
    }
    let endings: Vec<Ending> =
        lines(passage).iter().map(|line| line.ending).filter(|ending| *ending != Ending::Missing).collect();
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let behind = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let last = new.len() - 1;
    for (at, line) in new.into_iter().enumerate() {
        out.push_str(line);
        if at == last {
            break;
        }
        let from_end = last - at;
        let ending = if from_end <= behind && from_end <= endings.len() && at >= endings.len() - from_end {
            Some(endings[endings.len() - from_end])
        } else {
            endings.get(at).or(endings.last()).copied()
        };
        out.push_str(ending.unwrap_or(fallback).as_str());
    }
}
