//! Where the hunks of a patch stand in a file.

use super::hunk::Hunk;
use super::lines::{Line, without_bom};
use super::miss::{Miss, MissReason};
use super::nearest::{Wanted, nearest};

/// Places that are named.
const NAMED: usize = 20;

/// A file in which hunks are looked for.
pub(super) struct Locator<'f> {
    file: &'f [Line<'f>],
    /// Lines of the file, each behind an LF, and an LF behind the last, so that whole lines are found by one search.
    text: String,
    /// Offsets in `text`, in bytes, of the LF before each line, and of the last LF.
    starts: Vec<usize>,
}

impl<'f> Locator<'f> {
    pub(super) fn new(file: &'f [Line<'f>]) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(file.len() + 1));
        for (at, line) in file.iter().enumerate() {
            starts.push(text.len());
            text.push('\n');
            text.push_str(content(at, line.content));
        }
        starts.push(text.len());
        text.push('\n');
        Self { file, text, starts }
    }

    /// The line, from 0, at which each hunk stands: in order, and none within another.
    pub(super) fn places(&self, hunks: &[Hunk]) -> Result<Vec<usize>, Miss> {
        let (mut from, mut is_as_stated, mut places) = (0, true, Vec::new());
        for hunk in hunks {
            let old = Old::new(hunk);
            let place = self
                .place(hunk, &old, from, is_as_stated)
                .map_err(|reason| Miss { hunk: Some(hunk.patch_line), reason })?;
            is_as_stated &= hunk.stated.is_none_or(|stated| stated == place + 1);
            from = place + old.lines.len();
            places.push(place);
        }
        Ok(places)
    }

    fn place(
        &self,
        hunk: &Hunk,
        old: &Old<'_>,
        from: usize,
        is_as_stated: bool,
    ) -> Result<usize, MissReason> {
        if old.lines.is_empty() {
            return self.place_of_addition(hunk, from);
        }
        if hunk.is_at_end {
            return self.place_at_end(old, from);
        }
        let stated = hunk.stated.and_then(|line| line.checked_sub(1)).filter(|place| *place >= from);
        if let Some(place) = stated.filter(|place| is_as_stated && self.stands_at(old, *place)) {
            return Ok(place);
        }
        let (below, is_one) = match self.anchor(hunk, from)? {
            Some((anchor, others)) => (anchor, others.is_empty()),
            None => (from, false),
        };
        let Some(first) = self.find(old, below) else { return Err(self.not_found(old)) };
        if self.find(old, first + 1).is_none() || is_one {
            return Ok(first);
        }
        Err(several(std::iter::successors(Some(first), |place| self.find(old, place + 1))))
    }

    /// The place of lines that are added beside none: below the line named behind `@@`, or at the end.
    fn place_of_addition(&self, hunk: &Hunk, from: usize) -> Result<usize, MissReason> {
        match self.anchor(hunk, from)? {
            Some((anchor, others)) if others.is_empty() => Ok(anchor + 1),
            Some((_, others)) => Err(several(others.into_iter())),
            None if hunk.is_at_end || self.file.is_empty() => Ok(self.file.len()),
            None => Err(MissReason::NoContext),
        }
    }

    fn place_at_end(&self, old: &Old<'_>, from: usize) -> Result<usize, MissReason> {
        let place = self.file.len().checked_sub(old.lines.len()).filter(|place| *place >= from);
        if let Some(place) = place.filter(|place| self.stands_at(old, *place)) {
            return Ok(place);
        }
        match self.find(old, from) {
            Some(place) => Err(MissReason::NotAtEnd {
                line: place + 1,
                behind: self.file.len().saturating_sub(place + old.lines.len()),
            }),
            None => Err(self.not_found(old)),
        }
    }

    /// The line that the innermost anchor names, and the places of the outermost where it has several: each anchor is
    /// the first line below the one before it, white space at its ends apart, as it only narrows where the lines of
    /// the hunk are looked for.
    fn anchor(&self, hunk: &Hunk, from: usize) -> Result<Option<(usize, Vec<usize>)>, MissReason> {
        let (mut below, mut found, mut others) = (from, None, Vec::new());
        for anchor in &hunk.anchors {
            let is = |trims: bool| {
                move |at: &usize| {
                    let line = content(*at, self.file[*at].content);
                    line == anchor || (trims && line.trim() == anchor.trim())
                }
            };
            let places = |trims: bool| (below..self.file.len()).filter(is(trims)).take(NAMED + 1);
            let places: Vec<usize> =
                if places(false).next().is_some() { places(false).collect() } else { places(true).collect() };
            let Some(first) = places.first().copied() else {
                return Err(MissReason::AnchorNotFound { anchor: super::excerpt::head(anchor), below });
            };
            if found.is_none() && places.len() > 1 {
                others = places;
            }
            found = Some(first);
            below = first + 1;
        }
        Ok(found.map(|found| (found, others)))
    }

    /// The first place at or behind line `from` at which the lines stand.
    fn find(&self, old: &Old<'_>, from: usize) -> Option<usize> {
        if from == 0 && self.stands_at(old, 0) {
            return Some(0);
        }
        let start = *self.starts.get(from)?;
        let at = start + self.text[start..].find(&old.pattern)?;
        Some(self.starts.partition_point(|start| *start < at))
    }

    fn stands_at(&self, old: &Old<'_>, place: usize) -> bool {
        let here = self.file.get(place..).unwrap_or_default();
        here.len() >= old.lines.len()
            && old
                .lines
                .iter()
                .zip(here)
                .enumerate()
                .all(|(at, (old, line))| content(place + at, old) == content(place + at, line.content))
    }

    fn not_found(&self, old: &Old<'_>) -> MissReason {
        match self.find(old, 0) {
            Some(place) => MissReason::OutOfOrder { line: place + 1 },
            None => {
                let mut lines = old.lines.clone();
                if let Some(first) = lines.first_mut() {
                    *first = without_bom(first);
                }
                MissReason::NotFound(nearest(self.file, &Wanted::whole_lines(lines)))
            }
        }
    }
}

/// The lines of a hunk that stand in the file before.
struct Old<'h> {
    lines: Vec<&'h str>,
    /// As they are searched for.
    pattern: String,
}

impl<'h> Old<'h> {
    fn new(hunk: &'h Hunk) -> Self {
        let lines: Vec<&str> = hunk.old().map(|line| line.content.as_str()).collect();
        let pattern = format!("\n{}\n", lines.join("\n"));
        Self { lines, pattern }
    }
}

/// A line of the file as it is compared: the byte order mark is none of the first.
fn content(at: usize, line: &str) -> &str {
    if at == 0 { without_bom(line) } else { line }
}

fn several(places: impl Iterator<Item = usize>) -> MissReason {
    let mut lines: Vec<usize> = places.take(NAMED + 1).map(|place| place + 1).collect();
    let more = lines.len() > NAMED;
    lines.truncate(NAMED);
    MissReason::Several { lines, more }
}
