//! The text of a path as an editor shows it: a mark before each passage, `⟦9c3d⟧`.
//!
//! A mark says where a passage was, so that a changed text finds its way back; it is no border. Where one is gone, was
//! doubled or moved, the text still stands as it was saved: only which passage holds it is told by comparing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use loom::short_id;

use super::align::{distribute, rising};

const OPEN: char = '⟦';
const CLOSE: char = '⟧';
/// How the line above the text begins; a space or, where it was wrapped, a line end follows.
const HEADER: &str = "⟦drawloom";
/// What that line says in every file made here.
const SAYS: &str = "marks the beginning of a passage";
/// What its end says.
const ENDS: &str = "Saved and closed, it is taken in.";
/// How the name of a file begins, with which that line ends.
const NAME: &str = "edit-";
/// Characters of that line at most.
const LONGEST_HEADER: usize = 4_096;
/// Bytes between the brackets of a mark at most.
const LONGEST: usize = 40;
/// Letters of an id by which what is left of a mark is known.
const LEFT: usize = 2;

/// The marks of passages, by their short ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    marks: Vec<String>,
    /// What stands behind the id, so that no text holds a mark.
    end: String,
    /// What the text itself holds that reads as the line above it does, and how often.
    headers: BTreeMap<String, usize>,
    /// Line ends that the text begins with.
    line_ends_first: usize,
    has_crlf: bool,
}

/// Something that looks like a mark and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnknownMark {
    /// The mark of no passage.
    Foreign(String),
    /// What was left of a mark, or of the line above the text: it is not closed.
    Open(String),
}

impl UnknownMark {
    pub(super) fn mark(&self) -> &str {
        match self {
            Self::Foreign(mark) | Self::Open(mark) => mark,
        }
    }

    /// Line of the mark in a file, from 1.
    pub(super) fn line(&self, file: &str) -> usize {
        let mut places = file.match_indices(self.mark());
        let place = match self {
            Self::Foreign(_) => places.next(),
            Self::Open(mark) => places
                .find(|(at, _)| !file[at + mark.len()..].starts_with(CLOSE) && !file[..*at].ends_with(OPEN)),
        };
        place.map_or(1, |(at, _)| file[..at].matches('\n').count() + 1)
    }
}

