//! What was forgotten while an editor had it: nothing that it said is stored again out of the text that comes back.
//!
//! Words in a row are compared, without case, punctuation and white space, so that a copy that was wrapped, cut or set in
//! capitals is known again. A few short words in a row are anybody's and hold no edit up; one long word, as a key is, and
//! one with a digit in it, as a password or a number is, are nobody else's.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use loom::content::content_hash;
use loom::{Block, Node, NodeId};
use store::SHORTEST_TEXT;
use text::class::{Class, Script};

use super::{OpenPassage, OpenText};
use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

/// Words in a row by which a passage is known again; a shorter one, by all of its words.
const RUN: usize = 6;
/// Words that a passage shorter than [`SHORTEST_TEXT`] has at least to be known again.
const SHORTEST: usize = 3;
/// Characters of a word with a digit in it from which on it is known alone.
const SHORTEST_NUMBER: usize = 6;
/// Letters for one word, where a script writes no spaces.
const LETTERS: usize = 3;
/// Places at which what a file says of a passage is parted from what was written behind it, at most.
const MAX_PLACES: usize = 256;

/// The words of a text in lower case; of a script without spaces, its letters.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars().filter(|c| !is_invisible(*c)) {
        if is_unspaced(c) {
            words.extend([c.to_string(), String::new()]);
        } else if !c.is_alphanumeric() {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether it parts a word without being seen: a soft hyphen, or a character without a width.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

/// Whether a word is known alone: a password, or a number.
fn is_alone(word: &str) -> bool {
    word.contains(char::is_numeric) && word.chars().count() >= SHORTEST_NUMBER
}

fn is_unspaced(c: char) -> bool {
    matches!(Class::of(c), Class::Of(Script::SoutheastAsian | Script::Han | Script::Kana))
}

/// Every so many words in a row.
fn runs(words: &[String], length: usize) -> impl Iterator<Item = u64> {
    words.windows(length).map(|run| {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        hasher.finish()
    })
}

/// Whether words of `said` stand in `after` in a row that stood nowhere in `before`, or one that is known alone.
fn comes_back(said: &str, before: &str, after: &str) -> bool {
    let is_short = said.trim().len() < SHORTEST_TEXT;
    let (said, before, after) = (words(said), words(before), words(after));
    let is_new = |word: &String| after.contains(word) && !before.contains(word);
    if said.iter().any(|word| is_alone(word) && is_new(word)) {
        return true;
    }
    let letters = said.iter().filter(|word| word.starts_with(is_unspaced)).count();
    let unit = if letters * 2 > said.len() { LETTERS } else { 1 };
    if said.is_empty() || is_short && said.len() < SHORTEST * unit {
        return false;
    }
    let length = said.len().min(RUN * unit);
    let mut own: HashSet<u64> = runs(&said, length).collect();
    runs(&before, length).for_each(|run| {
        own.remove(&run);
    });
    runs(&after, length).any(|run| own.contains(&run))
}

/// What a forgotten passage said, as the text of a file begins with it: the hash that is left of it tells.
fn said_of<'t>(node: &Node, text: &'t str) -> Option<&'t str> {
    let hash = node.content_hash().ok()?;
    if text.is_empty() {
        return content_hash(&[]).is_ok_and(|found| found == hash).then_some(text);
    }
    let bytes = text.as_bytes();
    let is_line_end = |at: &usize| bytes[at - 1] == b'\n' || bytes[*at] == b'\n';
    let places = (1..text.len()).filter(is_line_end).take(MAX_PLACES);
    std::iter::once(text.len())
        .chain(places)
        .filter(|at| text.is_char_boundary(*at))
        .map(|at| &text[..at])
        .find(|text| content_hash(&[Block::text(*text)]).is_ok_and(|found| found == hash))
}

