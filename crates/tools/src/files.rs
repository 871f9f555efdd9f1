//! Tools that look at files beneath the roots of a session, and those that change them.

mod copy;
mod delete;
mod document;
mod edit;
mod glob;
mod grep;
mod list;
mod marks;
mod mkdir;
mod moving;
mod outline;
mod patch;
mod read;
mod relocation;
mod walk;
mod write;

use std::borrow::Cow;
use std::path::Path;

use loom::Digest;
use memchr::memchr;
use serde_json::Value;
use workspace::{Content, FileError, FileKind, LinkPolicy, ReadRules, RelativePath, Root, RootedPath};

use crate::tool::{Tool, ToolScope};

/// Name of the tool that reads files.
pub const READ: &str = "read";

/// All of them.
pub(crate) fn tools() -> [Tool; 11] {
    [
        Tool::writing("copy", copy::DESCRIPTION, copy::run, copy::paths, copy::preview).beside_the_core(),
        Tool::writing("delete", delete::DESCRIPTION, delete::run, delete::paths, delete::preview)
            .beside_the_core(),
        Tool::writing("edit", edit::DESCRIPTION, edit::run, edit::paths, edit::preview),
        Tool::reading("glob", glob::DESCRIPTION, glob::run),
        Tool::reading("grep", grep::DESCRIPTION, grep::run),
        Tool::reading("list", list::DESCRIPTION, list::run),
        Tool::writing("mkdir", mkdir::DESCRIPTION, mkdir::run, mkdir::paths, mkdir::preview)
            .beside_the_core(),
        Tool::writing("move", moving::DESCRIPTION, moving::run, moving::paths, moving::preview)
            .beside_the_core(),
        Tool::writing("patch", patch::DESCRIPTION, patch::run, patch::paths, patch::preview)
            .beside_the_core(),
        Tool::reading(READ, read::DESCRIPTION, read::run),
        Tool::writing("write", write::DESCRIPTION, write::run, write::paths, write::preview),
    ]
}

/// The paths that a call of one of them names; nothing of another tool.
pub(crate) fn named(tool: &str, arguments: &Value) -> Vec<String> {
    if !tools().iter().any(|one| one.spec.name == tool) {
        return Vec::new();
    }
    let text = |name| arguments.get(name).and_then(Value::as_str);
    let of_patch = text("patch").into_iter().flat_map(patch::named).map(|(path, _)| path);
    ["path", "from", "to"].into_iter().filter_map(text).map(str::to_owned).chain(of_patch).collect()
}

/// Whether a tool finds or reads what lies below the folder it is given.
pub(crate) fn looks_below(tool: &str) -> bool {
    ["glob", "grep", "list"].contains(&tool)
}

/// The root of a path that was given, and the path below it.
fn place<'s>(scope: &'s ToolScope, path: &str) -> Result<RootedPath<'s>, String> {
    scope.roots.place(path).map_err(|error| format!("{path:?}: {error}"))
}

fn failed(error: &FileError) -> String {
    error.to_string()
}

/// Bytes of a text that is read or searched.
pub(crate) const MAX_BYTES: u64 = 10 << 20;
/// Bytes of a document or picture that is read.
const MAX_DOCUMENT: u64 = 64 << 20;

/// What a file of at most so many bytes holds, if it may be read.
fn content_of(
    scope: &ToolScope,
    root: &Root,
    path: &RelativePath,
    (links, max_bytes): (LinkPolicy, u64),
) -> Result<Content, String> {
    scope.require_read(root, path)?;
    let rules = ReadRules { links, ..ReadRules::at_most(max_bytes) };
    let content = root.read(path, &rules).map_err(|error| failed(&error))?;
    // A link on the way may lead elsewhere than when the call was decided.
    match root.relative(&content.path) {
        Ok(opened) if opened == *path => Ok(content),
        Ok(opened) => scope.require_read(root, &opened).map(|()| content),
        Err(_) if scope.policy.is_empty() => Ok(content),
        Err(problem) => Err(format!("{} is not read: {problem}", root.shown(path).display())),
    }
}

/// The text of a file and the digest of its bytes. The text is with secrets masked in it before anything is cut; bytes that are no
/// UTF-8 are shown as U+FFFD, and a byte order mark is none of it.
fn text_of(
    scope: &ToolScope,
    root: &Root,
    path: &RelativePath,
    links: LinkPolicy,
) -> Result<(String, Digest), String> {
    let content = content_of(scope, root, path, (links, MAX_BYTES))?;
    let digest = content.digest();
    Ok((masked(scope, &root.shown(path), &content.bytes)?.into_owned(), digest))
}

/// The text that the bytes of a file are shown and searched as.
fn masked<'b>(scope: &ToolScope, path: &Path, bytes: &'b [u8]) -> Result<Cow<'b, str>, String> {
    if memchr(0, bytes).is_some() {
        return Err(format!("{} is no text: it holds zero bytes", path.display()));
    }
    let mask = |text: &'b str| scope.masker.mask_entering(text.strip_prefix('\u{feff}').unwrap_or(text)).text;
    Ok(match str::from_utf8(bytes) {
        Ok(text) => mask(text),
        Err(_) => {
            let text = String::from_utf8_lossy(bytes);
            let text =
                scope.masker.mask_entering(text.strip_prefix('\u{feff}').unwrap_or(&text)).text.into_owned();
            Cow::Owned(text)
        }
    })
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
mod changing_tests;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod further_root_tests;
#[cfg(test)]
mod hostile_file_tests;
#[cfg(test)]
mod hostile_path_tests;
#[cfg(test)]
mod relocating_tests;
#[cfg(test)]
mod secret_tests;
#[cfg(test)]
mod tests;
