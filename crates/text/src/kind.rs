//! What a text in Latin letters mostly is, for the token estimate (spec: context §4): the language of prose, code,
//! names, JSON, hex, base64.
//!
//! Tokenizers are made for English: the same number of letters is three times as many tokens in Finnish, and five times
//! in hex. Which it is, the counts of a text tell for what is no prose; of prose the commonest words of a language do,
//! in a sample of bounded length. It need not be right for every text: what is taken for another kind is estimated
//! with that kind's weights and teaches them.

use std::sync::LazyLock;

use crate::class::{ClassCounts, Script};

/// A kind of text in Latin letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LatinKind {
    German,
    French,
    Spanish,
    Portuguese,
    Italian,
    Dutch,
    /// Danish, Norwegian, Swedish.
    Nordic,
    Finnish,
    Hungarian,
    Polish,
    /// Czech and Slovak.
    Czech,
    Romanian,
    Turkish,
    Vietnamese,
    /// Indonesian and Malay.
    Indonesian,
    /// Short texts too, and whatever has few letters of this script.
    English,
    /// Prose of no language that is known here.
    OtherProse,
    Code,
    /// Identifiers with little between them.
    Names,
    Json,
    /// Hexadecimal and other long numbers.
    Hex,
    Base64,
}

impl LatinKind {
    /// All of them, in order.
    pub const ALL: [Self; 22] = [
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Portuguese,
        Self::Italian,
        Self::Dutch,
        Self::Nordic,
        Self::Finnish,
        Self::Hungarian,
        Self::Polish,
        Self::Czech,
        Self::Romanian,
        Self::Turkish,
        Self::Vietnamese,
        Self::Indonesian,
        Self::English,
        Self::OtherProse,
        Self::Code,
        Self::Names,
        Self::Json,
        Self::Hex,
        Self::Base64,
    ];

    /// Whether it is prose of any language.
    #[must_use]
    pub fn is_prose(self) -> bool {
        !matches!(self, Self::Code | Self::Names | Self::Json | Self::Hex | Self::Base64)
    }

    /// What a text is, as far as it is written in Latin letters; `counts` are its own.
    #[must_use]
    pub fn of(text: &str, counts: &ClassCounts) -> Self {
        form(text, counts).unwrap_or_else(|| language(text, counts))
    }
}

/// Letters below which a text shows no language.
const SHORT: u64 = 24;
/// Characters below which a text shows no form.
const FORMLESS: u64 = 16;
/// Of a hundred punctuation marks of JSON so many are its own.
const JSON_MARKS: u32 = 55;
/// Of a hundred punctuation marks of prose so many are its own.
const PROSE_MARKS: u32 = 75;
/// Of a hundred letters so many are accented in no code.
const ACCENTED: u64 = 2;
/// How much of the beginning of a text is looked at: bytes for words, marks and capitals, characters for Ukrainian letters.
const SAMPLE: usize = 512;
/// The longest word that is looked up, in bytes.
const LONGEST: u32 = 8;
/// Of so many words one must be among a language's commonest.
const SPARSE: u32 = 12;

/// What is no prose, by its counts.
fn form(text: &str, counts: &ClassCounts) -> Option<LatinKind> {
    let ClassCounts { latin, digits, spaces, punctuation, humps, .. } = *counts;
    let letters = latin + digits;
    let all = letters + spaces + punctuation;
    // Where other scripts prevail, punctuation and digits are theirs.
    if all < FORMLESS || letters < counts.foreign() {
        return None;
    }
    // Of a hundred.
    let share = |part: u64, whole: u64, least: u64| part * 100 >= whole * least;
    if share(digits, letters, 35) && !share(punctuation, all, 8) {
        return Some(LatinKind::Hex);
    }
    let dense = !share(spaces, all, 5) && !share(punctuation, all, 10);
    if dense && share(humps, latin, 10) && share(digits, letters, 5) {
        return Some(LatinKind::Base64);
    }
    let begins = text.trim_start().as_bytes().first();
    let braced = matches!(begins, Some(b'{' | b'['));
    // Rulers, tables and operators are as much punctuation, and no JSON; columns of numbers cost as it does.
    let is_json = || share(digits, letters, 35) || is_marked_as_json(text);
    if (share(punctuation, all, 27) || braced && share(punctuation, all, 16)) && is_json() {
        return Some(LatinKind::Json);
    }
    // Lists of names, and prose that quotes a little code, are no code in a language with accents.
    if share(counts.accented, latin, ACCENTED) && is_marked_as_prose(text) {
        return None;
    }
    if share(punctuation, all, 9) {
        return Some(LatinKind::Code);
    }
    if !share(spaces * 2, all, 23) && share(punctuation + 2 * humps, all, 4) {
        return Some(LatinKind::Names);
    }
    share(humps * 2, latin, 3).then_some(LatinKind::Code)
}

