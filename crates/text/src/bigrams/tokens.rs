//! From text to tokens.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::class::{is_cjk, is_invisible};
use crate::fold::case_folded;

/// The tokens of a text, in order.
#[must_use]
pub fn tokenize(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for_each_token(text, |token| tokens.push(token.to_owned()));
    tokens
}

/// Calls `each` with every token of a text, in order.
pub fn for_each_token(text: &str, mut each: impl FnMut(&str)) {
    for_each_run(text, |run| run.index(&mut each));
}

/// The words of a text as tokens have them, in order; each character of Chinese, Japanese or Korean is one of its own. A
/// phrase stands in a text where its words follow each other there.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_run(text, |run| match run {
        Run::Word(word) => words.push(word.to_owned()),
        Run::Cjk(run) => words.extend(run.chars().map(String::from)),
    });
    words
}

/// The text to give to FTS5 (with [`FTS5_TOKENIZER`](super::FTS5_TOKENIZER)): ASCII as it is, since both
/// tokenisers agree there; of other text the tokens, separated by blanks.
///
/// Offsets and snippets of the index do not fit the original text; take them from the original.
#[must_use]
pub fn index_text(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    for_each_token(text, |token| {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(token);
    });
    Cow::Owned(out)
}

/// What stands between two separators, or between CJK and other letters; folded.
pub(super) enum Run<'a> {
    Word(&'a str),
    Cjk(&'a str),
}

impl Run<'_> {
    /// The tokens of an indexed text.
    pub(super) fn index(&self, token: &mut impl FnMut(&str)) {
        match self {
            Self::Word(word) => token(word),
            Self::Cjk(run) => {
                bigrams(run, token);
                let last = run.char_indices().next_back().map_or(0, |(at, _)| at);
                token(&run[last..]);
            }
        }
    }
}

/// Every two neighbouring characters.
fn bigrams(run: &str, token: &mut impl FnMut(&str)) {
    let ends = run.char_indices().map(|(at, c)| at + c.len_utf8()).skip(1);
    for ((start, _), end) in run.char_indices().zip(ends) {
        token(&run[start..end]);
    }
}

/// Calls `each` for every run of the text. Works in pieces between ASCII separators: most pieces are ASCII words
/// and take no normalisation.
pub(super) fn for_each_run(text: &str, mut each: impl FnMut(Run<'_>)) {
    let mut folded = String::new();
    for piece in text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()) {
        folded.clear();
        if piece.is_ascii() {
            if !piece.is_empty() {
                folded.push_str(piece);
                folded.make_ascii_lowercase();
                each(Run::Word(&folded));
            }
        } else {
            let bare = piece.chars().filter(|c| !is_dropped(*c));
            // Decomposed to take the diacritics off, composed again for Hangul and voiced kana.
            folded.extend(bare.nfkd().filter(|c| !is_dropped(*c)).nfc().flat_map(case_folded));
            split_runs(&folded, &mut each);
        }
    }
}

fn split_runs(folded: &str, each: &mut impl FnMut(Run<'_>)) {
    let mut start = 0;
    let mut kind = Kind::Separator;
    for (at, c) in folded.char_indices() {
        let next = Kind::of(c, kind);
        if next != kind {
            kind.emit(&folded[start..at], each);
            (start, kind) = (at, next);
        }
    }
    kind.emit(&folded[start..], each);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Separator,
    Word,
    Cjk,
}

impl Kind {
    fn of(c: char, before: Self) -> Self {
        if is_cjk(c) && is_word(c) {
            Self::Cjk
        } else if is_combining_mark(c) && before == Self::Cjk {
            // A mark left uncomposed belongs to the letter before it.
            Self::Cjk
        } else if is_word(c) {
            Self::Word
        } else {
            Self::Separator
        }
    }

    fn emit(self, run: &str, each: &mut impl FnMut(Run<'_>)) {
        match self {
            Self::Separator => {}
            Self::Word => each(Run::Word(run)),
            Self::Cjk => each(Run::Cjk(run)),
        }
    }
}

/// The characters of `L*`, `M*`, `N*` and `Co`. What the standard library calls alphabetic has circled letters
/// (`So`) besides, but those are decomposed before; the squared and negative ones that are not are excluded.
fn is_word(c: char) -> bool {
    match c {
        '\u{24B6}'..='\u{24E9}' | '\u{1F130}'..='\u{1F189}' => false,
        '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}' | '\u{100000}'..='\u{10FFFD}' => true,
        _ => c.is_alphanumeric() || is_combining_mark(c),
    }
}

/// What makes no difference to a search: diacritics, Hebrew points, Arabic vowel signs, and invisible characters
/// but the zero-width space and the line and paragraph separators, which separate.
fn is_dropped(c: char) -> bool {
    c >= '\u{AD}'
        && (matches!(c,
            '\u{300}'..='\u{36F}' | '\u{591}'..='\u{5BD}' | '\u{5BF}' | '\u{5C1}' | '\u{5C2}' | '\u{5C4}' | '\u{5C5}'
            | '\u{5C7}' | '\u{610}'..='\u{61A}' | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6DC}'
            | '\u{6DF}'..='\u{6E4}' | '\u{6E7}' | '\u{6E8}' | '\u{6EA}'..='\u{6ED}'
            | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
            || (is_invisible(c) && !matches!(c, '\u{200B}' | '\u{2028}' | '\u{2029}')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_the_table_says() {
        assert_eq!(tokenize("Don't re-read"), ["don", "t", "re", "read"]);
        assert_eq!(tokenize("Čapek, STRASSE, Straße"), ["capek", "strasse", "strasse"]);
        assert_eq!(tokenize("漢字検索"), ["漢字", "字検", "検索", "索"]);
        assert_eq!(tokenize("GPT模型"), ["gpt", "模型", "型"]);
        assert_eq!(tokenize("字、a。"), ["字", "a"]);
    }

    #[test]
    fn spellings_of_one_word_are_one_token() {
        for (a, b) in [
            ("café", "CAFE\u{301}"),
            ("ＡＢＣ１", "abc1"),
            ("ﬁne", "fine"),
            ("soft\u{AD}ware", "software"),
            ("μάθημα", "ΜΑΘΗΜΑ"),
            ("שָׁלוֹם", "שלום"),
            ("ﾊﾞｽ停", "バス停"),
            ("か\u{3099}く", "がく"),
            ("한글", "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}"),
        ] {
            assert_eq!(tokenize(a), tokenize(b), "{a} {b}");
        }
    }

    #[test]
    fn indic_words_stay_whole() {
        assert_eq!(tokenize("हिन्दी भाषा"), ["हिन्दी", "भाषा"]);
    }

    #[test]
    fn ascii_is_indexed_as_it_is() {
        assert!(matches!(index_text("Plain, old text"), Cow::Borrowed("Plain, old text")));
        assert_eq!(index_text("Naïve 漢字!"), "naive 漢字 字");
    }

    #[test]
    fn a_token_is_one_token() {
        for c in '\0'..=char::MAX {
            for token in tokenize(&c.to_string()).iter().filter(|token| !token.contains(is_cjk)) {
                assert_eq!(&tokenize(token), std::slice::from_ref(token), "{c:?}");
            }
        }
    }
}
