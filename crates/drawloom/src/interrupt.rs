//! Work that Ctrl-C, SIGTERM or SIGHUP ends.
//!
//! A command runs on a thread of its own, so that the first Ctrl-C is heard even while the command waits for
//! standard input. A command that asks models is told to stop, and keeps what was received as an interrupted node;
//! any other is dropped where it waits next: what it had stored stays, what it had not was not acknowledged. A
//! second Ctrl-C, or a command that comes to no end, ends the process.

use std::fs;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use commands::CommandError;
use model::CancelHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinHandle};

use crate::terminal::{editor, is_asking, mark_pastes};

/// How long what was received may take to be stored.
const TO_STORE: Duration = Duration::from_secs(5);
/// How long a dropped command may take to come to a point where it waits.
const TO_END: Duration = Duration::from_millis(200);

#[derive(Debug, PartialEq)]
pub(crate) enum CommandEnd<T> {
    Done(T),
    /// With what came of it until then, none where it came to no end in time, and the exit code of who is so ended.
    Interrupted(Option<Result<T, CommandError>>, u8),
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
    /// `input`, with reads of it noted here as long as they wait.
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
        let code = tokio::select! {
            biased;
            finished = &mut task => return answer(finished).map(CommandEnd::Done),
            code = interrupted() => code,
        };
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
        // A question that is still asked ends with the process, and not by itself.
        if is_asking() {
            mark_pastes(false);
        }
        Ok(CommandEnd::Interrupted(partial, code))
    })
}

/// What a task ends with, if it ends in time and nobody interrupts again.
async fn within<T>(task: &mut JoinHandle<T>, time: Duration) -> Option<Result<T, JoinError>> {
    tokio::select! {
        biased;
        finished = task => Some(finished),
        _ = interrupted() => None,
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

/// Waits for Ctrl-C, SIGTERM or SIGHUP. Returns the exit code of a process that it ended. Cancel-safe.
pub(crate) async fn interrupted() -> u8 {
    let mut terminate = signal(SignalKind::terminate()).ok();
    let mut hangup = ends_with_terminal().then(|| signal(SignalKind::hangup()).ok()).flatten();
    loop {
        let kind = tokio::select! {
            kind = ctrl_c() => kind,
            kind = received(&mut terminate, SignalKind::terminate()) => kind,
            kind = received(&mut hangup, SignalKind::hangup()) => kind,
        };
        // An open editor takes Ctrl-C itself.
        if kind != SignalKind::interrupt() || !editor::is_open() {
            return 128 + kind.as_raw_value() as u8;
        }
    }
}

/// Has SIGTERM and SIGHUP end the process at once from now on, as they do where nobody listens: all is kept, and what is
/// left is to be shown. Ctrl-C is for the pager that shows it.
pub(crate) fn end_at_once() {
    let listen = async {
        let mut terminate = signal(SignalKind::terminate()).ok();
        let mut hangup = ends_with_terminal().then(|| signal(SignalKind::hangup()).ok()).flatten();
        let kind = tokio::select! {
            kind = received(&mut terminate, SignalKind::terminate()) => kind,
            kind = received(&mut hangup, SignalKind::hangup()) => kind,
        };
        std::process::exit(128 + kind.as_raw_value())
    };
    let listening = std::thread::Builder::new().name("signals".to_owned()).spawn(|| {
        if let Ok(runtime) = Builder::new_current_thread().enable_all().build() {
            runtime.block_on(listen);
        }
    });
    if let Err(error) = listening {
        tracing::warn!(%error, "SIGTERM is not heard while this is shown");
    }
}

async fn ctrl_c() -> SignalKind {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler Ctrl-C ends the process by itself.
        std::future::pending::<()>().await;
    }
    SignalKind::interrupt()
}

/// Whether SIGHUP would end the process: `nohup` has it ignored, and that holds. Where the system does not say so, nobody
/// listens.
fn ends_with_terminal() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signal 1 is the first bit.
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 0))
}

/// Waits for a signal; for ever where nobody can listen, as it ends the process by itself.
async fn received(of: &mut Option<Signal>, kind: SignalKind) -> SignalKind {
    match of {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
    kind
}