impl Marks {
    /// Marks of passages with these short ids, none of which `text` holds; `end` is what stands behind the ids in
    /// a file that was made before.
    pub(super) fn of<'a>(ids: impl Iterator<Item = &'a str>, text: &str, end: Option<&str>) -> Self {
        let ids: Vec<&str> = ids.collect();
        let taken: HashSet<&str> = marks_in(text).map(|(_, mark)| mark).collect();
        let mut headers = BTreeMap::new();
        headers_in(text).for_each(|(_, header)| *headers.entry(header.to_owned()).or_default() += 1);
        let has_crlf = text.contains("\r\n");
        let with =
            |end: &str| -> Vec<String> { ids.iter().map(|id| format!("{OPEN}{id}{end}{CLOSE}")).collect() };
        let is_free = |end: &String| !with(end).iter().any(|mark| taken.contains(mark.as_str()));
        let ends = (2_u32..).map(|number| format!("·{number}"));
        let free = || std::iter::once(String::new()).chain(ends).find(is_free).unwrap_or_default();
        let end = end.map_or_else(free, str::to_owned);
        Self { marks: with(&end), end, headers, line_ends_first: line_ends_first(text), has_crlf }
    }

    pub(super) fn end(&self) -> &str {
        &self.end
    }

    /// The file of a name that an editor opens: what to know of it, then each passage behind its mark. Its last line end
    /// is not part of the text, as many editors write one.
    pub(super) fn file(&self, title: &str, texts: &[&str], name: &str) -> String {
        let title: String = title.chars().filter(|c| ![OPEN, CLOSE].contains(c) && !c.is_control()).collect();
        // An editor gives a file that has both kinds of line ends one of them.
        let line_end = if self.has_crlf { "\r\n" } else { "\n" };
        let mut file = format!(
            "{HEADER} {title}: an id in these brackets {SAYS}. Write as you like; leave the marks where you can. {ENDS} \
             {name}{CLOSE}{line_end}"
        );
        for (mark, text) in self.marks.iter().zip(texts) {
            file.push_str(mark);
            file.push_str(text);
        }
        file.push_str(line_end);
        file
    }

    /// Whether it is a mark of this id.
    pub(super) fn is_of(&self, mark: &str, id: &str) -> bool {
        self.id_of(mark) == id
    }

    /// The lines of a file from the mark of an id to the next mark of a passage, as a person is told.
    pub(super) fn lines_of(&self, id: &str, file: &str) -> Option<String> {
        let mark = format!("{OPEN}{id}{}{CLOSE}", self.end);
        let start = file.find(&mark)?;
        let behind = start + mark.len();
        let own: HashSet<&str> = self.marks.iter().map(String::as_str).collect();
        let next = marks_in(&file[behind..]).find(|(_, mark)| own.contains(mark));
        let end = next.map_or(file.len(), |(at, _)| behind + at);
        let line = |at: usize| file[..at].matches('\n').count() + 1;
        let (first, last) = (line(start), line(start + file[start..end].trim_end().len()));
        Some(if first == last { format!("line {first}") } else { format!("lines {first} to {last}") })
    }

    /// Whether a file was made for an editor.
    pub(super) fn are_in(&self, file: &str) -> bool {
        let own: HashSet<&str> = self.marks.iter().map(String::as_str).collect();
        !self.headers_of(file).is_empty() || marks_in(file).any(|(_, mark)| own.contains(mark))
    }

    /// Whether a file has the line above and every mark once, in order.
    pub(super) fn are_whole_in(&self, file: &str) -> bool {
        let own: HashSet<&str> = self.marks.iter().map(String::as_str).collect();
        let header = self.headers_of(file);
        let from = header.first().map_or(0, |(at, header)| at + header.len());
        let found = marks_in(&file[from..]).map(|(_, mark)| mark).filter(|mark| own.contains(mark));
        header.len() == 1 && found.eq(self.marks.iter().map(String::as_str))
    }

    /// What an editor's file says of its text: without the line above, wherever it stands and however it is wrapped,
    /// and without the last line end.
    ///
    /// # Errors
    /// The line above is there in part.
    pub(super) fn body(&self, file: &str) -> Result<String, UnknownMark> {
        let own: HashSet<&str> = self.marks.iter().map(String::as_str).collect();
        let mut body = String::with_capacity(file.len());
        let mut rest = 0;
        if !self.are_in(file) && line_ends_first(file) > self.line_ends_first {
            // All marks were taken out, and of the line above its end is left; where the line went whole, what the text
            // begins with is its own.
            let line_end = ["\r\n", "\n"].into_iter().find(|line_end| file.starts_with(line_end));
            rest = line_end.map_or(0, str::len);
        }
        for (start, header) in self.headers_of(file) {
            if !header.ends_with(CLOSE) || marks_in(header).any(|(_, mark)| own.contains(mark)) {
                return Err(UnknownMark::Open(HEADER.to_owned()));
            }
            body.push_str(&file[rest..start]);
            let behind = &file[start + header.len()..];
            let gap = match file[..start].chars().next_back() {
                None | Some('\n') => ["\r\n", "\n", " "].into_iter().find(|gap| behind.starts_with(gap)),
                Some(before) => Some(" ").filter(|gap| before.is_whitespace() && behind.starts_with(gap)),
            };
            rest = start + header.len() + gap.map_or(0, str::len);
        }
        body.push_str(&file[rest..]);
        let line_ends = if self.has_crlf { ["\r\n", "\n"].as_slice() } else { &["\n"] };
        if let Some(line_end) = line_ends.iter().find(|line_end| body.ends_with(**line_end)) {
            body.truncate(body.len() - line_end.len());
        }
        Ok(body)
    }

    /// The lines above the text in a file, with their places. What the text itself held stands behind them.
    fn headers_of<'f>(&self, file: &'f str) -> Vec<(usize, &'f str)> {
        let begin = file.find(|c: char| !c.is_whitespace()).unwrap_or(0);
        // Others, as of a passage that was doubled, are text.
        let is_ours =
            |(at, header): &(usize, &str)| *at == begin || !header.ends_with(CLOSE) || is_above(header);
        let mut surplus: HashMap<&str, usize> = HashMap::new();
        headers_in(file).filter(is_ours).for_each(|(_, header)| *surplus.entry(header).or_default() += 1);
        for (header, number) in &mut surplus {
            *number = number.saturating_sub(self.headers.get(*header).copied().unwrap_or(0));
        }
        let is_surplus = |(_, header): &(usize, &'f str)| match surplus.get_mut(header) {
            Some(number) if *number > 0 => {
                *number -= 1;
                true
            }
            _ => false,
        };
        headers_in(file).filter(is_ours).filter(is_surplus).collect()
    }

    /// The new text of each passage. Together they are the text of the file without its marks.
    ///
    /// # Errors
    /// A mark of no passage, or the beginning of a mark, that was not in the text before.
    pub(super) fn read(&self, old: &[&str], body: &str) -> Result<Vec<String>, UnknownMark> {
        let found = self.find(old, body)?;
        let stay = rising(&found.iter().map(|(passage, _)| *passage).collect::<Vec<_>>());
        // A passage whose every mark stands elsewhere than it did.
        let mut is_moved = vec![false; old.len()];
        found.iter().for_each(|(passage, _)| is_moved[*passage] = true);
        stay.iter().for_each(|at| is_moved[found[*at].0] = false);
        // The text between two places, without the marks; a passage that was moved goes where it stands.
        let plain = |range: Range<usize>| {
            let mut text = String::new();
            let mut at = range.start;
            let first = found.partition_point(|(_, mark)| mark.start < range.start);
            for (_, mark) in found[first..].iter().take_while(|(_, mark)| mark.end <= range.end) {
                text.push_str(&body[at..mark.start]);
                at = mark.end;
            }
            text + &body[at..range.end]
        };
        // Where only marks went elsewhere, nothing was written.
        if plain(0..body.len()) == old.concat() {
            return Ok(old.iter().map(|text| (*text).to_owned()).collect());
        }
        let mut texts = vec![String::new(); old.len()];
        let mut fill = |passages: Range<usize>, text: &str| {
            let members: Vec<usize> = passages.filter(|passage| !is_moved[*passage]).collect();
            let before: Vec<&str> = members.iter().map(|passage| old[*passage]).collect();
            for (passage, text) in members.iter().zip(distribute(&before, text)) {
                texts[*passage] = text;
            }
            !members.is_empty()
        };
        let anchors: Vec<(usize, usize)> = stay.iter().map(|at| (found[*at].0, found[*at].1.start)).collect();
        let first = anchors.first().copied().unwrap_or((old.len(), body.len()));
        let above = plain(0..first.1);
        // Where no passage stands above the first mark, what is written there begins the first passage.
        let mut above = if fill(0..first.0, &above) { String::new() } else { above };
        for (at, (passage, start)) in anchors.iter().enumerate() {
            let (next, end) = anchors.get(at + 1).copied().unwrap_or((old.len(), body.len()));
            fill(*passage..next, &(std::mem::take(&mut above) + &plain(*start..end)));
        }
        Ok(texts)
    }

    /// Passages and the places of their marks; a copy of a passage brings its mark along.
    fn find(&self, old: &[&str], body: &str) -> Result<Vec<(usize, Range<usize>)>, UnknownMark> {
        let own: HashMap<&str, usize> = self.marks.iter().map(String::as_str).zip(0..).collect();
        let before: HashSet<&str> =
            old.iter().flat_map(|text| marks_in(text)).map(|(_, mark)| mark).collect();
        let ids: HashSet<&str> = own.keys().map(|mark| self.id_of(mark)).collect();
        let mut open_before = None;
        let mut found = Vec::new();
        for (start, _) in body.match_indices(OPEN) {
            let rest = &body[start..];
            if let Some(mark) = mark_at(rest) {
                if let Some(passage) = own.get(mark) {
                    found.push((*passage, start..start + mark.len()));
                } else if self.is_like_a_mark(mark, &ids) && !before.contains(mark) {
                    return Err(UnknownMark::Foreign(mark.to_owned()));
                }
            } else if let Some(id) = id_at(rest, &ids) {
                let open_before = open_before.get_or_insert_with(|| open_ids(&old.concat(), &ids));
                if !open_before.contains(id) {
                    return Err(UnknownMark::Open(beginning(rest)));
                }
            }
        }
        self.refuse_half(old, body, &ids)?;
        self.refuse_rest_of_header(old, body)?;
        Ok(found)
    }

    /// Refuses a mark that has lost its first bracket.
    fn refuse_half(&self, old: &[&str], body: &str, ids: &HashSet<&str>) -> Result<(), UnknownMark> {
        for (at, _) in body.match_indices(CLOSE) {
            let Some(head) = body[..at].strip_suffix(self.end.as_str()) else { continue };
            let letters = head.bytes().rev().take_while(|byte| short_id::is_letter(*byte)).count();
            let (before, id) = head.split_at(head.len() - letters);
            if before.ends_with(OPEN) || id.len() < LEFT || !ids.iter().any(|own| own.ends_with(id)) {
                continue;
            }
            let half = format!("{id}{}{CLOSE}", self.end);
            if !old.concat().contains(&half) {
                return Err(UnknownMark::Open(half));
            }
        }
        Ok(())
    }

    /// Refuses what is left of the line above the text where its brackets are gone.
    fn refuse_rest_of_header(&self, old: &[&str], body: &str) -> Result<(), UnknownMark> {
        let reads_so = |line: &&str| (line.contains(SAYS) || line.contains(ENDS)) && line.contains(NAME);
        let before = old.concat().lines().filter(reads_so).count();
        let more = body.lines().filter(reads_so).nth(before);
        more.map_or(Ok(()), |line| Err(UnknownMark::Open(beginning(line.trim_start()))))
    }

    fn id_of<'m>(&self, mark: &'m str) -> &'m str {
        let inner = mark.trim_start_matches(OPEN).trim_end_matches(CLOSE);
        inner.strip_suffix(self.end.as_str()).unwrap_or("")
    }

    /// Whether it is what marks are, or what may be left of one of these: in capitals, without some of its letters, or the
    /// brackets alone.
    fn is_like_a_mark(&self, mark: &str, ids: &HashSet<&str>) -> bool {
        let id = self.id_of(mark);
        let small = id.to_ascii_lowercase();
        let is_left_of = |own: &&str| {
            let mut letters = own.chars();
            small.chars().all(|letter| letters.any(|own| own == letter))
        };
        mark.chars().eq([OPEN, CLOSE])
            || (id.len() >= short_id::SHORTEST && id.bytes().all(short_id::is_letter))
            || small.len() >= LEFT && ids.iter().any(is_left_of)
    }
}

