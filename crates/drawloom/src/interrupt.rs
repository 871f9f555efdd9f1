//! Work that Ctrl-C ends.
//!
//! A command runs on a thread of its own, so that the first Ctrl-C is heard even while the command waits for
//! standard input. A command that asks models is told to stop, and keeps what was received as an interrupted node;
//! any other is dropped where it waits next: what it had stored stays, what it had not was not acknowledged. A
//! second Ctrl-C, or a command that comes to no end, ends the process.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use commands::CommandError;
use model::CancelHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};

use crate::terminal::editor;

/// How long what was received may take to be stored.
const TO_STORE: Duration = Duration::from_secs(5);
/// How long a dropped command may take to come to a point where it waits.
const TO_END: Duration = Duration::from_millis(200);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandEnd<T> {
    Done(T),
    /// By Ctrl-C, with what came of it until then; none where it came to no end in time.
    Interrupted(Option<Result<T, CommandError>>),
}

/// The threads a command runs on: made only for commands that need them.
///
/// # Errors
/// When the system gives none.
pub(crate) fn runtime() -> Result<Runtime, CommandError> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandError::new("internal", 6, format!("no threads: {error}"), "free some memory"))
}

/// Whether a command waits for standard input: nothing of it is said yet, and it cannot hear that it is to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct InputWait(Arc<AtomicBool>);

impl InputWait {
    /// The same input, of which this knows when it is waited for.
    pub(crate) fn watch<R: Read>(&self, input: R) -> impl Read + use<R> {
        WatchedInput { input, waits: self.clone() }
    }

    fn holds(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

struct WatchedInput<R> {
    input: R,
    waits: InputWait,
}

impl<R: Read> Read for WatchedInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.waits.0.store(true, Ordering::SeqCst);
        let read = self.input.read(buffer);
        self.waits.0.store(false, Ordering::SeqCst);
        read
    }
}

/// Runs a command until it ends or is interrupted; `stop` tells it to stop, where it listens.
///
/// # Errors
/// As the command. A panic of it goes on here.
pub(crate) fn run<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T, CommandError>> + Send + 'static,
    stop: Option<(&CancelHandle, &InputWait)>,
) -> Result<CommandEnd<T>, CommandError> {
    runtime.block_on(async {
        let mut task = tokio::spawn(work);
        tokio::select! {
            biased;
            finished = &mut task => return answer(finished).map(CommandEnd::Done),
            () = interrupted() => {}
        }
        let partial = match stop {
            None => None,
            Some((stop, input)) => {
                stop.cancel();
                let time = if input.holds() { TO_END } else { TO_STORE };
                within(&mut task, time).await.map(answer)
            }
        };
        if !task.is_finished() {
            task.abort();
            within(&mut task, TO_END).await;
        }
        Ok(CommandEnd::Interrupted(partial))
    })
}

/// What a task ends with, if it ends in time and nobody interrupts again.
async fn within<T>(task: &mut JoinHandle<T>, time: Duration) -> Option<Result<T, JoinError>> {
    tokio::select! {
        biased;
        finished = task => Some(finished),
        () = interrupted() => None,
        () = tokio::time::sleep(time) => None,
    }
}

fn answer<T>(finished: Result<Result<T, CommandError>, JoinError>) -> Result<T, CommandError> {
    match finished {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(error()),
    }
}

/// A command that was dropped.
pub(crate) fn error() -> CommandError {
    CommandError::new("interrupted", 130, "the command was ended", "what it had stored stays")
}

/// Waits for Ctrl-C.
pub(crate) async fn interrupted() {
    loop {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a handler Ctrl-C ends the process by itself.
            std::future::pending::<()>().await;
        }
        if !editor::is_open() {
            return;
        }
    }
}
