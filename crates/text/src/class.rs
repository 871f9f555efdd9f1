//! What kind of character this is: script classes for the token estimate, CJK for search, hidden characters
//! for everything that is shown to a person.
//!
//! The token estimate (spec: context §4) is a weighted sum of counts by class, and of the places where tokenizers cut
//! first: runs of one class, stretches of white space, capitals within words. Classes need not be exact in the last code point, since the weights are fitted to what a provider reports; they must be cheap and must not
//! change between calls. So they are a table for ASCII and a few ranges for the rest, not script data.

use std::ops::{Add, AddAssign};

/// The seven classes of the token estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Letters of the Latin script, accented and full-width ones included.
    Latin,
    /// Digits and other numerals of any script.
    Digit,
    /// White space, line ends included.
    Space,
    /// Punctuation and symbols that are no emoji, CJK punctuation included.
    Punctuation,
    /// Han, Hiragana, Katakana, Bopomofo and Hangul letters; see [`is_cjk`].
    Cjk,
    /// Letters of every other script, combining marks, controls, private and unassigned characters.
    Other,
    /// Emoji, and what joins and colours them (ZWJ, variation selector 16, keycap, regional indicators).
    Emoji,
}

impl Class {
    /// The class of one character.
    #[must_use]
    pub fn of(c: char) -> Self {
        match ASCII.get(c as usize) {
            Some(class) => *class,
            None => of_wide(c),
        }
    }
}

/// Number of characters (Unicode scalar values) of each class in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ClassCounts {
    /// Characters of [`Class::Latin`].
    pub latin: u64,
    /// Characters of [`Class::Digit`].
    pub digits: u64,
    /// Characters of [`Class::Space`].
    pub spaces: u64,
    /// Characters of [`Class::Punctuation`].
    pub punctuation: u64,
    /// Characters of [`Class::Cjk`].
    pub cjk: u64,
    /// Characters of [`Class::Other`].
    pub other: u64,
    /// Characters of [`Class::Emoji`].
    pub emoji: u64,
    /// Longest stretches of letters, digits or punctuation of one class; neither spaces, CJK nor emoji form any.
    pub runs: u64,
    /// Longest stretches of two or more white space characters: line ends with what indents the next line.
    pub gaps: u64,
    /// Capitals A–Z just behind small letters a–z: words that are written together, and random letters.
    pub humps: u64,
}

impl ClassCounts {
    /// Counts a text. Counts of characters add up: the sum over the pieces of a text, cut at any character
    /// boundaries, is the count of the whole. A cut within a run makes it two, one within a gap makes it two or
    /// none, one before a hump takes it away.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut sums = [0_u64; 8];
        let (mut cjk, mut emoji) = (0, 0);
        let mut recent = BEGINNING;
        let mut rest = text;
        while !rest.is_empty() {
            // A byte of this is one count, full after 255 characters at the earliest.
            let mut lanes = 0_u64;
            let mut ascii = 0;
            for byte in rest.bytes().take(255).take_while(u8::is_ascii) {
                recent = ASCII_KINDS[byte as usize].behind(recent);
                lanes += STEPS[recent];
                ascii += 1;
            }
            rest = &rest[ascii..];
            let mut wide = 0;
            for c in rest.chars().take(255 - ascii).take_while(|c| !c.is_ascii()) {
                let class = of_wide(c);
                cjk += u64::from(class == Class::Cjk);
                emoji += u64::from(class == Class::Emoji);
                recent = Kind::of_wide(class).behind(recent);
                lanes += STEPS[recent];
                wide += c.len_utf8();
            }
            rest = &rest[wide..];
            for (sum, lane) in sums.iter_mut().zip(lanes.to_le_bytes()) {
                *sum += u64::from(lane);
            }
        }
        let [latin, digits, spaces, punctuation, other, runs, gaps, humps] = sums;
        Self { latin, digits, spaces, punctuation, cjk, other, emoji, runs, gaps, humps }
    }

    /// All characters.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.as_array()[..7].iter().sum()
    }

    /// The counts in the order of [`Class`], then runs, gaps and humps, as a regression wants them.
    #[must_use]
    pub fn as_array(&self) -> [u64; 10] {
        let Self { latin, digits, spaces, punctuation, cjk, other, emoji, runs, gaps, humps } = *self;
        [latin, digits, spaces, punctuation, cjk, other, emoji, runs, gaps, humps]
    }
}

