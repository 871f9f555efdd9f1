//! The place of a file that is most like lines which do not stand in it.
//!
//! Every line of the file is looked at a few times, never every line with every other: lines that are the same, white
//! space at their ends apart, vote for the place at which the text would begin, as do the lines most like the four
//! longest of the text; only the places with the most votes are compared line by line. Time is bounded by
//! O(file + text + [`CANDIDATES`] × [`COMPARED`] × [`LINE_BYTES`]): a fraction of a second for a megabyte.

use std::collections::HashMap;

use super::excerpt;
use super::lines::{Ending, Line, without_bom};
use super::miss::{DifferenceKind, LineDifference, Nearest};

/// Places that are compared line by line.
const CANDIDATES: usize = 32;
/// Lines of the text that vote, and are compared at each.
const COMPARED: usize = 2_000;
/// Bytes of a line by which it is told how like another it is.
const LINE_BYTES: usize = 400;
/// Places of one line of the text that vote.
const VOTERS: usize = 64;
/// Longest lines of the text of which similar ones are looked for, and how many of those vote.
const LONGEST: usize = 4;
const SIMILAR: usize = 8;
/// Lines by which the rest may be shifted behind the first difference: added or left out in the file.
const SHIFT: isize = 3;

/// The lines of a text that was looked for.
pub(super) struct Wanted<'p> {
    lines: Vec<&'p str>,
    /// Whether it may begin and end inside a line.
    is_passage: bool,
    /// Whether a newline must stand behind its last line.
    ends_line: bool,
}

impl<'p> Wanted<'p> {
    /// A passage, with LF between its lines.
    pub(super) fn passage(text: &'p str) -> Self {
        let whole = text.strip_suffix('\n');
        let lines = whole.unwrap_or(text).split('\n').collect();
        Self { lines, is_passage: true, ends_line: whole.is_some() }
    }

    /// Whole lines; that the last of a file has no newline is no difference.
    pub(super) const fn whole_lines(lines: Vec<&'p str>) -> Self {
        Self { lines, is_passage: false, ends_line: false }
    }

    /// Whether `found` is what line `at` of the text asks for.
    fn fits(&self, at: usize, wanted: &str, found: &str) -> bool {
        let begins_inside = self.is_passage && at == 0;
        let ends_inside = self.is_passage && at + 1 == self.lines.len() && !self.ends_line;
        match (begins_inside, ends_inside) {
            (true, true) => found.contains(wanted),
            (true, false) => found.ends_with(wanted),
            (false, true) => found.starts_with(wanted),
            (false, false) => found == wanted,
        }
    }

    fn fits_but_for_white_space(&self, at: usize, found: &str) -> bool {
        let bare = |line: &str| line.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        self.fits(at, &bare(self.lines[at]), &bare(found))
    }
}

