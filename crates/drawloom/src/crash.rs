//! A fault of the program itself is one error line like any other, and a bug to report.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use commands::CommandError;

static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// From now on a panic, on any thread, is remembered instead of printed; the first one counts.
pub(crate) fn remember_panics() {
    panic::set_hook(Box::new(|info| {
        FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| described(info));
    }));
}

fn described(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let message = owned.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    format!("{message}{}", place.unwrap_or_default())
}

/// Runs `work`; a panic on the way, also one on another thread that made it fail, is its error.
///
/// # Errors
/// As `work`, or `internal` with exit 6.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, CommandError>) -> Result<T, CommandError> {
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(first().map_or(error, |what| internal(&what))),
        Err(_) => Err(internal(&first().unwrap_or_default())),
    }
}

fn first() -> Option<String> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn internal(what: &str) -> CommandError {
    CommandError::new(
        "internal",
        6,
        format!("a fault in drawloom {}: {what}", env!("CARGO_PKG_VERSION")),
        "please report it with this line; what was acknowledged is stored",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_an_error_of_the_store_kind_wherever_it_happens() {
        remember_panics();
        let here = guarded(|| -> Result<(), _> { panic!("one\nfault") }).unwrap_err();
        assert_eq!((here.code.as_ref(), here.exit), ("internal", 6));
        assert!(
            here.message.contains("one\nfault (") && here.message.contains("crash.rs:"),
            "{}",
            here.message
        );
        let elsewhere = guarded(|| -> Result<(), _> {
            std::thread::spawn(|| panic!("another")).join().unwrap_err();
            Err(CommandError::usage("the store is closed", ""))
        });
        assert!(elsewhere.unwrap_err().message.contains("another"));
        let control = guarded(|| -> Result<(), _> { Err(CommandError::usage("plain", "")) });
        assert_eq!(control.unwrap_err().message, "plain");
    }
}
