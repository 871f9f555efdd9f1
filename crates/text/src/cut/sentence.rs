//! Sentences, by their punctuation.

use crate::grapheme;

/// Byte offsets just behind a sentence: after its end marks, any closing quotes, brackets and emphasis, and the number of
/// a footnote, before the white space that follows.
///
/// `。`, `！` and their kin end a sentence wherever they stand. `.`, `!`, `?` and their kin do so before white
/// space or the end of the text, unless a lower-case letter follows ("e.g. this"), a single capital stands
/// before the full stop ("J. Doe"), or another full stop stands apart behind it ("Well . . ."). `;` ends a question behind
/// a Greek letter. A break of paragraph is no sentence end; see
/// [`paragraph_starts`](super::paragraph_starts).
pub fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    SentenceEnds { text, at: 0 }
}

/// Byte offsets at which a sentence begins behind another: the first character after each of [`sentence_ends`]
/// that is no white space. Where only white space follows there is none.
pub fn sentence_starts(text: &str) -> impl Iterator<Item = usize> {
    sentence_ends(text).filter_map(|end| {
        let rest = &text[end..];
        let start = end + (rest.len() - rest.trim_start().len());
        // White space that a combining mark turns into part of a cluster is no place to begin.
        (start < text.len() && grapheme::floor(text, start) == start).then_some(start)
    })
}

struct SentenceEnds<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for SentenceEnds<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let mark = next_mark(self.text, self.at)?;
            let (end, unspaced) = behind_marks(self.text, mark);
            self.at = end;
            let ends = if unspaced {
                grapheme::floor(self.text, end) == end
            } else {
                ends_before(&self.text[end..]) && !is_initial(&self.text[..mark], &self.text[mark..end])
            };
            if ends {
                return Some(end);
            }
        }
    }
}

/// The offset of the first end mark at or behind `from`.
pub(super) fn next_mark(text: &str, from: usize) -> Option<usize> {
    let marks = text[from..].match_indices(|c| is_end_mark(c) || c == ';');
    let mut places = marks.map(|(at, mark)| (from + at, mark));
    places.find(|(at, mark)| *mark != ";" || is_greek(&text[..*at])).map(|(at, _)| at)
}

/// Whether the last letter of a text is Greek, but for closing quotes behind it.
fn is_greek(text: &str) -> bool {
    let last = text.trim_end_matches(is_closer).chars().next_back();
    last.is_some_and(|c| c.is_alphabetic() && matches!(c, '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}'))
}

/// End marks and closers in a row, as far as they were looked at.
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
    pub(super) const fn at(mark: usize) -> Self {
        Self { mark, end: mark, is_unspaced: false }
    }

    /// Goes on to the first character that does not belong to it, or to the end of the text.
    pub(super) fn extend(&mut self, text: &str) {
        let is_question = text[self.mark..].starts_with(';');
        let rest = &text[self.end..];
        let length = rest.find(|c| {
            self.is_unspaced |= is_unspaced_mark(c);
            // Behind a mark that needs no space the next sentence may begin with such a quote: `他走了。“你好。”`
            let closes = is_closer(c) && !(self.is_unspaced && opens_elsewhere(c))
                || is_emphasis(c) && !self.is_unspaced;
            // The Greek question mark may be the first.
            !(is_end_mark(c) || closes || c == ';' && is_question)
        });
        self.end += length.unwrap_or(rest.len());
    }
}

/// The offset behind the end marks and closers that begin at `mark`, and whether one of them needs no space.
fn behind_marks(text: &str, mark: usize) -> (usize, bool) {
    let mut run = MarkRun::at(mark);
    run.extend(text);
    // Behind a mark that needs no space what a bracket holds is not waited for.
    let end = if run.is_unspaced { run.end } else { run.end + footnotes(&text[run.end..]) };
    (end + closing_guillemet(&text[end..]), run.is_unspaced)
}

/// Characters of the number of a footnote at most.
const LONGEST_FOOTNOTE: usize = 6;

/// What stands at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Footnote {
    /// The number of a footnote of so many bytes, `[1]` or `[^1]`.
    Whole(usize),
    /// What more of the text may make one.
    Begun,
    Other,
}