/// The name of the file that a text was made as, wherever it lies now.
pub(super) fn name_in(file: &str) -> Option<&str> {
    let header = headers_in(file).map(|(_, header)| header).find(|header| is_above(header))?;
    let name = header.trim_end_matches(CLOSE).split_whitespace().next_back()?;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    Some(name).filter(|name| is_plain && name.starts_with(NAME))
}

/// Line ends that a text begins with.
fn line_ends_first(text: &str) -> usize {
    text.bytes().take_while(|byte| matches!(byte, b'\r' | b'\n')).filter(|byte| *byte == b'\n').count()
}

/// Whether a line says what that above a text does, however it was wrapped.
fn is_above(header: &str) -> bool {
    header.split_whitespace().collect::<Vec<_>>().join(" ").contains(SAYS)
}

/// What looks like a mark, with the places.
fn marks_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices(OPEN).filter_map(|(start, _)| Some((start, mark_at(&text[start..])?)))
}

/// The mark a text begins with: brackets on one line, not far apart.
fn mark_at(text: &str) -> Option<&str> {
    let inner = &text[OPEN.len_utf8()..];
    let end = inner.find([OPEN, CLOSE, '\n']).filter(|end| *end <= LONGEST)?;
    inner[end..].starts_with(CLOSE).then(|| &text[..OPEN.len_utf8() + end + CLOSE.len_utf8()])
}

