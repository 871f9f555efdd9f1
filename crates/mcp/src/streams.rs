//! Streams of a server's program: what it prints as a reader, the end of its errors, and its input.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use sandbox::{OutputSink, OutputStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep};

use crate::request_params::as_read;

/// Bytes of one message at most; a server that says a longer one is ended.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;
/// Pieces of output that wait to be read, of 64 KiB at most each: with more the program is not read from.
const PIECES: usize = 16;
/// Bytes of the end of the errors that are kept.
const ERRORS: usize = 4 << 10;

/// How long a program may read nothing of what it is told.
pub(crate) const UNREAD: Duration = Duration::from_secs(10);
/// Lines and bytes that are read of a program meanwhile, at most: each line may be a request, whose answer waits.
const UNREAD_LINES: usize = 1_000;
const UNREAD_BYTES: usize = 2 * LONGEST_MESSAGE;

/// Whether a program reads what it is told, as both of its streams know it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading(Arc<Mutex<ReadingState>>);

#[derive(Debug, Default)]
struct ReadingState {
    /// Whether something waits that it does not read.
    waits: bool,
    /// Whether it read nothing for too long.
    has_stopped: bool,
    /// Lines and bytes that it printed since it was last known to read.
    lines: usize,
    bytes: usize,
    reader: Option<Waker>,
}

impl Reading {
    fn state(&self) -> MutexGuard<'_, ReadingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.state().has_stopped
    }

    /// Changes the state, and has whoever reads its output look again.
    fn set(&self, change: impl FnOnce(&mut ReadingState)) {
        let mut state = self.state();
        change(&mut state);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }
}

/// Standard input of a program.
pub(crate) struct ProgramInput {
    pipe: pipe::Sender,
    reading: Reading,
    /// When it is waited for no longer.
    until: Option<Pin<Box<Sleep>>>,
}

impl ProgramInput {
    /// Something that is done with the pipe, which a program that reads nothing keeps waiting.
    fn poll_with<T>(
        &mut self,
        context: &mut Context<'_>,
        act: impl FnOnce(Pin<&mut pipe::Sender>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.reading.has_stopped() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if let Poll::Ready(done) = act(Pin::new(&mut self.pipe), context) {
            if self.until.take().is_some() {
                self.reading.set(|state| (state.waits, state.lines, state.bytes) = (false, 0, 0));
            }
            return Poll::Ready(done);
        }
        if self.until.is_none() {
            self.reading.state().waits = true;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(UNREAD)));
        ready!(until.as_mut().poll(context));
        self.reading.set(|state| state.has_stopped = true);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for ProgramInput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(context, |pipe, context| pipe.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(context, AsyncWrite::poll_shutdown)
    }
}

/// Whole lines of what a program prints to its standard output, each of which can be answered if it is a request.
pub(crate) struct PrintedOutput {
    reading: Reading,
    pieces: mpsc::Receiver<Vec<u8>>,
    /// Lines that came, and how far they are read.
    lines: Vec<u8>,
    read: usize,
    /// What came since the last end of a line.
    line: Vec<u8>,
    is_too_long: Arc<AtomicBool>,
}

impl PrintedOutput {
    /// Takes a piece in, which may end lines.
    fn take_in(&mut self, piece: &[u8]) {
        let mut parts = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.line.extend_from_slice(part);
            if parts.peek().is_none() {
                break;
            }
            let line = std::mem::take(&mut self.line);
            match as_read(&line) {
                Some(request) => self.lines.extend_from_slice(request.as_bytes()),
                None => self.lines.extend_from_slice(&line),
            }
            self.lines.push(b'\n');
        }
    }
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
    pub(crate) input: ProgramInput,
    pub(crate) reading: Reading,
}

