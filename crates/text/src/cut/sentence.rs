//! Sentences, by their punctuation.

use super::mark_scan::{MarkRun, MarkScan};
use super::text_slice::TextSlice;

/// Byte offsets just behind a sentence: after its end marks, any closing quotes, brackets and emphasis, and the number of
/// a footnote, before the white space that follows.
///
/// `。`, `！` and their kin end a sentence wherever they stand. `.`, `!`, `?` and their kin do so before white
/// space or the end of the text, unless a lower-case letter follows ("e.g. this"), a single capital stands
/// before the full stop ("J. Doe"), or another full stop stands apart behind it ("Well . . ."). `;` ends a question behind
/// a Greek letter. A break of paragraph is no sentence end; see
/// [`paragraph_starts`](super::paragraph_starts).
pub fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    SentenceEnds { text: TextSlice::new(text), scan: MarkScan::default() }
}

/// Byte offsets at which a sentence begins behind another: the first character after each of [`sentence_ends`]
/// that is no white space. Where only white space follows there is none.
pub fn sentence_starts(text: &str) -> impl Iterator<Item = usize> {
    let text = TextSlice::new(text);
    let ends = SentenceEnds { text, scan: MarkScan::default() };
    ends.filter_map(move |end| {
        let start = text.len() - text.from(end).trim_start().len();
        // White space that a combining mark turns into part of a cluster is no place to begin.
        (start < text.len() && text.is_boundary(start)).then_some(start)
    })
}

struct SentenceEnds<'a> {
    text: TextSlice<'a>,
    scan: MarkScan,
}

impl Iterator for SentenceEnds<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let run = self.scan.next(self.text).or_else(|| self.scan.last(self.text))?;
            if ends_at(self.text, run) {
                return Some(run.end);
            }
        }
    }
}

/// Whether a sentence ends behind these marks of a text.
pub(super) fn ends_at(text: TextSlice<'_>, run: MarkRun) -> bool {
    if run.is_unspaced {
        return text.is_boundary(run.end);
    }
    ends_before(text.from(run.end)) && !is_initial(text.to(run.mark), text.to(run.end).from(run.mark))
}

/// Whether it opens or closes emphasis or code in Markdown, where it stands at a word.
pub(super) const fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '~')
}

/// Whether what follows marks that need a space lets them end a sentence.
fn ends_before(rest: TextSlice<'_>) -> bool {
    let after = rest.trim_start();
    after.is_empty() || (after.len() < rest.len() && !after.first().is_some_and(is_small) && !is_apart(after))
}

/// Whether it goes on a sentence. Georgian has one case, which counts as the lower one.
fn is_small(c: char) -> bool {
    c.is_lowercase() && !matches!(c, '\u{10D0}'..='\u{10FF}')
}

/// Whether a text begins with a full stop that stands by itself.
fn is_apart(text: TextSlice<'_>) -> bool {
    text.strip_prefix('.').is_some_and(|behind| behind.first().is_none_or(char::is_whitespace))
}

/// Whether `marks` is the full stop of an initial: one capital letter, with no letter or digit before it.
fn is_initial(before: TextSlice<'_>, marks: TextSlice<'_>) -> bool {
    let mut backwards = before.trim_end_matches(is_emphasis).chars().rev();
    marks.trim_end_matches(is_emphasis).as_str() == "."
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

pub(super) fn is_unspaced_mark(c: char) -> bool {
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
pub(super) fn opens_elsewhere(c: char) -> bool {
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
