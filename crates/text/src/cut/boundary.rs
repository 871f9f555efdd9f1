//! The first sentence or paragraph of a text that is still arriving.

use serde::{Deserialize, Serialize};

use super::mark_scan::without_footnote;
use super::sentence::{is_closer, is_emphasis, is_end_mark};
use super::text_slice::TextSlice;

/// Where an answer ends though its model would write on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// Behind the first sentence; a break of paragraph ends one, too.
    Sentence,
    /// Behind the first blank line that follows text.
    Paragraph,
}

/// A sentence or paragraph is looked for in this many bytes of an answer; a longer one is not cut. It bounds what is read
/// of an answer in all; each piece costs its own length.
pub(super) const LONGEST: usize = 64 * 1024;

/// White space behind a sentence or paragraph, in characters, that belongs to it at most: a model may write nothing else
/// for ever.
pub(super) const MOST_SPACE: usize = 64;

impl Boundary {
    /// Whether a text is too long for an end to be found with what follows it.
    pub const fn is_too_long(text: &str) -> bool {
        text.len() > LONGEST
    }
}

/// The offset behind white space that begins at `end`; none if nothing follows it.
pub(super) fn before_next(text: TextSlice<'_>, end: usize) -> Option<usize> {
    let rest = text.from(end);
    let after = rest.trim_start();
    let space = rest.to(rest.len() - after.len());
    if let Some((most, _)) = space.char_indices().nth(MOST_SPACE) {
        return Some(end + space.floor(most));
    }
    let next = end + space.len();
    // White space that a combining mark turns into part of a cluster is no place to begin.
    (!after.is_empty()).then(|| if text.is_boundary(next) { next } else { end })
}

/// Characters within which a verb of speech follows its pronoun.
const SPEECH_WITHIN: usize = 5;

/// Characters within which a verb of speech follows と and a name.
const NAME_WITHIN: usize = 10;

/// Whether it is told behind a quote who speaks, as in `「行こう！」と言った。` and `“走吧！”他说。`; none where only more of
/// the text tells.
pub(super) fn has_speech_tag(quote: TextSlice<'_>, after: TextSlice<'_>) -> Option<bool> {
    if !quote.last().is_some_and(|c| matches!(c, '」' | '』' | '”')) {
        return Some(false);
    }
    let mut rest = after.chars();
    match rest.next() {
        Some('と') => {
            let within: Vec<char> = rest.take(NAME_WITHIN).take_while(|c| c.is_alphabetic()).collect();
            // Who speaks may stand between: `と彼は言った`.
            let mut behind_name = within.iter().skip_while(|c| !"はが".contains(**c));
            if within.first().is_some_and(|c| "言云い叫答尋聞問思呟囁つ怒笑".contains(*c))
                || behind_name.any(|c| "言叫答尋聞問呟囁".contains(*c))
            {
                return Some(true);
            }
            let next = after.chars().nth(within.len() + 1);
            let is_known = within.len() == NAME_WITHIN || next.is_some();
            is_known.then_some(within.is_empty() && next == Some('、'))
        }
        Some('他' | '她' | '它' | '我' | '你') => {
            let within: Vec<char> = rest.take(SPEECH_WITHIN).take_while(|c| c.is_alphabetic()).collect();
            let is_speech = |(at, c): (usize, &char)| match c {
                '说' | '說' | '喊' => true,
                // 问题, 叫做, 答应 and their kind tell nothing of speech.
                '问' | '問' | '叫' | '答' => {
                    within.get(at + 1).is_none_or(|next| "道着著他她我".contains(*next))
                }
                _ => false,
            };
            let is_known = within.len() == SPEECH_WITHIN || after.chars().nth(within.len() + 1).is_some();
            is_known.then(|| within.iter().enumerate().any(is_speech))
        }
        _ => Some(false),
    }
}

/// A sentence without the marks at its end, and whether they are one full stop. Emphasis and footnotes among them do not
/// count.
pub(super) fn before_marks(sentence: TextSlice<'_>) -> (TextSlice<'_>, bool) {
    let (mut before, mut stops, mut is_other) = (sentence, 0, false);
    loop {
        if let Some(shorter) = without_footnote(before) {
            before = shorter;
            continue;
        }
        let Some(last) = before.last() else { break };
        match last {
            '.' => stops += 1,
            c if is_emphasis(c) => {}
            c if is_end_mark(c) || is_closer(c) => is_other = true,
            _ => break,
        }
        before = before.to(before.len() - last.len_utf8());
    }
    (before, stops == 1 && !is_other)
}

