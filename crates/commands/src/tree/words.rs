//! Places of words in a text.

use std::ops::Range;

use text::grapheme;

use crate::error::CommandError;

/// Characters shown on each side of words that were found.
const AROUND: usize = 20;
/// Places that are listed.
const LISTED: usize = 5;

/// The one place of words in a text, in bytes.
///
/// # Errors
/// `not_found`; `ambiguous` with the places, where they stand there more than once.
pub(super) fn one(text: &str, words: &str) -> Result<Range<usize>, CommandError> {
    let places = all(text, words)?;
    let [only] = places.as_slice() else {
        let listed: Vec<String> = places.iter().take(LISTED).map(|place| shown(text, place)).collect();
        let more = if places.len() > LISTED { ", …" } else { "" };
        let message = format!("{words:?} stands there {} times: {}{more}", places.len(), listed.join(", "));
        return Err(CommandError::new(
            "ambiguous",
            2,
            message,
            "give more of the words around the place you mean",
        ));
    };
    Ok(only.clone())
}

/// The places of words in a text, in bytes; they do not overlap. Words that begin or end inside a grapheme cluster are
/// not there: nothing is cut within what is one character to a person (spec: loom §4).
///
/// # Errors
/// `not_found`; `usage` for no words.
pub(super) fn all(text: &str, words: &str) -> Result<Vec<Range<usize>>, CommandError> {
    if words.is_empty() {
        return Err(CommandError::usage("there are no words to look for", "give words of the text"));
    }
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(words) {
        let place = from + at..from + at + words.len();
        if [place.start, place.end].iter().all(|at| grapheme::ceil(text, *at) == *at) {
            from = place.end;
            places.push(place);
        } else {
            // A place that begins later may overlap this one.
            from = place.start + text[place.start..].chars().next().map_or(1, char::len_utf8);
        }
    }
    if places.is_empty() {
        let hint = "letters, spaces and line breaks count: write them as `drawloom tree text` shows them";
        return Err(CommandError::not_found(
            "place",
            &format!("with the words {words:?} in this text"),
            hint,
        ));
    }
    Ok(places)
}

/// A text with other words at some places of [`all`].
pub(super) fn replaced(text: &str, places: &[Range<usize>], new: &str) -> String {
    let (mut made, mut from) = (String::new(), 0);
    for place in places {
        made.push_str(&text[from..place.start]);
        made.push_str(new);
        from = place.end;
    }
    made + &text[from..]
}

/// A place with what stands around it, by the number of its first character.
fn shown(text: &str, place: &Range<usize>) -> String {
    let before: String = text[..place.start].chars().rev().take(AROUND).collect();
    let before: String = before.chars().rev().collect();
    let after: String = text[place.end..].chars().take(AROUND).collect();
    let offset = grapheme::count(&text[..place.start]);
    format!("at {offset} {:?}", format!("{before}{}{after}", &text[place.clone()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_once_or_named_with_their_places() {
        let text = "It rained. The rain stopped.";
        assert_eq!(one(text, "The rain").unwrap(), 11..19);
        let twice = one(text, "rain").unwrap_err();
        assert_eq!(twice.code, "ambiguous");
        assert!(twice.message.contains("2 times") && twice.message.contains("at 3 "), "{}", twice.message);
        assert_eq!(one(text, "snow").unwrap_err().code, "not_found");
        assert_eq!(one(text, "").unwrap_err().code, "usage");
        assert_eq!(all("aaa", "aa").unwrap().len(), 1);
    }

    #[test]
    fn words_are_found_at_borders_of_characters_alone() {
        let text = "Le cafe\u{301} bar et 👩\u{200D}👩\u{200D}👧 fin.";
        for inside in ["cafe", "et 👩", "👧", "\u{301} bar", "👩\u{200D}👩"] {
            assert_eq!(one(text, inside).unwrap_err().code, "not_found", "{inside}");
        }
        assert_eq!(one(text, "cafe\u{301}").unwrap(), 3..9);
        assert!(one(text, "et 👩\u{200D}👩\u{200D}👧").is_ok());
        assert_eq!(one("e\u{301} e", "e").unwrap(), 4..5);
        // What is not there hides nothing that overlaps it.
        assert_eq!(one("aaa\u{301}", "aa").unwrap(), 0..2);
        assert_eq!(all("x\u{301}xx", "x").unwrap(), [3..4, 4..5]);
        assert_eq!(one("👩\u{200D}👩👩", "👩").unwrap(), 11..15);
        let text = "e\u{301} e e";
        assert_eq!(replaced(text, &all(text, "e").unwrap(), "i"), "e\u{301} i i");
    }
}
