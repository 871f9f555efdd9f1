//! Tools that look at files beneath the roots of a session.

mod glob;
mod grep;
mod list;
mod read;
mod walk;

use workspace::{FileError, FileKind, RootedPath};

use crate::tool::{Tool, ToolScope};

/// All of them.
pub(crate) fn tools() -> [Tool; 4] {
    [
        Tool::reading("glob", glob::DESCRIPTION, glob::run),
        Tool::reading("grep", grep::DESCRIPTION, grep::run),
        Tool::reading("list", list::DESCRIPTION, list::run),
        Tool::reading("read", read::DESCRIPTION, read::run),
    ]
}

/// The root of a path that was given, and the path below it.
fn place<'s>(scope: &'s ToolScope, path: &str) -> Result<RootedPath<'s>, String> {
    scope.roots.place(path).map_err(|error| format!("{path:?}: {error}"))
}

fn failed(error: &FileError) -> String {
    error.to_string()
}

/// What stands behind a name in a list, so that its kind is seen.
const fn sign(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Folder => "/",
        FileKind::Symlink => "@",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
