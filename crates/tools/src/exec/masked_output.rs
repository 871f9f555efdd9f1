//! Output of a command, masked as it is read piece by piece: what may be the beginning of a secret, known or guessed, waits
//! until more comes (spec: security §11). Its colours go before that: they say nothing to a model, and one within a secret
//! would hide it.

use text::mask::{GuessStream, MaskStream, Masker};
use text::terminal::{UnstyledStream, Utf8Stream};

/// Output as a model is told of it. Its `Debug` shows nothing of what is held back.
#[derive(Debug)]
pub(super) struct MaskedOutput {
    masker: Masker,
    unstyled: UnstyledStream,
    stream: MaskStream,
    text: Utf8Stream,
    guesses: GuessStream,
    /// Bytes still to come that may be the end of a secret whose beginning is lost.
    suspect: usize,
}

impl MaskedOutput {
    pub(super) fn new(masker: &Masker) -> Self {
        let (masker, stream, guesses) = (masker.clone(), masker.stream(), masker.guess_stream());
        let (unstyled, text) = (UnstyledStream::new(), Utf8Stream::new());
        Self { masker, unstyled, stream, text, guesses, suspect: 0 }
    }

    /// Goes on behind bytes that are lost. What was held back is lost with them, and so is what may be the end of a secret.
    pub(super) fn skip(&mut self) {
        let suspect = self.masker.longest().saturating_sub(1);
        let mut guesses = std::mem::replace(&mut self.guesses, self.masker.guess_stream());
        guesses.skip();
        *self = Self { suspect, guesses, ..Self::new(&self.masker) };
    }

    /// Text that a piece completes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let bytes = self.unstyled.push(bytes);
        self.push_unstyled(&bytes)
    }

    fn push_unstyled(&mut self, bytes: &[u8]) -> String {
        let (suspect, bytes) = bytes.split_at(self.suspect.min(bytes.len()));
        self.suspect -= suspect.len();
        let _dropped = self.stream.push(suspect);
        let text = self.text.push(&self.stream.push(bytes));
        self.guesses.push(&text)
    }

    /// What was held back, once nothing more comes.
    pub(super) fn finish(&mut self) -> String {
        let held = self.unstyled.finish();
        let last = self.push_unstyled(&held);
        let ended = std::mem::replace(self, Self::new(&self.masker));
        let Self { stream, mut text, mut guesses, suspect, .. } = ended;
        let mut rest = last + &guesses.push(&text.push(&stream.finish().rest));
        rest.push_str(&guesses.finish());
        if text.finish() > 0 {
            rest.push(char::REPLACEMENT_CHARACTER);
        }
        if suspect > 0 { String::new() } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use text::mask::Secret;

    use super::*;

    const KEY: &str = "sk-drawloom-0123456789abcdef";

    fn output() -> MaskedOutput {
        MaskedOutput::new(&Masker::new(&[Secret::new("key", KEY).unwrap()]).unwrap())
    }

    #[test]
    fn a_secret_in_two_pieces_is_masked_wherever_it_is_cut() {
        let whole = format!("ä {KEY} ö");
        for at in 0..=whole.len() {
            let mut output = output();
            let told =
                [output.push(&whole.as_bytes()[..at]), output.push(&whole.as_bytes()[at..]), output.finish()];
            assert!(
                told.iter().all(|piece| !piece.contains(&KEY[..8]) && !piece.contains(&KEY[8..])),
                "{at}: {told:?}"
            );
            assert_eq!(told.concat(), "ä ⟦secret:key⟧ ö", "{at}");
        }
    }

    #[test]
    fn no_colour_within_a_secret_hides_it_known_or_guessed() {
        let colour = |part: &str| format!("\x1b[01;31m\x1b[K{part}\x1b[m\x1b[K");
        let guessed = ["ghp_", "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xYz"].concat();
        for secret in [KEY, &guessed] {
            for at in 1..secret.len() {
                let text = format!("{}{} end", &secret[..at], colour(&secret[at..]));
                let mut output = output();
                let told = output.push(text.as_bytes()) + &output.finish();
                assert!(!told.contains(&secret[..8]) && told.ends_with(" end"), "{at}: {told}");
            }
        }
    }

    #[test]
    fn what_only_begins_as_one_is_told_once_it_goes_on_or_ends() {
        let mut output = output();
        assert_eq!(output.push(b"at sk-draw"), "at ");
        assert_eq!(output.push(b"bridge, sk-"), "sk-drawbridge, ");
        assert_eq!(output.finish(), "sk-");
        assert_eq!(output.push("ä".as_bytes().split_at(1).0), "");
        assert_eq!(output.finish(), "\u{fffd}");
    }

    #[test]
    fn no_half_of_a_secret_stands_beside_what_is_lost() {
        let bytes = format!("{KEY} and {} and {KEY} end", ".".repeat(200));
        for lost in 1..KEY.len() {
            let mut output = output();
            assert_eq!(output.push(&KEY.as_bytes()[..lost]), "");
            output.skip();
            let told = output.push(&bytes.as_bytes()[lost..]) + &output.finish();
            assert!(told.ends_with("... and ⟦secret:key⟧ end"), "{lost}: {told}");
            assert!(!told.contains("def"), "{lost}: {told}");
        }
        // One that begins in what is not told is masked all the same.
        let mut output = output();
        output.skip();
        let bytes = format!("{}{KEY} end", ".".repeat(output.suspect - 5));
        assert_eq!(output.push(bytes.as_bytes()) + &output.finish(), "⟦secret:key⟧ end");
    }
}
