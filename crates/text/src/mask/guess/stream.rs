//! Guessing as text arrives.

use std::fmt;

use super::assigned::is_of_value;
use super::formats::{PRIVATE_KEY_BYTES, open_private_key};
use super::{ANCHORS, IdentityKey, find, has_anchor, is_url_safe, mark};

/// Bytes before what is told next that are read with it: a name before its value, an id before its secret.
const CONTEXT: usize = 1024;
/// Bytes that are held back at most as one word.
const WORD: usize = 16 * 1024;
/// Bytes before a word in which a name may stand that makes it secret.
const NAME: usize = 64;
/// Bytes of a word with letters and digits that is held back whatever stands before it.
const MIXED: usize = 12;
/// Bytes of a word beside what is lost that may be the rest of a secret.
const REST: usize = 16;

/// Replaces what looks like a secret in text that arrives in pieces. The last word is held back where more of it may make it
/// one, and a private key until it ends; a prompt (`Password: `) is told at once. `Debug` does not show what is held back.
#[derive(Default)]
pub struct GuessStream {
    is_off: bool,
    /// What was told last, and what is held back from `told` on.
    text: String,
    told: usize,
    key: IdentityKey,
    /// Whether what comes next stands behind text that is lost.
    is_behind_gap: bool,
}

impl fmt::Debug for GuessStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuessStream").field("is_off", &self.is_off).finish_non_exhaustive()
    }
}

impl GuessStream {
    pub(in crate::mask) fn new(is_on: bool, key: IdentityKey) -> Self {
        Self { is_off: !is_on, key, ..Self::default() }
    }

    /// Text that a piece completes.
    #[must_use]
    pub fn push(&mut self, text: &str) -> String {
        if self.is_off {
            return text.to_owned();
        }
        self.text.push_str(text);
        if !self.pass_gap(false) {
            return String::new();
        }
        let settled = self.settled();
        self.tell(settled)
    }

    /// Goes on behind text that is lost, and with it what was held back.
    pub fn skip(&mut self) {
        self.text.clear();
        self.told = 0;
        self.is_behind_gap = true;
    }

    /// What was held back, once nothing more comes.
    #[must_use]
    pub fn finish(&mut self) -> String {
        self.pass_gap(true);
        self.tell(self.text.len())
    }

    /// Drops the word that a gap has cut, if it may be the rest of a secret. Whether it is known by now.
    fn pass_gap(&mut self, ends: bool) -> bool {
        if !self.is_behind_gap {
            return true;
        }
        let word = self.text.bytes().take_while(|byte| is_of_value(*byte)).count();
        if word == self.text.len() && word < WORD && !ends {
            return false;
        }
        let rest = &self.text.as_bytes()[..word];
        if word >= REST && rest.iter().any(u8::is_ascii_digit) && rest.iter().any(u8::is_ascii_alphabetic) {
            self.text.drain(..word);
        }
        self.is_behind_gap = false;
        true
    }

    /// Up to where nothing changes whatever comes.
    fn settled(&self) -> usize {
        let bytes = self.text.as_bytes();
        let word = bytes.iter().rev().take_while(|byte| is_of_value(**byte)).count();
        let start = bytes.len() - word;
        let settled = if word <= WORD && may_become_secret(bytes, start) { start } else { bytes.len() };
        let key = open_private_key(bytes).filter(|start| bytes.len() - start < PRIVATE_KEY_BYTES);
        key.map_or(settled, |start| settled.min(start)).max(self.told)
    }

    fn tell(&mut self, settled: usize) -> String {
        let mut out = String::with_capacity(settled - self.told);
        if settled > self.told {
            for guess in find(&self.text[..settled]) {
                if guess.range.end <= self.told {
                    continue;
                }
                out.push_str(&self.text[self.told..guess.range.start.max(self.told)]);
                out.push_str(&mark(&guess, &self.text, &self.key));
                self.told = guess.range.end;
            }
            out.push_str(&self.text[self.told..settled]);
            self.told = settled;
        }
        let is_near = |start: &usize| self.text.len() - start < PRIVATE_KEY_BYTES;
        let keep = open_private_key(self.text.as_bytes()).filter(is_near).unwrap_or(usize::MAX);
        let from = crate::grapheme::floor(&self.text, self.told.saturating_sub(CONTEXT).min(keep));
        self.text.drain(..from);
        self.told -= from;
        out
    }
}

/// Whether the word at the end of a text may be a secret, or the beginning of one: a beginning stands in it or before it in its line,
/// it ends as one begins, or it mixes letters and digits as the secret beside an id does.
fn may_become_secret(bytes: &[u8], start: usize) -> bool {
    let word = &bytes[start..];
    if word.is_empty() || word.ends_with(b":") {
        return false;
    }
    let part = word.rsplit(|byte| !is_url_safe(*byte)).next().unwrap_or_default();
    let begins = !part.is_empty() && ANCHORS.iter().any(|(anchor, _)| anchor.as_bytes().starts_with(part));
    let mixes = word.len() >= MIXED
        && word.iter().any(u8::is_ascii_digit)
        && word.iter().any(u8::is_ascii_alphabetic);
    let line = memchr::memrchr(b'\n', &bytes[..start]).map_or(0, |end| end + 1);
    begins || mixes || has_anchor(&bytes[line.max(start.saturating_sub(NAME))..])
}
