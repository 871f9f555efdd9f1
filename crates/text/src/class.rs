//! What kind of character this is: script classes for the token estimate, CJK for search, hidden characters
//! for everything that is shown to a person.
//!
//! The token estimate (spec: context §4) is a weighted sum of counts by class, and of the places where tokenizers cut
//! first: runs of one class, stretches of white space, capitals within words. Classes need not be exact in the last code
//! point, since the weights are fitted to what a provider reports; they must be cheap and must not change between
//! calls. So they are a table for ASCII and a few ranges for the rest, not script data.

use std::ops::{Add, AddAssign};

pub use crate::script::Script;

/// The classes of the token estimate.
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
    /// Letters and marks of another script, and emoji.
    Of(Script),
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
    /// Characters of [`Class::Latin`] that are outside ASCII.
    pub accented: u64,
    /// Characters of [`Class::Digit`].
    pub digits: u64,
    /// Characters of [`Class::Space`].
    pub spaces: u64,
    /// Characters of [`Class::Punctuation`].
    pub punctuation: u64,
    /// Characters of each [`Script`], in their order.
    pub scripts: [u64; Script::ALL.len()],
    /// Longest stretches of Latin letters, digits or punctuation.
    pub runs: u64,
    /// Longest stretches of white space other than one space: line ends with what indents the next line.
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
        let mut scripts = [0_u64; Script::ALL.len()];
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
                if let Class::Of(script) = class {
                    scripts[script as usize] += 1;
                }
                recent = Kind::of_wide(class).behind(recent);
                lanes += STEPS[recent];
                wide += c.len_utf8();
            }
            rest = &rest[wide..];
            for (sum, lane) in sums.iter_mut().zip(lanes.to_le_bytes()) {
                *sum += u64::from(lane);
            }
        }
        let [latin, digits, spaces, punctuation, accented, runs, gaps, humps] = sums;
        Self { latin, accented, digits, spaces, punctuation, scripts, runs, gaps, humps }
    }

    /// Characters of a script.
    #[must_use]
    pub fn script(&self, script: Script) -> u64 {
        self.scripts[script as usize]
    }

    /// Characters of other scripts than Latin.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        self.scripts.iter().sum()
    }

    /// All characters.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.latin + self.digits + self.spaces + self.punctuation + self.foreign()
    }
}

/// What a character is for the count: what it does to the counts depends on this, and on the two before it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Digit,
    Space,
    /// White space that is a token even by itself: line ends and tabs.
    Line,
    Punctuation,
    Capital,
    Small,
    /// Letters of the Latin script outside ASCII.
    Accented,
    /// Other scripts, which form no runs and are counted elsewhere; and what stands before a text.
    Apart,
}

/// Two characters of [`Kind::Apart`].
const BEGINNING: usize = 0o77;

impl Kind {
    const ALL: [Self; 8] = [
        Self::Digit,
        Self::Space,
        Self::Line,
        Self::Punctuation,
        Self::Capital,
        Self::Small,
        Self::Accented,
        Self::Apart,
    ];

    const fn of_ascii(byte: u8) -> Self {
        match byte {
            b'A'..=b'Z' => Self::Capital,
            b'a'..=b'z' => Self::Small,
            b'\t'..=b'\r' => Self::Line,
            _ => match ASCII[byte as usize] {
                Class::Digit => Self::Digit,
                Class::Space => Self::Space,
                _ => Self::Punctuation,
            },
        }
    }

    const fn of_wide(class: Class) -> Self {
        match class {
            Class::Latin => Self::Accented,
            Class::Digit => Self::Digit,
            Class::Space => Self::Space,
            Class::Punctuation => Self::Punctuation,
            Class::Of(_) => Self::Apart,
        }
    }

    /// This kind and the two before it, as the place of a step: three bits each, the newest lowest.
    const fn behind(self, recent: usize) -> usize {
        (recent << 3 | self as usize) & 0o777
    }

    const fn is_latin(self) -> bool {
        matches!(self, Self::Capital | Self::Small | Self::Accented)
    }