impl OpenText {
    /// Refuses texts in which words of a forgotten passage stand elsewhere, or may, as nobody knows any more what it said.
    /// What stands in its own place is left there, whatever it is.
    pub(super) async fn require_forgotten_apart(
        &self,
        app: &App,
        asker: &Asker,
        texts: &[String],
        file: &str,
    ) -> Result<(), CommandError> {
        let nodes: Vec<NodeId> = self.passages.iter().map(|passage| passage.node).collect();
        let rows = app.read(asker, self.tree, move |rows| rows.nodes(&nodes)).await?;
        let pairs = || self.passages.iter().zip(texts).zip(&rows);
        if !rows.is_empty() && rows.iter().all(|row| row.purged) {
            let first = self.passages.first().ok_or_else(|| CommandError::usage("there is no text", ""))?;
            return Err(self.forgotten(first, file, true));
        }
        // Where nothing else changed nothing is stored.
        if pairs().all(|((passage, text), _)| passage.is_forgotten || passage.text == *text) {
            return Ok(());
        }
        let mut forgotten: Vec<(&OpenPassage, &str)> = Vec::new();
        let (mut before, mut after) = (String::new(), String::new());
        for ((passage, text), row) in pairs() {
            let rest = if row.purged {
                let said =
                    if passage.is_forgotten { said_of(&row.node, text) } else { Some(passage.text.as_str()) };
                let Some(said) = said else { return Err(self.forgotten(passage, file, false)) };
                forgotten.push((passage, said));
                // Of what stands there only what is behind it may be stored.
                if text.contains(said.trim()) { text.replacen(said.trim(), "\n", 1) } else { String::new() }
            } else {
                before.push_str(&passage.text);
                before.push('\n');
                text.clone()
            };
            after.push_str(&rest);
            after.push('\n');
        }
        let found = forgotten.iter().find(|(_, said)| comes_back(said, &before, &after));
        found.map_or(Ok(()), |(passage, _)| Err(self.forgotten(passage, file, false)))
    }

    /// The error of a text in which forgotten words cannot be told from others.
    pub(super) fn forgotten(&self, passage: &OpenPassage, file: &str, is_all: bool) -> CommandError {
        let id = &passage.short_id;
        let at = self.marks().lines_of(id, file).map(|lines| format!(" ({lines})")).unwrap_or_default();
        let what = format!("{id} was forgotten since, and what it said may stand elsewhere in the text now");
        let hint = if is_all {
            "nothing of the text it was made of is left: what is new in it can begin another document"
                .to_owned()
        } else {
            format!(
                "take what it said{at} out of a copy, with the first line and the marks, and bring that in as the whole \
                 text"
            )
        };
        CommandError::new("forgotten", 3, what, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "The zanzibarium secret was hidden here tonight.\n\n";

    #[test]
    fn words_in_a_row_are_known_however_they_are_written() {
        let copies = [
            "It rained. ZANZIBARIUM secret,\nwas hidden\n> here tonight",
            "The zanzibarium secret\nwas hidden here, so it was.",
        ];
        for copy in copies {
            assert!(comes_back(SAID, "It rained.", copy), "{copy}");
            assert!(!comes_back(SAID, copy, copy), "what stood elsewhere before: {copy}");
        }
        assert!(!comes_back(SAID, "", "The secret was hidden."), "control");
        assert!(comes_back("Two secret words.", "", "Three. Two secret words"));
        assert!(comes_back("秘密はここに隠されていた。", "", "雨だ。秘密はここに隠\nされていたよ"));
    }

    #[test]
    fn one_long_word_is_known() {
        let key = "AKIAIOSFODNN7EXAMPLE\n\n";
        assert!(comes_back(key, "It rained.", "It rained. `AKIAIOSFODNN7EXAMPLE`"));
        assert!(!comes_back(key, "key: AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"), "it stood elsewhere");
        assert!(
            !comes_back("* * * * * * * * * * *\n\n", "", "* * * * * * * * * * *"),
            "a break has no words"
        );
    }

    #[test]
    fn a_word_with_a_digit_is_known_alone_and_invisible_characters_part_none() {
        assert!(comes_back("5551234", "Call me.", "Call me at 5551234."));
        assert!(comes_back("The password is hunter2.\n\n", "", "He wrote Hunter2 down."));
        assert!(!comes_back("5551234", "It is 5551234.", "Call me at 5551234."), "it stood elsewhere");
        assert!(!comes_back("In 1984 it rained.\n\n", "", "It was 1984."), "control");
        assert!(comes_back("5551234", "", "555\u{ad}12\u{200b}34"));
        assert!(comes_back(
            SAID,
            "",
            "The zanzi\u{ad}barium sec\u{200b}ret was\u{2060} hidden here tonight."
        ));
    }

    #[test]
    fn a_few_words_are_anybodys() {
        for (said, after) in [("He.", "The End. He."), ("I", "It is In. I"), ("他走了。", "他走了")] {
            assert!(!comes_back(said, "", after), "{said}");
        }
    }
}
