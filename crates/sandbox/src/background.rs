//! Background command of a session: its output by pieces, its input, its end.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::outcome::{Outcome, SandboxError};
use crate::supervisor::{OutputSink, RunningCommand};

/// How often it is tried again to write to a command that does not read.
const WRITE_AGAIN: Duration = Duration::from_millis(10);

/// Command in the background. Dropping it ends the command; what is done after a command is done all the same.
#[derive(Debug)]
pub struct BackgroundCommand {
    running: RunningCommand,
    outcome: Option<Result<Outcome, SandboxError>>,
    input: Option<OwnedFd>,
    log: Arc<OutputLog>,
}

/// Piece of a command's output: both streams, as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPiece {
    pub bytes: Vec<u8>,
    /// Bytes before it that were printed after the place asked for, and are kept no more.
    pub omitted: u64,
    /// Place after it, to ask from the next time: the number of bytes printed until then.
    pub end: u64,
}

/// End of waiting for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextWait {
    /// The text was printed; the place after it.
    Printed(u64),
    /// The command ended without it.
    Ended,
    TimedOut,
}

impl BackgroundCommand {
    pub(crate) fn new(running: RunningCommand, input: OwnedFd, log: Arc<OutputLog>) -> io::Result<Self> {
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        Ok(Self { running, outcome: None, input: Some(input), log })
    }

    /// Output after a place, at most so many bytes; 0 is the beginning.
    pub fn output(&self, from: u64, at_most: usize) -> OutputPiece {
        self.log.lock().piece(from, at_most)
    }

    /// Waits until a text is printed after a place, or the command ends. Cancel-safe.
    pub async fn wait_for(&mut self, text: &[u8], from: u64, at_most: Duration) -> TextWait {
        let until = Instant::now() + at_most;
        let log = Arc::clone(&self.log);
        let mut from = from;
        loop {
            let printed = log.printed.notified();
            tokio::pin!(printed);
            printed.as_mut().enable();
            match log.lock().find(text, from) {
                Ok(end) => return TextWait::Printed(end),
                Err(next) => from = next,
            }
            if self.outcome.is_some() {
                return TextWait::Ended;
            }
            let waited = timeout_at(until, async {
                tokio::select! {
                    () = printed => None,
                    outcome = self.running.outcome() => Some(outcome),
                }
            });
            match waited.await {
                Err(_) => return TextWait::TimedOut,
                // What it printed last is looked at once more.
                Ok(Some(outcome)) => self.outcome = Some(outcome),
                Ok(None) => {}
            }
        }
    }

    /// Writes to the command's input; waits while the command does not read. Not cancel-safe: a part may have been
    /// written.
    ///
    /// # Errors
    /// If the command closed its input or ended, its input was closed, or it did not read all of it in time; how much it
    /// was handed then is not told.
    pub async fn write(&self, mut bytes: &[u8], at_most: Duration) -> io::Result<()> {
        let Some(input) = &self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let until = Instant::now() + at_most;
        while !bytes.is_empty() {
            match rustix::io::write(input, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if Instant::now() < until => sleep(WRITE_AGAIN).await,
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Closes the command's input: it reads the end.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Ends the command with all it started. Its outcome comes as always.
    pub fn cancel(&mut self) {
        self.running.cancel();
    }

    /// Outcome of the command, if it is over.
    pub fn outcome_now(&mut self) -> Option<&Result<Outcome, SandboxError>> {
        if self.outcome.is_none() {
            self.outcome = self.running.outcome_now();
        }
        self.outcome.as_ref()
    }

    /// Waits for the outcome. Cancel-safe.
    pub async fn outcome(&mut self) -> &Result<Outcome, SandboxError> {
        let outcome = match self.outcome.take() {
            Some(outcome) => outcome,
            None => self.running.outcome().await,
        };
        self.outcome.insert(outcome)
    }
}

/// The last bytes that a command printed.
#[derive(Debug)]
pub(crate) struct OutputLog {
    kept: Mutex<KeptOutput>,
    printed: Notify,
}

#[derive(Debug)]
struct KeptOutput {
    bytes: VecDeque<u8>,
    /// Bytes that were printed before those.
    omitted: u64,
    bound: usize,
}

impl OutputLog {
    pub(crate) fn new(bound: usize) -> Self {
        let kept = KeptOutput { bytes: VecDeque::new(), omitted: 0, bound };
        Self { kept: Mutex::new(kept), printed: Notify::new() }
    }

    pub(crate) fn sink(self: &Arc<Self>) -> OutputSink {
        let log = Arc::clone(self);
        Box::new(move |_, bytes| {
            log.lock().push(bytes);
            log.printed.notify_waiters();
        })
    }

    fn lock(&self) -> MutexGuard<'_, KeptOutput> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptOutput {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(self.bound);
        self.bytes.drain(..over);
        self.omitted += over as u64;
    }

    /// Index of a place in what is kept, and what is left out between the two.
    fn index(&self, from: u64) -> (usize, u64) {
        let index = usize::try_from(from.saturating_sub(self.omitted)).unwrap_or(usize::MAX);
        (index.min(self.bytes.len()), self.omitted.saturating_sub(from))
    }

    fn piece(&self, from: u64, at_most: usize) -> OutputPiece {
        let (index, omitted) = self.index(from);
        let bytes: Vec<u8> = self.bytes.range(index..).take(at_most).copied().collect();
        OutputPiece { end: self.omitted + (index + bytes.len()) as u64, bytes, omitted }
    }

    /// Place after a text, or the one to look from the next time.
    fn find(&mut self, text: &[u8], from: u64) -> Result<u64, u64> {
        let (index, _) = self.index(from);
        let omitted = self.omitted;
        let bytes = &self.bytes.make_contiguous()[index..];
        let found =
            if text.is_empty() { Some(0) } else { bytes.windows(text.len()).position(|part| part == text) };
        let begun = text.len().saturating_sub(1).min(bytes.len());
        let next = omitted + (index + bytes.len() - begun) as u64;
        found.map(|at| omitted + (index + at + text.len()) as u64).ok_or(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_and_read_by_place() {
        let mut kept = KeptOutput { bytes: VecDeque::new(), omitted: 0, bound: 10 };
        kept.push(b"abcdef");
        assert_eq!(kept.piece(0, 4), OutputPiece { bytes: b"abcd".into(), omitted: 0, end: 4 });
        assert_eq!(kept.piece(4, 9), OutputPiece { bytes: b"ef".into(), omitted: 0, end: 6 });
        kept.push(b"ghijkl");
        assert_eq!(kept.piece(0, 99), OutputPiece { bytes: b"cdefghijkl".into(), omitted: 2, end: 12 });
        assert_eq!(kept.piece(99, 9).bytes, b"");
    }

    #[test]
    fn a_text_is_found_over_the_borders_of_pieces() {
        let mut kept = KeptOutput { bytes: VecDeque::new(), omitted: 0, bound: 100 };
        kept.push(b"listening o");
        let next = kept.find(b"on port", 0).unwrap_err();
        kept.push(b"n port 8000");
        assert_eq!(kept.find(b"on port", next), Ok(17));
        assert!(kept.find(b"on port", 17).is_err());
    }
}