/// The id that stands, whole or cut short, behind the bracket a text begins with.
fn id_at<'i>(text: &str, ids: &HashSet<&'i str>) -> Option<&'i str> {
    let inner = text.strip_prefix(OPEN)?;
    let letters = |id: &str| inner.bytes().zip(id.bytes()).take_while(|(one, other)| one == other).count();
    let best = ids.iter().map(|id| (letters(id), *id)).max()?;
    (best.0 >= LEFT).then_some(best.1)
}

/// Ids behind brackets that are not closed.
fn open_ids<'i>(text: &str, ids: &HashSet<&'i str>) -> HashSet<&'i str> {
    let open = text.match_indices(OPEN).map(|(start, _)| &text[start..]);
    open.filter(|rest| mark_at(rest).is_none()).filter_map(|rest| id_at(rest, ids)).collect()
}

/// The first word of what is no mark, by which it is named.
fn beginning(text: &str) -> String {
    let of_it = |(at, c): &(usize, char)| *at == 0 || !(c.is_whitespace() || [OPEN, CLOSE].contains(c));
    text.chars().take(LONGEST).enumerate().take_while(of_it).map(|(_, c)| c).collect()
}

/// What reads as the line above a text, with the places: a bracket with all in it, or how it begins where it is not
/// closed.
fn headers_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices(HEADER).filter_map(|(start, begin)| {
        let rest = &text[start..];
        let end = bracket(rest).unwrap_or(begin.len());
        rest[begin.len()..].starts_with(char::is_whitespace).then(|| (start, &rest[..end]))
    })
}

/// Where the bracket that a text begins with is closed.
fn bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().take(LONGEST_HEADER).find_map(|(at, c)| {
        match c {
            OPEN => depth += 1,
            CLOSE => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at + c.len_utf8())
    })
}

#[cfg(test)]
mod tests;
