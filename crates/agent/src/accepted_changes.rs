//! Changes of protected paths, which no command made that runs meanwhile, in whichever process.

use std::path::{Path, PathBuf};

use tools::{AcceptedChanges, AcceptedState, FileContent};

/// Says what is about to stand at protected paths; what is returned is [finished](finish) once it does.
pub(crate) fn accept<'c>(
    records: &Path,
    changes: impl IntoIterator<Item = (PathBuf, FileContent<'c>)>,
) -> Option<AcceptedChanges> {
    let state = |(path, content)| Some((path, accepted_state(content)?));
    let mut changes = changes.into_iter().filter_map(state).peekable();
    changes.peek()?;
    let begun = AcceptedChanges::begin(records, changes);
    begun.inspect_err(warn).ok()
}

/// Says that they were made.
pub(crate) fn finish(changes: impl IntoIterator<Item = AcceptedChanges>) {
    for changes in changes {
        if let Err(error) = changes.finish() {
            warn(&error);
        }
    }
}

fn warn(error: &std::io::Error) {
    tracing::warn!(%error, "a file that is written may be taken for that of a command");
}

fn accepted_state(content: FileContent<'_>) -> Option<AcceptedState> {
    match content {
        FileContent::Absent => Some(AcceptedState::Absent),
        FileContent::Folder { .. } => Some(AcceptedState::Folder),
        FileContent::File { mode, bytes } => Some(AcceptedState::file(mode, bytes)),
        FileContent::Link { .. }
        | FileContent::Unknown
        | FileContent::Large { .. }
        | FileContent::Special(_) => None,
    }
}