/// What a character is for the count: what it does to the counts depends on this, and on the two before it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Digit,
    Space,
    Punctuation,
    Other,
    Capital,
    Small,
    /// Letters of the Latin script outside ASCII.
    Accented,
    /// CJK and emoji, which form no runs and are counted elsewhere; and what stands before a text.
    Apart,
}

/// Two characters of [`Kind::Apart`].
const BEGINNING: usize = 0o77;

impl Kind {
    const ALL: [Self; 8] = [
        Self::Digit,
        Self::Space,
        Self::Punctuation,
        Self::Other,
        Self::Capital,
        Self::Small,
        Self::Accented,
        Self::Apart,
    ];

    const fn of_ascii(byte: u8) -> Self {
        match byte {
            b'A'..=b'Z' => Self::Capital,
            b'a'..=b'z' => Self::Small,
            _ => match ASCII[byte as usize] {
                Class::Digit => Self::Digit,
                Class::Space => Self::Space,
                Class::Punctuation => Self::Punctuation,
                _ => Self::Other,
            },
        }
    }

    const fn of_wide(class: Class) -> Self {
        match class {
            Class::Latin => Self::Accented,
            Class::Digit => Self::Digit,
            Class::Space => Self::Space,
            Class::Punctuation => Self::Punctuation,
            Class::Other => Self::Other,
            Class::Cjk | Class::Emoji => Self::Apart,
        }
    }

    /// This kind and the two before it, as the place of a step: three bits each, the newest lowest.
    const fn behind(self, recent: usize) -> usize {
        (recent << 3 | self as usize) & 0o777
    }

    const fn is_latin(self) -> bool {
        matches!(self, Self::Capital | Self::Small | Self::Accented)
    }

    /// What a character adds to the counts, a byte each: the five classes that are counted here, runs, gaps, humps.
    const fn step(first: Self, before: Self, now: Self) -> u64 {
        let class = match now {
            Self::Capital | Self::Small | Self::Accented => 1,
            Self::Digit => 1 << 8,
            Self::Space => 1 << 16,
            Self::Punctuation => 1 << 24,
            Self::Other => 1 << 32,
            Self::Apart => 0,
        };
        let goes_on = now as u8 == before as u8 || now.is_latin() && before.is_latin();
        let run = !goes_on && !matches!(now, Self::Space | Self::Apart);
        let in_gap = matches!((before, now), (Self::Space, Self::Space));
        let gap = in_gap && !matches!(first, Self::Space);
        let hump = matches!((before, now), (Self::Small, Self::Capital));
        class | (run as u64) << 40 | (gap as u64) << 48 | (hump as u64) << 56
    }
}

const ASCII_KINDS: [Kind; 128] = {
    let mut kinds = [Kind::Other; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        kinds[byte as usize] = Kind::of_ascii(byte);
        byte += 1;
    }
    kinds
};

const STEPS: [u64; 512] = {
    let mut steps = [0; 512];
    let mut at = 0;
    while at < 512 {
        steps[at] = Kind::step(Kind::ALL[at >> 6], Kind::ALL[at >> 3 & 7], Kind::ALL[at & 7]);
        at += 1;
    }
    steps
};

impl AddAssign for ClassCounts {
    fn add_assign(&mut self, more: Self) {
        self.latin += more.latin;
        self.digits += more.digits;
        self.spaces += more.spaces;
        self.punctuation += more.punctuation;
        self.cjk += more.cjk;
        self.other += more.other;
        self.emoji += more.emoji;
        self.runs += more.runs;
        self.gaps += more.gaps;
        self.humps += more.humps;
    }
}

impl Add for ClassCounts {
    type Output = Self;

    fn add(mut self, more: Self) -> Self {
        self += more;
        self
    }
}

impl std::iter::Sum for ClassCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Self::add)
    }
}

