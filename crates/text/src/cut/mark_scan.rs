//! The search for marks at which a sentence may end, in a text that may go on.
//!
//! A whole text and one that arrives in pieces are searched alike, so that both have their sentences end at the same marks.

use super::sentence::{is_closer, is_emphasis, is_end_mark, is_unspaced_mark, opens_elsewhere};
use super::text_slice::TextSlice;

/// End marks with the closers, footnotes and the guillemet behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkRun {
    /// Offset of the first of them.
    pub(super) mark: usize,
    /// Offset behind those that were looked at.
    pub(super) end: usize,
    /// Whether one of them needs no space.
    pub(super) is_unspaced: bool,
}

impl MarkRun {
    const fn at(mark: usize) -> Self {
        Self { mark, end: mark, is_unspaced: false }
    }

    const fn to(self, end: usize) -> Self {
        Self { end, ..self }
    }

    /// Goes on to the first character that is no mark or closer of it, or to the end of the text.
    fn extended(self, text: TextSlice<'_>) -> Self {
        let is_question = text.from(self.mark).first() == Some(';');
        let (mut end, mut is_unspaced) = (self.end, self.is_unspaced);
        for c in text.from(self.end).chars() {
            is_unspaced |= is_unspaced_mark(c);
            // Behind a mark that needs no space the next sentence may begin with such a quote: `他走了。“你好。”`
            let closes =
                is_closer(c) && !(is_unspaced && opens_elsewhere(c)) || is_emphasis(c) && !is_unspaced;
            // The Greek question mark may be the first.
            if !(is_end_mark(c) || closes || c == ';' && is_question) {
                break;
            }
            end += c.len_utf8();
        }
        Self { mark: self.mark, end, is_unspaced }
    }
}

/// How far the search for marks has come.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// No mark stands between the marks that were found last and this offset.
    Search(usize),
    /// Marks and closers may go on.
    Marks(MarkRun),
    /// Marks and closers are whole, footnotes and a guillemet may go on.
    Footnotes(MarkRun),
}

/// A search for marks that belongs to one text.
#[derive(Debug, Clone)]
pub(super) struct MarkScan(Stage);

impl Default for MarkScan {
    fn default() -> Self {
        Self(Stage::Search(0))
    }
}

impl MarkScan {
    /// The next marks, once nothing that follows can belong to them. The text begins with that of the call before.
    pub(super) fn next(&mut self, text: TextSlice<'_>) -> Option<MarkRun> {
        loop {
            match self.0 {
                Stage::Search(from) => match next_mark(text, from.min(text.len())) {
                    Some(mark) => self.0 = Stage::Marks(MarkRun::at(mark)),
                    None => {
                        self.0 = Stage::Search(text.len());
                        return None;
                    }
                },
                Stage::Marks(run) => {
                    let run = run.extended(text);
                    self.0 = Stage::Marks(run);
                    if run.end == text.len() {
                        return None;
                    }
                    // Behind a mark that needs no space what a bracket holds is not waited for.
                    if run.is_unspaced {
                        return self.behind(text, run);
                    }
                    self.0 = Stage::Footnotes(run);
                }
                Stage::Footnotes(run) => match Footnote::of(text.from(run.end)) {
                    Footnote::Whole(bytes) => self.0 = Stage::Footnotes(run.to(run.end + bytes)),
                    Footnote::Begun => return None,
                    Footnote::Other => return self.behind(text, run),
                },
            }
        }
    }

    /// The marks at the end of a text that goes on no more, behind those that [`Self::next`] finds.
    pub(super) fn last(&mut self, text: TextSlice<'_>) -> Option<MarkRun> {
        match self.0 {
            Stage::Search(_) => None,
            Stage::Marks(run) | Stage::Footnotes(run) => {
                let end = run.end + closing_guillemet(text.from(run.end));
                self.0 = Stage::Search(end);
                Some(run.to(end))
            }
        }
    }

    /// The marks with the guillemet that belongs to them, which three characters behind them tell.
    fn behind(&mut self, text: TextSlice<'_>, run: MarkRun) -> Option<MarkRun> {
        let rest = text.from(run.end);
        let bytes = closing_guillemet(rest);
        let is_known = rest.chars().nth(2).is_some() || bytes == 0 && !begins_guillemet(rest);
        is_known.then(|| {
            self.0 = Stage::Search(run.end + bytes);
            run.to(run.end + bytes)
        })
    }
}

/// The offset of the first end mark at or behind `from`.
fn next_mark(text: TextSlice<'_>, from: usize) -> Option<usize> {
    let places = text.from(from).char_indices().map(|(at, c)| (from + at, c));
    let mut marks = places.filter(|(_, c)| is_end_mark(*c) || *c == ';');
    marks.find(|(at, mark)| *mark != ';' || is_greek(text.to(*at))).map(|(at, _)| at)
}

/// Whether the last letter of a text is Greek, but for closing quotes behind it.
fn is_greek(text: TextSlice<'_>) -> bool {
    let last = text.trim_end_matches(is_closer).last();
    last.is_some_and(|c| c.is_alphabetic() && matches!(c, '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}'))
}

/// Characters of the number of a footnote at most.
const LONGEST_FOOTNOTE: usize = 6;

/// What stands at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Footnote {
    /// The number of a footnote of so many bytes, `[1]` or `[^1]`.
    Whole(usize),
    /// What more of the text may make one.
    Begun,
    Other,
}

impl Footnote {
    fn of(text: TextSlice<'_>) -> Self {
        let Some(inner) = text.strip_prefix('[') else {
            return if text.is_empty() { Self::Begun } else { Self::Other };
        };
        let number = inner.strip_prefix('^').unwrap_or(inner);
        let digits = number.chars().take(LONGEST_FOOTNOTE + 1).take_while(char::is_ascii_digit).count();
        match number.from(digits).first() {
            _ if digits > LONGEST_FOOTNOTE => Self::Other,
            Some(']') if digits > 0 => Self::Whole(text.len() - number.len() + digits + 1),
            Some(_) => Self::Other,
            None => Self::Begun,
        }
    }
}

/// A text without the footnote that it ends with.
pub(super) fn without_footnote(text: TextSlice<'_>) -> Option<TextSlice<'_>> {
    let number = text.strip_suffix(']')?.trim_end_matches(|c| c.is_ascii_digit());
    let before = number.strip_suffix('^').unwrap_or(number).strip_suffix('[')?;
    (Footnote::of(text.from(before.len())) == Footnote::Whole(text.len() - before.len())).then_some(before)
}

/// Bytes of a space and a guillemet that closes, as French sets it. Before a word it opens.
fn closing_guillemet(rest: TextSlice<'_>) -> usize {
    let mut chars = rest.chars();
    let (space, mark, next) = (chars.next(), chars.next(), chars.next());
    let closes = space.is_some_and(is_guillemet_space)
        && mark.is_some_and(is_guillemet)
        && next.is_none_or(|c| c.is_whitespace() || matches!(c, ',' | ';' | ':' | ')'));
    if closes { space.into_iter().chain(mark).map(char::len_utf8).sum() } else { 0 }
}

/// Whether a text of two characters at most may be the beginning of a space and a guillemet.
fn begins_guillemet(text: TextSlice<'_>) -> bool {
    let mut chars = text.chars();
    chars.next().is_none_or(is_guillemet_space) && chars.next().is_none_or(is_guillemet)
}

const fn is_guillemet_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}')
}

const fn is_guillemet(c: char) -> bool {
    matches!(c, '»' | '›')
}