impl Streams {
    /// Makes them, with what a program is started with; it needs a runtime of this thread.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(crate) fn open() -> io::Result<(Self, OutputSink, OwnedFd)> {
        let (its_input, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        let reading = Reading::default();
        let pipe = pipe::Sender::from_owned_fd(ours)?;
        let input = ProgramInput { pipe, reading: reading.clone(), until: None };
        let (sender, pieces) = mpsc::channel(PIECES);
        let (errors, is_too_long) = (ErrorsTail::default(), Arc::new(AtomicBool::default()));
        let tail = errors.clone();
        let sink = move |stream: OutputStream, bytes: &[u8]| match stream {
            OutputStream::Error => tail.push(bytes),
            // Nobody reads it any more: the server is about to be ended.
            OutputStream::Standard => drop(sender.blocking_send(bytes.to_vec())),
        };
        let output = PrintedOutput {
            reading: reading.clone(),
            pieces,
            lines: Vec::new(),
            read: 0,
            line: Vec::new(),
            is_too_long: Arc::clone(&is_too_long),
        };
        Ok((Self { output, errors, is_too_long, input, reading }, Box::new(sink), its_input))
    }
}

impl AsyncRead for PrintedOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        {
            let mut state = this.reading.state();
            if state.has_stopped {
                return Poll::Ready(Ok(()));
            }
            if state.waits && (state.lines >= UNREAD_LINES || state.bytes >= UNREAD_BYTES) {
                state.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            state.reader = Some(context.waker().clone());
        }
        while this.read == this.lines.len() {
            (this.lines, this.read) = (Vec::new(), 0);
            if this.line.len() > LONGEST_MESSAGE {
                this.is_too_long.store(true, Ordering::Relaxed);
                return Poll::Ready(Ok(()));
            }
            match ready!(this.pieces.poll_recv(context)) {
                Some(piece) => this.take_in(&piece),
                None => return Poll::Ready(Ok(())),
            }
        }
        let rest = &this.lines[this.read..];
        let taken = &rest[..rest.len().min(buffer.remaining())];
        let mut state = this.reading.state();
        if state.waits {
            state.lines += taken.iter().filter(|byte| **byte == b'\n').count();
            state.bytes += taken.len();
        }
        drop(state);
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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
        assert_eq!(read, b"{}\n");
        assert!(is_too_long.load(Ordering::Relaxed));
        assert_eq!(errors.text(), "", "of a line that was cut nothing is told");
        errors.push(b"\nlast\n");
        assert_eq!(errors.text(), "last");
    }

    /// Each line may be a request, whose answer would wait.
    #[tokio::test(start_paused = true)]
    async fn a_program_that_reads_nothing_is_not_read_from_without_end_and_then_no_more() {
        let (Streams { mut output, mut input, reading, .. }, mut sink, _its_input) = Streams::open().unwrap();
        // As much as waits to be read.
        let printed = tokio::task::spawn_blocking(move || {
            for _ in 0..PIECES {
                sink(OutputStream::Standard, &b"{}\n".repeat(UNREAD_LINES));
            }
            sink
        });
        let _sink = printed.await.unwrap();
        let mut read = Vec::new();
        let (told, ended) = tokio::join!(input.write_all(&[b'x'; 1 << 20]), output.read_to_end(&mut read));
        assert_eq!((told.unwrap_err().kind(), ended.unwrap()), (io::ErrorKind::TimedOut, read.len()));
        // The clock of the test may go on before a line has come.
        assert!(read.len() <= 3 * UNREAD_LINES, "{}", read.len());
        assert!(reading.has_stopped());
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_reads_late_is_told_all() {
        let (Streams { mut input, reading, .. }, _sink, its_input) = Streams::open().unwrap();
        let mut its_input = std::fs::File::from(its_input);
        let reader = tokio::task::spawn_blocking(move || {
            let mut read = vec![0; 1 << 20];
            io::Read::read_exact(&mut its_input, &mut read).map(|()| read)
        });
        input.write_all(&[b'x'; 1 << 20]).await.unwrap();
        assert!(reader.await.unwrap().is_ok() && !reading.has_stopped());
    }
}
