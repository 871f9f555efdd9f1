//! The part of a text that shows why it was found.
//!
//! The index knows no offsets of the original text, so matches are looked for here, word by word, with the tokeniser
//! that decides what matches. Of several words the place is shown where most of them stand close together: the first
//! place of any would be that of the commonest.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use text::bigrams::{Query, Term, tokenize};
use text::class::is_cjk;
use text::grapheme;

/// Bytes shown before the match, at most; more of them behind it.
const BEFORE: usize = 60;
/// Bytes shown from the match on, at most.
const BEHIND: usize = 180;
/// Bytes looked at where a match may begin: longer words and phrases are shown from the beginning of the text.
const MATCHED: usize = 256;
/// Bytes within which words stand close together: as many are shown.
const CLOSE: usize = 140;
/// Bytes behind the first match that are looked through for a better place.
const LOOKED_THROUGH: usize = 256 << 10;

/// The text around the first place where most terms stand close together, on one line.
pub(super) fn around(text: &str, query: &Query) -> String {
    let at = best_match(text, query).unwrap_or(0);
    let from = word_start(text, grapheme::ceil(text, at.saturating_sub(BEFORE)).min(at), at);
    let to = grapheme::floor(text, at.saturating_add(BEHIND)).max(from);
    let mut line = String::new();
    if from > 0 {
        line.push('…');
    }
    let words = text[from..to].split_whitespace();
    for (index, word) in words.enumerate() {
        if index > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    if to < text.len() {
        line.push('…');
    }
    line
}

/// What of a line the terms of a query meet, in bytes.
pub(super) fn matches_in(line: &str, query: &Query) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = first_match(&line[from..], query) {
        let start = from + at;
        let words = query.terms.iter().filter(|term| matches(&line[start..], &only(term)));
        let count = words.map(|term| if let Term::Phrase { tokens, .. } = term { tokens.len() } else { 1 });
        let end = start + words_end(&line[start..], count.max().unwrap_or(1));
        found.push(start..end);
        from = end;
    }
    found
}

fn only(term: &Term) -> Query {
    Query { terms: vec![term.clone()], ..Query::parse("") }
}

/// Where so many words end; of a script without spaces, as many bigrams.
fn words_end(text: &str, count: usize) -> usize {
    let mut left = count;
    let mut end = 0;
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        if is_cjk(c) {
            // A word ends where such a script begins.
            left -= usize::from(std::mem::take(&mut in_word));
            if left == 0 {
                break;
            }
            // Bigrams overlap: one more character than there are of them.
            let taken = text.char_indices().skip_while(|(byte, _)| *byte < at).take(left + 1);
            let last = taken.take_while(|(_, c)| is_cjk(*c)).last();
            return last.map_or(end, |(byte, c)| byte + c.len_utf8());
        }
        match (is_word(c), in_word) {
            (true, _) => (in_word, end) = (true, at + c.len_utf8()),
            (false, true) => {
                (in_word, left) = (false, left - 1);
                if left == 0 {
                    break;
                }
            }
            (false, false) => {}
        }
    }
    end.max(text.chars().next().map_or(0, char::len_utf8))
}

/// The first start of a word from `from` on, if it comes before `at`.
fn word_start(text: &str, from: usize, at: usize) -> usize {
    if from == 0 {
        return 0;
    }
    let blank = text[from..at].find(char::is_whitespace);
    blank.map_or(from, |blank| {
        let rest = &text[from + blank..at];
        from + blank + (rest.len() - rest.trim_start().len())
    })
}

/// The first byte of the first place where most terms match within [`CLOSE`].
fn best_match(text: &str, query: &Query) -> Option<usize> {
    let mut close: VecDeque<(usize, usize)> = VecDeque::new();
    let mut best: Option<(usize, usize)> = None;
    let mut end = usize::MAX;
    for at in word_starts(text) {
        if at > end {
            break;
        }
        let known = close.len();
        close.extend(matching(&text[at..], query).map(|term| (at, term)));
        if close.len() == known {
            continue;
        }
        // A word that comes again further on widens the place for nothing.
        while let Some((first, term)) = close.front()
            && (at - first > CLOSE || close.iter().skip(1).any(|(_, later)| later == term))
        {
            close.pop_front();
        }
        let terms: BTreeSet<usize> = close.iter().map(|(_, term)| *term).collect();
        let Some((first, _)) = close.front() else { continue };
        if best.is_none_or(|(most, _)| terms.len() > most) {
            best = Some((terms.len(), *first));
        }
        end = end.min(at.saturating_add(LOOKED_THROUGH));
        if terms.len() == query.terms.len() {
            break;
        }
    }
    best.map(|(_, at)| at)
}

/// The first byte at which a term matches.
fn first_match(text: &str, query: &Query) -> Option<usize> {
    word_starts(text).find(|at| matches(&text[*at..], query))
}