/// Whether most punctuation at the beginning of a text is that of JSON.
fn is_marked_as_json(text: &str) -> bool {
    is_marked_by(text, b"{}[]\":,", JSON_MARKS)
}

/// Whether nearly all punctuation at the beginning of a text is that of prose, with the marks of quoted code.
fn is_marked_as_prose(text: &str) -> bool {
    is_marked_by(text, b",.;:!?'\"-`", PROSE_MARKS)
}

/// Whether of a hundred marks at the beginning of a text at least so many are among these.
fn is_marked_by(text: &str, own: &[u8], least: u32) -> bool {
    let marks = text.bytes().take(SAMPLE).filter(u8::is_ascii_punctuation);
    let (own, all) = marks.fold((0, 0), |(sum, all), mark| (sum + u32::from(own.contains(&mark)), all + 1));
    all > 0 && own * 100 >= all * least
}

/// The language of prose.
fn language(text: &str, counts: &ClassCounts) -> LatinKind {
    if counts.latin < SHORT || counts.latin < counts.foreign() / 4 {
        return LatinKind::English;
    }
    let words = &*WORDS;
    let mut hits = [0_u32; LANGUAGES.len()];
    let mut seen = 0;
    let (mut word, mut length, mut skipped) = (0_u64, 0, 0);
    for byte in text.bytes().take(SAMPLE).chain([b' ']) {
        if !byte.is_ascii() && skipped > 0 {
            skipped -= 1;
            continue;
        }
        // What begins with these two is punctuation among Latin letters: quotes, dashes, ¿.
        skipped = match byte {
            0xC2 => 1,
            0xE2 => 2,
            _ => 0,
        };
        if byte.is_ascii_alphabetic() || !byte.is_ascii() && skipped == 0 {
            word = word << 8 | u64::from(byte.to_ascii_lowercase());
            length += 1;
            if !byte.is_ascii()
                && let Some(at) = letter_of(word as u16)
            {
                hits[at] += 1;
            }
            continue;
        }
        if length > 0 {
            seen += 1;
        }
        if (1..=LONGEST).contains(&length) {
            let mut of = words.of(word);
            while of != 0 {
                hits[of.trailing_zeros() as usize] += 1;
                of &= of - 1;
            }
        }
        (word, length) = (0, 0);
    }
    // Of two that are as likely the first: English is the last, as its tokens are the fewest.
    let mut best = 0;
    for (at, count) in hits.iter().enumerate() {
        if *count > hits[best] {
            best = at;
        }
    }
    if hits[best] * SPARSE >= seen && hits[best] > 0 { LANGUAGES[best].0 } else { LatinKind::OtherProse }
}

