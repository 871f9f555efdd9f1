//! Stop texts, and characters that several tokens make up.
//!
//! A token may end in the middle of a character, or of a stop text. Its bytes are held back until they are whole
//! characters and cannot become a stop text any more, so no text that was sent is ever withdrawn.

/// Filter of an answer's bytes: text leaves it once no stop text can begin in it.
#[derive(Debug, Default)]
pub(crate) struct StopFilter {
    held: Vec<u8>,
    stops: Vec<Vec<u8>>,
}

/// Text that left the filter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilteredText {
    pub(crate) text: String,
    /// Bytes of the tokens the text was made of. More or fewer than the text's where bytes were no UTF-8.
    pub(crate) bytes: usize,
    /// Whether a stop text follows it.
    pub(crate) stopped: bool,
}

impl StopFilter {
    /// Empty stop texts are left out: they would stop before the first token.
    pub(crate) fn new(stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).map(|stop| stop.clone().into_bytes());
        Self { held: Vec::new(), stops: stops.collect() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> FilteredText {
        self.held.extend_from_slice(bytes);
        let first = self.stops.iter().filter_map(|stop| find(&self.held, stop)).min();
        match first {
            Some(at) => self.take(at, true),
            None => self.take(self.certain(), false),
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// The rest, when the answer has ended.
    pub(crate) fn finish(&mut self) -> FilteredText {
        self.take(self.held.len(), false)
    }

    /// Bytes that are whole characters and no beginning of a stop.
    fn certain(&self) -> usize {
        let whole = self.held.len() - unfinished(&self.held);
        (0..whole)
            .find(|&at| self.stops.iter().any(|stop| stop.starts_with(&self.held[at..])))
            .unwrap_or(whole)
    }

    fn take(&mut self, end: usize, stopped: bool) -> FilteredText {
        let rest = self.held.split_off(end);
        let bytes = std::mem::replace(&mut self.held, rest);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        FilteredText { text, bytes: bytes.len(), stopped }
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Bytes at the end that may be the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let begun = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
    if begun { tail.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(stops: &[&str], tokens: &[&[u8]]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut filter = StopFilter::new(&stops);
        let mut text = String::new();
        for token in tokens {
            let filtered = filter.push(token);
            text.push_str(&filtered.text);
            if filtered.stopped {
                return (text, true);
            }
        }
        text.push_str(&filter.finish().text);
        (text, false)
    }

    #[test]
    fn a_stop_is_found_across_tokens_and_not_shown() {
        assert_eq!(run(&["\n\n"], &[b"one\n", b"\ntwo"]), ("one".to_owned(), true));
        assert_eq!(run(&["END", "\n"], &[b"a E", b"N", b"D b"]), ("a ".to_owned(), true));
    }

    #[test]
    fn what_only_began_like_a_stop_is_shown() {
        assert_eq!(run(&["END"], &[b"a E", b"N", b"T"]), ("a ENT".to_owned(), false));
        assert_eq!(run(&["END"], &[b"EN"]), ("EN".to_owned(), false));
    }

    #[test]
    fn half_a_character_is_held_back() {
        let mut filter = StopFilter::new(&[]);
        assert_eq!(filter.push(b"a\xe4\xb8").text, "a");
        assert_eq!(filter.push(b"\xad!").text, "\u{4e2d}!");
        assert_eq!(filter.push(b"\xff").text, "\u{fffd}");
        assert_eq!(filter.push(b"\xf0\x9f").text, "");
        assert_eq!(filter.finish().text, "\u{fffd}");
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_text_is_the_same(text in "\\PC{0,24}", cuts in proptest::collection::vec(0_usize..80, 0..6), stop in "[a-z ]{1,3}") {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            let (found, stopped) = run(&[&stop], &pieces);
            match text.find(&stop) {
                Some(at) => prop_assert_eq!((found.as_str(), stopped), (&text[..at], true)),
                None => prop_assert_eq!((found, stopped), (text, false)),
            }
        }
    }
}
