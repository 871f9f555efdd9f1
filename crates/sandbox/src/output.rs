//! Output of a command, of which head and tail are kept.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Standard,
    Error,
}

/// Output within a bound of bytes: head and tail, and a count of what was between. Bytes, not text: a cut may part a
/// character, and a program need not print text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedOutput {
    pub head: Vec<u8>,
    pub tail: VecDeque<u8>,
    /// Bytes between head and tail that were read and not kept.
    pub omitted: u64,
    bound: usize,
}

impl BoundedOutput {
    pub fn new(bound: usize) -> Self {
        Self { bound, ..Self::default() }
    }

    pub fn push(&mut self, mut bytes: &[u8]) {
        let head_bound = self.bound - self.bound / 4;
        let room = head_bound.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        bytes = &bytes[room..];
        let tail_bound = self.bound / 4;
        if bytes.len() > tail_bound {
            let skipped = bytes.len() - tail_bound;
            self.omitted += skipped as u64;
            bytes = &bytes[skipped..];
        }
        let over = (self.tail.len() + bytes.len()).saturating_sub(tail_bound);
        self.tail.drain(..over);
        self.omitted += over as u64;
        self.tail.extend(bytes);
    }

    /// Bytes that were printed.
    pub fn total(&self) -> u64 {
        self.head.len() as u64 + self.omitted + self.tail.len() as u64
    }

    /// Text of it, with the count where something was left out.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.omitted == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        format!("{head}\n[… {} bytes left out …]\n{tail}", self.omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_whole() {
        let mut output = BoundedOutput::new(100);
        for _ in 0..10 {
            output.push(b"0123456789");
        }
        assert_eq!((output.omitted, output.total()), (0, 100));
        assert_eq!(output.text(), "0123456789".repeat(10));
    }

    #[test]
    fn of_what_does_not_fit_head_and_tail_are_kept_and_the_rest_is_counted() {
        let mut output = BoundedOutput::new(100);
        output.push(&[b'a'; 75]);
        output.push(&[b'b'; 1_000]);
        output.push(b"the end");
        assert_eq!(output.total(), 1_082);
        assert_eq!(output.head.len() + output.tail.len(), 100);
        assert!(output.text().ends_with("bbbthe end"), "{}", output.text());
        assert!(output.text().contains("[… 982 bytes left out …]"), "{}", output.text());
    }
}