impl Footnote {
    pub(super) fn of(text: &str) -> Self {
        let Some(inner) = text.strip_prefix('[') else {
            return if text.is_empty() { Self::Begun } else { Self::Other };
        };
        let number = inner.strip_prefix('^').unwrap_or(inner);
        let digits = number.bytes().take(LONGEST_FOOTNOTE + 1).take_while(u8::is_ascii_digit).count();
        match number[digits..].chars().next() {
            _ if digits > LONGEST_FOOTNOTE => Self::Other,
            Some(']') if digits > 0 => Self::Whole(text.len() - number.len() + digits + 1),
            Some(_) => Self::Other,
            None => Self::Begun,
        }
    }
}

/// Bytes of the numbers of footnotes.
fn footnotes(text: &str) -> usize {
    let mut end = 0;
    while let Footnote::Whole(bytes) = Footnote::of(&text[end..]) {
        end += bytes;
    }
    end
}

/// A text without the footnote that it ends with.
pub(super) fn without_footnote(text: &str) -> Option<&str> {
    let number = text.strip_suffix(']')?.trim_end_matches(|c: char| c.is_ascii_digit());
    let before = number.strip_suffix('^').unwrap_or(number).strip_suffix('[')?;
    (footnotes(&text[before.len()..]) == text.len() - before.len()).then_some(before)
}

/// Whether it opens or closes emphasis or code in Markdown, where it stands at a word.
pub(super) const fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '~')
}

/// Bytes of a space and a guillemet that closes, as French sets it. Before a word it opens.
pub(super) fn closing_guillemet(rest: &str) -> usize {
    let mut chars = rest.chars();
    let (space, mark, next) = (chars.next(), chars.next(), chars.next());
    let closes = space.is_some_and(|c| matches!(c, ' ' | '\u{a0}' | '\u{202f}'))
        && mark.is_some_and(|c| matches!(c, '»' | '›'))
        && next.is_none_or(|c| c.is_whitespace() || matches!(c, ',' | ';' | ':' | ')'));
    if closes { space.into_iter().chain(mark).map(char::len_utf8).sum() } else { 0 }
}

/// Whether what follows marks that need a space lets them end a sentence.
pub(super) fn ends_before(rest: &str) -> bool {
    let after = rest.trim_start();
    after.is_empty() || (after.len() < rest.len() && !after.starts_with(is_small) && !is_apart(after))
}

/// Whether it goes on a sentence. Georgian has one case, which counts as the lower one.
fn is_small(c: char) -> bool {
    c.is_lowercase() && !matches!(c, '\u{10D0}'..='\u{10FF}')
}

/// Whether a text begins with a full stop that stands by itself.
fn is_apart(text: &str) -> bool {
    text.strip_prefix('.').is_some_and(|behind| behind.chars().next().is_none_or(char::is_whitespace))
}

/// Whether `marks` is the full stop of an initial: one capital letter, with no letter or digit before it.
pub(super) fn is_initial(before: &str, marks: &str) -> bool {
    let mut backwards = before.trim_end_matches(is_emphasis).chars().rev();
    marks.trim_end_matches(is_emphasis) == "."
        && backwards.next().is_some_and(char::is_uppercase)
        && backwards.next().is_none_or(|c| !c.is_alphanumeric())
}

pub(super) fn is_end_mark(c: char) -> bool {
    is_spaced_mark(c) || is_unspaced_mark(c)
}

fn is_spaced_mark(c: char) -> bool {
    // Those of scripts with marks of their own: Armenian to Devanagari, Tibetan, Burmese, Ethiopic, Khmer, Mongolian.
    matches!(
        c,
        '.' | '!' | '?' | '…' | '‽' | '‼' | '⁇'
            ..='⁉'
                | '\u{37E}'
                | '։'
                | '؟'
                | '۔'
                | '।'
                | '॥'
                | '།'
                | '༎'
                | '။'
                | '።'
                | '፧'
                | '។'
                | '៕'
                | '᠃'
    )
}

fn is_unspaced_mark(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '．' | '｡')
}

pub(super) fn is_closer(c: char) -> bool {
    matches!(
        c,
        ')' | ']'
            | '}'
            | '"'
            | '\''
            | '”'
            | '’'
            | '»'
            | '›'
            | '」'
            | '』'
            | '）'
            | '】'
            | '〉'
            | '》'
            | '］'
            | '｝'
            | '〕'
            | '｣'
    ) || opens_elsewhere(c)
}