    const fn is_white(self) -> bool {
        matches!(self, Self::Space | Self::Line)
    }

    /// What a character adds to the counts, a byte each: the four classes that are counted here, accented letters,
    /// runs, gaps, humps.
    const fn step(first: Self, before: Self, now: Self) -> u64 {
        let class = match now {
            Self::Capital | Self::Small => 1,
            Self::Accented => 1 | 1 << 32,
            Self::Digit => 1 << 8,
            Self::Space | Self::Line => 1 << 16,
            Self::Punctuation => 1 << 24,
            Self::Apart => 0,
        };
        let goes_on = now as u8 == before as u8 || now.is_latin() && before.is_latin();
        let run = !goes_on && !now.is_white() && !matches!(now, Self::Apart);
        let first_line = matches!(now, Self::Line)
            && (!before.is_white() || matches!(before, Self::Space) && !first.is_white());
        let second_space = matches!((before, now), (Self::Space, Self::Space)) && !first.is_white();
        let gap = first_line || second_space;
        let hump = matches!((before, now), (Self::Small, Self::Capital));
        class | (run as u64) << 40 | (gap as u64) << 48 | (hump as u64) << 56
    }
}

const ASCII_KINDS: [Kind; 128] = {
    let mut kinds = [Kind::Punctuation; 128];
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
        self.accented += more.accented;
        self.digits += more.digits;
        self.spaces += more.spaces;
        self.punctuation += more.punctuation;
        for (sum, count) in self.scripts.iter_mut().zip(more.scripts) {
            *sum += count;
        }
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
            _ => Class::Punctuation,
        };
        byte += 1;
    }
    table
};

fn of_wide(c: char) -> Class {
    // The letters of the commonest scripts leave at once.
    match c {
        '\u{400}'..='\u{481}' => return Class::Of(Script::Cyrillic),
        '\u{391}'..='\u{3CE}' => return Class::Of(Script::Greek),
        '\u{5D0}'..='\u{5EA}' => return Class::Of(Script::Hebrew),
        '\u{620}'..='\u{64A}' => return Class::Of(Script::Arabic),
        '\u{900}'..='\u{94F}' => return Class::Of(Script::Devanagari),
        '\u{E01}'..='\u{E3A}' => return Class::Of(Script::SoutheastAsian),
        _ => {}
    }
    if is_cjk(c) {
        Class::Of(Script::of_cjk(c))
    } else if is_emoji(c) {
        Class::Of(Script::Emoji)
    } else if is_wide_latin(c) {
        Class::Latin
    } else if c.is_whitespace() {
        Class::Space
    } else if c.is_numeric() {
        Class::Digit
    } else if is_wide_punctuation(c) {
        Class::Punctuation
    } else {
        Class::Of(Script::of_other(c))
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
            accented: 1,
            digits: 2,
            spaces: 3,
            punctuation: 3,
            scripts: [1, 0, 0, 0, 1, 0, 0, 1, 1, 2, 4, 1],
            runs: 4,
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
        assert_eq!(Class::of('ﾊ'), Class::Of(Script::Kana));
    }

    #[test]
    fn indents_and_capitals_within_words_are_met() {
        let counts = ClassCounts::of("  {\n    \"camelCase\": \"aGVsbG8\"\n} é\u{3000}\u{3000}X");
        // The beginning, two line ends, one with its indent, the wide spaces; `lC`, `aG`, `sb` is none, `bG`.
        assert_eq!((counts.gaps, counts.humps), (4, 3));
        assert_eq!(ClassCounts::of("one two three éA").gaps, 0);
        assert_eq!(ClassCounts::of("a\nb\n\nc \nd  \n  e\tf").gaps, 5);
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
            let shown = [counts.latin, counts.digits, counts.spaces, counts.script(Script::Han)];
            assert_eq!(shown, [Class::Latin, Class::Digit, Class::Space, Class::Of(Script::Han)].map(of));
            let forms_runs = |c| !matches!(Class::of(c), Class::Space | Class::Of(_));
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
