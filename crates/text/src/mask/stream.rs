//! Masking as bytes or text arrive.

use std::collections::VecDeque;
use std::fmt;

use super::scan::Scan;
use super::{MaskedSpan, Masker};
use crate::terminal::Utf8Stream;

/// Masks a byte stream. For any chunking the output joined is that of the whole at once.
///
/// Held back is only what may be the beginning of a value, so text that resembles none passes at once; never more
/// than one byte less than [`Masker::longest`]. Bytes need not be UTF-8. `Debug` does not show what is held back.
pub struct MaskStream {
    masker: Masker,
    scan: Scan,
    /// Input from offset `copied` on.
    held: VecDeque<u8>,
    /// Input offset up to which everything was given out or masked.
    copied: usize,
    /// Length of the output so far.
    written: usize,
    /// Whether the first span of `scan` has had its mark written already: it began in settled input and may grow.
    open: bool,
    spans: Vec<MaskedSpan>,
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskStream")
            .field("masker", &self.masker)
            .field("seen", &self.scan.seen)
            .finish_non_exhaustive()
    }
}

/// End of a masking stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail<T> {
    /// The output that was held back.
    pub rest: T,
    /// Masked places of the whole stream, in order.
    pub spans: Vec<MaskedSpan>,
}

impl MaskStream {
    pub(super) fn new(masker: Masker) -> Self {
        let scan = Scan::new(&masker);
        Self { masker, scan, held: VecDeque::new(), copied: 0, written: 0, open: false, spans: Vec::new() }
    }

    /// Masked output that is complete so far.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.scan.feed(&self.masker, bytes);
        self.held.extend(bytes);
        let mut out = Vec::with_capacity(bytes.len());
        let settled = self.scan.settled(&self.masker, &self.held);
        self.write_to(settled, &mut out);
        out
    }

    #[must_use]
    pub fn finish(mut self) -> Tail<Vec<u8>> {
        let mut rest = Vec::with_capacity(self.held.len());
        self.write_to(self.scan.seen, &mut rest);
        Tail { rest, spans: self.spans }
    }

    /// Writes or masks the input before offset `settled`.
    fn write_to(&mut self, settled: usize, out: &mut Vec<u8>) {
        let written_before = self.written;
        while let Some(span) = self.scan.spans.front().filter(|span| span.range.start < settled) {
            let (start, end, secret) = (span.range.start, span.range.end, span.secret);
            let mark = &self.masker.inner.marks[secret];
            if !self.open {
                out.extend(self.held.drain(..start - self.copied));
                self.copied = start;
                out.extend_from_slice(mark.text.as_bytes());
            }
            let masked_to = end.min(settled);
            self.held.drain(..masked_to - self.copied);
            self.copied = masked_to;
            self.open = end > settled;
            if self.open {
                break;
            }
            self.written = written_before + out.len();
            if let Some(span) = self.scan.spans.pop_front() {
                self.spans.push(span.reported(mark, self.written - mark.text.len()));
            }
        }
        if !self.open {
            out.extend(self.held.drain(..settled - self.copied));
            self.copied = settled;
        }
        self.written = written_before + out.len();
    }
}

/// Masks a text stream. As [`MaskStream`], and never gives out part of a character: up to three bytes more are
/// held back.
#[derive(Debug)]
pub struct MaskTextStream {
    bytes: MaskStream,
    utf8: Utf8Stream,
}

impl MaskTextStream {
    pub(super) fn new(masker: Masker) -> Self {
        Self { bytes: MaskStream::new(masker), utf8: Utf8Stream::new() }
    }

    /// Masked output that is complete so far.
    #[must_use]
    pub fn push(&mut self, text: &str) -> String {
        let bytes = self.bytes.push(text.as_bytes());
        self.utf8.push(&bytes)
    }

    #[must_use]
    pub fn finish(mut self) -> Tail<String> {
        let Tail { rest, spans } = self.bytes.finish();
        Tail { rest: self.utf8.push(&rest), spans }
    }
}
