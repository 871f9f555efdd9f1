//! The worker that extracts the text of documents (spec: agent §3 *Files*).

use std::process::ExitCode;

use sandbox::WorkerLimits;

/// Answers the bytes of a document on the standard input with its text, or with why it has none.
pub(crate) fn run() -> ExitCode {
    sandbox::run_worker(&WorkerLimits::default(), |bytes| {
        // What holds only texts can be written.
        serde_json::to_vec(&extract::extract(bytes)).unwrap_or_default()
    })
}
