//! Sentences, by their punctuation.

use crate::grapheme;

/// Byte offsets just behind a sentence: after its end marks and any closing quotes and brackets, before the white
/// space that follows.
///
/// `。`, `！` and their kin end a sentence wherever they stand. `.`, `!`, `?` and their kin do so before white
/// space or the end of the text, unless a lower-case letter follows ("e.g. this"), or a single capital stands
/// before the full stop ("J. Doe"). A break of paragraph is no sentence end; see
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
            let mark = self.at + self.text[self.at..].find(|c| is_spaced_mark(c) || is_unspaced_mark(c))?;
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

/// The offset behind the end marks and closers that begin at `mark`, and whether one of them needs no space.
fn behind_marks(text: &str, mark: usize) -> (usize, bool) {
    let run = &text[mark..];
    let mut unspaced = false;
    let length = run.find(|c| {
        unspaced |= is_unspaced_mark(c);
        // Behind a mark that needs no space the next sentence may begin with such a quote: `他走了。“你好。”`
        !(is_end_mark(c) || is_closer(c) && !(unspaced && opens_elsewhere(c)))
    });
    let end = mark + length.unwrap_or(run.len());
    (end + closing_guillemet(&text[end..]), unspaced)
}

/// Bytes of a space and a guillemet that closes, as French sets it. Before a word it opens.
fn closing_guillemet(rest: &str) -> usize {
    let mut chars = rest.chars();
    let (space, mark, next) = (chars.next(), chars.next(), chars.next());
    let closes = space.is_some_and(|c| matches!(c, ' ' | '\u{a0}' | '\u{202f}'))
        && mark.is_some_and(|c| matches!(c, '»' | '›'))
        && next.is_none_or(|c| c.is_whitespace() || matches!(c, ',' | ';' | ':' | ')'));
    if closes { space.into_iter().chain(mark).map(char::len_utf8).sum() } else { 0 }
}

/// Whether what follows marks that need a space lets them end a sentence.
fn ends_before(rest: &str) -> bool {
    let after = rest.trim_start();
    after.is_empty() || (after.len() < rest.len() && !after.starts_with(char::is_lowercase))
}

/// Whether `marks` is the full stop of an initial: one capital letter, with no letter or digit before it.
fn is_initial(before: &str, marks: &str) -> bool {
    let mut backwards = before.chars().rev();
    marks == "."
        && backwards.next().is_some_and(char::is_uppercase)
        && backwards.next().is_none_or(|c| !c.is_alphanumeric())
}

pub(super) fn is_end_mark(c: char) -> bool {
    is_spaced_mark(c) || is_unspaced_mark(c)
}

fn is_spaced_mark(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '‽' | '‼' | '⁇'..='⁉' | '։' | '؟' | '۔' | '।' | '॥' | '።')
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
