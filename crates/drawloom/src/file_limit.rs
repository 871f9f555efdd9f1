//! The limit on the size of files (`ulimit -f`): a write beyond it is an error like that of a full disk, where the
//! system's default is to end the process without a word.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use commands::CommandError;

/// Whether a write of this process met the limit.
static MET: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Has writes beyond the limit fail from now on.
pub(crate) fn watch() {
    let met = MET.get_or_init(Arc::default);
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::clone(met)) {
        tracing::debug!(%error, "the limit on the size of files ends the process");
    }
}

/// The error of a command during which the limit was met: SQLite and others say no more than that writing failed.
pub(crate) fn explain(error: CommandError) -> CommandError {
    if !MET.get().is_some_and(|met| met.load(Ordering::Relaxed)) {
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
