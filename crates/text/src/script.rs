//! Scripts, as far as the token estimate tells them apart.

/// Scripts that tokenizers treat alike within, and differently from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Script {
    Cyrillic,
    Greek,
    Arabic,
    Hebrew,
    Devanagari,
    /// Bengali to Sinhala.
    Indic,
    /// Thai, Lao, Burmese, Khmer, which write no spaces between words; and Tibetan.
    SoutheastAsian,
    Hangul,
    /// Han, and Bopomofo.
    Han,
    /// Hiragana and Katakana.
    Kana,
    /// Emoji, and what joins and colours them (ZWJ, variation selector 16, keycap, regional indicators).
    Emoji,
    /// Every other script, combining marks, controls, private and unassigned characters.
    Rest,
}

impl Script {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::Cyrillic,
        Self::Greek,
        Self::Arabic,
        Self::Hebrew,
        Self::Devanagari,
        Self::Indic,
        Self::SoutheastAsian,
        Self::Hangul,
        Self::Han,
        Self::Kana,
        Self::Emoji,
        Self::Rest,
    ];

    /// The script of a character that [`crate::class::is_cjk`] holds for.
    pub(crate) fn of_cjk(c: char) -> Self {
        match c {
            '\u{1100}'..='\u{11FF}'
            | '\u{3131}'..='\u{318E}'
            | '\u{A960}'..='\u{A97F}'
            | '\u{AC00}'..='\u{D7FF}'
            | '\u{FFA1}'..='\u{FFDC}' => Self::Hangul,
            '\u{3041}'..='\u{30FF}'
            | '\u{31F0}'..='\u{31FF}'
            | '\u{FF66}'..='\u{FF9F}'
            | '\u{1AFF0}'..='\u{1B16F}' => Self::Kana,
            _ => Self::Han,
        }
    }

    /// Script of a letter that is neither Latin nor of the script before it.
    pub(crate) fn of_other(c: char) -> Self {
        match c {
            '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => Self::Greek,
            '\u{400}'..='\u{52F}'
            | '\u{1C80}'..='\u{1C8F}'
            | '\u{2DE0}'..='\u{2DFF}'
            | '\u{A640}'..='\u{A69F}' => Self::Cyrillic,
            '\u{590}'..='\u{5FF}' | '\u{FB1D}'..='\u{FB4F}' => Self::Hebrew,
            '\u{600}'..='\u{6FF}'
            | '\u{750}'..='\u{77F}'
            | '\u{8A0}'..='\u{8FF}'
            | '\u{FB50}'..='\u{FDFF}'
            | '\u{FE70}'..='\u{FEFE}' => Self::Arabic,
            '\u{900}'..='\u{97F}' | '\u{A8E0}'..='\u{A8FF}' => Self::Devanagari,
            '\u{980}'..='\u{DFF}' => Self::Indic,
            '\u{E00}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' => Self::SoutheastAsian,
            _ => Self::Rest,
        }
    }
}