/// The language that alone has a letter, by its last two bytes.
fn letter_of(bytes: u16) -> Option<usize> {
    let kind = match bytes {
        0xC3_9F => LatinKind::German,                                         // ß
        0xC3_B1 => LatinKind::Spanish,                                        // ñ
        0xC3_A3 | 0xC3_B5 => LatinKind::Portuguese,                           // ã õ
        0xC3_A5 => LatinKind::Nordic,                                         // å
        0xC5_91 | 0xC5_B1 => LatinKind::Hungarian,                            // ő ű
        0xC5_82 | 0xC4_85 | 0xC4_99 | 0xC5_BC | 0xC5_9B => LatinKind::Polish, // ł ą ę ż ś
        0xC5_99 | 0xC4_9B | 0xC5_AF => LatinKind::Czech,                      // ř ě ů
        0xC4_B1 | 0xC4_B0 | 0xC4_9F => LatinKind::Turkish,                    // ı İ ğ
        0xC6_A1 | 0xC6_B0 => LatinKind::Vietnamese,                           // ơ ư
        _ => return None,
    };
    LANGUAGES.iter().position(|(language, _)| *language == kind)
}

/// Words, by their bytes, with the languages they are among the commonest of, a bit each: a table with a third of its
/// places taken, since most words of a text are not in it and that must be seen at once.
struct Words(Box<[(u64, u32)]>);

/// Places of the table, as a power of two.
const PLACES: u32 = 11;

impl Words {
    fn new() -> Self {
        let mut words = Self(vec![(0, 0); 1 << PLACES].into());
        for (at, (_, list)) in LANGUAGES.iter().enumerate() {
            for word in list.split_ascii_whitespace() {
                let word = word.bytes().fold(0, |key, byte| key << 8 | u64::from(byte));
                let place = words.place(word);
                words.0[place] = (word, words.0[place].1 | 1 << at);
            }
        }
        words
    }

    /// Where a word is, or would be.
    fn place(&self, word: u64) -> usize {
        let mut place = (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES)) as usize;
        while self.0[place].0 != word && self.0[place].0 != 0 {
            place = (place + 1) % self.0.len();
        }
        place
    }

    fn of(&self, word: u64) -> u32 {
        self.0[self.place(word)].1
    }
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

/// The commonest words of languages, in small letters.
const LANGUAGES: [(LatinKind, &str); 16] = [
    (
        LatinKind::German,
        "der die und das den dem des ein eine einen einer nicht mit von zu sich auf für ist im auch als es an er sie \
         hat wird oder wie bei nach aus ich war sind über so aber noch nur vor haben kein man dass wir",
    ),
    (
        LatinKind::French,
        "le la les de des du et un une est que qui dans en pour pas sur au ce il elle ne se son sa par plus avec sont \
         tout nous vous mais ou aux cette ses l d qu n s c leur toute je",
    ),
    (
        LatinKind::Spanish,
        "el la los las de del y en que un una por con no se su para es al lo como más o sus le ha pero fue son está \
         toda era si ya me mi muy",
    ),
    (
        LatinKind::Portuguese,
        "o a os as de da do dos das e em que um uma por com não se para é no na ao mais como mas foi à sua seu são ou \
         pela pelo eu já",
    ),
    (
        LatinKind::Italian,
        "il la le gli di del della dei e in che un una per non con si da al è sono come più anche nel ma ha lo alla dal \
         suo sua ogni i dell l o ad mi era",
    ),
    (
        LatinKind::Dutch,
        "de het een en van in is dat op te zijn met voor niet aan er om ook als bij door maar naar hij heeft wordt ik uit \
         nog of worden deze was ze",
    ),
    (
        LatinKind::Nordic,
        "och att det som en på är av för med till den har inte om ett han var jag de vi från sin og er at til ikke af å \
         et jeg ble men så eller i hun",
    ),
    (
        LatinKind::Finnish,
        "ja on ei että se oli hän joka kun mutta tai ovat ole niin myös kuin sen hänen jotka tämä mitä vain nyt minä \
         sekä jos olla en nämä siitä kaikki",
    ),
    (
        LatinKind::Hungarian,
        "a az és hogy nem is egy van meg ez de volt csak azt el már ha vagy minden mint kell még aki ki ezt nincs",
    ),
    (
        LatinKind::Polish,
        "i w na z się nie do to że jest o jak po co ale za od przez dla oraz jego są ma lub był by tak tym we każdy",
    ),
    (
        LatinKind::Czech,
        "a v je na se že to s z do o i k by jako za po pro ale jeho nebo byl jsou si od má při tak sa alebo každý",
    ),
    (
        LatinKind::Romanian,
        "de și şi în a la cu nu că pe o un să este din care mai se sau al ale prin pentru sunt fi fost are lui orice nici",
    ),
    (
        LatinKind::Turkish,
        "ve bir bu da de için ile ne çok olarak daha gibi her o olan ya veya ki kadar var sonra en mi ben değil hiç",
    ),
    (
        LatinKind::Vietnamese,
        "và của có được các trong quyền không một người cho với này những đã là ông khi tôi đó ra như về mọi anh mà \
         trên đến",
    ),
    (
        LatinKind::Indonesian,
        "dan yang di dengan untuk tidak dalam dari ini itu pada adalah akan atau ke oleh setiap orang juga sebagai ada \
         telah bahwa saya",
    ),
    (
        LatinKind::English,
        "the of and to in is that it for was with as be on not he his this are or by from at which have had but they you \
         we all her she has an been their there were if would who what my no a i so do can will its",
    ),
];