/// Whether a character belongs to a script written without spaces between words and searched by bigrams:
/// Han, Hiragana, Katakana, Bopomofo, Hangul. Their punctuation does not.
#[must_use]
pub fn is_cjk(c: char) -> bool {
    // Nothing below the Hangul Jamo qualifies: the common case leaves at once.
    c >= '\u{1100}'
        && matches!(c,
            '\u{1100}'..='\u{11FF}' | '\u{A960}'..='\u{A97F}' | '\u{D7B0}'..='\u{D7FF}' // Hangul Jamo
            | '\u{2E80}'..='\u{2FDF}' // radicals
            | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{3035}' | '\u{3038}'..='\u{303C}'
            | '\u{3041}'..='\u{309F}' | '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' // kana
            | '\u{3105}'..='\u{312F}' | '\u{31A0}'..='\u{31BF}' // Bopomofo
            | '\u{3131}'..='\u{318E}' // Hangul compatibility Jamo
            | '\u{31F0}'..='\u{31FF}'
            | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' // Han
            | '\u{AC00}'..='\u{D7A3}' // Hangul syllables
            | '\u{FF66}'..='\u{FF9F}' | '\u{FFA1}'..='\u{FFDC}' // half-width kana and Jamo
            | '\u{1AFF0}'..='\u{1B16F}' // kana supplements
            | '\u{20000}'..='\u{3FFFD}' // Han extensions
        )
}

/// Whether a character reorders the text around it on display: U+202A–202E, U+2066–2069, U+200E, U+200F, U+061C
/// (spec: security §26).
#[must_use]
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character takes no room on display, so that text may hide in it or behind it: zero-width and
/// bidi characters, fillers, soft hyphen, tag characters, variation selectors.
///
/// Many have honest uses (ZWJ in emoji, ZWNJ in Persian), so text is not cleared of them; they are written out
/// where a person decides by what is shown, and ignored where words are compared.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF9}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

const ASCII: [Class; 128] = {
    let mut table = [Class::Punctuation; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'A'..=b'Z' | b'a'..=b'z' => Class::Latin,
            b'0'..=b'9' => Class::Digit,
            b'\t'..=b'\r' | b' ' => Class::Space,
            0..=31 | 127 => Class::Other,
            _ => Class::Punctuation,
        };
        byte += 1;
    }
    table
};

fn of_wide(c: char) -> Class {
    if is_cjk(c) {
        Class::Cjk
    } else if is_emoji(c) {
        Class::Emoji
    } else if is_wide_latin(c) {
        Class::Latin
    } else if c.is_whitespace() {
        Class::Space
    } else if c.is_numeric() {
        Class::Digit
    } else if is_wide_punctuation(c) {
        Class::Punctuation
    } else {
        Class::Other
    }
}

fn is_wide_latin(c: char) -> bool {
    matches!(c,
        '\u{AA}' | '\u{BA}' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2AF}'
        | '\u{1D00}'..='\u{1DBF}' | '\u{1E00}'..='\u{1EFF}' | '\u{2C60}'..='\u{2C7F}'
        | '\u{A722}'..='\u{A7FF}' | '\u{AB30}'..='\u{AB64}' | '\u{FB00}'..='\u{FB06}'
        | '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}')
}

fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{200D}' | '\u{20E3}' | '\u{FE0F}' | '\u{231A}' | '\u{231B}' | '\u{23E9}'..='\u{23FA}'
        | '\u{25FD}' | '\u{25FE}' | '\u{2600}'..='\u{27BF}' | '\u{2B1B}' | '\u{2B1C}' | '\u{2B50}' | '\u{2B55}'
        | '\u{1F000}'..='\u{1F0FF}' | '\u{1F18E}' | '\u{1F191}'..='\u{1F19A}' | '\u{1F1E6}'..='\u{1F1FF}'
        | '\u{1F200}'..='\u{1F265}' | '\u{1F300}'..='\u{1FAFF}')
}