/// Words a full stop behind which ends no sentence: what they stand before follows.
const TITLES: [&str; 36] = [
    "Dr", "Mr", "Mrs", "Ms", "Mx", "Prof", "St", "Gen", "Col", "Capt", "Lt", "Sgt", "Rev", "Hon", "Sen",
    "Rep", "Gov", "Pres", "Mt", "Hr", "Fr", "Mme", "Mlle", "Sr", "Sra", "Srta", "vs", "cf", "bzw", "ca",
    "Dra", "Mgr", "Messrs", "Sres", "Sras", "approx",
];

/// Words that are abbreviations where a number follows.
const BEFORE_NUMBERS: [&str; 28] = [
    "No", "no", "Nr", "Fig", "fig", "Vol", "vol", "p", "pp", "S", "Abs", "Art", "ch", "sec", "Jan", "Feb",
    "Mar", "Apr", "Jun", "Jul", "Aug", "Sep", "Sept", "Okt", "Oct", "Nov", "Dec", "al",
];

/// Words that a number with a full stop stands between, as in German: `am 3. Mai`.
/// `am` is looked at apart, as English has it too: `I am 42.`
const BEFORE_ORDINALS: [&str; 17] = [
    "vom", "Vom", "zum", "Zum", "im", "Im", "beim", "seit", "bis", "ab", "der", "Der", "das", "dem", "den",
    "des", "und",
];
/// Months that stand behind `the` and a number with a full stop, beside those of [`AFTER_ORDINALS`].
const ENGLISH_MONTHS: [&str; 8] =
    ["January", "February", "March", "May", "June", "July", "October", "December"];
const AFTER_ORDINALS: [&str; 16] = [
    "Januar",
    "Jänner",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
    "Jahrhundert",
    "Jahrhunderts",
    "Kapitel",
];

