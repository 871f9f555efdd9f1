//! Work that Ctrl-C ends.
//!
//! A command runs on a thread of its own, so that the first Ctrl-C is heard even while the command waits for
//! standard input. It is then dropped where it waits next: what it had stored stays, what it had not was not
//! acknowledged. A second Ctrl-C, or a command that does not come to a point where it waits, ends the process.

use std::time::Duration;

use commands::CommandError;
use tokio::runtime::{Builder, Runtime};

/// How long a command may take to come to a point where it can be ended.
const GRACE: Duration = Duration::from_millis(500);

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// By itself.
    Done(T),
    /// By Ctrl-C.
    Interrupted,
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

/// Runs a command until it ends or is interrupted.
///
/// # Errors
/// As the command. A panic of it goes on here.
pub(crate) fn run<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T, CommandError>> + Send + 'static,
) -> Result<Ended<T>, CommandError> {
    runtime.block_on(async {
        let mut task = tokio::spawn(work);
        let finished = tokio::select! {
            biased;
            finished = &mut task => Some(finished),
            () = interrupted() => None,
        };
        let Some(finished) = finished else {
            task.abort();
            tokio::select! {
                _ = task => {}
                () = interrupted() => {}
                () = tokio::time::sleep(GRACE) => {}
            }
            return Ok(Ended::Interrupted);
        };
        match finished {
            Ok(answer) => answer.map(Ended::Done),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Ok(Ended::Interrupted),
        }
    })
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler Ctrl-C ends the process by itself.
        std::future::pending::<()>().await;
    }
}