fn is_wide_punctuation(c: char) -> bool {
    matches!(c,
        '\u{A1}'..='\u{A9}' | '\u{AB}' | '\u{AC}' | '\u{AE}'..='\u{B1}' | '\u{B4}' | '\u{B6}'..='\u{B8}'
        | '\u{BB}' | '\u{BF}' | '\u{D7}' | '\u{F7}' | '\u{37E}' | '\u{387}' | '\u{589}' | '\u{5BE}' | '\u{60C}'
        | '\u{61B}' | '\u{61F}' | '\u{6D4}' | '\u{964}' | '\u{965}' | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{205E}' | '\u{20A0}'..='\u{20CF}' | '\u{2100}'..='\u{23FF}' | '\u{2500}'..='\u{25FF}'
        | '\u{27C0}'..='\u{2BFF}' | '\u{2E00}'..='\u{2E7F}' | '\u{3001}'..='\u{3004}' | '\u{3008}'..='\u{3020}'
        | '\u{3030}' | '\u{303D}'..='\u{303F}' | '\u{30A0}' | '\u{30FB}' | '\u{FE10}'..='\u{FE1F}'
        | '\u{FE30}'..='\u{FE6F}' | '\u{FF01}'..='\u{FF65}' | '\u{FFE0}'..='\u{FFEE}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_met() {
        let counts = ClassCounts::of("Ab é12 \n.,。漢かカ한Яअ\u{301}🎉👩\u{200D}💻");
        let expected = ClassCounts {
            latin: 3,
            digits: 2,
            spaces: 3,
            punctuation: 3,
            cjk: 4,
            other: 3,
            emoji: 4,
            runs: 5,
            gaps: 1,
            humps: 0,
        };
        assert_eq!(counts, expected);
        assert_eq!(counts.total(), 22);
    }

    #[test]
    fn full_width_forms_go_with_their_narrow_kin() {
        assert_eq!(Class::of('Ａ'), Class::Latin);
        assert_eq!(Class::of('７'), Class::Digit);
        assert_eq!(Class::of('！'), Class::Punctuation);
        assert_eq!(Class::of('\u{3000}'), Class::Space);
        assert_eq!(Class::of('ﾊ'), Class::Cjk);
    }

    #[test]
    fn indents_and_capitals_within_words_are_met() {
        let counts = ClassCounts::of("  {\n    \"camelCase\": \"aGVsbG8\"\n} é\u{3000}\u{3000}X");
        // The beginning, the line end with its indent, the wide spaces; `lC`, `aG`, `sb` is none, `bG`.
        assert_eq!((counts.gaps, counts.humps), (3, 3));
        assert_eq!(ClassCounts::of("one two\nthree éA").gaps, 0);
    }

    #[test]
    fn long_texts_are_counted_as_by_hand() {
        for text in [
            "a b1 ".repeat(300),
            "x".repeat(1_000),
            "é漢 ".repeat(400),
            "ab漢".repeat(256) + &"1".repeat(600),
        ] {
            let of = |wanted: Class| text.chars().filter(|c| Class::of(*c) == wanted).count() as u64;
            let counts = ClassCounts::of(&text);
            let shown = [counts.latin, counts.digits, counts.spaces, counts.cjk];
            assert_eq!(shown, [Class::Latin, Class::Digit, Class::Space, Class::Cjk].map(of));
            let forms_runs = |c| !matches!(Class::of(c), Class::Space | Class::Cjk | Class::Emoji);
            let begins = |(before, c): (char, char)| Class::of(before) != Class::of(c) && forms_runs(c);
            let pairs = std::iter::once(' ').chain(text.chars()).zip(text.chars());
            assert_eq!(counts.runs, pairs.filter(|pair| begins(*pair)).count() as u64);
        }
    }

    #[test]
    fn counts_add_over_any_cut() {
        let text = "one 二つ  threeFour\u{FE0F} 4\n    5";
        let whole = ClassCounts::of(text);
        for (at, _) in text.char_indices() {
            let sum = ClassCounts::of(&text[..at]) + ClassCounts::of(&text[at..]);
            assert_eq!(ClassCounts { runs: whole.runs, gaps: whole.gaps, humps: whole.humps, ..sum }, whole);
            assert!((whole.runs..=whole.runs + 1).contains(&sum.runs));
            assert!(sum.gaps.abs_diff(whole.gaps) <= 1 && whole.humps - sum.humps <= 1);
        }
    }

    #[test]
    fn cjk_is_letters_only() {
        assert!("漢字ひらがなカタカナー한국어㐀𠀀々〇ㄅ".chars().all(is_cjk));
        assert!("。、「」！・ aé1Яα🎉".chars().all(|c| !is_cjk(c)));
    }
}