/// Whether a quote that closes in German, which has guillemets that point inwards too, opens in other languages.
fn opens_elsewhere(c: char) -> bool {
    matches!(c, '“' | '‘' | '«' | '‹')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let mut from = 0;
        let mut found = Vec::new();
        for end in sentence_ends(text) {
            found.push(text[from..end].trim_start());
            from = end;
        }
        found
    }

    #[test]
    fn marks_before_a_space_end_a_sentence() {
        assert_eq!(
            sentences("One. Two! “Three?” (Four.) Five… still five"),
            ["One.", "Two!", "“Three?”", "(Four.)"]
        );
    }

    #[test]
    fn numbers_names_initials_and_abbreviations_do_not() {
        assert_eq!(
            sentences("Pi is 3.14, see J. Doe at a.example, e.g. here. \"What?\" she said."),
            ["Pi is 3.14, see J. Doe at a.example, e.g. here.", "\"What?\" she said."]
        );
    }

    #[test]
    fn each_script_has_its_marks() {
        for (text, first) in [
            ("ის მოვიდა. ის წავიდა.", "ის მოვიდა."),
            ("သူလာသည်။ သူသွား", "သူလာသည်။"),
            ("គាត់មក។ គាត់ទៅ", "គាត់មក។"),
            ("ཁོང་ཡོང་། ཁོང་འགྲོ", "ཁོང་ཡོང་།"),
            ("ᠢᠷᠡᠪᠡ᠃ ᠶᠠᠪᠤ", "ᠢᠷᠡᠪᠡ᠃"),
            ("መጣ፧ ሄደ", "መጣ፧"),
            ("Έρχεσαι; Ναι.", "Έρχεσαι;"),
            ("«Έρχεσαι;» Ναι.", "«Έρχεσαι;»"),
        ] {
            assert_eq!(sentences(text).first(), Some(&first), "{text}");
        }
        assert_eq!(sentences("Come; Now. Go."), ["Come; Now.", "Go."], "control");
    }

    #[test]
    fn emphasis_and_footnotes_close_behind_an_end() {
        for text in
            ["**It ended.**", "*It ended!*", "_“It ended.”_", "`It ended.`", "It ended.[1]", "Yes.[^2][3]"]
        {
            assert_eq!(sentences(&format!("{text} Then he left.")), [text, "Then he left."]);
        }
        assert_eq!(
            sentences("See x.[a] There. **J.** Doe. **J**. Doe."),
            ["See x.[a] There.", "**J.** Doe.", "**J**. Doe."]
        );
    }

    #[test]
    fn full_stops_apart_are_one_ellipsis() {
        assert_eq!(sentences("Well . . . yes. Then . . . No."), ["Well . . . yes.", "Then . . .", "No."]);
        assert_eq!(sentences("He left. .NET stayed. ...And"), ["He left.", ".NET stayed."]);
    }

    #[test]
    fn cjk_marks_need_no_space() {
        assert_eq!(
            sentences("吾輩は猫である。「名前は？」まだ無い！続"),
            ["吾輩は猫である。", "「名前は？」", "まだ無い！"]
        );
        assert_eq!(sentences("他走了。“你好。”再见！‘好’"), ["他走了。", "“你好。”", "再见！"]);
    }

    #[test]
    fn quotes_close_as_each_language_has_them() {
        assert_eq!(
            sentences("„Halt.“ Dann. ‚Ja!‘ »Nein?« « Oui. » Puis. «\u{a0}Si.\u{202f}» Fin. »Er"),
            ["„Halt.“", "Dann.", "‚Ja!‘", "»Nein?«", "« Oui. »", "Puis.", "«\u{a0}Si.\u{202f}»", "Fin."]
        );
    }

    #[test]
    fn a_mark_with_a_variation_selector_stays_whole() {
        assert_eq!(sentence_ends("好。\u{FE00}的").count(), 0);
    }

    #[test]
    fn starts_skip_the_space_between() {
        let text = "One.  Two. ";
        assert_eq!(sentence_starts(text).collect::<Vec<_>>(), [6]);
    }
}
