//! Failures of a server that is asked to count, and when it is given up.

use std::sync::atomic::{AtomicU32, Ordering};

/// Failures in a row after which a server is not asked again.
const FAILURES: u32 = 3;

/// Failures in a row of one kind of question.
#[derive(Debug, Default)]
pub(crate) struct Failures(AtomicU32);

impl Failures {
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= FAILURES
    }

    /// Takes note of what became of a question: `None` where no answer came in time.
    pub(crate) fn note<T>(&self, answer: Option<&Result<T, AskError>>) {
        match answer {
            Some(Ok(_)) => self.0.store(0, Ordering::Relaxed),
            Some(Err(AskError::Unsupported)) => self.0.store(FAILURES, Ordering::Relaxed),
            None | Some(Err(AskError::Rejected | AskError::Unavailable)) => {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// The server does not take this text.
    Rejected,
    /// The server may answer later: it is loading, or was not reached.
    Unavailable,
    /// The server does not answer such questions.
    Unsupported,
}
