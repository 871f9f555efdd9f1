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

/// The places of words in a text, in bytes; they do not overlap.
///
/// # Errors
/// `not_found`; `usage` for no words.
pub(super) fn all(text: &str, words: &str) -> Result<Vec<Range<usize>>, CommandError> {
    if words.is_empty() {
        return Err(CommandError::usage("there are no words to look for", "give words of the text"));
    }
    let places: Vec<_> = text.match_indices(words).map(|(at, found)| at..at + found.len()).collect();
    if places.is_empty() {
        let hint = "`drawloom tree text TREE` shows the text; letters, spaces and line breaks count";
        return Err(CommandError::not_found(
            "place",
            &format!("with the words {words:?} in this text"),
            hint,
        ));
    }
    Ok(places)
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
}
