//! White space at the end of what is sent (spec: context §7).
//!
//! Many tokenizers put a space at the beginning of a word, so a text that ends with one makes a model stumble.
//! It is held back from the request and matched against the answer's beginning, so that the document keeps
//! it once, byte for byte.

/// Splits a text into what is sent and the white space held back.
pub fn split(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end().len())
}

/// The part of an answer that is new: without the white space that stands in the document already.
pub fn rest<'a>(held: &str, answer: &'a str) -> &'a str {
    let same = held.chars().zip(answer.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    &answer[same..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_stands_once() {
        let (sent, held) = split("It rained. ");
        assert_eq!((sent, held), ("It rained.", " "));
        assert_eq!(rest(held, " Then it stopped."), "Then it stopped.");
        assert_eq!(rest(held, "Then"), "Then");
        assert_eq!(rest("\n\n", "\nA"), "A");
        assert_eq!(rest(" ", "\nA"), "\nA");
        assert_eq!(rest("", " a"), " a");
    }
}
