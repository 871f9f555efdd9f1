//! Tools that look at files beneath the roots of a session.

mod glob;
mod grep;
mod list;
mod read;
mod walk;

use workspace::{FileError, FileKind, LinkPolicy, ReadRules, RelativePath, Root, RootedPath};

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

/// Bytes of a file that is read or searched.
const MAX_BYTES: u64 = 10 << 20;

/// The text of a file, with secrets masked in it before anything is cut; bytes that are no UTF-8 are shown as U+FFFD,
/// and a byte order mark is none of it.
fn text_of(scope: &ToolScope, root: &Root, path: &RelativePath, links: LinkPolicy) -> Result<String, String> {
    let rules = ReadRules { links, ..ReadRules::at_most(MAX_BYTES) };
    let bytes = root.read(path, &rules).map_err(|error| failed(&error))?.bytes;
    if bytes.contains(&0) {
        return Err(format!("{path} is no text: it holds zero bytes"));
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(scope.masker.mask(text.strip_prefix('\u{feff}').unwrap_or(&text)).text.into_owned())
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
