//! The limit on the size of files (`ulimit -f`): a write beyond it is an error like that of a full disk, where the
//! system's default is to end the process without a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use commands::CommandError;

/// Has writes beyond the limit fail from now on. What is returned becomes true once one did.
pub(crate) fn watch() -> Arc<AtomicBool> {
    let met = Arc::<AtomicBool>::default();
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::clone(&met)) {
        tracing::debug!(%error, "the limit on the size of files ends the process");
    }
    met
}

/// The error of a command during which the limit was met: SQLite and others say no more than that writing failed.
pub(crate) fn explain(met: &AtomicBool, error: CommandError) -> CommandError {
    if !met.load(Ordering::Relaxed) {
        return error;
    }
    let message = format!("a file would grow beyond the limit of this process: {}", error.message);
    CommandError::new(
        "file_limit",
        6,
        message,
        "raise it (`ulimit -f`) and try again; nothing acknowledged was lost",
    )
}