/// Where words begin; in a script without spaces, every character.
fn word_starts(text: &str) -> impl Iterator<Item = usize> {
    let mut before = None;
    text.char_indices().filter_map(move |(at, c)| {
        let starts =
            is_word(c) && before.is_none_or(|before| !is_word(before) || is_cjk(before) || is_cjk(c));
        before = Some(c);
        starts.then_some(at)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || text::class::is_invisible(c)
}

/// Whether a term is met by the beginning of a text.
fn matches(text: &str, query: &Query) -> bool {
    matching(text, query).next().is_some()
}

/// The terms that are met by the beginning of a text, by their numbers.
fn matching(text: &str, query: &Query) -> impl Iterator<Item = usize> {
    let end = grapheme::floor(text, MATCHED.min(text.len()));
    let mut word = None;
    let mut line = None;
    query
        .terms
        .iter()
        .enumerate()
        .filter(move |(_, term)| match term {
            Term::Word(_) | Term::Prefix(_) => {
                let first = word.get_or_insert_with(|| first_token(&text[..end]));
                first.as_ref().is_some_and(|token| match term {
                    Term::Word(wanted) => token == wanted,
                    Term::Prefix(beginning) => token.starts_with(beginning),
                    Term::Phrase { .. } => false,
                })
            }
            Term::Phrase { tokens, prefix } => {
                let found: &Vec<String> = line.get_or_insert_with(|| tokenize(&text[..end]));
                let Some((last, before)) = tokens.split_last() else { return false };
                found.starts_with(before)
                    && found
                        .get(before.len())
                        .is_some_and(|token| token == last || (*prefix && token.starts_with(last)))
            }
        })
        .map(|(number, _)| number)
}

/// The first token of a text that begins with one.
fn first_token(text: &str) -> Option<String> {
    let end = text.find(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let end = if text.chars().next().is_some_and(is_cjk) {
        // Two characters make the bigram; a third shows that the run goes on.
        text.char_indices().nth(3).map_or(end, |(third, _)| third.min(end))
    } else {
        end
    };
    tokenize(&text[..end]).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(text: &str, query: &str) -> String {
        around(text, &Query::parse(query))
    }

    #[test]
    fn the_first_match_is_shown_with_what_stands_around_it() {
        let text = format!("{} the Grey heron stood.\n\nStill {}", "rain ".repeat(40), "more ".repeat(60));
        let cut = snippet(&text, "heron");
        assert!(cut.starts_with("…rain rain") && cut.contains("the Grey heron stood. Still more"), "{cut}");
        assert!(cut.ends_with('…'), "{cut}");
        assert!(cut.len() <= BEFORE + BEHIND + 6);
    }

    #[test]
    fn the_place_is_shown_where_most_words_stand_close_together() {
        let text = format!(
            "The rain fell. {} The lamp by the door of the mill went out. {}",
            "Again the rain, the wind. ".repeat(20),
            "And the rain. ".repeat(20)
        );
        let cut = snippet(&text, "the lamp mill");
        assert!(cut.contains("The lamp by the door of the mill"), "{cut}");
        assert!(snippet(&text, "the rain").starts_with("The rain fell"), "the first of equals");
        let apart = format!("heron {} reeds", "x ".repeat(400));
        assert!(snippet(&apart, "heron reeds").starts_with("heron"), "{apart}");
    }

    #[test]
    fn words_are_met_as_the_index_meets_them() {
        assert_eq!(first_match("a heart, an ART", &Query::parse("art")), Some(12));
        assert_eq!(first_match("the café", &Query::parse("CAFE")), Some(4));
        assert_eq!(first_match("brown. quick brown", &Query::parse("\"quick br\"*")), Some(7));
        assert_eq!(first_match("re-reading", &Query::parse("read*")), Some(3));
        assert_eq!(first_match("漢字検索", &Query::parse("検索")), Some(6));
        assert_eq!(first_match("漢字検索", &Query::parse("索")), Some(9));
        assert_eq!(first_match("nothing here", &Query::parse("else")), None);
    }

    #[test]
    fn what_was_met_is_marked() {
        let met = |line: &str, query: &str| -> Vec<String> {
            matches_in(line, &Query::parse(query)).into_iter().map(|at| line[at].to_owned()).collect()
        };
        assert_eq!(met("A heron, two HERONS, a heron.", "heron"), ["heron", "heron"]);
        assert_eq!(met("A heron漢字 there", "heron"), ["heron"]);
        assert_eq!(met("A heron, two HERONS.", "heron*"), ["heron", "HERONS"]);
        assert_eq!(met("the quick, brown fox", "\"quick brown\""), ["quick, brown"]);
        assert_eq!(met("漢字検索です", "検索"), ["検索"]);
        assert_eq!(met("nothing", "else"), [""; 0]);
    }

    #[test]
    fn no_character_is_cut() {
        let text = "👩‍💻 ".repeat(60) + "needle " + &"é".repeat(300);
        let cut = snippet(&text, "needle");
        assert!(cut.contains("needle") && cut.starts_with("…👩‍💻 👩‍💻"), "{cut}");
    }
}