/// The word at the end of a text.
fn last_word(text: TextSlice<'_>) -> TextSlice<'_> {
    text.from(text.trim_end_matches(|c| c.is_alphanumeric() || c == '.').len())
}

/// The one or two digits at the end of a text.
fn short_number(before: TextSlice<'_>) -> Option<TextSlice<'_>> {
    let word = last_word(before);
    (matches!(word.len(), 1 | 2) && word.chars().all(|c| c.is_ascii_digit())).then_some(word)
}

fn is_one_letter(word: TextSlice<'_>) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
}

/// A full stop behind a word that what follows may turn into no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop {
    /// Offset behind the word.
    pub(super) at: usize,
    is_short_number: bool,
    is_one_letter: bool,
    is_before_number: bool,
}

impl Stop {
    pub(super) fn behind(before: TextSlice<'_>) -> Self {
        let word = last_word(before);
        Self {
            at: before.len(),
            is_short_number: short_number(before).is_some(),
            is_one_letter: is_one_letter(word),
            is_before_number: BEFORE_NUMBERS.contains(&word.as_str()),
        }
    }
}

/// Whether what follows a full stop tells only with more of it what the full stop is. Of emphasis that begins there
/// nothing is left.
pub(super) fn needs_more(stop: Stop, after: TextSlice<'_>, is_letters: bool) -> bool {
    let is_begun = after.is_empty();
    is_letters
        && (stop.is_short_number
            || stop.is_one_letter && (is_begun || is_one_letter(after))
            || is_begun && stop.is_before_number)
}

/// Whether a sentence goes on behind a full stop. `has_i` says whether the word `I` stands in so many bytes of it.
pub(super) fn goes_on(before: TextSlice<'_>, after: TextSlice<'_>, has_i: impl Fn(usize) -> bool) -> bool {
    is_abbreviation(before, after) || is_item_number(before) || is_ordinal(before, after, has_i)
}

/// Whether a number with a full stop counts what follows.
fn is_ordinal(before: TextSlice<'_>, after: TextSlice<'_>, has_i: impl Fn(usize) -> bool) -> bool {
    let Some(number) = short_number(before) else { return false };
    let next = after.to(after.length_before(|c| !c.is_alphabetic())).as_str();
    let above = before.to(before.len() - number.len());
    let above = above.trim_end_matches(is_emphasis).trim_end().trim_end_matches(is_emphasis);
    let word = last_word(above).as_str();
    let is_german_am = || matches!(word, "am" | "Am") && !has_i(above.len());
    AFTER_ORDINALS.contains(&next)
        || word == "the" && ENGLISH_MONTHS.contains(&next)
        || !next.is_empty() && (BEFORE_ORDINALS.contains(&word) || is_german_am())
}

fn is_abbreviation(before: TextSlice<'_>, after: TextSlice<'_>) -> bool {
    let word = last_word(before);
    if BEFORE_NUMBERS.contains(&word.as_str()) && after.first().is_some_and(|c| c.is_ascii_digit()) {
        return true;
    }
    // The first part of one that is written with a space: `z. B.`
    if is_one_letter(word) {
        let mut next = after.chars();
        return next.next().is_some_and(char::is_alphabetic) && next.next() == Some('.');
    }
    let word = word.as_str();
    let is_dotted = word.contains('.') && word.split('.').map(TextSlice::new).all(is_one_letter);
    is_dotted || TITLES.contains(&word)
}

/// Whether a line begins with this number: that of an item of a list. Reads no more of the line than stands before
/// the number without words.
fn is_item_number(before: TextSlice<'_>) -> bool {
    let digits = before.chars().rev().take(4).take_while(char::is_ascii_digit).count();
    let line = before.to(before.len() - digits).trim_end_matches(is_emphasis);
    let line = line.trim_end_matches(|c| c.is_whitespace() && c != '\n');
    (1..=3).contains(&digits) && line.last().is_none_or(|c| c == '\n')
}

#[cfg(test)]
mod tests {
    use super::super::BoundaryScan;
    use super::*;

    /// The end that is found in a text that is there at once.
    fn first_end(boundary: Boundary, text: &str) -> Option<usize> {
        BoundaryScan::default().first_end(boundary, text)
    }

    /// Cuts a text whole and character by character, and finds the same.
    fn cut(boundary: Boundary, text: &str) -> Option<&str> {
        let whole = first_end(boundary, text);
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        let (mut scan, mut by_char) = (BoundaryScan::default(), ends.clone());
        assert_eq!(by_char.find_map(|end| scan.first_end(boundary, &text[..end])), whole, "{text:?}");
        let beginning = ends.clone().find_map(|end| first_end(boundary, &text[..end]));
        assert_eq!(beginning, whole, "{text:?}");
        whole.map(|end| &text[..end])
    }

    #[test]
    fn sentence_has_its_end_and_the_space_after_it() {
        let cases = [
            ("One. Two.", "One. "),
            (" One. Two.", " One. "),
            ("\n\nOne. Two.", "\n\nOne. "),
            ("Dr. Smith came. He sat.", "Dr. Smith came. "),
            ("It is 3.5 long. Yes.", "It is 3.5 long. "),
            ("Fruit, e.g. Apples, fell. Then", "Fruit, e.g. Apples, fell. "),
            ("J. R. Doe came. He", "J. R. Doe came. "),
            ("The U.S. Army came. He", "The U.S. Army came. "),
            ("Er kam am 3. Mai an. Dann", "Er kam am 3. Mai an. "),
            ("Im 19. Jahrhundert kam er. Dann", "Im 19. Jahrhundert kam er. "),
            ("Er war der 2. Mann dort. Dann", "Er war der 2. Mann dort. "),
            ("He was 42. Then he left.", "He was 42. "),
            ("I am 42. Then he left.", "I am 42. "),
            ("Er kam am 3. Tag an. Dann", "Er kam am 3. Tag an. "),
            ("Am 3. Tag kam er. Dann", "Am 3. Tag kam er. "),
            ("**It ended.** Then he", "**It ended.** "),
            ("*It ended.* Then he", "*It ended.* "),
            ("It ended.[1] Then", "It ended.[1] "),
            ("Well . . . yes. Then", "Well . . . yes. "),
            ("He left. .NET stayed.", "He left. "),
            ("ის მოვიდა. ის", "ის მოვიდა. "),
            ("Έρχεσαι; Ναι.", "Έρχεσαι; "),
            ("See p. 5 there. He", "See p. 5 there. "),
            ("Siehe S. 12 dort. Er", "Siehe S. 12 dort. "),
            ("他走了。“你好。”他", "他走了。"),
            ("Obst, z. B. Äpfel, fiel. Dann", "Obst, z. B. Äpfel, fiel. "),
            ("He solved for x. Then he left.", "He solved for x. "),
            ("„Halt.“ Dann ging er.", "„Halt.“ "),
            ("»Ich gehe.« Dann ging er.", "»Ich gehe.« "),
            ("« Je pars. » Puis il partit.", "« Je pars. » "),
            ("Er ging. »Dann kam er.«", "Er ging. "),
            ("See No. 5 there. He", "See No. 5 there. "),
            ("Sr. López vino. Se fue.", "Sr. López vino. "),
            ("Los Sres. Mora vinieron. Se fueron.", "Los Sres. Mora vinieron. "),
            ("Jan. 5 was cold. He left.", "Jan. 5 was cold. "),
            ("It was in Sept. 1939 then. He", "It was in Sept. 1939 then. "),
            ("It was in Jan. Then he left.", "It was in Jan. "),
            ("He met Jan. He left.", "He met Jan. "),
            ("... And then he left. He", "... And then he left. "),
            ("… And then he left. He", "… And then he left. "),
            (" \"... And then he left.\" He", " \"... And then he left.\" "),
            ("I said no. He left", "I said no. "),
            ("Well… no. Yes", "Well… no. "),
            ("Well... no. Yes", "Well... no. "),
            ("Well… Yes", "Well… "),
            ("Well... Yes", "Well... "),
            ("\"Go.\" He went.", "\"Go.\" "),
            ("“Go.” He went.", "“Go.” "),
            ("‘Go.’ He went.", "‘Go.’ "),
            ("(Who?) He", "(Who?) "),
            ("“Go!” she said. He", "“Go!” she said. "),
            ("What?! No", "What?! "),
            ("彼は来た。彼女は", "彼は来た。"),
            ("「名前は？」まだ", "「名前は？」"),
            ("「行こう！」と言った。次。", "「行こう！」と言った。"),
            ("「行け。」と彼は言った。次。", "「行け。」と彼は言った。"),
            ("「行け。」とメアリーが静かに答えた。次。", "「行け。」とメアリーが静かに答えた。"),
            ("「寒い。」とても寒い日だった。次。", "「寒い。」"),
            ("Smith et al. 2020 said so. Then.", "Smith et al. 2020 said so. "),
            ("It is approx. 5 km. Then.", "It is approx. 5 km. "),
            ("「行こう！」とても静かだ。", "「行こう！」"),
            ("“走吧！”他说。然后走了。", "“走吧！”他说。"),
            ("“走吧！”她大声喊道：“快！”好。", "“走吧！”她大声喊道：“快！”"),
            ("“走吧！”他走了。", "“走吧！”"),
            ("“走吧！”他问道。然后走了。", "“走吧！”他问道。"),
            ("“走吧！”她问。然后", "“走吧！”她问。"),
            ("“走吧！”他知道了。然后", "“走吧！”"),
            ("“走吧！”他答应了。然后", "“走吧！”"),
            ("“走吧！”我想起他。然后", "“走吧！”"),
            ("好！走", "好！"),
            ("1. Apples fall. 2", "1. Apples fall. "),
            ("**1.** Apples fall. 2", "**1.** Apples fall. "),
            ("**1**. Apples fall. 2", "**1**. Apples fall. "),
            ("It fell:\n*2.* Apples fall. 2", "It fell:\n*2.* Apples fall. "),
            ("**Dr.** Smith came. He", "**Dr.** Smith came. "),
            ("**Dr**. _Smith_ came. He", "**Dr**. _Smith_ came. "),
            ("Fruit, _e.g._ Apples, fell. Then", "Fruit, _e.g._ Apples, fell. "),
            ("See Fig.[1] 5 there. He", "See Fig.[1] 5 there. "),
            ("See Fig[^1]. 5 there. He", "See Fig[^1]. 5 there. "),
            ("See _No._ **5** there. He", "See _No._ **5** there. "),
            ("See No. *It rained.* Yes", "See No. "),
            ("Er kam am *3.* Mai an. Dann", "Er kam am *3.* Mai an. "),
            ("Er kam am *3.* *Tag* an. Dann", "Er kam am *3.* *Tag* an. "),
            ("He came on the *3.* May then. He", "He came on the *3.* May then. "),
            ("He took the 3. Then he left.", "He took the 3. "),
            ("He was **42.** Then he left.", "He was **42.** "),
            ("*Obst, z.* *B.* Äpfel, fiel. Dann", "*Obst, z.* *B.* Äpfel, fiel. "),
            ("He was Dr.) Then he left.", "He was Dr.) "),
            ("A heading\r\n\r\nText.", "A heading\r\n\r\n"),
            ("One.\n\nTwo.", "One.\n\n"),
        ];
        for (text, sentence) in cases {
            assert_eq!(cut(Boundary::Sentence, text), Some(sentence));
        }
    }

    #[test]
    fn nothing_is_cut_before_something_follows() {
        for text in [
            "",
            " ",
            "One",
            "One.",
            "One. ",
            "Dr. Smith",
            "3.5",
            "e.g. this",
            "No. **",
            "好。",
            "好。\u{FE00}的",
        ] {
            assert_eq!(cut(Boundary::Sentence, text), None);
        }
        for text in ["One. Two.", "One\nTwo", "One\n\n", "\n\nOne"] {
            assert_eq!(cut(Boundary::Paragraph, text), None);
        }
    }

    #[test]
    fn white_space_without_end_is_cut() {
        let most = |space: &str, count: usize| space.repeat(count);
        for (text, spaces) in
            [(" One.", " \n"), (" One", "\n"), ("Dr.", "\t"), (" One. ", "\r\n"), ("好。", "　")]
        {
            let endless = format!("{text}{}", most(spaces, 200));
            let end = cut(Boundary::Sentence, &endless).unwrap();
            let space = end.len() - end.trim_end().len();
            assert!((1..=MOST_SPACE * spaces.len()).contains(&space), "{end:?}");
            assert_eq!(end.trim_end(), text.trim_end());
            let followed = format!("{endless}then. Two");
            assert_eq!(cut(Boundary::Sentence, &followed), Some(end), "whatever comes behind it");
        }
        for text in ["One. Two.", "\n\nOne"] {
            let endless = format!("{text}{}", most("\n", 200));
            assert_eq!(cut(Boundary::Paragraph, &endless), Some(&endless[..text.len() + MOST_SPACE]));
        }
        let far = format!("One.{}Two. Three", most(" ", MOST_SPACE));
        assert_eq!(cut(Boundary::Sentence, &far), Some(&far[..4 + MOST_SPACE]), "all of it");
        let table = format!("a{}b\n\nc", most(" ", 200));
        assert_eq!(cut(Boundary::Paragraph, &table), Some(&table[..table.len() - 1]));
    }

    #[test]
    fn what_is_longer_than_the_limit_is_not_cut() {
        for (boundary, end) in [(Boundary::Sentence, ". "), (Boundary::Paragraph, "\n\n")] {
            let long = |bytes| format!("{}{end}Then", "é".repeat(bytes / 2));
            assert_eq!(first_end(boundary, &long(LONGEST)), None);
            assert!(Boundary::is_too_long(&long(LONGEST)));
            assert_eq!(first_end(boundary, &long(LONGEST - 8)), Some(LONGEST - 6), "control");
        }
    }

    #[test]
    fn paragraph_has_its_blank_lines() {
        assert_eq!(cut(Boundary::Paragraph, "One. Two.\n\nThree"), Some("One. Two.\n\n"));
        assert_eq!(cut(Boundary::Paragraph, "\n\nOne\r\n\r\n\r\nTwo"), Some("\n\nOne\r\n\r\n\r\n"));
        assert_eq!(cut(Boundary::Paragraph, "好。\n\u{3000}\n走"), Some("好。\n\u{3000}\n"));
        assert_eq!(cut(Boundary::Paragraph, "One\n \t\n\n\nTwo\n\nThree"), Some("One\n \t\n\n\n"));
    }
}
