//! [`visible`](super::visible) over a byte stream.

use super::{Utf8Stream, push_held_cr, push_visible};

/// Makes a byte stream safe for a terminal as it arrives.
///
/// For any chunking the pieces joined are `visible` of the whole text as `String::from_utf8_lossy` reads it. An
/// incomplete sequence (at most three bytes) and a CR are held back until it is known what follows them.
#[derive(Debug, Clone, Default)]
pub struct VisibleStream {
    utf8: Utf8Stream,
    held_cr: bool,
}

impl VisibleStream {
    /// A stream that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Text that may be printed now.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let text = self.utf8.push(bytes);
        let mut out = String::with_capacity(text.len());
        push_visible(&text, &mut self.held_cr, &mut out);
        out
    }

    /// What is left to print: a CR that ended the stream, U+FFFD for an incomplete sequence. The stream begins
    /// anew.
    #[must_use]
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        push_held_cr(&mut self.held_cr, &mut out);
        if self.utf8.finish() > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        out
    }
}