/// Whether most letters A–Z at the beginning of a text are capitals, where it shows a language and Latin letters prevail;
/// `counts` are its own.
#[must_use]
pub fn is_in_capitals(text: &str, counts: &ClassCounts) -> bool {
    // Elsewhere most digits, spaces and punctuation stand among other letters.
    if counts.latin < SHORT || counts.latin < counts.foreign() {
        return false;
    }
    let letters = text.bytes().take(SAMPLE).filter(u8::is_ascii_alphabetic);
    let (capitals, all) = letters
        .fold((0_u32, 0), |(capitals, all), c| (capitals + u32::from(c.is_ascii_uppercase()), all + 1));
    capitals * 2 > all
}

/// Whether a text with these counts is Japanese as far as it is Han or Kana.
#[must_use]
pub fn is_japanese(counts: &ClassCounts) -> bool {
    let kana = counts.script(Script::Kana);
    kana > 0 && kana * 8 >= counts.script(Script::Han)
}

/// Of a hundred Cyrillic letters so many are Ukrainian ones where a text is Ukrainian.
const UKRAINIAN_LETTERS: u32 = 3;

/// Whether a text is Ukrainian as far as its beginning is Cyrillic.
#[must_use]
pub fn is_ukrainian(text: &str) -> bool {
    let letters = text.chars().take(SAMPLE).filter(|c| matches!(c, '\u{400}'..='\u{4ff}'));
    let (own, all) = letters.fold((0_u32, 0), |(own, all), c| {
        (own + u32::from(matches!(c, 'і' | 'ї' | 'є' | 'ґ' | 'І' | 'Ї' | 'Є' | 'Ґ')), all + 1)
    });
    all > 0 && own * 100 >= all * UKRAINIAN_LETTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ukrainian_is_told_by_its_letters() {
        assert!(is_ukrainian("Кожна людина має право на громадянство, і ніхто його не позбавить."));
        assert!(!is_ukrainian("Каждый человек имеет право на гражданство, и никто его не лишит."));
        assert!(!is_ukrainian("Всеки човек има право на гражданство и никой няма да го лиши."));
        assert!(!is_ukrainian("Everyone has the right to a nationality."));
    }

    fn of(text: &str) -> LatinKind {
        LatinKind::of(text, &ClassCounts::of(text))
    }

    #[test]
    fn prose_is_told_by_its_commonest_words() {
        for (kind, text) in [
            (LatinKind::English, "The rain had not stopped for three days, and the shuttle lay still."),
            (
                LatinKind::German,
                "Der Regen hatte drei Tage lang nicht aufgehört, und das Schiffchen lag still.",
            ),
            (
                LatinKind::French,
                "La pluie n’avait pas cessé depuis trois jours, et la navette restait immobile.",
            ),
            (LatinKind::Finnish, "Sade ei ollut lakannut kolmeen päivään, ja sukkula lepäsi paikallaan."),
            (LatinKind::Turkish, "Yağmur üç gündür dinmemişti ve mekik kıpırdamadan duruyordu."),
            (LatinKind::Vietnamese, "Mưa đã không tạnh suốt ba ngày và con thoi nằm yên."),
            (LatinKind::OtherProse, "Mvua haikukoma kwa siku tatu, chombo kilibaki kimya kabisa."),
            (LatinKind::English, "Rain."),
        ] {
            assert_eq!(of(text), kind, "{text}");
        }
    }

    #[test]
    fn what_is_no_prose_is_told_by_its_counts() {
        for (kind, text) in [
            (LatinKind::Code, "fn add(&mut self, text: &str) {\n    self.counts += Counts::of(text);\n}\n"),
            (LatinKind::Names, "threadCount warp_path_loom HandleBuffer line_index cache_key"),
            (LatinKind::Json, "{\"id\": 421439, \"name\": \"WarpPattern\", \"active\": true}"),
            (LatinKind::Json, "1.5,22.25,7,13.75\n2.5,31.5,8,14.25\n"),
            (LatinKind::Code, "+--------+--------+\n| Python | JSON   |\n+========+========+\n"),
            (LatinKind::Code, "│ Name │ Value │\n├──────┼───────┤\n│ loom │ warp  │\n"),
            (LatinKind::Code, "[x for x in f(*a, **k) if x.y != self._z()]"),
            (LatinKind::Hex, "faaf1b03ed6d5906f31ff7122a2187f055d3eb81479f2c8a037d881f2e35"),
            (LatinKind::Base64, "XS0ZJ2MNhx51B9o6xJzCSCI+ijKaehL6n+AC5IFsnEgnoPAAvAff91pkubtN"),
        ] {
            assert_eq!(of(text), kind, "{text}");
        }
    }

    #[test]
    fn among_other_scripts_a_few_latin_letters_are_no_language() {
        assert_eq!(of("Дождь (rain) не прекращался три дня, и челнок лежал."), LatinKind::English);
        assert!(is_japanese(&ClassCounts::of("雨が降る")) && !is_japanese(&ClassCounts::of("下雨了")));
    }

    #[test]
    fn accented_words_between_the_marks_of_prose_are_no_code() {
        for (kind, text) in [
            (
                LatinKind::Polish,
                "Wiśniewski, Wójcik, Kamiński, Zieliński, Woźniak, Dąbrowski, Kozłowski, Mazur",
            ),
            (LatinKind::Turkish, "Yılmaz, Çelik, Şahin, Yıldız, Öztürk, Aydın, Doğan, Kılıç, Koç, Kurt"),
            (LatinKind::Polish, "jabłko, gruszka, śliwka, wiśnia, żurawina, brzoskwinia, jeżyna, agrest"),
            (LatinKind::Code, "let größe = länge(&fläche)?; if größe > 9 { zähle(fläche[größe]); }"),
            (LatinKind::Code, "Monday, Tuesday, Wednesday, Friday, Saturday, Sunday, May, June, July"),
        ] {
            assert_eq!(of(text), kind, "{text}");
        }
    }

    #[test]
    fn capitals_are_told_by_most_letters() {
        let are = |text: &str| is_in_capitals(text, &ClassCounts::of(text));
        assert!(are("THE MILL STOOD BY the RIVER, AND") && are("YAĞMUR ÜÇ GÜNDÜR DİNMEMİŞTİ"));
        assert!(are("THE OLD MILL STOOD BY THE RIVER ДОЖДЬ"), "most of its letters are Latin");
        assert!(!are("The NASA and the ESA watch the river.") && !are("ДОЖДЬ") && !are(""));
        assert!(!are("Глава X") && !are(&"Глава X. Дождь\n".repeat(30)), "most of its letters are Cyrillic");
        assert!(!are("第一章 X") && !are(&"第一章 X：下雨了\n".repeat(30)), "most of its letters are Han");
        assert!(!are("NOTE: 1, 2, 3"), "too short to show a language");
    }
}
