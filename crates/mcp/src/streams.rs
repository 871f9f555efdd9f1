//! Streams of a server's program: what it prints as a reader, the end of its errors, and its input.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use rustix::pipe::{PipeFlags, pipe_with};
use sandbox::{OutputSink, OutputStream};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// Bytes of one message at most; a server that says a longer one is ended.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;
/// Pieces of output that wait to be read, of 64 KiB at most each: with more the program is not read from.
const PIECES: usize = 16;
/// Bytes of the end of the errors that are kept.
const ERRORS: usize = 4 << 10;

/// What a program prints to its standard output.
pub(crate) struct PrintedOutput {
    pieces: mpsc::Receiver<Vec<u8>>,
    piece: Vec<u8>,
    read: usize,
    /// Bytes since the last end of a line.
    line: usize,
    is_too_long: Arc<AtomicBool>,
}

/// End of what a program prints to its standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct ErrorsTail(Arc<Mutex<KeptErrors>>);

#[derive(Debug, Default)]
struct KeptErrors {
    bytes: VecDeque<u8>,
    /// Whether something stood before them.
    is_cut: bool,
}

/// This side of the streams of a program.
pub(crate) struct Streams {
    pub(crate) output: PrintedOutput,
    pub(crate) errors: ErrorsTail,
    /// Whether a message was too long, so that the output ended there.
    pub(crate) is_too_long: Arc<AtomicBool>,
    pub(crate) input: pipe::Sender,
}

impl Streams {
    /// Makes them, with what a program is started with; it needs a runtime of this thread.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(crate) fn open() -> io::Result<(Self, OutputSink, OwnedFd)> {
        let (its_input, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        let input = pipe::Sender::from_owned_fd(ours)?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let (errors, is_too_long) = (ErrorsTail::default(), Arc::new(AtomicBool::default()));
        let tail = errors.clone();
        let sink = move |stream: OutputStream, bytes: &[u8]| match stream {
            OutputStream::Error => tail.push(bytes),
            // Nobody reads it any more: the server is about to be ended.
            OutputStream::Standard => drop(sender.blocking_send(bytes.to_vec())),
        };
        let output = PrintedOutput {
            pieces,
            piece: Vec::new(),
            read: 0,
            line: 0,
            is_too_long: Arc::clone(&is_too_long),
        };
        Ok((Self { output, errors, is_too_long, input }, Box::new(sink), its_input))
    }
}

impl AsyncRead for PrintedOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.read == this.piece.len() {
            match ready!(this.pieces.poll_recv(context)) {
                Some(piece) => (this.piece, this.read) = (piece, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let rest = &this.piece[this.read..];
        let taken = &rest[..rest.len().min(buffer.remaining())];
        this.line = match taken.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => taken.len() - end - 1,
            None => this.line + taken.len(),
        };
        if this.line > LONGEST_MESSAGE {
            this.is_too_long.store(true, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        buffer.put_slice(taken);
        this.read += taken.len();
        Poll::Ready(Ok(()))
    }
}

impl ErrorsTail {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend(bytes);
        let over = kept.bytes.len().saturating_sub(ERRORS);
        kept.is_cut |= over > 0;
        kept.bytes.drain(..over);
    }

    /// The last whole lines of it, trimmed: the end of a secret would be masked by nobody. Empty where there is none.
    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        let whole = match (kept.is_cut, bytes.iter().position(|byte| *byte == b'\n')) {
            (false, _) => &bytes[..],
            (true, Some(end)) => &bytes[end..],
            (true, None) => &[],
        };
        String::from_utf8_lossy(whole).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn output_is_read_as_it_comes_and_ends_at_a_message_that_is_too_long() {
        let (Streams { mut output, is_too_long, errors, .. }, mut sink, _) = Streams::open().unwrap();
        let told = std::thread::spawn(move || {
            sink(OutputStream::Error, b"first\n");
            sink(OutputStream::Error, &vec![b'x'; ERRORS]);
            sink(OutputStream::Standard, b"{}\n{");
            for _ in 0..=LONGEST_MESSAGE / (64 << 10) {
                sink(OutputStream::Standard, &[b'y'; 64 << 10]);
            }
        });
        let mut read = Vec::new();
        output.read_to_end(&mut read).await.unwrap();
        drop(output);
        told.join().unwrap();
        assert!(read.starts_with(b"{}\n{y") && read.len() <= LONGEST_MESSAGE + 4, "{}", read.len());
        assert!(is_too_long.load(Ordering::Relaxed));
        assert_eq!(errors.text(), "", "of a line that was cut nothing is told");
        errors.push(b"\nlast\n");
        assert_eq!(errors.text(), "last");
    }
}