/// The place of `file` that is most like `wanted`; none if nothing is.
pub(super) fn nearest(file: &[Line<'_>], wanted: &Wanted<'_>) -> Option<Box<Nearest>> {
    let mut contents: Vec<&str> = file.iter().map(|line| line.content).collect();
    if let Some(first) = contents.first_mut() {
        *first = without_bom(first);
    }
    let signatures: Vec<Signature> =
        wanted.lines.iter().take(COMPARED).map(|line| Signature::of(line)).collect();
    let scored =
        candidates(&contents, wanted).into_iter().map(|at| (score(&contents, wanted, &signatures, at), at));
    let (score, start) =
        scored.max_by(|(score, at), (other, other_at)| score.cmp(other).then(other_at.cmp(at)))?;
    let lacks_newline = file.last().is_some_and(|line| line.ending == Ending::Missing);
    (score > 0).then(|| described(&contents, wanted, start, lacks_newline)).flatten()
}

/// The places with the most votes, as lines at which the text would begin.
fn candidates(file: &[&str], wanted: &Wanted<'_>) -> Vec<usize> {
    let lines = &wanted.lines[..wanted.lines.len().min(COMPARED)];
    let mut votes: HashMap<usize, usize> = HashMap::new();
    let mut places: HashMap<&str, (Vec<usize>, usize)> = HashMap::new();
    for line in lines {
        places.entry(line.trim()).or_default();
    }
    places.remove("");
    for (at, line) in file.iter().enumerate() {
        if let Some((found, count)) = places.get_mut(line.trim()) {
            *count += 1;
            if found.len() < VOTERS {
                found.push(at);
            }
        }
    }
    for (index, line) in lines.iter().enumerate() {
        if let Some((found, count)) = places.get(line.trim()) {
            for at in found {
                *votes.entry(at.saturating_sub(index)).or_default() += weight(line) / count;
            }
        }
    }
    let mut longest: Vec<usize> = (0..lines.len()).collect();
    longest.sort_by_key(|index| std::cmp::Reverse(lines[*index].trim().len().min(LINE_BYTES)));
    for index in longest.into_iter().take(LONGEST) {
        let line = lines[index];
        for (likeness, at) in most_similar(file, &Signature::of(line)) {
            *votes.entry(at.saturating_sub(index)).or_default() += weight(line) * likeness / 2_000;
        }
    }
    let mut ranked: Vec<(usize, usize)> = votes.into_iter().collect();
    ranked.sort_by_key(|(at, votes)| (std::cmp::Reverse(*votes), *at));
    ranked.into_iter().take(CANDIDATES).map(|(at, _)| at).collect()
}

/// What a line says about a place: a long one more than a brace.
fn weight(line: &str) -> usize {
    1_000 * (1 + line.trim().len().min(40))
}

/// The lines of a file that are most like one, in thousandths.
fn most_similar(file: &[&str], wanted: &Signature) -> Vec<(usize, usize)> {
    let mut best: Vec<(usize, usize)> = Vec::new();
    for (at, line) in file.iter().enumerate() {
        let likeness = wanted.likeness_of(line);
        let least = if best.len() < SIMILAR { 0 } else { best.last().map_or(0, |(likeness, _)| *likeness) };
        if likeness > least {
            let place = best.partition_point(|(other, _)| *other >= likeness);
            best.insert(place, (likeness, at));
            best.truncate(SIMILAR);
        }
    }
    best
}

/// How like the text a place is: 1,000 for each line that is the same, up to 600 for one that is not, and the rest
/// once shifted, so that a place which is right up to a line that was added or left out is found by its start.
fn score(file: &[&str], wanted: &Wanted<'_>, signatures: &[Signature], start: usize) -> usize {
    let lines = &wanted.lines[..signatures.len()];
    let mut here = vec![0];
    for (at, (line, signature)) in lines.iter().zip(signatures).enumerate() {
        let value = file.get(start + at).map_or(0, |found| match same(wanted, at, line, found) {
            0 => signature.likeness_of(found) * 6 / 10,
            same => same,
        });
        here.push(here[at] + value);
    }
    let mut best = here[lines.len()];
    for shift in (-SHIFT..=SHIFT).filter(|shift| *shift != 0) {
        let mut behind = 0;
        for at in (0..lines.len()).rev() {
            let found = (start + at).checked_add_signed(shift).and_then(|at| file.get(at));
            behind += found.map_or(0, |found| same(wanted, at, lines[at], found));
            best = best.max((here[at] + behind).saturating_sub(200));
        }
    }
    best
}

/// What a line counts that is the same, at least but for white space at its ends.
fn same(wanted: &Wanted<'_>, at: usize, line: &str, found: &str) -> usize {
    if wanted.fits(at, line, found) {
        1_000
    } else if line.trim() == found.trim() {
        950
    } else {
        0
    }
}

/// The place that begins at line `start`; none if nothing differs there.
fn described(file: &[&str], wanted: &Wanted<'_>, start: usize, lacks_newline: bool) -> Option<Box<Nearest>> {
    let lines = &wanted.lines;
    let ends_file = start + lines.len() == file.len();
    let found = |at: usize| file.get(start + at).copied();
    let differs = |at: &usize| !found(*at).is_some_and(|found| wanted.fits(*at, lines[*at], found));
    let first = (0..lines.len()).find(differs);
    let at = first.or_else(|| (wanted.ends_line && lacks_newline && ends_file).then(|| lines.len() - 1))?;
    let kind = match found(at) {
        _ if first.is_none() => DifferenceKind::FinalNewline,
        Some(found) if wanted.fits_but_for_white_space(at, found) => DifferenceKind::WhiteSpace,
        _ => DifferenceKind::Text,
    };
    let (wanted_shown, found_shown) = shown(lines[at], found(at), kind);
    let line = (start + at).min(file.len());
    let to = (line.saturating_sub(2) + 5).min(file.len());
    let around = (to.saturating_sub(5)..to).map(|at| (at + 1, excerpt::head(file[at]))).collect();
    Some(Box::new(Nearest {
        lines: (start + 1, (start + lines.len()).min(file.len())),
        only_white_space: (0..lines.len())
            .all(|at| found(at).is_some_and(|found| wanted.fits_but_for_white_space(at, found))),
        difference: LineDifference {
            line: line + 1,
            wanted_line: at + 1,
            wanted: wanted_shown,
            found: found_shown,
            kind,
        },
        around,
    }))
}

/// Wanted and found version of a line, cut where they differ.
fn shown(wanted: &str, found: Option<&str>, kind: DifferenceKind) -> (String, Option<String>) {
    let visible = if kind == DifferenceKind::WhiteSpace { excerpt::white_space } else { excerpt::unseen };
    let wanted = visible(wanted);
    let Some(found) = found.map(visible) else { return (excerpt::head(&wanted), None) };
    let at = excerpt::first_difference(&wanted, &found);
    (excerpt::around(&wanted, at), Some(excerpt::around(&found, at)))
}

/// Which pairs of bytes a line has, white space apart, as a hashed set of 4,096 bits.
struct Signature {
    pairs: [u64; 64],
    count: usize,
}

impl Signature {
    fn of(line: &str) -> Self {
        let mut signature = Self { pairs: [0; 64], count: 0 };
        for pair in pairs(line) {
            signature.pairs[pair / 64] |= 1 << (pair % 64);
            signature.count += 1;
        }
        signature
    }

    /// How like it a line is, in thousandths: the share of its pairs that the line has, and of the line's that it has.
    fn likeness_of(&self, line: &str) -> usize {
        let (mut shared, mut count) = (0, 0);
        for pair in pairs(line) {
            shared += usize::from(self.pairs[pair / 64] >> (pair % 64) & 1 == 1);
            count += 1;
        }
        let shared = shared.min(self.count);
        if shared == 0 { 0 } else { 500 * shared / self.count + 1_000 * shared / (self.count + count) }
    }
}

fn pairs(line: &str) -> impl Iterator<Item = usize> {
    let bytes = line.bytes().take(LINE_BYTES).filter(|byte| !byte.is_ascii_whitespace());
    bytes
        .scan(None, |before: &mut Option<u8>, byte| Some((before.replace(byte), byte)))
        .filter_map(|(before, byte)| Some(((usize::from(before?) * 67) ^ (usize::from(byte) * 31)) % 4_096))
}
